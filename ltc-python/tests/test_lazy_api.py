"""The modules of ``torch._lazy`` under their names, and step replay."""

import collections
import copy

import pytest
import torch
import torch_ltc
from torch import fx, nn
from torch_ltc import _step


def on(t):
    return t.to("ltc")


def test_dumps_show_the_pending_graph_and_run_nothing():
    x = on(torch.ones(2, 3))
    torch_ltc.mark_step(wait=True)
    y = (x * 2).relu()
    torch_ltc._ltc.record_events(True)
    text = torch_ltc.debug.dump_ir([y], "text")
    assert "aten::mul.Tensor(%p0" in text and "%1: f32[2, 3] = aten::relu(%0)" in text
    assert "graph(" in torch_ltc.debug.dump_ir([y], "backend")
    assert "digraph" in torch_ltc.debug.render_ir_graph([y]) and "aten::relu" in torch_ltc.debug.render_ir_graph([y])
    assert "pending, 2 operations" in torch_ltc.lazy_repr(y) and "data" in torch_ltc.lazy_repr(x)
    assert not [e for e in torch_ltc._ltc.take_events() if e.startswith("execute")]
    torch_ltc._ltc.record_events(False)
    with pytest.raises(RuntimeError, match="IR format"):
        torch_ltc.debug.dump_ir([y], "xml")


def test_a_cached_graph_runs_on_other_data():
    x, w = on(torch.arange(3.0)), on(torch.tensor([1.0, 2.0, 3.0]))
    y = x * w + 1
    graph = torch_ltc.computation.get_graph_hash([y, x])
    ids, data = torch_ltc.computation.get_tensors_ts_device_data_node([y, x])
    assert ids == [torch_ltc.get_tensor_id(x), torch_ltc.get_tensor_id(w)]
    assert torch.equal(data[1], torch.tensor([1.0, 2.0, 3.0]))
    (out, same) = torch_ltc.computation.run_cached_graph(graph, [torch.full((3,), 2.0), data[1]])
    assert torch.equal(out, torch.tensor([3.0, 5.0, 7.0])) and torch.equal(same, torch.full((3,), 2.0))
    with pytest.raises(RuntimeError, match="f64"):
        torch_ltc.computation.run_cached_graph(graph, [torch.zeros(3, dtype=torch.float64), data[1]])
    with pytest.raises(RuntimeError, match="no graph"):
        torch_ltc.computation.run_cached_graph("0" * 32, [])


def test_equal_graphs_have_equal_hashes_whatever_their_numbers():
    x = on(torch.ones(2))
    hashes = {torch_ltc.computation.get_graph_hash([x * k]) for k in (0.5, 1.5, 0.0)}
    assert len(hashes) == 1
    assert torch_ltc.computation.get_graph_hash([x + 0.5]) not in hashes


def test_sync_multi_runs_only_what_it_is_asked_for():
    x = on(torch.ones(2))
    torch_ltc.mark_step(wait=True)
    a, b = x + 1, x + 2
    torch_ltc.sync_multi([a], [])
    assert "data" in torch_ltc.lazy_repr(a) and "pending" in torch_ltc.lazy_repr(b)
    cpu = torch_ltc.to_cpu({"a": a, "rest": [b, 3]})
    assert torch.equal(cpu["a"], torch.full((2,), 2.0)) and cpu["rest"][1] == 3 and cpu["rest"][0].device.type == "cpu"


def test_save_writes_cpu_tensors(tmp_path):
    torch_ltc.save({"x": on(torch.ones(2)) * 3}, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt")["x"], torch.full((2,), 3.0))


def test_counters_count_and_reset():
    torch_ltc.metrics.reset()
    x = on(torch.tensor([1.0, 0.0, 2.0]))
    assert x.nonzero().shape == (2, 1)
    assert (
        torch_ltc.metrics.counter_value("aten::nonzero") == 1 and "aten::nonzero" in torch_ltc.metrics.counter_names()
    )
    assert torch_ltc.fallbacks()[0][0] == "aten::nonzero" and "where" in torch_ltc.fallbacks()[0][3]
    assert "nonzero" in torch_ltc.metrics.metrics_report()
    torch_ltc.metrics.reset()
    assert torch_ltc.metrics.counter_value("aten::nonzero") is None


def test_the_cache_is_drawn_and_emptied(tmp_path):
    torch_ltc.ir_cache.reset()
    (on(torch.ones(2)) * 2 + 1).cpu()
    torch_ltc.ir_cache.dump(tmp_path / "cache.dot")
    assert "2 operations, 1 inputs, 1 outputs" in (tmp_path / "cache.dot").read_text()
    torch_ltc.ir_cache.reset()
    torch_ltc.ir_cache.dump(tmp_path / "cache.dot")
    assert "operations" not in (tmp_path / "cache.dot").read_text()


def test_operators_can_be_forced_to_run_eagerly():
    x = on(torch.ones(2))
    torch_ltc.config.set_force_fallback("aten::exp, relu")
    try:
        assert torch_ltc.config.get_force_fallback() == "aten::exp,relu"
        torch_ltc.metrics.reset()
        assert torch.equal(x.exp().relu().cpu(), torch.ones(2).exp())
        assert torch_ltc.metrics.counter_value("aten::exp") == torch_ltc.metrics.counter_value("aten::relu") == 1
        with pytest.raises(RuntimeError, match="names no operator"):
            torch_ltc.config.set_force_fallback("a b")
    finally:
        torch_ltc.config.set_force_fallback("")
    torch_ltc.metrics.reset()
    x.exp().cpu()
    assert torch_ltc.fallback_count() == 0


def test_step_closures_run_at_the_end_of_the_step_in_order():
    seen = []
    x = on(torch.ones(1))
    for i in range(3):
        torch_ltc.add_step_closure(lambda i, t: seen.append((i, t.item())), args=(i, x + i))
    assert seen == []
    torch_ltc.mark_step()
    assert seen == [(0, 1.0), (1, 2.0), (2, 3.0)]
    torch_ltc.mark_step()
    assert len(seen) == 3


def test_an_asynchronous_closure_s_error_surfaces_at_the_next_one():
    seen = []

    def fail():
        raise ValueError("planted")

    torch_ltc.add_step_closure(fail, run_async=True)
    torch_ltc.mark_step()
    handler = torch_ltc.device_context.get_device_context().async_closure_handler
    handler.join()
    torch_ltc.add_step_closure(lambda: seen.append(1), run_async=True)
    with pytest.raises(RuntimeError, match="closure") as caught:
        torch_ltc.mark_step()
    assert isinstance(caught.value.__cause__, ValueError)
    torch_ltc.add_step_closure(lambda: seen.append(2), run_async=True)
    torch_ltc.mark_step()
    handler.join()
    assert seen == [2]


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, a, b):
        a.add_(1)
        c = a * self.w + b + torch.ones(2, device=a.device)
        return c, c, c.sum()


def test_an_extracted_graph_gives_what_the_module_gives():
    model = TwoOutputs()
    graph = fx.symbolic_trace(model)
    args = [torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.25])]
    run = torch_ltc.extract_compiled_graph(graph, [t.clone() for t in args])
    torch_ltc.metrics.reset()
    for k in range(3):
        expected_args, given = [t * k for t in args], [t * k for t in args]
        expected, got = model(*expected_args), run(*given)
        assert len(got) == 3
        for e, g in zip(expected, got):
            assert torch.equal(e.detach(), g)
        assert torch.equal(expected_args[0], given[0]), "an input changed in place"
    assert torch_ltc.metrics.counter_value("UncachedCompile") in (None, 1)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(16), nn.Linear(16, 1))


def train(device, optimiser, compiled, steps=10):
    model = copy.deepcopy(network()).to(device)
    opt = optimiser(model.parameters())
    torch.manual_seed(3)
    data = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(steps)]

    def step(x, t):
        opt.zero_grad()
        loss = ((model(x) - t) ** 2).mean()
        loss.backward()
        opt.step()
        return {"loss": loss.detach(), "n": 4}

    call = torch_ltc.compile(step) if compiled else step
    losses = []
    for i, (x, t) in enumerate(data):
        if i == 7:
            for group in opt.param_groups:
                group["lr"] *= 0.5
        out = call(x.to(device), t.to(device))
        assert out["n"] == 4
        losses.append(out["loss"].item())
    return losses, [p.detach().cpu() for p in model.state_dict().values()], call


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_replayed_step_is_the_recorded_step(optimiser):
    make = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    }[optimiser]
    recorded, state, _ = train("ltc", make, False)
    replayed, state_of_replay, call = train("ltc", make, True)
    assert recorded == replayed
    assert all(torch.equal(a, b) for a, b in zip(state, state_of_replay))
    assert call.counts[0] >= 3, call.explain()


def test_a_replay_records_nothing():
    w = on(torch.zeros(3))

    def step(x):
        w.add_(x)
        return w.sum()

    call = torch_ltc.compile(step)
    x = on(torch.ones(3))
    for _ in range(4):
        call(x)
    torch_ltc.mark_step(wait=True)
    torch_ltc.metrics.reset()
    assert call(x).item() == 15.0
    if not _step._CHECK_EVERY:  # what is checked is recorded
        assert torch_ltc.metrics.counter_value("RecordedOperations") is None
    assert torch_ltc.metrics.counter_value("ExecuteComputation") == 1


def test_tensors_that_shared_their_data_when_captured_may_part():
    a, b = on(torch.tensor([1.0])), on(torch.tensor([2.0]))
    call = torch_ltc.compile(lambda x: a + 10 * b + x)
    x = on(torch.tensor([0.0]))
    for k in range(4):
        b.copy_(a)
        assert call(x).item() == 11.0
    for k in range(5):
        b.fill_(k)
        assert call(x).item() == 1.0 + 10 * k


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda x, w, keep: x * float(x.sum()), "reads a value"),
        (lambda x, w, keep: x + torch.ones(2, device="cpu").tolist()[0], "uses CPU tensors in tolist"),
        (lambda x, w, keep: x.unique(), "runs eagerly"),
        (lambda x, w, keep: keep.append(x * 2) or x + 1, "changes the contents of a deque"),
        (lambda x, w, keep: x * len(keep.append(0) or keep), "changes the contents of a deque"),
    ],
)
def test_what_cannot_be_replayed_is_recorded_and_says_why(body, why):
    keep, expected_keep = collections.deque(), collections.deque()
    w = torch.ones(2)
    call = torch_ltc.compile(lambda x: body(x, w, keep))
    for k in range(8):
        x = torch.tensor([1.0, 2.0 + k])
        expected = body(x.clone(), w, expected_keep)
        torch.testing.assert_close(call(on(x)).cpu(), expected)
    assert why in call.refusal, call.explain()


def test_an_average_of_parameters_is_replayed_with_its_counter_on_the_host():
    def trained(device):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        x = torch.randn(4, 3).to(device)
        model.to(device)
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        )
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            opt.zero_grad()
            model(x).square().mean().backward()
            opt.step()
            average.update_parameters(model)

        # The counter that the average counts in stays on the CPU; a copy nobody uses goes to the device.
        average.n_averaged = average.n_averaged.cpu()
        call = step if device == "cpu" else torch_ltc.compile(step)
        for _ in range(10):
            call(x)
        if device != "cpu":
            assert call.counts[0] >= 5, call.explain()
        return [v.cpu() for v in average.state_dict().values()]

    torch.testing.assert_close(trained("ltc"), trained("cpu"))


def test_other_shapes_are_captured_for_themselves():
    call = torch_ltc.compile(lambda x: (x * 2).sum())
    for k in range(12):
        n = 3 if k % 3 else 4
        assert call(on(torch.ones(n))).item() == 2.0 * n
    assert call.counts[0] >= 5, call.explain()


def test_torch_compile_backend():
    model = network().eval()
    x = torch.randn(4, 8)
    expected = model(x)
    moved = copy.deepcopy(model).to("ltc")
    fast = torch.compile(moved, backend="ltc")
    for _ in range(5):
        torch.testing.assert_close(fast(on(x)).detach().cpu(), expected.detach())
    fast(on(x)).sum().backward()
    expected.sum().backward()
    for a, b in zip(model.parameters(), moved.parameters()):
        torch.testing.assert_close(b.grad.cpu(), a.grad)
