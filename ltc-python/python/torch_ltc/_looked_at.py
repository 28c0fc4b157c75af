"""What a survey has looked at, so that what changes while the step runs is looked at again.

A function may put an object where its caller finds it, and the caller may take it away before it ends. So whenever code
goes on, what it can reach has to be as it was when it was looked at, or is looked at again. To compare everything each
time would take far too long. The instructions of the code that ran tell under which names anything may have been put
(:attr:`torch_ltc._names.CodeNames.writes`), and only that is compared: these attributes of all objects, and the members
of containers. Objects that the step made are not remembered, since they are not to outlive what the program drops: an
older object that holds one is looked at each time.

One dict may be written to in two ways, by names and by keys: as the namespace of an object and as a container. So what
is put under a name counts for containers that may be namespaces, too, and what is put into containers for namespaces
that code has at hand as dicts.
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch_ltc._known import ATOMS, CONTAINERS, NOTHING, PARTS_OF_ERRORS, PARTS_OF_FUNCTIONS, base_of, lookup
from torch_ltc._names import CodeNames
from torch_ltc._traced import TracedFloat, TracedInt
from torch_ltc._writes import CONTENTS, EVERYTHING, VARIABLES

#: Stand for a plain value, for something that the step made, and for nothing.
_PLAIN, _NEW, _MISSING = object(), object(), object()
#: Under which names something is put that objects of other kinds hold (:attr:`_Of.others`).
_PARTS = frozenset((VARIABLES, "cell_contents", "default_factory", *PARTS_OF_FUNCTIONS, *PARTS_OF_ERRORS))
#: The flag of classes that are not static data of C code (`Py_TPFLAGS_HEAPTYPE`).
_IS_HEAP_TYPE = 1 << 9
_PLAIN_CLASSES = ATOMS | {TracedFloat, TracedInt}


def _members(x: Any) -> list[Any]:
    """What a container holds."""
    base = base_of(x)
    return [*base.keys(x), *base.values(x)] if isinstance(x, dict) else [*base.__iter__(x)]


def _asked_of(kind: type, info: CodeNames) -> Iterable[str]:
    """The names under which code may find something on a class: of code that computes names, all that the class, or a
    base of it that is written in Python, has."""
    if not info.all_attributes:
        return info.attributes
    return info.attributes.union(*(vars(base) for base in kind.__mro__ if base.__flags__ & _IS_HEAP_TYPE))


class _Of:
    """What was looked at for code that uses some names."""

    def __init__(self) -> None:
        #: Up to which write this is as it was.
        self.checked = 0
        #: The namespaces of objects, by identity; and what they had under the names that the code uses.
        self.spaces: dict[int, dict[str, Any]] = {}
        self.by_name: dict[tuple[int, Any], Any] = {}
        #: Those of the namespaces which the code may read under any name.
        self.wholes: dict[int, dict[str, Any]] = {}
        #: Dicts of which the code takes entries by these keys, by identity; what they had there is in `by_name`, too.
        self.entries: dict[int, tuple[dict[Any, Any], frozenset[Any]]] = {}
        #: Places in which an older dict or slot holds something that the step has made, with what holds them. Another
        #: new object in the same place cannot be told from it, so these are looked at each time.
        self.fresh: dict[tuple[int, Any], Any] = {}
        #: Objects with slots, by identity, and what these held.
        self.slotted: dict[int, Any] = {}
        #: The names of slots among these.
        self.slots: set[str] = set()
        #: Containers, by identity, with the identities of what they held, and with what keeps these from being another
        #: object's: what is older among them.
        self.containers: dict[int, tuple[Any, list[int], list[Any]]] = {}
        #: The identities of dicts among them into which something may be put under a name, too: those with a class of
        #: the program's, and namespaces.
        self.both: set[int] = set()
        #: Classes, by identity; what they have is in `by_name`, too.
        self.kinds: dict[int, type] = {}
        #: Objects of other kinds, which are asked each time, by identity; and those that hold something which the step
        #: has made.
        self.others: dict[int, Any] = {}
        self.holders: dict[int, Any] = {}


class LookedAt:
    """What was looked at for each code, by the serial number of its names, and what was written since."""

    def __init__(self, is_older: Callable[[Any], bool]) -> None:
        self._is_older = is_older
        #: Places, as `(id(dict), key)`, whose values are inputs of the step, and are not looked at.
        self.given_places: frozenset[tuple[int, Any]] = frozenset()
        #: How often anything may have been changed, and when that was last so for each name.
        self.writes = 0
        self._written: dict[str, int] = {}
        self._of: dict[int, _Of] = {}
        #: Identities of the dicts that are namespaces of objects, and of those that were met as values.
        self._spaces: set[int] = set()
        self._dicts: set[int] = set()

    def _kept(self, x: Any) -> Any:
        """What is remembered of a value: plain values lead nowhere, and numbers may be lent ones, which nobody else may
        hold."""
        if x is _MISSING or type(x) in _PLAIN_CLASSES:
            return x if x is _MISSING else _PLAIN
        return x if self._is_older(x) else _NEW

    def note_writes(self, names: frozenset[str]) -> None:
        """Notes that something may have been put under these names."""
        if names:
            self.writes += 1
            self._written.update(dict.fromkeys(names, self.writes))

    def of(self, info: CodeNames) -> _Of:
        """What was looked at for code with these names."""
        found = self._of.get(info.serial)
        if found is None:
            found = self._of[info.serial] = _Of()
            found.checked = self.writes
        return found

    def note_space(self, space: dict[str, Any], info: CodeNames, is_whole: bool = False) -> None:
        """Notes the namespace of an older object. `is_whole`: the code may read it under any name."""
        of = self.of(info)
        if id(space) not in self._spaces:
            self._spaces.add(id(space))
            if id(space) in self._dicts:
                for other in self._of.values():
                    if id(space) in other.containers:
                        other.both.add(id(space))
        if is_whole:
            at, kept = id(space), [*map(self._kept, space.values())]
            of.wholes[at] = space
            of.containers[at] = (space, [*map(id, space), *map(id, space.values())], kept)
            of.by_name.update({(at, name): value for name, value in zip(space, kept)})
            return
        of.spaces[id(space)] = space
        for name in info.attributes.intersection(space) if space else ():
            of.by_name[id(space), name] = self._kept(space[name])

    def note_slot(self, x: Any, name: str, value: Any, info: CodeNames) -> None:
        """Notes what a slot of an older object holds."""
        of = self.of(info)
        of.slotted[id(x)] = x
        of.slots.add(name)
        of.by_name[id(x), name] = self._kept(value)

    def note_container(self, x: Any, info: CodeNames) -> None:
        """Notes an older container."""
        of = self.of(info)
        if isinstance(x, dict):
            self._dicts.add(id(x))
            if type(x) not in CONTAINERS or id(x) in self._spaces:
                of.both.add(id(x))
        members = _members(x)
        of.containers[id(x)] = (x, [*map(id, members)], [*map(self._kept, members)])

    def note_entries(self, x: dict[Any, Any], keys: frozenset[Any], info: CodeNames) -> None:
        """Notes an older dict of which code takes no more than the entries under these keys."""
        of = self.of(info)
        self._dicts.add(id(x))
        known = of.entries.get(id(x), (x, frozenset()))[1]
        of.entries[id(x)] = (x, known | keys)
        of.by_name.update({(id(x), key): self._kept(x.get(key, _MISSING)) for key in keys})

    def note_class(self, kind: type, info: CodeNames) -> None:
        """Notes a class, for its own attributes and those of its objects."""
        of = self.of(info)
        if id(kind) not in of.kinds:
            of.kinds[id(kind)] = kind
            of.by_name.update({(id(kind), name): lookup(kind, name) for name in _asked_of(kind, info)})

    def note_other(self, x: Any, info: CodeNames) -> None:
        """Notes an older object of another kind, which is asked each time."""
        self.of(info).others[id(x)] = x

    def note_holder(self, x: Any, info: CodeNames) -> None:
        """Notes an older object that holds something which the step has made."""
        self.of(info).holders[id(x)] = x

    def changed(self, info: CodeNames) -> tuple[list[Any], list[Any]]:
        """What code with these names may reach by now and could not when it was looked at: objects that are held by
        something that was looked at, and objects that have to be looked at again."""
        of = self._of.get(info.serial)
        if of is None or of.checked == self.writes:
            return [], []
        since, of.checked = of.checked, self.writes
        written = {name for name, when in self._written.items() if when > since}
        anything = EVERYTHING in written
        contents = anything or CONTENTS in written
        found: list[Any] = [*self._made_since(of)]
        changed_classes: dict[int, Any] = {}
        names = info.attributes | of.slots if anything else written
        if not info.all_attributes:  # code that computes names may read what is put under any name
            names = (names & info.attributes) - info.only_set
        for name in names:
            found += self._changed_at(of, name, of.spaces)
            for x in of.slotted.values():
                if (id(x), name) in of.by_name:
                    found += self._changed_in(of, x, name, self._slot(x, name))
        for at, kind in of.kinds.items():
            for name in _asked_of(kind, info) if anything else names:
                if (now := lookup(kind, name)) is not of.by_name.get((at, name), NOTHING):
                    of.by_name[at, name] = now
                    changed_classes[at] = kind
        # What is put into a dict by its keys is put into a namespace where the dict is one, and the other way round.
        if contents and not anything and (both := self._dicts.intersection(of.spaces)):
            spaces = {at: of.spaces[at] for at in both}
            found += [x for name in info.attributes - written for x in self._changed_at(of, name, spaces)]
        for at, (x, keys) in of.entries.items():
            if contents or at in self._spaces:
                found += [y for k in keys for y in self._changed_in(of, x, k, dict.get(x, k, _MISSING))]
        for name in written if of.wholes and not contents else ():
            found += self._changed_at(of, name, of.wholes)
        again = [*changed_classes.values(), *of.holders.values()]
        if contents or not written.isdisjoint(_PARTS):
            again += of.others.values()
        of.holders = {}
        held = (of.containers[at] for at in (of.containers if contents else of.both))
        again += [x for x, before, _ in held if [*map(id, _members(x))] != before]
        return found, again

    def _made_since(self, of: _Of) -> Iterable[Any]:
        """What the step has made and put into places of older objects."""
        for at, x in [*of.fresh.items()]:
            now = dict.get(x, at[1], _MISSING) if isinstance(x, dict) else self._slot(x, at[1])
            if self._kept(now) is _NEW:
                yield now
            else:
                del of.fresh[at]

    def _changed_at(self, of: _Of, name: str, spaces: dict[int, dict[str, Any]]) -> list[Any]:
        """What namespaces of older objects have under a name, where that may be another object than it was."""
        known = of.by_name
        found: list[Any] = []
        for at, space in spaces.items():
            value, before = space.get(name, _MISSING), known.get((at, name), _MISSING)
            if value is not before:  # plain and new values are never what is remembered of them
                found += self._changed_in(of, space, name, value)
        return found

    def _changed_in(self, of: _Of, x: Any, name: Any, value: Any) -> Iterable[Any]:
        """The value that a place holds by now, where it may be another object than it was."""
        at, now = (id(x), name), self._kept(value)
        if now is of.by_name.get(at, _MISSING) and now is not _NEW:
            return
        of.by_name[at] = now
        if at in self.given_places or now is _MISSING:
            return
        if now is _NEW:
            of.fresh[at] = x
        yield value

    @staticmethod
    def _slot(x: Any, name: str) -> Any:
        """What an object holds in a slot."""
        return getattr(x, name, _MISSING)

    def close(self) -> None:
        """Lets go of everything, and of what asks for the age of objects: a survey, which holds this."""
        self._of, self._is_older = {}, lambda _: False
        self._spaces, self._dicts = set(), set()
