"""Shows from bytecode that code only counts with a whole number, or only appends to a list.

A number that a step changes at each call (``self.calls += 1``) can be lent to it as a traced number
(`_changing_numbers.py`) if all code that names it does nothing with it but arithmetic, comparisons and decisions, and
stores the outcome under the same name. Anything else that takes a whole number may be C code (an index, a range), which
would read a traced one without leaving a trace. The functions here read the code for that, and answer no where they are
not sure. A position (`at`) is an index into the list of instructions, and `above` counts the values that lie over the
number on the stack.
"""

import functools
import types
from collections.abc import Sequence
from typing import NamedTuple

from torch_ltc._effects import Instruction, instructions

#: Instructions that push one value and do nothing else.
_PUSHES = (
    "PUSH_NULL",
    "LOAD_CONST",
    "LOAD_SMALL_INT",
    "LOAD_FAST",
    "LOAD_FAST_BORROW",
    "LOAD_FAST_CHECK",
    "LOAD_DEREF",
)
ARITHMETIC = frozenset(op + end for op in ("+", "-", "*", "**", "/", "//", "%") for end in ("", "="))
#: Operators whose result is a whole number where both operands are.
_WHOLE = frozenset(op + end for op in ("+", "-", "*", "//", "%") for end in ("", "="))
#: Instructions that load a variable or global.
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL")
#: How the names of instructions end that name a variable of the code, and not an attribute or a global.
_OF_VARIABLES = ("_FAST", "_FAST_BORROW", "_FAST_CHECK", "_DEREF", "_CLOSURE", "_CELL")
#: How the names of instructions begin that only decide by a value, or drop it.
_DECIDES = ("POP_JUMP", "TO_BOOL", "UNARY_NOT", "POP_TOP")


@functools.lru_cache(4096)
def counts(code: types.CodeType, name: str) -> frozenset[str] | None:
    """Whether code only counts with what it finds under the name of an attribute, a global or an entry of a dict.

    If so, the names of the attributes or entries of the same object that it divides by the number
    (`self.sum / self.count`): these have to be traced, too, since a plain float on the left divides without asking the
    number on its right. `None` if it does anything else.
    """
    steps = [*instructions(code)]
    divided: set[str] = set()
    named = _named(steps, name)
    is_counted = bool(named) and all(_counts(steps, i, name, divided) is not None for i in named)
    return frozenset(divided) if is_counted else None


@functools.lru_cache(4096)
def only_adds(code: types.CodeType, name: str) -> bool:
    """Whether all that code stores under a name is computed from what it found under the same name."""
    steps = [*instructions(code)]
    named, divided = _named(steps, name), set[str]()
    puts = {i for i in named if steps[i].opname.startswith("STORE")}
    puts_in = {i for i in named if steps[i].opname == "LOAD_CONST" and _word(steps, i + 1) == "STORE_SUBSCR"}
    ends = [_counts(steps, i, name, divided) for i in named if i not in puts | puts_in]
    return bool(named) and None not in ends and not divided and puts | {i + 1 for i in puts_in} <= set(ends)


class Puts(NamedTuple):
    """What code puts under a name that holds a whole number."""

    #: Whether it puts something there that is not computed from what is there: a whole number.
    sets: bool
    #: The positions of the operators by which it adds what may be no whole number.
    adds: frozenset[int]


@functools.lru_cache(4096)
def puts_whole(code: types.CodeType, name: str) -> Puts | None:
    """What code puts under the name of an attribute or a global: whole numbers, and what it computes by adding to what
    it found there (``x.name += ...``); `None` where it may put anything else."""
    steps = [*instructions(code)]
    sets, adds = False, set[int]()
    named = _named(steps, name)
    for i in named:
        value = i - (steps[i].opname == "STORE_ATTR")
        if steps[i].opname not in ("STORE_ATTR", "STORE_GLOBAL"):
            if not steps[i].opname.startswith(("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_METHOD")):
                return None
        elif is_whole(steps, value):
            sets = True
        elif not _adds_to(steps, value - 1):
            return None
        elif not (steps[value - 1].argrepr in ("+=", "-=", "*=") and is_whole(steps, value - 1)):
            adds.add(value - 1)
    return Puts(sets, frozenset(adds)) if named else None


def is_whole(steps: Sequence[Instruction], at: int) -> bool:
    """Whether the instruction before this one puts a constant whole number on the stack, on each way that leads
    here."""
    before = steps[at - 1]
    is_constant = before.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and type(before.argval) is int
    return at > 0 and is_constant and not steps[at].is_target


def _adds_to(steps: Sequence[Instruction], operation: int) -> bool:
    """Whether an operator is that of ``x.name += ...``, or ``name += ...`` for a global, which is stored next."""
    if steps[operation].opname != "BINARY_OP" or not steps[operation].argrepr.endswith("="):
        return False
    after = steps[operation + 1 : operation + 3]
    is_stored = after[0].opname == "STORE_GLOBAL" or [s.opname for s in after] == ["SWAP", "STORE_ATTR"]
    return is_stored and not any(step.is_target for step in after)


def _named(steps: Sequence[Instruction], name: str, is_variable: bool = False) -> list[int]:
    """The positions of instructions that use a name for a variable, or for anything else; none where a class pattern
    may read an attribute of this name, too (``case Point(x=0)``): its instruction has the names in a tuple."""
    matches = any(step.opname == "MATCH_CLASS" for step in steps)
    if matches and any(type(step.argval) is tuple and name in step.argval for step in steps):
        return []
    return [i for i, s in enumerate(steps) if s.argval == name and s.opname.endswith(_OF_VARIABLES) == is_variable]


def _counts(steps: Sequence[Instruction], at: int, name: str, divided: set[str]) -> int | None:
    """The position at which the number that is named at `at` is used up by counting; `None` where it may be used for
    something else. Adds to `divided` the names of what is divided by it."""
    word, is_called = steps[at].opname, "NULL" in steps[at].argrepr
    if word in ("STORE_ATTR", "STORE_GLOBAL"):
        return at
    if word == "LOAD_METHOD" or (is_called and word in ("LOAD_ATTR", "LOAD_GLOBAL")):
        return at  # a method with this name, of something else: a number is not called
    if word == "LOAD_CONST":
        return _counts_entry(steps, at, name, divided)
    if word not in ("LOAD_ATTR", "LOAD_GLOBAL"):
        return None
    above: int | None = 0
    floats: int | None = None
    load = _Load.ending_at(steps, at)
    for i in range(at + 1, len(steps)):
        step = steps[i]
        if step.is_target or above is None:
            return floats
        if step.opname in ("STORE_ATTR", "STORE_GLOBAL") and above == (step.opname == "STORE_ATTR"):
            # Stored under this name in another object, it would be subject to whatever that object's code does.
            is_same = step.argval == name and word[5:] == step.opname[6:]
            return i if is_same and (word == "LOAD_GLOBAL" or _is_back(steps, at, i)) else floats
        if above == 0 and (left := _whole_left(steps, i, load)) is not None:
            if step.argrepr in ("/", "/="):
                return i
            load = load._replace(begins=left)
            continue
        if i == at + 1 and step.opname == "BINARY_OP" and step.argrepr == "/":
            dividend = _dividend(steps, at)
            divided.update(dividend)
            return i if dividend else None
        if _is_done_with(step, above):
            return i
        floats = i if floats is None and _is_float(steps, i, above) else floats
        above = depth_after(step, above)
    return floats


def _word(steps: Sequence[Instruction], at: int) -> str:
    """The name of an instruction, empty for one that is jumped to. Versions of Python differ in what they call taking
    an entry of a dict."""
    if at >= len(steps) or steps[at].is_target:
        return ""
    return "BINARY_SUBSCR" if steps[at].argrepr == "[]" else steps[at].opname


def _takes_entry(steps: Sequence[Instruction], key: int) -> tuple[int, bool]:
    """The position at which code takes the entry with the constant key that is loaded at `key` (-1 where it does
    something else with it), and whether it then stores something there (`x[key] += ...`)."""
    is_put = [_word(steps, i) for i in range(key + 1, key + 4)] == ["COPY", "COPY", "BINARY_SUBSCR"]
    return (key + 3 if is_put else key + 1 if _word(steps, key + 1) == "BINARY_SUBSCR" else -1), is_put


def _counts_entry(steps: Sequence[Instruction], key: int, name: str, divided: set[str]) -> int | None:
    """As :func:`_counts`, for an entry of a dict, whose constant key is loaded at `key`."""
    if _word(steps, key + 1) == "STORE_SUBSCR":
        return key + 1
    takes, is_put = _takes_entry(steps, key)
    above: int | None = 0 if takes > 0 else None
    floats: int | None = None
    load = _Load.ending_at(steps, takes)
    for i in range(takes + 1, len(steps)):
        if steps[i].is_target or above is None:
            return floats
        words = [_word(steps, at) for at in range(i, i + 3)]
        if is_put and above == 0 and words == ["SWAP", "SWAP", "STORE_SUBSCR"]:
            return i + 2
        if words[0] == "STORE_SUBSCR":
            owners = steps[key - 1], steps[i - 2]
            is_same = steps[i - 1].argval == name and owners[0].argval == owners[1].argval
            return i if above == 2 and is_same and all(s.opname.startswith(_VARIABLES) for s in owners) else floats
        if above == 0 and (left := _whole_left(steps, i, load)) is not None:
            if steps[i].argrepr in ("/", "/="):
                return i
            load = load._replace(begins=left)
            continue
        if i == takes + 1 and steps[i].opname == "BINARY_OP" and steps[i].argrepr == "/":
            dividend = _entry_beside(steps, key)
            divided.update(dividend)
            return i if dividend else None
        if _is_done_with(steps[i], above):
            return i
        floats = i if floats is None and _is_float(steps, i, above) else floats
        above = depth_after(steps[i], above)
    return floats


class _Load(NamedTuple):
    """How code loads a number: the instructions, and where the expression begins that is computed with it."""

    words: tuple[tuple[str, object], ...]
    begins: int

    @staticmethod
    def ending_at(steps: Sequence[Instruction], at: int) -> "_Load":
        """The load that ends at a position; one without instructions where it is not that of a global, or of an
        attribute or entry of what a variable or its attribute holds."""
        length = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 2, "BINARY_SUBSCR": 3}.get(_word(steps, at), 0)
        length += length == 3 and steps[at - 2].opname == "LOAD_ATTR"  # an entry of what an attribute holds
        first = at - length + 1
        is_load = length > 0 <= first and steps[first].opname.startswith(_VARIABLES)
        plain = is_load and not any("NULL" in s.argrepr for s in steps[first : at + 1])
        if not plain or (length > 2 and steps[at - 1].opname != "LOAD_CONST"):
            return _Load((), at)
        return _Load(_words(steps, first, at), first)


def _words(steps: Sequence[Instruction], first: int, last: int) -> tuple[tuple[str, object], ...]:
    """The instructions from one position to another, so that they can be compared."""
    return tuple((_word(steps, i) or steps[i].opname, steps[i].argval) for i in range(first, last + 1))


def _whole_left(steps: Sequence[Instruction], operation: int, load: _Load) -> int | None:
    """Where the left operand of an operator begins that has the number on its right (``1 + self.calls``), if that is
    computed from constants and the number and is whole; else `None`. (A plain float on the left would compute without
    asking the number on its right.)"""
    is_operation = steps[operation].opname == "BINARY_OP" and steps[operation].argrepr in ARITHMETIC
    left = _whole(steps, load.begins - 1, load) if is_operation and load.words else None
    moved = ("COPY", "SWAP")
    if left is None or any(step.is_target or step.opname in moved for step in steps[left + 1 : operation]):
        return None
    return left


def _whole(steps: Sequence[Instruction], last: int, load: _Load) -> int | None:
    """Where the expression begins whose last instruction is this one, if it is computed from whole constants and the
    number alone, and is whole; else `None`."""
    if last < 0:
        return None
    step, first = steps[last], last - len(load.words) + 1
    if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return last if type(step.argval) is int else None
    if first >= 0 and _words(steps, first, last) == load.words:
        return first
    if step.opname == "UNARY_NEGATIVE":
        return _whole(steps, last - 1, load)
    right = _whole(steps, last - 1, load) if step.opname == "BINARY_OP" and step.argrepr in _WHOLE else None
    return _whole(steps, right - 1, load) if right is not None else None


def _entry_beside(steps: Sequence[Instruction], key: int) -> list[str]:
    """The key of the entry that is divided by the entry at `key`, if both are of one dict, which is a variable or an
    attribute of a variable: a list with that key, or an empty one."""
    for length in (1, 2):
        before = steps[max(key - 2 * length - 2, 0) : key]
        if len(before) < 2 * length + 2 or _word(steps, key - length - 1) != "BINARY_SUBSCR":
            continue
        one, other = before[:length], before[length + 2 :]
        is_same = [(s.opname, s.argval) for s in one] == [(s.opname, s.argval) for s in other]
        are_loads = all("NULL" not in s.argrepr and not s.is_target for s in other)
        starts = one[0].opname.startswith(_VARIABLES) and (length == 1 or one[1].opname == "LOAD_ATTR")
        if is_same and are_loads and starts and before[length].opname == "LOAD_CONST":
            return [before[length].argval]
    return []


@functools.lru_cache(4096)
def entries_of(code: types.CodeType, name: str, is_variable: bool) -> frozenset[str] | None:
    """The constant keys of the entries that code takes from, or stores in, what it finds under a name (see
    :func:`only_appends`), if it does nothing else with it; else `None`."""
    steps = [*instructions(code)]
    keys: set[str] = set()
    named = _named(steps, name, is_variable)
    for i in named:
        if steps[i].opname not in ("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_DEREF") or "NULL" in steps[i].argrepr:
            return None
        is_key = _word(steps, i + 1) == "LOAD_CONST" and type(steps[i + 1].argval) is str
        if not is_key or (_takes_entry(steps, i + 1)[0] < 0 and _word(steps, i + 2) != "STORE_SUBSCR"):
            return None
        keys.add(steps[i + 1].argval)
    return frozenset(keys) if named else None


def _dividend(steps: Sequence[Instruction], at: int) -> list[str]:
    """The attribute that is divided by the attribute loaded at `at`, if both are of one object: a list with its name,
    or an empty one."""
    if at < 3:
        return []
    first, name, second, by = steps[at - 3 : at + 1]
    # A global or a variable of an enclosing function is the same object at both loads: a step that sets one is refused.
    of_one = all(s.opname.startswith(_VARIABLES) and "NULL" not in s.argrepr for s in (first, second))
    are_loaded = name.opname == by.opname == "LOAD_ATTR" and "NULL" not in name.argrepr
    targets = any(step.is_target for step in (name, second, by))
    return [name.argval] if of_one and are_loaded and first.argval == second.argval and not targets else []


def _is_back(steps: Sequence[Instruction], loads: int, stores: int) -> bool:
    """Whether the attribute that is stored at `stores` is stored in the object from which it was loaded at `loads`."""
    if not loads:
        return False
    owner, last = steps[loads - 1], steps[stores - 1]
    if owner.opname == "COPY" and owner.argval == 1:  # `x.name += ...`
        return last.opname == "SWAP"
    is_variable = owner.opname.startswith("LOAD_FAST") and last.opname.startswith("LOAD_FAST")
    stored = any(s.opname.startswith("STORE_FAST") and s.argval == owner.argval for s in steps[loads:stores])
    return is_variable and owner.argval == last.argval and not stored


def _is_float(steps: Sequence[Instruction], at: int, above: int) -> bool:
    """Whether an instruction computes with the number and a constant that is a float: the result is a float, which is
    traced by itself, whatever becomes of it."""
    step, before = steps[at], steps[at - 1]
    is_left = step.opname == "BINARY_OP" and above == 1 and step.argrepr in ARITHMETIC
    return is_left and before.opname == "LOAD_CONST" and type(before.argval) is float


def _is_done_with(step: Instruction, above: int) -> bool:
    """Whether an instruction takes the number and nothing is left of it but a decision, or a quotient, which is a float
    and is traced by itself."""
    if step.opname == "BINARY_OP" and above == 1 and step.argrepr in ("/", "/="):
        return True
    return (step.opname == "COMPARE_OP" and above == 1) or (above == 0 and step.opname.startswith(_DECIDES))


def depth_after(step: Instruction, above: int) -> int | None:
    """How many values lie over the number after an instruction, which there were `above` before; `None` where the
    instruction may use the number for something else than arithmetic."""
    word = step.opname
    is_called = "NULL" in step.argrepr
    if word in _PUSHES or word == "LOAD_GLOBAL":
        return above + 1 + is_called
    if word == "COPY":
        return above + 1 if step.argval <= above else None
    if word in ("LOAD_ATTR", "LOAD_METHOD"):
        return above + (is_called or word == "LOAD_METHOD") if above else None
    if word == "CALL":
        return above - step.argval - 1 if above >= step.argval + 2 else None
    if word in ("BINARY_SUBSCR", "COMPARE_OP"):
        return above - 1 if above > 1 else None
    if word == "BINARY_OP" and above and (above > 1 or step.argrepr in ARITHMETIC):
        return above - 1
    if word == "SWAP" and step.argval == 2 and above < 2:
        return 1 - above
    if word.startswith("UNARY"):
        return above if above or word in ("UNARY_NEGATIVE", "UNARY_POSITIVE") else None
    return None


@functools.lru_cache(4096)
def only_appends(code: types.CodeType, name: str, is_variable: bool) -> frozenset[str]:
    """By which methods code appends to what it finds under a name (`append`, `extend`), or to its entry under a
    constant key; empty where it may do anything else with it. The name is that of a variable of an enclosing function
    (`is_variable`), or else of an attribute or a global."""
    steps = [*instructions(code)]
    named = _named(steps, name, is_variable)
    methods = frozenset(_appends(steps, i) for i in named)
    return methods if methods <= _APPENDS else frozenset()


#: Methods of lists and deques that put something behind what is there, and return nothing.
_APPENDS = frozenset(("append", "extend"))


def _appends(steps: Sequence[Instruction], at: int) -> str:
    """The method of the object that is loaded at `at` that is called; empty where something else becomes of it."""
    if steps[at].opname not in ("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_DEREF") or "NULL" in steps[at].argrepr:
        return ""
    if len(steps) < at + 4:
        return ""
    key, item = steps[at + 1 : at + 3]
    is_entry = key.opname == "LOAD_CONST" and (item.opname == "BINARY_SUBSCR" or item.argrepr == "[]")
    taken = steps[at + 1 : at + 4] if is_entry else [key]
    calls = taken[-1].opname == "LOAD_METHOD" or (taken[-1].opname == "LOAD_ATTR" and "NULL" in taken[-1].argrepr)
    return taken[-1].argval if calls and not any(step.is_target for step in taken) else ""
