"""What a captured call changed in the places that it reads, and which of these changes a replay can make, too.

A step that changes what it also reads would be captured anew at each call. These kinds of changes do not have to refuse
it: a tensor in the place of a tensor, or one plain value of a few in the place of another (`_left_places.py`), a number
in the place of a number that can be lent (`_changing_numbers.py`), and a new container in the place of one that nobody
else holds. What is learned here is used by the next capture.
"""

import gc
import types
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, TypeAlias

from torch_ltc import _ltc
from torch_ltc._collector import all_shown
from torch_ltc._left_places import MISSING, is_plain_holder
from torch_ltc._names import PLAIN, by_value
from torch_ltc._places import Place
from torch_ltc._reads import Reads
from torch_ltc._survey import Survey
from torch_ltc._traced import plain

if TYPE_CHECKING:
    from torch_ltc._step import CompiledStep

#: Places as `(dict, key)`.
Entries: TypeAlias = list[tuple[dict[Any, Any], Any]]
#: Classes of containers in place of which a step may put a new one at each call.
RENEWED = (dict, OrderedDict, defaultdict, list, set, deque)


class ChangedPlaces:
    """The places of a watch that a call left otherwise than it found them, sorted into those where replays can leave a
    value, those where a number replaced a number that can be lent, and the rest."""

    def __init__(self, owner: "CompiledStep[..., Any]", survey: Survey, reads: Reads) -> None:
        self._owner, self._survey = owner, survey
        self._values: Entries = []
        #: Whether values may be left in places that were asked for already.
        self._asked: dict[tuple[int, Any], bool] = {}
        self._numbers: Entries = []
        self._rest: list[Place] = []
        for index in reads.watch.changes():
            place, watch = reads.places[index], reads.watch
            if place.kind == "entry" and (id(place.holder), place.name) in survey.only_set.places:
                continue
            pairs = watch.expected_pairs(index) if place.kind == "dict" else [(place.name, watch.expected(index))]
            if place.kind == "entry" or (place.kind == "dict" and [n for n, _ in pairs] == [*place.holder]):
                pairs = [(n, before) for n, before in pairs if (id(place.holder), n) not in survey.only_set.places]
                found = [self._kind_of(place.holder, n, before) for n, before in pairs]
                if any(found) and None not in found:
                    self._values += [(place.holder, n) for (n, _), kind in zip(pairs, found) if kind == "value"]
                    self._numbers += [(place.holder, n) for (n, _), kind in zip(pairs, found) if kind == "number"]
                    continue
            self._rest.append(place)

    @property
    def is_new(self) -> bool:
        """Whether the call left something in a place for which that was not known yet."""
        return bool(self._values or self._numbers)

    @property
    def sets_modes(self) -> bool:
        """Whether the call changed the mode of a module, as `train()` and `eval()` do."""
        return any(p.kind == "entry" and p.name == "training" and "_modules" in p.holder for p in self._rest)

    def learn(self) -> None:
        """Has the step's next captures treat these places as those in which it leaves values or changes numbers."""
        changing = self._owner._changing
        self._owner._left_places.add(self._values)
        for holder, name in self._numbers:
            # A plain float that is divided by a traced whole number does not ask that number, so what is divided has to
            # be traced, too, even where it has not changed yet.
            for at in (name, *self._survey.readers.divided_by(holder, name)):
                (changing.add_count if type(plain(holder.get(at))) is int else changing.add)(holder, at)

    def _kind_of(self, holder: dict[Any, Any], name: Any, before: Any) -> str | None:
        """What kind of change the step made to a place that held `before`: "" for none, "value" (a tensor or a plain
        value, which is left there) or "number" for those that replays can make, `None` for any other."""
        key, put, owner = (id(holder), name), dict.get(holder, name, MISSING), self._owner
        now = plain(put)
        # A traced number that the step put there counts as changed even if its value is the same this time.
        is_same = now is put and isinstance(now, PLAIN) and by_value(now) == by_value(before)
        if put is before or key in owner._left_places.places or is_same:
            return ""
        if not is_plain_holder(type(holder)):
            return None
        both = {type(before), type(now)}
        counts = both == {int} and not owner._changing.is_uncounted(holder, name)
        # Which numbers have to be traced beside it, `learn` finds out; so it is not asked for here.
        if both == {float} or (counts and self._survey.readers.only_counts(holder, name, lambda *_: True)):
            return "number"
        if key not in self._asked:
            self._asked[key] = owner._left_places.may_change(holder, name, before, put)
        return "value" if self._asked[key] else None

    def unexplained(self, old_containers: dict[tuple[int, Any], Any], moved_settings: Entries) -> list[Place] | None:
        """The changed places of the rest that no replay could change. A new container may replace one of the
        `old_containers` that nobody else holds, and schedules may have set settings (`moved_settings`). `None` where
        that explains all of the rest, but was not known when the call was made."""
        known, gone = {}, {id(holder) for holder, _ in moved_settings}
        for place in self._rest:
            key = (id(place.holder), place.name)
            if place.kind == "entry" and key in old_containers and type(place.holder.get(place.name)) in RENEWED:
                self._survey.expect_collection()
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
    """Whether somebody outside this package still holds a container that the step has replaced."""
    ours = (Place, _ltc.Watch, types.FrameType)
    with all_shown():
        holders = gc.get_referrers(old_containers[key])
    return any(type(x) not in ours and x is not old_containers for x in holders)
