"""A whole number that a step counts is lent to captures as an object that remembers what becomes of it. Nothing shows
that: not to classes of any kind beside it, not in what is kept or raised, and replays follow it wherever it goes."""

import enum
import io
import json
import math
import operator
import pickle
import struct
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state


class Phase(enum.IntEnum):
    EARLY = 2
    LATE = 5


class Own(int):
    pass


class Asked:
    """Has operators in Python, which look at what they get."""

    def __init__(self):
        self.seen = []

    def __repr__(self):
        return f"Asked({self.seen})"

    def _take(self, *others):
        self.seen.append([type(x).__name__ for x in others])
        return float(others[0] & 3) if isinstance(others[0], int) else -1.0

    __mul__ = __rmul__ = __lt__ = _take

    def __add__(self, other):
        return struct.unpack("d", struct.pack("d", other))[0]


class Number:
    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return "Number"

    def __float__(self):
        return self.held.epoch * 0.5


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if any(isinstance(x, float) for x in args):
            raise AssertionError(args)
        return func(*args, **(kwargs or {}))


def in_a_mode(held, x):
    with Mode():
        return x.long() * held.epoch


def caught(held, x):
    try:
        return x * (1 / (held.epoch - 3))
    except ZeroDivisionError:
        return x


def caught_of_math(held, x):
    try:
        return x * math.sqrt(held.epoch - 4)
    except ValueError:
        return x


def told(held, x):
    try:
        return x + (None + held.epoch)
    except TypeError as error:
        held.text = str(error)
        return x


def by_another_variable(held, x):
    n = held.epoch
    return x.long() * (held.k * n), x.long() * (2 * n), x * (held.rate * n / 3), x.long() + n


def read_and_kept(held, x):
    held.right += (x > 0).sum().item()
    v = held.k * held.right
    return v & 1, v.bit_length(), isinstance(v, int), v == Phase.LATE, v.conjugate(), x


def read_and_bits(held, x):
    held.right = (x > 0).sum().item()
    return held.right & 1, held.right << 2, ~held.right, held.right.numerator, hasattr(held.right, "hex"), x


def formatted(held, x):
    return f"{held.epoch} {held.epoch:03d} {held.epoch / 2}", format(held.epoch, "d"), repr(held.epoch), x


#: What steps do with a count that goes on every fourth call (`held.epoch`), and the least number of replays.
CASES = {
    "an enum": (lambda held, x: x * 2 if held.epoch == Phase.LATE else x, 0),
    "an enum on the left": (lambda held, x: x * 2 if Phase.LATE <= held.epoch else x, 0),
    "a factor of a class of ints": (lambda held, x: (x * (held.epoch * Own(3) / 2), x * (Own(3) / held.epoch)), 0),
    "an operator in Python": (lambda held, x: x * (held.asked * held.epoch), 0),
    "an operator in Python on the right": (lambda held, x: x * (held.epoch * held.asked), 0),
    "a comparison in Python": (lambda held, x: x if held.asked < held.epoch else x * 2, 0),
    "an operator that packs": (lambda held, x: x * (held.asked + held.epoch), 0),
    "a fraction": (lambda held, x: (held.part // held.epoch, held.part == held.epoch, x), 0),
    "an array": (lambda held, x: (held.array * held.epoch, np.float32(2) / held.epoch, x), 0),
    "what __float__ gives": (lambda held, x: x * float(held.number), 0),
    "what __float__ gives to math": (lambda held, x: x * math.sqrt(held.number), 0),
    "a repeated list": (lambda held, x: ([0] * held.epoch, "ab" * held.epoch, x), 0),
    "bits": (lambda held, x: (held.epoch & 1, held.epoch.bit_length(), divmod(held.epoch, 2), round(held.epoch), x), 0),
    "a root by another name": (lambda held, x: x * operator.pow(held.epoch, 0.5), 0),
    **{f.__name__: (f, 0) for f in (in_a_mode, told, read_and_kept, read_and_bits, formatted)},
    **{f.__name__: (f, least) for f, least in ((caught, 8), (caught_of_math, 0))},
    by_another_variable.__name__: (by_another_variable, 0),
    "a float on the left": (lambda held, x: x * (0.5**held.epoch + held.rate / held.epoch), 0),
}


def counting(body):
    def make(held):
        held.__dict__.update(calls=0, epoch=1, right=0, k=3, rate=0.25, part=Fraction(7, 2), text="")
        held.asked, held.array = Asked(), np.ones(2, np.float32)
        held.number = Number(held)

        def step(x):
            held.calls += 1
            if held.calls % 4 == 0:
                held.epoch += 1
            return body(held, x)

        return step

    return make


def goes_far(held):
    held.epoch = 10**400


def goes_back(held):
    held.epoch = 2


@pytest.mark.parametrize("change", [None, goes_back], ids=["alone", "goes back"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_shows_that_a_count_is_lent(name, change):
    body, least = CASES[name]
    compare_with_state(counting(body), least if change is None else 0, change)


@pytest.mark.parametrize("late", [False, True])
def test_a_count_that_no_float_can_hold_raises_what_it_raises(late):
    """Where numbers are read off the device, nothing that follows from them may fail when the program has run."""

    def body(held, x):
        held.right += (x > 0).sum().item() if late else 1
        held.rate = held.right / 7
        return x + 1

    states = []
    for compiled in (False, True):
        held = Held()
        step = counting(body)(held)
        step = torch_ltc.compile(step) if compiled else step
        for i in range(12):
            held.right = 10**400 if i == 9 else held.right
            try:
                step(torch.ones(2, device="ltc"))
            except OverflowError as error:
                states.append(str(error))
            states.append((held.right, held.rate, held.calls))
    assert states[: len(states) // 2] == states[len(states) // 2 :]


def read_again(data, how):
    if how == "json":
        return json.loads(data)
    return pickle.loads(data) if how == "pickle" else torch.load(io.BytesIO(data))


@pytest.mark.parametrize("how", ["torch.save", "an older torch.save", "pickle", "json"])
def test_what_a_step_writes_can_be_read(how):
    """The call that writes is refused, but it began as a capture; `torch.load` takes no objects that call classes."""

    def run(wrap):
        files, net = [], torch.nn.Linear(3, 2, device="ltc")
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9)
        state = {"n": 0, "rate": 1.0}

        @wrap
        def step(x):
            optimiser.zero_grad()
            net(x).square().mean().backward()
            optimiser.step()
            rate = state["rate"] * 0.9
            state["n"] += 1
            state["rate"] = rate
            if state["n"] % 5 == 0:
                kept, file = [state, optimiser.state_dict()["param_groups"], rate], io.BytesIO()
                if how == "json":
                    file.write(json.dumps(kept).encode())
                elif how == "pickle":
                    file.write(pickle.dumps(kept))
                else:
                    torch.save(kept, file, _use_new_zipfile_serialization=how == "torch.save")
                files.append(file.getvalue())
            return x * 2

        for _ in range(16):
            step(torch.ones(2, 3, device="ltc"))
            schedule.step()
        return [read_again(file, how) for file in files]

    assert repr(run(torch_ltc.compile)) == repr(run(lambda f: f))
