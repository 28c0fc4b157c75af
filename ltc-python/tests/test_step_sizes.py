"""Compiled steps whose inputs have many sizes: each size is a capture of its own. Sizes that come again are replayed,
however many there are, and sizes that do not come again cost few captures."""

import random

import pytest
import torch
import torch_ltc
from torch_ltc import _run


@pytest.fixture
def captures(monkeypatch):
    """Counts the captures of all steps."""
    count = [0]
    call = _run.Run.call

    def counted(self):
        count[0] += 1
        return call(self)

    monkeypatch.setattr(_run.Run, "call", counted)
    return count


def training(device):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(device)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)

    def step(x):
        optimiser.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def test_sizes_in_turn_are_replayed():
    count = 40
    compiled, plain = torch_ltc.compile(training("ltc")), training("ltc")
    inputs = [torch.linspace(-1, 1, 4 * n).reshape(n, 4).to("ltc") for n in range(2, 2 + count)]
    replayed = 0
    for _ in range(6):
        replayed = compiled.counts[0]
        losses = [(compiled(x), plain(x)) for x in inputs]
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in losses)
    assert compiled.counts[0] - replayed == count, compiled.explain()


def test_sizes_that_rarely_come_again_cost_few_captures(captures):
    compiled, plain = torch_ltc.compile(training("ltc")), training("ltc")
    lengths = random.Random(1)
    for _ in range(300):
        x = torch.full((lengths.randint(1, 2000), 4), 0.5).to("ltc")
        assert torch.equal(compiled(x).cpu(), plain(x).cpu())
    assert captures[0] < 60, captures
    assert "sizes" in compiled.explain(), compiled.explain()


def test_a_step_that_reads_another_state_each_time_costs_few_captures(captures):
    class State:
        word = "a"

    state = State()

    @torch_ltc.compile
    def step(x):
        return x + len(state.word)

    for n in range(1, 100):
        state.word = "a" * n
        assert step(torch.ones(2, device="ltc")).tolist() == [1.0 + n] * 2
    assert captures[0] < 40, captures
    assert "State.word" in step.explain() and "changes from call to call" in step.explain()
