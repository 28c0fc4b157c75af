"""Programs that run on eager `cuda`, in a process of their own (`python networks.py FILE` writes what they give), and
on `ltc`."""

import sys

import torch
from torch import nn


def _mark(device):
    if device.startswith("ltc"):
        import torch_ltc

        torch_ltc.mark_step()


CALLS = {
    "pointwise": lambda x: [nn.functional.silu(x * 1.5 + 0.25).tanh(), (x.exp() + 1).log() * x.sin(), x.half() * 2],
    "rows": lambda x: [torch.softmax(x, 1), nn.functional.layer_norm(x, (x.shape[1],)), x.log_softmax(1).amax(1)],
    "columns": lambda x: [x.sum(0), (x - x.mean(0)).square().mean(0), x.amax(0)],
    "long": lambda x: [x.flatten().exp().sum(), x.square().mean()],
    "products": lambda x: [x @ x.t(), nn.functional.linear(x, x[:7])],
    "written": lambda x: [x.clone().add_(1).t().mul_(2), x[:, ::3].clone().relu_()],
    "attention": lambda x: [nn.functional.scaled_dot_product_attention(*[x.view(1, 8, -1, 32)] * 3, is_causal=True)],
}


def called(name, device):
    """What a call gives, the same numbers on each device."""
    x = torch.linspace(-3, 3, 512 * 96).reshape(512, 96).sin().to(device)
    return CALLS[name](x)


def _perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 11))


def _convolutional():
    layers = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 11)
    return nn.Sequential(*layers)


class _Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 11)

    def forward(self, x):
        return self.head(self.layer(self.embed(x[:, 0])).mean(1))


NETWORKS = {"perceptron": _perceptron, "convolutional": _convolutional, "transformer": _Transformer}


def trained(name, device, compiled=False, steps=20):
    """The losses of some steps, and how many of them were replayed and recorded."""
    torch.manual_seed(0)
    net = NETWORKS[name]().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.linspace(-1, 1, 32 * 64).reshape(32, 1, 8, 8).mul(7).sin().to(device)
    y = (torch.arange(32) % 11).to(device)

    def step(x, y):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    call = step
    if compiled:
        import torch_ltc

        call = torch_ltc.compile(step)
    losses = []
    for _ in range(steps):
        losses.append(call(x, y))
        _mark(device)
    return torch.stack([loss.cpu() for loss in losses]), getattr(call, "counts", None)


def drawn(device):
    """Draws from a generator of the device's, on the CPU."""
    g = torch.Generator(device=device).manual_seed(11)
    draws = [
        torch.rand(1000, device=device, generator=g),
        torch.randn(1001, device=device, generator=g),
        torch.randint(0, 99, (50,), device=device, generator=g),
        torch.empty(300, device=device).bernoulli_(0.3, generator=g),
        torch.randperm(100, device=device, generator=g),
    ]
    return [draw.cpu() for draw in draws]


if __name__ == "__main__":
    calls = {name: [t.cpu() for t in called(name, "cuda")] for name in CALLS}
    losses = {name: trained(name, "cuda")[0] for name in NETWORKS}
    torch.save({"calls": calls, "losses": losses, "draws": drawn("cuda")}, sys.argv[1])
