"""Tables of what is known of Python's and torch's own classes and functions, for the survey.

Which values never change (:data:`ATOMS`), which containers and classes hold nothing that cannot be looked at
(:func:`is_open`), which C functions depend on their arguments alone (:data:`PURE_MODULES`), which refuse a step, and
which may compute with floats (:func:`takes_numbers`).
"""

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
from contextvars import Token
from typing import Any, cast

import torch

#: Classes whose values never change; they are compared by value where they are read.
ATOMS: frozenset[type] = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo, torch.iinfo),
        *(types.CodeType, types.ClassMethodDescriptorType, re.Pattern),
        type(torch.autograd.Variable._execution_engine),
        *(datetime.date, datetime.timedelta, datetime.timezone, type(Token.MISSING)),
    )
)
#: The classes of locks. A lock's state cannot be watched.
LOCKS = (type(threading.Lock()), type(threading.RLock()))
#: Classes whose objects never come to hold something else, but what they hold may change.
HOLDERS: frozenset[type] = frozenset(
    (
        *(slice, types.UnionType, operator.itemgetter, datetime.time, datetime.datetime),
        *(typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple),
    )
)
#: Classes of which there are subclasses, too, whose objects are the same. These may have attributes of their own.
WRAPPERS = (types.GenericAlias, property, staticmethod, classmethod)
#: Methods of objects, written in C, that read or set attributes by other names than the method's own.
READ_ATTRIBUTES = frozenset(
    "__getattribute__ __setattr__ __delattr__ __getstate__ __reduce__ __reduce_ex__ __dir__ __sizeof__".split()
)
#: Iterators are fine when the step makes them; an older one has a hidden position, which cannot be watched.
EMPTY: tuple[Any, ...] = ([], (), {}, {}.values(), {}.items(), set(), "", range(0))
ITERATORS: tuple[type, ...] = (
    *map(type, map(iter, EMPTY)),
    *(zip, map, filter, enumerate, reversed, itertools.count, itertools.cycle, itertools.chain, types.GeneratorType),
)
#: Views of dicts.
_ORDERED = OrderedDict[str, int]()
VIEWS: tuple[type, ...] = (
    *(type({}.keys()), type({}.values()), type({}.items())),
    *map(type, (_ORDERED.keys(), _ORDERED.values(), _ORDERED.items())),
)
#: Classes of containers that hold nothing but their members.
CONTAINERS = (dict, OrderedDict, defaultdict, list, tuple, set, frozenset, deque)
#: C classes whose Python subclasses hold nothing that cannot be looked at.
_OPEN_BASES = frozenset(
    (
        *(object, *CONTAINERS, types.SimpleNamespace, int, float, str, bytes, complex, type),
        *(types.ModuleType, BaseException, Exception, torch._C.TensorBase, torch._C._FunctionBase, torch.Generator),
    )
)

#: Modules whose C functions depend only on their arguments, and on state that is part of a capture's key.
PURE_MODULES = frozenset(
    """math cmath _operator itertools _functools _collections _abc _weakref _struct _thread _contextvars _sre _string
    _warnings _bisect _heapq _stat _codecs""".split()
)
#: Those of them whose functions compute with floats.
TAKE_NUMBERS = frozenset(("math", "cmath", "_struct"))
#: Modules whose C classes use a number by its own methods, or only keep it.
_ASKING_MODULES = frozenset(
    """builtins itertools functools _functools collections _collections types weakref _weakref _thread contextvars
    _contextvars re typing operator _operator enum abc pybind11_builtins""".split()
)
#: Functions of `gc` that a step may call: one changes nothing that programs see, and the others turn the collector off
#: and on again, or ask about that.
OF_THE_COLLECTOR = frozenset("collect enable disable isenabled".split())
#: What starts and ends threads in `_thread`, and what asks in `_weakref` for references that nothing tells of.
OF_THREADS = frozenset("start_new_thread start_new start_joinable_thread interrupt_main exit exit_thread".split())
OF_REFERENCES = frozenset("proxy getweakrefcount getweakrefs".split())
#: Builtin functions that refuse a step, and C functions of torch that do.
IMPURE_BUILTINS = frozenset("open input print exec eval compile breakpoint globals locals dir __import__".split())
IMPURE_TORCH = frozenset(
    """manual_seed seed initial_seed set_state set_offset _set_default_tensor_type _set_default_dtype
    set_num_threads _accelerator_getDeviceStats _accelerator_getMemoryInfo _accelerator_resetPeakStats
    _accelerator_resetAccumulatedStats""".split()
)
#: Methods of classes, written in C, that are allowed for any class.
CLASS_METHODS = frozenset("__new__ fromkeys fromhex mro __prepare__ __subclasscheck__ __instancecheck__".split())
#: Functions that ask which devices there are. They ask the driver or the environment, and the answer stays the same
#: while a process runs, so they are not observed.
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
    """Whether an object of torch is TorchScript's, with attributes that are not Python's. The profiler's handles are,
    too, but have nothing to read."""
    if isinstance(x, torch.ScriptObject):
        return not x._type().qualified_name().startswith("__torch__.torch.classes.profiler.")
    return isinstance(x, torch.jit.ScriptModule)


#: Classes of torch's C++ whose objects say what happens elsewhere, or what they were told: stores by which processes
#: exchange values, results to come, events, streams, files, objects of scripts. A build of torch may lack some.
_OF_STATE = (
    "Future _Await ScriptObject ScriptDict ScriptList Event Stream PyTorchFileReader PyTorchFileWriter LoggerBase"
)
_OF_RANKS = "Store Work"
ELSEWHERE = tuple(
    found
    for home, names in ((torch._C, _OF_STATE), (getattr(torch._C, "_distributed_c10d", None), _OF_RANKS))
    for name in names.split()
    if (found := getattr(home, name, None)) is not None
)
#: The C functions of their methods, where a call does not tell of which object it is one (of pybind11's classes).
METHODS_ELSEWHERE = frozenset(
    method.__func__
    for kind in ELSEWHERE
    if kind is not torch._C.ScriptObject
    for name, method in vars(kind).items()
    if type(method).__name__ == "instancemethod" and name != "wait"  # which tells nothing
)
#: C functions by which Python gives a tensor gradient hooks, which count as dealing with gradients.
HOOKING = frozenset(("_register_hook_dict", "retain_grad"))
#: Special methods, which Python looks up on classes although no code names them. A missing one is watched, too.
SPECIAL = frozenset(
    """__call__ __getattr__ __getattribute__ __setattr__ __delattr__ __init__ __new__ __enter__ __exit__ __iter__
    __next__ __len__ __contains__ __getitem__ __setitem__ __delitem__ __missing__ __bool__ __eq__ __ne__ __lt__ __le__
    __gt__ __ge__ __hash__ __str__ __repr__ __format__ __float__ __int__ __index__ __round__ __neg__ __pos__ __abs__
    __invert__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __matmul__ __rmatmul__
    __truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __and__ __rand__
    __or__ __ror__ __xor__ __rxor__ __get__ __set__ __class_getitem__ __instancecheck__ __torch_function__
    __match_args__ __reversed__ __floor__ __trunc__ __ceil__ __lshift__ __rlshift__ __rshift__ __rrshift__ __divmod__
    __rdivmod__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __imatmul__
    __complex__ __bytes__ __length_hint__ __delete__ __del__ __dir__ __subclasscheck__ __subclasshook__ __fspath__
    keys __init_subclass__ __set_name__ __mro_entries__ __prepare__ __buffer__ __release_buffer__ __sizeof__""".split()
)


#: What :func:`lookup` returns where a class has nothing of a name.
NOTHING = object()


#: Methods by which a class may define how its objects are copied and pickled.
OF_COPIES = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__getnewargs__")


def copies_as_objects_do(kind: type) -> bool:
    """Whether :mod:`copy` copies an object of this class by its attributes and nothing else: the class is Python's,
    without slots, and does not define how its objects are copied."""
    own = [base for base in kind.__mro__ if base is not object]
    # The flag is `Py_TPFLAGS_HEAPTYPE`, which classes of Python code have.
    return kind not in copyreg.dispatch_table and all(
        base.__flags__ & 1 << 9 and not any(name in vars(base) for name in (*OF_COPIES, "__slots__")) for base in own
    )


def is_own(kind: type) -> bool:
    """Whether a class is this package's, and its objects are not looked at. Objects of a class with `is_of_programs`
    are, since programs give them attributes."""
    return kind.__module__.partition(".")[0] == "torch_ltc" and not hasattr(kind, "is_of_programs")


def is_of_builtins(x: Any) -> bool:
    """Whether what `builtins` has under a name is a class that is written in C, or nothing."""
    return x is None or (type(x) is type and not x.__flags__ & _HEAP_TYPE)


class _NoDict:
    """Stands for what reads the dict of an object that has none."""

    def __get__(self, _: Any, owner: Any = None) -> Any:
        raise AttributeError


_NO_DICT = _NoDict()


@functools.lru_cache(4096)
def _hidden_dict(kind: Any) -> Any:
    """What reads the dict of an object's attributes where its class has something else under the name `__dict__` (a
    proxy, which answers with another object's); `None` for other classes."""
    of_c = (types.GetSetDescriptorType, types.MemberDescriptorType)
    found = [vars(base)["__dict__"] for base in kind.__mro__ if "__dict__" in vars(base)]
    if not found or type(found[0]) in of_c:
        return None
    return next((x for x in found if type(x) in of_c), _NO_DICT)


def namespace(x: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, where it has one that is no more than a dict."""
    found = any_namespace(x)
    return found if type(found) is dict else None


def any_namespace(x: Any) -> Any:
    """The same, where that may be of a class of the program's."""
    try:
        hidden = _hidden_dict(cast(Any, type(x)))
        if hidden is not None:
            found = hidden.__get__(x)
        else:
            found = x.__dict__ if isinstance(x, threading.local) else object.__getattribute__(x, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found


@functools.lru_cache(4096)
def takes_numbers(kind: Any) -> bool:
    """Whether calling a class, or an operator with one of its objects, may compute with floats in C: no event tells of
    these. (Of complex numbers, :func:`torch_ltc._names.computes_unseen` knows.)"""
    if issubclass(kind, (float, complex)):
        return kind not in (float, complex)
    return kind is memoryview or not all(
        base in _OPEN_BASES
        or base.__module__ in _ASKING_MODULES
        or base.__module__.partition(".")[0] == "torch"
        or is_of_python(base)
        for base in kind.__mro__
    )


def is_of_torch(module: str) -> bool:
    """Whether a module is torch's, or ours."""
    return module.partition(".")[0] in ("torch", "torch_ltc")


@functools.lru_cache(4096)
def is_finalised(kind: Any) -> bool:
    """Whether a class of Python code has a finaliser (`__del__`)."""
    return any("__del__" in vars(base) for base in kind.__mro__ if is_of_python(base))


@functools.lru_cache(4096)
def is_open(kind: Any) -> bool:
    """Whether everything that objects of a class hold can be looked at: the class and its bases are Python's, or are
    known C classes."""
    return all(base in _OPEN_BASES or is_of_python(base) for base in kind.__mro__)


def is_of_python(kind: Any) -> bool:
    """Whether a class was made by Python code. Its objects then have room for slots, a dict and weak references and for
    nothing else; those of C classes are larger."""
    base = kind.__base__
    if not kind.__flags__ & _HEAP_TYPE or kind.__flags__ & _IMMUTABLE_TYPE or base is None:
        return False
    words = sum(type(x) is types.MemberDescriptorType for x in vars(kind).values())
    # The offset of the dict is negative (counted from the end) in objects of variable size, so it is compared with 0.
    words += (kind.__dictoffset__ != 0) != (base.__dictoffset__ != 0)
    words += (kind.__weakrefoffset__ > 0) != (base.__weakrefoffset__ > 0)
    return 0 <= kind.__basicsize__ - base.__basicsize__ <= 8 * words


#: CPython's ``Py_TPFLAGS_HEAPTYPE`` and ``Py_TPFLAGS_IMMUTABLETYPE``.
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8


def base_of(x: Any) -> Any:
    """The class written in C by which a container holds its members; subclasses may have other answers, which run code
    of the program."""
    return next(base for base in type(x).__mro__ if not base.__flags__ & 1 << 9)


def lookup(kind: type, name: str) -> Any:
    """What a class or the first of its bases has under a name, without calling descriptors; else :data:`NOTHING`."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return NOTHING


#: Parts of functions and of exceptions that can be set, and the descriptors that give them.
PARTS_OF_FUNCTIONS: dict[str, Any] = {
    name: part
    for name, part in vars(types.FunctionType).items()
    if hasattr(type(part), "__set__") and name not in ("__dict__", "__builtins__", "__code__")
}
PARTS_OF_ERRORS = {name: vars(BaseException)[name] for name in "args __cause__ __context__ __traceback__".split()}
