"""What a compiled step is given: dicts, dataclasses, objects, CPU tensors, models. Calls with the same kinds of things
in the same places are replayed; what is in plain sight of the step decides which capture is meant."""

import collections
import dataclasses
import re
import types

import numpy as np
import pytest
import torch
import torch_ltc
from torch import nn

ROWS = [(torch.randn(6, 4, generator=torch.Generator().manual_seed(i)), torch.randn(6, 2)) for i in range(12)]


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    weight: float = 1.0


@dataclasses.dataclass(slots=True)
class Slotted:
    x: torch.Tensor
    y: torch.Tensor
    weight: float = 1.0


class Plain:
    def __init__(self, x, y):
        self.x, self.y, self.weight = x, y, 1.0


class Fields(dict):
    def __getattr__(self, name):
        return self[name]


def learner(device, use):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)

    def learn(*batch):
        optimiser.zero_grad()
        x, y, weight = use(*batch)
        loss = (model(x.to(device)) - y.to(device)).square().mean() * weight
        loss.backward()
        optimiser.step()
        return loss.detach()

    return learn


def attributes(b):
    return b.x, b.y, b.weight


def items(b):
    return b["x"], b["y"], 1.0


def as_pair(b):
    return b[0].view(6, -1), b[1].float(), 1.0


def model_output(x, y):
    outputs = pytest.importorskip("transformers.modeling_outputs")
    return outputs.BaseModelOutput(last_hidden_state=x, hidden_states=(y,))


def encoding(x, y):
    return pytest.importorskip("transformers").BatchEncoding({"x": x, "y": y})


KINDS = {
    "a dataclass": (Batch, attributes),
    "a dataclass with slots": (Slotted, attributes),
    "an object": (Plain, attributes),
    "a namespace": (lambda x, y: types.SimpleNamespace(x=x, y=y, weight=1.0), attributes),
    "a dict with attributes": (lambda x, y: Fields(x=x, y=y, weight=1.0), attributes),
    "a UserDict": (lambda x, y: collections.UserDict(x=x, y=y), items),
    "a dict": (lambda x, y: {"x": x, "y": y}, items),
    "a defaultdict": (lambda x, y: collections.defaultdict(list, x=x, y=y), items),
    "a pair": (lambda x, y: [x, y], as_pair),
    "a ModelOutput": (model_output, lambda b: (b.last_hidden_state, b.hidden_states[0], 1.0)),
    "a BatchEncoding": (encoding, items),
}


@pytest.mark.parametrize("where", ["ltc", "cpu"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_all_kinds_are_replayed(kind, where):
    make, use = KINDS[kind]
    plain, step = learner("cpu", use), torch_ltc.compile(learner("ltc", use))
    for x, y in ROWS:
        expected = plain(make(x, y))
        torch.testing.assert_close(step(make(x.to(where), y.to(where))).cpu(), expected)
    assert step.counts == (9, 3), step.explain()


def test_what_is_in_a_batch_besides_tensors_decides():
    step = torch_ltc.compile(lambda b: b.x * b.weight + (b.y if b.y is not None else 0))
    for weight, y in [(1.0, None)] * 5 + [(2.0, None)] * 5 + [(2.0, torch.ones(2))] * 5 + [(1.0, None)] * 3:
        got = step(Batch(torch.ones(2, device="ltc"), None if y is None else y.to("ltc"), weight))
        assert got.tolist() == [weight + (y is not None)] * 2
    assert step.counts == (11, 7), step.explain()


def test_a_batch_of_another_class_is_another_kind_of_call():
    class Twice(Batch):
        @property
        def scale(self):
            return 2.0

    Batch.scale = property(lambda self: 1.0)
    try:
        step = torch_ltc.compile(lambda b: b.x * b.scale)
        x = torch.ones(2, device="ltc")
        for _ in range(5):
            assert step(Batch(x, x)).tolist() == [1.0, 1.0]
        for _ in range(5):
            assert step(Twice(x, x)).tolist() == [2.0, 2.0]
        Batch.scale = property(lambda self: 3.0)
        assert step(Batch(x, x)).tolist() == [3.0, 3.0]
    finally:
        del Batch.scale


def test_cpu_tensors_are_copied_in_each_time():
    step = torch_ltc.compile(lambda x, at: x.to("ltc") * 2 + at.to("ltc", torch.float32))
    x, at = torch.zeros(3), torch.zeros((), dtype=torch.long)
    for i in range(12):
        x.fill_(i)
        at.fill_(i)
        assert step(x, at).tolist() == [3.0 * i] * 3
    assert step.counts == (9, 3), step.explain()


def test_what_is_copied_twice_are_two_tensors():
    def body(x):
        y = x.to("ltc")
        y += 1
        return y + x.to("ltc")

    step = torch_ltc.compile(body)
    for i in range(12):
        assert step(torch.full((3,), float(i))).tolist() == [2.0 * i + 1] * 3
    assert step.counts == (9, 3), step.explain()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda x: x.to("ltc") * x.sum().item(), r"in sum, on the host \(.*test_step_batches.py:\d+\): move it to ltc"),
        (lambda x: x.add_(1).to("ltc"), "in add_, on the host"),
        (lambda x: torch.zeros(3, device="ltc") + torch.rand_like(x).mul(0).to("ltc") + x.to("ltc"), "in rand_like"),
    ],
)
def test_what_else_is_done_with_cpu_tensors_is_recorded(body, why):
    step = torch_ltc.compile(body)
    for i in range(6):
        x = torch.full((3,), float(i))
        torch.testing.assert_close(step(x.clone()).cpu(), body(x.clone()).cpu())
    assert step.counts[0] == 0
    assert re.search(why, step.refusal), step.explain()


def test_arrays_are_refused_by_what_to_do():
    step = torch_ltc.compile(lambda a, x: x * float(a[0]))
    for i in range(5):
        assert step(np.array([float(i)]), torch.ones(1, device="ltc")).item() == i
    assert "torch.from_numpy" in step.refusal


def test_a_model_that_is_handed_in_is_meant_itself():
    def learn(model, optimiser, x):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimiser.step()
        return loss.detach()

    def run(device, call):
        torch.manual_seed(0)
        models = [nn.Linear(4, 2).to(device) for _ in range(2)]
        optimisers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in models]
        losses = []
        for i in range(24):
            if i == 20:
                models[0].weight.requires_grad_(False)
            losses.append(call(models[i // 6 % 2], optimisers[i // 6 % 2], ROWS[i % 12][0].to(device)).item())
        return losses

    step = torch_ltc.compile(learn)
    assert run("ltc", step) == pytest.approx(run("cpu", learn), rel=1e-5)
    assert step.counts[0] >= 12, step.explain()


class Opaque:
    def __init__(self, x):
        self.x, self.handle = x, iter([1])


def test_objects_that_cannot_be_taken_apart_say_which_part():
    step = torch_ltc.compile(lambda b: b.x * 2)
    for i in range(14):
        assert step(Opaque(torch.full((2,), float(i), device="ltc"))).tolist() == [2.0 * i] * 2
    assert step.counts[0] == 0 and "Opaque.handle" in step.refusal, step.explain()


def takes_out(b):
    return b["x"] + b.pop("y")


def puts_in(b):
    b["z"] = b["x"] + b["y"]
    return b["z"]


def replaces(b):
    b["y"] = b["x"] + b["y"]
    return b["y"]


@pytest.mark.parametrize("body", [takes_out, puts_in, replaces])
def test_a_step_that_changes_its_batch_is_recorded(body):
    step = torch_ltc.compile(body)
    for i in range(8):
        batches = [{"x": torch.ones(2, device=d), "y": torch.full((2,), float(i), device=d)} for d in ("cpu", "ltc")]
        assert body(batches[0]).tolist() == step(batches[1]).tolist()
        assert (
            list(batches[0]) == list(batches[1]) and batches[0].get("y", X).tolist() == batches[1].get("y", X).tolist()
        )
    assert step.counts[0] == 0 and "argument" in step.refusal, step.explain()


X = torch.zeros(1)
KEPT = torch.ones(3, device="ltc")


def closed_over():
    kept = torch.ones(3, device="ltc")
    return kept, lambda x: x + kept


def held_by_an_object():
    world = types.SimpleNamespace(kept=torch.ones(3, device="ltc"))
    return world.kept, lambda x: x + world.kept


def held_in_a_list():
    world = [torch.ones(3, device="ltc")]
    return world[0], lambda x: x + world[0]


def a_default():
    kept = torch.ones(3, device="ltc")

    def step(x, other=kept):
        return x + other

    return kept, step


@pytest.mark.parametrize(
    "make", [lambda: (KEPT, lambda x: x + KEPT), closed_over, held_by_an_object, held_in_a_list, a_default]
)
def test_an_argument_that_is_found_elsewhere_too_is_not_taken_for_it(make):
    kept, body = make()
    step = torch_ltc.compile(body)
    for _ in range(6):
        assert step(kept).tolist() == [2.0] * 3
    assert step.counts == (3, 3), step.explain()
    for _ in range(6):
        assert step(torch.full((3,), 5.0, device="ltc")).tolist() == [6.0] * 3
    assert step(kept).tolist() == [2.0] * 3


def test_a_batch_that_is_found_elsewhere_too_is_recorded():
    world = types.SimpleNamespace(batch={"x": torch.ones(2, device="ltc")})
    step = torch_ltc.compile(lambda b: b["x"] + world.batch["x"])
    for _ in range(5):
        assert step(world.batch).tolist() == [2.0, 2.0]
    assert step({"x": torch.full((2,), 5.0, device="ltc")}).tolist() == [6.0, 6.0]
    assert "finds an argument in" in step.refusal, step.explain()


def test_a_step_that_was_never_replayed_says_why():
    step = torch_ltc.compile(lambda x: x + 1)
    assert "not called yet" in step.explain()
    outer = torch_ltc.compile(lambda x: step(x) * 2)
    for _ in range(5):
        outer(torch.ones(1, device="ltc"))
    assert step.counts == (0, 0) and "part of another step" in step.explain()
    other = torch_ltc.compile(lambda x: x + 1)
    for n in range(1, 6):
        other(torch.ones(n, device="ltc"))
    assert other.counts[0] == 0 and "was not the same" in other.explain()
