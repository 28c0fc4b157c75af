"""Compiled steps that put modules into training or evaluation mode, in whatever mode they find them."""

import pytest
import torch
import torch_ltc
from torch import nn


class Frozen(nn.Module):
    """Its norm stays in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(4), nn.Linear(4, 4)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        return self.linear(self.norm(x))


class Alternating:
    """Training and evaluation by turns, on one model."""

    def __init__(self, device, wrap, frozen=False, reads_first=False):
        torch.manual_seed(0)
        first = Frozen() if frozen else nn.Linear(4, 4)
        self.net = nn.Sequential(first, nn.BatchNorm1d(4), nn.Linear(4, 2)).to(device)
        self.optimiser = torch.optim.SGD(self.net.parameters(), 0.1)
        self.reads_first = reads_first
        self.fit, self.check = wrap(self.learn), wrap(self.evaluate)

    def learn(self, x):
        before = self.net(x).detach() if self.reads_first else 0.0
        self.net.train()
        loss = self.net(x).square().mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach() + before

    def evaluate(self, x):
        self.net.eval()
        with torch.no_grad():
            return self.net(x).square().mean()

    def go(self, calls, between=lambda net, i: None):
        numbers, said = torch.Generator().manual_seed(2), []
        device = next(self.net.parameters()).device
        for i in range(calls):
            x = torch.randn(5, 4, generator=numbers).to(device)
            said.append((self.fit if i % 3 else self.check)(x).cpu())
            said.append([m.training for m in self.net.modules()])
            between(self.net, i)
        return said, [t.detach().cpu() for t in self.net.state_dict().values()]


def compare(calls=36, between=lambda net, i: None, **how):
    expected = Alternating("cpu", lambda f: f, **how).go(calls, between)
    lazy = Alternating("ltc", torch_ltc.compile, **how)
    got = lazy.go(calls, between)
    for a, b in zip([*expected[0], *expected[1]], [*got[0], *got[1]], strict=True):
        if isinstance(a, list):
            assert a == b
        else:
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
    return lazy


@pytest.mark.parametrize("frozen", [False, True])
def test_training_and_evaluation_by_turns(frozen):
    lazy = compare(frozen=frozen)
    if not frozen:  # code of the program's own, which is watched
        assert lazy.fit.counts[0] >= 15 and lazy.check.counts[0] >= 6, (lazy.fit.explain(), lazy.check.explain())


def test_a_mode_that_the_step_finds_decides_what_it_does_before_it_sets_one():
    compare(reads_first=True)


def test_modes_that_the_program_sets_in_between():
    def between(net, i):
        if i in (13, 20, 21):
            net[1].train(i == 13)
        if i == 25:
            net.append(nn.Dropout(0.0))

    compare(between=between)


def test_a_replay_that_is_taken_back_leaves_modes_as_they_were():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)).to("ltc")

    def body(x):
        net.eval()
        return net(x) if x.sum() > 0 else net(x) * 2

    step = torch_ltc.compile(body)
    for i in range(24):
        net.train()
        x = torch.full((3, 2), 1.0 if i % 4 else -1.0, device="ltc")
        torch.testing.assert_close(step(x).cpu(), body(x).cpu())
        assert not net.training and not net[1].training
    assert step.counts[0] >= 10, step.explain()


def test_a_step_that_raises_after_it_has_set_a_mode():
    def modes(device, wrap):
        net, seen = nn.Sequential(nn.Linear(2, 2)).to(device), []

        def body(x):
            net.eval()
            if x.sum() < 0:
                raise ValueError("negative")
            return net(x)

        step = wrap(body)
        for i in range(16):
            net.train()
            try:
                step(torch.full((3, 2), -1.0 if i in (9, 10, 13) else 1.0, device=device))
            except ValueError:
                seen.append(i)
            seen.append(net.training)
        return seen

    assert modes("ltc", torch_ltc.compile) == modes("cpu", lambda f: f)


@pytest.mark.parametrize("how", ["method of one", "method of a class", "other child"])
def test_a_call_that_comes_to_set_other_modes(how, monkeypatch):
    """A norm is frozen between two steps, as programs do that fine-tune."""

    def between(net, i):
        if i == 15 and how == "method of one":
            net[1].eval()
            net[1].train = lambda mode=True: net[1]
        elif i == 15 and how == "method of a class":
            net[1].eval()
            monkeypatch.setattr(nn.BatchNorm1d, "train", lambda self, mode=True: self)
        elif i == 15:
            net[1] = Frozen().to(next(net.parameters()).device)

    expected = Alternating("cpu", lambda f: f).go(30, between)
    monkeypatch.undo()
    lazy = Alternating("ltc", torch_ltc.compile)
    got = lazy.go(30, between)
    assert lazy.fit.counts[0] >= 5 and lazy.check.counts[0] >= 2
    if how == "other child":  # its weights are drawn
        assert expected[0][1::2] == got[0][1::2]
        return
    for a, b in zip([*expected[0], *expected[1]], [*got[0], *got[1]], strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


def test_a_method_that_a_part_gets_runs_once_at_each_call():
    def counted(device, wrap):
        net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)).to(device)
        seen = []

        def body(x):
            net.eval()
            return net(x)

        step = wrap(body)
        for i in range(24):
            net.train()
            if i == 16:
                net[1].train = seen.append
            step(torch.ones(3, 2, device=device))
            seen.append(net[1].training)
        return seen, step

    expected, _ = counted("cpu", lambda f: f)
    got, step = counted("ltc", torch_ltc.compile)
    assert got == expected and step.counts[0] >= 8
