"""Values of libtorch's operators on `cuda` over the stand-in: the CPU's, there when CUDA would have them."""

import importlib.util

import pytest
import stand_in
import torch
from stand_in import LATE, run
from torch import nn


def same(got, want):
    got = [got] if isinstance(got, torch.Tensor) else got
    want = [want] if isinstance(want, torch.Tensor) else want
    return all(torch.equal(g.cpu(), w) for g, w in zip(got, want, strict=True))


def a(device):
    return torch.arange(-6.0, 6.0, device="cpu").reshape(3, 4).to(device)


def in_place(d):
    x = a(d)
    x.add_(1).mul_(x)[1:, ::2].sub_(3)
    x.t().clamp_(min=-2)
    return x


def into_out(d):
    out, other = torch.empty(0, device=d), torch.empty(4, 3, device=d).t()
    torch.add(a(d), 1, out=out)
    torch.mm(a(d), a(d).t(), out=other[:, :3])
    return [out, other[:, :3]]


def several_results(d):
    values, indices = a(d).sort(1, descending=True)
    return [values, indices, *torch.var_mean(a(d), 1), *a(d).topk(2), *torch.frexp(a(d)), *a(d).split(2, 1)]


def that_read_themselves(d):
    x = a(d).abs()
    outs = [torch.empty(n, dtype=torch.int64, device=d) for n in ((0,), (0,), (2, 11))]
    for given, out in zip((x, x * 0, x), (*outs[:2], outs[2].t()), strict=True):
        assert torch.nonzero(given, out=out) is out
    unique = torch.unique_consecutive(x.flatten(), return_counts=True)
    return [x.nonzero(), x[x > 2], torch.unique(x), *unique, *outs]


def numbers(d):
    x = a(d)
    return torch.tensor([x.sum().item(), float(x[0, 0]), float(torch.equal(x, x.clone())), float((x > 0).any())])


def indexed(d):
    x, at = a(d), torch.tensor([0, 2, 0]).to(d)
    x[at, at] = 9
    x.index_add_(0, at, torch.ones(3, 4).to(d))
    x.index_put_((at,), torch.tensor(1.0).to(d), accumulate=True)
    return [x, x.gather(1, at.view(3, 1)), x.scatter_add(0, at.view(1, 3), x), x[at], torch.where(x > 0, x, -x)]


def layers(d):
    x = a(d)
    return [
        torch.softmax(x, 1),
        nn.functional.layer_norm(x, (4,)),
        nn.functional.embedding(torch.tensor([1, 0]).to(d), x),
        nn.functional.cross_entropy(x, torch.tensor([0, 1, 2]).to(d)),
        torch.addmm(x, x[:, :3], x),
        torch.cat([x, x]),
        x.to(torch.bfloat16).float(),
        torch.full((2, 2), 3.0, device=d) + torch.zeros(2, 2, device=d),
        torch.cumsum(x, 1),
    ]


def lists(d):
    xs = [a(d), a(d)[0]]
    torch._foreach_add_(xs, 2)
    return [*torch._foreach_mul(xs, xs), *xs]


CASES = [in_place, into_out, several_results, that_read_themselves, numbers, indexed, layers, lists]


@pytest.mark.parametrize("case", CASES)
def test_values_are_the_cpus(case):
    with stand_in.shadow() as count:
        assert same(case("cuda"), case("cpu"))
        assert count() > 0


def test_values_come_when_the_stream_gets_there():
    with stand_in.shadow():
        pinned = torch.zeros(3).pin_memory()
        pinned.copy_(torch.ones(3, device="cuda") + 1, non_blocking=True)
        assert pinned.tolist() == ([0] * 3 if LATE else [2] * 3)
        torch.cuda.synchronize()
        assert pinned.tolist() == [2] * 3


def test_numbers_are_taken_when_a_kernel_is_launched():
    with stand_in.shadow():
        number = torch.tensor(2.0)
        x = torch.ones(3, device="cuda") * number
        number.fill_(5)
        assert x.tolist() == [2] * 3


def test_captured_operators_are_replayed():
    with stand_in.shadow():
        x, graph = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = (x + 1).mul_(2)
        for value in (1.0, 2.0):
            x.fill_(value)
            graph.replay()
            assert y.tolist() == [(value + 1) * 2] * 3


def test_draws_follow_from_the_generator():
    with stand_in.shadow():
        torch.cuda.manual_seed(1)
        first = [torch.rand(100, device="cuda"), nn.functional.dropout(torch.ones(100, device="cuda"))]
        second = torch.rand(100, device="cuda")
        torch.cuda.manual_seed(1)
        again = [torch.rand(100, device="cuda"), nn.functional.dropout(torch.ones(100, device="cuda"))]
        assert same(first, [x.cpu() for x in again]) and not torch.equal(first[0], second)
        assert 0 <= second.min() and second.max() < 1 and set(first[1].tolist()) == {0, 2}
        # The process's own generator is left alone.
        torch.manual_seed(3)
        nn.functional.dropout(torch.ones(100, device="cuda")).cpu()
        drawn = torch.rand(1)
        torch.manual_seed(3)
        assert torch.equal(drawn, torch.rand(1))


BAD_INDICES = {
    "index_select": "table.index_select(0, at)",
    "gather": "table.gather(0, at.view(1, 1))",
    "scatter_add_": "table.scatter_add_(0, at.view(1, 1), table.clone())",
    "nll_loss": "torch.nn.functional.nll_loss(table[:1], at)",
}


@pytest.mark.parametrize("call", BAD_INDICES)
def test_a_bad_index_ends_the_device(call):
    text = f"""
with shadow(complete=False):
    table, at = torch.ones(3, 2).cuda(), torch.tensor([7]).cuda()
    try:
        {BAD_INDICES[call]}.cpu()
        print("no error")
    except torch.AcceleratorError as e:
        print(str(e).splitlines()[0])
"""
    assert run(text) == "CUDA error: device-side assert triggered"


def losses(device, steps=6):
    """Of a small network, and how often its steps waited for the device."""
    torch.manual_seed(0)
    convolution = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*convolution, nn.Linear(100, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 10))
    data, target = torch.randn(8, 1, 12, 12), torch.randint(10, (8,))
    net, found = net.to(device), []
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-2)
    stand_in.reset()
    for _ in range(steps):
        optimiser.zero_grad()
        out = net(data.to(device, non_blocking=True))
        loss = nn.functional.cross_entropy(out, target.to(device, non_blocking=True))
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    waits = stand_in.waits()
    return torch.stack(found).cpu(), waits


def test_a_network_that_is_trained_has_the_cpus_losses():
    """But for the last bits: on a CPU torch may choose oneDNN's convolution, which adds up in another order."""
    want, _ = losses("cpu")
    with stand_in.shadow() as count:
        got, waits = losses("cuda")
        torch.testing.assert_close(got, want, rtol=1e-5, atol=0.0)
        assert count() > 300
        # No step reads a value, so none waits.
        assert waits == 0


@pytest.mark.skipif(importlib.util.find_spec("torch_ltc") is None, reason="torch_ltc is not installed here")
def test_gradients_on_cuda_fail_beside_torch_ltc():
    """What README and docs/python.md say. Once this fails, PyTorch has mended it: they are to say so."""
    text = """
import torch_ltc
with shadow(complete=False):
    x = torch.ones(3, device="cuda", requires_grad=True)
    try:
        (x * 2).sum().backward()
        print("no error", flush=True)
    except RuntimeError as e:
        print("opt_ready_stream && opt_parent_stream" in str(e), flush=True)
os._exit(0)  # its threads were not joined
"""
    assert run(text) == "True"
