"""Numbers that differ from call to call: learning rates, other settings, float arguments, numbers that a step counts.

Such a number must not become a constant of a capture. :class:`ChangingNumbers` knows the places in which a step finds
them. While the step is captured, its numbers are *lent* to it (:class:`LentNumbers`): the places hold traced numbers
(`_traced.py`) instead, which remember what is computed from them, so that the host part of the capture can read the
places and compute the same in each replay. Afterwards the places hold plain numbers again.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch_ltc._left_places import is_plain_holder
from torch_ltc._names import by_value
from torch_ltc._traced import TracedFloat, TracedInt, plain


def floats(x: Any) -> tuple[float, ...]:
    """A setting as floats: `(x,)` of a float, a tuple of floats as it is (Adam's betas), and `()` of anything else."""
    if type(x) is float:
        return (x,)
    return x if type(x) is tuple and all(type(y) is float for y in x) else ()


class ChangingNumbers:
    """The places in which a step finds numbers that differ from call to call. A place is a dict and a key: of an
    attribute, a global, an entry of a parameter group, or (in :attr:`arguments`) of a float argument."""

    #: An argument that is a plain value has a capture for each of its first values. A float that takes more different
    #: values than this counts as changing.
    _MAX_VALUES = 2

    def __init__(self) -> None:
        #: The float arguments that change, by position or name, with the values that the call in progress was given.
        self.arguments: dict[Any, float] = {}
        #: Held while a replay or a capture uses :attr:`arguments`; calls of other threads are recorded meanwhile.
        self.lock = threading.Lock()
        #: The values that plain arguments had so far, by position or name.
        self._values: dict[Any, set[Any]] = {}
        #: The arguments that change but need a capture for each value, and why.
        self.per_value: dict[Any, str] = {}
        #: All places, as `(dict, key)` by `(id(dict), key)`.
        self.places: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: The places of whole numbers with which the step only counts, and of some with which it does something else.
        self._counted: set[tuple[int, Any]] = set()
        self._uncounted: set[tuple[int, Any]] = set()

    def add(self, holder: dict[Any, Any], name: Any) -> None:
        """Notes that the number in this place changes. In a dict with methods of the program's own it is not lent."""
        if not is_plain_holder(type(holder)):
            return
        self.places.setdefault((id(holder), name), (holder, name))

    def add_count(self, holder: dict[Any, Any], name: Any) -> None:
        """Notes that the whole number in this place changes, and that the step only counts with it."""
        self.add(holder, name)
        self._counted.add((id(holder), name))

    def note_arguments(self, values: dict[Any, Any]) -> bool:
        """Notes the plain values that a call was given, by position or name. Returns whether a float among them is
        found to be one that changes."""
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
        """From here on each value of these arguments has a capture of its own: the step does not only compute with
        them."""
        for name in [*names]:
            self.per_value[name] = why
            self.arguments.pop(name, None)
            self.places.pop((id(self.arguments), name), None)

    def why_not_lent(self, fn: Any) -> str:
        """Which argument changes from call to call but needs a capture for each value, and why; empty where none
        does."""
        code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        names = code.co_varnames[hasattr(fn, "__func__") : code.co_argcount] if code is not None else ()
        for name, why in self.per_value.items():
            said = names[name] if type(name) is int and name < len(names) else name
            return f"its argument {said} changes from call to call, and {why}"
        return ""

    def is_uncounted(self, holder: dict[Any, Any], name: Any) -> bool:
        """Whether the step was seen to do something else with the whole number in this place than to count with it."""
        return (id(holder), name) in self._uncounted

    def note_uncounted(self, holder: dict[Any, Any], name: Any) -> None:
        """Notes that the step does not only count with the whole number in this place."""
        self._counted.discard((id(holder), name))
        self._uncounted.add((id(holder), name))

    def can_lend(self, holder: dict[Any, Any], name: Any) -> bool:
        """Whether what stands in a place now can be lent to the step."""
        x = holder.get(name)
        return (id(holder), name) in self._counted if type(x) is int else bool(floats(x))


class LentNumbers:
    """The numbers that are lent to one call; their places as `(dict, key)`. `arguments`: the dict in which those are
    that are arguments of the step."""

    def __init__(self, slots: Iterable[tuple[dict[Any, Any], Any]], arguments: dict[Any, float] | None = None) -> None:
        self._slots, self._arguments = list(slots), arguments
        #: What is lent at the moment: dict, key, the plain number (or tuple), and what stands there instead.
        self._out: list[tuple[dict[Any, Any], Any, Any, Any]] = []
        #: Reference counts of what is lent, by identity, as long as the step does not hold it: a higher count later
        #: shows that it does. They are taken in a loop like those that compare them.
        self._held: dict[int, int] = {}

    def lend(self, trace: Callable[[dict[Any, Any], Any], Any]) -> None:
        """Puts a traced number in each place, made by ``trace`` of the dict and the key."""
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
        """Puts the plain numbers back. Where the step has put another number, that stays, made plain, and ``puts`` (a
        function of dict, key and number) tells replays to put it there, too; it answers whether they can. Returns what
        the step changed that no replay would change, in words, or an empty string."""
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
        """The reference count that a number has by being lent alone, by its identity; 0 for one that is not lent."""
        return self._held.get(number, 0)

    def names(self) -> Iterator[Any]:
        """The keys of the places in which something is lent at the moment."""
        return (name for _, name, *_ in self._out)

    def arguments(self) -> set[int]:
        """The identities of the numbers that are lent in the place of arguments of the step."""
        return {id(traced) for holder, _, _, traced in self._out if holder is self._arguments}

    def were(self) -> dict[int, Any]:
        """The numbers that stood in the place of those that are lent at the moment, by the identity of these."""
        return {id(traced): was for _, _, was, traced in self._out}

    def numbers(self) -> Iterator[TracedFloat | TracedInt]:
        """All traced numbers that are lent at the moment."""
        for *_, traced in self._out:
            yield from (
                x for x in (traced if type(traced) is tuple else (traced,)) if type(x) in (TracedFloat, TracedInt)
            )

    def taken_from_tuples(self) -> Iterator[TracedFloat]:
        """The members of lent tuples that the step holds as tuples: C code may read them without a trace."""
        for *_, traced in self._out:
            if type(traced) is tuple and sys.getrefcount(traced) > self._held[id(traced)]:
                yield from (x for x in traced if type(x) is TracedFloat)
