"""A compiled step that decides by a number it has read off the device is replayed both ways."""

import math
from math import isnan

import pytest
import torch
import torch_ltc
from torch import nn

NAN, INF = math.nan, math.inf


class Trainer:
    """A step with its state; `kind` says what it does with the loss that it reads."""

    def __init__(self, device, kind):
        torch.manual_seed(0)
        self.net = nn.Linear(4, 3).to(device)
        self.optimiser = torch.optim.SGD(self.net.parameters(), 0.05)
        self.best, self.bad, self.total, self.kind = 1e9, 0, 0.0, kind

    def step(self, x):
        self.optimiser.zero_grad()
        loss = self.net(x).square().mean()
        value = self.kind(self, loss)
        loss.backward()
        self.optimiser.step()
        return value

    def state(self):
        return [p.detach().cpu() for p in self.net.parameters()], (self.best, self.bad, self.total)


def finite(self, loss):
    value = loss.item()
    self.total += 1.0
    if not math.isfinite(value):
        raise ValueError(f"loss is {value}")
    return value


def finite_at_once(self, loss):
    if not math.isfinite(loss.item()) or isnan(loss.item()):
        raise ValueError("loss")
    return 0.0


def improves(self, loss):
    value = loss.item()
    if value < self.best:
        self.best, self.bad = value, 0
    else:
        self.bad += 1
    return value


def least(self, loss):
    self.best = min(self.best, loss.item())
    return self.best


def clips(self, loss):
    value = loss.item()
    return max(min(value, 0.5), 0.25)


def skips(self, loss):
    value = loss.item()
    return 0.0 if value > 0.6 else value


def trained(device, wrap, kind):
    trainer = Trainer(device, kind)
    step, said = wrap(trainer.step), []
    numbers = torch.Generator().manual_seed(3)
    for i in range(24):
        x = torch.randn(5, 4, generator=numbers) * (1 + i % 3)
        if i in (11, 12, 17):
            x[0, 0] = (NAN, INF)[i % 2]
        try:
            said.append(step(x.to(device)))
        except ValueError as e:
            said.append(str(e))
        if i in (11, 12, 17):  # nobody trains on with these
            with torch.no_grad():
                for p in trainer.net.parameters():
                    p.fill_(0.1 * i)
    return said, trainer.state(), step


@pytest.mark.parametrize("kind", [finite, finite_at_once, improves, least, clips, skips])
def test_a_decision_by_the_loss_goes_both_ways(kind):
    said, (parameters, kept), _ = trained("cpu", lambda f: f, kind)
    got, (lazy, its), step = trained("ltc", torch_ltc.compile, kind)
    for a, b in zip(said, got, strict=True):
        assert a == b if isinstance(a, str) else b == pytest.approx(a, rel=1e-4, nan_ok=True), (said, got)
    torch.testing.assert_close(lazy, parameters, rtol=1e-4, atol=1e-5)
    assert its == pytest.approx(kept, rel=1e-4, nan_ok=True)
    assert step.counts[0] >= 8, step.explain()


ASKS = {
    "<": lambda v: v < 0.1,
    "<=": lambda v: v <= 0.1,
    ">": lambda v: v > 0.1,
    ">=": lambda v: 0.1 >= v,
    "==": lambda v: v == 0.1,
    "!=": lambda v: v != 0.5,
    "bool": lambda v: bool(v),
    "chain": lambda v: -1 < v < 0.1,
    "large": lambda v: v < (1 << 60) + 1,
    "derived": lambda v: v * 3 < 0.3,
    "sum": lambda v: 0.1 + v > 0.2,
    "finite": lambda v: math.isfinite(v),
    "infinite": lambda v: math.isinf(v),
    "nan": lambda v: isnan(v),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("asks", ASKS)
def test_decisions_are_those_of_the_number(asks, dtype):
    """0.1 is no float32, float16 or bfloat16: what is compared is the number that Python has."""
    ask = ASKS[asks]

    def body(x):
        v = x.sum().item()
        return x + 1 if ask(v) else x - 1

    step = torch_ltc.compile(body)
    for value in [1.0, 1.0, 1.0, 0.1, NAN, 0.0, INF, 2.0, 0.0999999, 0.1, 0.5, -INF, float(1 << 60), -0.0, 0.1, 3.0]:
        x = torch.full((1,), value, dtype=dtype)
        assert torch.equal(step(x.to("ltc")).cpu(), body(x)) or math.isnan(value), value


def test_a_number_that_nobody_uses_is_no_reason_to_record():
    w = torch.ones(3, device="ltc")

    def body(x):
        loss = (x * w).sum()
        loss.item()
        return loss

    step = torch_ltc.compile(body)
    for i in range(8):
        assert step(torch.full((3,), float(i), device="ltc")).item() == 3 * i
    assert step.counts == (5, 3), step.explain()


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_second_optimiser_that_steps_now_and_then(every):
    """The gradients that its steps leave stay for the calls between them (TD3, critics of GANs)."""

    def run(device, wrap):
        torch.manual_seed(0)
        actor, critic = nn.Linear(4, 2).to(device), nn.Linear(6, 1).to(device)
        optimisers = [torch.optim.Adam(net.parameters(), 0.01) for net in (actor, critic)]
        calls = Trainer(device, None)

        def body(x, u):
            calls.bad += 1
            loss = critic(torch.cat([x, u], 1)).square().mean()
            optimisers[1].zero_grad()
            loss.backward()
            optimisers[1].step()
            if calls.bad % every == 0:
                other = -critic(torch.cat([x, actor(x)], 1)).mean()
                optimisers[0].zero_grad()
                other.backward()
                optimisers[0].step()
            return loss.detach()

        step, numbers = wrap(body), torch.Generator().manual_seed(1)
        draws = [[torch.randn(5, n, generator=numbers) for n in (4, 2)] for _ in range(40)]
        said = [step(*[t.to(device) for t in pair]).cpu() for pair in draws]
        return [*said, *[p.detach().cpu() for net in (actor, critic) for p in net.parameters()]], step

    got, step = run("ltc", torch_ltc.compile)
    for a, b in zip(got, run("cpu", lambda f: f)[0], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    assert step.counts[0] >= 20, step.explain()


@pytest.mark.parametrize(
    "asks",
    [lambda v, other: math.isfinite(v if other else 1.0), lambda v, other: math.isfinite(v or 1.0)],
    ids=["one of two", "or"],
)
def test_which_number_is_asked_of_is_known_or_any(asks):
    def body(x, other=True):
        return x * 2 if asks(x.mean().item(), other) else None

    step = torch_ltc.compile(body)
    for i in range(14):
        x = torch.full((2,), NAN if i in (8, 10) else 1.0 + i)
        assert (step(x.to("ltc")) is None) == (body(x) is None)


def ratio(x):
    return x.sum().item() / x.max().item()


def inverse(x):
    return 2 / x.sum().item()


def inverse_of_a_sum(x):
    return 1.0 / (x.sum().item() + x.max().item())


@pytest.mark.parametrize(("body", "least"), [(ratio, 8), (inverse, 8), (inverse_of_a_sum, 0)])
def test_a_division_by_a_number_that_was_read_is_replayed_unless_that_is_zero(body, least):
    def outcomes(device, step):
        found = []
        for k in range(16):
            try:
                found.append(step(torch.full((3,), float(k % 9 != 8), device=device) * (k + 1)))
            except ZeroDivisionError as e:
                found.append(str(e))
        return found

    step = torch_ltc.compile(body)
    expected = outcomes("cpu", body)
    assert outcomes("ltc", step) == expected
    assert sum(type(x) is str for x in expected) == 1
    assert step.counts[0] >= least, step.explain()
