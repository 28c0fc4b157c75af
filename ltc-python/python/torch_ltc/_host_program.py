"""What a replay does on the host: lines that a recorder wrote down (:mod:`torch_ltc._host`), ready to be taken back."""

import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc._again import SavedState
from torch_ltc._traced import NUMBERS

#: Compared by what they print where captures are compared (a getter prints whose it is); all else by identity.
_BY_VALUE = (
    *(*NUMBERS, complex, str, bytes, type(None), slice, types.EllipsisType, types.MethodWrapperType),
    *(torch.Size, torch.device, torch.dtype, torch.layout, torch.memory_format),
)

_Done = tuple[list[float], list[torch.Tensor], list[float]]

_CONSTANTS = re.compile(r"\bc\d+\b")


_VALUES = re.compile(r"\bv\d+\b")


class Line(NamedTuple):
    """What a recorder wrote down."""

    target: str
    text: str  # of names and operators only
    effect: bool
    site: str = ""  # of what decides which way the host goes, as messages name it


def needed_lines(lines: list[Line], needed: set[str]) -> list[Line]:
    """The lines that do something, or compute what is needed, in order."""
    kept = []
    for line in reversed(lines):
        if line.effect or line.target in needed:
            needed.update(_VALUES.findall(line.text))
            kept.append(line)
    return kept[::-1]


class Changed(Exception):
    """The host would go another way than when the step was captured."""


class HostChanges:
    """What lines change, so that it can be as it was before they ran: CPU tensors, schedules, states of generators, and
    numbers in places, by dict and key."""

    def __init__(
        self,
        tensors: list[torch.Tensor],
        schedules: list[Any],
        generators: list[torch.Generator],
        places: list[tuple[dict[Any, Any], Any]],
    ) -> None:
        self._tensors, self._copies = tensors, [t.clone() for t in tensors]
        self._schedules = SavedState(schedules) if schedules else None
        self._generators, self._states = generators, [g.get_state() for g in generators]
        self._places, self._numbers = places, [holder.get(name) for holder, name in places]

    def take(self) -> None:
        """Takes down how it is now."""
        if self._tensors:
            torch._foreach_copy_(self._copies, self._tensors)
        if self._schedules is not None:
            self._schedules.take()
        if self._generators:
            self._states = [g.get_state() for g in self._generators]
        if self._places:
            self._numbers = [holder.get(name) for holder, name in self._places]

    def undo(self) -> None:
        """All is again as it was."""
        if self._tensors:
            torch._foreach_copy_(self._tensors, self._copies)
        if self._schedules is not None:
            self._schedules.restore()
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
        for (holder, name), number in zip(self._places, self._numbers):
            holder[name] = number


class HostProgram:
    """Lines that ran on the host, ready to run again. Undone, what they change is as if they had not run."""

    def __init__(self, lines: Sequence[Line], constants: dict[str, Any], changes: HostChanges) -> None:
        body = [line.text for line in lines]
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        self._lines, self._used = lines, used
        source = f"def bind(Changed, {', '.join(used)}):\n  def run():\n    " + "\n    ".join(body) + "\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[], _Done] = scope["bind"](Changed, **used)
        self._changes = changes
        #: Equal for captures that do the same on the host to the same tensors; as long as both programs live.
        self.identity = source + repr([x if isinstance(x, _BY_VALUE) else id(x) for x in used.values()])

    def _full(self, line: Line) -> str:
        """A line with its constants: equal where two programs do the same in it."""

        def value(name: re.Match[str]) -> str:
            x = self._used[name[0]]
            return repr(x) if isinstance(x, _BY_VALUE) else f"@{id(x)}"

        return _CONSTANTS.sub(value, line.text)

    def where_differs(self, other: "HostProgram") -> str:
        """The line of the program at which another capture went another way, as messages name it; empty where that is
        not known."""
        for mine, its in zip(self._lines, other._lines):
            if self._full(mine) != other._full(its):
                return mine.site
        return ""

    def run(self) -> _Done | None:
        """Runs; returns the numbers it hands to the device, the tensors that it took there, and the numbers that the
        step returns. Where the host goes another way, which gives `None`, or raises, what it did is to be undone."""
        self._changes.take()
        try:
            with torch.no_grad():
                return self._run()
        except Changed:
            return None

    def undo(self) -> None:
        """Takes back what the last run did."""
        self._changes.undo()
