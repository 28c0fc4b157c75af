"""What code may change, and which exceptions it looks at, by its instructions and names.

A survey looks again at what may have been changed while a step runs (`_looked_at.py`); nothing tells what an exception
holds that the step catches.
"""

import dis
import itertools
import types

from torch_ltc._effects import disassembled, instructions

#: Stand among the names under which code puts something for members of containers, for variables of functions around
#: it, and for any name.
CONTENTS, VARIABLES, EVERYTHING = "[]", "()", "*"
#: Names of functions and methods that change what a container holds, and of those that set attributes by name.
_WRITERS = frozenset(
    """append appendleft extend extendleft insert pop popleft popitem remove clear update setdefault add discard sort
    reverse rotate move_to_end difference_update intersection_update symmetric_difference_update subtract set reset
    __setitem__ __delitem__ __ior__ __iadd__ __ixor__
    setitem delitem iadd ior ixor iconcat heappush heappop heapify heapreplace
    heappushpop insort insort_left insort_right send throw""".split()
)
_SETTERS = frozenset("setattr delattr __setattr__ __delattr__ __setstate__ methodcaller".split())
#: Names by which code comes by a namespace as a dict, which it may fill.
_NAMESPACES = frozenset("__dict__ vars globals locals".split())
#: Instructions that put something under a name, and those that change what a container holds.
_NAMING = frozenset("STORE_ATTR DELETE_ATTR STORE_GLOBAL DELETE_GLOBAL STORE_NAME".split())
_FILLING = frozenset("STORE_SUBSCR DELETE_SUBSCR STORE_SLICE".split())


def writes(code: types.CodeType, names: set[str]) -> frozenset[str]:
    """Under which names code may put something (:attr:`CodeNames.writes`)."""
    found: set[str] = set()
    if not _WRITERS.isdisjoint(names):
        found.add(CONTENTS)
    # A container or an object is filled anew by its `__init__`, if that is not on its way from there to a base's.
    begins_anew = "__init__" in names and code.co_name != "__init__"
    if begins_anew or not _SETTERS.isdisjoint(names):
        found |= {EVERYTHING, CONTENTS}
    for step in disassembled(code):
        if step.opname in _NAMING:
            found.add(step.argval)
        elif step.opname in _FILLING or (step.opname == "BINARY_OP" and step.argrepr in ("+=", "|=", "^=")):
            found.add(CONTENTS)
        elif step.opname in ("STORE_DEREF", "DELETE_DEREF"):
            found.add(VARIABLES)
    if CONTENTS in found and not _NAMESPACES.isdisjoint(names):
        found.add(EVERYTHING)
    return frozenset(found)


def writes_of(function: str) -> frozenset[str]:
    """The same for a C function, by its own name: code may have it under another one."""
    if function in _SETTERS:
        return frozenset((EVERYTHING, CONTENTS))
    return frozenset((CONTENTS,)) if function in _WRITERS else frozenset()


def looks_at_errors_of(code: types.CodeType) -> frozenset[int]:
    """Offsets of the instructions whose exceptions code may catch under a name (which it deletes in the end) and do
    something with but to raise another one from it."""
    steps = [*instructions(code)] if code.co_exceptiontable else []
    forgotten = {a.argval for a, b in itertools.pairwise(steps) if (a.opname, b.opname) == _FORGETS}
    if not any(
        s.opname.startswith("LOAD_FAST") and s.argval in forgotten and (after.opname, after.argval) != _RAISES_FROM
        for s, after in itertools.pairwise(steps)
    ):
        return frozenset()
    covered = set[int]()
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        covered.update(range(entry.start, entry.end))
    return frozenset(covered)


#: How code forgets the name of an exception that it has handled.
_FORGETS = ("STORE_FAST", "DELETE_FAST")
#: The instruction that raises an exception from another one.
_RAISES_FROM = ("RAISE_VARARGS", 2)
