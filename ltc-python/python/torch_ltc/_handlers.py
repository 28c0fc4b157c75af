"""Whether code of the step would meet an exception that a read raises.

A program that fails fails the read of what it computes. A recorded step reads where it stands; a replay reads when its
program has run, and by then no code of the step can meet the exception. So what is read within a `try`, or within a
`with` whose manager may do something about exceptions, is not read later: replays compare it. A replay that cannot read
what it would compare is taken back, and the step is recorded.
"""

import contextlib
import dis
import functools
import types
import warnings
from typing import Any

from torch_ltc._effects import disassembled
from torch_ltc._known import is_of_torch

#: Managers of the standard library that only put back what a replay has not changed.
_PUT_BACK = (contextlib.nullcontext, warnings.catch_warnings)
#: The flag of code of generators (`CO_GENERATOR`).
_IS_GENERATOR = 0x20


@functools.lru_cache(4096)
def _handlers(code: types.CodeType, offset: int) -> frozenset[str]:
    """What an exception meets on its way out of a frame whose instruction at this offset raises it: a `try` (a handler
    or a `finally`), and a `with`."""
    steps = {step.offset: i for i, step in enumerate(disassembled(code))}
    table = dis._parse_exception_table(code) if code.co_exceptiontable else []  # type: ignore[attr-defined]
    found, at, passed = set[str](), offset, set[int]()
    while at not in passed and (entry := next((e for e in table if e.start <= at < e.end), None)):
        passed.add(at)
        inside = disassembled(code)[steps[entry.target] :]
        names = [step.opname for step in inside]
        if names[0] == "PUSH_EXC_INFO":  # all other handlers only clean up behind one
            found.add("with" if names[1] == "WITH_EXCEPT_START" else "try")
        again = next((step.offset for step in inside if step.opname == "RERAISE"), None)
        if again is None:
            break
        at = again
    return frozenset(found)


def _may_act(manager: Any) -> bool:
    """Whether a context manager may do something about an exception besides putting back what a replay has not
    changed."""
    if is_of_torch(type(manager).__module__) or type(manager) in _PUT_BACK:
        return False
    if isinstance(manager, contextlib._GeneratorContextManager):
        generator: Any = manager.gen
        code = generator.gi_code
        is_plain = not any(_handlers(code, s.offset) for s in disassembled(code) if s.opname == "YIELD_VALUE")
        return not (is_plain or is_of_torch(generator.gi_frame.f_globals.get("__name__") or ""))
    return True


class Handlers:
    """The `with` blocks that a step is in, as far as their managers may act."""

    def __init__(self) -> None:
        #: Identities of frames that have entered such a manager.
        self._frames: set[int] = set()

    def note(self, enters: types.FrameType) -> None:
        """Notes that a manager is entered: `enters` is the frame of its `__enter__`."""
        names = enters.f_code.co_varnames
        if enters.f_back is not None and names and _may_act(enters.f_locals.get(names[0])):
            self._frames.add(id(enters.f_back))

    def end(self, frame: types.FrameType) -> None:
        """Notes that a frame ends; generators only pause."""
        if not frame.f_code.co_flags & _IS_GENERATOR:
            self._frames.discard(id(frame))

    def meet(self, frame: types.FrameType) -> bool:
        """Whether code of the step meets an exception that is raised in a frame."""
        at: types.FrameType | None = frame
        while at is not None and (name := at.f_globals.get("__name__") or "") != "torch_ltc._run":
            found = _handlers(at.f_code, at.f_lasti) if not is_of_torch(name) else frozenset()
            if "try" in found or ("with" in found and id(at) in self._frames):
                return True
            at = at.f_back
        return False
