"""Replaces traced numbers by plain ones wherever a step has put them: in containers, attributes, cells and exceptions.

Traced numbers (`_traced.py`) must not outlive the captured call. The holders of each are found by the garbage collector
(``gc.get_referrers``); tuples cannot be changed, so they are made anew and replaced in turn. What some holders keep
where this does not find it (a slice, a generator) is released instead.
"""

import contextlib
import functools
import gc
import types
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from torch_ltc._collector import all_shown
from torch_ltc._known import namespace
from torch_ltc._traced import TracedFloat, TracedInt, plain

#: How many nested tuples are made anew.
_DEPTH = 16


def put_plain(numbers: Sequence[TracedFloat | TracedInt]) -> None:
    """Puts plain numbers in the places of these."""
    _put(numbers, [plain(number) for number in numbers], [numbers], _DEPTH)


def _put(old: Sequence[Any], new: Sequence[Any], ours: list[Any], depth: int) -> None:
    """Puts each of `new` in the place of each of `old` wherever something holds that, but for `ours`. `depth`: how many
    more tuples around them may be made anew."""
    # All of them at once: each search goes through all objects that there are. There is no nested function here, since
    # its cells would hold the numbers, too.
    if not old:
        return
    ours.append(old)
    unchanging, anew = [], []
    with all_shown():
        holders = gc.get_referrers(*old)
    ours.append(holders)
    for holder in holders:
        if isinstance(holder, types.FrameType) or any(holder is x for x in ours):
            continue
        held = set(map(id, gc.get_referents(holder)))
        at = [i for i in range(len(old)) if id(old[i]) in held]
        if not isinstance(holder, (tuple, frozenset)):
            for i in at:
                _put_in(holder, old[i], new[i])
        elif depth:
            base: Any = tuple if isinstance(holder, tuple) else frozenset
            members = list(base.__iter__(holder))
            for i in at:
                for place in _places(enumerate(members), old[i]):
                    members[place] = new[i]
            unchanging.append(holder)
            anew.append(base.__new__(type(holder), members))
            if space := namespace(holder):
                vars(anew[-1]).update(space)
    _put(unchanging, anew, [*ours, unchanging, anew], depth - 1)


def _places(pairs: Iterable[tuple[Any, Any]], x: Any) -> list[Any]:
    """The names in `pairs` that have `x` as their value."""
    found = []
    for name, y in pairs:
        if y is x:
            found.append(name)
    return found


def _put_in(holder: Any, old: Any, new: Any) -> None:
    """Puts `new` in the place of `old` within one holder, of whatever class that is."""
    if isinstance(holder, dict):
        classes = [x for x in gc.get_referrers(holder) if isinstance(x, type)] if "__module__" in holder else []
        for name in _places(dict.items(holder), old):
            if classes:
                type.__setattr__(classes[0], name, new)  # which also invalidates the interpreter's caches of the class
            else:
                dict.__setitem__(holder, name, new)
        if type(holder) is dict and any(name is old for name in holder):
            pairs = [(new if name is old else name, value) for name, value in holder.items()]
            holder.clear()
            holder.update(pairs)
    elif isinstance(holder, (list, deque)):
        base: Any = list if isinstance(holder, list) else deque
        for at in _places(enumerate(base.__iter__(holder)), old):
            base.__setitem__(holder, at, new)
    elif isinstance(holder, set):
        set.discard(holder, old)
        set.add(holder, new)
    elif isinstance(holder, types.CellType):
        holder.cell_contents = new
    elif isinstance(holder, BaseException):
        holder.args = new if holder.args is old else holder.args
    elif isinstance(holder, functools.partial):
        parts: Any = holder
        parts.__setstate__((parts.func, new if parts.args is old else parts.args, parts.keywords, namespace(parts)))
    elif isinstance(holder, types.FunctionType):
        holder.__defaults__ = new if holder.__defaults__ is old else holder.__defaults__
    else:
        # From Python 3.13 on, attributes lie in the object itself and not in a dict.
        space = namespace(holder)
        if space is not None:
            for name in _places(space.items(), old):
                space[name] = new
        for kind in type(holder).__mro__:
            for slot in vars(kind).values():
                if type(slot) is types.MemberDescriptorType and _get(slot, holder) is old:
                    with contextlib.suppress(AttributeError, TypeError):  # a slot of C code that cannot be set
                        slot.__set__(holder, new)


def _get(slot: Any, holder: Any) -> Any:
    """What a slot of an object holds; `None` where it is empty."""
    try:
        return slot.__get__(holder)
    except (AttributeError, TypeError):
        return None
