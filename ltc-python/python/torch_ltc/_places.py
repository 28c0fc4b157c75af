"""Places: where a step reads something that is older than it, and how messages name that.

Places are noted by the survey (`_survey.py`) and compared by `_ltc.Watch` (`ltc-python/src/watch.rs`). Their kinds:

- ``entry``: what a dict holds under a key: an attribute, a global, an item. ``left``: the same, where it may be
  anything, since it is an input of the step. ``renewed``: the same, where only the container's class and members
  count. ``dict``: all keys and values of a dict. ``kept``: the results in a function's cache.
- ``members`` of a list, set or deque; ``cell``: a variable of an enclosing function; ``variable``: a `ContextVar`.
- ``lookup``: what a class or its bases have under a name; ``slot``: what a descriptor gives of an object;
  ``namespace``: which dict holds an object's attributes; ``class``: of which class it is.
- ``function``: a function's code, defaults and cells; ``referent``: what a weak reference, or a getter without
  arguments, gives; ``thread``: which thread it is; ``bytes``: the content of an array.
- ``gradient``: the gradient of a tensor that need not be a leaf: those of leaves are compared with the tensors.
"""

import types
from typing import Any, NamedTuple

import torch

from torch_ltc._names import line_of

#: The names of classes, by the identity of the dict that holds an instance's attributes: messages name attributes so.
owners: dict[int, str] = {}


class Place(NamedTuple):
    """A place that a step reads. `_ltc.Watch` takes it as a tuple and knows the first three fields by position."""

    #: How it is read; see the module.
    kind: str
    #: The object in which it is.
    holder: Any
    #: The name, key or descriptor of it there; `None` where the kind needs none.
    name: Any
    #: The code that reads it, for messages; `None` where that is not known.
    reader: types.CodeType | None

    def __str__(self) -> str:
        what = "what a function's cache keeps" if self.kind == "kept" else _title(self.holder, self.name)
        reader = self.reader
        if reader is None:
            return what
        return f"{what} (read in {reader.co_qualname}, {reader.co_filename}:{line_of(reader, self.name)})"


def _title(holder: Any, name: Any) -> str:
    """A place in words."""
    if type(holder) is types.FunctionType:
        return f"the function {holder.__qualname__}"
    if type(holder) is types.CellType:
        return f"the variable {name}" if name else "a variable of an enclosing function"
    if isinstance(holder, type):
        return f"{holder.__qualname__}.{name}"
    if isinstance(holder, torch.Tensor) and name == "grad":
        return "the gradient of a tensor"
    owner = owners.get(id(holder)) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and "__name__" in holder and "__builtins__" in holder:
        return f"the global {name}"
    if owner is not None and name is not None:
        return f"{owner}.{name}"
    kind = type(holder).__qualname__
    return f"an entry {name!r} of a {kind}" if name is not None else f"the contents of a {kind}"
