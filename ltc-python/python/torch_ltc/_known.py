"""What is known of Python's and torch's own classes and functions: which values never change, which functions depend on
their arguments only. :mod:`torch_ltc._survey` asks it of what a step reads and calls."""

import copyreg
import functools
import itertools
import re
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

#: Values that never change, and are compared by value where they are read.
ATOMS: frozenset[type] = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo, torch.iinfo),
        *(types.CodeType, types.MappingProxyType, types.GenericAlias, types.UnionType, types.GetSetDescriptorType),
        *(types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
        *(types.ClassMethodDescriptorType, property, staticmethod, classmethod, re.Pattern, type(threading.Lock())),
        *(type(threading.RLock()), type(torch.autograd.Variable._execution_engine), types.TracebackType),
    )
)
#: Iterators: fine when the step makes them, a hidden position when they are older.
EMPTY: tuple[Any, ...] = ([], (), {}, {}.values(), {}.items(), set(), "", range(0))
ITERATORS: tuple[type, ...] = (
    *map(type, map(iter, EMPTY)),
    *(zip, map, filter, enumerate, reversed, itertools.count, itertools.cycle, itertools.chain, types.GeneratorType),
)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
#: Containers that hold nothing but their members.
CONTAINERS = (dict, OrderedDict, defaultdict, list, tuple, set, frozenset, deque)
#: Classes written in C whose Python subclasses hold nothing that cannot be looked at.
_OPEN_BASES = frozenset(
    (
        *(object, *CONTAINERS, int, float, str, bytes, complex, type),
        *(types.ModuleType, BaseException, Exception, torch._C.TensorBase, torch._C._FunctionBase, torch.Generator),
    )
)

#: Modules whose functions depend on their arguments (and on what the key of a capture holds) only.
PURE_MODULES = frozenset(
    """math cmath _operator itertools _functools _collections _abc _weakref _struct _thread _contextvars _sre _string
    _warnings _bisect _heapq _stat _codecs atexit gc""".split()
)
IMPURE_BUILTINS = frozenset("open input print exec eval compile breakpoint globals locals dir __import__".split())
IMPURE_TORCH = frozenset(
    "manual_seed seed set_state set_offset _set_default_tensor_type _set_default_dtype set_num_threads".split()
)
CLASS_METHODS = frozenset(
    "__new__ fromkeys fromhex mro __prepare__ __subclasses__ __subclasscheck__ __instancecheck__".split()
)
#: What asks which devices there are, by the driver or the environment: the answer is the same while a process runs.
OF_THE_MACHINE = frozenset(
    f.__code__
    for f in (
        torch.cuda.is_available,
        torch.cuda.device_count,
        torch.xpu.is_available,
        torch.mps.is_available,
        torch.backends.mps.is_available,
        torch.mtia.is_available,
    )
    if isinstance(f, types.FunctionType)
)
#: How Python gives a tensor hooks: histories that begin there have them, too.
HOOKING = frozenset(("_register_hook_dict", "retain_grad"))
#: Looked up on classes without being named; one that comes later counts too.
SPECIAL = frozenset(
    """__call__ __getattr__ __getattribute__ __setattr__ __delattr__ __init__ __new__ __enter__ __exit__ __iter__
    __next__ __len__ __contains__ __getitem__ __setitem__ __delitem__ __missing__ __bool__ __eq__ __ne__ __lt__ __le__
    __gt__ __ge__ __hash__ __str__ __repr__ __format__ __float__ __int__ __index__ __round__ __neg__ __pos__ __abs__
    __invert__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __matmul__ __rmatmul__
    __truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __and__ __rand__
    __or__ __ror__ __xor__ __rxor__ __get__ __set__ __class_getitem__ __instancecheck__ __torch_function__""".split()
)


#: What :func:`lookup` answers where there is nothing.
NOTHING = object()


#: What a class may say of copies of its objects.
OF_COPIES = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__getnewargs__")


def copies_as_objects_do(kind: type) -> bool:
    """Whether a copy of an object (:mod:`copy`) is made of its attributes and nothing else: of a class of Python code
    without slots, which says nothing of copies itself."""
    own = [base for base in kind.__mro__ if base is not object]
    # Classes that a program can change are of Python code.
    return kind not in copyreg.dispatch_table and all(
        base.__flags__ & 1 << 9 and not any(name in vars(base) for name in (*OF_COPIES, "__slots__")) for base in own
    )


def namespace(x: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, where it has one."""
    try:
        found = x.__dict__ if isinstance(x, threading.local) else object.__getattribute__(x, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if type(found) is dict else None


@functools.lru_cache(4096)
def is_open(kind: Any) -> bool:
    """Whether all that instances hold can be looked at: the class is Python's, and so are its bases or known."""
    for base in kind.__mro__:
        if base in _OPEN_BASES:
            continue
        module = sys.modules.get(base.__module__)
        source = getattr(module, "__file__", None) or ""
        in_python = base.__module__ == "__main__" or source.endswith((".py", ".pyc"))
        if not (in_python or (module is None and base.__flags__ & 1 << 9)):
            return False
    return True


def lookup(kind: type, name: str) -> Any:
    """What a class or the nearest of its bases has under a name, as it is (descriptors are not asked)."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return NOTHING
