"""Whole numbers that a compiled step reads off the device are returned, kept and counted with by replays; where code
does more with one, the step is recorded."""

import sys

import pytest
import torch
import torch_ltc
from steps import both
from torch.utils._pytree import tree_leaves
from torch_ltc._flows import only_kept_in
from torch_ltc._traced import TracedFloat, TracedInt


class Meter:
    """As training scripts write it."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Counts:
    """Steps that read how many numbers are positive."""

    def __init__(self):
        self.meter = Meter()
        self.right = self.seen = self.last = 0
        self.share = self.offset = 0.5

    def returns(self, x):
        return (x > 0).sum().item()

    def returns_from_a_variable(self, x):
        n = (x > 0).sum().item()
        return {"n": n, "share": n / 4, "list": [n + 1, (n, -n)], "x": x * 2}

    def keeps(self, x):
        self.last = (x > 0).sum().item()
        return x

    def adds_up(self, x):
        self.right += (x > 0).sum().item()
        self.seen += len(x)
        return self.right / self.seen

    def adds_to_a_variable(self, x):
        total = 3
        total += (x > 0).sum().item()
        return total

    def keeps_a_share(self, x):
        n = (x > 0).sum().item()
        self.share = n / 4
        return x.sum()

    def keeps_a_float(self, x):
        self.share = x.amax().item()
        return x

    def averages(self, x):
        self.meter.update(x.mean().item(), len(x))

    def averages_over_a_count(self, x):
        self.right = self.right + 2
        self.share += x.sum().item()
        return self.share / self.right


class Unseen(Counts):
    """What takes a whole number without asking it."""

    def float_on_the_left(self, x):
        y = 0.5
        return y + (x > 0).sum().item()

    def attribute_on_the_left(self, x):
        return self.offset + (x > 0).sum().item()

    def float_from_a_variable(self, x):
        n = (x > 0).sum().item()
        return 0.5 * n

    def keeps_its_class(self, x):
        self.right = (x > 0).sum().item()
        return str(type(self.right))

    def repeats(self, x):
        return [0] * (x > 0).sum().item()

    def ranges(self, x):
        n = (x > 0).sum().item()
        return list(range(n))

    def indexes(self, x):
        n = (x > 0).sum().item()
        return (1.0, 2.0, 3.0, 4.0, 5.0)[n]

    def decides(self, x):
        n = (x > 0).sum().item()
        return 1 if n > 2 else 0

    def formats(self, x):
        n = (x > 0).sum().item()
        return f"{n} of 4"

    def converts(self, x):
        return float((x > 0).sum().item())

    def hands_over(self, x):
        return x * (x > 0).sum().item()

    def by_a_function(self, x):
        def count():
            return (x > 0).sum().item()

        return max(count(), 2)

    def by_name(self, x):
        n = (x > 0).sum().item()
        return locals()["n"]

    def joins(self, x):
        n = (x > 0).sum().item()
        return (1, n) + (2,)

    def keeps_in_what_it_makes(self, x):
        meter = Meter()
        meter.val = (x > 0).sum().item()
        return list(range(meter.val))

    def keeps_behind_a_property(self, x):
        self.twice = (x > 0).sum().item()
        return self.right

    @property
    def twice(self):
        return self.right

    @twice.setter
    def twice(self, n):
        self.right = len([0] * n) * 2

    def starts_again_from_a_float(self, x):
        self.right += 1
        self.share = 0.25
        self.share = self.share * 2.0
        return self.share / self.right


def run_of(kind, name, steady=0, calls=16):
    def run(device, compiled):
        steps = kind()
        step, found = compiled(getattr(steps, name)), []
        for i in range(calls):
            generator = torch.Generator().manual_seed(max(i, steady))
            out = step(torch.randn(4, generator=generator).to(device))
            if i == 11:
                steps.meter.reset()
            here = [*tree_leaves(out), *vars(steps).values(), *vars(steps.meter).values()]
            numbers = [x for x in here if isinstance(x, (int, float, str))]
            assert not any(type(x) in (TracedFloat, TracedInt) for x in numbers)
            found += [x for x in here if isinstance(x, torch.Tensor)]
            found.append([(type(x), round(x, 4) if type(x) is float else x) for x in numbers])
        return found

    return run


def methods(kind):
    return [name for name, method in vars(kind).items() if callable(method) and name[0] != "_"]


@pytest.mark.parametrize("steady", [0, 6])
@pytest.mark.parametrize("name", methods(Counts))
def test_whole_numbers_are_kept_by_replays(name, steady):
    """Also where the first calls read the same."""
    call = both(run_of(Counts, name, steady))
    assert call.counts[0] >= 9, call.explain()


@pytest.mark.parametrize("name", methods(Unseen))
def test_whole_numbers_that_go_elsewhere_are_compared(name):
    call = both(run_of(Unseen, name))
    assert call.counts[0] <= 8, call.explain()


def test_a_count_by_which_is_divided_may_become_zero():
    """A replay is not begun that would fail behind its program."""

    def run(device, compiled):
        steps = Counts()
        step, found = compiled(steps.averages_over_a_count), []
        for i in range(16):
            if i == 11:
                steps.right = -2
            try:
                found.append(round(step(torch.full((4,), float(i)).to(device)), 4))
            except ZeroDivisionError:
                found.append("zero")
            found.append([steps.right, round(steps.share, 4)])
        return found

    assert both(run).counts[0] >= 5


def test_only_the_step_itself_may_return_one():
    def read(seen):
        frame = sys._getframe(1)
        seen.append([only_kept_in(frame, returns, lambda _: True) is not None for returns in (True, False)])
        return 1

    def returns(seen):
        return read(seen)

    def adds(seen):
        n = read(seen)
        return [n + 1, n]

    def keeps(seen):
        n = read(seen)
        seen[0] = n

    found = []
    for function in (returns, adds, keeps):
        function(found)
    assert found == [1, [True, False], [False, False]]


def test_no_number_that_remembers_stays_where_a_class_keeps_it():
    class Counter:
        def __init__(self):
            self.n = 0

    counter, seen = Counter(), []

    def body(x):
        counter.n += 1
        return x * 2

    step = torch_ltc.compile(body)
    for i in range(12):
        if i == 6:
            Counter.__setattr__ = lambda self, k, v: (seen.append(v), object.__setattr__(self, k, v))[1]
        step(torch.ones(2, device="ltc"))
    assert seen == [7, 8, 9, 10, 11, 12] and {type(n) for n in seen} == {int}, step.explain()


class Average:
    def __init__(self):
        self.sum, self.count = 0.0, 0


METER = Average()


def in_a_global(x):
    METER.sum += (x > 0).sum().item()
    METER.count += x.numel()
    return METER.sum / METER.count


def in_a_variable():
    meter = Average()

    def step(x):
        meter.sum += x.mean().item() * len(x)
        meter.count += len(x)
        return meter.sum / meter.count

    return step


def as_an_argument():
    meter = Average()

    def learn(meter, x):
        meter.sum += x.sum().item()
        meter.count += len(x)
        return meter.sum / meter.count

    return lambda x: learn(meter, x)


@pytest.mark.parametrize("make", [lambda: in_a_global, in_a_variable, as_an_argument])
def test_averages_are_kept_wherever_the_meter_is(make):
    def run(wrap, device):
        METER.__init__()
        step = wrap(make())
        return [step(torch.arange(i - 5.0, i).to(device)) for i in range(16)], step

    got, step = run(torch_ltc.compile, "ltc")
    assert got == pytest.approx(run(lambda f: f, "cpu")[0])
    assert step.counts[0] >= 10, step.explain()
