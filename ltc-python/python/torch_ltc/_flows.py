"""Shows from bytecode where a whole number goes that code has just read off the device (``correct.sum().item()``).

Such a number can be a traced one, which replays read when their program has run (`_awaited.py`), if the code does no
more than arithmetic with it, keeps it in its own variables and in attributes, and returns it, by itself or in a
container. Anything else that takes a whole number may be C code, which would read a traced one without leaving a trace
(`_counters.py`, which also says what `at` and `above` are). The functions here answer no where they are not sure.
"""

import functools
import types
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, cast

import torch

from torch_ltc._counters import ARITHMETIC, depth_after, is_whole, only_appends, puts_whole
from torch_ltc._effects import Instruction, instructions, parts
from torch_ltc._traced import TracedFloat, TracedInt

#: Instructions that make a container, and how many values of the stack they take for each member.
_PACKS = {"BUILD_TUPLE": 1, "BUILD_LIST": 1, "BUILD_MAP": 2, "BUILD_CONST_KEY_MAP": 1}
#: Names in code by which other code may come to see all its variables.
_SEES_VARIABLES = frozenset(("locals", "vars", "eval", "exec", "dir", "sys", "inspect"))
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL")
_NUMBERS = (int, TracedInt, TracedFloat)


#: Implementations of `__setattr__` that store a number as it is.
_STORE = (object.__setattr__, torch.nn.Module.__setattr__)


class _Use(NamedTuple):
    """A variable that code loads, or an attribute of what it holds: the left operand of an operator that has the number
    on its right, or where the number is stored."""

    variable: str
    #: The name of the attribute, or an empty string.
    attribute: str
    #: How the variable is loaded, and where; and the position of the operator or of what stores.
    opname: str
    at: int
    until: int
    #: Whether no jump and no variable lies between the call that reads the number and here.
    is_direct: bool = False


class _Ends(NamedTuple):
    """Where a number goes that code has read."""

    is_returned: bool
    #: The left operands of operators that have the number on their right, each with whether it was loaded before the
    #: number was read.
    lefts: tuple[tuple[_Use, bool], ...]
    #: The attributes in which the number, or what is computed from it, is stored.
    stores: tuple[_Use, ...]
    #: The positions of operators that have the number on their right.
    operations: frozenset[int] = frozenset()


class KeptIn(NamedTuple):
    """The places, as `(dict, key)`, that a number meets. What all code of the step does with them shows only when the
    step has ended (:func:`are_kept`)."""

    #: In these it is stored.
    stores: list[tuple[dict[Any, Any], Any]]
    #: What is in these is the left operand of an operator that has the number on its right; each with whether it was
    #: loaded before the number was read.
    lefts: list[tuple[dict[Any, Any], Any, bool]]
    #: The code that reads it, and the positions of operators there that have it on their right.
    code: types.CodeType
    operations: frozenset[int]


def only_kept_in(frame: types.FrameType, returns: bool, is_older: Callable[[Any], bool]) -> KeptIn | None:
    """The places that the result of the call meets that a frame is making, if it is only computed with, and stored in
    attributes of objects that are older than the step; else `None`. `returns`: the frame is the step's own function, so
    that it may also return it."""
    ends = _ends(frame.f_code, frame.f_lasti)
    if ends is None or (ends.is_returned and not returns):
        return None
    if not all(_is_place(frame, store, is_older) for store in ends.stores):
        return None
    kept = KeptIn(
        [(_variable(frame, use.variable).__dict__, use.attribute) for use in ends.stores],
        [],
        frame.f_code,
        ends.operations,
    )
    for use, was_loaded in ends.lefts:
        if type(_found(frame, (use.variable, use.attribute))) not in _NUMBERS:
            return None
        if use.attribute:
            if not _is_read_plainly(frame, use, is_older):
                return None
            kept.lefts.append((_variable(frame, use.variable).__dict__, use.attribute, was_loaded))
        elif use.opname == "LOAD_GLOBAL":
            kept.lefts.append((frame.f_globals, use.variable, was_loaded))
    return kept


def are_kept(
    kept: Sequence[KeptIn],
    lent: Container[tuple[int, Any]],
    only_counts: Callable[[dict[Any, Any], Any], bool],
    readers: Callable[[dict[Any, Any], Any], set[types.CodeType | None]],
) -> bool:
    """Whether all code of a step that has ended only counts with what is in these places (`only_counts`), and puts
    nothing but numbers that ask a traced number on their right: a plain float reads it in C. `lent`: the places, as
    `(id(dict), key)`, of numbers that were traced when the step began; `readers`: the code that names a place, empty
    where it is not known."""
    if not all(only_counts(*place) for each in kept for place in each.stores):
        return False
    traced: dict[types.CodeType, set[int]] = {}
    for each in kept:
        traced.setdefault(each.code, set()).update(each.operations)
    for code_of_left, (holder, name, was_loaded) in [(each.code, left) for each in kept for left in each.lefts]:
        puts = [(code, puts_whole(code, name) if code is not None else None) for code in readers(holder, name)]
        # What is only added to and ends as a whole number never was a float in between; what is also set may have been,
        # and what was loaded before another function has set it may be what the step began with.
        is_sure = all(put is not None and put.adds <= traced.get(cast(Any, code), set()) for code, put in puts)
        setters = {code for code, put in puts if put is not None and put.sets}
        now = type(holder.get(name))
        is_traced = now in _NUMBERS or (now is float and (id(holder), name) in lent)
        if not puts or any(put is None for _, put in puts) or not is_traced:
            return False
        if setters and (not is_sure or (was_loaded and setters != {code_of_left})):
            return False
    return True


@functools.lru_cache(4096)
def _ends(code: types.CodeType, offset: int) -> _Ends | None:
    """Where the number goes that the call at this offset gives; `None` where it may go anywhere else."""
    steps = [*instructions(code)]
    # The offset may be within the inline cache behind the instruction, so the last one before it is meant.
    at = max(i for i, step in enumerate(steps) if step.offset <= offset)
    if steps[at].opname != "CALL" or _SEES_VARIABLES.intersection(code.co_names):
        return None
    flow = _Flow(steps)
    if not flow.goes(at, False, is_direct=True):
        return None
    for use in (*flow.lefts, *flow.stores):
        is_number = not use.attribute and use in flow.lefts
        if not _holds_the_same(code, steps, at, use, flow.stored if is_number else None):
            return None
    lefts = tuple((use, use.at < at) for use in flow.lefts)
    return _Ends(flow.returned, lefts, tuple(flow.stores), frozenset(use.until for use in flow.lefts))


def _holds_the_same(
    code: types.CodeType, steps: Sequence[Instruction], call: int, use: _Use, stored: set[int] | None
) -> bool:
    """Whether a variable holds at a use what it held when the call at `call` read the number. With `stored`, it is one
    that holds a number, and may also come to hold another whole one, or what was stored at these positions."""
    is_fast = use.opname.startswith("LOAD_FAST")
    puts = [i for i, s in enumerate(steps) if s.opname.startswith("STORE_") and s.argval == use.variable]
    puts = [i for i in puts if steps[i].opname.endswith(("_FAST", "_DEREF", "_GLOBAL", "_FAST_MAYBE_NULL"))]
    if use.opname.startswith("LOAD_DEREF"):
        # Other functions may set a number in a variable that they share; one that holds an object hardly ever changes.
        names = {(s.opname, s.argval) for part in parts(code) for s in instructions(part)}
        return stored is None and ("STORE_DEREF", use.variable) not in names
    if not is_fast:
        return stored is not None or not puts  # a global that holds a number is a place, see `are_kept`
    if any(use.at < i < use.until for i in puts):
        return False
    if use.is_direct and not any(min(use.at, call) < i < max(use.at, call) for i in puts):
        return True
    is_sure = lambda i: stored is not None and (i in stored or is_whole(steps, i))
    return all(is_sure(i) or (i < call and not _is_jumped_over(steps, i)) for i in puts)


def _is_jumped_over(steps: Sequence[Instruction], at: int) -> bool:
    """Whether code may jump back over a position, so that it may come there again."""
    offset = steps[at].offset
    return any("JUMP" in s.opname and s.argval <= offset <= s.offset for s in steps if type(s.argval) is int)


def is_of_step(frame: types.FrameType) -> bool:
    """Whether a frame is the step's own function, so that what it returns is what the step returns."""
    caller = frame.f_back
    while caller is not None and caller.f_globals.get("__name__") == "torch.utils._contextlib":  # `@torch.no_grad()`
        caller = caller.f_back
    return caller is not None and caller.f_globals.get("__name__") == "torch_ltc._run"


def is_only_passed_on(frame: types.FrameType, name: str, is_older: Callable[[Any], bool]) -> bool:
    """Whether the call that a frame is making is of a builtin function or a method of this name, and code does nothing
    with the result but to return it, if the frame is the step's own, and to append it to lists that are older than the
    step; by itself or in containers."""
    if name in frame.f_builtins and frame.f_globals.get(name, frame.f_builtins[name]) is not frame.f_builtins[name]:
        return False
    ends = _passed_on(frame.f_code, frame.f_lasti, name)
    if ends is None or (ends[0] and not is_of_step(frame)):
        return False
    lists = [_found(frame, place) for place in ends[1]]
    return all(type(x) in (list, deque) and is_older(x) for x in lists)


@functools.lru_cache(4096)
def _passed_on(code: types.CodeType, offset: int, name: str) -> tuple[bool, tuple[tuple[str, str], ...]] | None:
    """Where the result goes of the call at this offset, if that is of a function or method of this name: whether it is
    returned, and the lists to which it is appended. `None` where it may go anywhere else."""
    steps = [*instructions(code)]
    at = max(i for i, step in enumerate(steps) if step.offset <= offset)
    if steps[at].opname != "CALL" or steps[at].argval > 1 or _SEES_VARIABLES.intersection(code.co_names):
        return None
    flow = _Flow(steps)
    if steps[at].argval:
        functions = [i for i, s in enumerate(steps[:at]) if s.opname == "LOAD_GLOBAL" and "NULL" in s.argrepr]
        is_named = any(steps[i].argval == name and flow.is_under(i, at) for i in functions)
    else:
        is_named = steps[at - 1].argval == name and steps[at - 1].opname in ("LOAD_ATTR", "LOAD_METHOD")
    kept = is_named and flow.goes(at, True)
    is_same = all(only_appends(code, end or start, not end) for start, end in flow.appends)
    return (flow.returned, tuple(flow.appends)) if kept and is_same else None


def variable_given(frame: types.FrameType) -> Any:
    """The only argument of the call that a frame is making, if that is a variable of the frame; else `None`."""
    steps = [s for s in instructions(frame.f_code) if s.offset <= frame.f_lasti]
    if len(steps) < 2 or steps[-1].opname != "CALL" or steps[-1].argval != 1:
        return None
    if steps[-1].is_target:
        return None
    is_own = steps[-2].opname.startswith("LOAD_FAST") and "AND_CLEAR" not in steps[-2].opname
    return frame.f_locals.get(steps[-2].argval) if is_own else None


def _variable(frame: types.FrameType, name: str) -> Any:
    """What a variable or global of a frame holds."""
    return frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)


def _found(frame: types.FrameType, place: tuple[str, str]) -> Any:
    """What a place holds: a variable, or an attribute of what it holds."""
    value = _variable(frame, place[0])
    return getattr(value, "__dict__", {}).get(place[1]) if place[1] else value


def _is_place(frame: types.FrameType, use: _Use, is_older: Callable[[Any], bool]) -> bool:
    """Whether an attribute can take a traced number: it is of an older object, so it is watched, it holds a number now,
    and it is stored by an ordinary `__setattr__`, which does nothing with the value."""
    stores = cast(Any, type(_variable(frame, use.variable)).__setattr__) in _STORE
    is_number = type(_found(frame, (use.variable, use.attribute))) in (float, *_NUMBERS)
    return stores and is_number and _is_read_plainly(frame, use, is_older)


def _is_read_plainly(frame: types.FrameType, use: _Use, is_older: Callable[[Any], bool]) -> bool:
    """Whether an attribute of an older object is an entry of its `__dict__`, and reading it gives that."""
    owner = _variable(frame, use.variable)
    kind = type(owner)
    shadows = next((vars(base)[use.attribute] for base in kind.__mro__ if use.attribute in vars(base)), None)
    is_ordinary = cast(Any, kind.__getattribute__) is object.__getattribute__ and not hasattr(type(shadows), "__set__")
    return is_ordinary and is_older(owner) and type(getattr(owner, "__dict__", None)) is dict


def _packed(step: Instruction) -> int:
    """How many values of the stack an instruction takes into a container that it makes; 0 where it makes none."""
    keys = step.opname == "BUILD_CONST_KEY_MAP"
    return _PACKS[step.opname] * step.argval + keys if step.opname in _PACKS else 0


class _Flow:
    """Follows one value through code, and notes where it goes."""

    def __init__(self, steps: Sequence[Instruction]) -> None:
        self._steps = steps
        #: The variables that were followed, and whether what they hold is in a container.
        self._variables: set[tuple[str, bool]] = set()
        self.returned = False
        self.lefts: list[_Use] = []
        self.stores: list[_Use] = []
        #: The positions at which the value, or what is computed from it, is stored in variables.
        self.stored: set[int] = set()
        #: The lists to which it is appended: a variable, and an attribute of it or an empty string.
        self.appends: list[tuple[str, str]] = []

    def goes(self, at: int, is_packed: bool, is_direct: bool = False) -> bool:
        """Whether the value that the instruction at `at` pushes only goes where it may. `is_packed`: what it pushes is
        a container that holds the value. `is_direct`: it pushes the number itself, and is no load of a variable."""
        above = 0
        for i in range(at + 1, len(self._steps)):
            step = self._steps[i]
            word = step.opname
            if step.is_target:
                return False
            if above == 0 and word in ("RETURN_VALUE", "POP_TOP"):
                self.returned |= word == "RETURN_VALUE"
                return True
            if word == "POP_TOP":
                above -= 1
                continue
            if above == 0 and word == "CALL" and is_packed:
                return self._appends(i)
            if above == 0 and word == "STORE_FAST":
                self.stored |= set() if is_packed else {i}
                return self._variable(step.argval, is_packed)
            if above == 1 and word == "STORE_ATTR":
                return not is_packed and self._stores(i, is_direct)
            size = _packed(step)
            if above < size:
                if word == "BUILD_MAP" and above % 2:  # the key of a dict, which is looked at for its hash
                    return False
                above, is_packed = 0, True
                continue
            after = above - size + 1 if size else depth_after(step, above)
            if is_packed and above < (1 if word.startswith("UNARY") else 2) and word.startswith(("BINARY", "UNARY")):
                return False
            if above == 0 and word == "BINARY_OP" and step.argrepr in ARITHMETIC:
                left = self._left_of(i)
                if left is None or "%" in step.argrepr:
                    return False
                self.lefts.append(left._replace(is_direct=is_direct))
                after = 0
            if after is None:
                return False
            above = after
        return False

    def _variable(self, name: str, is_packed: bool) -> bool:
        """Whether the value of a variable only goes where it may, wherever the variable is loaded."""
        if (name, is_packed) in self._variables:
            return True
        self._variables.add((name, is_packed))
        loads = [i for i, s in enumerate(self._steps) if s.opname.startswith("LOAD_FAST") and s.argval == name]
        return all(self.goes(i, is_packed) for i in loads)

    def _stores(self, at: int, is_direct: bool) -> bool:
        """Whether code shows in which attribute of which variable the instruction at `at` stores; notes that."""
        owner = self._steps[at - 1]
        if owner.opname == "SWAP" and self._steps[at - 2].opname == "BINARY_OP":  # `x.name += ...`
            left = self._left_of(at - 2)
            if left is None or left.attribute != self._steps[at].argval:
                return False
            self.stores.append(left._replace(is_direct=is_direct))
            return True
        self.stores.append(_Use(owner.argval, self._steps[at].argval, owner.opname, at - 1, at, is_direct))
        return owner.opname.startswith(_VARIABLES) and "NULL" not in owner.argrepr

    def _appends(self, call: int) -> bool:
        """Whether a call is of `append` of a list that an attribute or a variable holds, and its argument is the value;
        notes the list."""
        for at in range(1, call):
            step, owner = self._steps[at], self._steps[at - 1]
            is_method = step.opname == "LOAD_METHOD" or (step.opname == "LOAD_ATTR" and "NULL" in step.argrepr)
            if not (
                is_method and step.argval == "append" and self._steps[call].argval == 1 and self.is_under(at, call)
            ):
                continue
            if owner.opname in ("LOAD_DEREF", "LOAD_GLOBAL") and "NULL" not in owner.argrepr:
                self.appends.append((owner.argval, ""))
                return True
            before = self._steps[max(at - 2, 0)]
            is_variable = before.opname.startswith(_VARIABLES) and "NULL" not in before.argrepr
            stored = any(s.opname.startswith("STORE_") and s.argval == before.argval for s in self._steps)
            if owner.opname == "LOAD_ATTR" and is_variable and not stored:
                self.appends.append((before.argval, owner.argval))
                return True
        return False

    def _left_of(self, operation: int) -> _Use | None:
        """What is the left operand of an operator: a variable or an attribute; `None` where it is anything else."""
        for at in range(operation):
            step = self._steps[at]
            owner, attribute = at, ""
            if step.opname == "LOAD_ATTR" and "NULL" not in step.argrepr and at > 1:
                # `x.name += ...` loads the attribute from a copy of the variable's value.
                is_copied = self._steps[at - 1].opname == "COPY" and self._steps[at - 1].argval == 1
                owner, attribute = at - 1 - is_copied, step.argval
            loads = self._steps[owner]
            if loads.opname.startswith(_VARIABLES) and "NULL" not in loads.argrepr and self.is_under(at, operation):
                return _Use(loads.argval, attribute, loads.opname, owner, operation)
        return None

    def is_under(self, at: int, operation: int) -> bool:
        """Whether the value that the instruction at `at` pushes is the left operand, or the function that is called
        with one argument: when the operator or call takes both, one other value lies over it."""
        above: int | None = 0
        for i in range(at + 1, operation):
            step = self._steps[i]
            if step.is_target or above is None:
                return False
            size = _packed(step)
            above = above - size + 1 if size and above >= size else depth_after(step, above)
        return above == 1
