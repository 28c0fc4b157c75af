"""Objects of which the garbage collector does not tell whether they are older than a step.

It does not track what holds no references: numbers, texts, and dicts and tuples of such. An object of this kind that a
step comes across may be its own or an older one, so the survey (`_survey.py`) takes it for older, and decides when the
step has ended: what nobody holds any more, or only what the step made, was made by it.
"""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch_ltc._collector import all_shown, calls_keep_references
from torch_ltc._places import Place

#: The flag of types whose instances may hold references, so that the collector knows them (`Py_TPFLAGS_HAVE_GC`).
_IS_CONTAINER = 1 << 14


class Untracked:
    """The untracked objects that one step came across."""

    def __init__(self) -> None:
        #: They, by identity, while the step runs: until then they cannot go.
        self._objects: dict[int, Any] = {}
        #: Their identities, once the step has ended.
        self._seen: set[int] = set()
        #: Those that something older was seen to hold, and which are older for that.
        self.held: set[int] = set()
        #: Those that were found in something older.
        self._found_in_older: set[int] = set()
        #: Those of which the collector was asked, and told of others that hold them.
        self._held_by_others: set[int] = set()
        #: How often the result of the step holds each object, by identity.
        self._returned = Counter[int]()
        self.is_running = True

    def note(self, x: Any, is_held: bool, is_found_in_older: bool = False) -> None:
        """Notes an object. `is_held`: whether something older is known to hold it."""
        self._objects[id(x)] = x
        if is_held:
            self.held.add(id(x))
        elif is_found_in_older:
            self._found_in_older.add(id(x))

    def end(self) -> None:
        """The step has ended, and no object is kept any more."""
        self.is_running = False
        self._seen, self._objects = set(self._objects), {}

    def note_result(self, result: Any) -> None:
        """Notes how often the result of the step holds each object: one that nobody else holds is the step's own."""
        stack, done = [result], set()
        while stack:
            x = stack.pop()
            if type(x) in (list, tuple, dict) and id(x) not in done:
                done.add(id(x))
                members = x.values() if type(x) is dict else x
                self._returned.update(map(id, members))
                stack += members

    def dropped(
        self, places: Sequence[Place], is_older: Callable[[Any], bool], expect_collection: Callable[[], None]
    ) -> set[int]:
        """The identities of the holders that nothing holds besides these places, or only what the step made."""
        ours = Counter(id(p.holder) for p in places)
        doubtful = {id(p.holder): p.holder for p in places if id(p.holder) in self._seen}
        # Besides the places and the result, `doubtful` holds each, and the call of `getrefcount`.
        dropped = {i for i in doubtful if sys.getrefcount(doubtful[i]) <= ours[i] + self._returned[i] + 2}
        left = {i: x for i, x in doubtful.items() if i not in dropped}
        if not calls_keep_references():
            known = self.held | self._found_in_older | self._held_by_others
            unknown = {i: x for i, x in left.items() if i not in known}
            made = self._held_by_new(unknown, ours, is_older, expect_collection)
            self._held_by_others |= unknown.keys() - made
            return dropped | made
        # After a `torch.compile` that failed, calls keep references to their arguments that no object shows. The
        # collector knows who holds a container; of other objects, who held one during the step is taken to hold it.
        unsure = [x for i, x in left.items() if i not in self.held or type(x).__flags__ & _IS_CONTAINER]
        expect_collection()
        with all_shown():
            others = [y for y in gc.get_referrers(*unsure) if type(y) is not Place]
        shown = {
            id(x)
            for y in others
            if all(y is not mine for mine in (doubtful, left, unsure))
            for x in gc.get_referents(y)
        }
        return dropped | (set(map(id, unsure)) - shown)

    def _held_by_new(
        self,
        doubtful: dict[int, Any],
        ours: Mapping[int, int],
        is_older: Callable[[Any], bool],
        expect_collection: Callable[[], None],
    ) -> set[int]:
        """Those that only objects hold which the step made, and which are still there since they are in a cycle: the
        annotations of a function that names itself are an empty dict."""
        if not doubtful:
            return set()
        expect_collection()
        with all_shown():
            referrers = gc.get_referrers(*doubtful.values())
        # The dicts of this class that hold them are among those.
        made = [y for y in referrers if type(y) is not Place and not is_older(y)]
        held = Counter(id(x) for y in made for x in gc.get_referents(y) if id(x) in doubtful)
        # Besides the places and these, only the call of `getrefcount` holds each.
        return {i for i, n in held.items() if sys.getrefcount(doubtful[i]) <= ours[i] + n + 1}
