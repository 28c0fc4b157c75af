"""What the host part of a compiled step does once: equal reads and equal arithmetic, and constants that nothing writes.
Whatever may differ is done each time."""

import contextlib
import cProfile
import sys
import types

import pytest
import torch
import torch_ltc

STEPS = 12


def replayed(body):
    """The lines of the host part of a compiled step that gives what eager gives: those of a replay, and how often the
    step's replays ran."""
    outs = []
    for device in ("cpu", "ltc"):
        world = types.SimpleNamespace(count=torch.zeros(()), other=torch.zeros(()))
        call = lambda x, world=world: body(world, x)
        step = torch_ltc.compile(call) if device == "ltc" else call
        outs.append([step(torch.ones(2, device=device)).cpu() for _ in range(STEPS)])
    torch.testing.assert_close(outs[1], outs[0])
    assert step.counts[0] > STEPS // 2, step.explain()
    program = step._ready_reads[-1].program
    return [line.text for line in program._lines], program


def calls_of(function, body):
    """How many lines call a function."""
    lines, program = replayed(body)
    names = {name for name, x in program._used.items() if x is function}
    return sum(any(f" {name}(" in line for name in names) for line in lines)


def reads_twice(world, x):
    world.count += 1
    return x * world.count.item() + 0.5 ** world.count.item() + 0.25 ** world.count.item()


def reads_around_a_write(world, x):
    world.count += 1
    before = world.count.item()
    world.count.mul_(2)
    return x * before + world.count.item() * 10


def reads_around_a_write_of_a_view(world, x):
    world.count += 1
    before = world.count.item()
    world.count.view(1).mul_(2)
    return x * before + world.count.item() * 10


def reads_two(world, x):
    world.count += 1
    world.other += 2
    return x * world.count.item() + world.other.item()


@pytest.mark.parametrize(
    ("body", "reads"),
    [(reads_twice, 1), (reads_around_a_write, 2), (reads_around_a_write_of_a_view, 2), (reads_two, 2)],
)
def test_a_number_is_read_once_between_writes(body, reads):
    assert calls_of(torch.Tensor.item, body) == reads


def test_adam_reads_each_step_count_once():
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 2).to("ltc")
    optimiser = torch.optim.Adam(net.parameters())

    @torch_ltc.compile
    def step(x):
        optimiser.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimiser.step()
        return loss.detach()

    for _ in range(STEPS):
        step(torch.ones(2, device="ltc"))
    program = step._ready_reads[-1].program
    read = {name for name, x in program._used.items() if x is torch.Tensor.item}
    assert sum(any(f" {name}(" in line.text for name in read) for line in program._lines) == 2
    assert {state["step"].item() for state in optimiser.state.values()} == {STEPS}


def adds_a_constant_to_a_list(world, x):
    torch._foreach_add_([world.count, world.other], torch.tensor(1.0), alpha=1.0)
    return x * world.count.item() + world.other.item()


def writes_a_constant(world, x):
    one = torch.tensor(1.0)
    one += world.count
    world.count += 1
    return x * one.item()


def writes_a_view_of_a_constant(world, x):
    one = torch.tensor(1.0)
    torch._foreach_add_([one.data], world.count)
    torch._foreach_add_([world.count], one)
    return x * one.item()


def writes_a_constant_by_a_list(world, x):
    one = torch.tensor(1.0)
    torch._foreach_add_([one], 1.0)
    torch._foreach_add_([world.count], one)
    return x * one.item() + world.count.item()


def follows_a_number(world, x):
    world.other += 1
    torch._foreach_add_([world.count], torch.tensor(world.other.item()))
    return x * world.count.item()


@pytest.mark.parametrize(
    ("body", "is_once"),
    [
        (adds_a_constant_to_a_list, True),
        (writes_a_constant, False),
        (writes_a_view_of_a_constant, False),
        (writes_a_constant_by_a_list, False),
        (follows_a_number, False),
    ],
)
def test_a_constant_is_made_once_where_nothing_writes_it(body, is_once):
    _, program = replayed(body)
    made = {name for name, x in program._used.items() if x is torch.tensor}
    before_run, _, run = program.identity.partition("def run():")
    assert any(f" {name}(" in before_run for name in made) == is_once
    assert any(f" {name}(" in run for name in made) != is_once


def trained(device, compiled, optimiser=torch.optim.Adam, around=contextlib.nullcontext):
    """Losses and the step count of a small training run; and the step."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1).to(device)
    adam = optimiser(net.parameters(), 0.1)

    def step(x):
        loss = net(x).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.detach()

    step = torch_ltc.compile(step) if compiled else step
    with around():
        losses = [step(torch.full((2, 4), k / STEPS, device=device)) for k in range(STEPS)]
    return [x.item() for x in losses], adam.state[net.weight]["step"].item(), step


@pytest.mark.parametrize("default", ["ltc", "cpu"])
def test_a_default_device_changes_nothing_of_what_a_step_does_on_the_host(default):
    losses, count, _ = trained("cpu", False)
    ours, ours_count, step = trained("ltc", True, around=lambda: torch.device(default))
    assert (ours_count, step.counts[0] > STEPS // 2) == (count, True), step.explain()
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(losses))


@contextlib.contextmanager
def profiled():
    profile = cProfile.Profile()
    profile.enable()
    before = sys.getprofile()
    yield
    assert sys.getprofile() is before
    profile.disable()
    assert profile.getstats()


def test_steps_under_a_profiler_are_recorded_and_leave_it_on():
    losses, count, _ = trained("cpu", False)
    ours, ours_count, step = trained("ltc", True, around=profiled)
    assert ours_count == count
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(losses))
    assert step.counts[0] or "profile" in step.refusal, step.explain()
