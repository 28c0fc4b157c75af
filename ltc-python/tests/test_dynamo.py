"""``torch.compile(backend="ltc")`` over CPU tensors: graphs are programs over the tensors' own memory, and compute what
eager execution does."""

import copy
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch import nn
from torch_ltc import _dynamo
from torch_ltc._host_graph import HostGraph


@pytest.fixture
def graphs(monkeypatch):
    """The graphs over CPU tensors that the test compiles."""
    made = []

    class Kept(HostGraph):
        def __init__(self, graph):
            super().__init__(graph)
            made.append(self)

    monkeypatch.setattr(_dynamo, "HostGraph", Kept)
    torch._dynamo.reset()
    yield made
    torch._dynamo.reset()


def compiled(f, **options):
    return torch.compile(f, backend="ltc", **options)


def all_ran(graphs):
    return bool(graphs) and all(g.refusal is None and g.counts[0] > 0 == g.counts[1] for g in graphs)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 6)
        self.layer = nn.GRU(6, 5, batch_first=True)

    def forward(self, x):
        return self.layer(self.words(x))[0]


NETWORKS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), torch.randn(5, 8)),
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4)
        ),
        torch.randn(5, 3, 10, 10),
    ),
    "dropout": lambda: (nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 4)), torch.randn(5, 8)),
    "attention": lambda: (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(3, 7, 16)),
    "recurrent": lambda: (Recurrent(), torch.randint(0, 10, (3, 4))),
}


@pytest.mark.parametrize("name", NETWORKS)
@torch._dynamo.config.patch(allow_rnn=True)
def test_networks_train_as_in_eager_execution(graphs, name):
    torch.manual_seed(0)
    model, x = NETWORKS[name]()
    reference = copy.deepcopy(model)
    step = compiled(model)
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (model, reference)]
    for seed in range(4):
        losses = []
        for f, optimiser in zip((step, reference), optimisers, strict=True):
            torch.manual_seed(seed)
            optimiser.zero_grad()
            loss = f(x).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
            assert torch.rand(()) >= 0
        torch.testing.assert_close(*losses)
    for a, b in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert all_ran(graphs) and len(graphs) >= 2


def test_draws_are_those_of_the_cpu_generator(graphs):
    def f(x):
        return F.dropout(x, 0.5) + torch.rand(4)

    def draws(f):
        torch.manual_seed(3)
        return [torch.stack([f(torch.ones(4)), torch.randn(4)]) for _ in range(3)]

    assert all(torch.equal(a, b) for a, b in zip(draws(compiled(f)), draws(f), strict=True))
    assert all_ran(graphs)
    torch.ltc.manual_seed(5)
    expected = torch.rand(3, device="ltc").cpu()
    torch.ltc.manual_seed(5)
    compiled(f)(torch.ones(4))
    assert torch.equal(torch.rand(3, device="ltc").cpu(), expected), "the device's own generator was not drawn from"


def test_results_share_memory_where_eager_ones_do_and_nowhere_else(graphs):
    def f(x, y):
        total = x + y
        return x, x.t(), x.clone(), total, total.view(-1), total.clone(), total[1:]

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for _ in range(2):
        given = [t.clone() for t in (x, y)]
        ours, theirs = compiled(f)(*given), f(*given)

        def shared(results):
            everything = [*given, *results]
            ends = [t.untyped_storage().data_ptr() for t in everything]
            return [[a == b for a in ends] for b in ends]

        assert shared(ours) == shared(theirs)
        assert ours[0] is given[0]
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b) and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
    assert all_ran(graphs)


def test_writes_to_inputs_happen(graphs):
    def f(x, log):
        x.mul_(2)
        log[1:].add_(x.sum())
        return x + 1

    g = compiled(f)
    for _ in range(3):
        ours, theirs = ([torch.ones(3), torch.zeros(4)] for _ in range(2))
        assert torch.equal(g(*ours), f(*theirs))
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert all_ran(graphs)


def test_what_changes_between_calls_is_seen(graphs):
    model = nn.Linear(3, 3)
    g = compiled(model)
    x = torch.ones(2, 3)
    for k in range(6):
        torch.testing.assert_close(g(x), F.linear(x, model.weight, model.bias))
        with torch.no_grad():
            model.weight.add_(k)
        x.mul_(0.5)
        if k == 3:
            model.weight.data = torch.randn(3, 3)
    assert all_ran(graphs)


def test_tensors_of_any_layout_are_taken(graphs):
    g = compiled(lambda x: (x * 2 + x.sum(), x.t().contiguous()), dynamic=False)
    base = torch.randn(6, 8)
    cases = [
        *(base, base.t(), base[1:], base[:, ::2], base[::2, 1:4], base[:1].expand(6, 8), base[:0], base[:, :0]),
        *(torch.randn(1), torch.complex(base, base).imag, torch.complex(base, base), base.double(), base > 0),
    ]
    cases = [c for c in cases if c.dim() == 2]
    for _ in range(2):
        for x in cases:
            for ours, theirs in zip(g(x), (x * 2 + x.sum(), x.t().contiguous()), strict=True):
                torch.testing.assert_close(ours, theirs)
                assert ours.stride() == theirs.stride()
    assert all_ran(graphs)


def test_places_in_memory_are_those_of_the_tensor_that_is_given(graphs):
    def f(x):
        return torch.as_strided(x, (2, 2), (1, 2), 1) * 2

    g = compiled(f, dynamic=False)
    base = torch.randn(12)
    for _ in range(2):
        for x in (base[:6], base[4:10], base.clone()[:6], base[6:]):
            assert torch.equal(g(x), f(x))
    assert graphs and all(h.refusal is None for h in graphs)


def test_inputs_that_overlap_and_are_written(graphs):
    def f(x, y):
        x.mul_(2)
        y.add_(x.sum())
        return x + y.sum()

    g = compiled(f)
    for _ in range(3):
        ours, theirs = torch.arange(8.0), torch.arange(8.0)
        assert torch.equal(g(ours[1:4], ours[2:6]), f(theirs[1:4], theirs[2:6]))
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("first", "dynamic", "device"),
    [(0, False, "cpu"), (2, False, "cpu"), (4, True, "cpu"), (0, True, "ltc"), (2, False, "ltc")],
)
@pytest.mark.usefixtures("graphs")
def test_inputs_overlap_as_they_do_at_each_call(first, dynamic, device):
    def f(x, y):
        x.add_(1)
        return y * 2

    parts = [
        lambda b: (b[:4], b[4:8]),
        lambda b: (b[:4], b[:4]),
        lambda b: (b[:4], b[2:6]),
        lambda b: (b, b),
        lambda b: (b[1:5], b[3:7]),
        lambda b: (b[:4], torch.zeros(4, device=b.device)),
    ]
    g = compiled(f, dynamic=dynamic)
    for k in [first, *range(6), first]:
        ours, theirs = torch.zeros(8, device=device), torch.zeros(8)
        assert torch.equal(g(*parts[k](ours)).cpu(), f(*parts[k](theirs))), k
        assert torch.equal(ours.cpu(), theirs), k


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.usefixtures("graphs")
def test_gradients_go_through_inputs_that_share_memory_and_are_written(first):
    def f(x, y, w):
        x.add_(1)
        return (w * y).sum()

    g = compiled(f)
    g(torch.ones(4), torch.ones(4), torch.ones(4, requires_grad=True)).backward()
    for begin in (first, 4, 0, 2, 4):
        base, w = torch.ones(8), torch.ones(4, requires_grad=True)
        g(base[:4], base[begin : begin + 4], w).backward()
        expected = torch.ones(8)
        expected[:4] += 1
        assert torch.equal(w.grad, expected[begin : begin + 4])


@pytest.mark.parametrize("device", ["cpu", "ltc"])
@pytest.mark.usefixtures("graphs")
def test_the_data_of_an_input_is_set(device):
    def f(x):
        x.data = x.data * 2
        return x + 1

    g = compiled(f)
    for _ in range(3):
        ours, theirs = torch.arange(6.0, device=device), torch.arange(6.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.equal(g(ours).cpu(), f(theirs))
        assert torch.equal(ours.cpu(), theirs)


def test_sparse_tensors_stay_with_the_cpu(graphs):
    g = compiled(lambda a, x: torch.sparse.mm(a, x) + 1)
    a, x = torch.eye(3).to_sparse(), torch.randn(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            torch.testing.assert_close(g(a, x), x + 1)


def test_lengths_that_vary_are_programs_of_one_graph(graphs):
    g = compiled(lambda x: torch.softmax(x * 2, -1).cumsum(0), dynamic=True)
    for _ in range(2):
        for n in (2, 3, 5, 8, 13):
            x = torch.randn(n, 4)
            torch.testing.assert_close(g(x), torch.softmax(x * 2, -1).cumsum(0))
    assert all_ran(graphs) and len(graphs) == 1 and len(graphs[0].programs) == 5


def test_only_the_latest_programs_are_kept(graphs, monkeypatch):
    monkeypatch.setattr("torch_ltc._host_graph.MAX_PROGRAMS", 3)
    g = compiled(lambda x: x + 1, dynamic=True)
    for n in (2, 3, 4, 5, 2, 3):
        assert torch.equal(g(torch.ones(n)), torch.full((n,), 2.0))
    assert len(graphs[0].programs) == 3


def test_inputs_are_not_copied_and_nothing_is_recorded_again(graphs):
    g = compiled(lambda x, y: (x @ y).relu())
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    g(x, y)

    def counters():
        return {name: torch_ltc.metrics.counter_value(name) for name in torch_ltc.metrics.counter_names()}

    before, memory = counters(), torch.ltc.memory_allocated()
    for _ in range(5):
        g(x, y)
    changed = {name for name, count in counters().items() if count != before.get(name)}
    assert not {name for name in changed if "ToDevice" in name or "Compile" in name or "Record" in name}, changed
    assert torch_ltc._ltc.pending_count() == 0 and torch.ltc.memory_allocated() == memory
    (recorded,) = graphs[0].programs
    assert "aten::mm" in recorded.program.text()


def test_constants_of_a_graph_are_inputs(graphs):
    def f(x):
        return x * torch.tensor([1.0, 2.0]) + torch.arange(2) + torch.full((2,), 0.5)

    g = compiled(f)
    for _ in range(3):
        assert torch.equal(g(torch.ones(2)), f(torch.ones(2)))
    assert all_ran(graphs)


def test_errors_are_those_of_eager_execution(graphs):
    g = compiled(lambda table, at: table.index_select(0, at) + 1)
    table = torch.randn(4, 2)
    for _ in range(2):
        assert torch.equal(g(table, torch.tensor([1, 3])), table[[1, 3]] + 1)
        with pytest.raises(IndexError, match="out of range"):
            g(table, torch.tensor([1, 9]))
    assert torch.equal(g(table, torch.tensor([0, 2])), table[[0, 2]] + 1)
    torch_ltc.mark_step(wait=True)


def _parts(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Rows up to each end times 1, 2, ...: it reads where they end."""
    found, start = torch.zeros_like(x), 0
    for i, end in enumerate(ends.tolist()):
        found[start:end] = x[start:end] * (i + 1)
        start = end
    return found


def _mean_if_any(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return x.mean(0) if (ends > 1).any() else x.sum(0)


@pytest.mark.parametrize(("function", "like"), [(_parts, lambda x: x), (_mean_if_any, lambda x: x[0])])
@pytest.mark.parametrize("ends", [lambda sizes: sizes, lambda sizes: sizes.cumsum(0)])
def test_an_operator_of_ones_own_that_reads_values_is_not_recorded_with_them(graphs, function, like, ends):
    with torch.library._scoped_library("ltc_test", "FRAGMENT") as library:
        library.define("reads(Tensor x, Tensor ends) -> Tensor")
        library.impl("reads", function, "CompositeExplicitAutograd")
        library._register_fake("reads", lambda x, ends: torch.empty_like(like(x)))
        whole = lambda x, sizes: torch.ops.ltc_test.reads(x, ends(sizes)) + 1
        g = compiled(whole)
        x = torch.randn(4, 3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for sizes in ([2, 2], [1, 3], [0, 1]):
                sizes = torch.tensor(sizes)
                assert torch.equal(g(x, sizes), whole(x, sizes))
    assert any("it reads a value" in str(one.message) for one in told)
    assert [made.counts[0] for made in graphs] == [0]


def test_what_is_no_program_runs_as_it_is_and_says_why(graphs):
    g = compiled(lambda x: torch.nonzero(x).sum() + x.sum())
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        with pytest.warns(UserWarning, match="a graph runs as it is on the CPU: "):
            assert g(torch.tensor([0.0, 2.0, 3.0])) == 8
        assert g(torch.tensor([5.0, 0.0, 0.0])) == 5
    assert len(graphs) == 1 and graphs[0].refusal and graphs[0].counts[0] == 0 < graphs[0].counts[1]


def test_operators_of_other_packages_run_within_programs_each_time(graphs):
    scale = [3]

    @torch.library.custom_op("ltc_test::host_only", mutates_args=(), device_types="cpu")
    def host_only(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * scale[0])

    host_only.register_fake(torch.empty_like)
    g = compiled(lambda x: host_only(x) + 1)
    for k in range(3):
        scale[0] = k
        assert torch.equal(g(torch.full((2,), 5.0)), torch.full((2,), 5.0 * k + 1))
    assert all_ran(graphs)


def test_threads_call_one_function(graphs):
    g = compiled(lambda x: (x @ x).tanh() + x)
    g(torch.eye(8))
    failures = []

    def run(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(8, 8, generator=generator)
            if not torch.allclose(g(x), (x @ x).tanh() + x, atol=1e-5):
                failures.append(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_autocast_is_that_of_the_compiled_function(graphs):
    model, x = nn.Linear(8, 8), torch.randn(4, 8)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    g = compiled(f)
    for _ in range(3):
        ours = g(x)
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours, f(x))
    assert all_ran(graphs)


def test_graphs_over_both_devices_run(graphs):
    def f(x, y):
        return (x * 2).cpu() + y

    g = compiled(f)
    for _ in range(3):
        x, y = torch.ones(3, device="ltc"), torch.ones(3)
        assert torch.equal(g(x, y), torch.full((3,), 3.0))
    assert not graphs


def test_a_captured_step_that_runs_such_a_program_is_recorded_each_time(graphs):
    scale = compiled(lambda x: x * 2)
    table = torch.ones(3)
    scale(table)

    def f(x):
        return x + scale(table).to("ltc")

    step = torch_ltc.compile(f)
    for k in range(6):
        table.fill_(k)
        assert torch.equal(step(torch.zeros(3, device="ltc")).cpu(), torch.full((3,), 2.0 * k))


def test_steps_replay_after_a_captured_step_ran_a_compiled_function(graphs):
    scale = compiled(lambda x: x * 2)
    outer = torch_ltc.compile(lambda x: x + scale(torch.ones(3)).to("ltc"))
    for _ in range(5):
        outer(torch.zeros(3, device="ltc"))

    model = torch.nn.Linear(3, 3).to("ltc")
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch_ltc.compile
    def step(x):
        optimiser.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimiser.step()
        return loss.detach()

    for _ in range(8):
        step(torch.ones(2, 3, device="ltc"))
    assert step.counts[0] >= 3, step.explain()
