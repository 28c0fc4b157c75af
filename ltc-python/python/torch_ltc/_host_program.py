"""What a replay does on the host: lines that a recorder wrote down (:mod:`torch_ltc._host`), ready to be taken back."""

import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc._again import Saved
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


def needed_lines(lines: list[Line], needed: set[str]) -> list[str]:
    """The lines that do something, or compute what is needed, in order."""
    kept = []
    for line in reversed(lines):
        if line.effect or line.target in needed:
            needed.update(_VALUES.findall(line.text))
            kept.append(line.text)
    return kept[::-1]


class Changed(Exception):
    """The host would go another way than when the step was captured."""


class HostProgram:
    """Lines that ran on the host, ready to run again. Undone, CPU tensors, schedules and generators are as if it had
    not run."""

    def __init__(
        self,
        body: Sequence[str],
        constants: dict[str, Any],
        changed: list[torch.Tensor],
        schedules: list[Any],
        generators: list[torch.Generator],
    ) -> None:
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        source = f"def bind(Changed, {', '.join(used)}):\n  def run():\n    " + "\n    ".join(body) + "\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[], _Done] = scope["bind"](Changed, **used)
        self._changed, self._before = changed, [t.clone() for t in changed]
        self._saved = Saved(schedules) if schedules else None
        self._generators, self._states = generators, [g.get_state() for g in generators]
        #: Equal for captures that do the same on the host to the same tensors; as long as both programs live.
        self.identity = source + repr([x if isinstance(x, _BY_VALUE) else id(x) for x in used.values()])

    def run(self) -> _Done | None:
        """Runs; returns the numbers it hands to the device, the tensors that it took there, and the numbers that the
        step returns. Where the host goes another way, which gives `None`, or raises, what it did is to be undone."""
        if self._changed:
            torch._foreach_copy_(self._before, self._changed)
        if self._saved is not None:
            self._saved.take()
        if self._generators:
            self._states = [g.get_state() for g in self._generators]
        try:
            with torch.no_grad():
                return self._run()
        except Changed:
            return None

    def undo(self) -> None:
        """Takes back what the last run did to CPU tensors."""
        if self._changed:
            torch._foreach_copy_(self._changed, self._before)
        if self._saved is not None:
            self._saved.restore()
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
