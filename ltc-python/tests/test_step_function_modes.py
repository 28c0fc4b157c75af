"""Compiled steps within torch function modes of the program (`torch.set_default_device` is one), which stay as the
program entered them."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode


class Doubling(TorchFunctionMode):
    """Doubles what `linear` gives; its own methods are frames of the program's."""

    def __enter__(self):
        return super().__enter__()

    def __exit__(self, *exception):
        return super().__exit__(*exception)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is F.linear else out


@contextlib.contextmanager
def doubled():
    with Doubling():
        yield


class InBackward(torch.autograd.Function):
    """Enters and leaves a mode within a call of torch's, so that each is another frame."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        with doubled():
            return F.linear(F.relu(gradient), torch.eye(2).to("ltc"))


def relu_then_linear(x):
    return F.linear(F.relu(x), torch.eye(2).to(x.device))


def in_a_hook(x):
    w = torch.ones(2, 2).to("ltc").requires_grad_()
    loss = InBackward.apply(F.linear(x, w)).sum()
    loss.backward()
    return w.grad


def enters(x):
    with Doubling(), torch.device("cpu"):
        made = torch.ones(2)
        with doubled():
            return relu_then_linear(x) * made.to("ltc")


@pytest.mark.parametrize("body", [relu_then_linear, in_a_hook, enters])
@pytest.mark.parametrize("around", [contextlib.nullcontext, Doubling, doubled, lambda: torch.device("ltc")])
def test_modes_of_a_program_are_left_as_they_were(body, around):
    step, before = torch_ltc.compile(body), _get_current_function_mode_stack()
    for i in range(8):
        x = torch.tensor([[1.0 + i, -1.0], [2.0, 3.0]]).to("ltc")
        with around():
            modes = _get_current_function_mode_stack()
            torch.testing.assert_close(step(x), body(x))
            assert _get_current_function_mode_stack() == modes
        assert _get_current_function_mode_stack() == before


def test_a_default_device_holds_for_all_that_a_step_makes():
    def body(x):
        h = F.dropout(F.relu(x), 0.0)
        return h + torch.randn(2) * 0 + torch.ones(2)

    step = torch_ltc.compile(body)
    torch.set_default_device("ltc")
    try:
        found = [step(torch.full((2,), float(i))).tolist() for i in range(8)]
        assert found == [[i + 1.0, i + 1.0] for i in range(8)] and step.counts[0] > 3, step.explain()
        assert torch.ones(1).device.type == "ltc"
    finally:
        torch.set_default_device(None)


def test_a_step_may_leave_a_mode_entered():
    mode = Doubling()

    def body(x):
        mode.__enter__()
        return F.linear(x, torch.eye(2).to("ltc"))

    x = torch.ones(1, 2).to("ltc")
    try:
        assert torch_ltc.compile(body)(x).tolist() == [[2.0, 2.0]]
        assert _get_current_function_mode_stack() == [mode]
    finally:
        mode.__exit__(None, None, None)


class CountsOperators(TorchDispatchMode):
    """Counts the operators that it sees."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


class PassesOn(TorchDispatchMode):
    """Does nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class CountsCalls(TorchFunctionMode):
    """Counts the calls that it sees."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def trained(compiled, make_mode, is_inside):
    """What twelve steps of Adam under a mode give and leave, and what the mode counted; and the step."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1).to("ltc")
    adam, mode = torch.optim.Adam(net.parameters(), 0.01), make_mode()
    around, within = (contextlib.nullcontext(), mode) if is_inside else (mode, contextlib.nullcontext())

    def step(x):
        with within:
            loss = net(x).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            return loss.detach()

    step, given = (
        torch_ltc.compile(step) if compiled else step,
        [torch.full((2, 4), k / 12).to("ltc") for k in range(12)],
    )
    with around:
        losses = [step(x) for x in given]
    found = [[x.item() for x in losses], [s["step"].item() for s in adam.state.values()], getattr(mode, "count", None)]
    return found, step


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("mode", [PassesOn, CountsOperators, CountsCalls])
def test_a_mode_that_sees_operators_sees_those_of_each_call(mode, is_inside):
    expected, _ = trained(False, mode, is_inside)
    found, step = trained(True, mode, is_inside)
    assert found == expected
    assert step.counts[0] == 0 and step.refusal, step.explain()


def test_steps_are_replayed_again_when_a_mode_has_gone():
    step = torch_ltc.compile(lambda x: x * 2)
    for _ in range(6):
        step(torch.ones(2).to("ltc"))
    before = step.counts
    with CountsOperators() as mode:
        step(torch.ones(2).to("ltc"))
    assert mode.count and step.counts == (before[0], before[1] + 1)
    step(torch.ones(2).to("ltc"))
    assert step.counts == (before[0] + 1, before[1] + 1)


def test_anomaly_detection_looks_at_the_gradients_of_each_call():
    w = torch.ones(2).to("ltc").requires_grad_()

    @torch_ltc.compile
    def step(x):
        w.grad = None
        (w * x).sqrt().sum().backward()
        return w.grad * 1

    for _ in range(8):
        step(torch.ones(2).to("ltc"))
    with torch.autograd.detect_anomaly(check_nan=True):
        for _ in range(4):
            step(torch.ones(2).to("ltc"))
        with pytest.raises(RuntimeError, match="nan"):
            step(-torch.ones(2).to("ltc"))
    replayed = step.counts[0]
    for _ in range(4):
        step(torch.ones(2).to("ltc"))
    assert step.counts[0] >= replayed + 3, step.explain()
