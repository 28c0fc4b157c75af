"""Names of attributes that code gives as strings: to ``getattr`` and the like, and in format strings.

Instructions do not name these attributes, so `_names.py` asks this module for the names that bytecode shows, and
whether some are computed.
"""

import _string  # type: ignore[import-not-found]
import dis
import functools
import types
from collections.abc import Iterator
from typing import NamedTuple

from torch_ltc._effects import disassembled

#: Builtin functions that take the name of an attribute as an argument.
BY_NAME = frozenset(("getattr", "hasattr", "setattr", "delattr"))
#: Methods of strings that read attributes of their arguments, as the string says.
FORMATS = frozenset(("format", "format_map"))
_NO_STEPS = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL")
#: Instructions that load a variable, a constant or a part of one, and call nothing.
_PLAIN_LOADS = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR", "BINARY_SUBSCR", "KW_NAMES")


class AskedNames(NamedTuple):
    """The names that code gives as strings."""

    #: Those that it gives to functions of :data:`BY_NAME`, at the offsets of the calls.
    constant: dict[int, str]
    #: Whether it computes names, or may do so, for functions of :data:`BY_NAME` that it calls, or for formats.
    computes: bool
    #: Those in format strings.
    shown: frozenset[str]


@functools.lru_cache(16384)
def asked_names(code: types.CodeType) -> AskedNames:
    """The names of attributes that code gives as strings."""
    steps = [step for step in disassembled(code) if step.opname not in _NO_STEPS]
    constant: dict[int, str] = {}
    computes = False
    shown: set[str] = set()
    for i, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in BY_NAME and _is_called(steps, i):
            at, name = _given_name(steps, i + 1)
            if name is None:
                computes = True
            else:
                constant[steps[at].offset] = name
        elif step.argval in FORMATS and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            # A format that is kept as a value (`map(text.format, objects)`) is given objects that no frame shows.
            is_called = step.opname == "LOAD_METHOD" or bool((step.arg or 0) & 1 and "NULL" in step.argrepr)
            is_constant = steps[i - 1].opname == "LOAD_CONST"
            computes = computes or not (is_called or is_constant or _is_compared(steps, i))
            shown.update(*(names_in_format(x) for x in strings_of(code)))
    return AskedNames(constant, computes, frozenset(shown))


def _is_compared(steps: list[dis.Instruction], at: int) -> bool:
    """Whether code compares what it loads with something else that it loads (`config.format == "plain"`)."""
    return at + 2 < len(steps) and steps[at + 2].opname in ("COMPARE_OP", "CONTAINS_OP", "IS_OP")


def strings_of(code: types.CodeType) -> list[str]:
    """The strings among the constants of code."""
    found = []
    for constant in code.co_consts:
        found += [x for x in (constant if type(constant) is tuple else (constant,)) if type(x) is str]
    return found


def _is_called(steps: list[dis.Instruction], at: int) -> bool:
    """Whether code loads a global to call it."""
    before, after = steps[at - 1] if at else None, steps[at + 1] if at + 1 < len(steps) else None
    return (
        bool((steps[at].arg or 0) & 1)
        or (before is not None and before.opname == "PUSH_NULL")
        or (after is not None and after.opname == "PUSH_NULL")
    )


def _given_name(steps: list[dis.Instruction], at: int) -> tuple[int, str | None]:
    """The index of the call whose arguments are computed from `at` on, and its second argument; `None` if that is not
    seen to be a constant string."""
    if at < len(steps) and steps[at].opname == "PUSH_NULL":
        at += 1
    depth, name = 0, None
    while at < len(steps) and not steps[at].is_jump_target and "JUMP" not in steps[at].opname:
        step = steps[at]
        if step.opname == "CALL" and depth == step.arg:
            return at, name
        before = depth
        depth += dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth < 2:
            name = None
        elif before == 1 and depth == 2:
            is_name = step.opname == "LOAD_CONST" and type(step.argval) is str
            name = step.argval if is_name else None
        elif depth == 2:  # the second argument is not the constant itself, but computed with it
            name = None
        if depth < 0:
            break
        at += 1
    return 0, None


@functools.lru_cache(16384)
def formats_variables(code: types.CodeType, at: int) -> bool:
    """Whether the call of a string's `format` at this offset is given nothing but variables and constants, or parts of
    these, so that nothing is formatted that no frame holds."""
    steps = [step for step in disassembled(code) if step.opname not in _NO_STEPS]
    last = next((i for i, step in enumerate(steps) if step.offset >= at), 0)
    for step in reversed(steps[:last]):
        if step.argval in FORMATS and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            return steps[last].opname in ("CALL", "CALL_KW")
        if not step.opname.startswith(_PLAIN_LOADS) or step.is_jump_target:
            return False
    return False


def names_in_format(text: str) -> frozenset[str]:
    """The attributes that `str.format` with this string reads."""
    if "." not in text or "{" not in text:
        return frozenset()
    try:
        return frozenset(_names_in_fields(text))
    except ValueError:  # it is no format
        return frozenset()


def _names_in_fields(text: str) -> Iterator[str]:
    for _, field, how, _ in _string.formatter_parser(text):
        if field:
            _, rest = _string.formatter_field_name_split(field)
            yield from (name for is_attribute, name in rest if is_attribute)
        if how:
            yield from _names_in_fields(how)
