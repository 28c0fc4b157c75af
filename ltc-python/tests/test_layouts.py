"""Results have the CPU's strides, whatever the layout of the input."""

import math

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


def _laid_out(dtype):
    """CPU tensors of one dtype whose strides say something, among them strides of sizes of 1."""
    new = lambda *s: (torch.arange(1, 1 + math.prod(s)).reshape(s) % 5 + 1).to(dtype)
    dense = [new(4, 4), new(4, 4).t(), new(4, 6, 1, 4), new(6, 1), new(1, 4, 4).transpose(0, 2)]
    parts = [
        new(4, 4).unfold(0, 1, 1).diagonal(),
        new(8, 8).t()[::2, ::2],
        new(4, 4)[:, 1:2],
        new(4, 4)[1:2].t(),
        new(6, 1)[::2],
    ]
    channels = new(2, 1, 4, 5).to(memory_format=torch.channels_last)[:, :, ::2]
    return [*dense, *parts, channels, new(4, 1).expand(4, 4), new(1, 4).expand(4, 4), new(4, 1, 4).transpose(0, 2)[::2]]


def _moved(x):
    """The same strides on the device."""
    elements = x.untyped_storage().nbytes() // x.element_size()
    return x.as_strided((elements,), (1,), 0).to("ltc").as_strided(x.shape, x.stride(), x.storage_offset())


@pytest.mark.parametrize("first", [torch.int64, torch.bool, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("second", [torch.uint8, torch.float32, torch.float64], ids=str)
def test_strides_over_operands_that_are_cast_are_the_cpus(first, second):
    calls = [
        torch.add,
        torch.div,
        torch.lt,
        torch.pow,
        torch.maximum,
        torch.atan2,
        lambda x, y: torch.exp(x),
        lambda x, y: x + 0.5,
    ]
    for x in _laid_out(first):
        for y in _laid_out(second):
            try:
                torch.broadcast_shapes(x.shape, y.shape)
            except RuntimeError:
                continue
            for call in calls:
                expected, got = call(x, y), call(_moved(x), _moved(y))
                assert (got.shape, got.stride(), got.dtype) == (expected.shape, expected.stride(), expected.dtype), (
                    x.stride(),
                    y.stride(),
                )


@pytest.mark.parametrize("start", [(0,), (3,), (33, 9)], ids=str)
def test_an_output_that_is_resized_has_the_strides_its_kernel_gives_it(start):
    x, out = torch.arange(297).reshape(33, 9).t(), torch.ones(start)
    expected, got = torch.add(x, 1, out=out.clone()), torch.add(_moved(x), 1, out=out.to("ltc"))
    assert got.stride() == expected.stride() and torch.equal(got.cpu(), expected)


def test_the_data_of_a_view_whose_base_was_written_is_set():
    base = torch.randn(2, 4, device="ltc", requires_grad=True).sin()
    view = base.chunk(2, -1)[-1]
    base.view(-1)[0:1].fill_(7)
    view.data = torch.ones(3, device="ltc")
    assert view.data.tolist() == [1, 1, 1]
