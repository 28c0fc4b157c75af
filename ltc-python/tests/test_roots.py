"""Calls whose answer on the CPU depends on more than their tensors' sizes and dtypes, or is an error: the same here."""

import itertools
import math
import warnings

import pytest
import torch
import torch_ltc
from torch import fx, nn
from torch.nn import functional as F

NAN = math.nan


def outcome(f, device):
    """What a call gives, comparable: tensors as dtype, sizes and values (with the signs of zeros), errors as class and
    words."""
    try:
        leaves, structure = torch.utils._pytree.tree_flatten(f(device))
        return [plain(x) for x in leaves], str(structure)
    except Exception as error:  # noqa: BLE001  (any class: it is what is compared)
        return type(error), str(error).splitlines()[0].split(" (raised while running")[0]


def plain(x):
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().cpu()
    values = ["nan" if v != v else str(v) for v in x.flatten().tolist()]
    return x.dtype, tuple(x.shape), values


def agree(f):
    assert outcome(f, "ltc") == outcome(f, "cpu")


# ---- ambient state ----


@pytest.fixture
def restored_dtype():
    yield
    torch.set_default_dtype(torch.float32)


DEFAULT_DTYPE = {
    "int / int": lambda d: torch.arange(4, device=d) / torch.arange(1, 5, device=d),
    "int / 2": lambda d: torch.arange(4, device=d) / 2,
    "sqrt(int)": lambda d: torch.arange(4, device=d).sqrt(),
    "int * 1.1": lambda d: torch.arange(4, device=d) * 1.1,
    "int * 1j": lambda d: torch.arange(4, device=d) * 1.1j,
    "sigmoid(bool)": lambda d: torch.tensor([True, False], device=d).sigmoid(),
    "zeros": lambda d: torch.zeros(3, device=d),
    "full": lambda d: torch.full((3,), 1.1, device=d),
    "arange": lambda d: torch.arange(0.0, 3.0, device=d),
    "linspace": lambda d: torch.linspace(0, 3, 4, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "where": lambda d: torch.where(torch.tensor([True, False], device=d), 1.1, 2.2),
    "addition": lambda d: torch.tensor(1.1, device=d) + torch.arange(3, device=d),
    "comparison": lambda d: torch.tensor([2**24 + 1, 2**24], device=d) > float(2**24 + 1) - 0.5,
    "mean of floats": lambda d: torch.arange(3.0, device=d).mean(),
    "window": lambda d: torch.hann_window(5, device=d),
}


@pytest.mark.parametrize("name", DEFAULT_DTYPE)
def test_the_default_dtype_is_the_one_at_the_call(name, restored_dtype):
    f = DEFAULT_DTYPE[name]
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        agree(f)


@pytest.mark.parametrize("name", DEFAULT_DTYPE)
@pytest.mark.parametrize("first", [torch.float32, torch.float64])
def test_what_is_recorded_keeps_the_default_dtype_it_was_recorded_in(name, first, restored_dtype):
    f = DEFAULT_DTYPE[name]
    torch.set_default_dtype(first)
    expected = f("cpu")
    torch.ltc.synchronize()
    recorded = f("ltc")
    torch.set_default_dtype(torch.float64 if first == torch.float32 else torch.float32)
    assert plain(recorded) == plain(expected)


#: What takes a number, and in which dtypes libtorch computes it may depend on all there is.
WITH_NUMBERS = {
    **{
        f: lambda t, x, f=getattr(torch, f): f(t, x)  # noqa: B008  (each its own)
        for f in "add mul div remainder pow eq ne lt ge logical_and xlogy copysign isin".split()
    },
    "number first": lambda t, x: torch.mul(x, t),
    "div, number first": lambda t, x: torch.div(x, t),
    "gt_": lambda t, x: t.clone().gt_(x),
    "eq, out": lambda t, x: torch.eq(t, x, out=torch.zeros(4, dtype=torch.bool, device=t.device)),
    "mul, out": lambda t, x: torch.mul(t, x, out=torch.zeros(4, dtype=torch.float64, device=t.device)),
    "div, out": lambda t, x: torch.div(t, 3, out=torch.zeros(4, dtype=torch.float64, device=t.device)),
    "masked_fill": lambda t, x: t.masked_fill(t > 1, x),
    "fill": lambda t, x: torch.fill(t, x),
    "index_fill": lambda t, x: t.index_fill(0, torch.tensor([0, 2]).to(t.device), x),
    "scatter": lambda t, x: t.scatter(0, torch.tensor([0, 2]).to(t.device), x),
    "where": lambda t, x: torch.where(t > 1, x, t),
    "clamp": lambda t, x: t.clamp(x, 3.5),
    "threshold": lambda t, x: F.threshold(t, 1, x),
    "list": lambda t, x: torch._foreach_add([t, t * 2], x)[1],
    "compared with a product": lambda t, x: t * x > x,
}
VALUES = {torch.bool: [True, False, True, True], torch.int64: [16777217, -3, 2049, 0]}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers_beside_any_dtype_under_any_default_dtype(name, restored_dtype):
    f, pending = WITH_NUMBERS[name], []
    for default in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for dtype in (torch.bool, torch.int64, torch.float16, torch.float32, torch.float64):
            for x in (0.1, 2048.9, 16777216.5):
                if name == "fill" and x > 65504 and dtype is torch.float16:
                    continue  # refused by libtorch's kernel, but for one element
                torch.set_default_dtype(default)
                data = torch.tensor(VALUES.get(dtype, [0.1, 1.5, 2049.0, 3.0]), dtype=dtype)
                try:
                    expected = plain(f(data, x))
                except (RuntimeError, TypeError) as e:
                    with pytest.raises(type(e)):
                        f(data.to("ltc"), x).cpu()
                    continue
                what = f"{dtype}, {x}, default {default}"
                now, later = f(data.to("ltc"), x), f(data.to("ltc"), x)
                pending.append((what, expected, later))
                if name not in ("pow", "xlogy"):  # which differ in last places
                    assert plain(now) == expected, what
    # What was recorded runs under another default dtype than it was recorded in.
    torch.set_default_dtype(torch.float64)
    torch.ltc.synchronize()
    for what, expected, later in pending:
        got = plain(later)
        assert got[:2] == expected[:2] if name in ("pow", "xlogy") else got == expected, what


def test_random_numbers_come_in_the_default_dtype(restored_dtype):
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        torch.manual_seed(1)
        expected = torch.rand(3), torch.randn(20), torch.bernoulli(torch.full((4,), 0.5))
        torch.manual_seed(1)
        got = (
            torch.rand(3, device="ltc"),
            torch.randn(20, device="ltc"),
            torch.bernoulli(torch.full((4,), 0.5, device="ltc")),
        )
        assert [plain(x) for x in got] == [plain(x) for x in expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.uint8, torch.bool, torch.complex64])
def test_new_memory_has_known_values_where_that_is_asked_for(dtype):
    def make(d):
        grown = torch.ones(2, dtype=dtype, device=d).resize_(5)
        like = torch.empty_like(torch.ones(2, 3, dtype=dtype, device=d))
        return (
            torch.empty(3, dtype=dtype, device=d),
            torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=d),
            grown,
            like,
        )

    make("ltc")
    torch.use_deterministic_algorithms(True)
    try:
        agree(make)
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_call_that_deterministic_algorithms_forbid_is_refused_after_it_was_taken():
    f = lambda d: torch.ones(3, device=d).put_(torch.tensor([0, 0], device=d), torch.ones(2, device=d))
    agree(f)
    torch.use_deterministic_algorithms(True)
    try:
        agree(f)
    finally:
        torch.use_deterministic_algorithms(False)
    agree(f)


@pytest.mark.parametrize("ends", list(itertools.product([False, True, 0, 1, 2, 0.0, 1.5], repeat=2)), ids=str)
def test_numbers_that_decide_sizes_are_told_apart(ends):
    agree(lambda d: torch.arange(*ends, device=d))
    agree(lambda d: torch.linspace(*ends, 3, device=d))


# ---- versions ----


def foreach_operators():
    for name in sorted(dir(torch.ops.aten)):
        if name.startswith("_foreach_") and name.endswith("_") and not name.endswith("__"):
            packet = getattr(torch.ops.aten, name)
            for overload in packet.overloads():
                yield getattr(packet, overload)


def argument(kind, device):
    made = {
        "List[Tensor]": lambda: [torch.ones(2, device=device), torch.ones(3, device=device)],
        "List[number]": lambda: [1.0, 2.0],
        "number": lambda: 1.0,
        "Tensor": lambda: torch.ones((), device=device),
        "bool": lambda: False,
    }
    return made[kind]()


@pytest.mark.parametrize("op", [op for op in foreach_operators() if not op._overloadname.endswith("out")], ids=str)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_lists_written_in_place_count_their_versions(op, mode):
    def versions(d):
        args = [argument(str(a.type), d) for a in op._schema.arguments if not a.has_default_value()]
        with mode():
            op(*args)
        return [[t._version for t in a] for a in args if isinstance(a, list) and isinstance(a[0], torch.Tensor)]

    agree(versions)


@pytest.mark.parametrize("name", ["mul", "div", "add", "pow", "maximum", "lerp", "addcmul"])
def test_lists_take_numbers_that_are_tensors_of_the_host(name):
    """As on CUDA: a learning rate that is a tensor of the CPU stands beside gradients on the device."""

    def run(d):
        x = [torch.tensor([1.0, 2.0], device=d), torch.full((2, 1), 3.0, device=d, dtype=torch.float16)]
        numbers = [torch.tensor(2.5, dtype=torch.float64), torch.tensor(-3.0)]
        more = [x] if name in ("lerp", "addcmul") else []
        function = getattr(torch, f"_foreach_{name}")
        return [r.cpu() for r in function(x, *more, numbers)], [
            getattr(torch, f"_foreach_{name}_")(x, *more, numbers),
            x,
        ][1]

    assert isinstance(outcome(run, "cpu")[0], list)
    agree(run)
    x = [torch.ones(2, device="ltc")]
    with pytest.raises(RuntimeError, match="same device"):
        torch._foreach_mul(x, [torch.ones(2)])


def test_lists_written_by_an_eager_call_count_their_versions():
    tensors = [torch.ones(2, device="ltc"), torch.ones(1, device="ltc").expand(3)]
    torch_ltc.config.set_force_fallback("_foreach_add_")
    try:
        torch._foreach_add_(tensors[:1], 1.0)
    finally:
        torch_ltc.config.set_force_fallback("")
    torch._foreach_zero_(tensors)
    assert [t._version for t in tensors] == [2, 1]


def test_a_step_between_forward_and_backward_is_found():
    def run(d):
        w = torch.ones(3, device=d, requires_grad=True)
        loss = (w * w).sum()
        torch.optim.SGD([w], lr=0.1, foreach=True).step(lambda: loss.backward(retain_graph=True))
        loss.backward()

    for d in ("cpu", "ltc"):
        with pytest.raises(
            RuntimeError, match="modified by an inplace operation: .* is at version 1; expected version 0"
        ):
            run(d)


# ---- memory ----


@pytest.mark.parametrize("cls", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (0, 0, 4), (2, 3, 4)])
@pytest.mark.parametrize(
    "how", [{}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2, "bias": False}], ids=str
)
def test_recurrent_layers_of_nothing(cls, sizes, how):
    def run(d):
        torch.manual_seed(0)
        net = cls(4, 5, **how).to(d)
        out, last = net(torch.ones(sizes, device=d))
        out.sum().backward()
        return out, last, net.weight_ih_l0.grad

    def close(d):
        return [tuple(x.shape) for x in torch.utils._pytree.tree_leaves(run(d))]

    agree(close)


STORAGES = {
    "swapped": lambda s: (s.byteswap(torch.int16), s.tolist())[1],
    "swapped as complex": lambda s: (s.byteswap(torch.complex64), s.tolist())[1],
    "element": lambda s: s[2],
    "all": lambda s: s.tolist(),
    "set": lambda s: (s.__setitem__(slice(1, 3), 9), s.tolist())[1],
}


@pytest.mark.parametrize("name", STORAGES)
def test_storages_show_and_take_bytes(name):
    agree(lambda d: STORAGES[name](torch.arange(16, dtype=torch.uint8, device=d).untyped_storage()))


def test_a_slice_of_a_storage_is_refused_where_it_would_share_no_memory():
    s = torch.arange(4, dtype=torch.uint8, device="ltc").untyped_storage()
    with pytest.raises(NotImplementedError, match="view of a tensor"):
        s[1:3]
    assert torch.empty(0, dtype=torch.uint8, device="ltc").set_(s, 1, (2,)).tolist() == [1, 2]


@pytest.mark.parametrize("n", [1, 7, 100])
def test_a_lazy_clone_is_a_clone(n):
    agree(lambda d: torch.arange(n, device=d)._lazy_clone() + 1)


# ---- values ----


@pytest.mark.parametrize("n", [1, 7, 40, 70])
@pytest.mark.parametrize("name", ["minimum", "maximum", "fmin", "fmax", "clamp_min", "clamp_max"])
def test_of_two_zeros_the_right_one(name, n):
    zeros, f = torch.zeros(n), getattr(torch, name)
    for a, b in ((zeros, -zeros), (-zeros, zeros)):
        agree(lambda d: f(a.to(d), b.to(d)))
        agree(lambda d: f(a.to(d) * 1, b.to(d) * 1) * 2)
    if name.startswith("clamp"):
        agree(lambda d: f(-zeros.to(d), 0.0))
        agree(lambda d: f(zeros.to(d), -0.0))


@pytest.mark.parametrize(
    "bounds", [(NAN, 1.0), (0.0, NAN), (NAN, NAN), (NAN, None), (None, NAN), (2.0, 1.0), (-0.5, None)], ids=str
)
@pytest.mark.parametrize("n", [1, 7, 40])
def test_clamp_with_bounds_that_are_no_numbers(bounds, n):
    x = torch.linspace(-2, 2, n)
    x[0] = NAN
    agree(lambda d: x.to(d).clamp(*bounds))
    agree(lambda d: (x.to(d) * 1).clamp_(*bounds) + 1)
    of = lambda b, d: b if b is None else torch.full((n,), b, device=d)
    agree(lambda d: x.to(d).clamp(of(bounds[0], d), of(bounds[1], d)))


HALF_OPS = ["lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "div", "maximum", "minimum", "logical_and"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("other", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("name", HALF_OPS)
def test_halves_beside_wider_numbers_without_dimensions(name, dtype, other):
    f = getattr(torch, name)
    for v, n in itertools.product((1.0001, 0.1, 2.3, 4097), (1, 7, 40)):
        scalar = torch.tensor(v).to(other)
        x = torch.cat([torch.linspace(-3, 3, n).to(dtype), scalar.to(dtype)[None]])
        agree(lambda d: f(x.to(d) * 1, scalar.to(d)))
        agree(lambda d: f(scalar.to(d), x.to(d) * 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["add", "mul", "gt", "eq"])
def test_halves_beside_integers(name, dtype):
    f, integers = getattr(torch, name), torch.arange(2040, 2060)
    agree(lambda d: f(integers.to(d), torch.full((20,), 2048.0, dtype=dtype).to(d)))


# ---- what the CPU's kernels allow and refuse ----

L = torch.long
EMPTY = lambda d: torch.tensor([], dtype=L, device=d)


def gradient(f):
    def run(d):
        x = torch.ones(5, 3, device=d, requires_grad=True)
        f(x, d).sum().backward()
        return x.grad

    return run


def overlapping(f):
    return lambda d: f(torch.rand(1, device=d).expand(6), d)


CALLS = {
    "isin(5, b)": lambda d: torch.isin(5, torch.tensor([1, 5, 7], device=d)),
    "isin(6, b), inverted": lambda d: torch.isin(6, torch.tensor([1, 5, 7], device=d), invert=True),
    "convolution without channels": lambda d: F.conv1d(torch.ones(2, 0, 7, device=d), torch.ones(12, 0, 3, device=d)),
    "convolution of nothing": lambda d: F.conv1d(torch.ones(0, 3, 7, device=d), torch.ones(12, 3, 3, device=d)),
    "convolution of nothing at all": lambda d: F.conv1d(torch.ones(0, 0, 7, device=d), torch.ones(12, 0, 3, device=d)),
    "conv2d of nothing": lambda d: F.conv2d(
        torch.ones(0, 3, 7, 7, device=d), torch.ones(4, 3, 3, 3, device=d), padding=1
    ),
    "index_add": lambda d: torch.ones(5, device=d).index_add(0, EMPTY(d), torch.ones(0, device=d)),
    "index_add_": lambda d: torch.ones(3, 4, 5, device=d).index_add_(2, EMPTY(d), torch.ones(3, 4, 0, device=d)),
    "index_reduce": lambda d: torch.ones(5, device=d).index_reduce_(0, EMPTY(d), torch.ones(0, device=d), "prod"),
    "index_reduce_": lambda d: torch.ones(3, 4, 0, device=d).index_reduce_(
        2, EMPTY(d), torch.ones(3, 4, 0, device=d), "amax"
    ),
    "index_copy_": lambda d: torch.ones(3, 4, 5, device=d).index_copy_(2, EMPTY(d), torch.ones(3, 4, 0, device=d)),
    "index_select backward": gradient(lambda x, d: torch.index_select(x, 0, EMPTY(d))),
    "index backward": gradient(lambda x, d: x[EMPTY(d)]),
    "embedding backward": gradient(lambda x, d: F.embedding(EMPTY(d), x)),
    "adaptive pooling to nothing": gradient(lambda x, d: F.adaptive_avg_pool2d(x[None, None], 0)),
    "layer_norm of integers": lambda d: torch.layer_norm(torch.ones(2, 3, dtype=L, device=d), [3]),
    "addcdiv of integers": lambda d: (lambda a: torch.addcdiv(a, a, a, out=a))(  # noqa: PLC3002  (one tensor)
        torch.ones(3, dtype=torch.int32, device=d)
    ),
    "renorm of integers": lambda d: torch.renorm(torch.ones(2, 2, dtype=L, device=d), 2, 0, 1.0),
    "max_pool1d of booleans": lambda d: F.max_pool1d(
        torch.ones(1, 2, 7, dtype=torch.bool, device=d), 3, 1, return_indices=True
    ),
    "new_empty_strided": lambda d: torch.ones(2, device=d).new_empty_strided([1], []),
    "fill_": overlapping(lambda x, d: x.fill_(3.0)),
    "zero_": overlapping(lambda x, d: x.zero_()),
    "masked_fill_": overlapping(lambda x, d: x.masked_fill_(torch.tensor([True] * 6, device=d), 2.0)),
    "index_fill_": overlapping(lambda x, d: x.index_fill_(0, torch.tensor([1], device=d), 2.0)),
    "index_put_": overlapping(lambda x, d: x.index_put_((torch.tensor([0, 1], device=d),), torch.ones(2, device=d))),
    "put_": overlapping(lambda x, d: x.put_(torch.tensor([0, 1], device=d), torch.ones(2, device=d))),
    "add_": overlapping(lambda x, d: x.add_(1)),
    "copy_": overlapping(lambda x, d: x.copy_(torch.ones(6, device=d))),
    "threshold_": lambda d: F.threshold(torch.ones(1, device=d).expand(3), 0.5, 0.5, inplace=True),
    "fill_ of strides that lie upon each other": lambda d: (
        torch.zeros(3, device=d).as_strided((2, 3), (0, 1)).fill_(7.0)
    ),
    "mm of nothing": lambda d: torch.mm(torch.ones(3, 0, device=d), torch.ones(0, 2, device=d)),
    "batch norm of nothing": lambda d: F.batch_norm(torch.ones(0, 3, device=d), None, None, training=True),
    "sum of nothing": lambda d: torch.ones(0, 3, device=d).sum(0),
    "max of nothing": lambda d: torch.ones(0, 3, device=d).max(),
    "cross entropy of nothing": lambda d: F.cross_entropy(torch.ones(0, 3, device=d), EMPTY(d)),
}


SHARING = {
    "index_put_": lambda a, i: a.index_put_((i,), a[1:4]),
    "index_put_, accumulating": lambda a, i: a.index_put_((i,), a[1:4], accumulate=True),
    "index_put_ where a mask is": lambda a, i: a.__setitem__(a[:, 0] > 3, a[1:4]),
    "index_put_ of one element where a mask is": lambda a, i: a.__setitem__(a > 3, a[1, 1]),
    "put_": lambda a, i: a.put_(i, a[0, :3]),
    "bernoulli_": lambda a, i: a.clamp_(0, 1).bernoulli_(a.t()),
    "_foreach_add_": lambda a, i: torch._foreach_add_([a], [a.t()]),
    "_foreach_pow_": lambda a, i: torch._foreach_pow_([a * 1, a], [a, a.t()]),
    "_foreach_lerp_": lambda a, i: torch._foreach_lerp_([a], [a.t()], 0.5),
    "_foreach_addcdiv_": lambda a, i: torch._foreach_addcdiv_([a], [a], [a.t()], 0.5),
    "_foreach_mul_ of other memory": lambda a, i: torch._foreach_mul_([a], [a.t() * 1]),
    "_foreach_mul_ of itself": lambda a, i: torch._foreach_mul_([a], [a]),
    "scatter_": lambda a, i: a.scatter_(0, i.expand(3, 3).contiguous(), a[1:4]),
    "index_add_": lambda a, i: a.index_add_(0, i, a[1:4]),
    "masked_scatter_": lambda a, i: a.masked_scatter_(a > 3, a.t()),
}


@pytest.mark.parametrize("name", SHARING)
def test_what_is_written_and_read_may_share_memory_where_it_may_on_the_cpu(name):
    for _ in range(2):
        told, left = [], []
        for d in ("cpu", "ltc"):
            torch.manual_seed(0)
            a, i = torch.arange(16.0, device=d).view(4, 4), torch.tensor([0, 0, 1], device=d)
            try:
                SHARING[name](a, i)
                told.append(None)
            except RuntimeError as error:
                told.append(str(error).splitlines()[0])
            left.append(a.tolist())
        assert told[0] == told[1]
        assert left[0] == left[1]


def test_lists_of_any_length_are_asked_whether_they_share_memory():
    for d in ("cpu", "ltc"):
        for k in (1, 12):
            memory, others = ([torch.zeros(5, device=d) for _ in range(k)] for _ in range(2))
            torch._foreach_add_([m[:4] for m in memory], [o[1:] for o in others])
            with pytest.raises(RuntimeError, match="single memory location"):
                torch._foreach_add_([m[:4] for m in memory], [o[1:] for o in (*others[1:], memory[-1])])


@pytest.mark.parametrize("n", [1, 2])
def test_views_of_negative_and_conjugate_views_share_their_memory(n):
    def run(d):
        z = torch.tensor([[1 + 2j, 3 + 4j]] * 2, device=d)
        parts = torch.view_as_real(torch._neg_view(z[n - 1 :]))
        parts[0, 0, 0] = 7.0
        torch._neg_view(z).real[0].add_(1.0)
        z.conj().imag[0].mul_(3.0)
        both = torch.view_as_complex(torch._neg_view(torch.view_as_real(z)))
        both[0, 1] = 5 - 6j
        assert parts.is_neg() and both.is_neg() and parts.storage_offset() == 4 * (n - 1)
        return z

    agree(run)
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(torch.ones(2, dtype=torch.complex64, device="ltc").conj())


def test_nothing_takes_no_memory_wherever_it_begins():
    for d in ("cpu", "ltc"):
        base = torch.zeros(2, 6, dtype=torch.complex64, device=d)[:1].flip(0)
        base.imag[1:].mT.resize_(1, 0)
        torch.add(torch.ones(0, 3, device=d), 1, out=(end := base.real.view(-1).as_strided((0,), (1,), 30)))
        assert end.shape == (0, 3)
        assert base.untyped_storage().nbytes() == 48


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_logit_at_its_bounds(dtype):
    for eps in (1e-6, 1e-3, 1e-2):
        agree(lambda d: torch.logit(torch.tensor([0.0, 0.9995, 1.0, 2.0] * 9, dtype=dtype, device=d), eps))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_it_gives_on_the_cpu(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            agree(CALLS[name])


@pytest.mark.parametrize(
    "name", [n for n in CALLS if n.endswith((" of integers", " of booleans", "pooling to nothing"))]
)
def test_wrong_arguments_are_told_at_the_call(name):
    with pytest.raises((RuntimeError, NotImplementedError)) as told:
        CALLS[name]("ltc")
    assert "recorded at" not in str(told.value)


def test_every_tensor_over_expanded_memory_sees_what_was_written():
    def run(d):
        base = torch.arange(3.0, device=d)
        base[1:2].expand(4).fill_(7.0)
        return base

    agree(run)


def test_warnings_of_kernels_are_pythons():
    def messages(d):
        mask, y = torch.zeros(10, dtype=torch.uint8, device=d), torch.ones(10, 10, device=d)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y.masked_fill_(mask.bool(), 1.0)
            y.index_put_((mask,), y[mask], accumulate=True)
            if d == "ltc":
                torch.ltc.synchronize()
        return {str(w.message).split(" (Triggered")[0] for w in caught}

    for _ in range(3):
        assert messages("ltc") == messages("cpu") != set()


# ---- extracted graphs ----


class Masked(nn.Module):
    def forward(self, a, b):
        return a[a > 0].sum() + b


class Scaled(nn.Module):
    def forward(self, a, b):
        return a * b.sum().item()


@pytest.mark.parametrize(("model", "name"), [(Masked, "aten::index"), (Scaled, "reads a value")])
def test_a_graph_with_values_in_it_is_not_extracted(model, name):
    inputs = [torch.tensor([1.0, 2.0]), torch.tensor([10.0])]
    with pytest.raises(RuntimeError, match=name):
        torch_ltc.extract_compiled_graph(fx.symbolic_trace(model()), inputs)


@pytest.mark.parametrize(
    "call",
    [
        lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True),
        lambda q: torch.native_dropout(q, 0.5, True)[0],
        lambda q: torch.nn.functional.dropout(q, 0.5),
        lambda q: torch.rand_like(q),
        lambda q: torch.rrelu(q, training=True),
    ],
    ids=["attention", "native_dropout", "dropout", "rand_like", "rrelu"],
)
def test_programs_leave_the_host_s_draws_alone(call):
    """What the host draws while programs run is what it would draw without them."""
    torch.manual_seed(1)
    expected = [torch.rand(64) for _ in range(150)]
    torch.manual_seed(1)
    q = torch.ones(2, 4, 64, 32).to("ltc")
    found = []
    for _ in range(150):
        keep = call(q)
        torch_ltc.mark_step()
        found.append(torch.rand(64))
        del keep
    assert sum(not torch.equal(a, b) for a, b in zip(expected, found)) == 0
