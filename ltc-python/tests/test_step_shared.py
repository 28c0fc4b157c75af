"""What a compiled step leaves is told apart: memory that others show, numbers that others get, and what is seen of
them."""

import collections

import pytest
import torch
import torch_ltc
from torch import nn
from trainers import Trainer, refused


@pytest.mark.parametrize("how", ["left by the step", "put there before", "given"])
def test_what_shows_a_weight_now_and_not_later(how):
    """A place, or an argument, shows a parameter's memory while the step is captured, and other memory later."""
    rows = {}
    for device in ("cpu", "ltc"):
        trainer = Trainer(device)
        weight = trainer.net.weight
        trainer.last = weight.detach()

        def body(x, given, trainer=trainer, weight=weight):
            out = trainer.back(trainer.net(x).square().mean())
            if how == "left by the step":
                trainer.last = weight.detach()
            return out + trainer.last.sum() * 0.5 + given.sum()

        step = torch_ltc.compile(body) if device == "ltc" else body
        rows[device] = []
        for i in range(16):
            given = weight.detach() if how == "given" and i < 9 else torch.full((3, 4), 0.5).to(device)
            if i in (8, 11):
                trainer.last = trainer.last.clone()
            out = step(torch.full((2, 4), 0.1 * (1 + i % 3)).to(device), given)
            rows[device] += [x.detach().cpu().clone() for x in (out, weight, trainer.last)]
    for i, (one, other) in enumerate(zip(rows["cpu"], rows["ltc"], strict=True)):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5, msg=lambda m: f"{i}: {m}")
    assert step.counts[0] >= 3, step.explain()


def test_arithmetic_that_fails_fails_where_it_stands():
    """A quotient by a number of the device raises in the step, before what is behind it."""
    found = {}
    for device in ("cpu", "ltc"):
        trainer = Trainer(device)
        weight = torch.zeros(3, device=device)

        def body(x, trainer=trainer, weight=weight):
            loss = x.sum()
            try:
                trainer.rate = 1 / loss.item()
            except ZeroDivisionError:
                trainer.rate = -1.0
            weight.add_(1)
            return weight * 2

        step = torch_ltc.compile(body) if device == "ltc" else body
        numbers = [*range(1, 11), 0, 1, 0, 0, 2]
        found[device] = [(step(torch.full((3,), float(n)).to(device)).tolist(), trainer.rate) for n in numbers]
    assert found["cpu"] == found["ltc"], step.explain()


def test_a_number_that_becomes_complex_is_followed():
    found = {}
    for device in ("cpu", "ltc"):
        trainer = Trainer(device)

        def body(x, trainer=trainer):
            trainer.rate -= 0.25
            return x * (trainer.rate**0.5).real

        step = torch_ltc.compile(body) if device == "ltc" else body
        found[device] = [step(torch.ones(3).to(device)).tolist() for _ in range(12)]
    assert found["cpu"] == found["ltc"], step.explain()


class Counted2:
    def scale(self, table):
        return table[self.calls]


def test_a_count_that_another_object_gets_is_not_only_counted():
    def hands_on(trainer):
        def step(x):
            trainer.calls += 1
            other = Counted2()
            other.calls = trainer.calls
            return x * other.scale((1.0,) * 8 + (2.0,) * 9)

        return step

    assert "it changes Trainer.calls" in refused(hands_on)


def test_modules_count():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2 if self.calls % 4 == 0 else x

    found = {}
    for device in ("cpu", "ltc"):
        model = Model()
        step = torch_ltc.compile(model) if device == "ltc" else model
        found[device] = [step(torch.ones(3).to(device)).tolist() for _ in range(30)], model.calls
    assert found["cpu"] == found["ltc"]
    assert step.counts[0] >= 10, step.explain()


class Slotted:
    __slots__ = ("value",)


Pair = collections.namedtuple("Pair", "value count")


def test_nobody_sees_what_numbers_are_while_a_step_is_captured():
    kept = [collections.deque(), set(), collections.OrderedDict(), collections.defaultdict(list), [], Slotted()]

    def step(x):
        number = x.sum().item()
        kept[0].append(number)
        kept[1].add(number)
        kept[2]["a"] = number
        kept[3]["b"] = number
        kept[4].append((Pair(number, 1), 2))
        kept[5].value = number
        return number

    step = torch_ltc.compile(step)
    for i in range(6):
        assert type(step(torch.full((3,), float(i), device="ltc"))) is float
        shown = [
            *kept[0],
            *kept[1],
            *kept[2].values(),
            *kept[3].values(),
            *[x[0].value for x in kept[4]],
            kept[5].value,
        ]
        assert {type(x) for x in shown} == {float}, shown


def test_nobody_sees_them_where_a_step_fails():
    trainer = Trainer("ltc")

    def step(x):
        trainer.other = x.sum().item()
        if trainer.calls == 3:
            raise ValueError(trainer.other)
        return x + 1

    step = torch_ltc.compile(step)
    for i in range(6):
        trainer.calls = i
        try:
            step(torch.ones(3, device="ltc"))
        except ValueError as e:
            assert type(e.args[0]) is float
        assert type(trainer.other) is float
