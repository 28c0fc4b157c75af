"""`scaled_dot_product_attention` takes the kernel that the CPU takes."""

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch.nn.attention import SDPBackend, sdpa_kernel

FUSED = "_scaled_dot_product_flash_attention_for_cpu"


def inputs(device):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, 16, 8, generator=generator).to(device).requires_grad_() for _ in range(3)]


def mask_of(kind, device):
    mask = torch.ones(16, 16, dtype=torch.bool).tril().to(device)
    return {"none": None, "bool": mask, "float": torch.zeros(16, 16, device=device).masked_fill(~mask, -1e4)}[kind]


@pytest.mark.parametrize(("kind", "causal"), [("none", False), ("none", True), ("bool", False), ("float", False)])
def test_values_and_gradients_are_the_cpus(kind, causal):
    results = {}
    for device in ("cpu", "ltc"):
        q, k, v = inputs(device)
        out = F.scaled_dot_product_attention(q, k, v, mask_of(kind, device), is_causal=causal)
        if device == "ltc":
            assert f"aten::{FUSED}" in torch_ltc.debug.dump_ir([out], "text")
        out.square().sum().backward()
        results[device] = [t.detach().cpu() for t in (out, q.grad, k.grad, v.grad)]
    for expected, got in zip(results["cpu"], results["ltc"]):
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)


def test_what_the_cpu_computes_step_by_step_is_recorded_so():
    q, k, v = inputs("ltc")
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(q, k, v)
    assert FUSED not in torch_ltc.debug.dump_ir([out], "text")
    dropped = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert FUSED not in torch_ltc.debug.dump_ir([dropped], "text")
