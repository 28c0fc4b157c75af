"""`scaled_dot_product_attention` on a GPU is the fused kernel that eager CUDA would take there."""

import pytest
import torch
import torch_ltc
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

GPU = "ltc:1"
CUDNN, FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
HALVES = [torch.bfloat16, torch.float16]
KINDS = [(kind, half) for kind in (FLASH, CUDNN, EFFICIENT) for half in HALVES] + [(EFFICIENT, torch.float32)]
ONE_OF_EACH = [(FLASH, torch.bfloat16), (CUDNN, torch.bfloat16), (EFFICIENT, torch.float32)]


def inputs(device, dtype=torch.bfloat16, rows=16, keys=None, heads=4, few=None, size=8, grad=True):
    """Queries of `rows`, and keys and values of `keys`, which may have fewer heads."""
    g = torch.Generator().manual_seed(0)
    shapes = [(2, heads, rows, size)] + [(2, few or heads, keys or rows, size)] * 2
    return [torch.randn(s, generator=g).to(dtype).to(device).requires_grad_(grad) for s in shapes]


def recorded(out):
    """The fused kernel that a result is recorded as, if any."""
    text = torch_ltc.debug.dump_ir([out], "text")
    if "ltc_cuda::attention(" not in text:
        assert "softmax(" in text, text
        return MATH
    call = text[text.index("ltc_cuda::attention(") :].splitlines()[0]
    return next(kind for kind in (FLASH, EFFICIENT, CUDNN) if call.endswith(f"int {kind.value})"))


def computed(device, kind, made, mask=None, **call):
    """The result, and the gradients of all that has one, on the CPU."""
    mask = mask if mask is None else mask.detach().to(device).requires_grad_(mask.requires_grad)
    with sdpa_kernel(kind):
        out = attention(*made, mask, **call)
        assert device == "cpu" or recorded(out) == kind
    (out.float() * torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(device)).sum().backward()
    results = [out.detach(), *(t.grad for t in made), mask.grad if mask is not None else None]
    return [t.cpu() for t in results if t is not None]


def compare(kind, dtype, sizes=None, **call):
    """With the CPU's products and softmax."""
    sizes = sizes or {}
    got = computed(GPU, kind, inputs(GPU, dtype, **sizes), **call)
    want = computed("cpu", MATH, inputs("cpu", dtype, **sizes), **call)
    close = 1e-5 if dtype == torch.float32 else 2e-2
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        torch.testing.assert_close(g, w, rtol=close, atol=close)


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_the_cpus(kind, dtype, causal):
    compare(kind, dtype, is_causal=causal)


OTHER_SIZES = {
    "more keys": {"rows": 24, "keys": 40},
    "shared heads": {"few": 2},
    "padded heads": {"size": 12},
    "a row": {"rows": 1, "keys": 7},
}


@pytest.mark.parametrize(("kind", "dtype"), ONE_OF_EACH)
@pytest.mark.parametrize("sizes", OTHER_SIZES)
def test_other_sizes_and_a_scale(kind, dtype, sizes):
    if (kind, sizes) in [(CUDNN, "padded heads"), (EFFICIENT, "shared heads")]:
        pytest.skip("eager CUDA does not take this kernel there")
    compare(kind, dtype, OTHER_SIZES[sizes], scale=0.25, enable_gqa=sizes == "shared heads")


@pytest.mark.parametrize(("kind", "dtype"), [(EFFICIENT, torch.float32), (EFFICIENT, torch.float16), ONE_OF_EACH[1]])
@pytest.mark.parametrize("mask", ["bool", "float", "learnt", "one for each head"])
@pytest.mark.parametrize("keys", [16, 21])
def test_masks(kind, dtype, mask, keys):
    given = torch.ones(16, keys, dtype=torch.bool).tril(3)
    if mask == "float":
        given = torch.zeros(16, keys, dtype=dtype).masked_fill(~given, -1e4)
    elif mask != "bool":
        g = torch.Generator().manual_seed(1)
        heads = (1, 4) if mask == "one for each head" else ()
        given = torch.randn(*heads, 16, keys, generator=g).to(dtype).requires_grad_(mask == "learnt")
    if kind == CUDNN and mask == "learnt":
        pytest.skip("eager CUDA does not take this kernel there")
    compare(kind, dtype, {"keys": keys}, mask=given)


SWITCHES = {
    "all": [FLASH, CUDNN, EFFICIENT, MATH],
    "no cuDNN": [FLASH, EFFICIENT, MATH],
    "efficient": [EFFICIENT, MATH],
    "none": [MATH],
}


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("switches", SWITCHES)
def test_the_kernel_is_eager_cudas(dtype, grad, switches):
    taken = set()
    for size, masked in [(8, False), (8, True), (12, False), (3, False), (256, True), (300, False)]:
        made = inputs("cpu", dtype, size=size, grad=False)
        made += [torch.ones(16, 16, dtype=torch.bool)] if masked else []
        theirs, ours = ([t.to(d).requires_grad_(grad and t.is_floating_point()) for t in made] for d in ("cuda", GPU))
        with sdpa_kernel(SWITCHES[switches]):
            want = SDPBackend(torch._fused_sdp_choice(*theirs))
            assert recorded(attention(*ours)) == want
        taken.add(want)
    expected = {"all": CUDNN, "no cuDNN": FLASH, "efficient": EFFICIENT, "none": MATH}[switches]
    expected = {torch.float32: EFFICIENT if switches != "none" else MATH, torch.float64: MATH}.get(dtype, expected)
    assert expected in taken


def test_dropout_is_made_of_products_and_a_softmax():
    assert recorded(attention(*inputs(GPU), dropout_p=0.5)) == MATH


def lying(how, dtype, device):
    if how == "packed":
        x = torch.empty(2, 16, 96, dtype=dtype, device=device)
        return [t.unflatten(-1, (4, 8)).transpose(1, 2) for t in x.chunk(3, -1)]
    shape = (2, 4, 16, 8) if how == "heads first" else (2, 16, 4, 8)
    made = [torch.empty(shape, dtype=dtype, device=device) for _ in range(3)]
    return [t.transpose(1, 2) for t in made] if how == "rows first" else made


# cuDNN's cannot be asked without a driver.
@pytest.mark.parametrize(("kind", "dtype"), [ONE_OF_EACH[0], ONE_OF_EACH[2]])
@pytest.mark.parametrize("how", ["heads first", "rows first", "packed"])
def test_results_lie_as_eager_cudas(kind, dtype, how):
    with sdpa_kernel(kind):
        ours, theirs = (attention(*lying(how, dtype, device)) for device in (GPU, "cuda"))
    assert (ours.stride(), ours.dtype) == (theirs.stride(), theirs.dtype)
    # Gradients of plain `cuda` tensors cannot be had in this process: their operators are called.
    q, k, v = lying(how, dtype, "cuda")
    ops = torch.ops.aten
    if kind == FLASH:
        made = ops._scaled_dot_product_flash_attention(q, k, v)
        grads = ops._scaled_dot_product_flash_attention_backward(made[0], q, k, v, *made[:6], 0.0, False, *made[6:8])
    else:
        made = ops._scaled_dot_product_efficient_attention(q, k, v, None, True)
        grads = ops._scaled_dot_product_efficient_attention_backward(
            made[0], q, k, v, None, *made, 0.0, [True, True, True, False]
        )[:3]
    with sdpa_kernel(kind):
        leaves = [t.requires_grad_() for t in lying(how, dtype, GPU)]
        out = attention(*leaves)
        got = torch.autograd.grad(out, leaves, out.detach())
    assert [g.stride() for g in got] == [g.stride() for g in grads]


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return self.out(attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def trained(device, call=lambda f: f, wrap=lambda m: m, steps=8, lower=False):
    torch.manual_seed(0)
    model = Attends().to(device)
    called, opt = wrap(model), torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(2, 16, 32).to(device)

    def step(x):
        opt.zero_grad()
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=lower):
            loss = called(x).float().square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    step = call(step)
    losses = [step(x).cpu() for _ in range(steps)]
    return torch.stack(losses), step


@pytest.mark.parametrize("lower", [False, True], ids=["float", "autocast"])
def test_compiled_steps_replay(lower):
    got, step = trained(GPU, torch_ltc.compile, lower=lower)
    assert step.counts[0] >= 4, step.explain()
    torch.testing.assert_close(got, trained("cpu", lower=lower)[0], rtol=1e-2 if lower else 1e-5, atol=1e-5)


def test_a_compiled_step_follows_the_switches():
    def step(x):
        return attention(x, x, x)

    x, call = inputs(GPU, grad=False)[0], torch_ltc.compile(step)
    for kinds in ([CUDNN], [FLASH], [EFFICIENT], [MATH]):
        with sdpa_kernel(kinds):
            results = [call(x) for _ in range(4)]
        replayed = call.counts[0]
        torch.testing.assert_close(results[-1].cpu(), step(x).cpu(), rtol=2e-2, atol=2e-2)
        with sdpa_kernel(kinds):
            call(x)
        assert call.counts[0] == replayed + 1, call.explain()
    assert call.counts[1] >= 4, call.explain()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "ltc"])
@pytest.mark.parametrize("lower", [False, True], ids=["float", "autocast"])
def test_models_compile(backend, lower):
    torch._dynamo.reset()
    got, _ = trained(GPU, wrap=lambda model: torch.compile(model, backend=backend), steps=3, lower=lower)
    torch.testing.assert_close(got, trained("cpu", steps=3, lower=lower)[0], rtol=1e-2 if lower else 1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "dtype"), ONE_OF_EACH)
def test_tracing_sees_no_real_tensors(kind, dtype):
    with sdpa_kernel(kind):
        with FakeTensorMode():
            q = torch.empty(1, 2, 4, 8, device=GPU, dtype=dtype)
            assert attention(q, q, q).shape == q.shape
        q, k, v = inputs(GPU, dtype, grad=False)
        traced = make_fx(attention, tracing_mode="fake")(q, k, v)
        torch.testing.assert_close(traced(q, k, v).cpu(), attention(q, k, v).cpu())
