"""The tensors that a step is given: what replays could not do to them, and histories that begin before the step."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from torch_ltc import _ltc
from torch_ltc._left_places import freed_error
from torch_ltc._runtime import history_of, is_leaf, on_device


def _hooks_of(x: torch.Tensor) -> list[Any]:
    """The gradient hooks of a tensor."""
    return [None if hooks is None else [*hooks.items()] for hooks in (x._backward_hooks, x._post_accumulate_grad_hooks)]


def _own_grad(x: torch.Tensor) -> Any:
    """The gradient of a tensor that is no leaf or requires none. Those of other leaves are compared as results."""
    return None if is_leaf(x) and x.requires_grad else _ltc.grad_of(x)


def _traits(x: torch.Tensor) -> list[tuple[str, Any]]:
    """What a call must leave as it is: in words, and its value."""
    return [
        ("the history of an input", (x.requires_grad, id(history_of(x)))),
        ("attributes of an input", [(name, id(value)) for name, value in vars(x).items()]),
        ("hooks of an input: register them before the step", _hooks_of(x)),
        ("the class of an input", type(x)),
        ("whether an input that is no leaf retains its gradient", x.retains_grad),
        ("the gradient of an input that is no leaf or requires none", id(_own_grad(x))),
        ("how an input is read (its conj and neg bits)", (x.is_conj(), x.is_neg())),
    ]


class GivenTensors:
    """The tensors that a call is given, as they are before it. They are kept alive, and so is what they hold."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        self._inputs = inputs
        self._before = [_traits(x) for x in inputs]
        self._kept = [(history_of(x), dict(vars(x)), _own_grad(x)) for x in inputs]
        #: Tensors from outside that could be differentiated when the step was about to go back.
        self._alive: list[torch.Tensor] = []

    def changed(self) -> str:
        """What the call has changed of them that a replay could not, in words; empty where it is nothing."""
        for x, before in zip(self._inputs, self._before):
            for (what, then), (_, now) in zip(before, _traits(x)):
                if then != now:
                    return what
        return ""

    def note_going_back(self, older: Iterable[torch.Tensor]) -> None:
        """The step is about to go back, which may use up a history that began outside. `older`: the tensors that it has
        come across besides these."""
        tensors = [*older, *self._inputs]
        self._alive += [x for x in tensors if can_go_back(x) and not any(x is y for y in self._alive)]

    def begins_outside(self, x: torch.Tensor) -> bool:
        """Whether the step has, or had when it went back, a tensor of a history that begins outside of it and can be
        differentiated."""
        return any(x is y for y in self._alive) or can_go_back(x)


def can_go_back(x: torch.Tensor) -> bool:
    """Whether a tensor is computed from others, and still has all that was saved for going back to them."""
    return on_device(x) and not is_leaf(x) and x.requires_grad and not freed_error(x)
