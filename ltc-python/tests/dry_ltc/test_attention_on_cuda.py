"""`scaled_dot_product_attention` on a GPU is the fused kernel that eager CUDA would take there."""

import copy

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

GPU = "ltc:1"
CUDNN, FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
HALVES = [torch.bfloat16, torch.float16]
KINDS = [(FLASH, half) for half in HALVES] + [(CUDNN, half) for half in HALVES]
KINDS += [(EFFICIENT, dtype) for dtype in [*HALVES, torch.float32]]


def inputs(device, dtype, rows=16, keys=None, heads=4, few=None, size=8, grad=True):
    """Queries of `rows`, keys and values of `keys`, of `few` heads."""
    g = torch.Generator().manual_seed(0)
    shapes = [(2, heads, rows, size)] + [(2, few or heads, keys or rows, size)] * 2
    return [torch.randn(s, generator=g).to(dtype).to(device).requires_grad_(grad) for s in shapes]


def kind(out):
    """The fused kernel that made this, if one did."""
    text = torch_ltc.debug.dump_ir([out], "text")
    found = [k for k in (FLASH, EFFICIENT, CUDNN) if f"ltc_cuda::attention({k.value})" in text]
    return found, text


def computed(device, backend, make, **call):
    made = make(device)
    mask = call.pop("mask", None)
    mask = mask if mask is None else mask.detach().to(device).requires_grad_(mask.requires_grad)
    with sdpa_kernel(backend):
        out = attention(*made, mask, **call)
    said = torch_ltc.debug.dump_ir([out], "text") if device == GPU else ""
    grads = made if mask is None or not mask.requires_grad else [*made, mask]
    (out.float() * torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(device)).sum().backward()
    results = [out.detach(), *(t.grad for t in grads)]
    strides = [t.stride() for t in results]
    return said, [t.cpu() for t in results], strides


def compare(backend, dtype, sizes=(), close=None, **call):
    def make(device):
        return inputs(device, dtype, **dict(sizes))

    said, got, _ = computed(GPU, backend, make, **call)
    assert "ltc_cuda::attention" in said, said
    _, want, _ = computed("cpu", MATH, make, **call)
    rtol = close or (1e-5 if dtype == torch.float32 else 2e-2)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        torch.testing.assert_close(g, w, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("backend", "dtype"), KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_the_cpus(backend, dtype, causal):
    compare(backend, dtype, is_causal=causal)


@pytest.mark.parametrize(("backend", "dtype"), [(FLASH, torch.bfloat16), (CUDNN, torch.bfloat16), (EFFICIENT, torch.float32)])
@pytest.mark.parametrize(
    "sizes",
    [
        {"rows": 24, "keys": 40},
        {"few": 2},
        {"size": 12},
        {"rows": 1, "keys": 7},
        {"heads": 1, "rows": 33},
    ],
    ids=str,
)
def test_sizes(backend, dtype, sizes):
    if (backend == CUDNN and "size" in sizes) or (backend == EFFICIENT and "few" in sizes):
        pytest.skip("libtorch takes another kernel")
    compare(backend, dtype, sizes.items(), scale=0.25, enable_gqa="few" in sizes)
