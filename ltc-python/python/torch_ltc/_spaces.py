"""What code reads of a namespace and of what it finds there, so far as its instructions show that.

Of a namespace it reads the entries under the names that it uses, or any entry where it computes names. Of what it finds
under a name it may read less than all: nothing of a list to which it only appends, and of a dict only the entries that
it takes by constant keys. Everything that is read of an older object becomes a place to watch, and is remembered as
looked at, since it may change while the step runs.
"""

import itertools
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from torch_ltc._classes import is_only_used
from torch_ltc._counters import entries_of, only_appends
from torch_ltc._names import CodeNames
from torch_ltc._only_set import OnlySet
from torch_ltc._parts import Parts


class Spaces(Parts):
    """The part of a survey that looks at namespaces."""

    def __init__(self) -> None:
        super().__init__()
        #: Places, as `(id(dict), key)`, in which the step leaves something: what stands there is an input, or a part of
        #: the call's key.
        self.given_places: frozenset[tuple[int, Any]] = frozenset()
        #: Older lists and deques that code only appends to, by identity, with the length of a list, and with the
        #: identities of what was in a deque.
        self._appended: dict[int, tuple[list[Any] | deque[Any], Any]] = {}
        self.only_set = OnlySet()

    def note_only_set(self, holder: dict[Any, Any], name: Any, reader: types.CodeType) -> None:
        """Notes a place that code sets and does not read; see the survey."""
        raise NotImplementedError

    def may_be_older(self, x: Any, is_held: Callable[[], bool]) -> bool:
        """Whether an object was there before the step, or may have been; see the survey."""
        raise NotImplementedError

    def _note_contents(self, kind: str, x: Any, info: CodeNames, code: types.CodeType) -> None:
        """Notes the contents of an older container (or cell, or variable of a context) as a place, and as looked at."""
        self.note_place(kind, x, None, code)
        if kind in ("dict", "members"):
            self.looked_at.note_container(x, info)
        else:
            self.looked_at.note_other(x, info)

    def _attributes(
        self,
        space: dict[str, Any],
        info: CodeNames,
        code: types.CodeType,
        old: bool,
        kind: type | None = None,
        is_whole: bool | None = None,
        names: Iterable[str] | None = None,
    ) -> list[Any]:
        """What a namespace has under the names that the code uses, or under `names`, or under any name if the code
        computes names, unless `is_whole` says otherwise. A name that is missing is watched where the code minds that,
        or where the class `kind` has an answer for it. Nothing else looks at namespaces, so that one which is empty, or
        of an object of a rare kind, counts like others."""
        is_whole = info.all_attributes if is_whole is None else is_whole
        if old:
            self.looked_at.note_space(space, info, is_whole)
        if is_whole:
            if old:
                self.note_place("dict", space, None, code)
            if kind is not None:
                for name in space:
                    self._hides(kind, name, code)
            return self._values(space)
        found: list[Any] = []
        if names is None:
            names = info.attributes if space or kind is not None else info.may_lack | info.stored
        for name in names:
            if old and name in info.only_set:
                self.note_only_set(space, name, code)
                if name in space and kind is not None:
                    self._hides(kind, name, code)
                continue
            if name in space:
                if old:
                    self.note_place("entry", space, name, code)
                if old and name in info.added:  # the code alone does not show what becomes of it
                    self.note_place("entry", space, name)
                if kind is not None:
                    self._hides(kind, name, code)
                if (id(space), name) not in self.given_places and not is_only_used(space[name], name, info):
                    found += self.read_of(space[name], name, info, code, False, lambda: old)
            elif old and (
                name in info.may_lack or name in info.stored or (kind is not None and self._is_asked(kind, name))
            ):
                self.note_place("entry", space, name, code)
        return found

    def read_of(
        self, x: Any, name: str, info: CodeNames, code: types.CodeType, is_variable: bool, is_held: Callable[[], bool]
    ) -> Iterable[Any]:
        """What code may read of an object that it finds under a name. Of a list to which it only appends, nothing; of a
        dict from which it only takes entries by constant keys, these entries; of anything else, the object. `is_held`:
        whether what holds the object under this name is older than the step."""
        if name in info.added and not is_variable:
            return (x,)
        holds = type(x) in (dict, defaultdict) and any(type(y) in (list, deque) for y in x.values())
        methods = only_appends(code, name, is_variable) if holds or type(x) in (list, deque) else frozenset()
        if methods and not holds:
            return self._only_appended(x, methods)
        if methods:
            if self.is_older(x):
                self._note_contents("dict", x, info, code)
                if isinstance(x, defaultdict):
                    self.note_place("slot", x, vars(defaultdict)["default_factory"], code)
            read = [self._only_appended(y, methods) if type(y) in (list, deque) else (y,) for y in x.values()]
            return [*x.keys(), getattr(x, "default_factory", None), *itertools.chain(*read)]
        keys = entries_of(code, name, is_variable) if type(x) is dict else None
        if keys is not None and self.may_be_older(x, is_held):
            self.looked_at.note_entries(x, keys, info)
            for key in keys:
                self.note_place("entry", x, key, code)
            return [x[key] for key in keys if key in x and (id(x), key) not in self.given_places]
        return (x,)

    def _only_appended(self, x: list[Any] | deque[Any], methods: frozenset[str]) -> Iterable[Any]:
        """Notes what is in a list or deque to which code only appends by these methods, if it is older than the step.
        Of what `extend` appends, a bounded deque shows only a part."""
        if not self.is_older(x) or (getattr(x, "maxlen", None) is not None and methods != {"append"}):
            return (x,)
        if id(x) in self.firsts and id(x) not in self._appended and type(x) is deque:
            return (x,)  # what was in it before is not known any more
        before = self.firsts.get(id(x), (x, len(x)))[1]
        self._appended.setdefault(id(x), (x, [*map(id, x)] if type(x) is deque else before))
        return ()

    def appended(self) -> list[tuple[list[Any] | deque[Any], list[Any]]]:
        """The lists and deques to which the step appended, and what it appended."""
        return [(x, new) for x, before in self._appended.values() if (new := self._new_in(x, before))]

    def _new_in(self, x: Any, before: Any) -> list[Any]:
        """What the step appended to a list or deque; `before`: the length of a list, or the identities of what was in a
        deque, from which appending may push out the first."""
        if type(x) is list:
            return x[before:]
        now, most = [*x], x.maxlen
        count = len(now) - len(before) if most is None else self.pushed.get(id(x), 0)
        new = now[max(len(now) - count, 0) :]
        expected = [*before, *map(id, new)]
        is_whole = len(now) == (len(before) + count if most is None else min(len(before) + count, most))
        if not is_whole or [*map(id, now)] != expected[len(expected) - len(now) :]:
            self.refuse("what it appends to a deque is taken out again, by another thread or by code that is not seen")
        return new

    def _values(self, space: dict[Any, Any]) -> list[Any]:
        """The values of a dict, but for those that are inputs of the step."""
        at = id(space)
        return (
            [x for name, x in dict.items(space) if (at, name) not in self.given_places]
            if self.given_places
            else [*dict.values(space)]
        )
