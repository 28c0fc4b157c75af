"""Reads within `try` and `with`: a read that fails is met by the step's own code, as in eager PyTorch; and steps that
read where nothing meets an exception go on being replayed."""

import contextlib
import warnings

import pytest
import torch
import torch_ltc

STEPS = 16
#: The calls that are given an index out of range.
BAD = (9, 12)


class World:
    """What the steps use and leave."""

    def __init__(self, device):
        self.table = torch.arange(5.0, device=device)
        self.seen = []


class Manager:
    """A context manager of the program's."""

    def __init__(self, seen, swallows):
        self.seen, self.swallows = seen, swallows

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.seen.append(kind and kind.__name__)
        return self.swallows


@contextlib.contextmanager
def cleaning(seen):
    try:
        yield
    finally:
        seen.append("cleaned")


@contextlib.contextmanager
def scaled():
    yield 2.0


def read(world, i):
    return world.table[i].sum().item()


def caught(world, i):
    try:
        return world.table[i].sum().item()
    except IndexError:
        return -1.0


def caught_outside(world, i):
    try:
        return read(world, i) + 1
    except (IndexError, ValueError) as e:
        return float(len(type(e).__name__))


def cleaned_up(world, i):
    try:
        found = read(world, i)
    finally:
        world.seen.append("finally")
    return found


def suppressed(world, i):
    found = -2.0
    with contextlib.suppress(IndexError):
        found = read(world, i)
    return found


def managed(world, i):
    with Manager(world.seen, True), torch.no_grad():
        return read(world, i)
    return -3.0


def managed_outside(world, i):
    with Manager(world.seen, False):
        return cleaned_up(world, i)


def managed_by_a_generator(world, i):
    with cleaning(world.seen):
        return read(world, i)


def as_list(world, i):
    try:
        return world.table[i].tolist()
    except IndexError:
        return [-1.0]


def as_float(world, i):
    try:
        return float(world.table[i].sum())
    except IndexError:
        return -1.0


def after_another_error(world, i):
    try:
        return [].pop()
    except IndexError:
        pass
    try:
        return read(world, i)
    except IndexError:
        return -1.0


def outcomes(body, device, compiled=False):
    """What the calls give, raise and leave behind; and the step."""
    world = World(device)
    step = torch_ltc.compile(lambda i: body(world, i)) if compiled else lambda i: body(world, i)
    found = []
    for k in range(STEPS):
        try:
            found.append(step(torch.tensor([0, 9 if k in BAD else 1], device=device)))
        except IndexError as e:
            found.append(type(e).__name__)
    return [found, world.seen], step


HANDLED = [
    *(caught, caught_outside, cleaned_up, suppressed, managed, managed_outside, managed_by_a_generator),
    *(as_list, as_float, after_another_error),
]


@pytest.mark.parametrize("body", HANDLED)
def test_a_failed_read_is_met_by_the_steps_own_code(body):
    expected, _ = outcomes(body, "cpu")
    assert outcomes(body, "ltc")[0] == expected
    assert outcomes(body, "ltc", compiled=True)[0] == expected


def unguarded(world, i):
    return read(world, i)


def within_managers_of_torch(world, i):
    with torch.no_grad(), torch.autocast("cpu", enabled=False), contextlib.nullcontext():
        return read(world, i)


def within_a_plain_generator(world, i):
    with scaled() as factor:
        return read(world, i) * factor


def within_warnings(world, i):
    with warnings.catch_warnings():
        return read(world, i)


def beside_a_handler(world, i):
    try:
        total = world.table[i].sum()
    except IndexError:
        return -1.0
    return total.item()


def in_a_handler(world, i):
    try:
        world.seen[3]
    except IndexError:
        return read(world, i)


def in_a_comprehension(world, i):
    return [read(world, i) for _ in range(2)][1]


REPLAYED = [unguarded, within_managers_of_torch, within_a_plain_generator, beside_a_handler, in_a_comprehension]


@pytest.mark.parametrize("body", REPLAYED)
def test_reads_that_no_code_meets_are_read_when_the_program_has_run(body):
    expected, _ = outcomes(body, "ltc")
    found, step = outcomes(body, "ltc", compiled=True)
    assert found == expected
    assert step.counts[0] >= STEPS - 5, step.explain()


@pytest.mark.parametrize("body", [in_a_handler, within_warnings])
def test_other_reads_are_right(body):
    expected, _ = outcomes(body, "cpu")
    assert outcomes(body, "ltc", compiled=True)[0] == expected


@pytest.mark.parametrize("device", ["ltc", "cpu"])
def test_a_default_device_does_not_keep_steps_that_read_from_being_replayed(device):
    torch.set_default_device(device)
    try:
        found, step = outcomes(unguarded, "ltc", compiled=True)
    finally:
        torch.set_default_device(None)
    assert found == outcomes(unguarded, "cpu")[0]
    assert step.counts[0] >= STEPS - 5, step.explain()
