"""What a survey has looked at, so that what changes while the step runs is looked at again.

A function may put an object where its caller finds it, and the caller may take it away before it ends. So whenever code
goes on, what it can reach has to be as it was when it was looked at, or is looked at again. To compare everything each
time would take far too long. The instructions of the code that ran tell under which names anything may have been put
(:attr:`torch_ltc._names.CodeNames.writes`), and only that is compared: these attributes of all objects, and the members
of containers. Objects that the step made are not remembered, since they are not to outlive what the program drops: an
older object that holds one is looked at each time.
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch_ltc._known import ATOMS, NOTHING, base_of, lookup
from torch_ltc._names import CodeNames
from torch_ltc._traced import TracedFloat, TracedInt
from torch_ltc._writes import CONTENTS, EVERYTHING, VARIABLES

#: Stand for a plain value, for something that the step made, and for nothing.
_PLAIN, _NEW, _MISSING = object(), object(), object()


def _members(x: Any) -> list[Any]:
    """What a container holds."""
    base = base_of(x)
    return [*base.keys(x), *base.values(x)] if isinstance(x, dict) else [*base.__iter__(x)]


class _Of:
    """What was looked at for code that uses some names."""

    def __init__(self) -> None:
        #: Up to which write this is as it was.
        self.checked = 0
        #: The namespaces of objects, by identity; and what they had under the names that the code uses.
        self.spaces: dict[int, dict[str, Any]] = {}
        self.by_name: dict[tuple[int, str], Any] = {}
        #: Objects with slots, by identity, and what these held.
        self.slotted: dict[int, Any] = {}
        #: Containers, by identity, with the identities of what they held, and with what keeps these from being another
        #: object's: what is older among them.
        self.containers: dict[int, tuple[Any, list[int], list[Any]]] = {}
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

    def _kept(self, x: Any) -> Any:
        """What is remembered of a value: plain values lead nowhere, and numbers may be lent ones, which nobody else may
        hold."""
        if x is _MISSING or type(x) in ATOMS or type(x) in (TracedFloat, TracedInt):
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

    def note_space(self, space: dict[str, Any], info: CodeNames) -> None:
        """Notes the namespace of an older object."""
        of = self.of(info)
        of.spaces[id(space)] = space
        for name in info.attributes:
            if name in space:
                of.by_name[id(space), name] = self._kept(space[name])

    def note_slot(self, x: Any, name: str, value: Any, info: CodeNames) -> None:
        """Notes what a slot of an older object holds."""
        of = self.of(info)
        of.slotted[id(x)] = x
        of.by_name[id(x), name] = self._kept(value)

    def note_container(self, x: Any, info: CodeNames) -> None:
        """Notes an older container."""
        members = _members(x)
        self.of(info).containers[id(x)] = (x, [*map(id, members)], [*map(self._kept, members)])

    def note_class(self, kind: type, info: CodeNames) -> None:
        """Notes a class, for its own attributes and those of its objects."""
        of = self.of(info)
        if id(kind) not in of.kinds:
            of.kinds[id(kind)] = kind
            of.by_name.update({(id(kind), name): lookup(kind, name) for name in info.attributes})

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
        written = lambda name: self._written.get(name, 0) > since
        anything = written(EVERYTHING)
        found: list[Any] = []
        changed_classes: dict[int, Any] = {}
        for name in info.attributes:
            if anything or written(name):
                found += self._changed_at(of, name)
                for at, kind in of.kinds.items():
                    if (now := lookup(kind, name)) is not of.by_name.get((at, name), NOTHING):
                        of.by_name[at, name] = now
                        changed_classes[at] = kind
        again = [*changed_classes.values(), *of.holders.values()]
        if anything or written(CONTENTS) or written(VARIABLES):
            again += of.others.values()
        of.holders = {}
        if anything or written(CONTENTS):
            again += [x for x, before, _ in of.containers.values() if [*map(id, _members(x))] != before]
        return found, again

    def _changed_at(self, of: _Of, name: str) -> Iterable[Any]:
        """What older objects have under a name, where that is another object than it was."""
        for at, space in of.spaces.items():
            now = self._kept(space.get(name, _MISSING))
            if now is not of.by_name.get((at, name), _MISSING):
                of.by_name[at, name] = now
                if (at, name) not in self.given_places:
                    yield space.get(name)
        for at, x in of.slotted.items():
            if (at, name) in of.by_name and (now := self._kept(getattr(x, name, _MISSING))) is not of.by_name[at, name]:
                of.by_name[at, name] = now
                yield getattr(x, name, None)

    def close(self) -> None:
        """Lets go of everything, and of what asks for the age of objects: a survey, which holds this."""
        self._of, self._is_older = {}, lambda _: False
