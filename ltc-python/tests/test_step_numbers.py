"""Functions that only compute with the numbers they take (`torch_ltc._host_words`): whatever a number that changes is,
a replay gives what recording gives, errors included. And numbers that something holds when their call has ended."""

import contextvars
import copy
import functools
import math
import pickle
import types

import pytest
import torch
import torch_ltc
from torch.nn import functional as F
from torch_ltc._host_written import LineWriter
from torch_ltc._traced import TracedFloat

X = torch.tensor([[0.5, -1.5, 0.0, 2.0], [-0.0, 1.0, -3.0, 0.25]])
#: A capture is confirmed by the first ones.
VALUES = [
    0.3,
    0.7,
    0.6,
    0.9,
    0.0,
    1.0,
    -1.0,
    2.0,
    0.5,
    -0.5,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1e30,
    1e-42,
    1e39,
    0.4,
]


def norm_keeps(x, v):
    mean = torch.zeros(4, device=x.device)
    F.batch_norm(x, mean, mean + 1, training=True, momentum=v)
    return mean


CALLS = {
    "add": lambda x, v: x + v,
    "radd": lambda x, v: v + x,
    "sub": lambda x, v: x - v,
    "rsub": lambda x, v: v - x,
    "alpha": lambda x, v: torch.add(x, x, alpha=v),
    "subalpha": lambda x, v: torch.sub(x, x, alpha=v),
    "rsuba": lambda x, v: torch.rsub(x, x, alpha=v),
    "mul": lambda x, v: x * v,
    "div": lambda x, v: x / v,
    "rdiv": lambda x, v: v / x,
    "floor": lambda x, v: x // v,
    "rfloor": lambda x, v: v // x,
    "mod": lambda x, v: x % v,
    "rmod": lambda x, v: v % x,
    "fmod": lambda x, v: torch.fmod(x, v),
    "divf": lambda x, v: torch.div(x, v, rounding_mode="floor"),
    "divt": lambda x, v: torch.div(x, v, rounding_mode="trunc"),
    "pow": lambda x, v: x**v,
    "rpow": lambda x, v: v**x,
    "fpow": lambda x, v: torch.float_power(x, v),
    "ipow": lambda x, v: x.clone().pow_(v),
    "lt": lambda x, v: x < v,
    "le": lambda x, v: x <= v,
    "eq": lambda x, v: x == v,
    "ne": lambda x, v: x != v,
    "ge": lambda x, v: x >= v,
    "gt": lambda x, v: x > v,
    "ilt": lambda x, v: x.long() < v,
    "iadd": lambda x, v: x.long() + v,
    "imul": lambda x, v: x.long() * v,
    "idiv": lambda x, v: x.long() / v,
    "ipw": lambda x, v: x.long() ** v,
    "iadd_": lambda x, v: x.long().add_(v),
    "badd": lambda x, v: (x > 0) + v,
    "bmul": lambda x, v: (x > 0) * v,
    "hadd": lambda x, v: x.half() + v,
    "hmul": lambda x, v: x.bfloat16() * v,
    "dmul": lambda x, v: x.double() * v,
    "cmul": lambda x, v: x.to(torch.complex64) * v,
    "clamp": lambda x, v: x.clamp(min=v),
    "clamp2": lambda x, v: x.clamp(-v, v),
    "clampmax": lambda x, v: torch.clamp_max(x, v),
    "iclamp": lambda x, v: x.long().clamp(min=v),
    "lerp": lambda x, v: torch.lerp(x, x * 2 + 1, v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addcdiv": lambda x, v: torch.addcdiv(x, x, x + 1, value=v),
    "addmm": lambda x, v: torch.addmm(x @ x.T, x, x.T, beta=v),
    "addmma": lambda x, v: torch.addmm(x @ x.T, x, x.T, alpha=v),
    "addmv": lambda x, v: torch.addmv(x[:, 0], x, x[0], beta=v),
    "addr": lambda x, v: torch.addr(x, x[:, 0], x[0], beta=v, alpha=v),
    "baddbmm": lambda x, v: torch.baddbmm((x @ x.T)[None], x[None], x.T[None], beta=v),
    "addbmm": lambda x, v: torch.addbmm(x @ x.T, x[None], x.T[None], beta=v),
    "where": lambda x, v: torch.where(x > 0, v, x),
    "where2": lambda x, v: torch.where(x > 0, x, v),
    "maskedfill": lambda x, v: x.masked_fill(x > 0, v),
    "ifill": lambda x, v: x.long().masked_fill(x > 0, v),
    "indexfill": lambda x, v: x.index_fill(1, torch.tensor([0, 2], device=x.device), v),
    "fill": lambda x, v: x.clone().fill_(v),
    "hfill": lambda x, v: x.half().fill_(v),
    "full": lambda x, v: x + torch.full((4,), v, device=x.device),
    "fulllike": lambda x, v: torch.full_like(x, v),
    "newfull": lambda x, v: x.new_full((2,), v),
    "setitem": lambda x, v: (y := x.clone(), y.__setitem__(0, v))[0],
    "scalart": lambda x, v: x * torch.scalar_tensor(v, device=x.device),
    "tens": lambda x, v: x * torch.tensor(v, device=x.device),
    "leaky": lambda x, v: F.leaky_relu(x, v),
    "elu": lambda x, v: F.elu(x, v),
    "celu": lambda x, v: F.celu(x, v),
    "softplus": lambda x, v: F.softplus(x, v),
    "softplust": lambda x, v: F.softplus(x, 1.0, v),
    "hardshrink": lambda x, v: F.hardshrink(x, v),
    "threshold": lambda x, v: F.threshold(x, v, 0.3),
    "threshold2": lambda x, v: F.threshold(x, 0.1, v),
    "nan": lambda x, v: torch.nan_to_num(x / 0, v, 1.0, v),
    "sl1": lambda x, v: F.smooth_l1_loss(x, x * 2, beta=v),
    "huber": lambda x, v: F.huber_loss(x, x * 2, delta=v),
    "bn": lambda x, v: F.batch_norm(x, None, None, training=True, eps=v),
    "bnm": norm_keeps,
    "ln": lambda x, v: F.layer_norm(x, (4,), eps=v),
    "gn": lambda x, v: F.group_norm(x[None].transpose(1, 2).contiguous(), 2, eps=v),
    "inn": lambda x, v: F.instance_norm(x[None], eps=v),
    "normal": lambda x, v: torch.empty_like(x).normal_(v, 1.0),
    "normals": lambda x, v: torch.empty_like(x).normal_(0.0, v),
    "bern": lambda x, v: torch.empty_like(x).bernoulli_(v),
    "unif": lambda x, v: torch.empty_like(x).uniform_(-v, v),
    "gumbel": lambda x, v: F.gumbel_softmax(x, v),
    "normalf": lambda x, v: torch.normal(v, 1.0, (3,), device=x.device),
    "normalf2": lambda x, v: torch.normal(0.0, v, (3,), device=x.device),
    "normalt": lambda x, v: torch.normal(x, v),
    "bernf": lambda x, v: torch.bernoulli(x, v),
    "fadd": lambda x, v: torch._foreach_add([x, x], v)[0],
    "fpw": lambda x, v: torch._foreach_pow([x, x], v)[0],
    "fclamp": lambda x, v: torch._foreach_clamp_min([x], v)[0],
    "flerp": lambda x, v: torch._foreach_lerp([x], [x + 1], v)[0],
    "fmax": lambda x, v: torch._foreach_maximum([x], v)[0],
}
#: Those that are recorded: libtorch makes a tensor of the number, or one of their results holds whole numbers.
RECORDED = {"rmod", "iadd_", "ifill", "nan"}


def called(compute, x, v):
    torch.manual_seed(3)
    try:
        return compute(x, v).cpu()
    except (RuntimeError, ValueError) as error:
        return type(error), str(error).splitlines()[0]


def signs(t):
    t = torch.view_as_real(t) if t.is_complex() else t
    return torch.signbit(t) | torch.isnan(t)


@pytest.mark.parametrize("name", CALLS)
def test_a_replay_computes_with_any_number(name):
    compute, x = CALLS[name], X.to("ltc")
    step = torch_ltc.compile(compute)
    for v in VALUES:
        got, expected = called(step, x, v), called(compute, x, v)
        if isinstance(expected, tuple):
            assert got == expected, v
        else:
            torch.testing.assert_close(got, expected, equal_nan=True)
            assert torch.equal(signs(got), signs(expected)), v
    assert (step.counts[0] == 0) == (name in RECORDED), step.explain()


CONTEXT = contextvars.ContextVar("scale", default=1.0)


def by_context(v):
    CONTEXT.set(v)
    return lambda x: x * CONTEXT.get()


def by_exception(v):
    e = ValueError(v)
    return lambda x: x * e.args[0]


def by_generator(v):
    def values():
        while True:
            yield v

    it = values()
    return lambda x: x * next(it)


HOLDERS = {
    "context": by_context,
    "default": lambda v: lambda x, v=v: x * v,
    "exception": by_exception,
    "generator": by_generator,
    "key": lambda v: functools.partial(lambda d, x: x * next(iter(d)), {v: "best"}),
    "partial": lambda v: functools.partial(lambda v, x: v * x, v),
    "slice": lambda v: functools.partial(lambda s, x: x * s.stop, slice(v)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_number_that_outlives_its_call_is_none_of_a_later_one(holder):
    """Some holders keep what a step has read off the device where nothing finds it: it is a plain number afterwards."""

    def go(wrap):
        owner = types.SimpleNamespace(rescale=lambda x: x)

        def body(x, calibrate):
            if calibrate:
                owner.rescale = HOLDERS[holder](x.abs().max().item())
            return owner.rescale(x.sum().item())

        step = wrap(body)
        found = [step(torch.tensor([1.0, 2.0, float(i)]).to("ltc"), i in (0, 4)) for i in range(16)]
        kept = CONTEXT.get() if holder == "context" else 4.0
        assert type(pickle.loads(pickle.dumps(kept))) is type(copy.deepcopy(kept)) is float and kept == 4.0
        return found

    assert go(torch_ltc.compile) == go(lambda body: body)


def test_numbers_of_two_captures_meet_as_plain_ones():
    """As where two threads capture steps that share an optimiser."""
    one, other = LineWriter([]), LineWriter([])
    a, b = one._traced_float(3.0, "v0"), other._traced_float(2.0, "v0")
    for compute in (lambda: a + b, lambda: b - a, lambda: a**b, lambda: a < b, lambda: divmod(a, b)):
        assert not isinstance(compute(), TracedFloat)
    assert type(a + 1.0) is TracedFloat
    for writer in (one, other):
        assert any("raise Changed" in line.text for line in writer._lines)
