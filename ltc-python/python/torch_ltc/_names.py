"""What a code object reads by name, and which Python reads nothing that programs change."""

import datetime
import dis
import functools
import math
import re
import struct
import sys
import sysconfig
import types
from typing import Any, NamedTuple

from torch_ltc._effects import Instruction, instructions

_DEREFERENCED = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR")
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
#: Builtins that take the name of an attribute.
BY_NAME = frozenset(("getattr", "hasattr", "setattr", "delattr"))
#: What takes attributes, or calls methods, by a name that it was given.
GETTERS = frozenset(("attrgetter", "methodcaller"))
#: The methods of every object that do.
OF_ATTRIBUTES = ("__getattribute__", "__setattr__", "__delattr__")
#: What else takes names of attributes, from within C or from Python that is quiet.
_READS_BY_NAME = frozenset(
    ("__dict__", *GETTERS, "getattr_static", "getmembers", "getmembers_static", *BY_NAME, *OF_ATTRIBUTES)
)

#: Python of the standard library and of torch that reads nothing a program changes, but caches of its own; of what it
#: reads besides, :data:`torch_ltc._models.QUIET_MODELS` knows.
_QUIET_MODULES = (
    *("typing", "typing_extensions", "abc", "_collections_abc", "warnings", "importlib", "logging"),
    *("re", "enum", "inspect", "types"),
    *("torch._refs", "torch._prims", "torch._prims_common", "torch._meta_registrations", "torch._decomp"),
    *("torch.overrides", "torch._ops", "torch.utils._pytree", "torch.fx", "torch.library", "torch._library"),
    *("torch.utils._python_dispatch", "torch_ltc", "sympy", "torch._subclasses", "torch._guards"),
    *("torch._dynamo.eval_frame", "torch._dynamo.decorators", "torch._compile"),
    *("torch._jit_internal", "torch._namedtensor_internals", "torch._utils", "torch.utils.hooks"),
)


#: Values that are compared by type and bits.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def by_value(x: Any) -> Any:
    """A plain value as part of a key: by type, and bit by bit."""
    if type(x) is float:
        # What is no number has a sign, too, and more.
        return struct.pack("d", x) if math.isnan(x) else x.hex()
    if type(x) is complex:
        return type(x), by_value(x.real), by_value(x.imag)
    return (type(x), x)


def here() -> str:
    """The line that the program is at, outside torch and this package, as messages name it."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        package = (frame.f_globals.get("__name__") or "").partition(".")[0]
        if package not in ("torch", "torch_ltc"):
            return f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back
    return ""


#: Where the standard library is.
_LIBRARY = sysconfig.get_paths()["stdlib"]


def of_program(frame: types.FrameType) -> types.FrameType:
    """The innermost frame, from this one on, that is outside torch, this package and the standard library; this one
    where there is none."""
    at: types.FrameType | None = frame
    while at is not None:
        name, file = at.f_globals.get("__name__") or "", at.f_code.co_filename
        is_library = file.startswith((_LIBRARY, "<frozen")) and "site-packages" not in file
        if name.partition(".")[0] not in ("torch", "torch_ltc") and not is_library and not is_quiet(name):
            return at
        at = at.f_back
    return frame


def here_is_torch() -> bool:
    """Whether torch asks, and not the program."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        package = module.partition(".")[0]
        # Methods of tensors that are written in Python are what the program calls.
        if package != "torch_ltc" and module not in ("torch.overrides", "torch._tensor"):
            return package == "torch"
        frame = frame.f_back
    return False


class Code(NamedTuple):
    """What a code object can read by name."""

    attributes: frozenset[str]
    globals: tuple[str, ...]
    modules: tuple[str, ...]
    #: Attributes that may be missing: names looked up with ``getattr``, or within ``try``, and those that it deletes.
    may_lack: frozenset[str]
    all_attributes: bool
    #: Computed names may lead on from what they found.
    goes_on: bool
    quiet: bool
    #: Names that it loads for something else than a call there and then.
    values: frozenset[str]
    #: Names that it loads to ask whether something is an instance of what they name, and for nothing else.
    tested: frozenset[str]
    #: Whether it has a ``%``, which may show values in a string.
    has_percent: bool
    #: Whether its own constants and names let C compute with floats without being called by an event.
    takes_numbers: bool
    #: Whether it may ask whether a value's class is that of floats.
    asks_classes: bool
    serial: int
    #: Where it returns or yields: what leaves it elsewhere is an exception.
    ends: frozenset[int]

    @property
    def by_super(self) -> bool:
        """Whether it asks what the bases of a class have."""
        return "super" in self.globals

    def lacking(self) -> "Code":
        """The same, of which any attribute may be missing: it was left by an exception, which somebody minds."""
        serial = _naming.setdefault((self.serial, _LACKING), _FIRST_NAMING + len(_naming))
        return self._replace(may_lack=self.attributes, serial=serial)

    def opening(self) -> "Code":
        """The same, of an object all of whose attributes it may read."""
        return self._replace(all_attributes=True, serial=-1 - self.serial)

    def closing(self) -> "Code":
        """The same, which reads only what it names."""
        serial = _naming.setdefault((self.serial, None), _FIRST_NAMING + len(_naming))
        return self._replace(all_attributes=False, serial=serial) if self.all_attributes else self

    def naming(self, names: frozenset[str]) -> "Code":
        """The same, which reads attributes of these names, too."""
        serial = _naming.setdefault((self.serial, names), _FIRST_NAMING + len(_naming))
        return self._replace(
            attributes=self.attributes | names,
            may_lack=self.may_lack | names,
            values=self.values | names,
            tested=self.tested - names,
            serial=serial,
        )


#: Serial numbers of code that reads more names than its own, or only its own.
_naming: dict[tuple[int, frozenset[str] | None], int] = {}
_FIRST_NAMING = 1 << 40
#: No name of an attribute.
_LACKING = frozenset(("()",))
_codes: dict[types.CodeType, Code] = {}


def is_quiet(module: str) -> bool:
    """Whether a module's Python reads nothing that programs change."""
    return module.startswith("namedtuple_") or any(
        module == name or module.startswith(name + ".") for name in _QUIET_MODULES
    )


def code_of(code: types.CodeType, scope: dict[str, Any]) -> Code:
    """What a code object can read by name; ``scope``: its globals."""
    known = _codes.get(code)
    if known is None:
        attributes: set[str] = set()
        names: list[str] = []
        modules: list[str] = []
        strings: set[str] = set()
        values: set[str] = set()
        remainder = of_float = computes = False
        before = ""
        ends: set[int] = set()
        called, tests = _called(code), _tests(code)
        loaded: set[str] = set()
        tested: set[str] = set()
        for step in dis.get_instructions(code):
            if step.opname in _DEREFERENCED or step.opname in _GLOBAL:
                (tested if step.offset in tests else loaded).add(step.argval)
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
                modules.append(step.argval)
            elif step.opname == "BINARY_OP":
                remainder = remainder or step.argrepr.startswith("%")
                computes = computes or step.argrepr.startswith(_ARITHMETIC)
            before = step.argval if step.opname in _GLOBAL else ""
        # Loaded for something else than a call here, which shows with which name.
        by_others = not values.isdisjoint(BY_NAME.intersection(names))
        for constant in code.co_consts:
            strings.update(
                x for x in (constant if type(constant) is tuple else (constant,)) if type(x) is str and x.isidentifier()
            )
        by_name = (
            BY_NAME.intersection(names)
            or "vars" in names
            or "__dict__" in attributes
            or not attributes.isdisjoint(OF_ATTRIBUTES)
            or "MATCH_CLASS" in {s.opname for s in dis.get_instructions(code)}
        )
        deleted = {s.argval for s in dis.get_instructions(code) if s.opname == "DELETE_ATTR"}
        guarded = frozenset(strings if by_name else ()) | frozenset(attributes if code.co_exceptiontable else ())
        # One that is called for an attribute is told which (`torch_ltc._survey`).
        told = {code.co_name} if code.co_name in OF_ATTRIBUTES and _passes_on(code) else set[str]()
        named = (attributes | strings.intersection(OF_ATTRIBUTES)) - told
        getters = not GETTERS.isdisjoint(names)
        # Patterns by position name what the class says (`__match_args__`).
        matches = any(step.opname == "MATCH_CLASS" and step.arg for step in dis.get_instructions(code))
        whole = by_others or "vars" in names or getters or matches or not named.isdisjoint(_READS_BY_NAME)
        quiet = is_quiet(scope.get("__name__") or "")
        known = _codes[code] = Code(
            frozenset(attributes | guarded),
            tuple(dict.fromkeys(names)),
            tuple(modules),
            guarded | deleted,
            whole,
            by_others or getters or not GETTERS.isdisjoint(attributes),
            quiet,
            frozenset(values | guarded),
            frozenset(tested - loaded - guarded),
            remainder,
            of_float
            # By way of `super()` it is an object's, whose class tells what it is.
            or ("super" not in names and not _SLOTS.isdisjoint(attributes | guarded))
            or "memoryview" in names
            or (computes and "complex" in names)
            or any(computes_unseen(x, remainder) for x in code.co_consts),
            # torch itself asks whether numbers are instances of a class, as these are, and the standard library asks
            # others for theirs, where it does not name that of numbers.
            (scope.get("__name__") or "").partition(".")[0] != "torch"
            and _asks_classes(code)
            and ("float" in values or not code.co_filename.startswith((_LIBRARY, "<"))),
            len(_codes),
            frozenset(ends),
        )
    return known


def _asks_classes(code: types.CodeType) -> bool:
    """Whether code may ask of which class something is, besides the object whose method it is."""
    steps = [*instructions(code)]
    for i, step in enumerate(steps):
        if step.argval == "type" and step.opname in _GLOBAL:
            other = steps[i + 1] if i + 1 < len(steps) else None
        elif step.argval == "__class__" and step.opname in _DEREFERENCED:
            other = steps[i - 1]
        else:
            continue
        if other is None or not other.opname.startswith("LOAD_FAST") or other.argval != "self":
            return True
    return False


def _passes_on(code: types.CodeType) -> bool:
    """Whether a method that is told the name of an attribute calls others of its kind with that name as it is."""
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
    """Whether a variable is the next argument of a call, and not part of one; `takes_value`: one more follows."""
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
    """Where names are loaded that are called there and then, which events tell."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    called = set()
    for i, step in enumerate(steps):
        flagged = bool((step.arg or 0) & 1)
        if step.opname == "LOAD_METHOD" or (step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and flagged):
            called.add(step.offset)
        elif step.opname == "PUSH_NULL" and sys.version_info >= (3, 13):
            called.add(steps[i - 1].offset)
        elif step.opname == "PUSH_NULL" or (step.opname == "LOAD_GLOBAL" and flagged):
            # What is called begins here: a name, and attributes from there on.
            last = i + (step.opname == "PUSH_NULL")
            while steps[last + 1].opname == "LOAD_ATTR":
                last += 1
            called.add(steps[last].offset)
    return called


def _tests(code: types.CodeType) -> set[int]:
    """Where names are loaded of classes that ``isinstance`` is asked about there and then."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    found: set[int] = set()
    for i, step in enumerate(steps):
        asks = step.opname == "LOAD_GLOBAL" and step.argval == "isinstance" and (step.arg or 0) & 1
        at = _call_of_two(steps, i + 1) if asks else 0
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


def _call_of_two(steps: list[dis.Instruction], at: int) -> int:
    """Where a function is called, with two arguments that are computed from `at` on without a jump; 0 if it is not."""
    depth = 0
    while depth >= 0 and at < len(steps) and not steps[at].is_jump_target and "JUMP" not in steps[at].opname:
        if steps[at].opname in ("PRECALL", "CALL") and steps[at].arg == 2 and depth == 2:
            return at + (steps[at].opname == "PRECALL")
        depth += dis.stack_effect(steps[at].opcode, steps[at].arg, jump=False)
        at += 1
    return 0


_ARITHMETIC = ("+", "-", "*", "/", "%")
#: Slots of numbers and strings, by the names under which Python code can call them.
_SLOTS = frozenset(
    f"__{prefix}{name}__" for name in "add sub mul truediv floordiv mod divmod pow".split() for prefix in ("", "r")
) | frozenset("__lt__ __le__ __gt__ __ge__ __eq__ __ne__".split())


#: Where a format asks a value how it is shown; it reads those that it shows as numbers itself.
_ASKED_HOW = re.compile(r"%(\([^)]*\))?[-+ #0-9.*]*[sra%]")


def computes_unseen(x: Any, has_percent: bool) -> bool:
    """Whether an operator with a plain value may read a float beside it in C: complex numbers and spans of time do, and
    formats, where there is a ``%``."""
    if type(x) in (complex, datetime.timedelta):
        return True
    if not has_percent or type(x) not in (str, bytes):
        return False
    return "%" in _ASKED_HOW.sub("", x if type(x) is str else x.decode("latin1"))


#: The fields of a format string, up to how they are shown, and the attributes that one names.
_FIELD = re.compile(r"\{([^{}!:]*)")
_NAMED = re.compile(r"\.([^.\[]+)")


def names_in_format(text: str) -> frozenset[str]:
    """The attributes that formatting by this string reads."""
    return frozenset(name for field in _FIELD.findall(text) for name in _NAMED.findall(field))


def line_of(code: types.CodeType, name: str) -> int:
    """The first line in which a code object uses a name."""
    for step in dis.get_instructions(code):
        if step.argval == name and step.positions and step.positions.lineno:
            return step.positions.lineno
    return code.co_firstlineno


@functools.lru_cache(16384)
def has_constant_name(code: types.CodeType, at: int) -> bool:
    """Whether the call of ``getattr`` (or its kin) at this offset names its attribute by a constant, whatever way led
    there."""
    before: list[dis.Instruction] = []
    for step in dis.get_instructions(code):
        if step.offset >= at:
            # Object and name, and mostly a default or value, which is one plain load here; anything else counts as
            # computed.
            last = before[-3:]
            count = step.arg if step.opname == "CALL" else 0
            if count == 3 and not (
                last[-1].opname.startswith("LOAD_") and last[-1].opname not in ("LOAD_ATTR", "LOAD_METHOD")
            ):
                return False
            name = last[-1] if count == 2 else last[-2] if count == 3 and len(last) > 1 else None
            if name is None or name.opname != "LOAD_CONST" or type(name.argval) is not str:
                return False
            return not (step.is_jump_target or any(s.is_jump_target or "JUMP" in s.opname for s in last))
        is_target = step.opname == "PRECALL" and step.is_jump_target
        if is_target or step.opname not in ("PRECALL", "CACHE", "EXTENDED_ARG", "PUSH_NULL"):
            before.append(step)
    return False
