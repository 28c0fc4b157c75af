"""Sparse tensors on ltc do what they do on the CPU, and what they run eagerly is counted by name."""

import copy
import io
import pickle

import pytest
import torch
import torch_ltc
from citizen import same
from sparse import COO, CSR, agree, coo, csr, dense, moved


def results_of(f, given):
    """What `f` gives, after gradients went back from that."""
    results = f(*given)
    results = results if isinstance(results, tuple) else (results,)
    for x in results:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            x = x.to_dense() if x.layout is not torch.strided else x
            (x * x).sum().backward()
    return results


def both(f, *given):
    """`f` of these CPU tensors and of their copies on ltc: the same results and gradients, or the same error."""
    there = [moved(x) for x in given]
    try:
        expected = results_of(f, given)
    except Exception as error:  # noqa: BLE001  (any class: it is what is compared)
        with pytest.raises(type(error)):
            results_of(f, there)
        return
    for x, y in zip(results_of(f, there), expected, strict=True):
        agree(x, y)
    for x, y in zip(there, given, strict=True):
        agree(x.detach(), y.detach())  # and what is written in place
        assert (x.grad is None) == (y.grad is None)
        if y.grad is not None and y.grad.layout is COO:
            # Autograd copies a gradient, flag and all, or takes it over without: it does more of the second on devices.
            agree(x.grad.coalesce(), y.grad.coalesce())
        elif y.grad is not None:
            agree(x.grad, y.grad)


def uncoalesced(dtype=torch.float32):
    indices = torch.tensor([[0, 2, 0, 3, 2], [1, 0, 1, 4, 3]])
    return torch.sparse_coo_tensor(indices, torch.tensor([3, 4, 5, -1, 2]).to(dtype), (4, 5))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to_sparse(),
        lambda x: x.to_sparse(1),
        lambda x: x.to_sparse_coo(),
        lambda x: x.to_sparse_csr(),
        lambda x: x.to_sparse_csc(),
        lambda x: x.to_sparse_bsr((2, 1)),
        lambda x: x.to_sparse_bsc((2, 1)),
        lambda x: x.to_sparse(layout=CSR),
        lambda x: x.to_sparse().to_dense(),
        lambda x: x.to_sparse_csr().to_dense(),
        lambda x: x.to_sparse_csr().to_sparse(),
        lambda x: x.to_sparse().to_sparse_csr(),
        lambda x: x.to_sparse().coalesce().values() * 2,
        lambda x: (x * 2 + 1).relu().to_sparse() * 3,
    ],
)
def test_dense_tensors_become_sparse_and_come_back(make, grad):
    both(make, dense().requires_grad_(grad))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64, torch.bfloat16])
def test_dtypes(dtype):
    both(lambda x: (x.to_sparse(), x.to_sparse_csr(), x.to_sparse().to_dense()), dense(dtype=dtype))


def test_no_elements():
    both(lambda x: (x.to_sparse(), x.to_sparse_csr(), x.to_sparse().to_dense()), torch.zeros(3, 2))
    both(lambda x: x.to_sparse(), torch.zeros(0, 2))


ONE = [
    lambda a: a.to_dense(),
    lambda a: a.clone(),
    lambda a: a.detach(),
    lambda a: a * 2,
    lambda a: 3 * a / 2,
    lambda a: -a,
    lambda a: a + a,
    lambda a: a - 2 * a,
    lambda a: a * a,
    lambda a: a.abs(),
    lambda a: a.sin(),
    lambda a: a.relu(),
    lambda a: a.isnan(),
    lambda a: a.sum(),
    lambda a: torch.sparse.sum(a),
    lambda a: torch.sparse.sum(a, 0),
    lambda a: torch.sparse.sum(a, 1),
    lambda a: a.t(),
    lambda a: a.transpose(0, 1),
    lambda a: a.t() @ a,
    lambda a: a.double(),
    lambda a: a.to(torch.float16),
    lambda a: a.cpu().to("ltc") if a.device.type == "ltc" else a,
    lambda a: torch.zeros_like(a),
    lambda a: a.sparse_dim(),
    lambda a: a.dense_dim(),
    lambda a: a._nnz(),
    lambda a: a.is_sparse,
    lambda a: a.numel(),
    lambda a: a[1],
    lambda a: a[1].to_dense(),
    lambda a: a.clone().zero_(),
    lambda a: a.clone().mul_(2),
    lambda a: a.clone().add_(a),
    lambda a: a.norm(),
    lambda a: a.expand(2, 4, 5),  # refused
    lambda a: a.view(5, 4),  # refused
    lambda a: torch.where(a > 0, a, a),  # refused
    lambda a: a.stride(),  # refused
    lambda a: a.exp(),  # refused
    lambda a: a + 1,  # refused
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("f", ONE)
def test_operators_of_one_sparse_tensor(f, make, grad):
    both(f, make(grad))


COO_ONLY = [
    lambda a: a.coalesce(),
    lambda a: a.coalesce().indices(),
    lambda a: a.coalesce().values(),
    lambda a: a.indices(),  # refused of uncoalesced ones
    lambda a: a._indices(),
    lambda a: a._values(),
    lambda a: a.is_coalesced(),
    lambda a: a.index_select(0, torch.tensor([2, 0], device=a.device)),
    lambda a: a[:, 1],
    lambda a: a[0, 1],
    lambda a: a.narrow_copy(0, 1, 2),
    lambda a: a.unsqueeze(0),
    lambda a: a.permute(1, 0),
    lambda a: torch.cat([a, a]),
    lambda a: torch.stack([a, a]),
    lambda a: torch.sparse.softmax(a, 1),
    lambda a: torch.sparse.log_softmax(a, 0),
    lambda a: a.clone().sparse_resize_((6, 7), 2, 0),
    lambda a: a.sqrt_(),
    lambda a: a.mul_(3),
    lambda a: a.resize_as_sparse_(a.clone()),
]


@pytest.mark.parametrize("make", [coo, uncoalesced])
@pytest.mark.parametrize("f", COO_ONLY)
def test_operators_of_coordinates(f, make):
    both(f, make())


TWO = [
    lambda a, x: torch.sparse.mm(a, x),
    lambda a, x: torch.mm(a, x),
    lambda a, x: torch.spmm(a, x),
    lambda a, x: a @ x,
    lambda a, x: a.matmul(x).relu().sum(),
    lambda a, x: a @ x[:, 0],
    lambda a, x: torch.addmm(torch.ones(4, 3, device=x.device), a, x),
    lambda a, x: torch.sparse.addmm(torch.ones(4, 3, device=x.device), a, x, beta=2, alpha=3),
    lambda a, x: torch.mm(a, x[:4]),  # refused: sizes
    lambda a, x: torch.mm(a, x.double()),  # refused: dtypes
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("f", TWO)
def test_products_with_dense_tensors(f, make, grad):
    both(f, make(), dense(5, 3, seed=1).requires_grad_(grad))
    both(f, make(grad), dense(5, 3, seed=1).requires_grad_(grad))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, x: x + a,
        lambda a, x: x.add(a, alpha=2),
        lambda a, x: a * x,
        lambda a, x: x * a,
        lambda a, x: x.add_(a, alpha=-0.5),
        lambda a, x: x.sparse_mask(a),
        lambda a, x: a.copy_(x),  # refused
        lambda a, x: x.copy_(a),  # refused
        lambda a, x: a.add_(x),  # refused
    ],
)
@pytest.mark.parametrize("make", [coo, uncoalesced, csr])
def test_dense_and_sparse_operands(f, make):
    both(f, make(), dense(seed=1))


@pytest.mark.parametrize("make", [coo, csr])
def test_products_into_given_memory(make):
    both(lambda a, x, out: torch.mm(a, x, out=out), make(), dense(5, 3, seed=1), torch.ones(4, 3))
    both(lambda a, x, out: torch.mm(a, x, out=out), make(), dense(5, 3, seed=1), torch.ones(0))


def test_batches():
    both(lambda a, x: torch.bmm(a, x), torch.stack([dense(), dense(seed=2)]).to_sparse(), torch.ones(2, 5, 3))


def test_products_of_two_sparse_tensors():
    both(lambda a, b: torch.sparse.mm(a, b), coo(True), coo(True, rows=5, columns=3))
    both(lambda a, b: a @ b, csr(), csr(rows=5, columns=3))


@pytest.mark.parametrize("grad", [False, True])
def test_sampled_products(grad):
    f = lambda a, x, y: torch.sparse.sampled_addmm(a, x, y, beta=0.5, alpha=2)
    both(f, csr(grad), dense(4, 3, seed=1).requires_grad_(grad), dense(3, 5, seed=2).requires_grad_(grad))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("grad", [False, True])
def test_reduced_products(reduce, grad):
    f = lambda a, x: torch.sparse.mm(a, x, reduce)
    both(f, csr(grad), dense(5, 3, seed=1).requires_grad_(grad))


@pytest.mark.parametrize(
    "make",
    [
        lambda i, v: torch.sparse_coo_tensor(i, v, (4, 5)),
        lambda i, v: torch.sparse_coo_tensor(i, v),
        lambda i, v: torch.sparse_coo_tensor(i, v, (4, 5), is_coalesced=True),
        lambda i, v: torch.sparse_coo_tensor(i, v, (4, 5), device=v.device, check_invariants=True),
        lambda i, v: torch.sparse_coo_tensor([[0], [0]], [1.0], (2, 2), device=v.device),
        lambda i, v: torch.sparse_coo_tensor((2, 3), device=v.device),
        lambda i, v: torch.zeros(2, 3, layout=COO, device=v.device),
        lambda i, v: torch.zeros(2, 3, layout=CSR, device=v.device),
        lambda i, v: torch.empty(2, 3, layout=COO, device=v.device),
        lambda i, v: torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1.0, 2, 3, 4], device=v.device),
        lambda i, v: torch.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 2), layout=CSR, device=v.device),
        lambda i, v: torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([1]), (3, 3)).to(v.device),
        lambda i, v: torch.sparse_coo_tensor(i, v[:2], (4, 5)),  # refused
        lambda i, v: torch.sparse_coo_tensor(i, v, (2, 2), check_invariants=True),  # refused
        lambda i, v: torch.sparse_csr_tensor([0, 2], [0, 9], [1.0, 2], (1, 2), device=v.device, check_invariants=True),
    ],
)
def test_sparse_tensors_are_made_from_parts(make):
    both(make, torch.tensor([[0, 2, 3], [1, 0, 4]]), torch.tensor([3.0, 4, 5]))


def test_the_parts_are_shared_and_written_in_place():
    def f(v):
        a = torch.sparse_coo_tensor(torch.tensor([[0, 2]], device=v.device), v, (3,), is_coalesced=True)
        shown = a._values()
        a.mul_(2)
        first = shown.clone()
        shown.add_(1)
        v.mul_(3)
        return a, first, shown

    both(f, torch.tensor([1.0, 2.0]))


def test_a_write_that_fails_leaves_what_was():
    a = coo().to("ltc")
    before = a.to_dense().cpu()
    with pytest.raises(RuntimeError):
        a.add_(torch.ones(3, device="ltc"))
    same(a.to_dense(), before)


def test_history_and_gradients_through_sparse_tensors():
    def f(v, x):
        a = torch.sparse_coo_tensor(torch.tensor([[0, 2, 3], [1, 0, 4]], device=v.device), v * 2, (4, 5))
        return torch.sparse.mm(a, x).sum(1)

    both(f, torch.tensor([3.0, 4, 5], requires_grad=True), dense(5, 3, seed=1).requires_grad_())


@pytest.mark.parametrize("make", [coo, csr])
def test_a_sparse_tensor_on_the_cpu_works_with_tensors_on_ltc(make):
    a, x = make(), dense(5, 3, seed=1).requires_grad_()
    y = moved(x)
    torch.sparse.mm(a, x).square().sum().backward()
    out = torch.sparse.mm(a, y)
    assert out.device.type == "ltc"
    out.square().sum().backward()
    agree(y.grad, x.grad)
    before = a.clone()
    agree(moved(dense(seed=3)) + a, dense(seed=3) + a)
    agree(
        (moved(a) * a)._values() if a.layout is COO else moved(a).values(),
        (a * a)._values() if a.layout is COO else a.values(),
    )
    assert torch.equal(a.to_dense(), before.to_dense())


def test_dense_tensors_on_two_devices_are_refused():
    a, x = coo(), dense(5, 3, seed=1)
    for f in (
        lambda: torch.sparse.mm(moved(a), x),
        lambda: x.add_(moved(a).t()),
        lambda: a.add_(moved(a)),
        lambda: torch.mm(moved(a), moved(x), out=torch.empty(4, 3)),
    ):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            f()
    a.requires_grad_()
    with pytest.raises(RuntimeError, match="device"):
        torch.sparse.mm(a, moved(x)).sum().backward()


@pytest.mark.parametrize("a", [coo(), uncoalesced(), csr()])
def test_copies_between_devices(a):
    there = a.to("ltc")
    agree(there, a)
    back = there.cpu()
    assert back.device.type == "cpu" and back.layout is a.layout
    agree(back.to("ltc", torch.float64), a.double())
    agree(copy.deepcopy(there), a)
    agree(pickle.loads(pickle.dumps(there)), a)
    file = io.BytesIO()
    torch.save({"a": there}, file)
    file.seek(0)
    agree(torch.load(file)["a"], a)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")["a"]
    assert loaded.device.type == "cpu" and torch.equal(loaded.to_dense(), a.to_dense())
    if a.layout is COO:
        agree(there.clone().copy_(a), a.clone().copy_(a))


@pytest.mark.parametrize("a", [coo(), uncoalesced(), csr(), dense().to_sparse_csc(), coo(grad=True)])
def test_printing(a):
    there = moved(a)
    words = lambda text: text.replace("device='ltc:0', ", "").split()
    assert "device='ltc:0'" in repr(there)
    assert words(repr(there)) == words(repr(a))


def test_what_runs_eagerly_is_counted_by_name():
    x = moved(dense())
    torch_ltc.metrics.reset()
    a = x.to_sparse()
    torch.sparse.mm(a, moved(dense(5, 3)))
    a.to_dense()
    counted = {name: (reason, count) for name, reason, count, _ in torch_ltc.fallbacks()}
    assert counted["aten::_to_sparse"] == ("result depends on data", 1)
    assert counted["aten::_to_dense"] == ("argument cannot be recorded", 1)
    assert counted["aten::addmm"][1] == 1 or counted["aten::mm"][1] == 1
    assert torch_ltc.metrics.counter_value("aten::_to_sparse") == 1


def test_taking_a_sparse_tensor_apart_runs_nothing_eagerly():
    torch_ltc.metrics.reset()
    values = moved(torch.ones(3)) * 2
    a = torch.sparse_coo_tensor(moved(torch.tensor([[0, 1, 2]])), values, (3,))
    b = a.clone().detach()
    (b._values() + b._indices()[0], b._nnz(), b.is_coalesced(), b.sparse_dim())
    assert torch_ltc.fallback_count() == 0
    assert "pending" in torch_ltc.lazy_repr(b._values())
