"""Places in which a step leaves tensors that it makes (``self.loss = loss``): what it finds there is one more input of
it, and what it leaves there one more result.

A place is a name in a dict: of attributes, globals, or entries of a plain dict. What stands there before a call counts
as given to it, so that code which reads the last call's tensor reads the input. Of a tensor whose history is used up
the input is another one that shows the same memory without the history: going back through it would raise.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc import _ltc
from torch_ltc._runtime import history_of, is_dense

#: Places of one step that are known at once.
_MAX_PLACES = 256
#: What stands nowhere.
MISSING = object()
_saved_names: dict[type, tuple[str, ...]] = {}


def spent(x: torch.Tensor) -> str:
    """What going back through a tensor's history would say where somebody has done so and let it go; empty where it can
    be."""
    if _ltc.is_spent(x):
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
    """What a call finds in a place: a tensor, or a tuple of some."""

    holder: dict[Any, Any]
    name: Any
    value: Any
    tensors: tuple[torch.Tensor, ...]
    #: What shows their memory without a history: what the step is given.
    inputs: tuple[torch.Tensor, ...]

    @property
    def key(self) -> tuple[int, Any]:
        """The place."""
        return id(self.holder), self.name

    @property
    def current(self) -> Any:
        """What stands in the place."""
        return self.holder.get(self.name, MISSING)


class TensorPlaces:
    """The places in which a step leaves tensors."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}

    def add(self, places: Iterable[tuple[dict[Any, Any], Any]]) -> None:
        """The step leaves tensors in these places, too; the oldest give way."""
        self.places |= {(id(holder), name): (holder, name) for holder, name in places}
        while len(self.places) > _MAX_PLACES:
            del self.places[next(iter(self.places))]

    def find(self, given: Sequence[torch.Tensor]) -> tuple[list[FoundTensors], tuple[Any, ...]]:
        """What a call finds, and a key of it beside the arguments: which places hold tensors, with used up history or
        none, and which of them are one."""
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
        """Whether what stands in a place can be an input of the step, or several."""
        return bool(x) and all(map(cls._accepts, x)) if type(x) is tuple else cls._accepts(x) > 0

    @staticmethod
    def _accepts(x: Any) -> int:
        """Whether a tensor can be an input of the step: not (0), as it is, or without its history."""
        if type(x) is not torch.Tensor or not is_dense(x) or x.__dict__ or x.is_inference():
            return 0
        if not x.requires_grad:
            return 1
        return 1 << 32 if spent(x) else 0
