"""Floats among the arguments of a compiled step that change from call to call are read by replays."""

import math
import random
import threading

import numpy as np
import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F

VALUES = [0.25, 0.5, -0.75, 3.0, 1e-3, 0.0, -0.0, math.inf, 0.1, math.nan, -2.0, 7.5, 1e30, 0.3]


def learn(net, optimiser, x, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.detach()


def mixup(net, optimiser, x, lam):
    y = torch.zeros(5, dtype=torch.long, device=x.device)
    mixed = lam * x + (1 - lam) * x.flip(0)
    return learn(net, optimiser, x, lam * F.cross_entropy(net(mixed), y) + (1 - lam) * F.cross_entropy(net(x), y + 1))


def rate(net, optimiser, x, lam):
    for group in optimiser.param_groups:
        group["lr"] = 0.1 * lam
    return learn(net, optimiser, x, net(x).square().mean())


def decides(net, optimiser, x, lam):
    loss = net(x).square().mean()
    return learn(net, optimiser, x, loss * lam if lam > 0.5 else loss)


def keeps(net, optimiser, x, lam):
    net.last = 2 * lam
    return learn(net, optimiser, x, net(x).mean() * lam), lam, {"twice": lam * 2}


def slices(net, optimiser, x, lam):
    return learn(net, optimiser, x, net(x)[: int(1e6 * lam) % 5 + 1].square().mean())


def writes_down(net, optimiser, x, lam):
    net.name = f"{lam:.4f}"
    return learn(net, optimiser, x, net(x).mean() * lam)


def rounds(net, optimiser, x, lam):
    return learn(net, optimiser, x, net(x).mean() * math.sqrt(lam))


def trained(device, wrap, body, by_name, n=24):
    torch.manual_seed(0)
    numbers, net = random.Random(1), nn.Linear(4, 3).to(device)
    net.last, net.name = 0.0, ""
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    step = wrap(lambda x, *args, **kwargs: body(net, optimiser, x, *args, **kwargs))
    said = []
    for _ in range(n):
        x, lam = torch.randn(5, 4).to(device), numbers.random()
        out = step(x, lam=lam) if by_name else step(x, lam)
        out = out if isinstance(out, tuple) else (out,)
        assert all(type(y) in (float, dict) for y in out[1:]) and type(net.last) is float
        said.append(([out[0].item(), *out[1:]], net.last, net.name))
    return said, [p.detach().cpu() for p in net.parameters()], step


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("body", [mixup, rate, decides, keeps])
def test_a_float_that_changes_is_read_by_replays(body, by_name):
    said, parameters, _ = trained("cpu", lambda f: f, body, by_name)
    got, lazy, step = trained("ltc", torch_ltc.compile, body, by_name)
    for (out, *kept), (expected, *others) in zip(got, said, strict=True):
        assert out[0] == pytest.approx(expected[0], rel=1e-4, abs=1e-6) and out[1:] == expected[1:] and kept == others
    torch.testing.assert_close(lazy, parameters, rtol=1e-4, atol=1e-5)
    assert step.counts[0] >= 8, step.explain()


@pytest.mark.parametrize("body", [slices, writes_down, rounds])
def test_a_float_that_the_step_does_more_with_than_compute_tells_captures_apart(body):
    n = 40
    said, parameters, _ = trained("cpu", lambda f: f, body, False, n)
    got, lazy, step = trained("ltc", torch_ltc.compile, body, False, n)
    for (out, *kept), (expected, *others) in zip(got, said, strict=True):
        assert out[0] == pytest.approx(expected[0], rel=1e-4, abs=1e-6) and kept == others
    torch.testing.assert_close(lazy, parameters, rtol=1e-4, atol=1e-5)
    assert step.counts[0] <= n // 4 and "test_step_floats.py" in step.refusal, step.explain()


def test_every_float_gives_what_it_gives_without_compiling():
    step = torch_ltc.compile(lambda x, lam: (x * lam, lam + x))
    x = torch.tensor([1.0, -2.0, 0.0])
    for lam in VALUES:
        for got, expected in zip(step(x.to("ltc"), lam), (x * lam, lam + x), strict=True):
            assert torch.equal(got.cpu().view(torch.int32), expected.view(torch.int32)), lam
    assert step.counts[0] >= 8, step.explain()


def test_two_values_have_a_capture_each():
    """One that is a setting may decide what the step does: there is no need to look for what it changes."""
    step = torch_ltc.compile(lambda x, p: x[: int(p)] * p)
    for i in range(12):
        p = (2.0, 3.0)[i % 2]
        assert step(torch.ones(4, device="ltc"), p).tolist() == [p] * int(p)
    assert step.counts[0] >= 6, step.explain()


@pytest.mark.parametrize("value", [int, str])
def test_what_is_no_float_is_named(value):
    def step(x, unit, count):
        return x * int(count)

    step = torch_ltc.compile(step)
    for i in range(6):
        assert step(torch.ones(2, device="ltc"), None, value(i)).tolist() == [i] * 2
    assert step.refusal.startswith("its argument count changes from call to call"), step.refusal
    assert step.counts == (0, 6)


def test_positions_and_names_are_told_apart():
    step = torch_ltc.compile(lambda a, /, x, **names: x * a + names["a"] * 2)
    for i in range(14):
        a, b = i / 4, 10 - i / 8
        assert step(a, torch.ones(2, device="ltc"), a=b).tolist() == [a + 2 * b] * 2
    assert step.counts[0] >= 8, step.explain()


@pytest.mark.parametrize("by_name", [False, True])
def test_one_float_in_two_places_is_one_object(by_name):
    def body(x, a, b):
        return (x * a * 2 if a is b else x * b * 3).detach()

    step = torch_ltc.compile(body)
    for i in range(36):
        one = float(i)
        other = one if i % 3 else float(i)
        assert (one is other) == bool(i % 3)
        numbers = {"a": one, "b": other} if by_name else {}
        args = () if by_name else (one, other)
        found = step(torch.ones(2, device="ltc"), *args, **numbers)
        assert torch.equal(found.cpu(), body(torch.ones(2), *args, **numbers)), i
    assert step.counts[0] >= 24, step.explain()


def test_a_step_that_raises_leaves_numbers_as_they_were():
    seen = []

    def body(x, lam):
        seen.append(lam)
        if len(seen) % 5 == 0:
            raise ValueError("no", lam)
        return x * lam

    step = torch_ltc.compile(lambda x, lam: body(x, lam) + 0)
    for i in range(15):
        lam = i / 4
        try:
            assert step(torch.ones(2, device="ltc"), lam).tolist() == [lam] * 2
        except ValueError as e:
            assert type(e.args[1]) is float and e.args[1] == lam
    assert seen == [i / 4 for i in range(15)] and {type(x) for x in seen} == {float}


def test_threads_give_their_own_floats():
    step = torch_ltc.compile(lambda x, lam: x * lam)
    wrong = []

    def work(first):
        for i in range(300):
            lam = first + i
            got = step(torch.ones(1, device="ltc"), lam)
            if i % 7 == 0 and got.item() != lam:
                wrong.append((lam, got.item()))

    threads = [threading.Thread(target=work, args=(1000.0 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and step.counts[0] > 0, (wrong[:3], step.explain())


def test_a_step_within_itself():
    def body(x, lam):
        return x * lam if lam < 1 else step(x, lam / 2) + lam

    step = torch_ltc.compile(body)

    def expected(lam):
        return lam if lam < 1 else expected(lam / 2) + lam

    for i in range(16):
        lam = 0.5 + i / 3
        assert step(torch.ones(1, device="ltc"), lam).item() == pytest.approx(expected(lam))


KINDS = (int, float)


def by_class(x, lam):
    return x * lam if type(lam) in KINDS else x * 100


def in_a_dict(x, lam):
    ask = lambda d: type(d["l"]) in KINDS
    return x * lam * (1.0 if ask({"l": lam}) else 100.0)


@pytest.mark.parametrize("body", [by_class, in_a_dict], ids=lambda f: f.__name__)
def test_code_that_asks_for_the_class_of_a_float_finds_a_float(body):
    step = torch_ltc.compile(body)
    for i in range(12):
        lam = 0.3 + i / 7
        torch.testing.assert_close(step(torch.ones(2).to("ltc"), lam).cpu(), torch.full((2,), lam))


def test_a_number_that_an_operator_makes_of_a_float_is_not_taken_for_it():
    """The root of 0 and that of 1 are what they are of."""
    step = torch_ltc.compile(lambda x, scale: nn.functional.scaled_dot_product_attention(x, x, x, scale=scale))
    x = torch.randn(1, 2, 4, 8, generator=torch.Generator().manual_seed(0))
    for scale in (0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 1.0, 0.5, 0.25, 0.7, 0.9):
        expected = nn.functional.scaled_dot_product_attention(x, x, x, scale=scale)
        torch.testing.assert_close(step(x.to("ltc"), scale).cpu(), expected, rtol=1e-4, atol=1e-5)


# ---- C++ that decides by a number ----

LABELS = torch.tensor([0, 2, 1])
DECIDE_IN_CPP = {
    "smooths": (lambda x, v: F.cross_entropy(x, LABELS.to(x.device), label_smoothing=v), [-0.3, -0.2, -0.1, -0.4, 0.5]),
    "drops": (
        lambda x, v: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=v),
        [0.3, 0.2, 0.1, 0.4, -0.5],
    ),
    "tolerance": (lambda x, v: torch.isclose(x, x * 1.1, rtol=v), [0.01, 0.2, 0.1, 0.4, -0.5]),
    "floor": (lambda x, v: F.cosine_similarity(x, x + 1, eps=v), [0.01, 0.2, 0.1, 0.4, -0.5]),
    "norm": (lambda x, v: torch.pdist(x, p=v), [0.5, 2.5, 3.5, 1.5, -0.5]),
    "slope": (lambda x, v: F.rrelu(x, v, 0.8), [0.1, 0.2, 0.3, 0.4, 0.9]),
    "part": (lambda x, v: torch.dropout(x, v, False), [0.1, 0.2, 0.3, 0.4, 1.5]),
    "place": (lambda x, v: torch.quantile(x, v), [0.1, 0.2, 0.3, 0.4, 1.5]),
}


@pytest.mark.parametrize("name", DECIDE_IN_CPP)
def test_a_number_that_cpp_may_decide_by_is_compared(name):
    compute, values = DECIDE_IN_CPP[name]
    x = torch.linspace(-2.0, 3.0, 12).reshape(3, 4)
    step = torch_ltc.compile(compute)
    said = []
    for given, f in ((x, compute), (x.to("ltc"), step)):
        said.append([])
        for v in [*values[:4]] * 2 + values[4:]:
            try:
                said[-1].append(f(given, v).cpu())
            except RuntimeError as error:
                said[-1].append(str(error).splitlines()[0])
    for got, expected in zip(said[1], said[0], strict=True):
        if isinstance(expected, str):
            assert got == expected
        else:
            torch.testing.assert_close(got, expected)
    assert step.counts[0] == 0


def test_the_function_that_may_decide_is_named():
    step = torch_ltc.compile(lambda x, v: F.hardtanh(x, -1.0, v))
    for i in range(12):
        step(torch.ones(3, device="ltc"), i / 2)
    assert "hardtanh may decide by a number" in step.refusal and "test_step_floats.py" in step.refusal, step.refusal


def test_a_tensor_of_a_number_is_made_on_the_device():
    values = [0.5, 1e39, -1e39, 3.0, 1e-42, math.nan, 0.0, -0.0, 7.0]

    def body(x, v):
        return x * torch.tensor(v, device=x.device), torch.tensor([v * 2, 1e39], dtype=torch.float16, device=x.device)

    step = torch_ltc.compile(body)
    for v in values:
        for got, expected in zip(step(torch.ones(2, device="ltc"), v), body(torch.ones(2), v), strict=True):
            torch.testing.assert_close(got.cpu(), expected, equal_nan=True, rtol=0, atol=0)
    assert step.counts[0] >= 4, step.explain()


def alpha_gradient(a, v, add):
    b, given = a.clone().requires_grad_(), torch.ones_like(a)
    (g,) = torch.autograd.grad(add(a, b, v), b, grad_outputs=given)
    g.mul_(2)
    return g.sum(), given.sum()


ADDS = {
    "add": lambda a, b, v: torch.add(a, b, alpha=v),
    "sub": lambda a, b, v: torch.sub(a, b, alpha=v),
    "in place": lambda a, b, v: a.clone().add_(b, alpha=v),
    "of lists": lambda a, b, v: torch._foreach_add([a], [b], alpha=v)[0],
    "beta": lambda a, b, v: torch.addmm(b, a, a, beta=v),
}


@pytest.mark.parametrize("name", ADDS)
def test_a_gradient_that_is_the_given_one_where_a_part_counts_once(name):
    """libtorch multiplies a gradient by no 1: it is the very tensor that came, which the step then writes to."""
    add, a = ADDS[name], torch.full((2, 2), 0.5)
    step = torch_ltc.compile(lambda a, v: alpha_gradient(a, v, add))
    for v in [0.1, 0.2, 0.3, 0.4, 0.7, 1.0, 0.8, 1.0, 0.5, 1.0, 1.0, 0.9]:
        got = [t.item() for t in step(a.to("ltc"), v)]
        assert got == pytest.approx([t.item() for t in alpha_gradient(a, v, add)], rel=1e-5), v
    assert step.counts[0] >= 4, step.explain()


def leaky_gradient(x, v):
    x = x.clone().requires_grad_()
    F.leaky_relu_(x * 1, v).sum().backward()
    return x.grad


HALVES = {
    "clamp": lambda x, v: x.clamp(max=v),
    "fill": lambda x, v: x.clone().fill_(v),
    "mask": lambda x, v: x.masked_fill(x > 0, v),
    "alpha": lambda x, v: torch.add(x, x, alpha=v),
    "slope": leaky_gradient,
}


@pytest.mark.parametrize("name", HALVES)
def test_errors_of_numbers_beside_halves_stay_errors(name):
    compute, x = HALVES[name], torch.tensor([-1.0, 2.0], dtype=torch.float16)
    step = torch_ltc.compile(compute)
    for v in [0.5, 0.25, 0.75, 2.0, 3.0, 70000.0, 0.5, -1.0, math.inf]:
        got, expected = (called(f, given, v) for f, given in ((step, x.to("ltc")), (compute, x.to("ltc"))))
        assert got == expected, v
    assert step.counts[0] >= 2, step.explain()


def called(compute, x, v):
    try:
        return compute(x, v).tolist()
    except RuntimeError as error:
        return str(error).splitlines()[0]


ATTRIBUTES = {
    "name": lambda v: hasattr(v, "name"),
    "recorder": lambda v: hasattr(v, "recorder"),
    "dict": lambda v: hasattr(v, "__dict__"),
    "doc": lambda v: v.__doc__ == float.__doc__,
    "real": lambda v: hasattr(v, "real"),
}


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_number_has_the_attributes_of_a_float(name, read):
    ask = ATTRIBUTES[name]

    def body(x, v):
        return x * (2 if ask(x.sum().item() if read else v) else 3)

    step = torch_ltc.compile(body)
    for i in range(8):
        assert step(torch.ones(1, device="ltc"), i / 4).item() == body(torch.ones(1), i / 4).item()


ARRAY, SCALAR = np.ones(3, np.float32), np.float32(2.5)
BESIDE_NUMPY = {
    "array": lambda v: ARRAY * v,
    "array on the right": lambda v: v - ARRAY,
    "scalar": lambda v: SCALAR * v,
    "scalar on the right": lambda v: v / SCALAR,
    "half": lambda v: np.float16(2) * v,
    "double": lambda v: np.float64(2) * v,
    "written to": lambda v: np.multiply(ARRAY, v, out=np.empty(3, np.float32)),
    "power": lambda v: ARRAY**v,
    "both": lambda v: divmod(SCALAR, v),
    "choice": lambda v: np.where(ARRAY > 0.5, ARRAY, v),
    "bounds": lambda v: np.clip(ARRAY, 0, v),
    "kind": lambda v: np.result_type(ARRAY, v),
    "outer": lambda v: np.subtract.outer(ARRAY, v),
    "sum": lambda v: sum([ARRAY, v]),
    "order": lambda v: ARRAY < v,
}


@pytest.mark.parametrize("name", BESIDE_NUMPY)
def test_numpy_keeps_its_dtype_beside_a_number(name):
    """A Python float takes part in NumPy's arithmetic with the dtype of what it meets; one of a subclass does not."""
    found = []
    for i, compute in enumerate((BESIDE_NUMPY[name], torch_ltc.compile(lambda x, v: (x * v, BESIDE_NUMPY[name](v))))):
        values = [0.5 + k / 4 for k in range(7)]
        out = [compute(torch.ones(2, device="ltc"), v)[1] if i else compute(v) for v in values]
        found.append([(type(x), np.asarray(x).dtype, np.asarray(x).tolist()) for x in out])
    assert found[0] == found[1]
