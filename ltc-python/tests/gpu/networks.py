"""Programs that run on eager `cuda`, in a process of their own (`python networks.py FILE` writes what they give), and
on `ltc`."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent))
from small_networks import train


def attended(x, dtype, **call):
    """Attention and its gradients."""
    leaves = [(x.view(1, 8, -1, 32) * scale).to(dtype).requires_grad_() for scale in (1, 0.5, 2)]
    out = nn.functional.scaled_dot_product_attention(*leaves, **call)
    return [out.detach(), *torch.autograd.grad(out, leaves, out.detach())]


def with_gradient(call, x):
    """A call and its gradient."""
    x = x.requires_grad_()
    y = call(x)
    return [y.detach(), *torch.autograd.grad(y, x, y.detach())]


CALLS = {
    "pointwise": lambda x: [nn.functional.silu(x * 1.5 + 0.25).tanh(), (x.exp() + 1).log() * x.sin(), x.half() * 2],
    "rows": lambda x: [torch.softmax(x, 1), nn.functional.layer_norm(x, (x.shape[1],)), x.log_softmax(1).amax(1)],
    "columns": lambda x: [x.sum(0), (x - x.mean(0)).square().mean(0), x.amax(0)],
    "long": lambda x: [x.flatten().exp().sum(), x.square().mean()],
    "products": lambda x: [x @ x.t(), nn.functional.linear(x, x[:7])],
    "written": lambda x: [x.clone().add_(1).t().mul_(2), x[:, ::3].clone().relu_()],
    "logsigmoid": lambda x: with_gradient(nn.functional.logsigmoid, x),
    "attention": lambda x: [nn.functional.scaled_dot_product_attention(*[x.view(1, 8, -1, 32)] * 3, is_causal=True)],
    "attention in bf16": lambda x: [
        nn.functional.scaled_dot_product_attention(*[x.view(1, 8, -1, 32).bfloat16()] * 3, is_causal=True)
    ],
    "gradients of attention": lambda x: attended(x, torch.float32, is_causal=True),
    "gradients of attention in bf16": lambda x: attended(x, torch.bfloat16, is_causal=True),
    "gradients of masked attention": lambda x: attended(
        x, torch.bfloat16, attn_mask=torch.ones(192, 192, dtype=torch.bool, device=x.device).tril(9)
    ),
}


def called(name, device):
    """What a call gives, the same numbers on each device."""
    # Neighbours have little to do with each other, so that a sum is not what is left of large ones.
    x = (torch.arange(512 * 96).reshape(512, 96) * 12.9898).sin().to(device)
    return CALLS[name](x)


#: Of those there are; recurrent layers are made of cells on `ltc`, and are cuDNN's on `cuda`.
NETWORKS = ["perceptron", "convolutional", "attention"]


def trained(name, device, compiled=False, steps=20):
    """The losses of some steps, and how many of them were replayed and recorded."""
    losses, _, call = train(name, device, compiled, steps, width=8)
    return losses, getattr(call, "counts", None)


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
