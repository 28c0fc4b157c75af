"""Exceptions that a step catches and looks at.

Nothing tells what an exception holds, so a step that looks at one is refused. Whether an exception that leaves a
function comes to the code that called it cannot be told from the functions between: `next` and `getattr` swallow some,
and so does a loop. So the interpreter is asked: the frame that would look at it is traced until it goes on.
"""

import dis
import sys
import types
from typing import Any

from torch_ltc._functions import Functions
from torch_ltc._names import code_of, is_of_program

#: Instructions that end by an exception that no code sees.
_SWALLOW = frozenset(dis.opmap[name] for name in ("FOR_ITER", "SEND") if name in dis.opmap)


def _looks(frame: types.FrameType) -> bool:
    """Whether a frame of the program would look at an exception that comes to it where it is."""
    return frame.f_lasti in code_of(frame.f_code, frame.f_globals).looks_at_errors_of and is_of_program(frame)


def _no_trace(*_: Any) -> None:
    """Traces no frame."""


class Errors(Functions):
    """The part of a survey that deals with exceptions."""

    def __init__(self) -> None:
        super().__init__()
        #: The frame that an exception may come to, which would look at it, and where the frame is.
        self._catcher: tuple[types.FrameType, int] | None = None

    def throw_into(self, generator: "types.GeneratorType[Any, Any, Any]") -> None:
        """Code throws an exception into a generator, which may catch it, as may those that it goes on in."""
        inner: Any = generator
        while type(inner) is types.GeneratorType:
            if inner.gi_frame is not None and _looks(inner.gi_frame):
                self._refuse_look(inner.gi_frame)
            inner = inner.gi_yieldfrom

    def expect_error(self, frame: types.FrameType) -> None:
        """A function is left by an exception, which may come to the code that called it."""
        at = frame.f_back
        if at is None or not _looks(at):
            return
        if sys.gettrace() is not None:  # a debugger's, or one that measures what tests cover
            return self._refuse_look(at)
        self._catcher = (at, at.f_lasti)
        at.f_trace, at.f_trace_lines = self._trace, False
        sys.settrace(_no_trace)

    def expect_no_error(self, frame: types.FrameType | None, event: str) -> None:
        """Takes note of an event: where it shows that the frame has gone on, no exception has come to it."""
        if self._catcher is None:
            return
        at, lasti = self._catcher
        if frame is None or (frame is at and event != "call") or at.f_lasti != lasti:
            self._catcher = None
            del at.f_trace
            if sys.gettrace() is _no_trace:
                sys.settrace(None)

    def _trace(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """The trace function of that frame."""
        if self._catcher is None or event != "exception" or frame.f_lasti != self._catcher[1]:
            return self._trace
        is_swallowed = frame.f_code.co_code[frame.f_lasti] in _SWALLOW and issubclass(argument[0], StopIteration)
        if not is_swallowed:
            self._refuse_look(frame)
        self.expect_no_error(None, event)
        return None

    def _refuse_look(self, frame: types.FrameType) -> None:
        """Refuses the step, since a frame looks at an exception."""
        self.refuse(f"{frame.f_code.co_qualname} looks at an exception that it catches", frame)
