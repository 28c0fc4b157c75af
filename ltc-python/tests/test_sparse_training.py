"""Programs with sparse tensors train on ltc as on the CPU, and compiled steps that have some are recorded."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from citizen import same
from sparse import COO, CSR, agree, coo, dense, moved
from torch import nn


class Graph(nn.Module):
    """The graph convolution of PyTorch's examples."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(5, 8) / 3), nn.Parameter(torch.randn(8, 3) / 3)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x, adjacency):
        x = F.relu(torch.spmm(adjacency, x @ self.first) + self.bias)
        x = F.dropout(x, 0.3, self.training)
        return F.log_softmax(torch.spmm(adjacency, x @ self.second), 1)


def adjacency(nodes=12):
    g = torch.Generator().manual_seed(4)
    a = (torch.rand(nodes, nodes, generator=g) < 0.3).float() + torch.eye(nodes)
    return a / a.sum(1, keepdim=True)


@pytest.mark.parametrize("where", ["cpu", "ltc"])
@pytest.mark.parametrize("layout", [COO, CSR])
def test_a_graph_network_trains_as_on_the_cpu(layout, where):
    def train(device, place):
        torch.manual_seed(3)
        model = Graph().to(device)
        x, y = torch.randn(12, 5).to(device), torch.randint(0, 3, (12,)).to(device)
        a = adjacency().to_sparse(layout=layout).to(place)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
        torch.manual_seed(5)  # of dropout
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.nll_loss(model(x, a), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model

    (losses, model), (expected, reference) = train("ltc", where), train("cpu", "cpu")
    assert losses == pytest.approx(expected, rel=1e-4) and losses[-1] < losses[0]
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p.detach().cpu(), q.detach(), rtol=1e-3, atol=1e-5)


class Words(nn.Module):
    def __init__(self, bag=False, padding=None):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, sparse=True, mode="sum") if bag else None
        self.table = nn.Embedding(10, 4, sparse=True, padding_idx=padding) if not bag else None

    def forward(self, words):
        x = self.bag(words) if self.bag else self.table(words).sum(1)
        return x.square().sum()


OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sparse adam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("kind", [{}, {"padding": 2}, {"bag": True}])
def test_embeddings_with_sparse_gradients_train_as_on_the_cpu(kind, optimiser, to_none):
    def train(device):
        torch.manual_seed(3)
        model = Words(**kind).to(device)
        optimizer = OPTIMISERS[optimiser](list(model.parameters()))
        g = torch.Generator().manual_seed(1)
        losses, gradients = [], []
        for _ in range(4):
            optimizer.zero_grad(set_to_none=to_none)
            for _ in range(2):  # gradients add up
                loss = model(torch.randint(0, 10, (3, 4), generator=g).to(device))
                loss.backward()
            gradients.append(next(model.parameters()).grad.clone())
            optimizer.step()
            losses.append(loss.item())
        return losses, gradients, model

    losses, gradients, model = train("ltc")
    expected, wanted, reference = train("cpu")
    assert losses == pytest.approx(expected, rel=1e-5)
    for x, y in zip(gradients, wanted, strict=True):
        assert x.device.type == "ltc" and x.layout is COO
        assert x.shape == y.shape and x.is_coalesced() == y.is_coalesced()
        torch.testing.assert_close(x.to_dense().cpu(), y.to_dense())
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p.detach().cpu(), q.detach())


def test_an_optimiser_that_refuses_sparse_gradients_refuses_them_here():
    table = nn.Embedding(4, 2, sparse=True).to("ltc")
    table(torch.tensor([1], device="ltc")).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        torch.optim.Adam(table.parameters()).step()


def test_gradients_of_sparse_parameters():
    a = torch.nn.Parameter(moved(coo()))
    b = torch.nn.Parameter(coo())
    for t in (a, b):
        torch.sparse.mm(t, dense(5, 3, seed=1).to(t.device)).square().sum().backward()
        torch.optim.SGD([t], lr=0.5).step()
    agree(a.grad, b.grad)
    agree(a.detach().coalesce(), b.detach().coalesce())


def test_modules_move_with_sparse_buffers():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", coo())
            self.line = nn.Linear(3, 2)

        def forward(self, x):
            return self.line(torch.sparse.mm(self.a, x))

    torch.manual_seed(0)
    model = Fixed()
    expected = model(dense(5, 3, seed=1))
    there = copy.deepcopy(model).to("ltc")
    assert there.a.device.type == "ltc" and there.a.layout is COO
    torch.testing.assert_close(there(moved(dense(5, 3, seed=1))).cpu(), expected)
    there.load_state_dict(model.state_dict())
    agree(there.a, model.a)
    same(there.cpu().a.to_dense(), model.a.to_dense())


# Compiled steps.


@pytest.mark.parametrize("where", ["cpu", "ltc"])
def test_a_compiled_step_with_sparse_tensors_is_recorded_each_time(where):
    a = coo().to(where)
    step = torch_ltc.compile(lambda x: torch.sparse.mm(a, x) + 1)
    for seed in range(5):
        x = dense(5, 3, seed=seed)
        same(step(moved(x)), coo() @ x + 1)
    assert step.counts == (0, 5) and "aten::" in step.refusal and "test_sparse_training.py" in step.refusal


def test_a_compiled_step_that_is_given_or_returns_sparse_tensors_is_recorded_each_time():
    for f in (lambda a: a * 2, lambda a: a._values() * 2, lambda a: a.detach(), lambda a: a.to_dense()):
        step = torch_ltc.compile(f)
        for seed in range(5):
            agree(step(moved(coo(seed=seed))), f(coo(seed=seed)))
        assert step.counts == (0, 5), step.refusal
    step = torch_ltc.compile(lambda x: (x * 2).to_sparse())
    for seed in range(5):
        agree(step(moved(dense(seed=seed))), (dense(seed=seed) * 2).to_sparse())
    assert step.counts == (0, 5) and "sparse" in step.refusal
    a = coo()
    step = torch_ltc.compile(lambda x: x * float(a.coalesce().values().sum()))
    for seed in range(5):
        same(step(moved(dense(seed=seed))), dense(seed=seed) * a.to_dense().sum())
    assert step.counts == (0, 5) and "coalesce" in step.refusal


@pytest.mark.parametrize("optimiser", [None, *OPTIMISERS])
def test_a_compiled_step_that_leaves_a_sparse_gradient_is_recorded_each_time(optimiser):
    def train(device, wrap):
        torch.manual_seed(3)
        model = Words().to(device)
        optimizer = OPTIMISERS[optimiser](list(model.parameters())) if optimiser else None

        def step(words):
            model.zero_grad()
            loss = model(words)
            loss.backward()
            if optimizer:
                optimizer.step()
            return loss.detach()

        step = wrap(step)
        g = torch.Generator().manual_seed(1)
        losses = [step(torch.randint(0, 10, (3, 4), generator=g).to(device)).item() for _ in range(6)]
        return losses, model.table.weight.grad.to_dense(), step

    losses, gradient, step = train("ltc", torch_ltc.compile)
    expected, wanted, _ = train("cpu", lambda f: f)
    assert losses == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(gradient.cpu(), wanted)
    assert step.counts == (0, 6) and "sparse" in step.refusal


def test_a_sparse_gradient_from_before_does_not_confuse_a_compiled_step():
    table = nn.Embedding(6, 2, sparse=True).to("ltc")
    reference = copy.deepcopy(table).cpu()
    words = torch.tensor([1, 3])
    for t, w in ((table, words.to("ltc")), (reference, words)):
        t(w).sum().backward()

    def step(t, x):
        with torch.no_grad():
            t.weight.mul_(x)
        return t.weight.sum().detach()

    compiled = torch_ltc.compile(step)
    for n in range(6):
        x = torch.tensor(1.0 + n)
        torch.testing.assert_close(compiled(table, x.to("ltc")).cpu(), step(reference, x))
        agree(table.weight.grad, reference.weight.grad)


def test_dynamo_leaves_sparse_tensors_to_the_cpu_or_gets_them_right():
    a, x = coo(), dense(5, 3, seed=1)
    compiled = torch.compile(lambda a, x: torch.sparse.mm(a, x) + 1, backend="ltc")
    torch.testing.assert_close(compiled(a, x), torch.sparse.mm(a, x) + 1)
    same(compiled(moved(a), moved(x)), torch.sparse.mm(a, x) + 1)
