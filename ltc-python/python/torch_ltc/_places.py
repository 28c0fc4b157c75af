"""Somewhere that a step reads, and how messages name it."""

import types
from typing import Any, NamedTuple

from torch_ltc._names import line_of

#: Names of the classes whose instances own these dicts.
owners: dict[int, str] = {}


class Place(NamedTuple):
    """Somewhere the step reads: ``kind`` says how, as ``_ltc.Watch`` knows it."""

    kind: str
    holder: Any
    name: Any
    reader: types.CodeType | None

    def __str__(self) -> str:
        what = "what a function's cache keeps" if self.kind == "kept" else _title(self.holder, self.name)
        reader = self.reader
        if reader is None:
            return what
        return f"{what} (read in {reader.co_qualname}, {reader.co_filename}:{line_of(reader, self.name)})"


def _title(holder: Any, name: Any) -> str:
    if type(holder) is types.FunctionType:
        return f"the function {holder.__qualname__}"
    if type(holder) is types.CellType:
        return f"the variable {name}" if name else "a variable of an enclosing function"
    if isinstance(holder, type):
        return f"{holder.__qualname__}.{name}"
    owner = owners.get(id(holder)) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and "__name__" in holder and "__builtins__" in holder:
        return f"the global {name}"
    if owner is not None and name is not None:
        return f"{owner}.{name}"
    kind = type(holder).__qualname__
    return f"an entry {name!r} of a {kind}" if name is not None else f"the contents of a {kind}"
