"""What tests of compiled steps share."""

import types

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


def seen(*found):
    """Copies of tensors, and what is no tensor."""
    return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in found]


def outcome(fn):
    """What it returns, or the class of what it raises."""
    try:
        return fn()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__
