"""Functions of torch that another package has patched: which function does a call mean that a mode is told of?

A torch function mode is told the function that stands under a name in torch. Where a package has put a wrapper there,
that is the wrapper, even if it is the wrapper that calls torch's own function. Which one is meant is found from the
frames that led to the mode.
"""

import sys
import types
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.overrides import handle_torch_function

_ASKS = handle_torch_function.__code__


def meant(function: Any, depth: int) -> Callable[..., Any] | None:
    """The function that a call means which a mode is told of as `function` (no C function); `None` where that is not
    known. `depth`: how many frames up the mode was called."""
    if _is_of_torch(function):
        return cast(Callable[..., Any], function)
    caller = sys._getframe(depth + 1)
    if caller.f_code is not _ASKS or caller.f_back is None:
        return _method_of_c(function)
    own = caller.f_back
    if own.f_code is getattr(function, "__code__", None):
        return cast(Callable[..., Any], function)
    return None if own.f_code.co_freevars else _function(own.f_code, own.f_globals)


#: The functions that :func:`_function` made, by the identity of their code and globals, which they keep.
_functions: dict[tuple[int, int], Callable[..., Any]] = {}


def _function(code: types.CodeType, scope: dict[str, Any]) -> Callable[..., Any]:
    """A function with this code: the same object each time, since lines of captures are compared by identity."""
    return _functions.setdefault((id(code), id(scope)), types.FunctionType(code, scope))


def _is_of_torch(function: Any) -> bool:
    """Whether a function is torch's own."""
    scope = getattr(function, "__globals__", None)
    module = scope.get("__name__") if scope is not None else getattr(function, "__module__", None)
    return (module or "").partition(".")[0] in ("torch", "") or isinstance(function, types.BuiltinFunctionType)


def _method_of_c(function: Any) -> Callable[..., Any] | None:
    """The C method of tensors in whose place this function stands; `None` where there is no such one."""
    names = [name for name, value in vars(torch.Tensor).items() if value is function]
    found = [getattr(torch._C.TensorBase, name, None) for name in names]
    return found[0] if len(found) == 1 else None
