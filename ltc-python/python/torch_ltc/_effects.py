"""Shows from bytecode that a method or function changes nothing but the object that it is a method of.

`_again.py` asks this of code that a user gave to a learning rate schedule: a replay calls it again, and may have to
take it back, which works only if all that it changes is the schedule. Allowed are arithmetic, comparisons,
comprehensions, reading names and attributes, setting attributes of `self`, and calls of a few builtin functions, of
those of :mod:`math`, and of methods of `self` for which the same is shown. Reading an attribute or an item, iterating
over what is no iterator, and arithmetic are taken to change nothing, whatever the class. This module also has
:func:`instructions`, the bytecode in the form that `_counters.py` and `_flows.py` read.
"""

import builtins
import cmath
import dis
import functools
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

_PURE = tuple(
    getattr(builtins, name)
    for name in """abs all any bool complex divmod enumerate float int isinstance len list max min pow range reversed
    round sum super tuple zip""".split()
)
_MODULES = (math, cmath)
#: Instructions, by name and by the beginning of their names, that change what others see, or may run any code.
_CHANGES = ("STORE_GLOBAL", "STORE_SUBSCR", "STORE_SLICE", "STORE_NAME", "STORE_DEREF", "LOAD_BUILD_CLASS")
_CHANGES_BEGIN = ("DELETE_", "IMPORT_", "YIELD_", "SEND", "GET_A", "BEFORE_WITH", "LOAD_SPECIAL", "SETUP_")
#: Instructions by which code calls what it does not name, calls with keywords included (`max(key=...)`).
_UNKNOWN = ("PUSH_NULL", "CALL_FUNCTION_EX", "CALL_KW", "KW_NAMES")
#: Instructions that do nothing.
_NOTHING = ("CACHE", "NOP", "EXTENDED_ARG", "PRECALL", "NOT_TAKEN")
#: Whether what is called is loaded after the ``PUSH_NULL`` (until Python 3.12), or before it.
_CALLED_AFTER = sys.version_info < (3, 13)


def changes(function: Any, owner: type | None, relied_on: list[tuple[str, Any, Any]]) -> str:
    """Why calls of a function may change something; empty where it is shown that they do not. `owner`: the class of
    `self`, if the function is a method; `self` may be changed. The places that the answer relies on are appended to
    `relied_on`, as kind, holder and name: it holds as long as they hold what they do."""
    return _Search(relied_on).of(function, owner, may_set=owner is not None)


def is_iterator(x: Any) -> bool:
    """Whether an object is an iterator, which iterating over it changes."""
    return hasattr(type(x), "__next__")


def _contents(cell: types.CellType) -> Any:
    """What a cell holds; `None` where it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


class Instruction(NamedTuple):
    """A bytecode instruction, as :mod:`dis` has it, with what differs between versions of Python evened out."""

    opname: str
    argval: Any
    argrepr: str
    line: int | None
    #: Whether a jump leads here.
    is_target: bool = False
    #: Its offset in the code, in bytes.
    offset: int = 0


#: How many code objects are kept disassembled: one is read in several ways, one after the other.
_KEPT = 64


@functools.lru_cache(maxsize=_KEPT)
def disassembled(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of a code object, as :mod:`dis` has them."""
    return tuple(dis.get_instructions(code))


def shown(code: types.CodeType, left_out: Sequence[str] = _NOTHING) -> Iterator[tuple[dis.Instruction, bool]]:
    """The instructions of a code object but for those with these names, each with whether a jump leads to it: a jump to
    one that is left out goes on to the next. (It leads to the `EXTENDED_ARG` before an instruction with a large
    argument, and not to that itself.)"""
    is_target = False
    for step in disassembled(code):
        is_target = is_target or bool(step.is_jump_target)
        if step.opname not in left_out:
            yield step, is_target
            is_target = False


@functools.lru_cache(maxsize=_KEPT)
def instructions(code: types.CodeType) -> tuple[Instruction, ...]:
    """The instructions of a code object that do something. One that loads or stores two variables (Python 3.13) counts
    as two."""
    return tuple(_instructions(code))


def _instructions(code: types.CodeType) -> Iterator[Instruction]:
    for step, is_target in shown(code):
        line = step.positions and step.positions.lineno
        if step.opname.count("_FAST") == 2 and isinstance(step.argval, tuple):
            second = max(step.opname.rfind("LOAD_FAST"), step.opname.rfind("STORE_FAST"))
            for opname, name in zip((step.opname[: second - 1], step.opname[second:]), step.argval):
                yield Instruction(opname, name, name, line, is_target, step.offset)
        else:
            yield Instruction(step.opname, step.argval, step.argrepr, line, is_target, step.offset)


class _Place(NamedTuple):
    """Code that is examined, and what its names mean."""

    code: types.CodeType
    #: The code of the function; `code` is that, or of a comprehension or function within it.
    whole: types.CodeType
    #: The function's globals, and its variables of enclosing functions, by name.
    names: dict[str, Any]
    cells: dict[str, Any]
    #: The class of `self`, if the function is a method; and whether `self` may be changed.
    owner: type | None
    may_set: bool

    def is_own(self, step: Instruction | None) -> bool:
        """Whether an instruction loads `self` or stores to it."""
        if self.owner is None or step is None or self.whole.co_varnames[:1] != (step.argval,):
            return False
        # In a nested function (a comprehension, before Python 3.12) `self` is a variable of the enclosing code.
        fast = step.opname.startswith(("LOAD_FAST", "STORE_FAST"))
        return step.opname == "LOAD_DEREF" or (fast and self.code is self.whole)

    def is_known(self, called: list[Instruction]) -> bool:
        """Whether the instructions load a function of :mod:`math` or :mod:`cmath`."""
        return [step.opname for step in called] == ["LOAD_GLOBAL", "LOAD_ATTR"] and (
            self.of_name(called[0].argval) in _MODULES
        )

    def of_name(self, name: str) -> Any:
        """What a name means that is no local variable."""
        return self.cells.get(name, self.names.get(name, getattr(builtins, name, None)))

    def found(self, steps: Sequence[Instruction], at: int) -> Any:
        """What an instruction loads: a global, a variable of an enclosing function, or an attribute of what such a one
        holds; `None` for anything else."""
        if steps[at].opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            return self.of_name(steps[at].argval)
        if steps[at].opname != "LOAD_ATTR" or not at:
            return None
        return getattr(self.found(steps, at - 1), "__dict__", {}).get(steps[at].argval)

    def line(self, step: Instruction) -> str:
        """The line of an instruction, as refusals name it."""
        return f" ({self.code.co_filename}:{step.line or self.code.co_firstlineno})"


class _Search:
    """One examination."""

    def __init__(self, relied_on: list[tuple[str, Any, Any]]) -> None:
        #: The code that was examined so far, and whether it may change `self`.
        self.seen: set[tuple[types.CodeType, bool]] = set()
        self.relied_on = relied_on

    def _rely_on_name(self, place: _Place, name: str) -> None:
        """The meaning of a global, or of a builtin function that no global hides, is relied on."""
        self.relied_on.append(("entry", place.names, name))
        if name not in place.names:
            self.relied_on.append(("entry", vars(builtins), name))

    def of(self, function: Any, owner: type | None, may_set: bool = False) -> str:
        """As :func:`changes`; empty for code that is being examined already. `may_set`: `self` may be changed."""
        while type(function) is functools.partial:
            if any(map(is_iterator, (*function.args, *function.keywords.values()))):
                return "it is given an iterator to go on in"
            function = function.func
        if isinstance(function, types.MethodType):
            function, owner, may_set = function.__func__, type(function.__self__), False
        module = getattr(function, "__module__", None) or ""
        if any(function is known for known in _PURE) or module in ("math", "cmath", "torch.optim.lr_scheduler"):
            return ""
        if type(function) is not types.FunctionType:
            return f"it calls {getattr(function, '__qualname__', type(function).__qualname__)}"
        if (function.__code__, may_set) in self.seen:
            return ""
        self.seen.add((function.__code__, may_set))
        self.relied_on.append(("function", function, None))
        cells = dict(zip(function.__code__.co_freevars, map(_contents, function.__closure__ or ())))
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if is_iterator(value):
                return f"it is given a {type(value).__qualname__} to go on in"
        for code in parts(function.__code__):
            place = _Place(code, function.__code__, function.__globals__, cells, owner, may_set)
            steps = list(instructions(code))
            for i, step in enumerate(steps):
                called = steps[i + 1 : i + 3] if _CALLED_AFTER else steps[max(0, i - 2) : i]
                if step.opname == "PUSH_NULL" and place.is_known(called):
                    self._rely_on_name(place, called[0].argval)
                    self.relied_on.append(("entry", vars(place.of_name(called[0].argval)), called[1].argval))
                    continue
                if is_iterator(place.found(steps, i)):
                    return f"it may go on in {step.argval}{place.line(step)}"
                if why := self._change(place, steps[max(0, i - 2) : i], step):
                    return why if why.endswith(")") else why + place.line(step)
        return ""

    def _change(self, place: _Place, earlier: list[Instruction], step: Instruction) -> str:
        """Why an instruction may change something else than `self`; empty where it does not. `earlier`: the two before
        it."""
        name, before = step.opname, earlier[-1] if earlier else None
        sets_other = name == "STORE_ATTR" and not (place.may_set and place.is_own(before))
        if name in _CHANGES or name.startswith(_CHANGES_BEGIN) or sets_other:
            return f"it may change {step.argval or 'what it is given'}"
        if name.startswith("STORE_FAST") and place.is_own(step):
            return f"it gives {step.argval} another value"
        if name in _UNKNOWN:
            return "it calls what its code does not name"
        if name == "BINARY_OP" and step.argrepr.endswith("="):
            return f"it may change a value by {step.argrepr}"
        if name == "LOAD_GLOBAL" and "NULL" in step.argrepr:
            called = place.of_name(step.argval)
            self._rely_on_name(place, step.argval)
            return "" if called in _MODULES else self.of(called, None)
        if name == "LOAD_SUPER_ATTR":
            return self._of_methods(place, step.argval)
        if name == "LOAD_METHOD" or (name == "LOAD_ATTR" and "NULL" in step.argrepr):
            module = before is not None and before.opname == "LOAD_GLOBAL" and place.of_name(before.argval)
            of_super = [(e.opname, e.argval) for e in earlier] == [("LOAD_GLOBAL", "super"), ("CALL", 0)]
            if place.is_own(before) or (of_super and place.owner is not None):
                return self._of_methods(place, step.argval)
            if before is None or module not in _MODULES:
                return f"it calls {step.argval} of what it is given"
            self._rely_on_name(place, before.argval)
            self.relied_on.append(("entry", vars(module), step.argval))
        return ""

    def _of_methods(self, place: _Place, name: str) -> str:
        """The same for all methods with this name that the class of `self` has or inherits."""
        owners: tuple[type, ...] = place.owner.__mro__ if place.owner is not None else ()
        self.relied_on.append(("lookup", place.owner, name))
        found: list[Callable[..., Any]] = [vars(owner)[name] for owner in owners if name in vars(owner)]
        whys = (self.of(function, place.owner, place.may_set) for function in found)
        return next(filter(None, whys), "" if found else f"it calls {name}, which its class does not have")


def parts(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the comprehensions and functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from parts(constant)
