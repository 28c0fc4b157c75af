"""Numbers that are lent to compiled steps, or read off the device: what a step does with one that leaves no trace, so
that replays would not follow it, has the step recorded, or has that number guarded. Each case runs recorded and
compiled, is changed from outside now and then, and has to show the same after each call."""

import ctypes
import math
import textwrap

import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state, shown

CALLS = 30
CASES = {}
#: Which entry a whole number selects.
TABLE = [1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0] * 10


def case(least, change=None):
    """A case: a function that is given an object for the state and returns the step. `least`: how many of the calls
    have to be replayed; 0 where it does not matter. `change` is called with the state after every seventh call."""

    def add(function):
        CASES[function.__name__] = (function, least, change)
        return function

    return add


# ---- code with many names and variables: its instructions have large arguments ----


def _passed(x):
    return x


def _many(text):
    """Defines a step by its text, with more names and variables than an argument of one byte can tell apart."""
    names = "\n            ".join(f"held.a{i} = v{i} = 1" for i in range(300))
    scope = {"_passed": _passed}
    head = "def make(held):\n    def step(x):\n        if held.flag:\n            "
    exec(f"{head}{names}\n        {text}\n    return step", scope)
    return scope["make"]


@case(0)
def a_left_operand_of_two_ways(held):
    held.flag = 0
    return _many(
        "a = 0.5; b = 0; c = True\n        return (a if c else b) + _passed(x).sum().long().item()",
    )(held)


@case(0)
def a_dividend_of_two_ways(held):
    held.flag, held.total, held.count, held.other = 0, 0.0, 0, 10.0
    return _many(
        "held.count += 1; held.total += 1.0; c = held.flag == 0\n"
        "        return (held.other if c else held.total) / held.count, x",
    )(held)


# ---- whole numbers that are read off the device: what is on their left, and where they are kept ----


def _count(x):
    """How many there are, which differs from call to call."""
    return (x > 0).sum() + x[0].long()


@case(0)
def a_variable_becomes_a_float(held):
    def step(x):
        w = 0
        k = _count(x).item()
        w = x.numel() / 4
        return w + k

    return step


@case(0)
def a_variable_becomes_a_truth_value(held):
    def step(x):
        w = 0
        k = _count(x).item()
        w = True
        return w + k

    return step


@case(0)
def a_global_becomes_a_float_and_a_number_again(held):
    scope = {"_count": _count}
    text = """
        def step(x):
            global G
            G = 0
            k = _count(x).item()
            G = 0.5
            out = G + k
            G = 0
            return out
    """
    exec(textwrap.dedent(text), scope)
    return scope["step"]


@case(0)
def an_attribute_becomes_a_float(held):
    held.share = 0

    def step(x):
        held.share = 0
        k = _count(x).item()
        held.share = 0.5
        return held.share + k

    return step


@case(0)
def an_attribute_becomes_a_float_elsewhere(held):
    held.share = 0

    def put(share):
        held.share = share

    def step(x):
        k = _count(x).item()
        put(0.5)
        out = held.share + k
        put(0)
        return out

    return step


@case(0)
def an_attribute_is_added_to_and_set_back(held):
    held.share = 0

    def step(x):
        k = _count(x).item()
        held.share += 0.5
        out = held.share + k
        held.share = 0
        return out

    return step


@case(0)
def a_property_in_front_of_an_attribute(held):
    class Half:
        share = property(lambda self: 0.5)

    half = Half()
    vars(half)["share"] = 0

    def step(x):
        k = _count(x).item()
        return half.share + k

    return step


@case(0)
def an_attribute_is_set_back(held):
    held.k = 0

    def step(x):
        held.k = _count(x).item()
        y = x * TABLE[held.k]
        held.k = 0
        return y

    return step


@case(0)
def an_attribute_is_set_back_behind_another_function(held):
    held.k = 0

    def use(x):
        return x * TABLE[held.k]

    def step(x):
        held.k = _count(x).item()
        y = use(x)
        held.k = 0
        return y

    return step


@case(0)
def the_owner_of_an_attribute_is_another(held):
    held.n = 0

    def step(x):
        p = held
        k = _count(x).item()
        p = Held(n=0)
        p.n = k
        return x * TABLE[p.n]

    return step


@case(25)
def counted_in_a_variable(held):
    def step(x):
        total = 0
        for part in (x, x * 2):
            total += _count(part).item()
        return total

    return step


@case(25)
def counted_in_an_attribute_from_zero(held):
    held.total = 0

    def step(x):
        held.total = 0
        for part in (x, x * 2):
            held.total += _count(part).item()
        return held.total / 4

    return step


@case(20, lambda held: setattr(held.meter, "total", 0))
def counted_by_an_object_in_a_variable(held):
    held.meter = Held(total=0, seen=0)

    def step(x):
        meter = held.meter
        right = _count(x).item()
        meter.total += right
        meter.seen += x.numel()
        return meter.total / meter.seen

    return step


# ---- what two captures return ----


@case(0)
def what_the_survey_does_not_see(held):
    """Captures that return other plain values do not confirm each other."""
    hidden = ctypes.py_object([0])

    def step(x):
        ctypes.py_object.value.__get__(hidden).append(0)
        return x + 1, ctypes.py_object.value.__get__(hidden).__len__()

    return step


# ---- the class and the identity of a number that is lent ----


class Rated(Held):
    """Asks in its methods for the class of a number."""

    def by_comparison(self, x):
        return x * self.rate if type(self.rate) is float else x

    def by_table(self, x):
        return x * {float: 2.0}[type(self.rate)], self.rate

    def by_map(self, x):
        return x * 2, [kind.__name__ for kind in map(type, self.betas)]

    def by_name(self, x):
        return x * self.rate, getattr(self.rate, "__class__").__name__  # noqa: B009

    def of_the_optimizer(self, x):
        return x * 2, type(self.groups[0]["lr"]).__name__

    def by_another_name(self, x):
        kind = type
        return x * self.rate, kind(self.rate).__name__

    def of_what_is_read(self, x):
        self.last = x.sum().item()
        return x, type(self.last).__name__


def _changed(held):
    rated = held.rated
    rated.rate, rated.betas = rated.rate * 0.9, (rated.betas[0] * 0.9, 0.5)
    rated.groups[0]["lr"] *= 0.5


def _rated(name):
    def make(held):
        held.rated = Rated(rate=0.5, betas=(0.9, 0.5), groups=[{"lr": 0.1}], last=0.5)
        return getattr(held.rated, name)

    return make


for _name in [name for name in vars(Rated) if name[0] != "_"]:
    CASES[f"class {_name}"] = (_rated(_name), 0, _changed)


@case(0, lambda held: setattr(held, "k", held.k * 0.5))
def the_class_by_a_name_of_a_closure(held):
    held.k, kind = 0.5, type
    return lambda x: (x * held.k, kind(held.k).__name__)


INF, NAN = float("inf"), float("nan")


def _sentinel(number):
    """Changes between other numbers and that object."""
    values = [0.5, number, 0.25, number] * 10
    return lambda held: setattr(held, "k", values[held.__dict__.setdefault("at", [0, *range(9)]).pop()])


@case(0, _sentinel(INF))
def whether_it_is_that_object(held):
    held.k = INF
    return lambda x: x * 2 if held.k is INF else x


@case(0, _sentinel(math.inf))
def whether_it_is_that_of_a_module(held):
    held.k = math.inf

    def step(x):
        found = held.k
        return x * 2 if found is math.inf else x

    return step


@case(0, _sentinel(NAN))
def whether_a_list_has_it(held):
    held.k = NAN
    return lambda x: x * 2 if held.k in [NAN] else x


def _are_one(a, b):
    return a is b


@case(0, _sentinel(INF))
def whether_another_function_says_so(held):
    held.k = INF
    return lambda x: x * 2 if _are_one(held.k, INF) else x


@case(20, lambda held: setattr(held, "k", held.k * 0.5))
def objects_are_compared_beside_it(held):
    held.k, held.heads = 0.5, [Held(), Held()]

    def step(x):
        for head in held.heads:
            if head is held.heads[0]:
                x = x * held.k
        return x

    return step


# ---- numbers that C code reads ----

Number = float
READS = {
    "hex": lambda k: Number.hex(k),
    "ratio": lambda k: Number.as_integer_ratio(k)[0],
    "whole": lambda k: Number.is_integer(k),
    **{
        name: eval(f"lambda k: Number.__{name}__(k)", {"Number": float})
        for name in "repr round floor ceil trunc int abs neg pos hash bool float str".split()
    },
    "format": lambda k: Number.__format__(k, ".3f"),
    "add": lambda k: Number.__add__(k, 1.0),
    "get": lambda k: getattr(Number, "__repr__")(k),  # noqa: B009
    "key": lambda k: [*{k: 1}],
}


def _reads(name, of_device):
    def make(held):
        held.k, read = 0.75, READS[name]
        if of_device:
            return lambda x: (x * 2, read(x.sum().item()))
        return lambda x: (x * held.k, read(held.k))

    return make


for _name in READS:
    for _of in (False, True):
        CASES[f"read {_name} {_of}"] = (_reads(_name, _of), 0, lambda held: setattr(held, "k", held.k * -1.5))


@case(0, lambda held: setattr(held, "m", held.m - 1.0))
def a_root_that_is_complex(held):
    held.m = -4.0

    def step(x):
        z = held.m**0.5
        return x, str(z * x.sum().item())

    return step


@case(0, lambda held: setattr(held, "k", -3.0 - held.k))
def a_key_with_the_hash_of_another(held):
    held.k = -1.0
    return lambda x: {held.k: x}


# ---- dicts of classes of the program ----


class Doubled(dict):
    """Does something with what it is given."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


class Shifted(dict):
    """Shows something else than what it holds."""

    def __getitem__(self, key):
        return super().__getitem__(key) + 1

    def get(self, key, default=None):
        return -1.0


class Named(dict):
    """Shows its entries as attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def _entries_of(kind, how):
    def make(held):
        held.d = kind(rate=0.5, count=0, last=0)

        def counts(x):
            held.d["count"] += 1
            return x * held.d["rate"], held.d["count"] / 2

        def leaves(x):
            held.d["last"] = x.sum()
            return x * held.d["rate"]

        def scales(x):
            held.d["rate"] = held.d["rate"] * 0.5
            return x * held.d["rate"]

        return {"counts": counts, "leaves": leaves, "scales": scales}[how]

    return make


for _kind in (Doubled, Shifted, Named):
    for _how in ("counts", "leaves", "scales"):
        CASES[f"dict {_kind.__name__} {_how}"] = (
            _entries_of(_kind, _how),
            15 if _kind is Named and _how != "counts" else 0,
            lambda held: dict.__setitem__(held.d, "rate", dict.get(held.d, "rate") * 0.75),
        )


# ---- schedules that the step sets something of ----


def _scheduled(held):
    weight = torch.nn.Parameter(torch.ones(3, device="ltc"))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    optimizer.step()
    return optimizer.param_groups[0], torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)


@case(0)
def a_factor_is_set_around_it(held):
    group, schedule = _scheduled(held)

    def step(x):
        schedule.gamma = 0.5
        schedule.step()
        schedule.gamma = 0.9
        return x * group["lr"]

    return step


@case(15)
def nothing_is_set_of_it(held):
    group, schedule = _scheduled(held)

    def step(x):
        schedule.step()
        return x * group["lr"]

    return step


# ---- arguments: calls that are given other things do not share a key ----


def _more_numbers(x, given, **named):
    return x * given.a + getattr(given, "b", 0) * 2 + named.get("b", 0)


def _tensors(x, given):
    return getattr(given.a, "y", given.a.x) * 2 - getattr(given, "y", given.a.x)


def _entries(x, given):
    return x * sum(key == 1.5 for key in given)


def _is_one(x, given):
    return x, given[0] is given[1]


HALF = float("0.5")
ARGUMENTS = {
    "a named argument, or an attribute": (
        _more_numbers,
        [lambda x: ((x, Held(a=1)), {"b": 2}), lambda x: ((x, Held(a=1, b=2)), {})],
    ),
    "an attribute here or there": (
        _tensors,
        [lambda x: ((x, Held(a=Held(x=x), y=x + 1)), {}), lambda x: ((x, Held(a=Held(x=x, y=x + 1))), {})],
    ),
    "a float or a string as a key": (
        _entries,
        [lambda x: ((x, {1.5: x}), {}), lambda x: ((x, {(1.5).hex(): x}), {})],
    ),
    "one float twice, or two": (
        _is_one,
        [lambda x: ((x, [HALF, HALF]), {}), lambda x: ((x, [HALF, float("0.5")]), {})],
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_calls_that_are_given_other_things_differ(name):
    step, ways = ARGUMENTS[name]
    call = torch_ltc.compile(step)
    for i in range(16):
        given, named = ways[i // 8](torch.full((3,), float(i), device="ltc"))
        assert shown(call(*given, **named)) == shown(step(*given, **named)), i
    assert call.counts[0] >= 8, call.explain()


@pytest.mark.parametrize("name", CASES)
def test_replays_do_what_the_step_does(name):
    make, least, change = CASES[name]
    compare_with_state(make, least, change, CALLS)
