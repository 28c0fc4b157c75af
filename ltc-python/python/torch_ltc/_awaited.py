"""Awaited numbers: those that a step reads off the device and only computes with (``return loss.item()``).

A replay reads them when its program has run, and then computes what follows from them. So while a step is captured,
each is a traced number (`_traced.py`), and what is computed from it is noted on lines of its own, apart from those of
other host numbers, which run before the program (:class:`LateProgram`). Whole numbers are traced only where code just
keeps them (`_flows.py`). If the program decides by an awaited number, or hands it to an operator, no replay can go on
without it: then the step is captured again, and replays compare what is read with what the capture read.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from torch_ltc._runtime import on_device
from torch_ltc._traced import TracedFloat, TracedInt

#: Names in lines: constants, and numbers that the host computes before the program runs.
_CONSTANTS = re.compile(r"\bc\d+\b")
_EARLY = re.compile(r"\bv\d+\b")


#: Arithmetic that never raises, with two operands and with one. When the program has run, a replay cannot be taken back
#: any more, so nothing else is computed with awaited numbers.
_CANNOT_FAIL = frozenset(("{} + {}", "{1} + {0}", "{} - {}", "{1} - {0}", "{} * {}", "{1} * {0}"))
_OF_ONE = frozenset(("-{}", "+{}", "abs({})"))
#: Divisions, which raise where the divisor is zero, with the position of the divisor.
DIVISORS = {"{} / {}": 1, "{1} / {0}": 0}


def are_small(operands: Sequence[Any]) -> bool:
    """Whether no operand is too large a whole number for a float."""
    return all(type(x) in (float, TracedFloat, TracedInt) or abs(x) < 1 << 53 for x in operands)


def cannot_fail(text: str, operands: Sequence[Any]) -> bool:
    """Whether arithmetic never raises, whatever the awaited numbers among its operands are."""
    return text in _OF_ONE or (text in _CANNOT_FAIL and are_small(operands))


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
        self.kept = KeptReads()

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


_CPU = ("cpu", torch.device("cpu"))


def reads_by(func: Any, args: Any, kwargs: Any) -> str | None:
    """By which method of :class:`torch.Tensor` a call takes a tensor, or a copy of one on the CPU, off the device:
    `cpu`, `numpy`, `tolist` or `__float__`; `None` for any other call."""
    if func is torch.Tensor.to:
        targets = [*args[1:], *[x for name, x in kwargs.items() if name == "device"]]
        is_copy = len(targets) == 1 and type(targets[0]) in (str, torch.device) and targets[0] in _CPU
        return "cpu" if is_copy and kwargs.keys() <= {"device", "non_blocking"} else None
    if len(args) != 1 or kwargs:
        return None
    return next((f.__name__ for f in _READERS if func is f), None)


_READERS = (torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__float__)


def may_be_read_later(x: Any, by: str) -> bool:
    """Whether a replay can read a tensor by this method when its program has run, and give the same kind of object."""
    if type(x) is not torch.Tensor or not on_device(x) or x.layout is not torch.strided or x.is_conj() or x.is_neg():
        return False
    if by == "cpu":  # a copy with a history could be differentiated through
        return not (x.requires_grad and torch.is_grad_enabled()) and not vars(x)
    # A number could be any other one of the same value, but for a float.
    return x.dim() > 0 if by == "tolist" else x.numel() == 1 and not x.is_complex()


class KeptReads:
    """What a step reads off the device and only keeps, so that replays read it when their program has run: copies of
    tensors on the CPU, and arrays, lists and numbers of which code shows that it only returns them."""

    def __init__(self) -> None:
        #: The tensors that are read, with the values of that moment; they become results of the program.
        self.tensors: list[torch.Tensor] = []
        #: What was read, by identity: the object, the position of the tensor, and how it is read.
        self._kept: dict[int, tuple[Any, Read]] = {}

    def add(self, found: Any, read: "Read") -> Any:
        """Notes that this object was read, and returns it."""
        self._kept[id(found)] = (found, read._replace(number=len(self._kept)))
        return found

    def how(self, x: Any) -> "Read | None":
        """How an object was read; `None` for one that was not."""
        found = self._kept.get(id(x))
        return found[1] if found is not None and found[0] is x else None

    def take(self) -> list[torch.Tensor]:
        """Returns the tensors that were read, and lets go of them and of what was read."""
        taken, self.tensors, self._kept = self.tensors, [], {}
        return taken


class Read(NamedTuple):
    """How an object is read off a result: the position of the result among those that are read, by which method of
    :class:`torch.Tensor`, whether in inference mode, and a number that tells it from other objects."""

    at: int
    by: str
    in_inference_mode: bool
    number: int = 0

    def of(self, known: dict[Any, Any], results: Sequence[torch.Tensor], first: int) -> Any:
        """Reads the object, or finds it among those that are `known` since they were read before. `first`: the position
        of the first result that is read."""
        result = results[first + self.at]
        if self.by in ("cpu", "numpy") and self.at not in known:
            with torch.inference_mode(self.in_inference_mode):
                known[self.at] = result.cpu()
        if self.by == "cpu":
            return known[self.at]
        if (self.by, self.number) not in known:
            known[self.by, self.number] = getattr(known[self.at] if self.by == "numpy" else result, self.by)()
        return known[self.by, self.number]


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
