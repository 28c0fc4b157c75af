"""The lines of Python that a captured step runs on the host, and what is left out of them.

The host recorder (`_host.py`) notes a line for each call. An optimiser reads one step count for each of its two
exponents, and makes the same constant at each call; :func:`arranged` has both done once.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from torch_ltc._traced import NUMBERS

#: The names of constants and of variables in lines.
CONSTANTS = re.compile(r"\bc\d+\b")
VALUES = re.compile(r"\bv\d+\b")
#: A call that reads a number off a CPU tensor, if its function is `Tensor.item`; and a call with constants only.
_READ = re.compile(r"(c\d+)\([cv]\d+\)")
_OF_CONSTANTS = re.compile(r"(c\d+)\(((?:\w+=)?c\d+(?:, (?:\w+=)?c\d+)*)\)")
#: A call of a function whose name says whether it keeps what it is given.
_CALL = re.compile(r"(c\d+)\(")
#: Classes of values of which :func:`torch.tensor` makes the same tensor at each call.
_PLAIN = (*NUMBERS, str, torch.device, torch.dtype)


class Line(NamedTuple):
    """A line of Python that the recorder noted."""

    #: The variable that it sets; empty for a guard.
    target: str
    #: Its text, of names and operators only.
    text: str
    #: Whether it is kept even if nothing uses its variable.
    effect: bool
    #: The line of the program at which a guard was noted, as refusals name it.
    site: str = ""

    def expression(self) -> str:
        """What the line computes, if it sets a variable."""
        return self.text.partition(" = ")[2]


def needed_lines(lines: list[Line], needed: set[str]) -> list[Line]:
    """The lines that have an effect, or compute one of the variables in `needed` or what these need; in order."""
    kept = []
    for line in reversed(lines):
        if line.effect or line.target in needed:
            needed.update(VALUES.findall(line.text))
            kept.append(line)
    return kept[::-1]


def _without_repeats(lines: list[Line], constants: dict[str, Any]) -> list[Line]:
    """The lines without those that compute a number which an earlier one computed: the same arithmetic, or a read of
    the same tensor with no effect in between."""
    names: dict[str, str] = {}
    computed: dict[str, str] = {}
    read: dict[str, str] = {}
    kept = []
    for line in lines:
        line = line._replace(text=VALUES.sub(lambda name: names.get(name[0], name[0]), line.text))
        known, expression = None, line.expression()
        if line.effect and line.target:
            read.clear()
        elif line.target and "(" not in expression and "[" not in expression:
            known = computed
        elif (call := _READ.fullmatch(expression)) is not None and constants[call[1]] is torch.Tensor.item:
            known = read
        if known is not None and (first := known.setdefault(expression, line.target)) != line.target:
            names[line.target] = first
        else:
            kept.append(line)
    return kept


def _only_compute(name: str, lines: list[Line], constants: dict[str, Any]) -> bool:
    """Whether all lines that use a variable are calls of functions that keep no tensor and return none that they are
    given: sums of lists and the like."""
    calls = [_CALL.match(line.expression()) for line in lines if name in VALUES.findall(line.expression())]
    return all(c is not None and getattr(constants[c[1]], "__name__", "").startswith("_foreach_") for c in calls)


def _made_once(lines: list[Line], constants: dict[str, Any], kept: set[str]) -> tuple[list[Line], list[Line]]:
    """The lines that make a tensor of a plain number which nothing writes, and all others. `kept`: the variables of
    tensors that no line writes."""
    once: list[Line] = []
    for line in lines:
        call = _OF_CONSTANTS.fullmatch(line.expression())
        if line.effect or line.target not in kept or call is None or constants[call[1]] is not torch.tensor:
            continue
        plain = all(type(constants[name]) in _PLAIN for name in CONSTANTS.findall(call[2]))
        once += [line] if plain and _only_compute(line.target, lines, constants) else []
    return once, [line for line in lines if line not in once]


def arranged(
    lines: list[Line], constants: dict[str, Any], made: Iterable[tuple[str, torch.Tensor]]
) -> tuple[list[Line], list[Line]]:
    """The lines that run once, when the program is made, and those that each replay runs. `made`: the CPU tensors that
    lines make, as the capture left them."""
    kept = {name for name, t in made if not t.is_inference() and t._version == 0}
    return _made_once(_without_repeats(lines, constants), constants, kept)
