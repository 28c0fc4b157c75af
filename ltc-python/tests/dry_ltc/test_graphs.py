"""Programs that are taken down as graphs: what they give, that they are, and what has none."""

import pytest
import stand_in
import torch
import torch_ltc
from small_networks import NETWORKS, train
from test_kernels import child
from torch import nn

GPU = "ltc:1"


def graphs():
    """How often a graph was put on a stream since the last reset."""
    return stand_in.launches().count("a graph")


@pytest.fixture(autouse=True)
def _from_here():
    torch.ltc.synchronize(1)
    stand_in.reset()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("compiled", [False, True], ids=["recorded", "compiled"])
def test_networks_train_by_graphs(network, compiled):
    losses, parameters, _ = train(network, GPU, compiled, 14)
    # By libtorch's kernels, the numbers that Adam has in each step are parts of a graph.
    assert (graphs() == 0) if network == "perceptron" else (graphs() >= 5)
    want, wanted, _ = train(network, "cpu", steps=14)
    torch.testing.assert_close(losses, want, rtol=1e-5, atol=1e-5)
    for p, q in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-5)


def test_results_are_not_written_again_by_the_next_run():
    x = torch.arange(12.0).reshape(3, 4)
    there, kept = x.to(GPU), []
    for _ in range(12):
        kept.append((there * 2).exp().sum(0))
        torch_ltc.mark_step()
    assert graphs() >= 3
    assert all(torch.equal(y.cpu(), (x * 2).exp().sum(0)) for y in kept)


def test_batches_that_lie_elsewhere_each_time_are_copied_in():
    batches = [torch.arange(12.0).reshape(3, 4) + i for i in range(14)]
    there, kept = [], []
    for batch in batches:
        there.append(batch.to(GPU))  # None of them is let go, so each lies elsewhere.
        kept.append((there[-1] * 2 - 1).cumsum(1))
        torch_ltc.mark_step()
    assert graphs() >= 5
    for y, batch in zip(kept, batches, strict=True):
        assert torch.equal(y.cpu(), (batch * 2 - 1).cumsum(1))


def stepped(weight, device, steps, moved=lambda step: False):
    """What a weight is that is written in place, and lies elsewhere after some steps."""
    w, elsewhere, seen = weight.to(device), [], []
    for step in range(steps):
        if moved(step):
            elsewhere.append(w)
            w = w.clone()
            if device != "cpu":
                torch_ltc.mark_step()
        w.mul_(0.5).add_(1).cumsum_(0)
        seen.append(w.sum())
        if device != "cpu":
            torch_ltc.mark_step()
    return [s.item() for s in seen], w.cpu()


@pytest.mark.parametrize("moved", [(), (9,), (9, 10, 16, 24, 30, 31, 32)], ids=["never", "once", "often"])
def test_weights_are_written_where_they_lie(moved):
    want, last = stepped(torch.arange(6.0), "cpu", 40, moved.__contains__)
    got, there = stepped(torch.arange(6.0), GPU, 40, moved.__contains__)
    assert graphs() >= 5
    assert got == want and torch.equal(there, last)


def test_what_somebody_else_holds_is_not_written():
    """A view or a copy of a weight that was kept has the values that it had."""
    w, want, kept, wanted = torch.ones(6).to(GPU), torch.ones(6), [], []
    for step in range(24):
        if step % 5 == 4:
            kept.append(w.detach().clone()), wanted.append(want.clone())
        w, want = (w * 1.5).add_(step).cumsum(0).clamp_(max=50), (want * 1.5).add_(step).cumsum(0).clamp_(max=50)
        torch_ltc.mark_step()
    assert torch.equal(w.cpu(), want)
    assert all(torch.equal(k.cpu(), v) for k, v in zip(kept, wanted, strict=True))


@pytest.mark.parametrize("part", [lambda x: x.view(-1), lambda x: x[0], lambda x: x.t()])
def test_views_of_what_is_not_the_programs_to_write_are_not_written(part):
    step, before = torch_ltc.compile(part), torch_ltc.metrics.executions()["graph_runs"]
    for _ in range(12):
        x, factor = torch.ones(2, 2).to(GPU), torch.tensor(3.0).to(GPU).requires_grad_()
        shown, want = step(x), torch.ones(2, 2)
        shown.mul_(factor)
        part(want).mul_(3.0)
        assert torch.equal(x.cpu(), want)
    assert torch_ltc.metrics.executions()["graph_runs"] - before >= 4


def test_outputs_that_are_inputs_or_parts_of_them():
    x = torch.arange(24.0).reshape(4, 6)
    there, kept = x.to(GPU), []
    for _ in range(12):
        whole = there.view(24)
        kept.append((whole[3:9] * 2, there.t(), there[1:3].clone().neg_(), whole))
        torch_ltc.mark_step()
    for got in kept:
        want = (x.view(24)[3:9] * 2, x.t(), -x[1:3], x.view(24))
        assert all(torch.equal(g.cpu(), w) for g, w in zip(got, want, strict=True))


def test_numbers_of_our_kernels_are_replaced():
    """Adam's corrections of its first steps, and a learning rate, are others in each step."""
    text = """
def train(device, steps=16):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 5)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    losses, x = [], torch.linspace(-1, 1, 48).reshape(6, 8).sin().to(device)
    for _ in range(steps):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        schedule.step()
        losses.append(loss.detach())
        torch_ltc.mark_step()
    return torch.stack([loss.cpu() for loss in losses])

got, want = train(GPU), train("cpu")
print(torch.allclose(got, want, rtol=1e-4, atol=1e-6), stand_in.launches().count("a graph") >= 5)
"""
    printed, _ = child(text)
    assert printed == ["True", "True"]


def test_numbers_of_libtorchs_kernels_are_those_of_the_call():
    """By libtorch's kernels a number is part of a graph, which is then for that number alone."""
    x = torch.arange(6.0)
    there, kept = x.to(GPU), []
    for step in range(40):
        by = float(step // 20)
        kept.append((there * by + by).cumsum(0))
        torch_ltc.mark_step()
    assert graphs() >= 10
    for step, y in enumerate(kept):
        assert torch.equal(y.cpu(), (x * (step // 20) + step // 20).cumsum(0))


def test_what_waits_for_the_device_has_no_graph():
    x, declined = torch.arange(12.0), lambda: torch_ltc.metrics.executions()["graphs_declined"]
    there, kept, before = x.to(GPU), [], declined()
    for _ in range(10):
        kept.append(torch.histc(there * 2, 4) + 1)  # Without bounds, it reads the least and the most.
        torch_ltc.mark_step()
    assert graphs() == 0
    assert all(torch.equal(y.cpu(), torch.histc(x * 2, 4) + 1) for y in kept)
    assert declined() == before + 1


def test_draws_have_no_graph():
    torch.manual_seed(3)
    x = torch.ones(64).to(GPU)
    drawn = []
    for _ in range(10):
        drawn.append((nn.functional.dropout(x) + 1).relu())
        torch_ltc.mark_step()
    assert graphs() == 0
    assert len({tuple(d.cpu().tolist()) for d in drawn}) == 10


def test_without_memory_a_program_runs_as_ever():
    """No graph is made where its memory cannot be had, and nothing is lost."""
    x = torch.arange(1 << 20, dtype=torch.float32)
    for at in range(1, 6):
        there, kept = x.to(GPU), []
        for step in range(10):
            kept.append((there * (2 + at)).add_(1).cumsum(0)[-1:])
            if step == 5:
                torch.ltc.synchronize(1)
                stand_in.fail_allocation(at)
            torch_ltc.mark_step()
        stand_in.fail_allocation(0)
        want = (x * (2 + at)).add_(1).cumsum(0)[-1:]
        assert all(torch.allclose(y.cpu(), want) for y in kept)


def test_a_graph_that_is_refused_is_run_without():
    w, want = torch.ones(6).to(GPU), torch.ones(6)
    for step in range(16):
        if step == 10:
            assert graphs() >= 1
            stand_in.refuse_graph(1)
        w, want = (w * 1.5).add_(1).clamp_(max=50), (want * 1.5).add_(1).clamp_(max=50)
        torch_ltc.mark_step()
        torch.ltc.synchronize(1)
    stand_in.refuse_graph(0)
    assert torch.equal(w.cpu(), want)


def test_a_failure_before_a_program_costs_it_no_graph():
    """What depends on a failed value fails with it; the program has its graph for the next."""
    x, kept = torch.ones(8).to(GPU), []
    for step in range(24):
        given = x
        if step % 8 == 7:
            given = (x.expand(1 << 29, 8) + 1)[0]  # More than there is.
            torch_ltc.mark_step()
        made = (given * 2).add_(1).cumsum(0)
        torch_ltc.mark_step()
        if given is not x:
            with pytest.raises(torch.OutOfMemoryError):
                made.cpu()
        else:
            kept.append(made)
    assert graphs() >= 12
    assert all(torch.equal(y.cpu(), torch.full((8,), 3.0).cumsum(0)) for y in kept)


def test_the_switch():
    text = """
x = torch.arange(6.0).to(GPU)
for _ in range(12):
    y = (x * 2).exp().cumsum(0)
    torch_ltc.mark_step()
print(stand_in.launches().count("a graph"), y.sum().item() > 0)
"""
    for switch in ("1", "0"):
        printed, _ = child(text, LTC_CUDA_GRAPHS=switch)
        assert (int(printed[0]) > 2) == (switch == "1") and printed[1] == "True"


def test_threads_that_put_work_on_the_stream_while_a_program_is_taken_down():
    """Two devices of one GPU, each driven by a thread that also uploads and reads."""
    text = """
import threading
wrong = []

def run(device, k):
    x = torch.arange(60.0).reshape(6, 10) + k
    for step in range(40):
        batch = x + step
        y = (batch.to(device) * 2 - k).cumsum(1).exp2().log2()
        torch_ltc.mark_step()
        if step % 3 == 0 and not torch.allclose(y.cpu(), (batch * 2 - k).cumsum(1).exp2().log2()):
            wrong.append((device, step))

threads = [threading.Thread(target=run, args=(f"ltc:{i % 2}", i)) for i in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(len(wrong), stand_in.launches().count("a graph") > 0)
"""
    printed, _ = child(text, LTC_DEVICES="cuda:0,cuda:0")
    assert printed == ["0", "True"]
