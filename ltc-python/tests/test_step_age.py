"""What is older than a compiled step, whatever the garbage collector does meanwhile."""

import contextlib
import functools
import gc
import random
import threading
import types

import pytest
import torch
import torch_ltc
from torch_ltc import _ltc

SHARED = types.SimpleNamespace(scale=2.0, parts=[{"shift": 1.0}])


@contextlib.contextmanager
def frozen():
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Thing:
    def __init__(self, inside=None):
        self.inside = inside


MAKERS = (
    lambda made: [],
    lambda made: {"a": made[-1] if made else []},
    lambda made: Thing(made[len(made) // 2] if made else None),
    lambda made: (made[-1] if made else [], 1),
    lambda made: {object()},
    lambda made: lambda: made,
    lambda made: torch.zeros(2),
    lambda made: (i for i in [made]),
    lambda made: type("Made", (), {}),
)


@pytest.mark.parametrize("seed", range(6))
def test_each_object_is_told_from_older_ones(seed):
    draw = random.Random(seed)
    was_enabled = gc.isenabled()
    gc.disable()
    before, after = [], []
    for _ in range(40):
        before.append(draw.choice(MAKERS)(before))
    older = _ltc.Older()
    gc.callbacks.append(older.announce)
    try:
        for _ in range(300):
            if draw.random() < 0.03:
                gc.collect(draw.randrange(3))
            if draw.random() < 0.3 and after:
                del after[draw.randrange(len(after))]
            if draw.random() < 0.05 and before:
                del before[draw.randrange(len(before))]
            after.append(draw.choice(MAKERS)(after))
            x = draw.choice(after)
            # Collections cease to track what holds nothing that may be part of a cycle.
            assert x not in older, (type(x), gc.is_tracked(x))
            y = draw.choice(before)
            assert (y in older) == gc.is_tracked(y), type(y)
        assert not older.is_lost()
    finally:
        gc.callbacks.remove(older.announce)
        if was_enabled:
            gc.enable()


def test_what_the_collector_loses_is_noticed():
    older = _ltc.Older()
    made = []
    assert made not in older
    older.announce()
    gc.freeze()
    try:
        assert made not in older
        assert not older.is_lost()
        other = Thing()
        gc.freeze()
        assert other not in older or older.is_lost()
        assert older.is_lost()
    finally:
        gc.unfreeze()


def watched(x):
    return x * SHARED.scale + SHARED.parts[0]["shift"]


def test_objects_kept_from_the_collector_are_watched():
    """`gc.freeze()` before the training loop, as servers do."""
    with frozen():
        step = torch_ltc.compile(watched)
        x = torch.ones(3, device="ltc")
        for _ in range(6):
            assert step(x).tolist() == [3.0] * 3
        assert step.counts[0] > 0
        SHARED.scale = 5.0
        try:
            assert step(x).tolist() == [6.0] * 3
            SHARED.parts[0]["shift"] = 2.0
            assert step(x).tolist() == [7.0] * 3
        finally:
            SHARED.scale, SHARED.parts[0]["shift"] = 2.0, 1.0


class Meter:
    def __init__(self):
        self.parts, self.last = {"scale": 2.0}, 0.0

    def __call__(self, x, scale):
        self.last = scale
        self.parts = {"scale": scale}
        return x * scale


def test_containers_and_numbers_that_objects_kept_from_the_collector_hold():
    meter = Meter()
    holder = Thing(meter.parts)
    with frozen():
        step = torch_ltc.compile(meter)
        x = torch.ones(3, device="ltc")
        for scale in (2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0):
            assert step(x, scale).tolist() == [scale] * 3
            assert type(meter.last) is float and meter.last == scale
            assert type(meter.parts["scale"]) is float and meter.parts == {"scale": scale}
            assert holder.inside == {"scale": 2.0}
        holder.inside = meter.parts
        assert step(x, 8.0).tolist() == [8.0] * 3
        assert holder.inside == {"scale": 7.0} and meter.parts == {"scale": 8.0}


def turn_off_and_on():
    gc.disable()
    gc.enable()


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("does", [gc.collect, gc.freeze, gc.unfreeze, gc.disable, gc.enable, turn_off_and_on])
def test_a_step_that_speaks_to_the_collector(does, is_on):
    def step(x):
        before = Thing([x * 2])
        does()
        after = Thing({"a": before, "b": SHARED})
        does()
        return after.inside["a"].inside[0] * after.inside["b"].scale

    compiled = torch_ltc.compile(step)
    changes = (does is gc.disable) == is_on if does in (gc.disable, gc.enable, turn_off_and_on) else False
    try:
        x = torch.ones(3, device="ltc")
        for _ in range(6):
            gc.enable() if is_on else gc.disable()
            assert compiled(x).tolist() == [4.0] * 3
            expected = does is not gc.disable if is_on or does in (gc.enable, turn_off_and_on) else False
            assert gc.isenabled() == expected
        refused = changes or does in (gc.freeze, gc.unfreeze) or (does is turn_off_and_on and not is_on)
        assert (compiled.counts[0] > 0) != refused, compiled.explain()
        SHARED.scale = 3.0
        assert compiled(x).tolist() == [6.0] * 3
    finally:
        SHARED.scale = 2.0
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("is_on", [True, False])
def test_a_step_that_asks_whether_the_collector_is_on(is_on):
    compiled = torch_ltc.compile(lambda x: x * (2.0 if gc.isenabled() else 3.0))
    try:
        gc.enable() if is_on else gc.disable()
        for _ in range(5):
            assert compiled(torch.ones(3, device="ltc")).tolist() == [2.0 if is_on else 3.0] * 3
            assert gc.isenabled() == is_on
    finally:
        gc.enable()


PLAIN_SETTINGS = {"scale": 2.0}


def of_shared_settings(x):
    return x * PLAIN_SETTINGS["scale"]


def test_a_dict_that_the_collector_comes_to_track_within_the_step():
    """It holds plain values between calls, and a container for a while within each."""

    def step(x):
        PLAIN_SETTINGS["parts"] = [x]
        out = of_shared_settings(x) + PLAIN_SETTINGS["parts"][0]
        del PLAIN_SETTINGS["parts"]
        return out

    compiled = torch_ltc.compile(step)
    x = torch.ones(3, device="ltc")
    try:
        for scale in (2.0, 2.0, 2.0, 2.0, 5.0, 5.0, 2.0):
            PLAIN_SETTINGS["scale"] = scale
            gc.collect()
            assert compiled(x).tolist() == [scale + 1] * 3
    finally:
        PLAIN_SETTINGS.clear()
        PLAIN_SETTINGS["scale"] = 2.0


def test_a_dict_that_is_tracked_when_it_is_looked_at():
    """The collector tracks it for the container that the step puts in first, and what is read of it is read later."""
    settings = {"scale": 2.0}

    def scale():
        return next(value for name, value in settings.items() if name == "scale")

    def step(x):
        settings["parts"] = [x]
        found = scale()
        settings["parts"] = None
        return x * found

    compiled = torch_ltc.compile(step)
    for i in range(10):
        if i == 6:
            settings["scale"] = 5.0
        gc.collect()
        assert not gc.is_tracked(settings)
        assert compiled(torch.ones(3, device="ltc")).tolist() == [settings["scale"]] * 3


def forever(settings):
    while True:
        yield settings


#: What holds the dict, and a step that finds it there.
HOLDERS = {
    "variable": (lambda settings: settings, lambda held: lambda x: (x, held)),
    "list": (lambda settings: [settings], lambda held: lambda x: (x, held[0])),
    "dict": (lambda settings: {"a": settings}, lambda held: lambda x: (x, held["a"])),
    "defaults": (lambda settings: settings, lambda held: lambda x, found=held: (x, found)),
    "keywords": (lambda settings: settings, lambda held: lambda x, *, found=held: (x, found)),
    "partial": (lambda settings: settings, lambda held: functools.partial(lambda found, x: (x, found), held)),
    "generator": (forever, lambda held: lambda x: (x, next(held))),
    "object": (lambda settings: types.SimpleNamespace(a=settings), lambda held: lambda x: (x, held.a)),
    "class": (lambda settings: type("Held", (), {"a": settings}), lambda held: lambda x: (x, held.a)),
    "function": (lambda settings: lambda: settings, lambda held: lambda x: (x, held())),
    "method": (lambda settings: {"a": settings}.get, lambda held: lambda x: (x, held("a"))),
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_dict_of_plain_values_that_is_returned_is_the_same_one(name, nested):
    settings = {"scale": 2.0}
    hold, make = HOLDERS[name]
    step = make(hold(settings))
    compiled = torch_ltc.compile((lambda x: (x * 2, {"n": step(x)[1]})) if nested else step)
    for _ in range(6):
        assert not gc.is_tracked(settings)
        found = compiled(torch.ones(3, device="ltc"))[1]
        while "n" in found:
            found = found["n"]
        assert found is settings


@pytest.mark.parametrize("makes", [dict, lambda: {"n": 1}, lambda: [{"n": 1.5}, {}], lambda: ({"a": {"b": 1}},)])
def test_dicts_of_plain_values_that_the_step_makes_are_made_anew(makes):
    compiled = torch_ltc.compile(lambda x: (x * 2, makes()))
    results = [compiled(torch.ones(3, device="ltc"))[1] for _ in range(6)]
    assert compiled.counts[0] > 0, compiled.explain()
    assert all(result == makes() for result in results)
    assert len({id(result) for result in results}) == 6
    kept = types.SimpleNamespace(last=None)

    def step(x):
        kept.last = makes()
        return x * 2, kept.last

    compiled = torch_ltc.compile(step)
    for _ in range(6):
        assert compiled(torch.ones(3, device="ltc"))[1] is kept.last


@pytest.mark.parametrize("does", [gc.collect, gc.freeze])
def test_another_thread_speaks_to_the_collector(does):
    ends = threading.Event()

    def speak():
        while not ends.wait(0.001):
            does()

    def step(x):
        made = [Thing({"scale": SHARED.scale}) for _ in range(50)]
        return x * made[-1].inside["scale"]

    thread = threading.Thread(target=speak)
    thread.start()
    try:
        x = torch.ones(3, device="ltc")
        for _ in range(4):
            compiled = torch_ltc.compile(step)
            for scale in (2.0, 2.0, 2.0, 2.0, 3.0, 2.0):
                SHARED.scale = scale
                assert compiled(x).tolist() == [scale] * 3
    finally:
        SHARED.scale = 2.0
        ends.set()
        thread.join()
        gc.unfreeze()
    compiled = torch_ltc.compile(step)
    for _ in range(5):
        compiled(x)
    assert compiled.counts[0] > 0
    assert not gc.callbacks or all("announce" not in repr(c) for c in gc.callbacks)
