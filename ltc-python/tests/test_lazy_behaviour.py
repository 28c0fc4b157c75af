"""What PyTorch's own tests ask of lazy tensors: graphs reused from step to step, closures, aliases, generators,
errors."""

import copy
import inspect
import threading

import pytest
import torch
import torch_ltc
from torch import fx, nn


def on(t):
    return t.detach().to("ltc").requires_grad_(t.requires_grad)


def counters():
    return {name: torch_ltc.metrics.counter_value(name) for name in torch_ltc.metrics.counter_names()}


# ---- graphs and programs are reused ----


def steps(device, body, n=8):
    torch.manual_seed(0)
    x = torch.randn(4, 3).to(device)
    found = []
    for i in range(n):
        x = body(x, i)
        torch_ltc.mark_step()
        found.append(x.detach().cpu())
    return found


def alternate(x, i):
    return x + 1 if i % 2 else x * 2 - 1


def normalise(x, i):
    return nn.functional.batch_norm(x * 0.9, None, None, training=True)


def through_a_fallback(x, i):
    return (x + 1) / x.nonzero().shape[0]


@pytest.mark.parametrize("body", [lambda x, i: x + i, alternate, normalise, through_a_fallback])
@pytest.mark.parametrize("reuse", [False, True])
def test_equal_steps_are_compiled_once(body, reuse, request):
    torch_ltc.config.set_reuse_ir(reuse)
    request.addfinalizer(lambda: torch_ltc.config.set_reuse_ir(True))
    torch_ltc.ir_cache.reset()
    torch_ltc.metrics.reset()
    expected = steps("cpu", body)
    for _ in range(2):
        torch_ltc.metrics.reset()
        for e, g in zip(expected, steps("ltc", body), strict=True):
            assert torch.equal(g, e)
    assert "UncachedCompile" not in counters() and counters()["CachedCompile"] >= 8, counters()


@pytest.mark.parametrize("reuse", [False, True])
def test_nodes_are_recorded_again_unless_told_otherwise(reuse):
    x = on(torch.ones(3))
    torch_ltc.config.set_reuse_ir(reuse)
    try:
        torch_ltc.mark_step()
        torch_ltc.metrics.reset()
        for _ in range(4):
            y = (x * 2 + 1).relu()
            torch_ltc.mark_step()
        assert torch.equal(y.cpu(), torch.full((3,), 3.0))
        assert (counters().get("IrNodeReused", 0) > 0) == reuse, counters()
    finally:
        torch_ltc.config.set_reuse_ir(True)


def test_counters_are_empty_after_a_reset():
    on(torch.ones(2)).add(1).cpu()
    torch_ltc.wait_device_ops()
    torch_ltc.metrics.reset()
    assert torch_ltc.metrics.counter_names() == []
    assert torch_ltc.metrics.counter_value("MarkStep") is None


def test_shapes_that_differ_from_step_to_step():
    def body(x, n):
        return nn.functional.adaptive_avg_pool3d(x[:, :n].repeat(1, 1, 2, 2, 2), 1).flatten() + x[:, :n].sum()

    x = torch.randn(2, 6, 2, 2, 2)
    for n in (1, 4, 2, 4, 1, 6):
        torch.testing.assert_close(body(on(x), n).cpu(), body(x, n))


def test_nonzero_has_the_size_of_its_data():
    for values in ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]):
        x = torch.tensor(values)
        found = on(x).nonzero()
        assert found.shape == x.nonzero().shape and torch.equal((found + 1).cpu(), x.nonzero() + 1)


# ---- step closures ----


def test_closures_of_a_step_run_before_the_next_one():
    seen = []
    x = on(torch.zeros(1))
    for step in range(3):
        x += 1
        torch_ltc.add_step_closure(lambda v: seen.append(v.item()), args=(x.clone(),))
        torch_ltc.mark_step()
        assert seen == [float(i + 1) for i in range(step + 1)]


def test_asynchronous_closures_do_not_hold_up_the_next_step():
    may_go, done = threading.Event(), threading.Event()
    seen = []

    def closure(value):
        assert may_go.wait(30)
        seen.append(value.item())
        done.set()

    torch_ltc.add_step_closure(closure, args=(on(torch.ones(1)) * 3,), run_async=True)
    torch_ltc.mark_step()
    x = on(torch.ones(1)) + 4
    torch_ltc.mark_step()
    assert x.item() == 5.0 and seen == [], "the next step ran while the closure waits"
    may_go.set()
    assert done.wait(30) and seen == [3.0]


def test_a_closure_that_fails_fails_the_step_and_only_that():
    def fail():
        raise ValueError("planted")

    torch_ltc.add_step_closure(fail)
    with pytest.raises(ValueError, match="planted"):
        torch_ltc.mark_step()
    torch_ltc.mark_step()
    assert (on(torch.ones(1)) + 1).item() == 2.0


def test_contexts_are_per_device_and_keep_their_handlers():
    context = torch_ltc.device_context.get_device_context()
    assert context is torch_ltc.device_context.get_device_context("ltc")
    ran = []

    class Handler(torch_ltc.closure.ClosureHandler):
        def run(self, closure):
            ran.append(closure)
            super().run(closure)

    before, context.closure_handler = context.closure_handler, Handler()
    try:
        torch_ltc.add_step_closure(lambda: None)
        torch_ltc.mark_step()
    finally:
        context.closure_handler = before
    assert len(ran) == 1


# ---- aliases ----


class ViewAsWeight(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(12.0).reshape(3, 4)
        self.weight = nn.Parameter(base[1])

    def forward(self, x):
        return x * self.weight - 1


def test_a_parameter_that_is_a_view_moves_and_trains():
    results = []
    for device in ("cpu", "ltc"):
        model = ViewAsWeight().to(device)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            model(torch.ones(4, device=device)).pow(2).mean().backward()
            opt.step()
        results.append(model.weight.detach().cpu())
    assert torch.equal(*results)


def test_data_can_be_assigned():
    def body(device):
        x = torch.ones(2, 3).to(device)
        y = x.view(3, 2)
        x.data = torch.full((2, 3), 5.0).to(device)
        y += 1
        x *= 2
        return x, y

    for cpu, ltc in zip(body("cpu"), body("ltc")):
        assert torch.equal(ltc.cpu(), cpu)


@pytest.mark.parametrize("sync", [False, True])
def test_writes_through_views_are_seen_by_all(sync):
    def body(device):
        x = torch.zeros(4, 4).to(device)
        row, column, flat = x[1], x[:, 2], x.view(16)
        row += 1
        if sync:
            torch_ltc.mark_step()
        column.copy_(torch.arange(4.0).to(device))
        flat[5:7].mul_(10)
        torch.add(row, 1, out=x[3])
        return x, row, column, flat

    for cpu, ltc in zip(body("cpu"), body("ltc")):
        assert torch.equal(ltc.cpu(), cpu)


# ---- generators ----


def draws(device, seed):
    g = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(3, generator=g, device=device), torch.empty(4, device=device).uniform_(generator=g)


def test_generators_draw_as_the_cpu_s_and_a_seed_compiles_nothing():
    torch_ltc.ir_cache.reset()
    torch_ltc.metrics.reset()
    for seed in (1, 2, 3):
        # On this device a tensor is read with all that is pending: one program a seed, the same one.
        got = torch_ltc.to_cpu(draws("ltc", seed))
        for e, g in zip(draws("cpu", seed), got):
            assert torch.equal(e, g)
    assert counters()["UncachedCompile"] == 1, counters()


# ---- what a graph says ----


def test_a_dump_names_the_lines_that_recorded():
    x = on(torch.ones(2))
    y = x * 2
    line = inspect.currentframe().f_lineno - 1
    text = torch_ltc.debug.dump_ir([y.relu()], "sites").splitlines()
    assert len(text) == 5 and text[0].startswith("graph(")
    assert "aten::mul" in text[1] and f"test_lazy_behaviour.py:{line} in " in text[1]
    assert "aten::relu" in text[2] and f"test_lazy_behaviour.py:{line + 2} in " in text[2]


# ---- errors come from shapes and dtypes, at the call ----


@pytest.mark.parametrize(
    "call",
    [
        lambda t: torch.addmm(t(torch.ones(2, 2)), t(torch.ones(2, 2)), t(torch.ones(2, 2, dtype=torch.float64))),
        lambda t: torch.mm(t(torch.ones(2, 3)), t(torch.ones(2, 3))),
        lambda t: t(torch.ones(2, 3)) + t(torch.ones(4)),
        lambda t: torch.cat([t(torch.ones(2, 3)), t(torch.ones(3, 4))]),
        lambda t: t(torch.ones(2)).view(3),
    ],
)
def test_a_mistake_raises_where_it_is_made(call):
    with pytest.raises(RuntimeError) as cpu:
        call(lambda t: t)
    with pytest.raises(RuntimeError) as ltc:
        call(on)
    assert str(ltc.value).split("\n")[0] == str(cpu.value).split("\n")[0]


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="same device"):
        on(torch.ones(2)) + torch.ones(2)


# ---- operators ----


def test_the_gradient_of_a_convolution():
    results = []
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        x = torch.randn(1, 3, 8, 8).to(device).requires_grad_()
        conv = nn.Conv2d(3, 2, 3, padding=1, bias=False).to(device)
        conv(x).square().sum().backward()
        results.append((x.grad.cpu(), conv.weight.grad.cpu()))
    for cpu, ltc in zip(*results):
        assert torch.equal(cpu, ltc)


def test_tensors_are_made_on_the_device():
    for make in (torch.tensor, torch.as_tensor):
        t = make([1, 2], device="ltc")
        assert t.device.type == "ltc" and t.tolist() == [1, 2]


# ---- extracted graphs ----


class Constant(nn.Module):
    def forward(self, x):
        return x.sin() * 2.5 + torch.ones(3)


class Several(nn.Module):
    def forward(self, x, y):
        return (x + y, torch.addcmul(x, x, y, value=5))


class Repeated(nn.Module):
    def forward(self, x, y):
        z = x - y
        return z, x, z


class WritesItsInput(nn.Module):
    def forward(self, x, y):
        x.sub_(y)
        return x * 2, x, 3


class GivesItBack(nn.Module):
    def forward(self, x, y):
        return y


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 3))

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("module", [Constant, Several, Repeated, WritesItsInput, GivesItBack, Linear])
def test_extracted_graphs(module):
    model = module()
    g = torch.Generator().manual_seed(1)
    inputs = [torch.randn(3, generator=g) for _ in inspect.signature(module.forward).parameters if _ != "self"]
    run = torch_ltc.extract_compiled_graph(fx.symbolic_trace(model), [t.clone() for t in inputs])
    for k in range(3):
        given, expected_given = [t + k for t in inputs], [t + k for t in inputs]
        with torch.no_grad():
            got, expected = run(*given), model(*expected_given)
        assert type(got) is type(expected)
        flat = lambda r: r if isinstance(r, tuple) else (r,)
        for a, b in zip([*flat(got), *given], [*flat(expected), *expected_given], strict=True):
            assert a == b if isinstance(a, int) else torch.equal(a.detach(), b)


def test_a_graph_with_operators_that_run_eagerly_is_not_extracted():
    class Masked(nn.Module):
        def forward(self, x):
            return x[x > 0].sum() + x

    with pytest.raises(RuntimeError, match="aten::index"):
        torch_ltc.extract_compiled_graph(fx.symbolic_trace(Masked()), [torch.tensor([1.0, -1.0])])


def test_a_copied_model_is_a_model_of_its_own():
    model = Linear().to("ltc")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.inner[0].weight.zero_()
    assert model.inner[0].weight.abs().sum().item() > 0 == twin.inner[0].weight.abs().sum().item()


# ---- masks ----


@pytest.mark.parametrize("accumulate", [False, True])
def test_values_written_through_a_mask_are_recorded(accumulate):
    """How many values a mask takes is data, the shape of the result is not."""
    mask = torch.tensor([[True, False, True], [False, True, False]])
    values, t = torch.tensor([1.0, 2.0, 3.0]), torch.arange(6.0).reshape(2, 3)
    before = torch_ltc.fallback_count()
    written = on(t).index_put_((on(mask),), on(values), accumulate=accumulate)
    assert torch_ltc.fallback_count() == before
    assert torch.equal(written.cpu(), t.clone().index_put_((mask,), values, accumulate=accumulate))
    picked = [x[m] for x, m in ((t.requires_grad_(), mask), (on(t), on(mask)))]
    leaf = on(t.detach()).requires_grad_()
    chosen = leaf[on(mask)]
    before = torch_ltc.fallback_count()
    (chosen * 2).sum().backward()
    assert torch.equal(leaf.grad.cpu(), mask * 2.0) and torch_ltc.fallback_count() == before
    assert torch.equal(picked[0], picked[1].cpu())


def test_a_mask_and_values_that_do_not_fit_raise_when_they_are_read():
    t = torch.zeros(4, device="ltc")
    t.index_put_((on(torch.tensor([True, True, False, False])),), torch.ones(3, device="ltc"))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        t.cpu()
