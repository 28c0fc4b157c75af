"""Which code of a step reads each place, and what that shows of how numbers in places are used.

A place is a dict and a key. That code does no more than count with a number can be read from its instructions
(`_counters.py`); that *all* code does so can be said only with all of the code that reads the place at hand.
"""

import types
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._counters import counts, only_adds

#: Torch's own code that sets attributes of modules. It does nothing with what it finds there.
_SETS = frozenset((torch.nn.Module.__setattr__.__code__,))


class Readers:
    """The code that reads entries of dicts."""

    def __init__(self) -> None:
        #: The code that reads each entry, by `(id(dict), key)`; `None` where that is not known.
        self._codes: dict[tuple[int, Any], set[types.CodeType | None]] = {}
        #: Identities of the dicts that are read as a whole.
        self.whole: set[int] = set()

    def note(self, holder: Any, name: Any, reader: types.CodeType | None) -> None:
        """Notes that code reads an entry; `None` for code that does not show what becomes of it."""
        self._codes.setdefault((id(holder), name), set()).add(reader)

    def only_counts(self, holder: Any, name: Any, remembers: Callable[[int, Any], bool]) -> bool:
        """Whether all code that reads an entry of a dict does no more than count with it. `remembers`: whether the
        number in a place, given as `id(dict)` and key, is traced, too, as numbers that are divided by it have to be."""
        for reader in self.of(holder, name):
            divided = counts(reader, name) if reader is not None else None
            if divided is None or not all(remembers(id(holder), n) and self._only_adds(holder, n) for n in divided):
                return False
        return id(holder) not in self.whole and bool(self.of(holder, name))

    def divided_by(self, holder: Any, name: Any) -> frozenset[str]:
        """The keys of entries in the same dict that code divides by this entry."""
        return frozenset().union(*(counts(r, name) or () for r in self.of(holder, name) if r is not None))

    def _only_adds(self, holder: Any, name: str) -> bool:
        """Whether all code that sets an entry only puts there what it computed from what was there."""
        return all(reader is not None and only_adds(reader, name) for reader in self.of(holder, name))

    def of(self, holder: Any, name: Any) -> set[types.CodeType | None]:
        """The code that reads an entry, and may do something with it."""
        return self._codes.get((id(holder), name), set()) - _SETS
