"""Compiled steps whose code on the host runs within calls of torch: hooks that `backward` runs, functions of autograd,
operators of their own, scripted functions. What it does to CPU tensors is done by each replay."""

import types

import pytest
import torch
import torch_ltc
from torch.utils.checkpoint import checkpoint

CALLS = 8


@torch.library.custom_op("ltc_tests::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    WORLD.count.add_(1)
    return x * WORLD.factor.item()


@torch.jit.script
def scripted(x: torch.Tensor, count: torch.Tensor, factor: torch.Tensor):
    count.add_(1)
    return x * factor.item()


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        WORLD.count.add_(1)
        return x * WORLD.factor.item()

    @staticmethod
    def backward(ctx, grad):
        WORLD.count.add_(10)
        return grad * WORLD.factor.item()


#: The CPU tensors of the step that runs.
WORLD = types.SimpleNamespace(count=torch.zeros(()), factor=torch.tensor(2.0))


def counts(grad):
    WORLD.count.add_(1)
    return grad * WORLD.factor.item()


def gradient_of(compute, x):
    x = x.clone().requires_grad_()
    compute(x).sum().backward()
    return x.grad


def hooked(x):
    x = x.clone().requires_grad_()
    x.register_hook(counts)
    return torch.autograd.grad((x * 3).sum(), x)[0]


def saved(x):
    def pack(t):
        WORLD.count.add_(1)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t * WORLD.factor.item()):
        return gradient_of(lambda y: y * y, x)


def disabled(x):
    with torch._C.DisableTorchFunction():
        WORLD.count.add_(1)
    return x * 2


def scale(p):
    p.grad.mul_(WORLD.factor.item())


def accumulated(x):
    p = torch.ones_like(x).requires_grad_()
    p.register_post_accumulate_grad_hook(scale)
    (p * x).sum().backward()
    return p.grad


#: What a step does, and how many of its calls have to be replayed.
WITHIN = {
    "hook": (hooked, 3),
    "hook of backward": (lambda x: gradient_of(lambda y: (y.register_hook(counts), y * 3)[1], x), 3),
    "hook of an accumulated gradient": (accumulated, 3),
    "function": (lambda x: gradient_of(Counted.apply, x), 3),
    "checkpoint": (lambda x: gradient_of(lambda y: checkpoint(lambda z: counts(z) ** 2, y, use_reentrant=False), x), 3),
    "checkpoint, reentrant": (
        lambda x: gradient_of(lambda y: checkpoint(lambda z: counts(z) ** 2, y, use_reentrant=True), x),
        3,
    ),
    "operator": (lambda x: counted(x), 3),
    "saved tensors": (saved, 3),
    "scripted": (lambda x: scripted(x, WORLD.count, WORLD.factor), 0),
    "disabled": (disabled, 0),
}


def outcomes(step, device):
    WORLD.count, WORLD.factor = torch.zeros(()), torch.tensor(2.0)
    found = []
    for i in range(CALLS):
        if i == CALLS - 2:
            WORLD.factor.fill_(5.0)
        found.append((step(torch.tensor([1.0, 2.0], device=device)).tolist(), WORLD.count.item()))
    return found


@pytest.mark.parametrize("name", WITHIN)
def test_what_runs_within_a_call_is_replayed_or_recorded(name):
    body, least = WITHIN[name]
    step = torch_ltc.compile(lambda x: body(x))
    assert outcomes(step, "ltc") == outcomes(body, "cpu")
    assert step.counts[0] >= least, step.explain()
    if not least:
        assert "scripted function" in step.refusal or "DisableTorchFunction" in step.refusal, step.refusal
