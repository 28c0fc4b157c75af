"""A compiled step that leaves tensors and numbers where it finds them again (`self.loss = loss`, `self.calls += 1`) is
replayed, and leaves there what the recorded step leaves."""

import copy

import pytest
import torch
import torch_ltc
from torch import nn
from torch.utils._pytree import tree_leaves
from torch_ltc._traced import Counted, Traced

CALLS = 14


class Trainer:
    """What steps are methods of; each leaves something."""

    def __init__(self, device):
        torch.manual_seed(0)
        self.device = device
        self.net = nn.Linear(4, 3).to(device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.loss = self.last = self.other = None
        self.hidden = torch.zeros(3, device=device)
        self.average = torch.zeros((), device=device)
        self.states = (torch.zeros(3, device=device), torch.zeros(3, device=device))
        self.calls = self.logged = self.limit = 0
        self.every, self.decay, self.rate = 5, 0.5, 1.0
        self.stats = {"loss": None, "norm": None}
        self.seen = []
        self.lists = {"loss": [], "norm": []}

    def back(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    # ---- tensors ----

    def loss_with_used_up_history(self, x):
        self.loss = self.net(x).square().mean()
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        return self.loss.detach() * 2

    def loss_detached(self, x):
        loss = self.net(x).square().mean()
        self.loss = loss.detach()
        return self.back(loss)

    def running_average(self, x):
        loss = self.net(x).square().mean()
        self.average = 0.9 * self.average + 0.1 * loss.detach()
        return self.back(loss)

    def recurrent(self, x):
        out = self.net(x) + self.hidden
        self.hidden = out.detach().mean(0)
        return self.back(out.square().mean())

    def recurrent_with_two_states(self, x):
        self.states = tuple(state.detach() for state in self.states)
        hidden, cell = self.states
        out = torch.tanh(self.net(x).mean(0) + hidden)
        self.states = out, cell * 0.5 + out
        return self.back(out.square().mean() + self.states[1].sum())

    def compares_with_the_last(self, x):
        loss = self.net(x).square().mean()
        better = loss.detach() * 0 if self.last is None else loss.detach() - self.last
        self.last = loss.detach()
        self.back(loss)
        return better

    def reads_the_last_loss_with_history(self, x):
        old = self.average if self.loss is None else self.loss.detach()
        self.loss = self.net(x).square().mean() + 0.1 * old
        return self.back(self.loss)

    def entries_of_a_dict(self, x):
        loss = self.net(x).square().mean()
        out = self.back(loss)
        self.stats["loss"] = out
        self.stats["norm"] = self.net.weight.detach().norm()
        return out

    def one_tensor_in_two_places(self, x):
        out = self.back(self.net(x).square().mean())
        self.last = self.other = out
        return self.last + self.other

    def swaps(self, x):
        if self.last is None:
            self.last, self.other = x.sum(), x.mean()
        self.last, self.other = self.other, self.last + x.sum()
        return self.last * 1

    def keeps_an_argument(self, x):
        before = x if self.last is None else self.last
        self.last = x
        return (before - x).sum()

    def writes_to_what_it_left(self, x):
        if self.last is not None:
            self.last.add_(1)
        kept, self.last = self.last, x.sum()
        return self.last if kept is None else kept + self.last

    def keeps_a_view(self, x):
        out = self.net(x).detach()
        self.last = out[0]
        return out

    def appends(self, x):
        loss = self.net(x).square().mean()
        self.seen.append(loss)
        return self.back(loss)

    def appends_several(self, x):
        out = self.back(self.net(x).square().mean())
        self.seen.append({"loss": out, "again": [out, x]})
        self.seen.append((1.5, "text"))
        return out

    def appends_to_lists_of_a_dict(self, x):
        out = self.back(self.net(x).square().mean())
        self.lists["loss"].append(out)
        self.lists["norm"].append(self.net.weight.detach().norm())
        return out

    def of_a_module(self, x):
        self.net.last = self.net(x).detach()
        return self.net.last.sum()

    # ---- numbers that are read off the device ----

    def returns_a_number(self, x):
        return self.back(self.net(x).square().mean()).item()

    def sums_up_losses(self, x):
        loss = self.back(self.net(x).square().mean())
        self.rate += loss.item() * x.shape[0]
        return loss

    def keeps_the_last_number(self, x):
        loss = self.back(self.net(x).square().mean())
        self.other = loss.item()
        return {"loss": loss.item(), "twice": 2 * loss.item() + 1}

    def appends_numbers(self, x):
        loss = self.back(self.net(x).square().mean())
        self.calls += 1
        self.seen.append((loss.item(), 1))
        self.lists["loss"].append(loss.item() / 2)
        return loss

    def averages(self, x):
        loss = self.back(self.net(x).square().mean())
        self.rate = self.rate * self.decay + (1 - self.decay) * loss.item()
        return self.rate

    # ---- numbers ----

    def counts(self, x):
        self.calls += 1
        return self.back(self.net(x).square().mean())

    def counts_by_sizes(self, x):
        self.calls = self.calls + x.shape[0]
        return self.back(self.net(x).square().mean())

    def every_few(self, x):
        self.calls += 1
        loss = self.back(self.net(x).square().mean())
        if self.calls % self.every == 0:
            self.logged += 1
            return loss * 100
        return loss

    def up_to_a_limit(self, x):
        if self.limit < 9:
            self.limit += 1
            return x.sum()
        return x.sum() * 2

    def starts_again(self, x):
        self.calls += 1
        if self.calls >= 6:
            self.calls = 0
        return x.sum()

    def counts_down(self, x):
        self.calls -= 2
        self.decay -= 0.5
        return x.sum()

    def decays(self, x):
        self.rate *= self.decay
        return self.rate * self.net(x).detach()

    def sets_its_rate(self, x):
        self.rate = self.rate * 0.5
        for group in self.opt.param_groups:
            group["lr"] = 0.1 * self.rate
        return self.back(self.net(x).square().mean())

    def sums_up(self, x):
        self.rate += x.shape[0] / 2
        return x.sum()


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
        assert not any(type(x) in (Traced, Counted) for x in here.values())
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


def refused(make, calls=12):
    """A step that is not replayed and agrees; why not."""
    found = {}
    for device in ("cpu", "ltc"):
        trainer = Trainer(device)
        step = make(trainer) if device == "cpu" else torch_ltc.compile(make(trainer))
        xs = [torch.full((2, 4), float(i)).to(device) for i in range(calls)]
        found[device] = [step(x).detach().cpu() for x in xs], trainer.calls, len(trainer.seen)
    for one, other in zip(found["cpu"][0], found["ltc"][0], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    assert found["cpu"][1:] == found["ltc"][1:]
    assert step.counts[0] == 0, step.explain()
    return step.explain()


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


def test_a_list_that_is_read_refuses_the_step():
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

    for make in (reads, by_another_name):
        assert "it changes the contents of a list" in refused(make)


def test_a_number_of_the_device_that_decides_refuses_the_step():
    def compares(trainer):
        def step(x):
            loss = trainer.back(trainer.net(x).square().mean())
            return loss * 2 if loss.item() > 0.5 * trainer.rate else loss

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
