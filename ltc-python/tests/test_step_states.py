"""Compiled steps that are in one of a few states: what they leave in a place (`self.turn = "d"`) decides what the next
call does. Each case runs recorded and compiled, is changed from outside now and then, and has to say the same."""

import enum
import types

import pytest
import torch
import torch_ltc
from torch_ltc import _left_places

CASES = {}


class Mode(enum.Enum):
    A = 1
    B = 2


class Held:
    """An object with attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def case(least, changes=None):
    """A case: a function of `compile` and of an object for the state, which returns the step. `least`: how many of 40
    calls have to be replayed. `changes`: what is set from outside, by call."""

    def add(function):
        CASES[function.__name__] = (function, least, changes or {})
        return function

    return add


@case(32, {9: {"turn": True}, 13: {"turn": True}})
def a_flag(compile, held):
    held.turn = False

    def step(x):
        held.turn = not held.turn
        return x * 2 if held.turn else x * 3

    return compile(step)


@case(30, {11: {"turn": "d"}})
def names_of_turns(compile, held):
    held.turn = "d"

    def step(x):
        before = held.turn
        held.turn = {"d": "g", "g": "e", "e": "d"}[before]
        return x * {"d": 2.0, "g": 3.0, "e": 5.0}[before]

    return compile(step)


@case(28, {15: {"scale": 7.0}, 30: {"scale": 2.0}})
def members_of_an_enum(compile, held):
    held.turn, held.scale = Mode.A, 2.0
    Mode.A.of = held  # what it holds is watched, though it is the state

    def step(x):
        out = x * (held.turn.of.scale if held.turn is Mode.A else 3.0)
        held.turn = Mode.B if held.turn is Mode.A else Mode.A
        return out

    return compile(step)


@case(30)
def attributes_of_a_member(compile, held):
    held.turn = Mode.A
    Mode.A.scale, Mode.B.scale = 2.0, 3.0
    Mode.A.other, Mode.B.other = Mode.B, Mode.A
    calls = [0]

    def step(x):
        out = x * held.turn.scale
        held.turn = held.turn.other
        return out

    step = compile(step)

    def changed(x):
        calls[0] += 1
        if calls[0] in (16, 17):
            Mode.A.scale, Mode.B.scale = 5.0 + calls[0], 9.0
        return step(x)

    changed.counts = lambda: step.counts
    return changed


@case(24, {14: {"scales": [1.0, 9.0, 3.0]}})
def an_index(compile, held):
    held.turn, held.scales = 0, [1.0, 2.0, 3.0]

    def step(x):
        out = x * held.scales[held.turn]
        held.turn = (held.turn + 1) % 3
        return out

    return compile(step)


@case(24)
def an_index_in_a_dict(compile, held):
    state, scales = {"turn": 0}, (1.0, 2.0, 3.0)
    held.state = state

    def step(x):
        out = x * scales[state["turn"]]
        state["turn"] = (state["turn"] + 1) % 3
        return out

    return compile(step)


@case(0)
def too_many_states(compile, held):
    held.turn = 0

    def step(x):
        out = x * len(range(held.turn))
        held.turn = held.turn + 1
        return out

    return compile(step)


@case(0)
def a_word_that_grows(compile, held):
    held.turn = ""

    def step(x):
        held.turn += "a"
        return x * len(held.turn)

    return compile(step)


@case(10, {10: {"mode": 1}, 24: {"mode": 2}})
def a_state_that_grows_later(compile, held):
    held.turn, held.mode = "a", 0

    def step(x):
        if held.mode == 0:
            held.turn = "b" if held.turn == "a" else "a"
        elif held.mode == 1:
            held.turn = held.turn + "c"
        else:
            held.turn = [len(held.turn)]
        return x * 2

    return compile(step)


@case(4, {10: {"mode": 1}})
def a_tensor_and_later_a_list(compile, held):
    held.turn, held.mode = None, 0

    def step(x):
        held.turn = [held.mode] if held.mode else (x * 3).detach()
        held.mode += held.mode > 0
        return x * 2

    return compile(step)


@case(30, {n: {"hidden": None} for n in range(4, 40, 5)})
def a_tensor_or_none(compile, held):
    held.hidden = None

    def step(x):
        before = torch.zeros_like(x) if held.hidden is None else held.hidden
        held.hidden = (before * 0.5 + x).detach()
        return held.hidden * 1

    return compile(step)


@case(30)
def a_tensor_and_at_times_none(compile, held):
    held.hidden, held.calls = None, 0

    def step(x):
        before = torch.zeros_like(x) if held.hidden is None else held.hidden
        after = (before * 0.5 + x).detach()
        held.calls += 1
        held.hidden = None if held.calls % 4 == 0 else after
        return after * 1

    return compile(step)


@case(0)
def a_number_that_is_read_or_none(compile, held):
    held.last = None

    def step(x):
        held.last = x.sum().item() if held.last is None else None
        return x * 2

    return compile(step)


@case(30, {12: {"best": 1e9}})
def an_answer_by_a_number_that_is_read(compile, held):
    held.best, held.is_better = 1e9, False

    def step(x):
        value = (-x.sum()).item()
        held.is_better = value < held.best
        if held.is_better:
            held.best = value
        return x * 2

    return compile(step)


@case(30)
def a_word_by_a_count(compile, held):
    held.calls, held.word = 0, ""

    def step(x):
        held.calls += 1
        held.word = "even" if held.calls % 2 == 0 else "odd"
        return x * 2

    return compile(step)


@case(26, {12: {"warm": True, "calls": 0}})
def a_flag_that_ends_a_phase(compile, held):
    held.calls, held.warm = 0, True

    def step(x):
        held.calls += 1
        if held.calls >= 5:
            held.warm = False
        return x * (1 if held.warm else 2)

    return compile(step)


@case(28, {n: {"first": True} for n in range(6, 40, 6)})
def a_first_call_of_a_few(compile, held):
    held.first, held.log = True, []

    def step(x):
        if held.first:
            held.log.append(1.0)
            held.first = False
            return x * 9
        return x * 2

    return compile(step)


@case(30)
def a_float_or_none(compile, held):
    held.last = None

    def step(x):
        out = x if held.last is None else x * held.last
        held.last = 2.0 if held.last is None else None
        return out

    return compile(step)


TURN = "d"


@case(30)
def a_global(compile, held):
    global TURN
    TURN = "d"

    def step(x):
        global TURN
        TURN = "g" if TURN == "d" else "d"
        return x * 2 if TURN == "d" else x * 3

    return compile(step)


@case(28)
def two_steps_with_one_state(compile, held):
    held.turn, calls = 0, [0]

    def one(x):
        out = x * 2 if held.turn != "b" else x * 7
        held.turn = "a"
        return out

    def other(x):
        out = x * 3 if held.turn == "a" else x * 5
        held.turn = "b"
        return out

    one, other = compile(one), compile(other)

    def step(x):
        calls[0] += 1
        return one(x) if calls[0] % 3 else other(x)

    step.counts = lambda: (one.counts[0] + other.counts[0],)
    return step


def shown(held):
    return {n: x.tolist() if isinstance(x, torch.Tensor) else repr(x) for n, x in vars(held).items()}


@pytest.mark.parametrize("name", CASES)
def test_states(name):
    make, least, changes = CASES[name]

    def play(compile):
        held = Held()
        step, outs = make(compile, held), []
        for i in range(40):
            vars(held).update(changes.get(i, {}))
            out = step(torch.full((3,), 1.0 + i / 10, device="ltc"))
            outs.append((out.tolist(), shown(held)))
        return outs, step

    expected, _ = play(lambda f: f)
    outs, step = play(torch_ltc.compile)
    for i, (one, other) in enumerate(zip(outs, expected, strict=True)):
        assert one == other, i
    counts = step.counts() if callable(step.counts) else step.counts
    assert counts[0] >= least, step.explain()
    assert least or step.refusal.startswith(("it changes", "it puts a float in the place of")), step.explain()


def test_places_with_many_values_are_watched_again():
    places, held = _left_places.LeftPlaces(), {"turn": "a"}
    places.add([(held, "turn")])
    keys = set()
    for i in range(20):
        held["turn"] = f"state {i % _left_places._MAX_STATES}"
        found, key = places.find(())
        assert [f.value for f in found] == [held["turn"]]
        keys.add(key)
    assert len(keys) == _left_places._MAX_STATES
    held["turn"] = "one more"
    assert not places.may_change(types.SimpleNamespace(), "turn", torch.ones(2), None)
    assert places.may_change(held, "turn", "one", "other")
    found, key = places.find(())
    assert not found and key not in keys
    assert not places.may_change(held, "turn", "one", "other")
    held["turn"] = torch.ones(2, device="ltc")
    assert [f.value is held["turn"] for f in places.find(())[0]] == [True]


@pytest.mark.parametrize("values", [(0.0, -0.0), (1, True), (1, 1.0), ("a", None), (float("nan"), -float("nan"))])
def test_states_that_only_look_alike(values):
    places, held = _left_places.LeftPlaces(), {}
    places.add([(held, "turn")])
    keys = []
    for value in values:
        held["turn"] = value
        keys.append(places.find(())[1])
    assert keys[0] != keys[1]
