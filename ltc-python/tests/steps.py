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
