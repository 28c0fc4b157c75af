"""Places in which a step leaves tensors that it makes (``self.loss = loss``): the tensor that a call finds there is one
more input of the step, and the one that it leaves there is one more result.

A place is a key of a dict: of an object's attributes, of a module's globals, or of a plain dict. Since what stands
there before a call is an input, code that reads the last call's tensor (`self.hidden`) reads the input of this one. If
that tensor has an autograd history that a backward pass has used up, the input is a tensor with the same memory and
without the history, which could only raise an error.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc import _ltc
from torch_ltc._runtime import history_of, is_dense

#: How many places one step may have; the oldest are forgotten.
_MAX_PLACES = 256
#: Stands for what a place holds where the dict lacks the key.
MISSING = object()
#: The attributes by which nodes of a class tell what they saved.
_saved_names: dict[type, tuple[str, ...]] = {}


def freed_error(x: torch.Tensor) -> str:
    """The error that a backward pass through a tensor's history would raise because an earlier one has freed what was
    saved for it; empty where there would be none."""
    if _ltc.history_is_freed(x):
        return "what it saved for going back was let go"
    seen: set[Any] = set()
    ahead: list[Any] = [history_of(x)]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        kind = type(node)
        if kind not in _saved_names:
            _saved_names[kind] = tuple(n for n in dir(kind) if n.startswith("_saved_") or n == "saved_tensors")
        for name in _saved_names[kind]:
            try:
                getattr(node, name)
            except RuntimeError as e:
                return str(e)
        ahead += [n for n, _ in node.next_functions]
    return ""


class FoundTensors(NamedTuple):
    """The tensor, or the tuple of tensors, that a call finds in one place."""

    holder: dict[Any, Any]
    name: Any
    #: What stands in the place, and the tensors that this is: one, or the members of the tuple.
    value: Any
    tensors: tuple[torch.Tensor, ...]
    #: The inputs of the step: these tensors, without a history.
    inputs: tuple[torch.Tensor, ...]

    @property
    def key(self) -> tuple[int, Any]:
        """The place as a key, which does not hold the dict."""
        return id(self.holder), self.name

    @property
    def current(self) -> Any:
        """What stands in the place now; another object than :attr:`value` once the step has put something there."""
        return self.holder.get(self.name, MISSING)


class TensorPlaces:
    """The places in which a step is known to leave tensors."""

    def __init__(self) -> None:
        #: The places as `(dict, key)`, by `(id(dict), key)`.
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}

    def add(self, places: Iterable[tuple[dict[Any, Any], Any]]) -> None:
        """Adds places in which the step leaves tensors; the oldest ones are dropped where there are too many."""
        self.places |= {(id(holder), name): (holder, name) for holder, name in places}
        while len(self.places) > _MAX_PLACES:
            del self.places[next(iter(self.places))]

    def find(self, given: Sequence[torch.Tensor]) -> tuple[list[FoundTensors], tuple[Any, ...]]:
        """What a call with these inputs finds in the places, and a part of its key: for each place, whether it holds
        tensors, whether their history was used up, and which tensors are the same as others or as inputs."""
        found: list[FoundTensors] = []
        key: list[Any] = []
        which = {id(x): i for i, x in enumerate(given)}
        for holder, name in self.places.values():
            value: Any = holder.get(name)
            parts = value if type(value) is tuple else (value,)
            states = [self._accepts(x) for x in parts]
            if all(states) and parts:
                bare = tuple([x.detach() if x.requires_grad else x for x in parts])
                found.append(FoundTensors(holder, name, value, parts, bare))
                key.append(
                    (type(value) is tuple, *[s + which.setdefault(id(x), len(which)) for s, x in zip(states, parts)])
                )
            else:
                key.append(None)
        return found, tuple(key)

    @classmethod
    def accepts(cls, x: Any) -> bool:
        """Whether what stands in a place can be an input of the step, or several: a tensor, or a tuple of some."""
        return bool(x) and all(map(cls._accepts, x)) if type(x) is tuple else cls._accepts(x) > 0

    @staticmethod
    def _accepts(x: Any) -> int:
        """Whether a tensor can be an input of the step: 0 if not (its history can still be differentiated, say), 1 if
        as it is, `1 << 32` if without its history, which is used up."""
        if type(x) is not torch.Tensor or not is_dense(x) or x.__dict__ or x.is_inference():
            return 0
        if not x.requires_grad:
            return 1
        return 1 << 32 if freed_error(x) else 0
