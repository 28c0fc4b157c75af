"""Places in which a step leaves tensors that it makes (``self.loss = loss``) or plain values (``self.turn = "d"``):
what a call leaves there is one more result of the step.

A place is a key of a dict: of an object's attributes, of a module's globals, or of a plain dict. A tensor that a call
finds there is one more input of the step, so code that reads the last call's tensor (`self.hidden`) reads the input of
this one. If that tensor has an autograd history that a backward pass has used up, the input is a tensor with the same
memory and without the history, which could only raise an error. A plain value that a call finds there is a part of the
call's key, so the step has a capture for each: a step that is in one of a few states leaves the next one.
"""

import enum
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc import _ltc
from torch_ltc._known import is_of_python
from torch_ltc._names import PLAIN, by_value
from torch_ltc._runtime import history_of, is_dense

#: How many places one step may have; the oldest are forgotten.
_MAX_PLACES = 256
#: How many different plain values a place may hold, since each needs a capture. With more it is watched like others.
_MAX_STATES = 4
#: Stands for what a place holds where the dict lacks the key.
MISSING = object()
#: The attributes by which nodes of a class tell what they saved.
_saved_names: dict[type, tuple[str, ...]] = {}


@functools.lru_cache(1024)
def is_plain_holder(kind: type) -> bool:
    """Whether dicts of a class do what dicts do: no class of the program has a method in place of one of theirs, so
    that a replay can take and set entries without it."""
    own = [base for base in kind.__mro__ if is_of_python(base)]
    return not any(name in vars(base) for base in own for name in _OF_DICTS)


#: The methods of dicts by which entries are read and set.
_OF_DICTS = (
    *"__getitem__ __setitem__ __delitem__ __contains__ __iter__ __len__ __missing__ __eq__ __ior__ __or__".split(),
    *"get pop popitem setdefault update clear copy keys values items".split(),
)


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
                if not _is_packed(node, name):
                    getattr(node, name)
            except RuntimeError as e:
                return str(e)
        ahead += [n for n, _ in node.next_functions]
    return ""


def _is_packed(node: Any, name: str) -> bool:
    """Whether what a node saved under a name was packed by hooks, as checkpoints do, and is still held: reading it
    would call the program's. (What a backward pass has freed has no hooks any more.)"""
    raw = getattr(node, f"_raw_{name.removeprefix('_')}", None)
    saved = raw if isinstance(raw, tuple) else (raw,)
    return any(getattr(x, "unpack_hook", None) is not None for x in saved)


class FoundValue(NamedTuple):
    """The tensor, the tuple of tensors, or the plain value that a call finds in one place."""

    holder: dict[Any, Any]
    name: Any
    #: What stands in the place, and the tensors that this is: none, one, or the members of the tuple.
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

    @property
    def is_other(self) -> bool:
        """Whether the step has put something else there."""
        now = self.current
        return now is not self.value and not (is_state(now) and is_state(self.value) and _is_same(now, self.value))


def kind_of(x: Any) -> str:
    """What an object is, as refusals say it."""
    if isinstance(x, torch.Tensor):
        return "a tensor with a history" if x.requires_grad else f"a {type(x).__name__} ({x.device}, {x.layout})"
    return "nothing" if x is MISSING else f"a {type(x).__qualname__}"


def is_state(x: Any) -> bool:
    """Whether something is a plain value. The step may have a capture for each that it finds in a place."""
    return type(x) in PLAIN or isinstance(x, enum.Enum)


def _is_same(x: Any, y: Any) -> bool:
    """Whether two plain values are the same for every program. (Members of enums may compare as they like.)"""
    return x is y or (type(x) in PLAIN and type(y) in PLAIN and by_value(x) == by_value(y))


class LeftPlaces:
    """The places in which a step is known to leave tensors or plain values."""

    def __init__(self) -> None:
        #: The places as `(dict, key)`, by `(id(dict), key)`.
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: The plain values that calls have found in each of these places; `None` where there were too many.
        self._states: dict[tuple[int, Any], list[Any] | None] = {}
        #: The whole numbers that steps were seen to change in places that are not known yet, with the dicts.
        self._whole: dict[tuple[int, Any], tuple[dict[Any, Any], list[int]]] = {}
        #: How many places were dropped: keys from before are about other places.
        self._dropped = 0

    def add(self, places: Iterable[tuple[dict[Any, Any], Any]]) -> None:
        """Adds places in which the step leaves something; the oldest ones are dropped where there are too many."""
        self.places |= {(id(holder), name): (holder, name) for holder, name in places}
        while len(self.places) > _MAX_PLACES:
            oldest = next(iter(self.places))
            del self.places[oldest]
            self._states.pop(oldest, None)
            self._dropped += 1

    def may_change(self, holder: dict[Any, Any], name: Any, before: Any, now: Any) -> bool:
        """Whether a step that puts something else in this place, which held `before`, may be captured for that: a
        tensor for a tensor, or plain values, unless there were too many."""
        if not is_plain_holder(type(holder)):
            return False
        if self.accepts(before) and self.accepts(now):
            return True
        at = (id(holder), name)
        is_mode = name == "training" and "_modules" in holder  # replays call `train()` and `eval()`
        if not (is_state(before) and is_state(now)) or is_mode or self._states.get(at, ()) is None:
            return False
        if type(before) is not int or type(now) is not int:
            return True
        # Most whole numbers are counts, which have new values for ever: one value has to come back first.
        known = self._whole.setdefault(at, (holder, []))[1]
        comes_back = before in known or now in known
        known.append(before)
        del known[:-_MAX_STATES]
        if len(self._whole) > _MAX_PLACES:
            del self._whole[next(iter(self._whole))]
        return comes_back

    def find(self, given: Sequence[torch.Tensor]) -> tuple[list[FoundValue], tuple[Any, ...]]:
        """What a call with these inputs finds in the places, and a part of its key: for each place, whether it holds
        tensors, whether their history was used up, and which tensors are the same as others or as inputs; or which of
        its plain values it holds."""
        found: list[FoundValue] = []
        key: list[Any] = []
        which = {id(x): i for i, x in enumerate(given)}
        for at, (holder, name) in self.places.items():
            value: Any = holder.get(name, MISSING)
            if is_state(value):
                state = self._state(at, value)
                key.append(state)
                if state is not None:
                    found.append(FoundValue(holder, name, value, (), ()))
                continue
            parts = value if type(value) is tuple else (value,)
            states = [self._accepts(x) for x in parts]
            if all(states) and parts:
                bare = tuple([x.detach() if x.requires_grad else x for x in parts])
                found.append(FoundValue(holder, name, value, parts, bare))
                key.append(
                    (type(value) is tuple, *[s + which.setdefault(id(x), len(which)) for s, x in zip(states, parts)])
                )
            else:
                key.append(None)
        return found, (self._dropped, *key)

    def _state(self, at: tuple[int, Any], value: Any) -> int | None:
        """Which of the plain values that were found in a place this is; `None` where there were too many."""
        known = self._states.setdefault(at, [])
        for i, x in enumerate(known or ()):
            if _is_same(x, value):
                return i
        if known is None or len(known) == _MAX_STATES:
            self._states[at] = None
            return None
        known.append(value)
        return len(known) - 1

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
