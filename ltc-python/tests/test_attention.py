"""`scaled_dot_product_attention` takes the kernel that the CPU takes."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
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


def test_tracing_sees_no_real_tensors():
    with FakeTensorMode():
        q = torch.empty(1, 2, 4, 8, device="ltc")
        assert F.scaled_dot_product_attention(q, q, q).shape == q.shape
    q = torch.randn(1, 2, 4, 8).to("ltc")
    traced = make_fx(lambda q: F.scaled_dot_product_attention(q, q, q), tracing_mode="fake")(q)
    torch.testing.assert_close(traced(q).cpu(), F.scaled_dot_product_attention(q, q, q).cpu())


class Attends(nn.Module):
    def forward(self, q):
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def test_exported_with_lengths_that_vary():
    q = torch.randn(2, 2, 6, 8).to("ltc")
    shapes = {"q": {2: torch.export.Dim("length", min=2, max=64)}}
    exported = torch.export.export(Attends(), (q,), dynamic_shapes=shapes).module()
    for length in (6, 9):
        q = torch.randn(2, 2, length, 8)
        torch.testing.assert_close(exported(q.to("ltc")).cpu(), Attends()(q))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "ltc"])
def test_models_with_attention_compile(backend):
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    lazy = copy.deepcopy(layer).to("ltc")
    compiled = torch.compile(lazy, backend=backend)
    for length in (5, 5, 7, 9):
        x = torch.randn(2, length, 16)
        expected, got = layer(x), compiled(x.to("ltc"))
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)
        expected.square().sum().backward()
        got.square().sum().backward()
    for (name, parameter), ours in zip(layer.named_parameters(), lazy.parameters()):
        torch.testing.assert_close(ours.grad.cpu(), parameter.grad, rtol=1e-4, atol=1e-4, msg=name)


def test_a_kernel_that_was_asked_for_is_taken_by_what_is_compiled_too():
    def steps(q):
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, q, q)

    q = torch.randn(1, 2, 4, 8).to("ltc")
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(steps, backend="ltc")(q).cpu(), steps(q).cpu())
