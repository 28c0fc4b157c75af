"""Numbers that the host reads off the device and only computes with (``loss.item()``, returned or summed up): a replay
reads them when its program has run, and then computes what follows from them.

While a step is captured each is a number that remembers what becomes of it (:mod:`torch_ltc._traced`), like those of
the host, but on lines of its own; whole numbers are where code only keeps them (:mod:`torch_ltc._flows`). Where the
program decides by one, or hands it to an operator, no replay can go on without it: such steps are captured again with
their reads compared.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from torch_ltc._traced import TracedFloat, TracedInt

_CONSTANTS = re.compile(r"\bc\d+\b")
_EARLY = re.compile(r"\bv\d+\b")


#: What is computed with numbers of the device and never fails: a replay cannot be taken back any more.
_CANNOT_FAIL = frozenset(("{} + {}", "{1} + {0}", "{} - {}", "{1} - {0}", "{} * {}", "{1} * {0}"))
_OF_ONE = frozenset(("-{}", "+{}", "abs({})"))


def cannot_fail(text: str, operands: Sequence[Any]) -> bool:
    """Whether arithmetic never raises, whatever its numbers are."""
    is_small = all(type(x) in (float, TracedFloat, TracedInt) or abs(x) < 1 << 53 for x in operands)
    quotient = text == "{} / {}" and type(operands[1]) in (int, float) and operands[1] != 0
    return text in _OF_ONE or (is_small and (text in _CANNOT_FAIL or quotient))


class AwaitedNumbers:
    """The numbers that a step reads off the device while it is captured."""

    def __init__(self) -> None:
        #: What is read, as it is then.
        self.tensors: list[torch.Tensor] = []
        #: Whether the program cannot go on without knowing one.
        self.decides = False
        self._lines: list[str] = []
        self._count = 0
        self._names: set[str] = set()
        self._read_off: dict[str, torch.Tensor] = {}
        #: Those that the step returns or leaves, with their values.
        self.returned: list[tuple[str, float]] = []
        self._puts: set[tuple[int, Any]] = set()

    def involves(self, operands: Iterable[Any]) -> bool:
        """Whether one of these is among the numbers, or follows from them."""
        return any(type(x) in (TracedFloat, TracedInt) and x._ltc_name in self._names for x in operands)

    def read(self, tensor: torch.Tensor) -> str:
        """The name of a number that is read off a tensor."""
        name = self._name()
        self._lines.append(f"{name} = read[{len(self.tensors)}]")
        self.tensors.append(tensor)
        self._read_off[name] = tensor
        return name

    def decide_on_device(
        self, function: Callable[..., torch.Tensor], operands: Sequence[Any], is_seen: bool
    ) -> bool | None:
        """What a function says of numbers of which one is read off the device: it is computed there, and replays
        compare what it says in place of the number. `None` where that is not known to be the same: what follows from
        such a number the host rounds by itself. `is_seen`: the recorder sees which numbers of the host go there."""
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
        """The name of a number that is computed from others."""
        name = self._name()
        self._lines.append(f"{name} = {text}")
        return name

    def put(self, holder: dict[Any, Any], name: Any, text: str) -> None:
        """A number is put into a place, by this line."""
        self._lines.append(text)
        self._puts.add((id(holder), name))

    def is_read_again(self, holder: dict[Any, Any], name: Any) -> None:
        """What stands in a place is read while the step runs: replays put it there later."""
        self.decides |= (id(holder), name) in self._puts

    def return_number(self, number: TracedFloat | TracedInt, value: float) -> int:
        """A number that the step returns; its position among those, counted back from -1."""
        self.returned.append((number._ltc_name, value))
        return -len(self.returned)

    def host_numbers(self) -> list[str]:
        """Names of numbers of the host that these are computed with."""
        return sorted(set(_EARLY.findall(" ".join(self._lines))))

    def program(self, constants: dict[str, Any], first: int, returned: int) -> "LateProgram | None":
        """What replays do with the numbers, of which the first is a result of the program by position, and so many are
        told of the host's own."""
        if not self.returned and not self._puts:
            return None
        where = range(first, first + len(self.tensors))
        host_numbers = [f"{name} = told[{returned + i}]" for i, name in enumerate(self.host_numbers())]
        body = [*host_numbers, *self._lines, f"return [{', '.join(name for name, _ in self.returned)}]"]
        return LateProgram(body, constants, where)

    def take(self) -> list[torch.Tensor]:
        """What is read, which is held no longer."""
        taken, self.tensors = self.tensors, []
        self._read_off = {}
        return taken

    def _name(self) -> str:
        self._count += 1
        name = f"w{self._count}"
        self._names.add(name)
        return name


class LateProgram:
    """Lines that run when the program of a replay has run."""

    def __init__(self, body: Sequence[str], constants: dict[str, Any], where: range) -> None:
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        lines = "\n    ".join(body)
        source = f"def bind({', '.join(used)}):\n  def run(read, told):\n    {lines}\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[list[float], Sequence[float]], list[float]] = scope["bind"](**used)
        self._where = where
        #: Equal for captures that do the same with the same results.
        self.identity = source + repr(
            [where, *[x if isinstance(x, (int, float, str)) else id(x) for x in used.values()]]
        )

    def run(self, results: Sequence[torch.Tensor], returned: Sequence[float] | None) -> list[float]:
        """The numbers that the step returns, when it has done the rest."""
        return self._run([results[i].item() for i in self._where], returned or ())
