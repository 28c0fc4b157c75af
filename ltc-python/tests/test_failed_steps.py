"""A call that fails on values leaves what eager leaves, and says the same wherever somebody waits."""

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F


def after(waits, device="ltc"):
    """What a wait for a failed program raises."""
    table = torch.ones(4, 2, device=device)
    torch_ltc.mark_step()
    picked = table[torch.tensor([9]).to(device)]
    with pytest.raises(Exception) as raised:
        waits(picked)
    return type(raised.value), str(raised.value)


def test_every_wait_raises_eagers_class_with_the_same_words():
    waits = {
        "cpu": lambda t: t.cpu(),
        "item": lambda t: t.sum().item(),
        "synchronize": lambda t: torch.ltc.synchronize(),
        "mark_step": lambda t: torch_ltc.mark_step(wait=True),
        "fallback": lambda t: t.nonzero(),
        "another tensor": lambda t: (torch.ones(2, device="ltc") + 1).cpu(),
    }
    told = {name: after(wait) for name, wait in waits.items()}
    with pytest.raises(IndexError) as eager:
        torch.ones(4, 2)[torch.tensor([9])]
    for name, (kind, text) in told.items():
        assert kind is IndexError, (name, kind, text)
        assert str(eager.value).splitlines()[0] in text, (name, text)
        assert text.splitlines()[0] == told["cpu"][1].splitlines()[0], (name, text)


def losses(device, compiled, optimiser, bad):
    torch.manual_seed(0)
    embedding, norm, head = nn.Embedding(10, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)
    net = nn.Sequential(embedding, norm, nn.ReLU(), head).to(device)
    opt = optimiser(net.parameters())

    def step(words, labels):
        opt.zero_grad()
        loss = F.cross_entropy(net(words), labels)
        loss.backward()
        opt.step()
        return loss.detach()

    call = torch_ltc.compile(step) if compiled else step
    said = []
    for i in range(12):
        words, labels = torch.tensor([1, 2, 3, i % 5]), torch.tensor([0, 1, 2, 1])
        if i in bad:
            words, labels = (words + 50, labels) if i % 2 else (words, labels + 9)
        try:
            said.append(call(words.to(device), labels.to(device)).item())
        except IndexError as e:
            said.append(str(e).splitlines()[0].split(" (raised")[0])
    state = [v.cpu().double() for v in [*net.parameters(), *net.buffers()]]
    state += [v.cpu().double() for s in opt.state.values() for k, v in s.items() if torch.is_tensor(v) and k != "step"]
    return said, state


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "optimiser",
    # Not Adam: it counts steps on the host, where nothing is undone.
    [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.RMSprop(p, 1e-2)],
    ids=["sgd", "rmsprop"],
)
@pytest.mark.parametrize("bad", [(2,), (7, 8), (9, 10)])
def test_a_bad_batch_costs_one_batch(compiled, optimiser, bad):
    (eager, expected), (lazy, got) = losses("cpu", False, optimiser, bad), losses("ltc", compiled, optimiser, bad)
    for i, (a, b) in enumerate(zip(eager, lazy)):
        assert a == b if isinstance(a, str) else b == pytest.approx(a, rel=1e-4), (i, eager, lazy)
    for a, b in zip(expected, got):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def optimisers():
    optim = torch.optim
    kinds = [optim.Adadelta, optim.Adagrad, optim.Adam, optim.Adamax, optim.AdamW, optim.ASGD, optim.NAdam, optim.RAdam]
    named = {kind.__name__: kind for kind in [*kinds, optim.RMSprop, optim.Rprop]}
    return {**named, "momentum": lambda p, lr: optim.SGD(p, lr, momentum=0.9)}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", optimisers())
def test_a_bad_first_batch_leaves_an_optimiser_no_state(name, compiled):
    kind = optimisers()[name]
    (eager, expected), (lazy, got) = [
        losses(device, compiled and device == "ltc", lambda p: kind(p, lr=1e-2), (0, 1)) for device in ("cpu", "ltc")
    ]
    for i, (a, b) in enumerate(zip(eager, lazy)):
        assert a == b if isinstance(a, str) else b == pytest.approx(a, rel=1e-3), (i, eager, lazy)
    for a, b in zip(expected, got):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


READS = {
    "loss": lambda net, loss: loss.item(),
    "host decides": lambda net, loss: loss.item() if torch.isfinite(loss) else 0.0,
    "parameter": lambda net, loss: float(next(net.parameters()).detach().sum()),
    "list": lambda net, loss: loss.tolist(),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("bad", range(6))
def test_a_bad_batch_is_told_once_by_a_compiled_step_that_reads(name, bad):
    """While a step is captured, what it reads is computed on the side: the rest fails with it."""

    def said(device, wrap):
        torch.manual_seed(0)
        net = nn.Linear(4, 3).to(device)
        opt, seen = torch.optim.SGD(net.parameters(), 0.1), []

        def step(x, labels):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), labels)
            loss.backward()
            opt.step()
            return READS[name](net, loss.detach())

        step = wrap(step)
        for i in range(9):
            labels = torch.tensor([0, 77 if i == bad else 1, 2])
            try:
                seen.append(step(torch.full((3, 4), i / 3).to(device), labels.to(device)))
            except IndexError:
                seen.append(-1.0)
            if i % 2:
                seen.append(net.weight.sum().item())
        return seen

    expected = said("cpu", lambda f: f)
    assert said("ltc", lambda f: f) == pytest.approx(expected, rel=1e-4)
    assert said("ltc", torch_ltc.compile) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_bad_first_batch_leaves_no_state_where_another_net_has_a_sparse_gradient(compiled):
    words = nn.Embedding(4, 2, sparse=True).to("ltc")
    words(torch.tensor([1, 3]).to("ltc")).sum().backward()
    test_a_bad_first_batch_leaves_an_optimiser_no_state("Adam", compiled)
    assert words.weight.grad.to_dense().sum().item() == 4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("accumulated", [1, 2])
def test_gradients_that_only_a_bad_batch_made_are_gone(accumulated, sparse):
    """Where the failure is told between the way back and the optimiser, nobody clears them."""

    def said(device):
        torch.manual_seed(0)
        embedding = nn.Embedding(10, 4, sparse=sparse)
        net = nn.Sequential(embedding, nn.Flatten(), nn.Linear(16, 3)).to(device)
        opt, losses = torch.optim.SGD(net.parameters(), 0.1), []
        for i in range(10):
            words, labels = torch.tensor([[1, 2, 3, i % 5]] * 2), torch.tensor([0, 2])
            try:
                loss = F.cross_entropy(net((words + 50 * (i in (3, 6))).to(device)), labels.to(device))
                loss.backward()
                losses.append(loss.item())
            except IndexError:
                losses.append(-1)
                continue
            if i % accumulated == 0:
                opt.step()
                opt.zero_grad()
        return losses

    assert said("ltc") == pytest.approx(said("cpu"), rel=1e-5)


def test_training_goes_on_where_a_bad_first_batch_is_noticed_late():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(16, 3)).to("ltc")
    opt = torch.optim.Adam(net.parameters(), 0.01)

    def step(words):
        opt.zero_grad()
        loss = F.cross_entropy(net(words.to("ltc")), torch.tensor([0, 2]).to("ltc"))
        loss.backward()
        opt.step()
        torch_ltc.mark_step()
        return loss.detach()

    before = [p.cpu() for p in net.parameters()]
    for i in range(4):
        step(torch.tensor([[1, 2, 3, 99 if i == 0 else 4]] * 2))
    with pytest.raises(IndexError):
        torch_ltc.mark_step(wait=True)
    assert not opt.state
    for a, b in zip(before, net.parameters()):
        torch.testing.assert_close(a, b.cpu())
    first = [step(torch.tensor([[1, 2, 3, 4]] * 2)).item() for _ in range(20)]
    assert first[-1] < first[0]


def test_a_state_that_is_another_tensor_at_each_step_is_not_forgotten():
    """What such an optimiser had is gone with the tensor: to begin anew would hide that."""

    class Replacing(torch.optim.Optimizer):
        def step(self):
            for p in self.param_groups[0]["params"]:
                old = self.state[p].get("average", torch.zeros_like(p))
                self.state[p]["average"] = 0.9 * old + p.grad
                p.data.sub_(self.state[p]["average"], alpha=0.1)

    w = nn.Parameter(torch.ones(3, device="ltc"))
    opt, rows = Replacing([w], {}), torch.arange(12.0).reshape(4, 3).to("ltc")
    for row in (1, 9, 2):
        opt.zero_grad()
        loss = (rows[torch.tensor([row]).to("ltc")] * w).sum()
        loss.backward()
        opt.step()
        if row == 1:
            loss.item()
        else:
            with pytest.raises(IndexError):
                torch_ltc.mark_step(wait=True)
    with pytest.raises(IndexError):
        opt.state[w]["average"].cpu()
    opt.state.clear()
    opt.zero_grad()
    (rows[1] * w).sum().backward()
    opt.step()
    assert torch.isfinite(w.cpu()).all()


BAD_DRAWS = {
    "normal": lambda d: torch.normal(torch.zeros(3, device=d), -torch.ones(3, device=d)),
    "normal_": lambda d: torch.empty(3, device=d).normal_(0, -1),
    "bernoulli": lambda d: torch.bernoulli(torch.full((3,), 2.0, device=d)),
    "multinomial": lambda d: torch.multinomial(torch.tensor([-1.0, 2.0], device=d), 1),
    "poisson": lambda d: torch.poisson(torch.tensor([-1.0], device=d)),
}


@pytest.mark.parametrize("draw", BAD_DRAWS.values(), ids=BAD_DRAWS)
def test_draws_go_on_after_one_that_failed(draw):
    def run(device):
        torch.manual_seed(3)
        if device == "ltc":
            torch.ltc.manual_seed(3)
        said = [torch.rand(3, device=device).cpu()]
        with pytest.raises(RuntimeError):
            draw(device).cpu()
        said.append(torch.rand(3, device=device).cpu())
        said.append(F.dropout(torch.ones(8, device=device), 0.5).cpu())
        return said

    for a, b in zip(run("cpu"), run("ltc")):
        assert torch.equal(a, b)


def test_what_is_written_before_the_failing_call_stays_and_the_rest_has_not_happened():
    x = torch.zeros(4, device="ltc")
    torch_ltc.mark_step()
    x.add_(1)
    lost = x[torch.tensor([7]).to("ltc")]
    x.add_(10)
    y = x + 1
    torch_ltc.mark_step()
    x.add_(100)
    z = x + 1
    with pytest.raises(IndexError):
        z.cpu()
    assert x.tolist() == [101.0] * 4 and z.tolist() == [102.0] * 4
    for t in (lost, y):
        with pytest.raises(IndexError):
            t.cpu()


NEW_MEMORY = {
    "all of it": lambda d: torch.empty(4, device=d),
    "elements that are not there": lambda d: torch.empty(0, 3, device=d),
    "a view of more": lambda d: torch.empty(8, device=d)[2:6],
    "grown": lambda d: torch.ones(2, device=d).resize_(0).resize_(4),
}
FIRST_WRITES = {
    "filled": lambda x: x.fill_(7.0),
    "copied to": lambda x: x.copy_(torch.ones(x.shape, device=x.device)),
    "partly": lambda x: x[:1].fill_(7.0),
    "in place": lambda x: x.mul_(2),
    "twice": lambda x: x.zero_().add_(1),
}


@pytest.mark.parametrize("memory", NEW_MEMORY)
@pytest.mark.parametrize("write", FIRST_WRITES)
@pytest.mark.parametrize("syncs", [False, True])
def test_memory_that_nobody_wrote_to_is_just_memory_after_a_failed_call(memory, write, syncs):
    x = NEW_MEMORY[memory]("ltc")
    if syncs:
        torch_ltc.mark_step()
    lost = torch.ones(2, device="ltc")[torch.tensor([5]).to("ltc")]
    if syncs:
        torch_ltc.mark_step()
    FIRST_WRITES[write](x)
    made = torch.empty(4, device="ltc").copy_(lost.expand(4))
    with pytest.raises(IndexError):
        torch_ltc.mark_step(wait=True)
    assert x.cpu().shape == x.shape
    x[:1].fill_(3.0)
    assert x[:1].tolist() == torch.full_like(x.cpu()[:1], 3.0).tolist()
    with pytest.raises(IndexError):  # there was none yet when the call failed
        made.cpu()


FAILING_WITH_OUT = {
    "mm": lambda a, b, o: torch.mm(a(2, 3), b(3, 4), out=o),
    "bmm": lambda a, b, o: torch.bmm(a(5, 2, 3), b(5, 3, 4), out=o),
    "addmm": lambda a, b, o: torch.addmm(a(4), a(2, 3), b(3, 4), out=o),
    "baddbmm": lambda a, b, o: torch.baddbmm(a(1, 2, 4), a(5, 2, 3), b(5, 3, 4), out=o),
    "addmv": lambda a, b, o: torch.addmv(a(2), a(2, 3), b(3), out=o),
    "addcmul": lambda a, b, o: torch.addcmul(a(2, 3), b(2, 1), a(4), out=o),
    "cat": lambda a, b, o: torch.cat([a(2, 3), b(2, 4)], out=o),
    "gather": lambda a, b, o: torch.gather(a(2, 3), 1, b(2, 5), out=o),
    "linalg.solve": lambda a, b, o: torch.linalg.solve(a(3, 3), b(3, 2), out=o),
    "lerp": lambda a, b, o: torch.lerp(a(2, 3), b(2, 3), 0.5, out=o),
    "index_select": lambda a, b, o: torch.index_select(a(2, 3), 1, b(2, 2), out=o),
    "div": lambda a, b, o: torch.bitwise_and(a(2, 3), b(2, 3), out=o),
    "cat of itself": lambda a, b, o: torch.cat([o, o], out=o),
    "stack of itself": lambda a, b, o: torch.stack([o, o, o], out=o),
}


@pytest.mark.parametrize("name", FAILING_WITH_OUT)
@pytest.mark.filterwarnings("ignore")
def test_a_call_that_fails_leaves_its_output_the_shape_that_eager_leaves(name):
    def run(device):
        make = lambda dtype: lambda *sizes: torch.ones(sizes, dtype=dtype, device=device)
        out = torch.zeros(7, device=device)
        with pytest.raises(Exception) as raised:
            FAILING_WITH_OUT[name](make(torch.float32), make(torch.float64), out)
            out.cpu()
        return raised.type, out.shape, out.stride()

    assert run("ltc") == run("cpu")


def test_a_copy_of_one_tensor_into_another_is_undone_in_the_other_only():
    target, source = torch.zeros(3, device="ltc"), torch.ones(3, device="ltc")
    torch_ltc.mark_step(wait=True)
    lost = source[torch.tensor([7]).to("ltc")]
    target.copy_(source)
    with pytest.raises(IndexError):
        lost.cpu()
    assert target.tolist() == [0.0] * 3 and source.tolist() == [1.0] * 3


def test_a_call_that_fails_halfway_leaves_what_it_wrote():
    def left(device):
        a, b, c = torch.tensor([1.0, 2.0]).to(device), torch.tensor([True]).to(device), torch.tensor([3.0]).to(device)
        with pytest.raises(RuntimeError, match="on a bool tensor"):
            torch._foreach_neg_([a, b, c])
        return [(x.tolist(), x._version) for x in (a, b, c)]

    assert left("ltc") == left("cpu") == [([-1.0, -2.0], 1), ([True], 0), ([3.0], 0)]


@pytest.mark.parametrize(
    ("made", "view"),
    [
        (lambda: torch.ones(2, 3, dtype=torch.complex64), torch.view_as_real),
        (lambda: torch.ones(2, 4), lambda t: t.view(torch.int32)),
        (lambda: torch.ones(4, dtype=torch.half), lambda t: t.view(torch.int16)),
        (lambda: torch.ones(2, 4), lambda t: torch.view_as_complex(t.view(2, 2, 2))),
        (lambda: torch.ones(3, 2).t(), lambda t: t.view(torch.int32)),
    ],
)
def test_a_write_through_a_view_of_another_dtype_is_undone(made, view):
    tensor = made().to("ltc")
    drawn = torch.normal(torch.zeros(2, device="ltc"), torch.full((2,), -1.0, device="ltc"))
    view(tensor).mul_(2)
    with pytest.raises(RuntimeError, match="normal expects"):
        torch_ltc.mark_step(wait=True)
    del drawn
    assert torch.equal(tensor.cpu(), made())
    view(tensor).mul_(2)
    on_cpu = made()
    view(on_cpu).mul_(2)
    assert torch.equal(tensor.cpu(), on_cpu)


def trained_without_memory(device, compiled, optimiser):
    """Losses and parameters of a training with a batch that finds no memory; no operator of it fails on values."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    opt = optimiser(net.parameters())

    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    call = torch_ltc.compile(step) if compiled else step
    said = []
    for i in range(12):
        x = torch.tensor([[1.0, i], [2.0, 1.0], [i, 3.0]]).to(device)
        try:
            # More bytes than there are addresses.
            said.append(call(x.repeat(2**46, 1) if i in (4, 8, 9) else x).item())
        except RuntimeError as e:
            assert "memory" in str(e), e
            said.append("no memory")
    # A count that does not depend on the batch goes on where a program of its own has failed before the step's.
    state = [x.tolist() for x in (*net.parameters(), *net.buffers()) if x.is_floating_point()]
    return (
        said,
        state,
        [[x.tolist() for k, x in s.items() if torch.is_tensor(x) and k != "step"] for s in opt.state.values()],
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "optimiser",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
        lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    ],
    ids=["plain", "momentum", "rmsprop"],
)
def test_a_batch_that_finds_no_memory_costs_one_batch(optimiser, compiled):
    said, state, moments = trained_without_memory("cpu", False, optimiser)
    assert said.count("no memory") == 3
    got = trained_without_memory("ltc", compiled, optimiser)
    assert [x if type(x) is str else pytest.approx(x, rel=1e-4) for x in said] == got[0]
    for a, b in zip((state, moments), got[1:], strict=True):
        torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-5)


def test_a_storage_that_was_written_twice_behind_a_call_without_memory_is_never_half_undone():
    """Which of the writes came before it is known only of the first: what is not known stays an error."""

    def run(device):
        x, a, b = torch.ones(2, 2).to(device), torch.ones(2).to(device), torch.ones(2).to(device)
        if device == "ltc":
            torch_ltc.mark_step(wait=True)
        a.add_(1)
        try:
            lost = x.repeat(2**46, 1).add(1).sum(0)
            a.add_(lost)
            b.add_(lost).mul_(3)
            (a + b).tolist()
        except RuntimeError:
            pass
        return a, b

    (a, b), (c, d) = run("cpu"), run("ltc")
    assert a.tolist() == [2.0, 2.0] and b.tolist() == d.tolist() == [1.0, 1.0]
    try:
        assert c.tolist() == a.tolist()
    except RuntimeError as e:
        assert "memory" in str(e), e
