"""Where code takes a whole number that it has just read off the device: shown from the code, or not shown.

Such a number may be one that remembers what becomes of it (:mod:`torch_ltc._awaited`) where the code does nothing with
it but arithmetic, keeps it in its own variables and in attributes, and returns it, by itself or in a container.
Anything else that takes a whole number may be C code that reads it unseen (:mod:`torch_ltc._counters`).
"""

import functools
import types
from collections.abc import Sequence

from torch_ltc._counters import ARITHMETIC, moved
from torch_ltc._effects import Instruction, instructions
from torch_ltc._traced import Counted, Traced

#: What makes a container of so many values.
_PACKS = {"BUILD_TUPLE": 1, "BUILD_LIST": 1, "BUILD_MAP": 2, "BUILD_CONST_KEY_MAP": 1}
#: What gives others a look at all variables.
_SEES_VARIABLES = frozenset(("locals", "vars", "eval", "exec", "dir", "sys", "inspect"))
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL")
_NUMBERS = (int, Counted, Traced)


def is_only_kept(frame: types.FrameType, returns: bool) -> bool:
    """Whether what a frame's call gives is only computed with and kept there; or returned, where it `returns` to who
    captures."""
    ends = _ends(frame.f_code, frame.f_lasti)
    return ends is not None and (returns or not ends[0]) and all(_is_number(frame, left) for left in ends[1])


@functools.lru_cache(4096)
def _ends(code: types.CodeType, offset: int) -> tuple[bool, tuple[tuple[str, str], ...]] | None:
    """Whether the number that an instruction gives may be returned, and what stands to the left of it in sums; nothing
    where it may go elsewhere."""
    steps = [*instructions(code)]
    # Behind a call there is room for what the interpreter remembers of it.
    at = max(i for i, step in enumerate(steps) if step.offset <= offset)
    if steps[at].opname != "CALL" or _SEES_VARIABLES.intersection(code.co_names):
        return None
    flow = _Flow(steps)
    return (flow.returned, tuple(flow.lefts)) if flow.goes(at, False) else None


def _is_number(frame: types.FrameType, left: tuple[str, str]) -> bool:
    """Whether a variable, or an attribute of one, is a number that asks the one on its right: no float does."""
    name, attribute = left
    value = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
    return type(getattr(value, "__dict__", {}).get(attribute) if attribute else value) in _NUMBERS


class _Flow:
    """What becomes of one value."""

    def __init__(self, steps: Sequence[Instruction]) -> None:
        self._steps = steps
        self._variables: set[tuple[str, bool]] = set()
        self.returned = False
        self.lefts: list[tuple[str, str]] = []

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
                return not is_packed
            size = _PACKS.get(word, 0) * step.argval + (word == "BUILD_CONST_KEY_MAP") if word in _PACKS else 0
            if above < size:
                above, is_packed = 0, True
                continue
            after = above - size + 1 if size else moved(step, above)
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
            above = above - size + 1 if size and above >= size else moved(step, above)
        return above == 1
