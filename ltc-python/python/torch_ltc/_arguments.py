"""What a step is given, taken apart.

Tensors on the device are inputs of the step, and so are device copies of CPU tensors. All else decides which capture is
meant: containers and objects by their class and what is in them (a dict, a dataclass, a `UserDict`), plain values by
type and bits. An object that cannot be taken apart (a model, an optimiser) is meant itself, and what the step reads of
it is watched as all that is older than the step.
"""

import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container
from typing import Any, cast

import torch

from torch_ltc._known import is_of_python, is_open, namespace
from torch_ltc._names import PLAIN, by_value

TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
#: Compared as they are, besides plain values.
_VALUES = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, type(Ellipsis), range)
#: Meant themselves: they are older than the step, and hold what is.
_BY_IDENTITY = (torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, torch.Generator)
#: Containers that are taken apart into their members, besides dicts.
_SEQUENCES = (tuple, list, deque)
#: Classes written in C of whose instances' content a key tells all.
_SHOWN = (object, dict, OrderedDict, defaultdict, *_SEQUENCES, types.SimpleNamespace)
#: In place of a float that changes.
_CHANGES = (float, "changes")
#: Values of classes derived from these, as values of these.
_BARE: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda x: bytes.join(b"", (b"", x)),
}


class _ByIdentity:
    """An object as part of a key, which does not keep it alive."""

    def __init__(self, x: Any) -> None:
        self._hash = id(x)
        try:
            self._get: Callable[[], Any] = weakref.ref(x)
        except TypeError:
            self._get = lambda: x

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self._get() is other._get() is not None


def _slots(kind: type) -> tuple[str, ...]:
    """Names of the slots that a class has by itself."""
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if type(slots) is str else tuple([s for s in slots if s not in ("__dict__", "__weakref__")])


def _is_of_numpy(kind: type, name: str) -> bool:
    """Whether a class is numpy's of this name, or derived from it."""
    return any(base.__name__ == name and base.__module__ == "numpy" for base in kind.__mro__)


class _Opaque(Exception):
    """An object cannot be taken apart; says why."""


class Arguments:
    """The arguments of one call, taken apart."""

    def __init__(self, args: Any, kwargs: Any, changing: Container[Any] = ()) -> None:
        #: Inputs: tensors on the device, those of the CPU before they are copied to it.
        self.tensors: list[torch.Tensor] = []
        #: Containers and objects that were taken apart.
        self.opened: list[Any] = []
        #: Objects that were not, and why.
        self.opaque: list[tuple[Any, str]] = []
        #: Why there can be no capture; empty where there can.
        self.obstacle = ""
        self._places: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._key: list[Any] = []
        self._depth = 0
        #: Plain values by position or name, which captures tell apart; and floats of which it is known that they change
        #: (`changing`), which replays read.
        self.plain: dict[Any, Any] = {}
        self.numbers: dict[Any, float] = {}
        for i, x in enumerate(args):
            self._add_argument(i, x, i in changing)
        for name, x in kwargs.items():
            self._key.append(name)
            self._add_argument(name, x, name in changing)

    @property
    def objects(self) -> list[Any]:
        """All that is the caller's: other objects at each call."""
        return [*self.opened, *self.tensors]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for calls that may be replayed by one capture."""
        return tuple(self._key)

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Tensors on the device: those given, and copies of those on the CPU."""
        return tuple([x if x.device.type == "ltc" else x.to("ltc") for x in self.tensors])

    def is_like(self, other: "Arguments") -> bool:
        """Whether both are the same tensors in the same places."""
        mine, others = self.tensors, other.tensors
        return self.key == other.key and len(mine) == len(others) and all(x is y for x, y in zip(mine, others))

    def _add_argument(self, name: Any, x: Any, changes: bool) -> None:
        if changes and type(x) is float:
            self.numbers[name] = x
            self._key.append(_CHANGES)
            return
        if type(x) in PLAIN:
            self.plain[name] = x
        self._add(x)

    def _add(self, x: Any) -> None:
        kind = type(x)
        key = self._key
        if kind in PLAIN:
            key.append(by_value(x))
        elif isinstance(x, torch.Tensor):
            self._tensor(x)
        elif kind in _VALUES:
            key.append((kind, str(x)))
        elif kind is slice:
            key.append(kind)
            for part in (x.start, x.stop, x.step):
                self._add(part)
        elif _is_of_numpy(kind, "ndarray"):
            self.obstacle = self.obstacle or "it is given a numpy array: make it a tensor, torch.from_numpy(array)"
        elif kind.__module__ == "numpy" and _is_of_numpy(kind, "generic"):
            key.append((kind, str(x.dtype), x.tobytes()))
        elif id(x) in self._seen:
            key.append(("again", self._seen[id(x)]))
        elif kind in (tuple, list, dict):
            self._enter(x, kind)
            self._members(x)
        else:
            self._object(x, kind)

    def _enter(self, x: Any, kind: type) -> None:
        self._seen[id(x)] = len(self._seen)
        self.opened.append(x)
        self._key.append(kind)

    def _tensor(self, x: torch.Tensor) -> None:
        place = self._places.get(id(x))
        if place is not None:
            self._key.append(("again", -1 - place))
            return
        self._places[id(x)] = len(self.tensors)
        self.tensors.append(x)
        self._key.append(x.device.type if type(x) is torch.Tensor else (x.device.type, type(x)))
        if x.__dict__:
            # What no other part of a key looks like: an argument by name would be taken for an attribute.
            self._key.append(("attributes", len(x.__dict__)))
            for name, y in x.__dict__.items():
                self._key.append(name)
                self._add(y)
        if x.layout is not torch.strided:
            self.obstacle = self.obstacle or f"it is given a tensor of layout {x.layout}, which replays cannot bind to"
            return
        if x.device.type == "ltc":
            return
        if x.device.type != "cpu" or x.requires_grad or type(x) is not torch.Tensor:
            self.obstacle = self.obstacle or f"it is given a {type(x).__name__} on {x.device}: move it to ltc before"

    def _members(self, x: Any) -> None:
        self._key.append(len(x))
        if not isinstance(x, dict):
            for y in x:
                self._add(y)
            return
        for name, y in x.items():
            if type(name) is str:
                self._key.append(name)
            else:
                self._add(name)
            self._add(y)

    def _object(self, x: Any, kind: type) -> None:
        """Takes an object apart, or means it itself."""
        lengths = [len(part) for part in (self.tensors, self.opened, self._key)]
        seen, places, obstacle = dict(self._seen), dict(self._places), self.obstacle
        self._depth += 1
        try:
            self._open(x, kind)
        except _Opaque as why:
            if self._depth > 1:
                raise
            for part, length in zip((self.tensors, self.opened, self._key), lengths):
                del part[length:]
            self._seen, self._places, self.obstacle = seen, places, obstacle
            self.opaque.append((x, str(why)))
            self._key.append(_ByIdentity(x))
        finally:
            self._depth -= 1

    def _open(self, x: Any, kind: type) -> None:
        space = namespace(x)
        is_container = isinstance(x, (dict, *_SEQUENCES))
        slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(x, name)]
        if isinstance(x, _BY_IDENTITY) or callable(x) or not is_open(cast(Any, kind)):
            raise _Opaque(f"a {kind.__module__}.{kind.__qualname__} cannot be taken apart")
        of_c = [base for base in kind.__mro__ if not is_of_python(base)]
        bare = next((take for base, take in _BARE.items() if base in of_c), None)
        shown = all(base in _SHOWN or base in _BARE for base in of_c)
        if not shown or (space is None and not slots and not is_container and bare is None):
            raise _Opaque(f"a {kind.__module__}.{kind.__qualname__} shows nothing that it holds")
        self._enter(x, kind)
        if bare is not None:
            self._key.append(by_value(bare(x)))
        if isinstance(x, deque):
            self._key.append(x.maxlen)
        if isinstance(x, defaultdict):
            self._key.append(_ByIdentity(x.default_factory))
        if is_container:
            self._members(x)
        if space or slots:
            self.opened += [space] if space else []
            for name, y in (*(space or {}).items(), *[(name, getattr(x, name)) for name in slots]):
                self._key.append(name)
                try:
                    self._add(y)
                except _Opaque as why:
                    raise _Opaque(f"{kind.__qualname__}.{name}: {why}") from None
