"""What a recorder of the host's part of a step writes down: lines of Python, and the numbers in them."""

import math
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torch_ltc import _ltc
from torch_ltc._awaited import AwaitedNumbers, LateProgram, cannot_fail
from torch_ltc._host_program import Line
from torch_ltc._host_values import same_zero
from torch_ltc._lent import LentNumbers, floats
from torch_ltc._names import here
from torch_ltc._plain import put_plain
from torch_ltc._traced import NUMBERS, TracedFloat, TracedInt, plain

#: What the host decides by numbers, as the device does.
_DECISIONS: dict[str, Callable[..., torch.Tensor]] = {
    "{} < {}": torch.lt,
    "{} <= {}": torch.le,
    "{} > {}": torch.gt,
    "{} >= {}": torch.ge,
    "{} == {}": torch.eq,
    "{} != {}": torch.ne,
    "bool({})": lambda x: x != 0,
}
#: Functions of C that only ask of what kind a float is, and what asks that on the device.
KIND_CHECKS: dict[Any, Callable[..., torch.Tensor]] = {
    math.isfinite: torch.isfinite,
    math.isinf: torch.isinf,
    math.isnan: torch.isnan,
}


class LineWriter(TorchFunctionMode):
    """Lines, and the numbers in them; see the module."""

    def __init__(self, lent: Sequence[tuple[dict[Any, Any], Any]]) -> None:
        super().__init__()
        #: Numbers that may change from step to step, by dict and key; what stands there while they are lent.
        self._lent = LentNumbers(lent)
        #: Numbers that the step puts in place of those that were lent, by dict and key.
        self._put: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: Why what the host does cannot be written down; empty where it can.
        self.obstacle = ""
        self._lines: list[Line] = []
        self._constants: dict[str, Any] = {}
        self._places: dict[int, str] = {}
        self._made: dict[int, tuple[str, torch.Tensor]] = {}
        self._handed: list[tuple[str, float]] = []
        self._open = True
        #: Numbers that are alive, and those that have to stay as they are.
        self._numbers: list[weakref.ref[TracedFloat]] = []
        #: Whole numbers that are alive.
        self._counts: list[TracedInt] = []
        #: Those that the step returns, by name.
        self._returned: list[tuple[str, float]] = []
        self._guarded: set[str] = set()
        self._ahead = False
        #: Numbers that are read off the device, where the program does not decide by them.
        self.awaited: AwaitedNumbers | None = None
        #: How much code runs that may ask for the class of a number.
        self._plain = 0

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The call that the step makes."""
        raise NotImplementedError

    def _take_back(self) -> None:
        """The numbers are plain ones again."""
        why = self._lent.take_back(self._replay_puts)
        self.obstacle = self.obstacle or why

    def _replay_puts(self, holder: dict[Any, Any], name: Any, number: Any) -> bool:
        """The step put this in place of a number that was lent to it, and replays do; whether they can."""
        if type(plain(number)) not in (int, float):
            return False
        put = self._constant(dict.__setitem__)
        text = f"{put}({self._constant(holder)}, {self._constant(name)}, {self._text(number)})"
        if self.awaited is not None and self.awaited.involves((number,)):
            self.awaited.put(holder, name, text)
            return True
        self._line(text, effect=True)
        self._put[id(holder), name] = (holder, name)
        return True

    def _read(self, awaited: AwaitedNumbers, func: Any, args: Any) -> float:
        """A number that is read off the device: a replay reads it when its program has run."""
        before = _ltc.capture_reads()
        value = self._run(func, args, {})
        _ltc.capture_keeps_reads(before)
        return self._awaits(value, awaited.read(args[0].detach().clone()))

    def _awaits(self, value: float, name: str) -> float:
        """A number that replays know when their program has run."""
        if type(value) is not int:
            return self._traced_float(value, name)
        return self._traced_int(value, name)

    def _traced_int(self, value: int, name: str) -> TracedInt:
        number: TracedInt = TracedInt(value, self, name)
        self._counts.append(number)
        return number

    def setting(self, group: dict[str, Any], name: str) -> Any:
        """Numbers of an optimiser that may change from step to step, read where they are at each replay."""
        line, value = self._line(f"{self._constant(group)}[{self._constant(name)}]"), group[name]
        if self.awaited is not None:
            self.awaited.is_read_again(group, name)
        if type(value) is int:
            return self._traced_int(value, line)
        lines = [self._line(f"{line}[{i}]") for i in range(len(value))] if type(value) is tuple else [line]
        # Handed over themselves, so that a change is noticed even where nothing that follows from it is.
        self._handed += zip(lines, floats(value), strict=True)
        traced = tuple(map(self._traced_float, floats(value), lines))
        return traced if type(value) is tuple else traced[0]

    def number(self, value: float, text: str, *operands: Any) -> float:
        """The number that ``text`` computes from its operands."""
        if not self._open:
            return value
        said = text.format(*map(self._text, operands))
        if self.awaited is not None and self.awaited.involves(operands):
            # What the host divides by is known before the program runs, and has to be something then.
            by_host = text == "{} / {}" and not self.awaited.involves(operands[1:]) and bool(plain(operands[1]))
            if by_host and type(operands[1]) in (TracedFloat, TracedInt):
                self._guard(f"bool({self._text(operands[1])})", True)
            elif not cannot_fail(text, operands):
                self.awaited.decides = True
                return value
            return self._awaits(value, self.awaited.line(said))
        line = self._line(said)
        return self._traced_int(value, line) if type(value) is int else self._traced_float(value, line)

    def expect(self, value: Any, text: str, *operands: Any) -> None:
        """A replay is right only if ``text`` gives this value again."""
        if self.awaited is not None and self.awaited.involves(operands):
            if self._open and (
                text not in _DECISIONS or self._decide_on_device(_DECISIONS[text], operands) is not value
            ):
                self.awaited.decides = True
        elif self._open:
            self._guard(text.format(*map(self._text, operands)), value)

    def _traced_float(self, value: float, name: str) -> float:
        number: TracedFloat = TracedFloat(value, self, name)
        if self._plain:
            self._guard_number(number)
            return value
        self._numbers.append(weakref.ref(number))
        if self._ahead:
            self._guard_number(number)
        return number

    def guard_held_numbers(self, ahead: bool = False) -> None:
        """A function that computes with floats is called, which does not tell what it is given: whatever number the
        step holds may be it; and whatever it will hold, too, where that is `ahead`."""
        for taken in self._lent.taken_from_tuples():
            self._guard_number(taken)
        alive = [number for ref in self._numbers if (number := ref()) is not None]
        self._numbers = [weakref.ref(number) for number in alive]
        while alive:
            number = alive.pop()
            if ahead or sys.getrefcount(number) > self._lent.held(id(number)):
                self._guard_number(number)
        self._ahead = self._ahead or ahead

    def _decide_on_device(self, function: Callable[..., torch.Tensor], operands: Sequence[Any]) -> bool | None:
        assert self.awaited is not None
        modes = torch._C._len_torch_function_stack()
        is_on = modes > 0 and torch._C._get_function_stack_at(modes - 1) is self
        return self.awaited.decide_on_device(function, operands, is_on)

    def guard_asked(self, function: Any, given: Any) -> None:
        """One of the functions is called that ask of what kind a float is: of this one, or of any that the step holds
        where it is not known of which."""
        alive = [n for ref in self._numbers if (n := ref()) is not None and sys.getrefcount(n) > self._lent.held(id(n))]
        # Another object may give one of them (`__float__`).
        is_known = type(given) in (*NUMBERS, TracedFloat, TracedInt)
        for number in ([given] if type(given) is TracedFloat else []) if is_known else alive:
            if self.awaited is None or not self.awaited.involves((number,)):
                self._guard(f"{self._constant(function)}({number._ltc_name})", function(plain(number)))
            elif self._decide_on_device(KIND_CHECKS[function], (number,)) is None:
                self.awaited.decides = True

    def _all_plain(self) -> None:
        """Numbers that somebody keeps, in a list or an attribute, are plain ones from here on, and have to stay as they
        are."""
        kept: list[TracedFloat | TracedInt] = []
        for ref in self._numbers:
            number = ref()
            # By the variable, and as an argument.
            if number is not None and sys.getrefcount(number) > 2:
                kept.append(number)
        # By this list, the variable, and as an argument.
        kept += [count for count in self._counts if sys.getrefcount(count) > 3]
        for one in kept:
            self._guard_number(one)
        put_plain(kept)

    def _guard_number(self, number: TracedFloat | TracedInt, why: str = "") -> None:
        if self.awaited is not None and self.awaited.involves((number,)):
            self.awaited.decides = True
        elif number._ltc_name not in self._guarded:
            self._guarded.add(number._ltc_name)
            self._guard(number._ltc_name, plain(number), why)

    def release_numbers(self) -> None:
        """What the step has put somewhere are plain numbers from here on."""
        alive = [number for ref in self._numbers if (number := ref()) is not None]
        put_plain(alive)
        # By this list, the variable, and as an argument: most are held by nobody else, and who holds one takes long to
        # find.
        put_plain([number for number in self._counts if sys.getrefcount(number) > 3])
        self._counts = []

    def return_number(self, number: TracedFloat | TracedInt) -> int:
        """A number that the step returns; its position among what the program tells."""
        if self.awaited is not None and self.awaited.involves((number,)):
            return self.awaited.return_number(number, plain(number))
        self._returned.append((number._ltc_name, plain(number)))
        return len(self._returned) - 1

    def late(self, first: int) -> LateProgram | None:
        """What a replay has to do when its program has run, of which a result by position is the first number that is
        read; `None` when that is nothing."""
        return self.awaited.program(self._constants, first, len(self._returned)) if self.awaited is not None else None

    @property
    def returned(self) -> list[float]:
        """Numbers that the step returns, as they were."""
        return [value for _, value in self._returned]

    @property
    def handed(self) -> list[float]:
        """Numbers handed to the device, as they were."""
        return [value for _, value in self._handed]

    def _guard(self, text: str, value: Any, why: str = "") -> None:
        differs = f"({text}) != {self._text(value)}"
        if type(value) is float and not value:
            differs = f"not {self._constant(same_zero)}({text}, {value})"
        self._lines.append(Line("", f"if {differs}: raise Changed", True, why + here()))

    def _line(self, text: str, effect: bool = False) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(Line(name, f"{name} = {text}", effect))
        return name

    def _constant(self, x: Any) -> str:
        if id(x) not in self._places:
            name = self._places[id(x)] = f"c{len(self._constants)}"
            self._constants[name] = x
        return self._places[id(x)]

    def _name(self, t: torch.Tensor) -> str:
        return self._made[id(t)][0] if id(t) in self._made else self._constant(t)

    def _text(self, x: Any) -> str:
        if type(x) in (TracedFloat, TracedInt):
            return str(x._ltc_name)
        if isinstance(x, torch.Tensor):
            return self._name(x)
        if type(x) is list:
            return f"[{', '.join(map(self._text, x))}]"
        if type(x) is tuple:
            return f"({''.join(self._text(y) + ', ' for y in x)})"
        if type(x) is dict:
            return f"{{{', '.join(f'{self._constant(k)}: {self._text(v)}' for k, v in x.items())}}}"
        return self._constant(x)
