"""What PyTorch programs expect of any device when they train: random numbers, autograd, optimisers, extension
points."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from citizen import batch, close, model, same
from torch import nn
from torch.utils.checkpoint import checkpoint

# Randomness


def test_manual_seed_and_state():
    torch.manual_seed(5)
    first = torch.randn(4, device="ltc"), torch.rand(3, device="ltc"), torch.randperm(6, device="ltc")
    torch.manual_seed(5)
    for a, make in zip(first, (lambda: torch.randn(4, device="ltc"), lambda: torch.rand(3, device="ltc"))):
        same(a, make())
    same(first[2], torch.randperm(6, device="ltc"))
    state = torch.ltc.get_rng_state()
    a = torch.randn(4, device="ltc")
    torch.ltc.set_rng_state(state)
    same(torch.randn(4, device="ltc"), a)


def test_random_stream_equals_cpu():
    torch.manual_seed(5)
    cpu = torch.randn(40), torch.rand(3), torch.randint(0, 9, (4,)), torch.empty(3).exponential_(), torch.randperm(5)
    torch.manual_seed(5)
    d = "ltc"
    ltc = (
        torch.randn(40, device=d),
        torch.rand(3, device=d),
        torch.randint(0, 9, (4,), device=d),
        torch.empty(3, device=d).exponential_(),
        torch.randperm(5, device=d),
    )
    for a, b in zip(reversed(ltc), reversed(cpu)):  # reading in another order than drawing changes nothing
        same(a, b)


def test_unused_draws_still_advance_the_stream():
    torch.manual_seed(1)
    torch.randn(4, device="ltc")
    a = torch.randn(4, device="ltc")
    torch.manual_seed(1)
    torch.randn(4)
    same(a, torch.randn(4))


def test_generator():
    g = torch.Generator(device="ltc")
    g.manual_seed(3)
    state = g.get_state()
    a = torch.randn(4, device="ltc", generator=g)
    g.set_state(state)
    same(torch.randn(4, device="ltc", generator=g), a)
    assert g.device.type == "ltc" and g.initial_seed() == 3
    same(torch.randn(4, generator=torch.Generator().manual_seed(3)), a)


def test_a_generator_leaves_the_default_stream_alone():
    torch.manual_seed(2)
    torch.randn(2, device="ltc", generator=torch.Generator(device="ltc").manual_seed(8))
    a = torch.randn(2, device="ltc")
    torch.manual_seed(2)
    same(a, torch.randn(2))


def test_fork_rng():
    torch.manual_seed(4)
    with torch.random.fork_rng(devices=[0], device_type="ltc"):
        torch.randn(3, device="ltc")
    a = torch.randn(3, device="ltc")
    torch.manual_seed(4)
    same(a, torch.randn(3))


def test_dropout_equals_cpu_under_the_same_seed():
    x = torch.ones(1000)
    results = []
    for d in ("cpu", "ltc"):
        t = x.detach().to(d).requires_grad_()
        torch.manual_seed(0)
        y = F.dropout(t, 0.4)
        y.sum().backward()
        results.append((y, t.grad))
    same(results[1][0], results[0][0])
    same(results[1][1], results[0][1])
    same(results[1][1], results[1][0])
    layer = nn.Dropout(0.5).eval()
    same(layer(x.to("ltc")), x)


# Grad modes and autograd


def test_no_grad_and_inference_mode():
    x = torch.ones(3, device="ltc", requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        z = torch.ones(3, device="ltc") * 2
        z.view(3, 1).mul_(2)
        assert z.is_inference()
    same(z, torch.full((3,), 4.0))
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        (z * x).sum().backward()


def test_version_counter_catches_overwritten_saved_tensors():
    x = torch.ones(3, device="ltc", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_on_leaf_is_refused():
    x = torch.ones(3, device="ltc", requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_custom_autograd_function():
    x = torch.arange(3.0, device="ltc").requires_grad_()
    Square.apply(x).sum().backward()
    same(x.grad, torch.tensor([0.0, 2.0, 4.0]))


def test_double_backward():
    x = torch.tensor([2.0, 3.0], device="ltc", requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    close(g, torch.tensor([12.0, 27.0]))
    close(h, torch.tensor([12.0, 18.0]))


def test_gradcheck():
    x = torch.randn(3, dtype=torch.float64).to("ltc").requires_grad_()
    assert torch.autograd.gradcheck(lambda t: (t.sin() * t).sum(), x)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_with_dropout(reentrant):
    grads = []
    for d in ("cpu", "ltc"):
        m = nn.Sequential(model(), nn.Dropout(0.5)).to(d)
        x = batch()[0].to(d).requires_grad_()
        torch.manual_seed(3)
        checkpoint(m, x, use_reentrant=reentrant).sum().backward()
        grads.append((x.grad, m[0][0].weight.grad))
    for a, b in zip(*grads):
        same(b, a)


def test_forward_mode():
    import torch.autograd.forward_ad as fwd

    with fwd.dual_level():
        y = fwd.make_dual(torch.ones(3, device="ltc"), torch.ones(3, device="ltc")) ** 2
        same(fwd.unpack_dual(y).tangent, torch.full((3,), 2.0))


def test_func_transforms():
    from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap

    x = torch.randn(5, 3)
    t = x.to("ltc")
    f = lambda v: (v.sin() ** 2).sum()
    close(vmap(grad(f))(t), vmap(grad(f))(x))
    close(jacrev(torch.sin)(t[0]), jacrev(torch.sin)(x[0]))
    close(jacfwd(torch.sin)(t[0]), jacfwd(torch.sin)(x[0]))
    close(jvp(f, (t,), (t,))[1], jvp(f, (x,), (x,))[1])
    m = nn.Linear(3, 2).to("ltc")
    per_sample = vmap(grad(lambda p, v: functional_call(m, p, (v,)).sum()), (None, 0))(dict(m.named_parameters()), t)
    assert per_sample["weight"].shape == (5, 2, 3)


def test_anomaly_mode_names_the_forward_call():
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan"):
        x = torch.tensor([-1.0], device="ltc", requires_grad=True)
        x.sqrt().sum().backward()


# Mixed precision


def test_autocast():
    cpu, ltc = model(), model().to("ltc")
    x, y = batch()
    losses = []
    for m, d in ((cpu, "cpu"), (ltc, "ltc")):
        with torch.autocast(d, dtype=torch.bfloat16):
            out = m(x.to(d))
            assert out.dtype == torch.bfloat16
            loss = F.cross_entropy(out, y.to(d))
        assert loss.dtype == torch.float32
        loss.backward()
        losses.append(loss)
    assert ltc[0].weight.grad.dtype == torch.float32 and torch.is_autocast_enabled("ltc") is False
    close(losses[1], losses[0], 1e-2)
    torch.testing.assert_close(ltc[0].weight.grad.cpu(), cpu[0].weight.grad, rtol=5e-2, atol=2e-3)


def test_grad_scaler():
    m = nn.Linear(4, 4).to("ltc")
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("ltc", init_scale=8.0, growth_interval=1)
    before = m.weight.detach().clone()
    scaler.scale(m(torch.ones(2, 4, device="ltc")).sum()).backward()
    scaler.step(opt)
    scaler.update()
    close(before - m.weight, torch.full((4, 4), 0.2))
    assert scaler.get_scale() == 16.0


# Optimisers

OPTIMISERS = [
    (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    (torch.optim.Adam, dict(lr=0.01, amsgrad=True)),
    (torch.optim.AdamW, dict(lr=0.01)),
]


@pytest.mark.parametrize("form", [dict(), dict(foreach=True), dict(foreach=False), dict(fused=True)], ids=str)
@pytest.mark.parametrize("kind,options", OPTIMISERS, ids=lambda v: getattr(v, "__name__", ""))
def test_optimisers(kind, options, form):
    results = []
    for d in ("cpu", "ltc"):
        m = model().to(d)
        opt = kind(m.parameters(), **options, **form)
        x, y = (t.to(d) for t in batch())
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(m(x), y).backward()
            opt.step()
            torch_ltc.mark_step()
        results.append([p.detach() for p in m.parameters()])
    for a, b in zip(*results):
        close(b, a)


@pytest.mark.parametrize(
    "kind", ["Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop", "Adafactor"]
)
def test_other_optimisers(kind):
    results = []
    for d in ("cpu", "ltc"):
        m = model().to(d)
        opt = getattr(torch.optim, kind)(m.parameters())
        x, y = (t.to(d) for t in batch())
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(m(x), y).backward()
            opt.step()
        results.append([p.detach() for p in m.parameters()])
    for a, b in zip(*results):
        close(b, a)


def test_lbfgs_schedulers_and_clipping():
    x = nn.Parameter(torch.ones(2, device="ltc"))
    opt = torch.optim.LBFGS([x], max_iter=10)

    def closure():
        opt.zero_grad()
        loss = ((x - 3) ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    close(x, torch.full((2,), 3.0), 1e-3)
    sgd = torch.optim.SGD([x], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, 10)
    norm = nn.utils.clip_grad_norm_([x], 1.0)
    sgd.step()
    schedule.step()
    assert norm.device.type == "ltc" and sgd.param_groups[0]["lr"] < 1.0


def test_changing_learning_rate_compiles_nothing_new():
    """Scalars are inputs of the program, not part of it."""
    m = model().to("ltc")
    opt = torch.optim.Adam(m.parameters(), foreach=False)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    x, y = (t.to("ltc") for t in batch())
    compiled = []
    for _ in range(8):
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        opt.step()
        schedule.step()
        torch_ltc.mark_step(wait=True)
        compiled.append(_compiles())
    assert compiled[3] == compiled[-1], compiled


def _compiles():
    lines = [line for line in torch_ltc.metrics_report().splitlines() if "compil" in line.lower()]
    assert lines, "the report does not tell about compilation"
    return lines[0].split("(")[0]


# Extension points


def test_custom_op():
    @torch.library.custom_op("citizen::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @double.register_fake
    def _(x):
        return torch.empty_like(x)

    double.register_autograd(lambda ctx, g: g * 2)
    x = torch.ones(2, device="ltc", requires_grad=True)
    y = double(x)
    y.sum().backward()
    assert y.device.type == "ltc"
    same(x.grad, torch.full((2,), 2.0))


def test_custom_op_with_a_cpu_kernel_only():
    lib = torch.library.Library("citizen_cpu", "DEF")
    lib.define("triple(Tensor x) -> Tensor")
    lib.define("triple_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("triple", lambda x: torch.from_numpy(x.numpy() * 3), "CPU")
    lib.impl("triple_", lambda x: x.mul_(3), "CPU")
    same(torch.ops.citizen_cpu.triple(torch.ones(2, device="ltc")), torch.full((2,), 3.0))
    t = torch.ones(3, 2, device="ltc")
    torch.ops.citizen_cpu.triple_(t.t()[0])
    same(t[:, 0], torch.full((3,), 3.0))
    lib._destroy()


def test_forward_derivatives_of_layers():
    from torch.func import hessian, jacfwd

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    moved = copy.deepcopy(model).to("ltc")
    x = torch.randn(3)
    # Weights have no tangents: libtorch makes zeros without memory for those.
    torch.testing.assert_close(jacfwd(moved)(x.to("ltc")).cpu(), jacfwd(model)(x))
    torch.testing.assert_close(hessian(moved)(x.to("ltc")).cpu(), hessian(model)(x))


def test_an_encoder_with_padding_is_evaluated_without_nested_tensors():
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    x, padding = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        given = copy.deepcopy(encoder).to("ltc")(x.to("ltc"), src_key_padding_mask=padding.to("ltc")).cpu()
    torch.testing.assert_close(given[~padding], expected[~padding])


def test_custom_op_whose_size_depends_on_data():
    @torch.library.custom_op("citizen::positive", mutates_args=(), device_types="cpu")
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0]

    @positive.register_fake
    def _(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size())

    x = torch.tensor([1.0, -1.0, 2.0], device="ltc")
    before = torch_ltc.fallback_count()
    y = positive(x)
    assert y.device.type == "ltc" and torch_ltc.fallback_count() == before + 1
    same(y + 1, torch.tensor([2.0, 3.0]))
    with pytest.raises(IndexError):
        torch.ops.citizen.positive(torch.ones((), device="ltc"))[5]


def test_integers_are_counted_as_on_accelerators():
    x = torch.tensor([0, 1, 1, 3], dtype=torch.int32)
    counts = torch.histc(x.to("ltc"), bins=4, min=0, max=3)
    assert counts.dtype == torch.int32
    same(counts, torch.tensor([1, 2, 0, 1], dtype=torch.int32))
    same(torch.histc(x.float().to("ltc"), bins=4, min=0, max=3), torch.histc(x.float(), bins=4, min=0, max=3))


def test_dispatch_mode_sees_operators():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen = []
    t = torch.ones(2, device="ltc")
    with Log():
        y = t + 1
    assert seen == [torch.ops.aten.add.Tensor]
    same(y, torch.full((2,), 2.0))


def test_subclass_and_parametrisation():
    class Sub(torch.Tensor):
        pass

    y = torch.ones(2, device="ltc").as_subclass(Sub) + 1
    assert type(y) is Sub
    m = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)).to("ltc")
    m(torch.ones(1, 2, device="ltc")).sum().backward()
    m = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).to("ltc")
    m(torch.ones(1, 3, device="ltc")).sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dynamo(backend):
    torch._dynamo.reset()
    f = torch.compile(lambda x: (x * 2).relu().sum(), backend=backend)
    x = torch.ones(3, device="ltc", requires_grad=True)
    f(x).backward()
    same(x.grad, torch.full((3,), 2.0))


def test_jit_and_export():
    same(
        torch.jit.trace(lambda x: x * 2 + 1, torch.ones(2, device="ltc"))(torch.ones(2, device="ltc")),
        torch.full((2,), 3.0),
    )

    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    exported = torch.export.export(Twice(), (torch.ones(3, device="ltc"),))
    same(exported.module()(torch.ones(3, device="ltc")), torch.full((3,), 2.0))


def test_profiler():
    with torch.profiler.profile() as prof:
        (torch.ones(2, device="ltc") * 2).cpu()
    assert any("mul" in e.key for e in prof.key_averages())


def test_testing_assert_close():
    t = torch.ones(3, device="ltc")
    torch.testing.assert_close(t, t.clone())
    torch.testing.assert_close(t, torch.ones(3), check_device=False)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(t, t + 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
        lambda x: torch.nested.nested_tensor([x, x[:1]], device="ltc") * 2,
    ],
)
def test_other_layouts_are_refused_at_the_call(make):
    x = torch.eye(2, device="ltc")
    with pytest.raises(NotImplementedError, match=r"(?i)ltc: .*(dense|not supported)"):
        make(x)
    same(x + 1, torch.eye(2) + 1)
