"""Compiled steps whose numbers get to code written in C that nobody tells the recorder of: classes that are called,
operators, functions that other C code calls. A decision by what comes of them is taken anew at each call."""

import array
import collections
import ctypes
import datetime
import decimal
import functools
import itertools
import math
import operator
import statistics
import time
import types

import numpy
import pytest
import torch
import torch_ltc

LIMIT = 3.5
FORMAT, BYTES = "%.1f", b"%.1f"
IMAGINARY, SECOND, ROW, DOUBLE = 1j, datetime.timedelta(seconds=1), numpy.array([2.0]), numpy.float64(2.0)
BELOW = LIMIT.__lt__
POWER = functools.partial(math.pow)


class Number(float):
    pass


class Holder:
    function = math.sqrt


NUMBER, FUNCTIONS, NAME = Number(LIMIT), {"root": math.sqrt, "span": datetime.timedelta}, "sqrt"


def given(function, values):
    return next(map(function, values))


def by_default(v, function=math.sqrt):
    return next(map(function, [v])) > LIMIT**0.5


def through_memory(v):
    view = memoryview(bytearray(8)).cast("d")
    view[0] = v
    return view[0] > LIMIT


def made_and_asked(v):
    return isinstance(v, numpy.ndarray) or numpy.ndarray((1,), "d", memoryview(array.array("d", [v])))[0] > LIMIT


#: Whether a number is more than 3.5, told by C code.
DECISIONS = {
    "of its own class": lambda v: v > type(LIMIT)(LIMIT),
    "made and asked for": made_and_asked,
    "asked for as it is made": lambda v: isinstance(numpy.float32(v), numpy.ndarray) or numpy.float32(v) > LIMIT,
    "duration": lambda v: datetime.timedelta(seconds=v).total_seconds() > LIMIT,
    "class of a duration": lambda v: type(SECOND)(0, v).total_seconds() > LIMIT,
    "class in a dict": lambda v: FUNCTIONS["span"](0, v).total_seconds() > LIMIT,
    "times a duration": lambda v: (SECOND * v).total_seconds() > LIMIT,
    "array": lambda v: array.array("d", [v])[0] > LIMIT,
    "memory of an array": lambda v: memoryview(array.array("d", [v])).tolist()[0] > LIMIT,
    "memory": through_memory,
    "ctypes": lambda v: ctypes.c_double(v).value > LIMIT,
    "numpy array": lambda v: (ROW * v)[0] > 2 * LIMIT,
    "numpy scalar": lambda v: DOUBLE * v > 2 * LIMIT,
    "numpy function": lambda v: numpy.sqrt(v) > LIMIT**0.5,
    "number of a class": lambda v: NUMBER < v,
    "sum with a number of a class": lambda v: NUMBER + v > 2 * LIMIT,
    "complex, left": lambda v: (1j * v).imag > LIMIT,
    "complex, right": lambda v: (v * 1j).imag > LIMIT,
    "complex global": lambda v: (IMAGINARY * v).imag > LIMIT,
    "complex made": lambda v: (complex(0, 1) * v).imag > LIMIT,
    "slot": lambda v: LIMIT.__lt__(v),
    "slot of the class": lambda v: float.__gt__(v, LIMIT),
    "slot by another name": lambda v: BELOW(v),
    "slot by its name": lambda v: getattr(LIMIT, "__lt__")(v),  # noqa: B009
    "mapped slot": lambda v: next(map(LIMIT.__lt__, [v])),
    "method of the class": lambda v: float.hex(v) == (6.0).hex(),
    "mapped method": lambda v: next(map(float.hex, [v])) == (6.0).hex(),
    "mapped": lambda v: next(map(math.sqrt, [v])) > LIMIT**0.5,
    "mapped elsewhere": lambda v: given(math.sqrt, [v]) > LIMIT**0.5,
    "mapped default": by_default,
    "mapped entry": lambda v: next(map(FUNCTIONS["root"], [v])) > LIMIT**0.5,
    "mapped attribute": lambda v: next(map(Holder.function, [v])) > LIMIT**0.5,
    "mapped by name": lambda v: next(map(getattr(math, NAME), [v])) > LIMIT**0.5,
    "mapped from its module's dict": lambda v: next(map(vars(math)["sqrt"], [v])) > LIMIT**0.5,
    "mapped by a getter": lambda v: next(map(operator.attrgetter("sqrt")(math), [v])) > LIMIT**0.5,
    "mapped by a caller": lambda v: operator.methodcaller("sqrt", v)(math) > LIMIT**0.5,
    "mapped, starred": lambda v: next(iter(itertools.starmap(math.pow, [(v, 2.0)]))) > LIMIT**2,
    "reduced": lambda v: functools.reduce(math.hypot, [v, 0.0]) > LIMIT,
    "accumulated": lambda v: list(itertools.accumulate([v, 100.0], math.fmod))[1] > LIMIT,
    "sorted": lambda v: sorted([v, LIMIT], key=math.sqrt)[0] == LIMIT,  # noqa: FURB192
    "filtered": lambda v: list(filter(math.floor, [v / 4])),
    "partial": lambda v: functools.partial(math.pow, v)(2.0) > LIMIT**2,
    "older partial": lambda v: POWER(v, 2.0) > LIMIT**2,
    "format": lambda v: FORMAT % v == "6.0",
    "format of bytes": lambda v: BYTES % v == b"6.0",
    "format of an array of bytes": lambda v: bytearray(b"%.1f") % v == b"6.0",
    "format put together": lambda v: ("%." + str(1) + "f") % v == "6.0",
    "format by the operator": lambda v: operator.mod(FORMAT, v) == "6.0",
    "format by the method": lambda v: "%.1f".__mod__(v) == "6.0",
    "mapped format": lambda v: next(map("%.1f".__mod__, [v])) == "6.0",
}


def outcomes(decide, device, step=lambda f: f):
    """A step that counts by halves on the host, decides by the count, and computes with it."""
    count = torch.zeros(())

    def body(x):
        v = count.add_(0.5).item()
        y = x * (v * 2) + v
        return y * 2 if decide(v) else y

    call = step(body)
    return [call(torch.ones(2, device=device)).cpu() for _ in range(16)], call


def agree(decide):
    expected, _ = outcomes(decide, "cpu")
    found, step = outcomes(decide, "ltc", torch_ltc.compile)
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        torch.testing.assert_close(b, a, msg=lambda m, i=i: f"call {i}: {m}")
    return step


@pytest.mark.parametrize("name", DECISIONS)
def test_what_c_code_makes_of_a_number_is_no_constant(name):
    agree(DECISIONS[name])


ASKED = {
    "itself": lambda v: v > LIMIT,
    "sum": lambda v: sum([0.0, v]) > LIMIT,
    "tuples": lambda v: (v, 1) > (LIMIT, 0),
    "sorted by itself": lambda v: sorted([v, LIMIT])[0] == LIMIT,  # noqa: FURB192
    "largest": lambda v: max(v, LIMIT) != LIMIT,
    "namespace": lambda v: types.SimpleNamespace(v=v).v > LIMIT,
    "queue": lambda v: collections.deque([v])[0] > LIMIT,
    "operator": lambda v: operator.gt(v, LIMIT),
    "pairs": lambda v: dict(zip("a", [v], strict=True))["a"] > LIMIT,
    "instance": lambda v: not isinstance(v, numpy.integer) and v > LIMIT,
    "instance of several": lambda v: not isinstance([v][0], (int, numpy.ndarray, decimal.Decimal)) and v > LIMIT,
}


@pytest.mark.parametrize("name", ASKED)
def test_decisions_that_a_number_is_asked_for_are_replayed(name):
    step = agree(ASKED[name])
    assert step.counts[0] >= 8, step.explain()


CLASSES = {
    "read": lambda holder, count, x: x * holder.rate * (1 if type(holder.rate) is float else 10),
    "made": lambda holder, count, x: x * holder.rate + (1 if type(count.add_(1).item()) is float else 10),
    "given": lambda holder, count, x: x * holder.rate + is_float(holder.rate),
    "attribute": lambda holder, count, x: x * (1 if holder.rate.__class__ in (int, float) else 10) + holder.rate,
    "helper": lambda holder, count, x: x * holder.rate + is_float(count.add_(0.5).item()),
}


def is_float(v):
    return 1 if type(v) is float else 10


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_of_a_number_is_that_of_floats(name):
    outs = []
    for device in ("cpu", "ltc"):
        holder, count = types.SimpleNamespace(rate=0.5), torch.zeros(())
        step = lambda x, holder=holder, count=count: CLASSES[name](holder, count, x)
        step = torch_ltc.compile(step) if device == "ltc" else step
        outs.append([])
        for i in range(9):
            holder.rate = 1 + i / 8 if i < 6 else 2.0
            outs[-1].append((step(torch.ones(2, device=device)).tolist(), type(holder.rate), count.item()))
    assert outs[0] == outs[1]


def test_numbers_make_others_of_their_class():
    agree(lambda v: statistics.mean([v]) > LIMIT)
    agree(lambda v: type(v)(2.0) + v > LIMIT)


@pytest.mark.parametrize(
    "now",
    [
        lambda: next(iter(itertools.starmap(time.perf_counter, [()]))),
        lambda: next(iter(time.perf_counter, None)),
        lambda: collections.defaultdict(time.perf_counter)[0],
    ],
    ids=["starred", "iterated", "default"],
)
def test_functions_that_c_code_calls_refuse_as_those_that_are_called(now):
    step = torch_ltc.compile(lambda x: x * now())
    for _ in range(6):
        step(torch.ones(2, device="ltc"))
    assert step.counts == (0, 6) and "it calls time.perf_counter()" in step.refusal, step.explain()
