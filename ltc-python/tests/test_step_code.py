"""What a compiled step knows of code: which file and module it is of, what is registered for it, what it leaves to run
later."""

import gc
import operator
import sys
import types

import numpy
import pytest
import torch
import torch_ltc
from steps import recorded_and_compiled


def function_in(file, source, **scope):
    """A function `f` of a source that is said to be in this file."""
    scope = {"__name__": "__main__", **scope}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


ASKS = "def f(x, rate):\n    return x * rate if type(rate).__name__ == 'float' else x * 0\n"


@pytest.mark.parametrize("first", [None, "<stdin>", "/tmp/model.py"])
@pytest.mark.parametrize("file", ["<stdin>", "<ipython-input-1>", "<string>", "/tmp/model.py"])
def test_code_of_a_console_is_the_programs(file, first):
    """Also where equal code of another file was seen before."""
    if first is not None:
        torch_ltc.compile(function_in(first, ASKS))(torch.ones((), device="ltc"), 0.5)

    def run(compile):
        step = compile(function_in(file, ASKS))
        return [step(torch.ones((), device="ltc"), 0.1 * i).item() for i in range(8)]

    recorded_and_compiled(run)


def test_equal_code_of_two_packages_imports_what_each_means(monkeypatch):
    source = "def f(x):\n    from .settings import SCALE\n    return x * SCALE\n"
    settings = {}
    for package in ("ltc_test_one", "ltc_test_two"):
        for name in (package, f"{package}.settings"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[package].__path__ = []
        settings[package] = sys.modules[package].settings = sys.modules[f"{package}.settings"]

    def run(compile):
        steps = [compile(function_in("model.py", source, __name__=f"{p}.model", __package__=p)) for p in [*settings]]
        out = []
        for i in range(10):
            settings["ltc_test_one"].SCALE, settings["ltc_test_two"].SCALE = 2.0, 2.0 if i < 6 else 3.0
            out.append([step(torch.ones((), device="ltc")).item() for step in steps])
        return out

    assert recorded_and_compiled(run).counts[0] > 3


FORMAT = "{.__class__.__name__}"
CLASS_OF = operator.attrgetter("__class__.__name__")
KINDS = {
    "attrgetter": lambda r: CLASS_OF(r) == "float",
    "format": lambda r: FORMAT.format(r) == "float",
    "format in the code": lambda r: "{.__class__.__name__}".format(r) == "float",  # noqa: UP032
    "getattr": lambda r: getattr(r, "__class__") is float,  # noqa: B009
}


@pytest.mark.parametrize("name", KINDS)
def test_what_class_a_number_is_of_may_be_asked_in_many_ways(name):
    def run(compile):
        step = compile(lambda x, rate: x * rate if KINDS[name](rate) else x * 0)
        return [step(torch.ones((), device="ltc"), 0.1 * i).item() for i in range(8)]

    recorded_and_compiled(run)


def times(factor):
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return function


CHANGES = {
    "another kernel": lambda op: op.register_kernel("ltc")(times(3.0)),
    "no kernel": lambda op: op.set_kernel_enabled("ltc", False),
    "another gradient": lambda op: op.register_autograd(lambda ctx, g: g * 7),
}


@pytest.mark.parametrize("name", CHANGES)
def test_operators_of_the_program_may_be_registered_anew(name):
    made = []

    def run(compile):
        made.append(
            torch.library.custom_op(f"ltc_test::{name.replace(' ', '_')}{len(made)}", mutates_args=())(times(5.0))
        )
        op, out = made[-1], []
        op.register_kernel("ltc")(times(2.0))
        op.register_autograd(lambda ctx, g: g * 2)
        step = compile(lambda x: torch.autograd.grad(op(x), x)[0] if "gradient" in name else op(x))
        for i in range(10):
            if i == 5:
                CHANGES[name](op)
            out.append(step(torch.ones((), device="ltc", requires_grad=True)).item())
        return out

    recorded_and_compiled(run)


def test_a_finaliser_that_is_still_to_run_refuses_the_step():
    def run(compile):
        ran, out = [], []

        class Node:
            def __init__(self):
                self.me = self

            def __del__(self):
                ran.append(1)

        def make(x):
            Node()
            return x * 2

        step = compile(make)
        for _ in range(6):
            step(torch.ones(2, device="ltc"))
            gc.collect()
            out.append(len(ran))
        return out

    assert "finaliser" in recorded_and_compiled(run).explain()


def test_a_ufunc_of_any_function_refuses_the_step():
    def run(compile):
        table, out = {1: 1.0}, []
        look_up = numpy.frompyfunc(table.get, 1, 1)
        step = compile(lambda x: x * float(look_up(1)))
        for i in range(8):
            table[1] = 1.0 if i < 5 else 2.0
            out.append(step(torch.ones((), device="ltc")).item())
        return out

    recorded_and_compiled(run)
