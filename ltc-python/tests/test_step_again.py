"""Steps of learning rate schedules and checkpoints within compiled steps: replays step the schedules themselves, and
compute again with the draws of the way there."""

import array
import functools
import math
import operator
import re
import struct

import numpy
import pytest
import torch
import torch_ltc
from torch import nn
from torch.optim import lr_scheduler as schedules
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

ROWS = [torch.randn(6, 4, generator=torch.Generator().manual_seed(i)) for i in range(24)]


def network(device, drop=0.0):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(drop), nn.Linear(8, 2)).to(device)


SCHEDULES = {
    "exponential": lambda o: schedules.ExponentialLR(o, 0.9),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 20),
    "lambda": lambda o: schedules.LambdaLR(o, lambda n: 1 / (1 + n)),
    "linear": schedules.LinearLR,
    "sequential": lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, total_iters=3), schedules.CosineAnnealingLR(o, 20)], [3]
    ),
    "chained": lambda o: schedules.ChainedScheduler([schedules.LinearLR(o), schedules.ExponentialLR(o, 0.9)]),
    "one cycle": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=60),
    "restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 4),
    "steps": lambda o: schedules.StepLR(o, 9),
}


def both(make, calls=20, change=None, least=9):
    """Runs what ``make(device)`` returns (a step, what to compare, and what it may be changed by) on both devices."""
    (plain, seen, one), (learn, see, other) = make("cpu"), make("ltc")
    step = torch_ltc.compile(learn)
    for i in range(calls):
        if change is not None:
            change(i, one)
            change(i, other)
        x = ROWS[i % len(ROWS)]
        torch.testing.assert_close(step(x.to("ltc")).cpu(), plain(x), rtol=1e-5, atol=1e-6)
        assert see() == seen(), i
    assert step.counts[0] >= least, step.explain()
    return step


def scheduled(device, schedule, first=False, optimiser=torch.optim.SGD):
    model = network(device)
    optimiser = optimiser(model.parameters(), lr=0.1)
    plan = schedule(optimiser)

    def learn(x):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if first:
            plan.step()
        optimiser.step()
        if not first:
            plan.step()
        return loss.detach()

    seen = lambda: (optimiser.param_groups[0]["lr"], plan.get_last_lr(), getattr(plan, "last_epoch", 0))
    return learn, seen, (optimiser, plan)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_within_the_step(name):
    both(functools.partial(scheduled, schedule=SCHEDULES[name]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [False, True])
def test_a_rate_is_the_one_at_its_place_in_the_step(first):
    make = functools.partial(scheduled, schedule=SCHEDULES["lambda"], first=first, optimiser=torch.optim.AdamW)
    step = both(make)
    assert step.counts[0] >= 16, step.explain()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("optimiser", [torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam])
def test_settings_of_several_numbers_that_a_schedule_moves(optimiser):
    step = both(functools.partial(scheduled, schedule=SCHEDULES["one cycle"], optimiser=optimiser))
    assert step.counts[0] >= 15, step.explain()


READS = {
    "members": lambda betas: 1 + betas[0] * betas[1],
    "taken apart": lambda betas: operator.truediv(*betas),
    "decided by": lambda betas: 2.0 if betas[0] > 0.9 else 3.0,
    "compared": lambda betas: 2.0 if betas > (0.9, 0.999) else 3.0,
    "sum": lambda betas: sum(betas),
    "sum in C": lambda betas: math.fsum(betas),
    "handed on": lambda betas: next(map(math.fsum, [betas])),
    "largest": lambda betas: max(betas),
    "packed": lambda betas: struct.unpack("d", struct.pack("dd", *betas)[:8])[0],
    "packed whole": lambda betas: array.array("d", betas)[0],
    "converted": lambda betas: float(numpy.array(betas)[0]),
    "counted": lambda betas: len(betas),
    "printed": lambda betas: float(f"{betas[0]:.3f}"),
    "printed whole": lambda betas: float(str(betas)[1:6].rstrip(",")),
    "hashed": lambda betas: float(hash(betas) % 7),
    "held": lambda betas: [betas][0][0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READS)
def test_settings_of_several_numbers_are_what_they_are_now(name):
    # The step finds this function and no other.
    read = READS[name]

    def make(device):
        model = network(device)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        plan = SCHEDULES["one cycle"](optimiser)

        def learn(x):
            optimiser.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimiser.step()
            plan.step()
            return loss.detach() * read(optimiser.param_groups[0]["betas"])

        return learn, lambda: optimiser.param_groups[0]["betas"], (optimiser, plan)

    both(make, least=0)


@pytest.mark.filterwarnings("ignore")
def test_settings_of_several_numbers_that_the_step_changes():
    def make(device):
        model = network(device)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        plan = SCHEDULES["one cycle"](optimiser)

        def learn(x):
            plan.step()
            group = optimiser.param_groups[0]
            group["betas"] = (group["betas"][0] * 0.9, group["betas"][1])
            optimiser.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return learn, lambda: [(b, type(b)) for b in optimiser.param_groups[0]["betas"]], (optimiser, plan)

    assert "it changes betas itself" in both(make, least=0).refusal


def test_a_schedule_that_is_changed_in_between_goes_on_from_there():
    def change(i, parts):
        optimiser, plan = parts
        if i == 8:
            optimiser.param_groups[0]["lr"] = 0.5
        if i == 12:
            plan.gamma = 0.5
        if i == 15:
            plan.load_state_dict({**plan.state_dict(), "last_epoch": 2})

    both(functools.partial(scheduled, schedule=SCHEDULES["exponential"]), change=change, least=12)


class Halved(schedules.LRScheduler):
    def get_lr(self):
        return [self.halved(group["lr"]) for group in self.optimizer.param_groups]

    def halved(self, rate):
        self.last_halved = rate
        return max(rate * 0.5, 1e-3)


@pytest.mark.filterwarnings("ignore")
def test_a_schedule_of_one_s_own_is_stepped_as_it_is():
    both(functools.partial(scheduled, schedule=Halved))


def test_a_schedule_of_one_s_own_that_changes_more_than_itself_is_recorded():
    """A call that is taken back is made again, and would change that twice."""
    numbers = {"cpu": [0], "ltc": [0]}

    def make(device):
        def factor(_):
            numbers[device][0] += 1
            return 1 / (1 + numbers[device][0])

        return scheduled(device, lambda o: schedules.LambdaLR(o, factor))

    step = both(make, least=0)
    assert numbers["ltc"] == numbers["cpu"] == [21] and step.counts == (0, 20)
    why = r"its schedule runs code that may change more than the schedule: .*test_step_again.py:\d+"
    assert re.search(why, step.refusal), step.refusal


def test_a_call_that_is_taken_back_has_not_stepped_the_schedule():
    def make(device):
        learn, seen, parts = scheduled(device, SCHEDULES["exponential"])

        def step(x):
            loss = learn(x)
            return loss * 2 if x.sum() > 100 else loss

        return step, seen, parts

    large = {7: 1000.0, 11: 1000.0}
    rows = list(ROWS)
    try:
        for i, value in large.items():
            ROWS[i] = torch.full((6, 4), value)
        both(make, least=6)
    finally:
        ROWS[:] = rows


def test_a_rate_that_the_step_sets_by_itself_is_set_by_replays():
    def make(device):
        model = network(device)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

        def learn(x):
            optimiser.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimiser.step()
            optimiser.param_groups[0]["lr"] *= 0.9
            return loss.detach()

        return learn, lambda: optimiser.param_groups[0]["lr"], None

    both(make)


# ---- checkpoints ----


class Blocks(nn.Module):
    def __init__(self, reentrant, drop):
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(4, 8), nn.Linear(8, 2), nn.Dropout(drop)
        self.reentrant, self.scale = reentrant, 1.0

    def block(self, x):
        return self.drop(torch.tanh(self.first(x)) * self.scale)

    def forward(self, x):
        x = x.detach().requires_grad_() if self.reentrant else x
        return self.last(checkpoint(self.block, x, use_reentrant=self.reentrant))


def checkpointed(device, reentrant=False, drop=0.0):
    torch.manual_seed(0)
    model = Blocks(reentrant, drop).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def learn(x):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return learn, lambda: None, model


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    def change(i, model):
        if i == 10:
            model.scale = 0.5  # only what is checkpointed reads it

    both(functools.partial(checkpointed, reentrant=reentrant), change=change, least=12)


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_in_a_checkpoint_draws_the_same_again_and_anew_each_call(reentrant):
    losses = []
    for compiled in (False, True):
        learn, _, model = checkpointed("ltc", reentrant, drop=0.5)
        step = torch_ltc.compile(learn) if compiled else learn
        torch.manual_seed(5)
        losses.append([step(ROWS[0].to("ltc")).item() for _ in range(12)] + model.first.weight.flatten().tolist())
    assert losses[0] == losses[1] and len(set(losses[1][:12])) > 6
    assert step.counts[0] >= 8, step.explain()


def test_sequential_checkpoints():
    def make(device):
        model = network(device)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

        def learn(x):
            optimiser.zero_grad()
            loss = checkpoint_sequential(model, 2, x, use_reentrant=False).square().mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return learn, lambda: None, None

    both(make)


def test_a_step_that_looks_at_a_generator_s_state_is_recorded():
    step = torch_ltc.compile(lambda x: x * int(torch.ltc.get_rng_state()[:8].sum()))
    for i in range(6):
        torch.manual_seed(i)
        expected = float(torch.ltc.get_rng_state()[:8].sum())
        assert step(torch.ones(1, device="ltc")).item() == expected
    assert step.counts[0] == 0


# ---- gradients added up over calls ----


def test_gradients_added_up_over_two_calls_and_a_step_of_the_optimiser():
    def run(device, compiled):
        model = network(device)
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)

        def add(x):
            loss = model(x).square().mean() / 2
            loss.backward()
            return loss.detach()

        def update():
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()

        calls = [torch_ltc.compile(f) for f in (add, update)] if compiled else [add, update]
        losses = []
        for i, x in enumerate(ROWS):
            losses.append(calls[0](x.to(device)).item())
            if i % 2:
                calls[1]()
        return losses, calls

    losses, calls = run("ltc", True)
    assert losses == pytest.approx(run("cpu", False)[0], rel=1e-5)
    assert calls[0].counts[0] >= 16 and calls[1].counts[0] >= 8, [c.explain() for c in calls]
