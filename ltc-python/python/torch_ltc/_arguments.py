"""A call's arguments, taken apart into inputs and a key.

The tensors among the arguments are inputs of the step (of CPU tensors, their copies on the device). Everything else
becomes a key, and a capture serves only calls with an equal one: containers and objects (a dict, a dataclass, a
`UserDict`) count by their class and their members, plain values by type and bits. An object that cannot be taken apart
(a model, an optimiser) counts by its identity, and what the step reads of it is watched like all that is older than the
step. A float that is known to change from call to call is not in the key, but for where it is met again: replays read
it (`_changing_numbers.py`).
"""

import contextlib
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container
from typing import Any, cast

import torch

from torch_ltc._known import base_of, is_of_python, is_open, namespace
from torch_ltc._names import PLAIN, by_value
from torch_ltc._runtime import is_tensor

#: The classes of tensors that replays can return.
TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
#: Classes of values, besides plain ones, that the key compares by what they print.
_VALUES = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, type(Ellipsis), range)
#: Classes of objects that count by identity: what they hold is watched.
_BY_IDENTITY = (torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, torch.Generator)
#: Classes of containers, besides dicts, that are taken apart into their members.
_SEQUENCES = (tuple, list, deque)
#: C classes whose objects hold nothing besides what taking them apart puts into the key.
_SHOWN = (object, dict, OrderedDict, defaultdict, *_SEQUENCES, types.SimpleNamespace)
#: Stands in a key for a float that changes from call to call.
_CHANGES = (float, "changes")
#: For objects of classes derived from a plain class: how to get the plain value.
_BARE: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda x: bytes.join(b"", (b"", x)),
}


class _ByIdentity:
    """An object as part of a key, compared by identity; the key does not keep the object alive."""

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


def _in_slots(x: Any, kind: type) -> list[tuple[str, Any]]:
    """The names and values of an object's slots that Python classes define, read without its own `__getattr__`."""
    found = []
    for base in kind.__mro__:
        for name, slot in vars(base).items() if is_of_python(base) else ():
            if type(slot) is types.MemberDescriptorType:
                with contextlib.suppress(AttributeError):  # it is empty
                    found.append((name, slot.__get__(x)))
    return found


def _is_of_numpy(kind: type, name: str) -> bool:
    """Whether a class is numpy's of this name, or derived from it. (numpy may not be installed.)"""
    return any(base.__name__ == name and base.__module__ == "numpy" for base in kind.__mro__)


class _Opaque(Exception):
    """Raised where an object cannot be taken apart; the message says why."""


class Arguments:
    """The arguments of one call, taken apart. `changing`: the positions and names of float arguments that are known to
    change from call to call."""

    def __init__(self, args: Any, kwargs: Any, changing: Container[Any] = ()) -> None:
        #: The tensors among the arguments, each once, in order; those of the CPU as they were given.
        self.tensors: list[torch.Tensor] = []
        #: The containers and objects that were taken apart.
        self.opened: list[Any] = []
        #: The objects that could not be taken apart, and why.
        self.opaque: list[tuple[Any, str]] = []
        #: Why the call can be neither captured nor replayed; empty where it can.
        self.obstacle = ""
        #: Positions among the tensors, and numbers of the containers and objects, by identity: the key says where one
        #: is met again.
        self._places: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._key: list[Any] = []
        #: How many objects around the present one are being taken apart.
        self._depth = 0
        #: Arguments that are plain values, and float arguments that change (`changing`), by position or name.
        self.plain: dict[Any, Any] = {}
        self.numbers: dict[Any, float] = {}
        #: The first of these that is the same object, for each: code may compare them by identity.
        self._first: dict[Any, Any] = {}
        #: Floats by identity, numbered: code may compare these, too.
        self._floats: dict[int, int] = {}
        # The key says of each part where it ends: how many members and attributes there are stands before them.
        self._key += [len(args), len(kwargs)]
        for i, x in enumerate(args):
            self._add_argument(i, x, i in changing)
        for name, x in kwargs.items():
            self._key.append(name)
            self._add_argument(name, x, name in changing)

    @property
    def objects(self) -> list[Any]:
        """The objects that belong to the caller, and are mostly other ones at each call."""
        return [*self.opened, *self.tensors]

    @property
    def key(self) -> tuple[Any, ...]:
        """The key: equal for calls that one capture may serve."""
        return tuple(self._key)

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The inputs: the tensors that are on the device, and copies of those on the CPU."""
        return tuple([x if x.device.type == "ltc" else x.to("ltc") for x in self.tensors])

    def with_lent(self, args: Any, kwargs: Any, lent: dict[Any, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments with the traced numbers in `lent` in the places of those that change; one for
        all that are the same object."""
        given = [lent[self._first[i]] if i in self._first else x for i, x in enumerate(args)]
        return given, {name: lent[self._first[name]] if name in self._first else x for name, x in kwargs.items()}

    def is_like(self, other: "Arguments") -> bool:
        """Whether both hold the same tensors in the same places, beside equal values."""
        mine, others = self.tensors, other.tensors
        return self.key == other.key and len(mine) == len(others) and all(x is y for x, y in zip(mine, others))

    def _add_argument(self, name: Any, x: Any, changes: bool) -> None:
        if changes and type(x) is float:
            self.numbers[name] = x
            self._first[name] = next(other for other, y in self.numbers.items() if y is x)
            self._key += [_CHANGES, self._first[name]]
            return
        if type(x) in PLAIN:
            self.plain[name] = x
        self._add(x)

    def _add(self, x: Any) -> None:
        kind = type(x)
        key = self._key
        if kind is float and id(x) in self._floats:
            key.append(("same", self._floats[id(x)]))
        elif kind in PLAIN:
            key.append(by_value(x))
            if kind is float:
                self._floats[id(x)] = len(self._floats)
        elif is_tensor(x):
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
            # This marks the names that follow as attributes: an argument's name looks the same.
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
        elif not x.is_contiguous() or x.is_inference() or x.is_conj() or x.is_neg():
            # The copy on the device need not be so, and the step may ask for it, or make a view where there is one.
            self._key.append(("is", x.stride(), x.is_inference(), x.is_conj(), x.is_neg()))

    def _members(self, x: Any) -> None:
        base = base_of(x)
        self._key.append(base.__len__(x))
        if not isinstance(x, dict):
            for y in base.__iter__(x):
                self._add(y)
            return
        for name, y in base.items(x):
            self._add(name)
            self._add(y)

    def _object(self, x: Any, kind: type) -> None:
        """Takes an object apart, or adds its identity to the key if that cannot be done. An object that holds one that
        cannot be taken apart counts by identity as a whole."""
        lengths = [len(part) for part in (self.tensors, self.opened, self._key)]
        seen, places, obstacle, floats = dict(self._seen), dict(self._places), self.obstacle, dict(self._floats)
        self._depth += 1
        try:
            self._open(x, kind)
        except _Opaque as why:
            if self._depth > 1:
                raise
            for part, length in zip((self.tensors, self.opened, self._key), lengths):
                del part[length:]
            self._seen, self._places, self.obstacle, self._floats = seen, places, obstacle, floats
            self.opaque.append((x, str(why)))
            self._key.append(_ByIdentity(x))
        finally:
            self._depth -= 1

    def _open(self, x: Any, kind: type) -> None:
        space = namespace(x)
        is_container = issubclass(kind, (dict, *_SEQUENCES))
        slots = _in_slots(x, kind)
        if issubclass(kind, _BY_IDENTITY) or callable(x) or not is_open(cast(Any, kind)):
            raise _Opaque(f"a {kind.__module__}.{kind.__qualname__} cannot be taken apart")
        of_c = [base for base in kind.__mro__ if not is_of_python(base)]
        bare = next((take for base, take in _BARE.items() if base in of_c), None)
        shown = all(base in _SHOWN or base in _BARE for base in of_c)
        if not shown or (space is None and not slots and not is_container and bare is None):
            raise _Opaque(f"a {kind.__module__}.{kind.__qualname__} shows nothing that it holds")
        self._enter(x, kind)
        if bare is not None:
            self._key.append(by_value(bare(x)))
        if issubclass(kind, deque):
            self._key.append(x.maxlen)
        if issubclass(kind, defaultdict):
            self._key.append(_ByIdentity(x.default_factory))
        if is_container:
            self._members(x)
        self._key.append(("attributes", len(space or ()), len(slots)))
        if space or slots:
            self.opened += [space] if space else []
            for name, y in (*(space or {}).items(), *slots):
                self._key.append(name)
                try:
                    self._add(y)
                except _Opaque as why:
                    raise _Opaque(f"{kind.__qualname__}.{name}: {why}") from None
