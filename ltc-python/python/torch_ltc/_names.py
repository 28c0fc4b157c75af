"""What a code object can read: the names in its bytecode (:class:`CodeNames`), for the survey.

The survey (`_survey.py`) does not see single reads of attributes and globals. It looks at all that a frame's code may
read, and this module finds out what that is: names of attributes, globals and modules, which of them may be missing,
whether names are computed, and whether C code may read a float without an event. It also knows which modules are
*quiet*: their Python code reads nothing that programs change, so their frames are not looked at.
"""

import builtins
import datetime
import dis
import functools
import math
import operator
import re
import struct
import sys
import sysconfig
import types
from typing import Any, NamedTuple

import torch

from torch_ltc._asked_names import BY_NAME, asked_names, strings_of
from torch_ltc._effects import Instruction, disassembled, instructions, shown
from torch_ltc._writes import looks_at_errors_of, writes

#: Instructions that name an attribute, and those that name a global.
_DEREFERENCED = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR")
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
#: Functions of `operator` that make a function which reads attributes, or calls methods, by name.
GETTERS = frozenset(("attrgetter", "methodcaller"))
#: Methods of every object that take the name of an attribute.
OF_ATTRIBUTES = ("__getattribute__", "__setattr__", "__delattr__")
#: Methods of every object that read all its attributes, for code that loads them for something else than a call.
_OF_COPIES = frozenset(("__getstate__", "__reduce__", "__reduce_ex__"))
#: Code with one of these names may read attributes by computed names, in C or in quiet Python.
_READS_BY_NAME = frozenset(
    ("__dict__", *GETTERS, "getattr_static", "getmembers", "getmembers_static", *BY_NAME, *OF_ATTRIBUTES)
)
#: This function of torch's computes names only to set attributes of a module, and of that there is a model.
_ONLY_SETS = torch.nn.Module._load_from_state_dict.__code__

#: The quiet modules of the standard library and of torch: their Python reads nothing that a program changes, besides
#: caches of their own and what :data:`torch_ltc._models.QUIET_MODELS` knows of.
_QUIET_MODULES = (
    *("typing", "typing_extensions", "abc", "_collections_abc", "warnings", "importlib"),
    *("re", "enum", "inspect", "types"),
    *("torch._refs", "torch._prims", "torch._prims_common", "torch._meta_registrations", "torch._decomp"),
    *("torch.overrides", "torch._ops", "torch.utils._pytree", "torch.fx", "torch.library", "torch._library"),
    *("torch.utils._python_dispatch", "torch_ltc", "sympy", "torch._subclasses", "torch._guards"),
    *("torch._dynamo", "torch._compile"),
    *("torch._jit_internal", "torch._namedtensor_internals", "torch._utils", "torch.utils.hooks"),
)


#: Classes of plain values, which are compared by type and bits.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def by_value(x: Any) -> Any:
    """A plain value as part of a key: equal for values of the same type and the same bits (0.0 and -0.0 differ)."""
    if type(x) is float:
        # `hex` shows no sign and payload of a NaN.
        return struct.pack("d", x) if math.isnan(x) else x.hex()
    if type(x) is complex:
        return type(x), by_value(x.real), by_value(x.imag)
    return (type(x), x)


def here() -> str:
    """The line at which the program is, outside torch and this package, as refusals name it."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        package = (frame.f_globals.get("__name__") or "").partition(".")[0]
        if package not in ("torch", "torch_ltc"):
            return f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back
    return ""


#: The folder of the standard library.
_LIBRARY = sysconfig.get_paths()["stdlib"]


def of_program(frame: types.FrameType) -> types.FrameType:
    """The innermost frame, from this one outwards, that is not of torch, this package, the standard library or a quiet
    module; this frame itself where there is none."""
    at: types.FrameType | None = frame
    while at is not None:
        name, file = at.f_globals.get("__name__") or "", at.f_code.co_filename
        is_library = file.startswith((_LIBRARY, "<frozen")) and "site-packages" not in file
        if name.partition(".")[0] not in ("torch", "torch_ltc") and not is_library and not is_quiet(name):
            return at
        at = at.f_back
    return frame


#: Modules whose frames are none of a program's. Those of `contextlib` only go on with a program's generator, and one of
#: torch's takes the innermost mode off the stack.
_OF_NO_PROGRAM = ("torch", "contextlib")


def is_of_program(frame: types.FrameType) -> bool:
    """Whether a frame runs code of the program, and not of torch."""
    return (frame.f_globals.get("__name__") or "").partition(".")[0] not in _OF_NO_PROGRAM


def may_write(frame: types.FrameType) -> bool:
    """Whether a frame runs code that may put something where other code of the program finds it. That of :mod:`copy`
    fills what it makes."""
    return is_of_program(frame) and frame.f_globals.get("__name__") != "copy"


def arguments_of(frame: types.FrameType) -> list[Any]:
    """What the parameters of a frame hold."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    variables = frame.f_locals
    return [variables[name] for name in code.co_varnames[:count] if name in variables]


def here_is_torch() -> bool:
    """Whether a call comes from torch's own Python code, and not from the program."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        package = module.partition(".")[0]
        # Methods of tensors that are written in Python count as called by whoever calls them.
        if package != "torch_ltc" and module not in ("torch.overrides", "torch._tensor"):
            return package == "torch"
        frame = frame.f_back
    return False


class CodeNames(NamedTuple):
    """What a code object can read by name. Variants with more or fewer names are made by the methods."""

    #: Names of attributes that it reads, sets or deletes, or that it may look up by a string constant.
    attributes: frozenset[str]
    #: Names of globals and builtins, in order of appearance.
    globals: tuple[str, ...]
    #: Modules that it imports.
    modules: tuple[str, ...]
    #: Attributes that may be missing: names that it looks up with ``getattr``, or within ``try``, or deletes.
    may_lack: frozenset[str]
    #: Whether it may read any attribute of an object, by a computed name.
    all_attributes: bool
    #: Whether it may go on by computed names from what it found by one.
    goes_on: bool
    #: Whether it is of a quiet module; see the module.
    quiet: bool
    #: Names that it loads for something else than to call at once what they name.
    values: frozenset[str]
    #: Names of classes that it loads for an ``isinstance``, and for nothing else.
    tested: frozenset[str]
    #: Names of attributes and globals that it sets, and of which it does nothing else.
    only_set: frozenset[str]
    #: Names of attributes that it sets or deletes.
    stored: frozenset[str]
    #: Under which names it may put something into objects or globals; besides names, what
    #: :data:`torch_ltc._writes.CONTENTS` and the like stand for.
    writes: frozenset[str]
    #: Offsets of the instructions of which an exception may come to code that catches it under a name and does
    #: something with it but to raise another one.
    looks_at_errors_of: frozenset[int]
    #: Whether it has a ``%``, by which a string may show values.
    has_percent: bool
    #: Whether C code may compute with floats for it without an event, by its constants and names alone.
    takes_numbers: bool
    #: Whether it may compare the class of a value with `float` (which a traced number's class is not).
    asks_classes: bool
    #: Names of attributes that it reads by other means than its instructions, so that these do not show all that
    #: becomes of them (see :meth:`naming`).
    added: frozenset[str]
    #: A number for these names: equal for equal variants of the same code.
    serial: int
    #: Offsets of the instructions at which it returns or yields; what leaves it elsewhere is an exception.
    ends: frozenset[int]
    #: Names of what it compares by identity with what is no constant: of variables, attributes, entries and globals.
    #: Two arguments are one name (``a is b``). Empty for torch's own code.
    identities: frozenset[str]
    #: Whether it is asked for what a global holds; see :meth:`shut`.
    is_shut: bool = False

    @property
    def by_super(self) -> bool:
        """Whether it asks what the bases of a class have."""
        return "super" in self.globals

    def lacking(self) -> "CodeNames":
        """The same code, of which any attribute may be missing: for code that was left by an exception."""
        serial = _naming.setdefault((self.serial, _LACKING), _FIRST_NAMING + len(_naming))
        return self._replace(may_lack=self.attributes, serial=serial)

    def opening(self) -> "CodeNames":
        """The same code, for an object all of whose attributes it may read."""
        return self._replace(all_attributes=True, serial=-1 - self.serial)

    def closing(self) -> "CodeNames":
        """The same code, for an object of which it reads only the attributes that it names."""
        serial = _naming.setdefault((self.serial, None), _FIRST_NAMING + len(_naming))
        return self._replace(all_attributes=False, serial=serial) if self.all_attributes else self

    def shut(self) -> "CodeNames":
        """The same code, for what it finds under the name of a global: of that all attributes are looked at by other
        means (`Reached.open`), if it computes names."""
        serial = _naming.setdefault((self.serial, _SHUT), _FIRST_NAMING + len(_naming))
        return self._replace(is_shut=True, serial=serial)

    def naming(self, names: frozenset[str]) -> "CodeNames":
        """The same code, which reads attributes with these names, too."""
        serial = _naming.setdefault((self.serial, names), _FIRST_NAMING + len(_naming))
        return self._replace(
            attributes=self.attributes | names,
            may_lack=self.may_lack | names,
            values=self.values | names,
            tested=self.tested - names,
            only_set=self.only_set - names,
            added=self.added | names,
            serial=serial,
        )


#: Serial numbers of variants, by the serial number of the code and the names that were added (`None`: `closing`).
_naming: dict[tuple[int, frozenset[str] | None], int] = {}
_FIRST_NAMING = 1 << 40
#: Stand for `lacking` and `shut` among those names; no attribute is called so.
_LACKING, _SHUT = frozenset(("()",)), frozenset(("[]",))
#: What code reads, by its identity and the module it runs in, with the code: code of two files can be equal.
_codes: dict[tuple[int, Any, Any], tuple[types.CodeType, CodeNames]] = {}


@functools.lru_cache(4096)
def is_quiet(module: str) -> bool:
    """Whether a module is quiet: its Python reads nothing that programs change."""
    return any(module == name or module.startswith(name + ".") for name in _QUIET_MODULES)


def code_of(code: types.CodeType, scope: dict[str, Any]) -> CodeNames:
    """What a code object can read by name; `scope` are its globals. Remembered."""
    key = id(code), scope.get("__name__"), scope.get("__package__")
    known = _codes.get(key)
    if known is None:
        attributes: set[str] = set()
        names: list[str] = []
        modules: list[str] = []
        values: set[str] = set()
        remainder = of_float = computes = False
        before = ""
        before_last: Any = None
        last: Any = None
        ends: set[int] = set()
        called, tests = _called(code), _tests(code)
        loaded: set[str] = set()
        tested: set[str] = set()
        stored: set[str] = set()
        for step in disassembled(code):
            if step.opname in _DEREFERENCED or step.opname in _GLOBAL:
                is_set = step.opname.startswith("STORE_")
                (tested if step.offset in tests else stored if is_set else loaded).add(step.argval)
            if step.opname.startswith(("RETURN_", "YIELD_")):
                ends.add(step.offset)
            if step.opname in _DEREFERENCED:
                attributes.add(step.argval)
                of_float = of_float or before == "float"
                if step.offset not in called:
                    values.add(step.argval)
            elif step.opname in _GLOBAL:
                names.append(step.argval)
                if step.offset not in called:
                    values.add(step.argval)
            elif step.opname == "IMPORT_NAME":
                modules += _imported(step.argval, before_last, last, scope)
            elif step.opname == "BINARY_OP":
                remainder = remainder or step.argrepr.startswith("%")
                computes = computes or step.argrepr.startswith(_ARITHMETIC)
            before = step.argval if step.opname in _GLOBAL else ""
            before_last, last = last, step.argval
        # `getattr` and the like are loaded for something else than a call here, which would show the name it is given.
        by_others = not values.isdisjoint(BY_NAME.intersection(names))
        asked = asked_names(code)
        strings = {*filter(str.isidentifier, strings_of(code)), *asked.constant.values()}
        by_name = (
            BY_NAME.intersection(names)
            or "vars" in names
            or "__dict__" in attributes
            or not attributes.isdisjoint(OF_ATTRIBUTES)
            or "MATCH_CLASS" in {s.opname for s in disassembled(code)}
        )
        deleted = {s.argval for s in disassembled(code) if s.opname == "DELETE_ATTR"}
        guarded = (
            asked.shown
            | frozenset(strings if by_name else ())
            | frozenset(attributes if code.co_exceptiontable else ())
        )
        # A `__getattribute__` is given the name of the attribute, which the survey reads from its frame.
        told = {code.co_name} if code.co_name in OF_ATTRIBUTES and _passes_on(code) else set[str]()
        named = (attributes | strings.intersection(OF_ATTRIBUTES)) - told
        getters = not GETTERS.isdisjoint(names)
        # Patterns by position read the attributes that the class names in `__match_args__`.
        matches = any(step.opname == "MATCH_CLASS" and step.arg for step in disassembled(code))
        whole = by_others or asked.computes or "vars" in names or getters or matches
        whole = whole or not named.isdisjoint(_READS_BY_NAME) or not values.isdisjoint(_OF_COPIES)
        whole = whole and code is not _ONLY_SETS
        # The `__new__` of named tuples has no module.
        quiet = is_quiet(scope.get("__name__") or "") or "_tuple_new" in scope
        info = CodeNames(
            frozenset(attributes | guarded),
            tuple(dict.fromkeys(names)),
            tuple(modules),
            guarded | deleted,
            whole,
            by_others or getters or not GETTERS.isdisjoint(attributes),
            quiet,
            frozenset(values | guarded),
            frozenset(tested - loaded - stored - guarded),
            frozenset(() if whole else stored - loaded - tested - (strings if by_name else set())),
            frozenset(s.argval for s in disassembled(code) if s.opname in ("STORE_ATTR", "DELETE_ATTR")),
            writes(code, attributes | set(names)),
            looks_at_errors_of(code),
            remainder,
            of_float
            # A method called through `super()` is of an object whose class the survey looks at.
            or ("super" not in names and not _SLOTS.isdisjoint(attributes | guarded))
            or "memoryview" in names
            or (computes and "complex" in names)
            or any(computes_unseen(x, remainder) for x in code.co_consts),
            # torch's own code asks with `isinstance`, for which traced numbers are floats; and code of the standard
            # library, or made by it, that does not name `float` asks for the classes of other things.
            (scope.get("__name__") or "").partition(".")[0] != "torch"
            and _asks_classes(code, scope, tests)
            and ("float" in values or not _is_of_library(code)),
            asked.shown,
            len(_codes),
            frozenset(ends),
            _identities(code)
            if (scope.get("__name__") or "").partition(".")[0] not in ("torch", "copy")
            else frozenset(),
        )
        _codes[key] = known = code, info
    return known[1]


def tells_class(x: object) -> bool:
    """Whether code that has an object at hand may ask by it for the class of another: it is `type` by whatever name, or
    a getter or a format that reads `__class__`."""
    if type(x) is operator.attrgetter:
        x = repr(x)
    return x is type or (type(x) is str and "__class__" in x)


def _is_of_library(code: types.CodeType) -> bool:
    """Whether code is the standard library's, or what that makes for dataclasses. (Files of consoles have names that
    begin with "<", too.)"""
    return code.co_filename.startswith((_LIBRARY, "<frozen")) or code.co_qualname.startswith("__create_fn__.")


def _imported(name: str, level: Any, parts_of: Any, scope: dict[str, Any]) -> list[str]:
    """The modules that an import statement finds, or may find: the one that it names, the packages around it, and what
    it imports from that (`parts_of`). `level`: the number of dots in front."""
    package = scope.get("__package__") or (scope.get("__name__") or "").rpartition(".")[0]
    parts = name.split(".") if name else []
    if type(level) is int and level > 0:
        around = package.split(".")
        parts = [*around[: len(around) - level + 1], *parts]
    found = [".".join(parts[: i + 1]) for i in range(len(parts))]
    return [*found, *(f"{found[-1]}.{part}" for part in (parts_of if type(parts_of) is tuple and found else ()))]


def _asks_classes(code: types.CodeType, scope: dict[str, Any], tests: set[int]) -> bool:
    """Whether code may ask for the exact class of an object, other than `self`: it names `type`, by whatever name, for
    something else than an ``isinstance`` (`tests`) or the call ``type(self)``; or it names `__class__`."""
    steps = [*instructions(code)]
    for i, step in enumerate(steps):
        is_type = step.opname in _GLOBAL and scope.get(step.argval, getattr(builtins, step.argval, None)) is type
        if (is_type or step.argval == "type") and step.opname in _GLOBAL and step.offset not in tests:
            words = [(s.opname.removesuffix("_BORROW"), s.argval) for s in steps[i + 1 : i + 3]]
            if "NULL" not in step.argrepr or words != [("LOAD_FAST", "self"), ("CALL", 1)]:
                return True
        elif step.argval == "__class__" and step.opname in _DEREFERENCED:
            if not steps[i - 1].opname.startswith("LOAD_FAST") or steps[i - 1].argval != "self":
                return True
        elif step.opname == "LOAD_CONST" and type(step.argval) is str and "__class__" in step.argval:
            return True  # a name that is given to `getattr`, or a part of a format
    return False


def _identities(code: types.CodeType) -> frozenset[str]:
    """The names of what code compares by identity (``is``, and ``in``, which does so first), but with a constant that
    is no number; and the names from which it gets the variables that it compares so."""
    steps = [*instructions(code)]
    found: set[str] = set()
    stored = {step.argval for step in steps if step.opname.startswith("STORE_FAST")}
    for i, step in enumerate(steps):
        if step.opname not in ("IS_OP", "CONTAINS_OP"):
            continue
        pair = [s.argval for s in steps[i - 2 : i] if s.opname.startswith("LOAD_FAST") and s.argval not in stored]
        if step.opname == "IS_OP" and len(pair) == 2 and not steps[i - 1].is_target:
            found.add(" is ".join(pair))
            continue
        right = _operand(steps, i - 1)
        left = _operand(steps, i - 1 - len(right or ())) if right is not None else None
        if left is None or right is None:
            # It compares what it computes: any of the names in the line may be of what it compares.
            found |= {s.argval for s in steps if s.line == step.line and type(s.argval) is str}
        elif not any(_is_no_number(x[0]) for x in ([left] if step.opname == "CONTAINS_OP" else [left, right])):
            found |= {s.argval for s in (*left, *right) if type(s.argval) is str}
    for i, step in enumerate(steps):
        if step.opname.startswith(("STORE_FAST", "STORE_DEREF")) and step.argval in found:
            found |= {s.argval for s in _operand(steps, i - 1) or () if type(s.argval) is str}
    return frozenset(found)


def _is_no_number(step: Instruction) -> bool:
    """Whether an instruction loads a constant that is never the same object as a number that changes."""
    return step.opname == "LOAD_CONST" and type(step.argval) not in (float, complex)


def _operand(steps: list[Instruction], at: int) -> list[Instruction] | None:
    """The instructions that load what the one at this position gives, if that is a constant, a variable, an attribute
    or an entry under a constant key; `None` for anything else, and where jumps lead among them."""
    last = at
    while (
        at > 0 and steps[at].opname == "LOAD_ATTR" or steps[at].opname == "BINARY_SUBSCR" or steps[at].argrepr == "[]"
    ):
        at -= 1 if steps[at].opname == "LOAD_ATTR" else 2
    loads = steps[at].opname.startswith("LOAD_") and steps[at].opname not in ("LOAD_ATTR", "LOAD_METHOD")
    keys = [steps[i - 1] for i in range(at + 1, last + 1) if steps[i].opname not in ("LOAD_ATTR", "LOAD_CONST")]
    is_plain = at >= 0 and loads and all(key.opname == "LOAD_CONST" for key in keys)
    return steps[at : last + 1] if is_plain and not any(s.is_target for s in steps[at + 1 : last + 1]) else None


def _passes_on(code: types.CodeType) -> bool:
    """Whether a method that takes the name of an attribute calls others of its kind only with that same name."""
    if code.co_argcount < 2:
        return False
    own, name = code.co_varnames[:2]
    steps = [*instructions(code)]
    if any(s.opname.startswith(("STORE_FAST", "DELETE_FAST")) and s.argval in (own, name) for s in steps):
        return False
    for i, step in enumerate(steps):
        if step.argval in OF_ATTRIBUTES and step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST":
            at = i + 1 + (i + 1 < len(steps) and steps[i + 1].argval == own)
            if not _is_given_as_it_is(steps[at:], name, takes_value=step.argval == "__setattr__"):
                return False
    return True


def _is_given_as_it_is(steps: list[Instruction], name: str, takes_value: bool) -> bool:
    """Whether a variable itself is the next argument of a call, and not part of an expression. `takes_value`: one more
    argument follows."""
    if not steps or not steps[0].opname.startswith("LOAD_FAST") or steps[0].argval != name:
        return False
    above = 0
    for step in steps[1:]:
        word = step.opname
        if word in ("CALL", "CALL_FUNCTION") and above == takes_value:
            return True
        if step.is_target:
            return False
        if word in ("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP") and above > 1:
            above -= 1
        elif word == "LOAD_ATTR" and above and "NULL" not in step.argrepr:
            continue
        elif word.startswith("LOAD_") and "NULL" not in step.argrepr and word not in ("LOAD_ATTR", "LOAD_METHOD"):
            above += 1
        else:
            return False
    return False


def _called(code: types.CodeType) -> set[int]:
    """Offsets of the instructions that load a name in order to call it at once: the call has an event."""
    steps = [step for step in disassembled(code) if step.opname != "EXTENDED_ARG"]
    called = set()
    for i, step in enumerate(steps):
        flagged = bool((step.arg or 0) & 1)
        if step.opname == "LOAD_METHOD" or (step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and flagged):
            called.add(step.offset)
        elif step.opname == "PUSH_NULL" and sys.version_info >= (3, 13):
            called.add(steps[i - 1].offset)
        elif step.opname == "PUSH_NULL" or (step.opname == "LOAD_GLOBAL" and flagged):
            # What is called is loaded from here on: a name, and then attributes.
            last = i + (step.opname == "PUSH_NULL")
            while steps[last + 1].opname == "LOAD_ATTR":
                last += 1
            called.add(steps[last].offset)
    return called


def _tests(code: types.CodeType) -> set[int]:
    """Offsets of the instructions that load the classes of an ``isinstance`` call."""
    kept = [*shown(code, ("EXTENDED_ARG",))]
    steps, targets = [step for step, _ in kept], [is_target for _, is_target in kept]
    found: set[int] = set()
    for i, step in enumerate(steps):
        asks = step.opname == "LOAD_GLOBAL" and step.argval == "isinstance" and (step.arg or 0) & 1
        at = _call_of_two(steps, targets, i + 1) if asks else 0
        last = at - 1 - (steps[at - 1].opname == "PRECALL")
        count = 1
        if steps[last].opname == "BUILD_TUPLE":
            count, last = steps[last].arg or 0, last - 1
        while count and last > i and steps[last].opname in ("LOAD_GLOBAL", "LOAD_ATTR"):
            found.add(steps[last].offset)
            while steps[last].opname == "LOAD_ATTR":
                last -= 1
            count, last = count - 1, last - 1
    return found


def _call_of_two(steps: list[dis.Instruction], targets: list[bool], at: int) -> int:
    """The index of the instruction that calls a function with two arguments, which are computed from `at` on without a
    jump; 0 where there is no such call."""
    depth = 0
    while depth >= 0 and at < len(steps) and not targets[at] and "JUMP" not in steps[at].opname:
        if steps[at].opname in ("PRECALL", "CALL") and steps[at].arg == 2 and depth == 2:
            return at + (steps[at].opname == "PRECALL")
        depth += dis.stack_effect(steps[at].opcode, steps[at].arg, jump=False)
        at += 1
    return 0


_ARITHMETIC = ("+", "-", "*", "/", "%")
#: The methods of numbers that C code calls for operators and builtin functions, by the names by which Python code can
#: call them: of the class of floats, by whatever name, these read a traced number without an event.
_SLOTS = frozenset(
    name
    for kind in (float, int)
    for name, method in vars(kind).items()
    if type(method) is types.WrapperDescriptorType and name != "__getattribute__"
)


#: The fields of a ``%`` format that call a method of the value (`%s`, `%r`, `%a`); C code reads the numbers of others.
_ASKED_HOW = re.compile(r"%(\([^)]*\))?[-+ #0-9.*]*[sra%]")


def computes_unseen(x: Any, has_percent: bool) -> bool:
    """Whether an operator with this plain value may read the float beside it in C, without an event: operators of
    complex numbers and `timedelta` do, and so does a format string, in code that has a ``%``."""
    if type(x) in (complex, datetime.timedelta):
        return True
    if not has_percent or type(x) not in (str, bytes):
        return False
    return "%" in _ASKED_HOW.sub("", x if type(x) is str else x.decode("latin1"))


def line_of(code: types.CodeType, name: str) -> int:
    """The first line in which a code object uses a name."""
    for step in disassembled(code):
        if step.argval == name and step.positions and step.positions.lineno:
            return step.positions.lineno
    return code.co_firstlineno


@functools.lru_cache(16384)
def has_constant_name(code: types.CodeType, at: int) -> bool:
    """Whether the call of ``getattr`` (or a function like it) at this offset gives the name as a constant, on every
    path that leads there."""
    if at in asked_names(code).constant:
        return True
    before: list[tuple[dis.Instruction, bool]] = []
    for step, is_target in shown(code, ("PRECALL", "CACHE", "EXTENDED_ARG", "PUSH_NULL")):
        if step.offset >= at:
            # The arguments are the object, the name, and mostly a default or value. Only one that is a single plain
            # load is understood here; with anything else the name counts as computed.
            last = [earlier for earlier, _ in before[-3:]]
            count = step.arg if step.opname == "CALL" else 0
            if count == 3 and not (
                last[-1].opname.startswith("LOAD_") and last[-1].opname not in ("LOAD_ATTR", "LOAD_METHOD")
            ):
                return False
            name = last[-1] if count == 2 else last[-2] if count == 3 and len(last) > 1 else None
            if name is None or name.opname != "LOAD_CONST" or type(name.argval) is not str:
                return False
            return not (is_target or any(target or "JUMP" in s.opname for s, target in before[-3:]))
        before.append((step, is_target))
    return False
