"""The host part of a captured step: lines that the host recorder noted (`_host.py`), compiled into a function.

Rust calls :meth:`HostProgram.run` before it runs the program of a replay, and :meth:`HostProgram.undo` if the replay
turns out to be of the wrong path and has to be taken back. So what the lines change is saved before each run
(:class:`HostChanges`).
"""

import re
import types
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._again import SavedState
from torch_ltc._host_lines import CONSTANTS, Line
from torch_ltc._traced import NUMBERS

#: Classes of constants that are compared by what they print, where captures are compared; all others by identity. (What
#: a bound C method prints says whose it is.)
_BY_VALUE = (
    *(*NUMBERS, complex, str, bytes, type(None), slice, types.EllipsisType, types.MethodWrapperType),
    *(torch.Size, torch.device, torch.dtype, torch.layout, torch.memory_format),
)

#: What a run yields: numbers for operators of the device, tensors that go there, and numbers that the step returns.
_Done = tuple[list[float], list[torch.Tensor], list[float]]


class Changed(Exception):
    """Raised by a guard: the host would take another path than the captured call did."""


class HostChanges:
    """Saves and restores what the lines change: CPU tensors, schedules, states of generators, and numbers in places,
    which are given as `(dict, key)`."""

    def __init__(
        self,
        tensors: list[torch.Tensor],
        schedules: list[Any],
        generators: list[torch.Generator],
        places: list[tuple[dict[Any, Any], Any]],
    ) -> None:
        #: Tensors over bytes, and a copy of all these bytes.
        self._tensors, self._copy = tensors, torch.cat(tensors) if tensors else None
        self._schedules = SavedState(schedules) if schedules else None
        self._generators, self._states = generators, [g.get_state() for g in generators]
        self._places, self._numbers = places, [holder.get(name) for holder, name in places]

    def take(self) -> None:
        """Saves the present state."""
        if self._copy is not None:
            torch.cat(self._tensors, out=self._copy)
        if self._schedules is not None:
            self._schedules.take()
        if self._generators:
            self._states = [g.get_state() for g in self._generators]
        if self._places:
            self._numbers = [holder.get(name) for holder, name in self._places]

    def undo(self) -> None:
        """Restores the state that was saved last."""
        if self._copy is not None:
            torch._foreach_copy_(self._tensors, self._copy.split([t.numel() for t in self._tensors]))
        if self._schedules is not None:
            self._schedules.restore()
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
        for (holder, name), number in zip(self._places, self._numbers):
            holder[name] = number


class HostProgram:
    """The lines of one capture as a function: `once` are those that run now. `run` and `undo` are called by Rust."""

    def __init__(self, once: list[Line], lines: list[Line], constants: dict[str, Any], changes: HostChanges) -> None:
        first, body = [line.text for line in once], [line.text for line in lines]
        used = {name: constants[name] for name in CONSTANTS.findall(" ".join(first + body))}
        self._lines, self._used = [*once, *lines], used
        source = "\n  ".join([f"def bind(Changed, {', '.join(used)}):", *first, "def run():"])
        source = "\n    ".join([source, *body]) + "\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        with torch.no_grad():
            self._run: Callable[[], _Done] = scope["bind"](Changed, **used)
        self._changes = changes
        #: Equal for captures that do the same on the host to the same objects, as long as both programs are alive.
        self.identity = source + repr([x if isinstance(x, _BY_VALUE) else id(x) for x in used.values()])

    def _full(self, line: Line) -> str:
        """A line with its constants filled in: equal where the lines of two programs do the same."""

        def value(name: re.Match[str]) -> str:
            x = self._used[name[0]]
            return repr(x) if isinstance(x, _BY_VALUE) else f"@{id(x)}"

        return CONSTANTS.sub(value, line.text)

    def where_differs(self, other: "HostProgram") -> str:
        """The line of the user's program at which another capture took another path, as refusals name it; empty where
        that is not known."""
        for mine, its in zip(self._lines, other._lines):
            if self._full(mine) != other._full(its):
                return mine.site
        return ""

    def run(self) -> _Done | None:
        """Runs the lines. Returns the numbers for operators of the device, the tensors that go there, and the numbers
        that the step returns; or `None` where a guard failed. After `None` or an exception, `undo` is to be called."""
        self._changes.take()
        was = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # a fifth of the time that `no_grad` takes
        try:
            return self._run()
        except Changed:
            return None
        finally:
            torch._C._set_grad_enabled(was)

    def undo(self) -> None:
        """Takes back what the last run changed."""
        self._changes.undo()
