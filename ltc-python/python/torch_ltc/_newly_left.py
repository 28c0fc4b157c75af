"""The places that a recorded call of a step left otherwise than it found them: which of them replays can leave so,
too."""

import gc
import types
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, TypeAlias

from torch_ltc import _ltc
from torch_ltc._left import MISSING, TensorPlaces
from torch_ltc._names import PLAIN, by_value
from torch_ltc._places import Place
from torch_ltc._reads import Reads
from torch_ltc._survey import Survey
from torch_ltc._traced import plain

if TYPE_CHECKING:
    from torch_ltc._step import CompiledStep

#: Places of dicts, by holder and name.
Entries: TypeAlias = list[tuple[dict[Any, Any], Any]]
#: Containers of which steps may make new ones each time.
RENEWED = (dict, OrderedDict, defaultdict, list, set, deque)


class ChangedPlaces:
    """Places that are not as they were; those where the step put one tensor in place of another come apart, and so do
    those where it put one number in place of another that can be lent to it."""

    def __init__(self, owner: "CompiledStep[..., Any]", survey: Survey, reads: Reads) -> None:
        self._owner, self._survey = owner, survey
        self._tensors: Entries = []
        self._numbers: Entries = []
        self._rest: list[Place] = []
        for index in reads.watch.changes():
            place, watch = reads.places[index], reads.watch
            pairs = watch.expected_pairs(index) if place.kind == "dict" else [(place.name, watch.expected(index))]
            if place.kind == "entry" or (place.kind == "dict" and [n for n, _ in pairs] == [*place.holder]):
                found = [self._kind_of(place.holder, n, before) for n, before in pairs]
                if any(found) and None not in found:
                    self._tensors += [(place.holder, n) for (n, _), kind in zip(pairs, found) if kind == "tensor"]
                    self._numbers += [(place.holder, n) for (n, _), kind in zip(pairs, found) if kind == "number"]
                    continue
            self._rest.append(place)

    @property
    def is_new(self) -> bool:
        """Whether there are places that the step was not known to leave something in."""
        return bool(self._tensors or self._numbers)

    @property
    def sets_modes(self) -> bool:
        """Whether the mode of a module is another, which `train()` and `eval()` set."""
        return any(p.kind == "entry" and p.name == "training" and "_modules" in p.holder for p in self._rest)

    def learn(self) -> None:
        """From here on these are places in which the step leaves something."""
        changing = self._owner._changing
        self._owner._tensor_places.add(self._tensors)
        for holder, name in self._numbers:
            # What is divided by a number has to remember, too, also where it did not change yet.
            for at in (name, *self._survey.divided_by(holder, name)):
                (changing.add_count if type(plain(holder.get(at))) is int else changing.add)(holder, at)

    def _kind_of(self, holder: dict[Any, Any], name: Any, before: Any) -> str | None:
        """What the step put in the place of something: nothing, a tensor in the place of one, a number in the place of
        one that can be lent; `None` where it is anything else."""
        key, put, owner = (id(holder), name), holder.get(name, MISSING), self._owner
        now = plain(put)
        # A number that remembers is another one with the next call, whatever it is now.
        is_same = now is put and isinstance(now, PLAIN) and by_value(now) == by_value(before)
        if put is before or key in owner._tensor_places.places or is_same:
            return ""
        if TensorPlaces.accepts(before) and TensorPlaces.accepts(now):
            return "tensor"
        both = {type(before), type(now)}
        counts = both == {int} and not owner._changing.is_uncounted(holder, name)
        # What is to remember beside it is known with the next call.
        is_counted = counts and self._survey.only_counts(holder, name, lambda *_: True)
        return "number" if both == {float} or is_counted else None

    def unexplained(self, old_containers: dict[tuple[int, Any], Any], moved_settings: Entries) -> list[Place] | None:
        """What of the other places is not that the step puts a new container in the place of one of the `old`, or of
        what is in it, which nobody else holds, nor a setting that a schedule `moved`; `None` where nothing is, but is
        known only now."""
        known, gone = {}, {id(holder) for holder, _ in moved_settings}
        for place in self._rest:
            key = (id(place.holder), place.name)
            if place.kind == "entry" and key in old_containers and type(place.holder.get(place.name)) in RENEWED:
                if _is_held(old_containers, key):
                    return [place]
                known[key] = (place.holder, place.name)
                gone.add(id(old_containers[key]))
        rest = [p for p in self._rest if (id(p.holder), p.name) not in known and id(p.holder) not in gone]
        if rest or not (known or moved_settings):
            return rest
        self._owner._renewed.update(known)
        return None


def _is_held(old_containers: dict[tuple[int, Any], Any], key: tuple[int, Any]) -> bool:
    """Whether the program still holds a container that the step has put another one in place of."""
    ours = (Place, _ltc.Watch, types.FrameType)
    return any(type(x) not in ours and x is not old_containers for x in gc.get_referrers(old_containers[key]))
