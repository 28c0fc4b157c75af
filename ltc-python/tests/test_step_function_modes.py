"""Compiled steps within torch function modes of the program (`torch.set_default_device` is one), which stay as the
program entered them."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack


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
