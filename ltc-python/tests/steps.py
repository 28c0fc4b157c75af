"""What tests of compiled steps share."""

import types
from collections import deque

import numpy
import torch
import torch_ltc

X = torch.tensor([1.0, 2.0, 3.0])


def agree(make, changes, least=1, calls=5):
    """Runs the same on both devices: some calls, a change, some calls, ...; returns the step on ltc."""
    outs = {}
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        world = types.SimpleNamespace(device=device)
        step = make(world)
        call = torch_ltc.compile(step) if device == "ltc" else step
        outs[device] = []
        for change in (None, *changes):
            if change is not None:
                change(world)
            for _ in range(calls):
                out = call(X.to(device))
                outs[device] += [x.detach().cpu().double() for x in (out if isinstance(out, tuple) else (out,))]
    for a, b in zip(outs["cpu"], outs["ltc"], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert call.counts[0] >= least, call.explain()
    return call


class Holder:
    """Keeps a value where the step finds it."""

    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)


def both(run, **how):
    """What a function of a device and of a way to compile says on both devices: the same; returns what was compiled."""
    expected = run("cpu", lambda fn: fn, **how)
    made = []
    found = run("ltc", lambda fn: made.append(torch_ltc.compile(fn)) or made[-1], **how)
    assert len(expected) == len(found)
    for i, (a, b) in enumerate(zip(expected, found)):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b.cpu(), rtol=1e-4, atol=1e-6, msg=lambda m: f"{i}: {m}")
        else:
            assert a == b, (i, expected, found)
    return made[0]


def recorded_and_compiled(run):
    """What a program sees where its step is recorded each time, and where it compiles it by what it is given: the same.
    Returns what was compiled last."""
    compiled = []

    def compile(step):
        compiled.append(torch_ltc.compile(step))
        return compiled[-1]

    found, expected = run(compile), run(lambda step: step)
    assert found == expected, compiled[-1].explain()
    return compiled[-1]


def seen(*found):
    """Copies of tensors, and what is no tensor."""
    return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in found]


def outcome(fn):
    """What it returns, or the class of what it raises."""
    try:
        return fn()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__


class Held:
    """An object with attributes, in which a step keeps its state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def shown(x):
    """What can be seen of a value: its classes, structure, and numbers."""
    if isinstance(x, torch.Tensor):
        what = (x.device.type, x.dtype, x.stride(), x.requires_grad, x.is_leaf, x.is_inference())
        return ("tensor", *what, x.tolist())
    if isinstance(x, numpy.ndarray):
        return ("array", x.dtype.name, x.strides, x.tolist())
    if isinstance(x, (list, tuple, deque)):
        return (type(x).__name__, *map(shown, x))
    if isinstance(x, Held):
        return (type(x).__name__, shown(vars(x)))
    if isinstance(x, dict):
        return (type(x).__name__, *((key, shown(value)) for key, value in x.items()))
    return (type(x).__name__, repr(x)) if not isinstance(x, (torch.nn.Module, types.FunctionType)) else type(x).__name__


def compare_with_state(make, least, change=None, calls=30):
    """Runs a step recorded and compiled, and compares what it returns and all that can be seen of its state after each
    call. `make` is given a :class:`Held` for the state and returns the step; `change` is called with the state after
    every seventh call. At least `least` calls have to be replayed, or none if it is `None`."""
    recorded, compiled = Held(), Held()
    plain, step = make(recorded), torch_ltc.compile(make(compiled))
    for i in range(calls):
        x = torch.tensor([1.0 + i, 2.0, -2.0 * i])
        mine, theirs = step(x.to("ltc")), plain(x.to("ltc"))
        assert shown(mine) == shown(theirs), i
        for held in (compiled, recorded):
            held.now = [f() for k, f in vars(held).items() if k == "latest"]
        assert shown(vars(compiled)) == shown(vars(recorded)), i
        nets = [vars(held.net) for held in (compiled, recorded) if "net" in vars(held)]
        assert not nets or shown(nets[0]) == shown(nets[1]), i
        if change and i % 7 == 6:
            change(compiled)
            change(recorded)
    replayed = step.counts[0]
    assert replayed == 0 if least is None else replayed >= least, step.explain()
    return step
