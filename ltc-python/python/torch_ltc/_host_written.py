"""The lines of Python that repeat what a captured step computes on the host, and the traced numbers in them.

:class:`LineWriter` is the half of the recorder (`_host.py`) that deals with numbers. Each traced number (`_traced.py`)
has a variable, `v0`, `v1` and so on, that a line computes; objects that lines use are constants, `c0`, `c1` and so on.
Where the value of a number matters (a decision, or C code that may read it), a line is a *guard*: it ends the replay if
the value differs. Numbers that are read off the device are :class:`torch_ltc._awaited.AwaitedNumbers`, with lines that
run after the program.
"""

import ctypes
import math
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torch_ltc import _ltc
from torch_ltc._awaited import (
    DIVISORS,
    AwaitedNumbers,
    LateProgram,
    Read,
    are_small,
    cannot_fail,
    may_be_read_later,
    reads_by,
)
from torch_ltc._changing_numbers import LentNumbers, floats
from torch_ltc._flows import is_only_passed_on
from torch_ltc._host_lines import Line
from torch_ltc._host_values import same_zero
from torch_ltc._known import NOTHING, is_of_torch
from torch_ltc._names import here
from torch_ltc._plain import put_plain
from torch_ltc._runtime import is_tensor
from torch_ltc._traced import NUMBERS, TracedFloat, TracedInt, plain, release

#: Decisions by numbers, as the text of a line, and the same on the device.
_DECISIONS: dict[str, Callable[..., torch.Tensor]] = {
    "{} < {}": torch.lt,
    "{} <= {}": torch.le,
    "{} > {}": torch.gt,
    "{} >= {}": torch.ge,
    "{} == {}": torch.eq,
    "{} != {}": torch.ne,
    "bool({})": lambda x: x != 0,
}
#: C functions that only ask of what kind a float is, and the same on the device.
KIND_CHECKS: dict[Any, Callable[..., torch.Tensor]] = {
    math.isfinite: torch.isfinite,
    math.isinf: torch.isinf,
    math.isnan: torch.isnan,
}


class LineWriter(TorchFunctionMode):
    """Writes lines, and makes the traced numbers in them; see the module. `lent`: the places, as `(dict, key)`, of
    numbers that may differ from call to call; `arguments`: the dict among them that holds arguments of the step."""

    def __init__(self, lent: Sequence[tuple[dict[Any, Any], Any]], arguments: dict[Any, float] | None = None) -> None:
        super().__init__()
        self._lent = LentNumbers(lent, arguments)
        #: The places into which lines put numbers, as `(dict, key)` by `(id(dict), key)`.
        self._put: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: Why what the host does cannot be repeated by lines; empty where it can.
        self.obstacle = ""
        self._lines: list[Line] = []
        #: Constants by name, and their names by identity.
        self._constants: dict[str, Any] = {}
        self._places: dict[int, str] = {}
        #: The CPU tensors that lines make, with their variables, by identity.
        self._made: dict[int, tuple[str, torch.Tensor]] = {}
        #: The numbers that operators of the device are given, with their variables: replays bind the present values.
        self._handed: list[tuple[str, float]] = []
        #: False once the step has ended: numbers that outlive it are not traced on.
        self._open = True
        #: The traced floats that are alive (or were), and the traced whole numbers.
        self._numbers: list[weakref.ref[TracedFloat]] = []
        self._counts: list[TracedInt] = []
        #: The numbers that the step returns, with their variables.
        self._returned: list[tuple[str, float]] = []
        #: The variables of numbers that are guarded already.
        self._guarded: set[str] = set()
        #: Whether each new number is guarded at once, since C code may read it without an event.
        self._ahead = False
        #: The numbers that are read off the device; `None` where replays compare what is read instead.
        self.awaited: AwaitedNumbers | None = None
        #: Whether an object was there before the step; set by the run.
        self.is_older: Callable[[Any], bool] = lambda _: True
        #: Whether code of the step would meet an exception that a frame raises; set by the run.
        self.is_met: Callable[[types.FrameType], bool] = lambda _: False
        #: Called with what was read off the device and is only kept; set by the run.
        self.on_kept: Callable[[Any], None] = lambda _: None
        #: How many frames run that may ask for the class of a number: while there are any, numbers are plain.
        self._plain = 0
        #: Whether the step is refused, so that nothing more is noted.
        self._is_refused = False

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Makes the call that the step makes."""
        raise NotImplementedError

    def _take_back(self) -> None:
        """Puts plain numbers back in place of those that were lent."""
        why = self._lent.take_back(self._replay_puts)
        self.obstacle = self.obstacle or why

    def _replay_puts(self, holder: dict[Any, Any], name: Any, number: Any) -> bool:
        """Notes a line that puts a number into a place, as the step did. Returns whether replays can do so: it has to
        be a number."""
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
        """Makes a call of `item()`, and returns an awaited number. The read is taken out of those that replays
        compare."""
        before = _ltc.capture_reads()
        value = self._run(func, args, {})
        _ltc.capture_keeps_reads(before)
        return self._awaits(value, awaited.read(args[0].detach().clone()))

    def _keep(self, func: Any, args: Any, kwargs: Any, frame: types.FrameType) -> Any:
        """Makes a call that reads a tensor off the device if replays can read it when their program has run, and
        returns what was read; :data:`NOTHING` for any other call. A copy on the CPU has to be left alone from then on;
        of anything else `frame`, which makes the call, has to show that it only returns or appends it."""
        awaited = self.awaited
        x: Any = args[0] if args else None
        if awaited is None or (by := reads_by(func, args, kwargs)) is None or self.is_met(frame):
            return NOTHING
        copy = awaited.kept.how(x)
        if by != "cpu" and not is_only_passed_on(frame, by.replace("__float__", "float"), self.is_older):
            return NOTHING
        if copy is not None:
            return (
                self._kept(awaited, self._run(func, args, kwargs), copy._replace(by=by)) if by == "numpy" else NOTHING
            )
        if by == "numpy" or not may_be_read_later(x, by):
            return NOTHING
        before = _ltc.capture_reads()
        found = self._run(func, args, kwargs)
        _ltc.capture_keeps_reads(before)
        awaited.kept.tensors.append(x.detach().clone())
        return self._kept(awaited, found, Read(len(awaited.kept.tensors) - 1, by, torch.is_inference_mode_enabled()))

    def _kept(self, awaited: AwaitedNumbers, found: Any, read: Read) -> Any:
        """Notes what was read off the device and is only kept, and returns it."""
        self.on_kept(found)
        return awaited.kept.add(found, read)

    def _awaits(self, value: float, name: str) -> float:
        """A traced number whose value replays know when their program has run."""
        if type(value) is not int:
            return self._traced_float(value, name)
        return self._traced_int(value, name)

    def _traced_int(self, value: int, name: str) -> int:
        """A traced whole number whose variable has this name; a plain one, with a guard, where numbers have to be
        plain."""
        number: TracedInt = TracedInt(value, self, name)
        if self._plain:
            self._guard_number(number)
            return value
        self._counts.append(number)
        return number

    def setting(self, group: dict[str, Any], name: str) -> Any:
        """What is lent in a place: a traced number, or a tuple of some, which a line reads there in each replay."""
        line, value = self._line(f"{self._constant(group)}[{self._constant(name)}]"), group[name]
        if self.awaited is not None:
            self.awaited.is_read_again(group, name)
        if type(value) is int:
            return self._traced_int(value, line)
        lines = [self._line(f"{line}[{i}]") for i in range(len(value))] if type(value) is tuple else [line]
        # The numbers themselves are handed to the device, so that two captures show whether one has changed, even if
        # nothing that is computed from it is handed over.
        self._handed += zip(lines, floats(value), strict=True)
        traced = tuple(map(self._traced_float, floats(value), lines))
        return traced if type(value) is tuple else traced[0]

    def number(self, value: float, text: str, *operands: Any) -> float:
        """The traced number that a line computes: `text` is its expression, with the operands as fields."""
        if not self._open:
            return value
        said = text.format(*map(self._text, operands))
        if self.awaited is not None and self.awaited.involves(operands):
            if not cannot_fail(text, operands) and not self._divides(text, operands):
                self.awaited.decides = True
                return value
            return self._awaits(value, self.awaited.line(said))
        line = self._line(said)
        return self._traced_int(value, line) if type(value) is int else self._traced_float(value, line)

    def _divides(self, text: str, operands: Sequence[Any]) -> bool:
        """Whether this is a division that does not fail in replays either, which compare that the divisor is not zero.
        One of the host's is known before the program runs; of an awaited one the device tells."""
        assert self.awaited is not None
        if text not in DIVISORS or not are_small(operands) or not plain(divisor := operands[DIVISORS[text]]):
            return False
        if self.awaited.involves((divisor,)):
            return bool(self._decide_on_device(lambda x: x != 0, (divisor,)))
        if type(divisor) in (TracedFloat, TracedInt):
            self._guard(f"bool({self._text(divisor)})", True)
        return True

    def expect(self, value: Any, text: str, *operands: Any) -> None:
        """Notes a guard: a replay is right only if the expression `text` gives this value again."""
        if self.awaited is not None and self.awaited.involves(operands):
            if self._open and (
                text not in _DECISIONS or self._decide_on_device(_DECISIONS[text], operands) is not value
            ):
                self.awaited.decides = True
        elif self._open:
            self._guard(text.format(*map(self._text, operands)), value)

    def _traced_float(self, value: float, name: str) -> float:
        """A traced float whose variable has this name; a plain one, with a guard, where numbers have to be plain."""
        number: TracedFloat = TracedFloat(value, self, name)
        if self._plain:
            self._guard_number(number)
            return value
        self._numbers.append(weakref.ref(number))
        if self._ahead:
            self._guard_number(number)
        return number

    def guard_held_numbers(self, ahead: bool = False) -> None:
        """Guards every number that the step holds: a C function that computes with floats is called, and the event does
        not tell which it is given. With `ahead`, guards the numbers that the step comes to hold later, too."""
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
        """See :meth:`torch_ltc._awaited.AwaitedNumbers.decide_on_device`."""
        assert self.awaited is not None
        modes = torch._C._len_torch_function_stack()
        is_on = modes > 0 and torch._C._get_function_stack_at(modes - 1) is self
        is_on = is_on and torch._C._is_torch_function_mode_enabled()
        return self.awaited.decide_on_device(function, operands, is_on)

    def guard_asked(self, function: Any, given: Any) -> None:
        """Guards what one of the `KIND_CHECKS` answers: for the float that it is given, or for every float that the
        step holds where code does not show which one that is."""
        alive = [n for ref in self._numbers if (n := ref()) is not None and sys.getrefcount(n) > self._lent.held(id(n))]
        # An argument of another class may yield any of them (`__float__`).
        is_known = type(given) in (*NUMBERS, TracedFloat, TracedInt)
        for number in ([given] if type(given) is TracedFloat else []) if is_known else alive:
            if self.awaited is None or not self.awaited.involves((number,)):
                self._guard(f"{self._constant(function)}({number._ltc_name})", function(plain(number)))
            elif self._decide_on_device(KIND_CHECKS[function], (number,)) is None:
                self.awaited.decides = True

    def _all_plain(self) -> None:
        """Replaces the traced numbers that something holds (a list, an attribute) by plain ones, and guards them."""
        kept: list[TracedFloat | TracedInt] = []
        for ref in self._numbers:
            number = ref()
            # Two references are ours: the variable, and the argument of `getrefcount`.
            if number is not None and sys.getrefcount(number) > 2:
                kept.append(number)
        # Three are: the list, the variable, and the argument.
        kept += [count for count in self._counts if sys.getrefcount(count) > 3]
        for one in kept:
            self._guard_number(one)
        put_plain(kept)
        self._counts = [count for count in self._counts if type(count) is TracedInt]  # it held them, too

    def put_plain_in(self, frame: types.FrameType, were: dict[int, Any]) -> None:
        """Puts plain numbers in the place of traced ones in the variables of a frame, and guards them. `were`: which
        numbers those are, by identity, where they have to be these objects."""
        for name, number in frame.f_locals.items():
            if type(number) in (TracedFloat, TracedInt):
                self._guard_number(number)
                frame.f_locals[name] = were.get(id(number), plain(number))
                if sys.version_info < (3, 13):  # where `f_locals` is a copy
                    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    def end_tracing(self) -> None:
        """The step is refused. From here on all numbers are plain: nothing looks at the code any more that it calls,
        which may look closely at them (a file that it writes)."""
        self._is_refused = True
        were = self._lent.were()
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") != "torch_ltc._run":
            if not is_of_torch(frame.f_globals.get("__name__") or ""):
                self.put_plain_in(frame, were)
            frame = frame.f_back
        self._take_back()
        if not self._plain:
            self._all_plain()
        self._plain += 1

    def _guard_number(self, number: TracedFloat | TracedInt, why: str = "") -> None:
        """Notes a guard that a number has the value that it has now; `why` is a hint for the refusal."""
        if self.awaited is not None and self.awaited.involves((number,)):
            self.awaited.decides = True
        elif number._ltc_name not in self._guarded:
            self._guarded.add(number._ltc_name)
            self._guard(number._ltc_name, plain(number), why)

    def release_numbers(self) -> None:
        """Replaces the traced numbers that the step has put somewhere by plain ones, when it has ended. What something
        holds still is no longer traced."""
        alive: list[Any] = [number for ref in self._numbers if (number := ref()) is not None]
        put_plain(alive)
        # Three references are ours (see above). Most numbers are held by nothing else, and finding a holder takes long.
        counts = [number for number in self._counts if sys.getrefcount(number) > 3]
        put_plain(counts)
        self._numbers, self._counts = [], []
        for number in alive + counts:
            release(number)

    def return_number(self, number: TracedFloat | TracedInt) -> int:
        """Notes a number that the step returns; returns its position among those, or `-1 - position` among the awaited
        numbers that are returned."""
        if self.awaited is not None and self.awaited.involves((number,)):
            return self.awaited.return_number(number, plain(number))
        self._returned.append((number._ltc_name, plain(number)))
        return len(self._returned) - 1

    def late(self, first: int) -> LateProgram | None:
        """What a replay has to do when its program has run; `None` where that is nothing. `first`: the position of the
        first awaited number among the results of the program."""
        return self.awaited.program(self._constants, first, len(self._returned)) if self.awaited is not None else None

    @property
    def returned(self) -> list[float]:
        """The numbers of the host that the step returns, with the values of this call."""
        return [value for _, value in self._returned]

    @property
    def handed(self) -> list[float]:
        """The numbers that operators of the device are given, with the values of this call."""
        return [value for _, value in self._handed]

    def _guard(self, text: str, value: Any, why: str = "") -> None:
        """Notes a line that ends a replay unless an expression gives this value."""
        differs = f"({text}) != {self._text(value)}"
        if type(value) is float and not value:
            differs = f"not {self._constant(same_zero)}({text}, {value})"
        self._lines.append(Line("", f"if {differs}: raise Changed", True, why + here()))

    def _line(self, text: str, effect: bool = False) -> str:
        """Notes a line that computes an expression; returns its variable. `effect`: it does more than compute."""
        name = f"v{len(self._lines)}"
        self._lines.append(Line(name, f"{name} = {text}", effect))
        return name

    def _constant(self, x: Any) -> str:
        """The name of an object that lines use."""
        if id(x) not in self._places:
            name = self._places[id(x)] = f"c{len(self._constants)}"
            self._constants[name] = x
        return self._places[id(x)]

    def _name(self, t: torch.Tensor) -> str:
        """What a CPU tensor is called in lines: the variable of the line that made it, or a constant."""
        return self._made[id(t)][0] if id(t) in self._made else self._constant(t)

    def _text(self, x: Any) -> str:
        """What a value is called in lines; containers by their members."""
        if type(x) in (TracedFloat, TracedInt) and x._ltc_recorder is self:
            return str(x._ltc_name)
        if is_tensor(x):
            return self._name(x)
        if type(x) is list:
            return f"[{', '.join(map(self._text, x))}]"
        if type(x) is tuple:
            return f"({''.join(self._text(y) + ', ' for y in x)})"
        if type(x) is dict:
            return f"{{{', '.join(f'{self._constant(k)}: {self._text(v)}' for k, v in x.items())}}}"
        if type(x) is slice:
            return f"slice({self._text(x.start)}, {self._text(x.stop)}, {self._text(x.step)})"
        return self._constant(x)
