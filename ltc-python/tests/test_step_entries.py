"""Numbers and tensors in entries of dicts that a compiled step names by constant keys."""

import pytest
import torch
import torch_ltc
from torch.utils import _pytree as pytree
from torch_ltc._counters import entries_of

STATE = {"n": 0, "sum": 0.0, "last": None, "best": 1e9}


class Holder:
    def __init__(self):
        self.state = {"n": 0, "sum": 0.0}


HOLDER = Holder()


def counts(x):
    STATE["n"] += 1
    return x * 2


def decides(x):
    HOLDER.state["n"] += 1
    return x * 3 if HOLDER.state["n"] % 3 == 0 else x


def averages(x):
    STATE["n"] = STATE["n"] + 1
    STATE["sum"] += x.mean().item()
    return STATE["sum"] / STATE["n"]


def averages_in_an_attribute(x):
    HOLDER.state["n"] += len(x)
    HOLDER.state["sum"] += x.mean().item() * len(x)
    return HOLDER.state["sum"] / HOLDER.state["n"]


def keeps(x):
    STATE["last"] = x * 2
    STATE["n"] += 1
    return STATE["last"] + 1


def least(x):
    STATE["best"] = min(STATE["best"], x.mean().item())
    return STATE["best"]


def in_a_variable():
    state = {"n": 0}

    def step(x):
        state["n"] += 1
        return x * 2 if state["n"] % 2 else x

    return step


def as_an_index(x):
    STATE["n"] += 1
    return x[: STATE["n"] % 3]


def as_a_length(x):
    STATE["n"] += 1
    return x * len(STATE)


def as_a_range(x):
    STATE["n"] += 1
    return [i for i in range(STATE["n"])], x


def shown(x):
    STATE["n"] += 1
    return str(STATE["n"]), x


def run(device, wrap, make):
    STATE.clear()
    STATE.update({"n": 0, "sum": 0.0, "last": None, "best": 1e9})
    HOLDER.__init__()
    step, said = wrap(make() if make is in_a_variable else make), []
    for i in range(18):
        if i == 11:
            STATE["n"], HOLDER.state["n"] = 50, 70
        if i == 13:
            STATE["other"] = 1
        if i == 15:
            HOLDER.state = {"sum": 5.0, "n": 2}
        seen = [step(torch.arange(4.0).to(device) + i), STATE, HOLDER.state]
        said.append(pytree.tree_map(lambda y: y.tolist() if torch.is_tensor(y) else y, seen))
        kept = [*STATE.values(), *HOLDER.state.values()]
        assert all(type(y) in (int, float, type(None), torch.Tensor) for y in kept)
    return said, step


@pytest.mark.parametrize(
    "make", [counts, decides, averages, averages_in_an_attribute, keeps, least, in_a_variable], ids=lambda f: f.__name__
)
def test_entries_are_kept_by_replays(make):
    (said, step), (expected, _) = run("ltc", torch_ltc.compile, make), run("cpu", lambda f: f, make)
    assert said == expected
    assert step.counts[0] >= 6, step.explain()


@pytest.mark.parametrize("make", [as_an_index, as_a_length, as_a_range, shown], ids=lambda f: f.__name__)
def test_entries_that_go_elsewhere_are_compared(make):
    (said, step), (expected, _) = run("ltc", torch_ltc.compile, make), run("cpu", lambda f: f, make)
    assert said == expected
    assert step.counts[0] <= 3, step.explain()


def test_which_code_only_takes_entries():
    d = STATE

    def takes():
        d["a"] += 1
        d["b"] = d["c"] / 2

    def hands_over():
        d["a"] += 1
        return print(d)

    def deletes():
        del d["a"]

    def takes_by_a_variable(key):
        return d[key]

    def asks():
        return "a" in d

    assert entries_of(takes.__code__, "d", True) == {"a", "b", "c"}
    for function in (hands_over, deletes, takes_by_a_variable, asks):
        assert entries_of(function.__code__, "d", True) is None, function
