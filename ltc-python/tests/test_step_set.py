"""Compiled steps that put something where they never look (`self.out = {"loss": loss}`), and that append to lists and
deques: replays leave the same. What else reads such a place, by whatever means, has the step recorded. Each case runs
recorded and compiled, is changed from outside now and then, and has to show the same after each call."""

import operator
from collections import OrderedDict, defaultdict, deque

import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state
from torch import nn

CALLS = 30
CASES = {}
#: A format that reads an attribute.
SHOWS = "{.seen}"


class Other(Held):
    """Another class of such objects, for patterns."""


def case(least, change=None):
    """A case: a function that is given an object for the state and returns the step. `least`: how many of the calls
    have to be replayed, or `None` if none may be. `change` is called with the state after every seventh call."""

    def add(function):
        CASES[function.__name__] = (function, least, change)
        return function

    return add


# ---- what replays leave ----


@case(25, lambda held: setattr(held, "out", "nothing"))
def a_dict(held):
    held.out = None

    def step(x):
        held.out = {"loss": x.sum(), "parts": [x * 2, (x[0], 3)]}
        return x + 1

    return step


@case(25, lambda held: vars(held).pop("second", None))
def several_places_that_may_be_missing(held):
    def step(x):
        held.first = [x.sum()]
        held.second = OrderedDict(b=x[0], a=x[1])
        held.third = x.mean().item()
        return x + 1

    return step


@case(25, lambda held: [vars(held).pop(name) for name in ("zeta", "alpha")])
def places_in_their_order(held):
    def step(x):
        held.zeta = [x.sum()]
        held.alpha = [x[0]]
        return x + 1

    return step


@case(25)
def numbers_that_are_read(held):
    def step(x):
        held.metrics = {"mean": x.mean().item(), "largest": x.max().item(), "name": "metrics"}
        return x + 1

    return step


@case(25)
def what_can_still_be_differentiated(held):
    held.weight = torch.ones(3, device="ltc", requires_grad=True)

    def step(x):
        loss = (held.weight * x).sum()
        held.logits = {"loss": loss}
        return x + 1

    return step


@case(25, lambda held: setattr(held.net, "seen", 7))
def attributes_of_a_module(held):
    class Net(nn.Module):
        def forward(self, x):
            self.seen = {"mean": x.mean()}
            self.last = x * 2
            return x + 1

    held.net = Net()
    return lambda x: held.net(x)


@case(25)
def a_global(held):
    scope = {"held": held}
    exec("def step(x):\n    global latest\n    latest = {'sum': x.sum()}\n    return x + 1", scope)
    held.latest = lambda: scope.get("latest")
    return scope["step"]


@case(15, lambda held: setattr(held, "done", not held.done))
def a_flag_that_is_set_again(held):
    held.done = False

    def step(x):
        held.done = True
        return x + 1

    return step


@case(15, lambda held: setattr(held, "rate", 0.5))
def on_one_of_two_ways(held):
    held.rate, held.note = 0.5, "none"

    def step(x):
        if held.rate > 1:
            held.note = {"large": x.sum()}
        held.rate += 0.1
        return x * held.rate

    return step


@case(25, lambda held: held.window.clear())
def a_bounded_deque(held):
    held.window = deque(maxlen=4)

    def step(x):
        held.window.append(x.mean().item())
        held.window.append(x.sum())
        held.window.append(7)
        return x + 1

    return step


@case(25, lambda held: held.window.appendleft(1))
def a_deque(held):
    held.window = deque([7, 7])

    def step(x):
        held.window.append(7)
        held.window.append(x.sum())
        return x + 1

    return step


@case(25)
def deques_in_a_dict(held):
    held.windows = {"loss": deque(maxlen=2), "count": [0]}

    def step(x):
        held.windows["loss"].append(x.sum())
        held.windows["count"].append(1)
        return x + 1

    return step


@case(25)
def a_list_that_is_extended(held):
    held.seen, held.parts = [], defaultdict(list)

    def step(x):
        held.seen.extend([x.sum(), 3])
        held.parts["a"].extend(x * i for i in range(2))
        held.seen.append(x[0])
        return x + 1

    return step


# ---- what has the step recorded ----


@case(None)
def read_by_other_code(held):
    held.out = {"a": torch.zeros((), device="ltc")}

    def before():
        return held.out["a"]

    def step(x):
        last = before()
        held.out = {"a": x.sum()}
        return x + last

    return step


@case(None)
def read_by_a_getter(held):
    held.out, get = {"a": torch.zeros((), device="ltc")}, operator.attrgetter("out")

    def step(x):
        last = get(held)["a"]
        held.out = {"a": x.sum()}
        return x + last

    return step


@case(None)
def read_by_a_pattern(held):
    held.other = Other(out={"a": torch.zeros((), device="ltc")})

    def step(x):
        match held.other:
            case Other(out=last):
                x = x + last["a"]
        held.other.out = {"a": x.sum()}
        return x

    return step


@case(None)
def read_as_a_whole(held):
    held.out = {"a": torch.zeros((), device="ltc")}

    def step(x):
        last = next(iter(vars(held).values()))["a"]
        held.out = {"a": x.sum()}
        return x + last

    return step


@case(None)
def one_dict_in_two_places(held):
    def step(x):
        held.one = held.two = {"a": x.sum()}
        return x + 1

    return step


@case(None)
def a_count_that_a_getter_reads(held):
    held.n, get, numbers = 0, operator.attrgetter("n"), [*range(CALLS)]

    def step(x):
        held.n += 1
        return x + numbers[get(held) - 1]

    return step


@case(None)
def a_count_that_a_pattern_reads(held):
    held.other, numbers = Other(n=0), [*range(CALLS)]

    def step(x):
        match held.other:
            case Other(n=count):
                pass
        held.other.n += 1
        return x + numbers[count]

    return step


@case(None)
def a_list_whose_length_a_pattern_reads(held):
    held.other = Other(seen=[])

    def step(x):
        match held.other:
            case Other(seen=[_, _, _, _, _, *_]):
                x = x * 2
        held.other.seen.append(1)
        return x

    return step


@case(None)
def a_list_that_a_format_shows(held):
    held.seen = []

    def step(x):
        held.seen.append(1)
        return x + 1, SHOWS.format(held)

    return step


@case(20, lambda held: held.settings.update(m=3))
def a_dict_that_a_pattern_reads(held):
    held.other = Other(settings={"n": 5})
    held.settings = held.other.settings

    def step(x):
        match held.other:
            case Other(settings={"m": 3}):
                x = x * 2
        held.calls = [x.sum()]
        return x * held.other.settings["n"]

    return step


@case(None)
def a_deque_that_is_extended(held):
    held.window = deque(maxlen=3)

    def step(x):
        held.window.extend([x.sum(), 2])
        return x + 1

    return step


@case(None)
def a_deque_from_which_something_is_taken(held):
    held.window = window = deque([1, 2, 3], maxlen=3)

    def step(x):
        held.window.append(x.sum())
        window.popleft()
        return x + 1

    return step


@pytest.mark.parametrize("name", CASES)
def test_leaves_the_same(name):
    make, least, change = CASES[name]
    compare_with_state(make, least, change, CALLS)


def test_each_call_leaves_containers_of_its_own():
    held = Held()

    def step(x):
        held.out = {"a": [x.sum()]}
        return x

    step = torch_ltc.compile(step)
    kept = []
    for i in range(8):
        step(torch.full((2,), float(i), device="ltc"))
        kept.append(held.out)
    assert step.counts[0] >= 4, step.explain()
    assert [out["a"][0].item() for out in kept] == [2.0 * i for i in range(8)]
    assert len({id(out) for out in kept} | {id(out["a"]) for out in kept}) == 16


def test_what_a_step_only_sets_need_not_be_as_it_was():
    """A call finds anything in the place, a tensor on another device or with a history included, and is replayed."""
    held = Held(out=None)

    def step(x):
        held.out = {"a": x.sum()}
        return x + 1

    step = torch_ltc.compile(step)
    x = torch.ones(2, device="ltc")
    for _ in range(4):
        step(x)
    before = step.counts[0]
    weight = torch.ones(2, device="ltc", requires_grad=True)
    for found in (weight * 2, torch.ones(3), object(), {1: 2}, None, step):
        held.out = found
        step(x)
        assert held.out["a"].item() == 2.0
    assert step.counts[0] == before + 6, step.explain()
