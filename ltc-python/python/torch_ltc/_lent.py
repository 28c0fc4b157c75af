"""Settings that change from call to call (learning rates, momenta) and numbers that a step counts up, lent to a
captured step: while it runs, their places hold numbers that remember what becomes of them."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch_ltc._names import by_value
from torch_ltc._traced import TracedFloat, TracedInt, plain


def floats(x: Any) -> tuple[float, ...]:
    """The floats that a setting is: itself, or the members of a tuple; none where it is anything else."""
    if type(x) is float:
        return (x,)
    return x if type(x) is tuple and all(type(y) is float for y in x) else ()


class ChangingNumbers:
    """The numbers of a step that change from call to call, by dict and key."""

    #: Different values of a float among the arguments that are told apart by captures of their own; one that has more
    #: of them changes.
    _MAX_VALUES = 2

    def __init__(self) -> None:
        #: Floats among the arguments that change, by position or name, as the call in progress is given them.
        self.arguments: dict[Any, float] = {}
        #: Held while replays and captures find them there: calls of other threads are recorded meanwhile.
        self.lock = threading.Lock()
        #: The first values of plain arguments; those which change and are told apart all the same, and why.
        self._values: dict[Any, set[Any]] = {}
        self.per_value: dict[Any, str] = {}
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: Where whole numbers stand that the step only counts with, and where some that it does not only count with.
        self._counted: set[tuple[int, Any]] = set()
        self._uncounted: set[tuple[int, Any]] = set()

    def add(self, holder: dict[Any, Any], name: Any) -> None:
        """The number in this place changes."""
        self.places.setdefault((id(holder), name), (holder, name))

    def add_count(self, holder: dict[Any, Any], name: Any) -> None:
        """The whole number in this place changes, and the step only counts with it."""
        self.add(holder, name)
        self._counted.add((id(holder), name))

    def note_arguments(self, values: dict[Any, Any]) -> bool:
        """Takes down the plain arguments of a call by position or name; whether more of them are known to be floats
        that change now."""
        found = False
        for name, x in values.items():
            seen = self._values.setdefault(name, set())
            if name in self.arguments or name in self.per_value:
                continue
            seen.add(by_value(x))
            if len(seen) > self._MAX_VALUES:
                if type(x) is float:
                    self.arguments[name] = x
                    self.add(self.arguments, name)
                    found = True
                else:
                    self.per_value[name] = (
                        f"there is a capture for each {type(x).__name__}: hand in a float or a tensor"
                    )
        return found

    def tell_apart(self, names: Iterable[Any], why: str) -> None:
        """The step does not only compute with these arguments: each value of theirs is another step's from here on."""
        for name in [*names]:
            self.per_value[name] = why
            self.arguments.pop(name, None)
            self.places.pop((id(self.arguments), name), None)

    def why_not_lent(self, fn: Any) -> str:
        """Which arguments of a step change from call to call so that each has to be captured by itself, in words."""
        code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        names = code.co_varnames[hasattr(fn, "__func__") : code.co_argcount] if code is not None else ()
        for name, why in self.per_value.items():
            said = names[name] if type(name) is int and name < len(names) else name
            return f"its argument {said} changes from call to call, and {why}"
        return ""

    def is_uncounted(self, holder: dict[Any, Any], name: Any) -> bool:
        """Whether the step was seen to do something else with a whole number than to count with it."""
        return (id(holder), name) in self._uncounted

    def note_uncounted(self, holder: dict[Any, Any], name: Any) -> None:
        """The step does not only count with the whole number in this place."""
        self._counted.discard((id(holder), name))
        self._uncounted.add((id(holder), name))

    def can_lend(self, holder: dict[Any, Any], name: Any) -> bool:
        """Whether what stands in a place can be lent."""
        x = holder.get(name)
        return (id(holder), name) in self._counted if type(x) is int else bool(floats(x))


class LentNumbers:
    """Settings by dict and key."""

    def __init__(self, slots: Iterable[tuple[dict[Any, Any], Any]]) -> None:
        self._slots = list(slots)
        self._out: list[tuple[dict[Any, Any], Any, Any, Any]] = []
        #: How often what is lent is held where nobody else holds it, as seen from the loops below.
        self._held: dict[int, int] = {}

    def lend(self, trace: Callable[[dict[Any, Any], Any], Any]) -> None:
        """From here on, what ``trace`` gives for a place stands there."""
        for holder, name in self._slots:
            if type(holder.get(name)) is int or floats(holder.get(name)):
                traced = trace(holder, name)
                self._out.append((holder, name, holder[name], traced))
                holder[name] = traced
                del traced
        for *_, traced in self._out:
            self._held[id(traced)] = sys.getrefcount(traced)
            if type(traced) is tuple:
                for number in traced:
                    self._held[id(number)] = sys.getrefcount(number)

    def take_back(self, puts: Callable[[dict[Any, Any], Any, Any], bool]) -> str:
        """The numbers are plain ones again, and so is what the step put in place of one, which a replay puts there, too
        (``puts`` says so); what the step did to one that no replay would do, or nothing."""
        why = ""
        for holder, name, was, traced in self._out:
            now = holder.get(name)
            if now is traced:
                holder[name] = was
                continue
            if not why and not puts(holder, name, now):
                what = "the learning rate" if name == "lr" else name
                why = f"it changes {what} itself"
            if name in holder:
                holder[name] = tuple(map(plain, now)) if type(now) is tuple else plain(now)
        self._out, self._held = [], {}
        return why

    def held(self, number: int) -> int:
        """How often a number, by its identity, is held where it is lent; 0 for one that is not."""
        return self._held.get(number, 0)

    def numbers(self) -> Iterator[TracedFloat | TracedInt]:
        """All that are lent."""
        for *_, traced in self._out:
            yield from (
                x for x in (traced if type(traced) is tuple else (traced,)) if type(x) in (TracedFloat, TracedInt)
            )

    def taken_from_tuples(self) -> Iterator[TracedFloat]:
        """Those of tuples that somebody has taken as they are: C code may read their members."""
        for *_, traced in self._out:
            if type(traced) is tuple and sys.getrefcount(traced) > self._held[id(traced)]:
                yield from (x for x in traced if type(x) is TracedFloat)
