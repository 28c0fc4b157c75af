"""Objects that the garbage collector does not track (empty dicts, texts): it does not tell how old they are."""

import functools

import torch
import torch_ltc
from torch_ltc._places import Place
from torch_ltc._untracked import Untracked

X = torch.tensor([1.0, 2.0, 3.0])


def wrapped(function):
    """A function that stands in for another, with all that `functools.wraps` copies."""

    @functools.wraps(function)
    def stand_in(*given):
        return function(*given)

    return stand_in


def test_functions_that_name_themselves_are_the_step_s_own():
    """They are in a cycle, so that the empty dict of their annotations is still there when the step has ended."""

    def step(x):
        def halves(x, depth):
            return x if depth == 0 else halves(x / 2, depth - 1)

        return wrapped(halves)(x, 2)

    step = torch_ltc.compile(step)
    for _ in range(8):
        assert torch.equal(step(X.to("ltc")).cpu(), X / 4)
    assert step.counts[0] >= 4, step.explain()


def test_older_dicts_in_cycles_of_the_step_s_own_are_watched():
    """Whoever holds them: a list of the program, a variable of the caller's, or only the function that is compiled."""
    for how in ("list", "variable", "default"):
        settings = {}
        holders = [settings] if how == "list" else []

        def run(x, settings):
            def scaled(x, settings=settings):
                return x * settings.get("factor", 2.0) if len(x.shape) else scaled(x)

            return scaled(x)

        def step(x, given=None if how == "list" else settings, holders=holders):
            return run(x, holders[0] if holders else given)

        step = torch_ltc.compile(step if how != "variable" else functools.partial(run, settings=settings))
        for i in range(12):
            if i in (6, 9):
                settings["factor"] = float(i)
            factor = 2.0 if i < 6 else 6.0 if i < 9 else 9.0
            assert torch.equal(step(X.to("ltc")).cpu(), X * factor), (how, i, step.explain())


class Batch:
    def __init__(self, x, settings):
        self.x, self.settings = x, settings


def test_dicts_that_arguments_bring_are_watched():
    settings = {}

    def step(batch):
        def scaled(x, settings=batch.settings):
            return x * settings.get("factor", 2.0) if len(x.shape) else scaled(x)

        return scaled(batch.x)

    step = torch_ltc.compile(step)
    for i in range(12):
        if i == 8:
            settings["factor"] = 5.0
        found = step(Batch(X.to("ltc"), settings)).cpu()
        assert torch.equal(found, X * (2.0 if i < 8 else 5.0)), (i, step.explain())


def test_what_something_older_holds_besides_a_cycle_is_not_dropped():
    for is_held in (False, True):
        older, made = [{}], []
        made.append([made, older[0]])
        untracked, places = Untracked(), [Place("dict", older[0], None, None)]
        untracked.note(older[0], is_held=False)
        untracked.end()
        if not is_held:
            older.clear()
        dropped = untracked.dropped(places, lambda x, older=older: x is older, lambda: None)
        assert dropped == (set() if is_held else {id(places[0].holder)})
