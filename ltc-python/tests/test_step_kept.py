"""Compiled steps that take values off the device and only keep them: copies on the CPU, arrays, lists, `float(loss)`.
Replays read these when their program has run. Where anything else becomes of such a value, the step is recorded."""

import operator

import numpy
import pytest
import torch
import torch_ltc
from steps import compare_with_state

CASES = {}


def case(least):
    """A case, as in `test_step_set.py`: how many of 30 calls have to be replayed, or `None` if none may be."""

    def add(function):
        CASES[function.__name__] = (function, least)
        return function

    return add


@torch.jit.script
def scripted(x: torch.Tensor) -> bool:
    return bool(x.sum() > 9)


# ---- what is read after a replay's program ----


@case(25)
def copies(held):
    return lambda x: ((x * 2).cpu(), {"to": [(x + 1).to("cpu")], "device": x.to(device=torch.device("cpu"))})


@case(25)
def copies_of_any_layout(held):
    def step(x):
        y = x.reshape(1, 3)
        return (
            y.t().cpu(),
            y.expand(4, 3).cpu(),
            x[:0].cpu(),
            (x > 2).cpu(),
            x.half().cpu(),
            x[1:].cpu(),
            x.long().cpu(),
        )

    return step


@case(25)
def one_copy_in_two_places(held):
    def step(x):
        copy = (x * 2).cpu()
        held.out = copy
        return copy, [copy], copy.shape, len(copy)

    return step


@case(25)
def a_copy_of_what_is_written_later(held):
    held.weight = torch.zeros(3, device="ltc")

    def step(x):
        before, y = held.weight.cpu(), x * 2
        then = y.cpu()
        y += 1
        held.weight.add_(x)
        return before, then, y

    return step


@case(25)
def a_copy_in_inference_mode(held):
    @torch.inference_mode()
    def step(x):
        return (x * 2).cpu(), {"array": (x * 3).cpu().numpy()}

    return step


@case(25)
def copies_that_are_appended(held):
    held.outs = []

    def step(x):
        held.outs.append((x * 2).cpu())
        return x

    return step


@case(25)
def arrays(held):
    held.outs = []

    def step(x):
        held.outs.append({"array": (x * 3).detach().cpu().numpy()})
        copy = (x * 2).cpu()
        return copy, copy.numpy()

    return step


@case(25)
def numbers_and_lists(held):
    @torch.no_grad()
    def step(x):
        total = float(x.sum())
        return {"sum": total, "again": total, "list": x.tolist(), "whole": float(x.long().sum()), "any": float(x.any())}

    return step


@case(25)
def numbers_that_are_appended(held):
    held.losses, losses = [], []
    held.latest = lambda: losses

    def step(x):
        loss = float(x.sum())
        held.losses.append(loss)
        losses.append({"loss": loss, "each": x.tolist()})
        with torch.no_grad():
            return loss

    return step


@case(25)
def numbers_that_a_function_appends(held):
    held.losses = []

    def log(x):
        held.losses.append(float(x))

    def step(x):
        log(x.sum())
        return x + 1

    return step


# ---- what has the step recorded ----


@case(None)
def a_copy_that_is_computed_with(held):
    return lambda x: x.cpu() + 1


@case(None)
def a_copy_that_decides(held):
    return lambda x: x if x.cpu().sum() > 20 else x * 2


@case(None)
def a_copy_that_a_scripted_function_reads(held):
    def step(x):
        copy = x.cpu()
        return x if scripted(copy) else x * 2

    return step


@case(None)
def a_copy_that_numpy_reads(held):
    return lambda x: x if numpy.asarray(x.cpu()).sum() > 20 else x * 2


@case(None)
def a_copy_that_is_written(held):
    return lambda x: x.cpu().mul_(2)


@case(None)
def a_copy_that_is_unpacked(held):
    def step(x):
        a, b, c = x.cpu()
        return a, b, c

    return step


@case(None)
def a_copy_that_goes_back(held):
    return lambda x: x * x.cpu().to("ltc").sum()


@case(None)
def an_array_that_is_computed_with(held):
    return lambda x: x * float(x.cpu().numpy()[0])


@case(None)
def an_array_that_is_written(held):
    def step(x):
        array = x.cpu().numpy()
        array += 1
        return array

    return step


@case(None)
def a_list_that_is_added_up(held):
    return lambda x: sum(x.tolist())


@case(None)
def a_list_that_is_changed(held):
    def step(x):
        found = x.tolist()
        found.append(1)
        return found

    return step


@case(None)
def a_number_that_is_computed_with(held):
    return lambda x: float(x.sum()) + 1


@case(None)
def a_number_that_decides(held):
    def step(x):
        total = float(x.sum())
        return total if total > 9 else -total

    return step


@case(None)
def numbers_that_c_code_adds_up(held):
    return lambda x: sum(map(float, [x[0], x[1]]))


@case(None)
def a_number_as_a_key(held):
    return lambda x: {float(x.sum()): 1}


@case(None)
def a_number_in_a_list_that_is_read(held):
    held.losses, get = [], operator.attrgetter("losses")

    def step(x):
        held.losses.append(float(x.sum()))
        return x * len(get(held))

    return step


@case(None)
def a_number_in_a_list_of_its_own(held):
    def step(x):
        losses = []
        losses.append(float(x.sum()))
        return sum(losses)

    return step


@case(None)
def a_number_for_another_append(held):
    class Log:
        def append(self, x):
            held.last = x * 2

    log = Log()

    def step(x):
        log.append(float(x.sum()))
        return x

    return step


@case(None)
def a_number_for_another_list(held):
    def step(x):
        total = float(x.sum())
        held.losses = []
        held.losses.append(total)
        return sum(held.losses)

    return step


@pytest.mark.parametrize("name", CASES)
def test_returns_and_leaves_the_same(name):
    compare_with_state(*CASES[name])


def test_a_copy_that_decided_alike_for_a_while_decides_anew():
    step = torch_ltc.compile(lambda x: x if x.cpu().sum() > 20 else x * 2)
    for value in (1.0,) * 8 + (9.0,) * 8 + (1.0, 9.0):
        assert step(torch.full((3,), value, device="ltc")).tolist() == [9.0 if value == 9.0 else 2.0] * 3


def test_a_copy_and_its_array_share_memory():
    @torch_ltc.compile
    def step(x):
        copy = (x * 2).cpu()
        return copy, copy.numpy(), copy

    for i in range(8):
        copy, array, again = step(torch.full((3,), float(i), device="ltc"))
        array[0] = -1.0
        assert copy is again and copy.tolist() == [-1.0, 2.0 * i, 2.0 * i]
    assert step.counts[0] >= 4, step.explain()


def test_attributes_of_a_copy_refuse_the_step():
    @torch_ltc.compile
    def step(x):
        copy = (x * 2).cpu()
        copy.note = "a note"
        return copy

    for _ in range(8):
        assert step(torch.ones(3, device="ltc")).note == "a note"
    assert step.counts[0] == 0 and "attributes" in step.refusal, step.explain()


def test_transforms_of_cpu_tensors_are_recorded():
    double = torch.vmap(lambda x: x * 2)
    step = torch_ltc.compile(lambda x: double((x + 1).cpu()))
    for i in range(8):
        assert step(torch.full((3,), float(i), device="ltc")).tolist() == [2.0 * (i + 1)] * 3
    assert "transforms CPU tensors" in step.refusal


@pytest.mark.parametrize("shape", [(3,), (1,), (0,), (2, 3), (2, 0), (2, 3, 2)])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_indices_have_the_strides_of_eager(shape, count):
    mask = torch.arange(torch.Size(shape).numel()).reshape(shape) < count
    step = torch_ltc.compile(lambda m: (torch.nonzero(m), torch.argwhere(m)))
    for _ in range(8):
        for found, expected in zip(step(mask.to("ltc")), (torch.nonzero(mask), torch.argwhere(mask)), strict=True):
            assert found.tolist() == expected.tolist() and found.stride() == expected.stride()
            assert not found._is_view()
    assert step.counts[0] >= 3, step.explain()
