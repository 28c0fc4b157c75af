"""Shared by the citizen tests: comparisons and a small model."""

import torch
from torch import nn


def same(ltc, cpu):
    """Bitwise equal, NaN included."""
    torch.testing.assert_close(ltc.detach().cpu(), cpu.detach().cpu(), rtol=0, atol=0, equal_nan=True)


def close(ltc, cpu, rtol=1e-5):
    torch.testing.assert_close(ltc.detach().cpu(), cpu.detach().cpu(), rtol=rtol, atol=1e-6)


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def batch():
    g = torch.Generator().manual_seed(9)
    return torch.randn(5, 4, generator=g), torch.randint(0, 3, (5,), generator=g)
