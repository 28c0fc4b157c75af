"""Awaited numbers: those that a step reads off the device and only computes with (``return loss.item()``).

A replay reads them when its program has run, and then computes what follows from them. So while a step is captured,
each is a traced number (`_traced.py`), and what is computed from it is noted on lines of its own, apart from those of
other host numbers, which run before the program (:class:`LateProgram`). Whole numbers are traced only where code just
keeps them (`_flows.py`). If the program decides by an awaited number, or hands it to an operator, no replay can go on
without it: then the step is captured again, and replays compare what is read with what the capture read.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from torch_ltc._traced import TracedFloat, TracedInt

#: Names in lines: constants, and numbers that the host computes before the program runs.
_CONSTANTS = re.compile(r"\bc\d+\b")
_EARLY = re.compile(r"\bv\d+\b")


#: Arithmetic that never raises, with two operands and with one. When the program has run, a replay cannot be taken back
#: any more, so nothing else is computed with awaited numbers.
_CANNOT_FAIL = frozenset(("{} + {}", "{1} + {0}", "{} - {}", "{1} - {0}", "{} * {}", "{1} * {0}"))
_OF_ONE = frozenset(("-{}", "+{}", "abs({})"))


def cannot_fail(text: str, operands: Sequence[Any]) -> bool:
    """Whether arithmetic never raises, whatever the awaited numbers among its operands are."""
    is_small = all(type(x) in (float, TracedFloat, TracedInt) or abs(x) < 1 << 53 for x in operands)
    quotient = text == "{} / {}" and type(operands[1]) in (int, float) and operands[1] != 0
    return text in _OF_ONE or (is_small and (text in _CANNOT_FAIL or quotient))


class AwaitedNumbers:
    """The numbers that a step reads off the device while it is captured."""

    def __init__(self) -> None:
        #: The tensors that are read, in order, with the values of that moment; they become results of the program.
        self.tensors: list[torch.Tensor] = []
        #: Whether the step cannot go on without knowing one of the numbers.
        self.decides = False
        #: The lines that compute what follows from them.
        self._lines: list[str] = []
        #: How many numbers there are; their names; and, by name, the tensors that numbers were read off directly.
        self._count = 0
        self._names: set[str] = set()
        self._read_off: dict[str, torch.Tensor] = {}
        #: The names and values of the numbers that the step returns.
        self.returned: list[tuple[str, float]] = []
        #: The places, as `(id(dict), key)`, into which lines put numbers.
        self._puts: set[tuple[int, Any]] = set()

    def involves(self, operands: Iterable[Any]) -> bool:
        """Whether one of the operands is an awaited number, or was computed from one."""
        return any(type(x) in (TracedFloat, TracedInt) and x._ltc_name in self._names for x in operands)

    def read(self, tensor: torch.Tensor) -> str:
        """Notes that a tensor is read; returns the name of the number."""
        name = self._name()
        self._lines.append(f"{name} = read[{len(self.tensors)}]")
        self.tensors.append(tensor)
        self._read_off[name] = tensor
        return name

    def decide_on_device(
        self, function: Callable[..., torch.Tensor], operands: Sequence[Any], is_seen: bool
    ) -> bool | None:
        """Computes a decision by awaited numbers on the device (`function` is the comparison there) and returns it.
        Replays then compare the decision, which is mostly the same, instead of the number. `None` where the device may
        decide otherwise: a number that was computed from an awaited one is rounded on the host. `is_seen`: the recorder
        is active and notes which host numbers go to the device."""
        there: list[Any] = []
        for x in operands:
            tensor = self._read_off.get(x._ltc_name) if type(x) is TracedFloat else None
            is_exact = type(x) is float or (type(x) in (bool, int) and abs(x) <= 1 << 53)
            if (
                tensor is None
                and not is_exact
                and not (is_seen and type(x) is TracedFloat and x._ltc_name not in self._names)
            ):
                return None
            there.append(x if tensor is None else tensor.double())
        return bool(function(*there).item())

    def line(self, text: str) -> str:
        """Notes a number that is computed from others by an expression; returns its name."""
        name = self._name()
        self._lines.append(f"{name} = {text}")
        return name

    def put(self, holder: dict[Any, Any], name: Any, text: str) -> None:
        """Notes a line that puts a number into a place."""
        self._lines.append(text)
        self._puts.add((id(holder), name))

    def is_read_again(self, holder: dict[Any, Any], name: Any) -> None:
        """Notes that the step reads a place: replays would put an awaited number there too late."""
        self.decides |= (id(holder), name) in self._puts

    def return_number(self, number: TracedFloat | TracedInt, value: float) -> int:
        """Notes a number that the step returns; returns `-1 - position` of it among those."""
        self.returned.append((number._ltc_name, value))
        return -len(self.returned)

    def host_numbers(self) -> list[str]:
        """The names of the host's numbers that occur in the lines."""
        return sorted(set(_EARLY.findall(" ".join(self._lines))))

    def program(self, constants: dict[str, Any], first: int, returned: int) -> "LateProgram | None":
        """What replays do with the numbers when their program has run; `None` where that is nothing. `first`: the
        position of the first number among the results of the program; `returned`: how many numbers the host part yields
        besides those that the lines need."""
        if not self.returned and not self._puts:
            return None
        where = range(first, first + len(self.tensors))
        host_numbers = [f"{name} = told[{returned + i}]" for i, name in enumerate(self.host_numbers())]
        body = [*host_numbers, *self._lines, f"return [{', '.join(name for name, _ in self.returned)}]"]
        return LateProgram(body, constants, where)

    def take(self) -> list[torch.Tensor]:
        """Returns the tensors that were read, and lets go of them."""
        taken, self.tensors = self.tensors, []
        self._read_off = {}
        return taken

    def _name(self) -> str:
        """A new name."""
        self._count += 1
        name = f"w{self._count}"
        self._names.add(name)
        return name


class LateProgram:
    """The lines of a capture that run when the program of a replay has run, since they use awaited numbers. `where`:
    the positions of these among the results of the program."""

    def __init__(self, body: Sequence[str], constants: dict[str, Any], where: range) -> None:
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        lines = "\n    ".join(body)
        source = f"def bind({', '.join(used)}):\n  def run(read, told):\n    {lines}\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[list[float], Sequence[float]], list[float]] = scope["bind"](**used)
        self._where = where
        #: Equal for captures whose lines do the same with the same results.
        self.identity = source + repr(
            [where, *[x if isinstance(x, (int, float, str)) else id(x) for x in used.values()]]
        )

    def run(self, results: Sequence[torch.Tensor], returned: Sequence[float] | None) -> list[float]:
        """Reads the awaited numbers off the results, runs the lines, and returns the numbers that the step returns."""
        return self._run([results[i].item() for i in self._where], returned or ())
