"""What a recorded call of a step read (:class:`Reads`), and captures that a later one may confirm.

When a call has been recorded under survey, the places and tensors that it read become the guard of its capture: an
`_ltc.Watch`, which compares them with what was there, at each later call, in Rust. A :class:`Reads` is this watch with
what else Python has to know: the places by name, for messages, and which of them may hold other values, since replays
read these anew (changing numbers) or take them as inputs (tensors that calls leave in places).
"""

import functools
import gc
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from torch_ltc import _ltc
from torch_ltc._changing_numbers import ChangingNumbers, floats
from torch_ltc._history import Backward, DoubleBackward
from torch_ltc._host_program import HostProgram
from torch_ltc._known import ATOMS, HOLDERS, LOCKS, WRAPPERS
from torch_ltc._left_places import FoundValue
from torch_ltc._places import Place
from torch_ltc._results import ReturnSpec
from torch_ltc._runtime import is_leaf, on_device
from torch_ltc._survey import Survey

if TYPE_CHECKING:
    from torch_ltc._run import Run

#: Classes of objects that need no identity as arguments: they are compared by value, or are code.
_NO_ARGUMENTS = frozenset(
    (
        *(
            *ATOMS,
            *HOLDERS,
            *WRAPPERS,
            *LOCKS,
            types.TracebackType,
            types.GetSetDescriptorType,
            types.MethodDescriptorType,
        ),
        *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CellType),
    )
)
#: Classes of objects that never come to hold something else.
_FIXED = (tuple, frozenset, types.MethodType, functools.partial, staticmethod, classmethod, slice)


class EarlierCapture:
    """A capture that a later one of the same step confirms: two equal captures make a replay safe. `step` is its number
    in `_ltc.Replays` (0 where the call was observed but not captured), and `attempts` counts the captures before it
    that were not confirmed."""

    def __init__(
        self, reads: "Reads", step: int, program: HostProgram | None, attempts: int, run: "Run | None" = None
    ) -> None:
        self.reads, self.step, self.program, self.attempts = reads, step, program, attempts
        #: The places in which it leaves something, to compare with those of the next capture.
        self.left_places = (
            run.return_spec.left_places if run is not None and run.return_spec is not None else reads.left_places
        )
        #: What it returns; `None` where that is not known.
        self.return_spec = run.return_spec if run is not None else reads.return_spec
        #: The places, as `(id(dict), key)`, of the numbers that were lent to it.
        self.lent_keys = run.lent_keys if run is not None else reads.changing_keys

    def gives_otherwise(self, run: "Run") -> str:
        """Whether a later call left or returned something else, in words; empty where it gave the same, but for the
        values of tensors and of numbers that replays compute or read."""
        now = run.return_spec
        if now is not None and self.left_places != now.left_places:
            return "it leaves tensors in other places at each call"
        is_other = now is not None and self.return_spec is not None and not now.is_same_as(self.return_spec)
        return "it returns something else at each call" if is_other else ""


class Reads:
    """What one call read, watched: the guard of its capture. `numbers` are the names of its floating-point arguments
    that change."""

    def __init__(
        self,
        survey: Survey,
        changing: ChangingNumbers,
        found_values: list[FoundValue],
        double_backward: DoubleBackward,
        numbers: Iterable[Any],
    ) -> None:
        places, tensors = survey.places()
        self.double_backward = double_backward
        # Besides what the step read, the watch has its changing arguments, and whether double backward was noted.
        places += [Place("entry", changing.arguments, name, None) for name in numbers]
        places.append(Place("entry", double_backward.place, "found", None))
        self.places: list[Place] = places
        for holder, name in _learning_rates(places):
            changing.add(holder, name)
        known = {(id(p.holder), p.name): i for i, p in enumerate(places) if p.kind == "entry"}
        whole = {id(p.holder) for p in places if p.kind == "dict"}
        self._known = known.keys() | whole
        # Where a dict is read as a whole, the entries that may hold other tensors or numbers at each call become places
        # of their own, so that the watch accepts these.
        named = {(id(p.holder), p.name) for p in places if p.kind == "left"}
        for found in found_values:
            if found.key not in named and found.key[0] in whole:
                places.append(Place("left", found.holder, found.name, None))
        # Numbers that may be lent: the index of the place, the dict and the key.
        lendable = []
        for key, (holder, name) in changing.places.items():
            if key not in known and key[0] in whole:
                known[key] = len(places)
                places.append(Place("entry", holder, name, None))
            if key in known and changing.can_lend(holder, name):
                lendable.append((known[key], holder, name))
        self.watch = _ltc.Watch(places, tensors, survey.uses_grads)
        for index, _, _ in lendable:
            self.watch.free(index)
        #: Settings of optimisers that are floats or tuples of floats, as they were; by parameter group.
        self.settings = [
            (p.holder, {name: x for name, x in p.holder.items() if floats(x)})
            for p in places
            if p.kind == "dict" and "params" in p.holder
        ]
        #: The places, as `(id(dict), key)`, in which the watch accepts any number: replays read it. Captures that this
        #: guards must have read it, too, and not as a constant.
        self.changing_keys = frozenset((id(holder), name) for _, holder, name in lendable)
        self.uses_grads, self.sets_modes = survey.uses_grads, survey.sets_modes
        # The rest is of the capture that this guards, once that is confirmed.
        #: The places in which it leaves something, to compare.
        self.left_places: list[Any] = []
        #: What it returns.
        self.return_spec: ReturnSpec | None = None
        #: Identities of the watched objects that a call may also be given as arguments: such a call has another key.
        self.ids: set[int] = set()
        #: The backward pass through results of its replays.
        self.backward: Backward | None = None
        #: The places of the numbers that were lent to it, as ``(dict, key)``.
        self.lent_places: list[tuple[dict[Any, Any], Any]] = []
        #: What its replays do on the host.
        self.program: HostProgram | None = None

    @functools.cached_property
    def _place_keys(self) -> dict[tuple[str, int, Any], Place]:
        """The places, by what makes two of them the same."""
        return dict(zip(map(_place_key, self.places), self.places, strict=True))

    def first_unwatched(self, other: "Reads") -> str:
        """The first place that `other` read and that is not watched here, in words; empty where all are watched."""
        mine = self._place_keys
        for key, place in other._place_keys.items():
            if key not in mine and not (place.kind == "entry" and id(place.holder) in self._known):
                return str(place)
        tensors = set(map(id, self.watch.tensors()))
        if not tensors.issuperset(map(id, other.watch.tensors())):
            return "other tensors"
        if self.sets_modes != other.sets_modes:
            return "modes of modules, which its own calls set"
        return "" if self.uses_grads == other.uses_grads else "other gradients"

    def where_is(self, x: torch.Tensor) -> str:
        """Where the step finds a tensor, in words: a watched place that holds it, or else its shape."""
        for place in self.places:
            held: Any = ()
            if place.kind in ("entry", "left", "renewed"):
                held = (place.holder.get(place.name),)
            elif place.kind in ("dict", "members"):
                held = place.holder.values() if place.kind == "dict" else place.holder
            elif place.kind == "cell":
                held = gc.get_referents(place.holder)
            if any(y is x for y in held):
                return str(place)
        return f"of shape {list(x.shape)}"

    def is_as_known_to(self, other: "Reads") -> bool:
        """Whether the captures of both were made with the same knowledge of what the step changes, so that one more
        call can be compared with both."""
        places, others = ([(id(holder), name) for holder, name in x.lent_places] for x in (self, other))
        return places == others and self.sets_modes == other.sets_modes

    def to_lend(self, changing: ChangingNumbers) -> list[tuple[dict[Any, Any], Any]]:
        """The places among those read here that hold numbers which change and can be lent, as ``(dict, key)``; but for
        arguments, which each call has its own of."""
        read = [slot for key, slot in changing.places.items() if key in self._known or key[0] in self._known]
        read = [slot for slot in read if slot[0] is not changing.arguments]
        return [(holder, name) for holder, name in read if changing.can_lend(holder, name)]

    def known(self) -> set[int]:
        """The identities of all watched objects that could also be arguments of a call: those that the watch holds, and
        what tuples and other containers among them hold that never change."""
        found: set[int] = set()
        ahead = gc.get_referents(self.watch)
        while ahead:
            x = ahead.pop()
            if type(x) not in _NO_ARGUMENTS and id(x) not in found:
                found.add(id(x))
                if type(x) in _FIXED:
                    ahead += gc.get_referents(x)
        return found

    def leaves(self) -> list[torch.Tensor]:
        """The leaves whose gradients the step may read or set, also those that require none when it begins; none where
        it does not touch gradients."""
        if not self.uses_grads:
            return []
        return [t for t in self.watch.tensors() if on_device(t) and is_leaf(t)]


def _place_key(place: Place) -> tuple[str, int, Any]:
    """What makes two places the same, whoever reads them."""
    return place.kind, id(place.holder), id(place.name) if place.kind == "slot" else place.name


def _learning_rates(places: list[Place]) -> Iterator[tuple[dict[Any, Any], str]]:
    """The learning rates of parameter groups that were read as a whole: schedules change them."""
    for place in places:
        if place.kind == "dict" and "params" in place.holder and type(place.holder.get("lr")) is float:
            yield place.holder, "lr"
