"""A compiled step that leaves tensors and numbers where it finds them again (`self.loss = loss`, `self.calls += 1`) is
replayed, and leaves there what the recorded step leaves."""

import collections
import copy
import re
import types

import pytest
import torch
import torch_ltc
from steps import both, seen
from torch import nn
from torch.utils._pytree import tree_leaves
from torch_ltc._traced import TracedFloat, TracedInt
from trainers import Trainer, refused

CALLS = 14


REPLAYED = [name for name, method in vars(Trainer).items() if callable(method) and name not in ("__init__", "back")]


def run(device, name, between=None, wrap=lambda fn: fn, calls=CALLS):
    """All that shows of a trainer after each call of a method."""
    trainer = Trainer(device)
    step = wrap(getattr(trainer, name))
    shown = []
    for i in range(calls):
        generator = torch.Generator().manual_seed(i)
        out = step(torch.randn(2, 4, generator=generator).to(device))
        if between is not None:
            between(trainer, i)
        kept = tree_leaves((trainer.seen, trainer.lists, trainer.states))
        here = {f"kept{j}": x for j, x in enumerate(kept)} | {f"out{j}": x for j, x in enumerate(tree_leaves(out))}
        here |= {**vars(trainer), **trainer.stats, "module": getattr(trainer.net, "last", None), "out": out}
        here |= {f"lr{j}": g["lr"] for j, g in enumerate(trainer.opt.param_groups)}
        row = {}
        here.pop("device")
        assert not any(type(x) in (TracedFloat, TracedInt) for x in here.values())
        for key, x in here.items():
            if isinstance(x, torch.Tensor):
                row[key] = (x.detach().cpu().clone(), x.requires_grad, [k for k, y in here.items() if y is x])
            elif isinstance(x, (bool, int, float, str, type(None))):
                row[key] = (type(x), x)
        shown.append(row)
    return shown, step


def same(name, between=None, calls=CALLS):
    """Both devices show the same; the compiled step."""
    expected, _ = run("cpu", name, between, calls=calls)
    found, step = run("ltc", name, between, torch_ltc.compile, calls=calls)
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert a.keys() == b.keys()
        for key in a:
            one, other = a[key], b[key]
            if isinstance(one[0], torch.Tensor) and isinstance(other[0], torch.Tensor):
                where = f"{key} behind call {i}"
                torch.testing.assert_close(other[0], one[0], rtol=1e-5, atol=1e-6, msg=lambda m: f"{where}: {m}")
                one, other = one[1:], other[1:]
            if float in (one[0], other[0]):
                assert one[0] is other[0], f"{key} behind call {i}: {other}, on the CPU {one}"
                one, other = round(one[1], 4), round(other[1], 4)
            assert one == other, f"{key} behind call {i}: {other}, on the CPU {one}"
    return step


@pytest.mark.parametrize("name", REPLAYED)
def test_what_a_step_leaves_is_left_by_replays(name):
    step = same(name)
    assert step.counts[0] >= 3, step.explain()


#: What others put into places between calls, by the place.
CHANGES = {
    "loss": [lambda t, i: None, lambda t, i: t.net.weight.sum(), lambda t, i: t.average],
    "last": [
        lambda t, i: torch.full((), float(i), device=t.device),
        lambda t, i: torch.full((2,), float(i), device=t.device).sum().double(),
        lambda t, i: t.average,
        lambda t, i: t.other,
    ],
    "hidden": [lambda t, i: torch.full((3,), float(i), device=t.device), lambda t, i: t.net.bias.detach()],
    "states": [
        lambda t, i: (t.hidden, t.hidden),
        lambda t, i: (t.hidden + 1, t.net.bias.detach()),
        lambda t, i: t.states[::-1],
    ],
    "average": [lambda t, i: t.average.clone(), lambda t, i: t.net.bias.detach()[0]],
    "calls": [lambda t, i: 3 * i, lambda t, i: True, lambda t, i: float(i)],
    "every": [lambda t, i: 2],
    "rate": [lambda t, i: 3.0, lambda t, i: 2],
    "decay": [lambda t, i: 0.25],
    "stats": [lambda t, i: {"loss": torch.ones((), device=t.device), "norm": None}],
    "seen": [lambda t, i: [], lambda t, i: t.lists["loss"]],
    "lists": [lambda t, i: {"norm": t.seen, "loss": t.seen}],
    "net": [lambda t, i: copy.deepcopy(t.net)],
}
MEANT = [
    (name, place, i)
    for name in REPLAYED
    for place, values in CHANGES.items()
    if place in getattr(Trainer, name).__code__.co_names
    for i in range(len(values))
]


@pytest.mark.parametrize(("name", "place", "which"), MEANT)
def test_what_others_put_there_is_seen(name, place, which):
    def change(trainer, i):
        if i in (7, 11):
            setattr(trainer, place, CHANGES[place][which](trainer, i))

    same(name, change)


def test_what_happens_every_few_calls_is_replayed():
    step = same("every_few", calls=40)
    assert step.counts[0] >= 20, step.explain()


def test_a_number_that_is_not_only_counted_refuses_the_step():
    def returns(trainer):
        def step(x):
            trainer.calls += 1
            return x * trainer.calls

        return step

    def indexes(trainer):
        def step(x):
            trainer.calls += 1
            return x + (1.0, 2.0, 3.0)[trainer.calls % 3]

        return step

    def hands_over(trainer):
        def step(x):
            trainer.calls += 1
            return x + max(trainer.calls, 3)

        return step

    def by_name(trainer):
        def step(x):
            trainer.calls += 1
            return x + getattr(trainer, "calls")  # noqa: B009

        return step

    for make in (returns, indexes, hands_over, by_name):
        assert "it changes Trainer.calls" in refused(make)


#: What a step computes from its count, and whether replays can: a plain float does not ask a whole number to its right.
COMPUTED = {
    "share": (lambda held: (1 + held.calls) / (10 + held.calls), True),
    "fraction": (lambda held: 1 / held.calls, True),
    "rest": (lambda held: (100 - 2 * (held.calls - 1)) / 8, True),
    "power of two": (lambda held: 2**held.calls / 64, True),
    "both sides": (lambda held: (held.calls * held.calls - 3) / held.calls, True),
    "negative": (lambda held: 1 / -(7 + held.calls // 3), True),
    "factor": (lambda held: 0.5 * held.calls, False),
    "constant that is a float": (lambda held: (1.5 + held.calls) / 2, False),
    "a choice on the left": (lambda held: ((2 if held else 0.5) * held.calls) / 3, False),
    "an unknown on the left": (lambda held: (held.half * held.calls) / 3, False),
    "root": (lambda held: held.calls**-0.5, True),
    "square": (lambda held: held.calls**2 / 50, True),
    "schedule": (lambda held: 0.5 * min(held.calls**-0.5, held.calls * 5**-1.5), True),
    "exponent": (lambda held: 1.01**held.calls, False),
    "modulo": (lambda held: float(pow(held.calls, 2, 7)), False),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_replays_compute_with_counts(name):
    by_count, is_replayed = COMPUTED[name]

    class Counts:
        calls, half = 0, 0.5

        def step(self, x):
            self.calls += 1
            return x * by_count(self)

    step = torch_ltc.compile(Counts().step)
    for i in range(1, 20):
        expected = torch.ones(2) * by_count(types.SimpleNamespace(calls=i, half=0.5))
        assert step(torch.ones(2, device="ltc")).tolist() == expected.tolist(), i
    assert (step.counts[0] > 8) == is_replayed, step.explain()


def test_lists_of_the_function_around_a_step_are_appended_to():
    def run(device, compiled):
        trainer = Trainer(device)
        losses, by_name, outer = [], {"loss": [], "row": []}, []

        def keep(row):
            outer.append(row)

        def step(x):
            loss = trainer.back(trainer.net(x).square().mean())
            losses.append(loss)
            by_name["loss"].append(loss.item())
            by_name["row"].append(x[0])
            keep(x.sum())
            return loss

        call = compiled(step)
        for i in range(CALLS):
            call(torch.full((2, 4), 0.1 * i).to(device))
            if i == 9:
                losses.clear()
        return [*seen(*losses, *by_name["row"], *outer, torch.tensor(by_name["loss"])), len(losses)]

    call = both(run)
    assert call.counts[0] >= 3, call.explain()


def test_a_list_that_is_read_refuses_the_step():
    def of_the_function_around(trainer):
        found = []

        def length():
            return len(found)

        def step(x):
            found.append(x.sum())
            return x * length()

        return step

    def reads(trainer):
        def step(x):
            trainer.seen.append(x.sum())
            return trainer.seen[-1] + len(trainer.seen)

        return step

    def by_another_name(trainer):
        alias = trainer.seen

        def step(x):
            trainer.seen.append(x.sum())
            return alias[0] + x

        return step

    for make in (reads, by_another_name, of_the_function_around):
        assert "it changes the contents of a list" in refused(make)


def test_what_is_kept_or_given_up_is_named_with_its_line():
    def keeps(trainer):
        optimiser = torch.optim.LBFGS(trainer.net.parameters(), max_iter=2)

        def step(x):
            def again():
                optimiser.zero_grad()
                loss = trainer.net(x).square().mean()
                loss.backward()
                return loss

            return optimiser.step(again).detach()

        return step

    def gives_up(trainer):
        average = copy.deepcopy(trainer.net)

        def step(x):
            for a, p in zip(average.parameters(), trainer.net.parameters()):
                a.data = 0.9 * a.data + 0.1 * p.data
            return trainer.back(average(x).sum() + trainer.net(x).square().mean())

        return step

    def made_outside(trainer):
        scale = trainer.net.bias * 2
        return lambda x: trainer.net(x).mul(scale).sum()

    line = r"test_step_leaves.py:\d+ in .*step\)"
    outside = r"made outside, the variable scale \(read in .*made_outside.*, .*test_step_leaves.py:\d+\): detach\(\) it"
    assert re.search(outside, refused(made_outside))
    assert re.search(rf"it keeps a tensor that it makes \(f32\[.*{line}", refused(keeps))
    assert re.search(rf"it reads a tensor \(f32\[.*{line} whose memory it gives up", refused(gives_up))


def test_a_number_of_the_device_that_decides_refuses_the_step():
    def compares(trainer):
        def step(x):
            loss = trainer.back(trainer.net(x).square().mean())
            return loss * 2 if loss.item() * 2 > trainer.rate else loss

        return step

    def hands_over(trainer):
        def step(x):
            loss = trainer.back(trainer.net(x).square().mean())
            return x * loss.item()

        return step

    def formats(trainer):
        def step(x):
            trainer.seen.append(f"{trainer.back(trainer.net(x).square().mean()).item():.1f}")
            return x * len(trainer.seen[-1])

        return step

    def converts(trainer):
        def step(x):
            return x * float(trainer.back(trainer.net(x).square().mean()))

        return step

    for make in (compares, hands_over, formats, converts):
        assert "it reads a value that changes" in refused(make) or make is formats


def test_a_tensor_with_a_history_refuses_the_step():
    def keeps(trainer):
        def step(x):
            trainer.hidden = torch.tanh(trainer.net(x).mean(0) + trainer.hidden)
            return trainer.hidden.detach()

        return step

    assert "it changes Trainer.hidden" in refused(keeps)


def test_what_is_left_is_found_elsewhere():
    """A step that comes to what it left by another way, too, is not replayed with another tensor there."""
    trainer = Trainer("ltc")
    trainer.last = trainer.other = torch.ones((), device="ltc")

    def step(x):
        if trainer.calls:
            trainer.last = x.sum()
        return trainer.last * 10 + trainer.other

    step = torch_ltc.compile(step)
    x = torch.ones(3, device="ltc")
    trainer.calls = 1
    for _ in range(6):
        assert step(x).item() == 31
    trainer.calls = 0
    for value in (1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0):
        trainer.last = trainer.other if value == 1.0 else torch.full((), value, device="ltc")
        assert step(x).item() == 10 * value + 1


def test_an_attribute_that_the_step_makes_and_deletes_is_gone_after_each_call():
    class Holder:
        pass

    def left(wrap):
        holder, found = Holder(), []

        def body(x):
            holder.tmp = x * 2
            y = holder.tmp + 1
            del holder.tmp
            return y

        step = wrap(body)
        for i in range(12):
            if i == 9:
                holder.tmp = "stale"
            step(torch.ones(2, device="ltc"))
            found.append(sorted(vars(holder)))
        return found, step

    found, step = left(torch_ltc.compile)
    assert found == left(lambda f: f)[0] == [[]] * 12
    assert step.counts[0] >= 5, step.explain()


@pytest.mark.parametrize("is_buffer", [False, True])
def test_a_buffer_that_forward_puts_a_tensor_into(is_buffer):
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.mean = torch.zeros(4)
            if is_buffer:
                del self.mean
                self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            return self.linear(x - self.mean)

    def run(device, wrap):
        torch.manual_seed(0)
        net = Centred().to(device)
        net.mean = net.mean.to(device)
        step, said = wrap(lambda x: net(x).detach()), []
        for i in range(14):
            if i == 9:
                net.mean = torch.ones(4, device=device)
            said += [step(torch.full((3, 4), float(i)).to(device)).cpu(), net.mean.cpu()]
        return said, [*net.state_dict()], step

    got, expected = run("ltc", torch_ltc.compile), run("cpu", lambda f: f)
    assert got[1] == expected[1]
    for a, b in zip(got[0], expected[0], strict=True):
        torch.testing.assert_close(a, b)
    assert got[2].counts[0] >= 8, got[2].explain()


def test_a_defaultdict_of_lists_that_the_step_appends_to():
    def run(device, wrap):
        log, made = collections.defaultdict(list), []

        def body(x):
            log["loss"].append(x.mean().item())
            log["twice"].append(x * 2)
            return x * 2

        step = wrap(body)
        for i in range(16):
            if i == 7:
                log.clear()
            if i == 11:
                log.pop("twice")
                log.default_factory = lambda: made.append(1) or []
            if i == 13:
                log["loss"].clear()
            step(torch.full((4,), float(i)).to(device))
        return {k: [v.tolist() if torch.is_tensor(v) else v for v in x] for k, x in log.items()}, made, step

    got, expected = run("ltc", torch_ltc.compile), run("cpu", lambda f: f)
    assert got[:2] == expected[:2]
    assert got[2].counts[0] >= 5, got[2].explain()
