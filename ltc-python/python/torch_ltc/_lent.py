"""Settings that change from call to call (learning rates, momenta), lent to a captured step: while it runs, their
places hold numbers that remember what becomes of them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch_ltc._traced import Traced, plain


def floats(x: Any) -> tuple[float, ...]:
    """The floats that a setting is: itself, or the members of a tuple; none where it is anything else."""
    if type(x) is float:
        return (x,)
    return x if type(x) is tuple and all(type(y) is float for y in x) else ()


class Lent:
    """Settings by dict and key."""

    def __init__(self, slots: Iterable[tuple[dict[Any, Any], Any]]) -> None:
        self._slots = list(slots)
        self._out: list[tuple[dict[Any, Any], Any, Any, Any]] = []
        #: How often what is lent is held where nobody else holds it, as seen from the loops below.
        self._held: dict[int, int] = {}

    def lend(self, trace: Callable[[dict[Any, Any], Any], Any]) -> None:
        """From here on, what ``trace`` gives for a place stands there."""
        for holder, name in self._slots:
            if floats(holder.get(name)):
                traced = trace(holder, name)
                self._out.append((holder, name, holder[name], traced))
                holder[name] = traced
                del traced
        for *_, traced in self._out:
            self._held[id(traced)] = sys.getrefcount(traced)
            if type(traced) is tuple:
                for number in traced:
                    self._held[id(number)] = sys.getrefcount(number)

    def take_back(self) -> str:
        """The numbers are plain ones again; what the step did to one that no replay would do, or nothing."""
        why = ""
        for holder, name, was, traced in self._out:
            now = holder.get(name)
            if now is traced:
                holder[name] = was
                continue
            what = "the learning rate" if name == "lr" else name
            why = why or f"it changes {what} itself"
            holder[name] = tuple(map(plain, now)) if type(now) is tuple else plain(now)
        self._out, self._held = [], {}
        return why

    def held(self, number: int) -> int:
        """How often a number, by its identity, is held where it is lent; 0 for one that is not."""
        return self._held.get(number, 0)

    def numbers(self) -> Iterator[Traced]:
        """All that are lent."""
        for *_, traced in self._out:
            yield from (x for x in (traced if type(traced) is tuple else (traced,)) if type(x) is Traced)

    def taken(self) -> Iterator[Traced]:
        """Those of tuples that somebody has taken as they are: C code may read their members."""
        for *_, traced in self._out:
            if type(traced) is tuple and sys.getrefcount(traced) > self._held[id(traced)]:
                yield from (x for x in traced if type(x) is Traced)
