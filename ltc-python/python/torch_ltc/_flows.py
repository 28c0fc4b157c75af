"""Where code takes a whole number that it has just read off the device: shown from the code, or not shown.

Such a number may be one that remembers what becomes of it (:mod:`torch_ltc._awaited`) where the code does nothing with
it but arithmetic, keeps it in its own variables and in attributes, and returns it, by itself or in a container.
Anything else that takes a whole number may be C code that reads it unseen (:mod:`torch_ltc._counters`).
"""

import dis
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch

from torch_ltc._counters import ARITHMETIC, depth_after
from torch_ltc._effects import Instruction, instructions
from torch_ltc._traced import TracedFloat, TracedInt

#: What makes a container of so many values.
_PACKS = {"BUILD_TUPLE": 1, "BUILD_LIST": 1, "BUILD_MAP": 2, "BUILD_CONST_KEY_MAP": 1}
#: What gives others a look at all variables.
_SEES_VARIABLES = frozenset(("locals", "vars", "eval", "exec", "dir", "sys", "inspect"))
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL")
_NUMBERS = (int, TracedInt, TracedFloat)


#: What stores attributes as they are.
_STORE = (object.__setattr__, torch.nn.Module.__setattr__)


class _Ends(NamedTuple):
    """Where a number goes that code has read."""

    is_returned: bool
    #: Variables to the left of it in sums, or variables and their attributes.
    lefts: tuple[tuple[str, str], ...]
    #: Variables and those of their attributes that it is put into.
    stores: tuple[tuple[str, str], ...]


def is_only_kept(frame: types.FrameType, returns: bool, is_older: Callable[[Any], bool]) -> bool:
    """Whether what a frame's call gives is only computed with and kept there, in places of what is older than the step;
    or returned, where it `returns` to who captures."""
    ends = _ends(frame.f_code, frame.f_lasti)
    if ends is None or (ends.is_returned and not returns):
        return False
    asks = all(type(_found(frame, left)) in _NUMBERS for left in ends.lefts)
    return asks and all(_is_place(frame, store, is_older) for store in ends.stores)


@functools.lru_cache(4096)
def _ends(code: types.CodeType, offset: int) -> _Ends | None:
    """Where the number goes that an instruction gives; nothing where it may go elsewhere."""
    steps = [*instructions(code)]
    # Behind a call there is room for what the interpreter remembers of it.
    at = max(i for i, step in enumerate(steps) if step.offset <= offset)
    if steps[at].opname != "CALL" or _SEES_VARIABLES.intersection(code.co_names):
        return None
    flow = _Flow(steps)
    return _Ends(flow.returned, tuple(flow.lefts), tuple(flow.stores)) if flow.goes(at, False) else None


def variable_given(frame: types.FrameType) -> Any:
    """What the variable holds that a call in this frame is given alone; `None` where code shows no such thing."""
    steps = [s for s in instructions(frame.f_code) if s.offset <= frame.f_lasti]
    if len(steps) < 2 or steps[-1].opname != "CALL" or steps[-1].argval != 1:
        return None
    # Instructions that do nothing are left out there, but may be what is jumped to.
    between = range(steps[-2].offset + 1, steps[-1].offset + 1)
    if any(s.is_jump_target for s in dis.get_instructions(frame.f_code) if s.offset in between):
        return None
    is_own = steps[-2].opname.startswith("LOAD_FAST") and "AND_CLEAR" not in steps[-2].opname
    return frame.f_locals.get(steps[-2].argval) if is_own else None


def _variable(frame: types.FrameType, name: str) -> Any:
    return frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)


def _found(frame: types.FrameType, place: tuple[str, str]) -> Any:
    """What a variable holds, or an attribute of what it holds."""
    value = _variable(frame, place[0])
    return getattr(value, "__dict__", {}).get(place[1]) if place[1] else value


def _is_place(frame: types.FrameType, place: tuple[str, str], is_older: Callable[[Any], bool]) -> bool:
    """Whether an attribute holds a whole number that is watched, and nothing takes another one before it is there."""
    owner = _variable(frame, place[0])
    kind = type(owner)
    stores = cast(Any, kind.__setattr__) in _STORE and not hasattr(getattr(kind, place[1], None), "__set__")
    return stores and is_older(owner) and type(_found(frame, place)) in _NUMBERS


class _Flow:
    """What becomes of one value."""

    def __init__(self, steps: Sequence[Instruction]) -> None:
        self._steps = steps
        self._variables: set[tuple[str, bool]] = set()
        self.returned = False
        self.lefts: list[tuple[str, str]] = []
        self.stores: list[tuple[str, str]] = []

    def goes(self, at: int, is_packed: bool) -> bool:
        """Whether what this instruction gives only goes where it may; `is_packed`: it is in a container."""
        above = 0
        for i in range(at + 1, len(self._steps)):
            step = self._steps[i]
            word = step.opname
            if step.is_target:
                return False
            if above == 0 and word in ("RETURN_VALUE", "POP_TOP"):
                self.returned |= word == "RETURN_VALUE"
                return True
            if above == 0 and word == "STORE_FAST":
                return self._variable(step.argval, is_packed)
            if above == 1 and word == "STORE_ATTR":
                return not is_packed and self._stores(i)
            size = _PACKS.get(word, 0) * step.argval + (word == "BUILD_CONST_KEY_MAP") if word in _PACKS else 0
            if above < size:
                above, is_packed = 0, True
                continue
            after = above - size + 1 if size else depth_after(step, above)
            if is_packed and above < 2 and word.startswith(("BINARY", "UNARY")):
                return False
            if above == 0 and word == "BINARY_OP" and step.argrepr in ARITHMETIC:
                left = self._left_of(i)
                if left is None or "%" in step.argrepr:
                    return False
                self.lefts.append(left)
                after = 0
            if after is None:
                return False
            above = after
        return False

    def _variable(self, name: str, is_packed: bool) -> bool:
        """Whether what is kept in a variable goes on only where it may."""
        if (name, is_packed) in self._variables:
            return True
        self._variables.add((name, is_packed))
        loads = [i for i, s in enumerate(self._steps) if s.opname.startswith("LOAD_FAST") and s.argval == name]
        return all(self.goes(i, is_packed) for i in loads)

    def _stores(self, at: int) -> bool:
        """Whether it is shown of which variable's object an attribute is set."""
        owner = self._steps[at - 1]
        if owner.opname == "SWAP" and self._steps[at - 2].opname == "BINARY_OP":  # `x.name += ...`
            left = self._left_of(at - 2)
            if left is None or left[1] != self._steps[at].argval:
                return False
            self.stores.append(left)
            return True
        self.stores.append((owner.argval, self._steps[at].argval))
        return owner.opname.startswith(_VARIABLES) and "NULL" not in owner.argrepr

    def _left_of(self, operation: int) -> tuple[str, str] | None:
        """The variable that an operation with two operands has on its left, or the variable and its attribute."""
        for at in range(operation):
            step = self._steps[at]
            owner, attribute = step, ""
            if step.opname == "LOAD_ATTR" and "NULL" not in step.argrepr and at > 1:
                before = self._steps[at - 2 : at]
                # `x.name += ...` loads the name of a copy.
                owner, attribute = before[before[1].opname != "COPY" or before[1].argval != 1], step.argval
            if owner.opname.startswith(_VARIABLES) and "NULL" not in owner.argrepr and self._is_under(at, operation):
                return owner.argval, attribute
        return None

    def _is_under(self, at: int, operation: int) -> bool:
        """Whether what an instruction gives lies under one other value when the operation takes both."""
        above: int | None = 0
        for i in range(at + 1, operation):
            step = self._steps[i]
            if step.is_target or above is None:
                return False
            size = _PACKS.get(step.opname, 0) * step.argval if step.opname in _PACKS else 0
            above = above - size + 1 if size and above >= size else depth_after(step, above)
        return above == 1
