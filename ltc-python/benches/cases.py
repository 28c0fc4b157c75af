"""What is measured: the examples' models, an MLP, a PINN, and chains of operators.

A case is `build(device, prepare)`: it returns a function that runs one step and returns a tensor that depends on all of
it.
"""

import importlib
import sys
from pathlib import Path

import hub
import kernels
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, foreach=False)


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=False)


def mlp(device, prepare, optimiser=_adam, batch=32, width=64):
    """Three small layers, so recording is most of the step."""
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    ).to(device)
    forward = prepare(model)
    opt = optimiser(model.parameters())
    x, y = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)

    def step():
        opt.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def pinn(device, prepare, points=256, width=32):
    """The heat equation u_t = u_xx by a network of tanh layers: second derivatives inside the step."""
    model = nn.Sequential(
        nn.Linear(2, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, 1),
    ).to(device)
    forward = prepare(model)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, t = (torch.rand(points, 1).to(device).requires_grad_() for _ in range(2))
    start = torch.rand(points, 1).to(device)

    def step():
        opt.zero_grad()
        u = forward(torch.cat([x, t], 1))
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (uxx,) = torch.autograd.grad(ux.sum(), x, create_graph=True)
        at_start = forward(torch.cat([start, torch.zeros_like(start)], 1))
        loss = (ut - uxx).square().mean() + (at_start - torch.sin(torch.pi * start)).square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def filtered(device, prepare, batch=64):
    """Outliers are masked away and classes counted before a tiny network learns: little work between shapes that depend
    on data."""
    generator = torch.Generator().manual_seed(1)
    centres = 2 * torch.randn(5, 8, generator=generator)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)).to(device)
    forward = prepare(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    counts = torch.zeros(5, device=device)

    def step():
        labels = torch.randint(0, 5, (batch,), generator=generator)
        x, y = (centres[labels] + torch.randn(batch, 8, generator=generator)).to(device), labels.to(device)
        keep = x.norm(dim=1) < 7.0
        x, y = x[keep], y[keep]
        present, number = torch.unique(y, return_counts=True)
        counts.index_add_(0, present, number.float())
        losses = F.cross_entropy(forward(x), y, reduction="none")
        hard = torch.nonzero(losses.detach() > losses.detach().median()).squeeze(1)
        weights = 1 / counts[y[hard]].clamp(min=1)
        opt.zero_grad()
        loss = (losses[hard] * weights).sum() / weights.sum()
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def _chain(function, *shapes):
    def build(device, prepare):
        torch.manual_seed(0)
        inputs = [torch.rand(s).to(device) for s in shapes]
        call = prepare(function)
        return lambda: call(*inputs)

    return build


def _pointwise(x):
    for _ in range(10):
        x = x * 1.01 + 0.5
    return x


def _gelu_by_hand(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _normalise(x):
    y = x - x.mean(-1, keepdim=True)
    return y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def _linear_gelu(x, w, b):
    return F.gelu(x @ w + b)


CASES = {
    "mlp": mlp,
    "mlp, sgd": lambda device, prepare: mlp(device, prepare, _sgd),
    "pinn": pinn,
    "filtered, 64": filtered,
    **{f"20 pointwise, {n}": _chain(_pointwise, (n,)) for n in (16, 4096, 1_000_000)},
    **{f"tanh gelu by hand, {n}": _chain(_gelu_by_hand, (n,)) for n in (4096, 1_000_000)},
    "normalise rows, 512x512": _chain(_normalise, (512, 512)),
    "softmax, 512x512": _chain(lambda x: x.softmax(-1), (512, 512)),
    "linear gelu, 256": _chain(_linear_gelu, (256, 256), (256, 256), (256,)),
    "one add, 16": _chain(lambda x: x + x, (16,)),
    "one matmul, 512": _chain(torch.mm, (512, 512), (512, 512)),
}
MODELS = ("mnist", "gpt", "resnet", "lstm", "unet", "augment")


def names():
    """All cases that run unasked, models first."""
    return [*MODELS, *CASES]


def groups():
    """Cases that run where they, or all of their group, are asked for; those of `hub` need packages of their own."""
    return {"hub": hub.NAMES, "kernels": kernels.NAMES}


def build(name, device, prepare, compiled):
    """The step function of a case; `compiled` is what is done with the part of it that follows from its batch."""
    torch.manual_seed(0)
    for group in (hub, kernels):
        if name in group.NAMES:
            return group.build(name, torch.device(device), prepare, compiled)
    if name in MODELS:
        return importlib.import_module(name).build(torch.device(device), prepare, compiled)
    return compiled(CASES[name](torch.device(device), prepare))
