"""Replays run the code that the user gave to a learning rate schedule, and may have to take it back. So other code in
its place, which may change something else, is looked at before any replay runs it."""

import pytest
import torch
import torch_ltc
from steps import Held


class Own(torch.optim.lr_scheduler.LRScheduler):
    """A schedule with methods of the user's."""

    def factor(self):
        return 0.9**self.last_epoch

    def get_lr(self):
        return [base * self.factor() for base in self.base_lrs]


def helper(epoch):
    return 1.0 / (1 + epoch)


def in_lambda(epoch):
    return helper(epoch)


def run(compile, kind, change):
    """What a step returns that multiplies by a number which other code in the schedule changes: twenty losses."""
    held = Held(scale=1.0)
    weight = torch.ones(3, device="ltc", requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.1)
    function = {"lambda": lambda epoch: 1.0 / (1 + epoch), "helper": in_lambda}.get(kind)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, function) if function else Own(optimiser)

    def other(*_):
        held.scale += 1.0
        return 0.5

    def step(x):
        optimiser.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimiser.step()
        schedule.step()
        return loss.detach() * held.scale

    step = compile(step)
    losses = []
    for i in range(20):
        losses.append(step(torch.ones(3, device="ltc")).item())
        if i == 9:
            change(schedule, other)
    return losses, step


def with_factor(schedule, other):
    schedule.factor = other


CHANGES = {
    "member": ("lambda", lambda schedule, other: schedule.lr_lambdas.__setitem__(0, other)),
    "list": ("lambda", lambda schedule, other: setattr(schedule, "lr_lambdas", [other])),
    "method of the object": ("lambda", lambda s, other: setattr(s, "get_lr", lambda: [0.1 * other()])),
    "its own method": ("own", lambda s, other: setattr(s, "get_lr", lambda: [0.1 * other()])),
    "a method that it calls": ("own", with_factor),
    "a method of its class": ("own", lambda s, other: setattr(Own, "factor", other)),
    "a method of torch's": ("lambda", lambda s, other: setattr(type(s), "get_lr", lambda self: [0.1 * other()])),
    "a global": ("helper", lambda s, other: globals().__setitem__("helper", other)),
    "a builtin function": ("builtin", lambda s, other: globals().__setitem__("max", other)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_code_in_a_schedule_is_looked_at_before_it_runs(name, monkeypatch):
    kind, change = CHANGES[name]
    if kind == "builtin":
        kind = "helper"
        monkeypatch.setitem(globals(), "helper", lambda epoch: max(0.5, 1.0 - epoch))
    lambdas = torch.optim.lr_scheduler.LambdaLR
    before, methods = dict(globals()), [(Own, "factor", Own.factor), (lambdas, "get_lr", lambdas.get_lr)]
    found = []
    for compile in (lambda step: step, torch_ltc.compile):
        found.append(run(compile, kind, change))
        globals().pop("max", None)
        globals().update(before)
        for owner, attribute, method in methods:
            setattr(owner, attribute, method)
    (expected, _), (got, step) = found
    assert got == expected, step.explain()
    assert step.counts[0] >= 4, step.explain()
