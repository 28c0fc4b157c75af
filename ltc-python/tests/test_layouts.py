"""Results have the CPU's strides, whatever the layout of the input."""

import pytest
import torch
import torch.nn.functional as F
import torch_ltc  # noqa: F401

OPERATORS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "batch_norm": lambda t: F.batch_norm(t, None, None, training=True),
    "group_norm": lambda t: F.group_norm(t, 4),
    "instance_norm": F.instance_norm,
    "max_pool2d": lambda t: F.max_pool2d(t, 2),
    "avg_pool2d": lambda t: F.avg_pool2d(t, 2),
    "adaptive_avg_pool2d": lambda t: F.adaptive_avg_pool2d(t, 3),
    "adaptive_max_pool2d": lambda t: F.adaptive_max_pool2d(t, 3),
    "bilinear": lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"),
    "nearest": lambda t: F.interpolate(t, scale_factor=0.5),
    "reflect": lambda t: F.pad(t, (1, 1, 1, 1), "reflect"),
    "replicate": lambda t: F.pad(t, (1, 1, 1, 1), "replicate"),
    "pixel_shuffle": lambda t: F.pixel_shuffle(t, 2),
    "pixel_unshuffle": lambda t: F.pixel_unshuffle(t, 2),
    "softmax": lambda t: t.softmax(1),
    "roll": lambda t: t.roll(1, 2),
    "flip": lambda t: t.flip(1),
    "glu": lambda t: F.glu(t, 1),
    "conv2d": lambda t: F.conv2d(t, torch.linspace(-1, 1, 5 * 16 * 9).view(5, 16, 3, 3).to(t.device)),
    "var": lambda t: t.var((2, 3), keepdim=True),
}


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted"])
@pytest.mark.parametrize("name", OPERATORS)
def test_strides(name, layout):
    torch.manual_seed(0)
    x = torch.randn(2, 16, 8, 8)
    x = {
        "contiguous": x,
        "channels_last": x.to(memory_format=torch.channels_last),
        "permuted": torch.randn(8, 2, 8, 16).permute(1, 3, 0, 2),
    }[layout]
    results = []
    for device in ("cpu", "ltc"):
        t = x.detach().to(device).requires_grad_()
        assert t.stride() == x.stride()
        y = OPERATORS[name](t)
        y.backward(torch.ones_like(y))
        results.append((y.detach(), t.grad))
    for cpu, ltc in zip(*results):
        assert ltc.stride() == cpu.stride()
        torch.testing.assert_close(ltc.cpu(), cpu)
