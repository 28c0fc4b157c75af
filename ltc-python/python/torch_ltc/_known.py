"""What is known of Python's and torch's own classes and functions: which values never change, which functions depend on
their arguments only. :mod:`torch_ltc._survey` asks it of what a step reads and calls."""

import copyreg
import datetime
import functools
import itertools
import operator
import re
import threading
import types
import typing
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

#: Values that never change, and are compared by value where they are read.
ATOMS: frozenset[type] = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo, torch.iinfo),
        *(types.CodeType, types.GenericAlias, types.UnionType, types.GetSetDescriptorType),
        *(types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
        *(types.ClassMethodDescriptorType, property, staticmethod, classmethod, re.Pattern, type(threading.Lock())),
        *(type(threading.RLock()), type(torch.autograd.Variable._execution_engine), types.TracebackType),
        *(typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple),
        *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone, operator.itemgetter),
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
        *(object, *CONTAINERS, types.SimpleNamespace, int, float, str, bytes, complex, type),
        *(types.ModuleType, BaseException, Exception, torch._C.TensorBase, torch._C._FunctionBase, torch.Generator),
    )
)

#: Modules whose functions depend on their arguments (and on what the key of a capture holds) only.
PURE_MODULES = frozenset(
    """math cmath _operator itertools _functools _collections _abc _weakref _struct _thread _contextvars _sre _string
    _warnings _bisect _heapq _stat _codecs atexit""".split()
)
#: Those of them whose functions compute with floats.
TAKE_NUMBERS = frozenset(("math", "cmath", "_struct"))
#: Modules of classes written in C that ask numbers for what they are, or keep them.
_ASKING_MODULES = frozenset(
    """builtins itertools functools _functools collections _collections types weakref _weakref _thread contextvars
    _contextvars re typing operator _operator enum abc pybind11_builtins""".split()
)
#: Of the collector: what changes nothing that programs see.
OF_THE_COLLECTOR = frozenset("collect enable disable freeze unfreeze".split())
IMPURE_BUILTINS = frozenset("open input print exec eval compile breakpoint globals locals dir __import__".split())
IMPURE_TORCH = frozenset(
    """manual_seed seed initial_seed set_state set_offset _set_default_tensor_type _set_default_dtype
    set_num_threads""".split()
)
CLASS_METHODS = frozenset("__new__ fromkeys fromhex mro __prepare__ __subclasscheck__ __instancecheck__".split())
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


def is_scripted(x: Any) -> bool:
    """Whether an object of torch has attributes that are not Python's. The profiler's marks have none to read."""
    if isinstance(x, torch.ScriptObject):
        return not x._type().qualified_name().startswith("__torch__.torch.classes.profiler.")
    return isinstance(x, torch.jit.ScriptModule)


#: What processes tell each other by; a build of torch may have none.
STORES = tuple(filter(None, [getattr(getattr(torch._C, "_distributed_c10d", None), "Store", None)]))
#: How Python gives a tensor hooks: histories that begin there have them, too.
HOOKING = frozenset(("_register_hook_dict", "retain_grad"))
#: Looked up on classes without being named; one that comes later counts too.
SPECIAL = frozenset(
    """__call__ __getattr__ __getattribute__ __setattr__ __delattr__ __init__ __new__ __enter__ __exit__ __iter__
    __next__ __len__ __contains__ __getitem__ __setitem__ __delitem__ __missing__ __bool__ __eq__ __ne__ __lt__ __le__
    __gt__ __ge__ __hash__ __str__ __repr__ __format__ __float__ __int__ __index__ __round__ __neg__ __pos__ __abs__
    __invert__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __matmul__ __rmatmul__
    __truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __and__ __rand__
    __or__ __ror__ __xor__ __rxor__ __get__ __set__ __class_getitem__ __instancecheck__ __torch_function__
    __match_args__ __reversed__ __floor__ __trunc__ __ceil__""".split()
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


def is_own(kind: type) -> bool:
    """Whether a class is this package's, and programs give its objects no attributes."""
    return kind.__module__.partition(".")[0] == "torch_ltc" and not hasattr(kind, "is_of_programs")


def namespace(x: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, where it has one."""
    try:
        found = x.__dict__ if isinstance(x, threading.local) else object.__getattribute__(x, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if type(found) is dict else None


@functools.lru_cache(4096)
def takes_numbers(kind: Any) -> bool:
    """Whether calls of a class and operators with its objects, which no event tells of, may compute with floats in C.
    (For complex numbers, :func:`torch_ltc._names.computes_unseen` knows.)"""
    if issubclass(kind, (float, complex)):
        return kind not in (float, complex)
    return kind is memoryview or not all(
        base in _OPEN_BASES
        or base.__module__ in _ASKING_MODULES
        or base.__module__.partition(".")[0] == "torch"
        or is_of_python(base)
        for base in kind.__mro__
    )


@functools.lru_cache(4096)
def is_open(kind: Any) -> bool:
    """Whether all that instances hold can be looked at: the class is Python's, and so are its bases or known."""
    return all(base in _OPEN_BASES or is_of_python(base) for base in kind.__mro__)


def is_of_python(kind: Any) -> bool:
    """Whether a class is made by Python code: its instances have room for what its slots, a dict and weak references
    take, and not for more, as those of classes written in C have."""
    base = kind.__base__
    if not kind.__flags__ & _HEAP_TYPE or kind.__flags__ & _IMMUTABLE_TYPE or base is None:
        return False
    words = sum(type(x) is types.MemberDescriptorType for x in vars(kind).values())
    # Behind what varies in size a dict's place is counted from the end.
    words += (kind.__dictoffset__ != 0) != (base.__dictoffset__ != 0)
    words += (kind.__weakrefoffset__ > 0) != (base.__weakrefoffset__ > 0)
    return 0 <= kind.__basicsize__ - base.__basicsize__ <= 8 * words


#: Flags of classes: CPython's ``Py_TPFLAGS_HEAPTYPE`` and ``Py_TPFLAGS_IMMUTABLETYPE``.
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8


def lookup(kind: type, name: str) -> Any:
    """What a class or the nearest of its bases has under a name, as it is (descriptors are not asked)."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return NOTHING
