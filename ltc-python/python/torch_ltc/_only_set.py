"""Places that a step sets and never reads (``self.out = {"loss": loss}``): whatever it puts there is one more result.

Nothing follows from what such a place holds, so it is neither watched nor an input, and it may come to hold what could
be neither: a dict of tensors, numbers that are read off the device. Code shows that it only sets a name
(:attr:`torch_ltc._names.CodeNames.only_set`); that all code which the step runs does so shows when it has ended.
"""

import types
from typing import Any

from torch_ltc._left_places import MISSING, is_plain_holder
from torch_ltc._traced import TracedFloat, TracedInt


class OnlySet:
    """The places that some code of a step sets and does not read. A place is a dict and a key."""

    def __init__(self) -> None:
        #: What the step found in each place, and the code that sets it, by `(id(dict), key)`.
        self._found: dict[tuple[int, Any], tuple[dict[Any, Any], Any, list[types.CodeType]]] = {}
        #: Places in which the captures leave something with which this call is compared: it may have put the same there
        #: again.
        self.left_before: frozenset[tuple[int, Any]] = frozenset()
        #: The places in which the step has put another object, once it has ended.
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}

    def note(self, holder: dict[Any, Any], name: Any, reader: types.CodeType) -> bool:
        """Notes a place that code sets. Returns false for one that holds a traced number, which is put there by other
        means, and for one in a dict with methods of the program's own."""
        value = dict.get(holder, name, MISSING)
        if type(value) in (TracedFloat, TracedInt) or not is_plain_holder(type(holder)):
            return False
        self._found.setdefault((id(holder), name), (holder, value, []))[2].append(reader)
        return True

    def settle(self, read: set[tuple[int, Any]], whole: set[int]) -> list[tuple[dict[Any, Any], Any, types.CodeType]]:
        """Finds out where the step has put another object, and returns the places to watch, with the code that sets
        them. In a place that holds the same object as before, the step may have put that again, or nothing. `read` are
        places that other code reads, and `whole` the identities of dicts that it reads as a whole."""
        unsure = []
        for key, (holder, before, readers) in self._found.items():
            now = dict.get(holder, key[1], MISSING)
            if key in read or key[0] in whole:
                continue
            if now is not before or key in self.left_before:
                self.places[key] = (holder, key[1])
            elif now is not MISSING:
                unsure += [(holder, key[1], reader) for reader in readers]
        self._found = {}
        self.places = dict(sorted(self.places.items(), key=lambda item: (item[0][0], repr(item[0][1]))))
        return unsure

    def close(self) -> None:
        """Lets go of all places."""
        self._found, self.places = {}, {}
