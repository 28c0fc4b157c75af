"""What code can reach from an object, by the names that it uses.

The middle layer of the survey. :class:`torch_ltc._survey.Survey` says where code starts (a variable, a global, a
result); this layer goes on from an object to what it holds, for each kind of object in its own way, and notes the
places of older objects on the way. It follows only the names that occur in the code (`_names.CodeNames`), unless the
code computes names (`getattr(x, name)`), which opens all attributes. Objects that cannot be looked at refuse the step.
"""

import enum
import functools
import gc
import operator
import sys
import threading
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable
from contextvars import Context, ContextVar, Token
from typing import Any, cast

import torch

from torch_ltc._classes import OF_C
from torch_ltc._known import (
    ATOMS,
    CONTAINERS,
    ITERATORS,
    NOTHING,
    PARTS_OF_ERRORS,
    PARTS_OF_FUNCTIONS,
    READ_ATTRIBUTES,
    TAKE_NUMBERS,
    VIEWS,
    any_namespace,
    base_of,
    is_finalised,
    is_of_torch,
    is_open,
    is_scripted,
    namespace,
    takes_numbers,
)
from torch_ltc._names import BY_NAME, CodeNames, code_of, computes_unseen, is_of_program
from torch_ltc._parts import DESCRIPTORS
from torch_ltc._places import owners
from torch_ltc._runtime import is_leaf
from torch_ltc._spaces import Spaces

#: Classes of objects in modules that are not looked at where names are computed: frames and calls show what they do.
_OF_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_OF_MODULES = (types.ModuleType, type, *_OF_FUNCTIONS)
#: Classes that are written in C, and whose objects can be looked at.
_RARE = (functools.partial, functools._lru_cache_wrapper, ContextVar, weakref.ref)
#: The qualified names of code that reads version counters only to put them back begin with this.
_PUTS_VERSIONS_BACK = "_unsafe_preserve_version_counter."
#: A container with more members than this refuses the step.
_MANY = 100_000
#: Bases of classes whose objects hold nothing that changes.
ATOMIC_BASES = (torch.Size,)


@functools.lru_cache(4096)
def _slots(kind: type) -> frozenset[str]:
    """The names of the slots of a class and its bases, but for those of classes written in C."""
    bases = [vars(base) for base in kind.__mro__ if base.__flags__ & 1 << 9]
    return frozenset(name for base in bases for name, x in base.items() if type(x) is types.MemberDescriptorType)


def _errors_of_numpy() -> str:
    """What numpy does about errors in arithmetic (`numpy.seterr`)."""
    return str(sys.modules["numpy"].geterr())


def members_of(x: Any) -> list[Any]:
    """The members of a list, tuple, set or deque."""
    return list(base_of(x).__iter__(x))


def _may_hold(x: Any) -> bool:
    """Whether code may come to something that changes by an object that it finds in a module under a computed name.
    Functions, classes and modules are many, and what these do shows when it is done."""
    kind = type(x)
    return not isinstance(x, _OF_MODULES) and (is_open(cast(Any, kind)) or kind in _RARE or kind in ITERATORS)


class Reached(Spaces):
    """The part of a survey that goes from an object to what it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.appends, self.pushed, self.firsts, self.writing = {}, {}, {}, {}
        #: True while all attributes of an object are looked at (:meth:`open`): the code uses few of them, so C
        #: functions among them are not judged.
        self._opens = False
        #: Iterators that the collector does not track, with the line at which each was met. One that something else
        #: still holds in the end is older than the step, and its position cannot be watched.
        self._suspects: list[tuple[Any, str]] = []
        #: Objects of the step's own with finalisers of the program's, and where they were found.
        self._finalised: list[tuple[weakref.ref[Any], str]] = []
        #: The older tensors that were reached, by identity.
        self._tensors: dict[int, torch.Tensor] = {}
        #: Those of them on the CPU, with their version counters when they were reached.
        self.on_host: dict[int, tuple[torch.Tensor, int]] = {}
        #: Whether the step reaches scripted functions, whose operators no mode sees.
        self.is_scripted = False

    def older_tensors(self) -> list[torch.Tensor]:
        """The tensors that are older than the step and that it reached."""
        return list(self._tensors.values())

    def look_at_atom(self, x: Any, info: CodeNames) -> None:
        """An immutable value need not be watched, but operators with it may compute with traced numbers in C."""
        if computes_unseen(x, info.has_percent):
            self.expect_unseen_float_calls()

    def _reach(self, x: Any, kind: type, info: CodeNames, frame: types.FrameType, old: bool) -> Iterable[Any]:
        """The objects that code with these names can reach from an object in one step. Notes the places in which they
        were found, if the object is older than the step (`old`)."""
        code = frame.f_code
        if takes_numbers(kind):
            self.expect_unseen_float_calls()  # operators of this class may compute with them
        if issubclass(kind, torch.Tensor):
            return self._tensor(x, kind, info, code, old)
        if issubclass(kind, dict):
            if old:
                self._note_contents("dict", x, info, code)
            inside = [*dict.keys(x), *self._values(x)] if self._is_small(x, frame) else []
            if issubclass(kind, defaultdict):
                inside.append(x.default_factory)
                if old:
                    self.note_place("slot", x, vars(defaultdict)["default_factory"], code)
                    self.looked_at.note_other(x, info)
            return inside if kind in CONTAINERS else [*inside, *self._instance(x, kind, info, code, old)]
        if issubclass(kind, (list, tuple, set, frozenset, deque)):
            if old and not issubclass(kind, (tuple, frozenset)):
                self._note_contents("members", x, info, code)
            inside = members_of(x) if self._is_small(x, frame) else []
            # The tuples that operators return (`x.max(0)`) hold nothing besides their members.
            return (
                inside
                if kind in CONTAINERS or kind.__module__ == "torch.return_types"
                else [*inside, *self._instance(x, kind, info, code, old)]
            )
        if kind is types.FunctionType:
            return self._function(x, info, code, old)
        if kind is types.MethodType:
            return (x.__self__, x.__func__)
        if kind.__name__ == "instancemethod":  # of pybind11's classes
            return (x.__func__,)
        if kind is types.CellType:
            if old:
                self._note_contents("cell", x, info, code)
            try:
                return (x.cell_contents,)
            except ValueError:
                return ()
        if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
            return self._of_c(x, kind, frame)
        if kind in DESCRIPTORS:
            return self._descriptor(x, info, frame)
        if issubclass(kind, types.ModuleType):
            return self._module(x, kind, info, frame)
        if issubclass(kind, type):
            if x.__module__ in ("decimal", "_decimal"):
                self.refuse(f"it uses decimal.{x.__name__}, which computes as a context says", frame)
            elif x is torch._C.DisableTorchFunction:
                self.refuse("it disables torch functions (DisableTorchFunction)", frame)
            # The module `copy` only looks such classes up.
            elif takes_numbers(x) and not self._opens and frame.f_globals.get("__name__") != "copy":
                self.expect_unseen_float_calls()
            self._is_getting(x, frame)
            found = self._class_attributes(x, info, code)
            return found if type(x) is type else [*found, *self._of_metaclass(x, info, code)]
        if issubclass(kind, functools.partial):
            return self._partial(x, info, frame, old)
        return self._reach_rare(x, kind, info, frame, old)

    def _reach_rare(self, x: Any, kind: type, info: CodeNames, frame: types.FrameType, old: bool) -> Iterable[Any]:
        """As :meth:`_reach`, for kinds of objects that are met less often."""
        code = frame.f_code
        if issubclass(kind, weakref.ref):
            if old and is_of_program(frame) and not isinstance(x(), type):
                self.refuse("it reads a weak reference, whose object a watch would keep alive", frame)
            elif old:
                self.note_place("referent", x, None, code)
            return (x(),) if kind is weakref.ref else (x(), *self._instance(x, kind, info, code, old))
        if kind is ContextVar:
            self._note_contents("variable", x, info, code)
            return (x.get(None),)
        if kind is super:
            return (x.__self__, *self._of_bases(x.__self_class__, info, code))
        if kind in VIEWS or kind is types.MappingProxyType:
            return gc.get_referents(x)
        if kind in ITERATORS and not kind.__flags__ & 1 << 14:  # not `Py_TPFLAGS_HAVE_GC`
            # Whether it is the step's own shows when the step has ended.
            self._suspects.append((x, f"{code.co_filename}:{frame.f_lineno}"))
            return ()
        if kind in ITERATORS:
            return self._hidden(x, info, old, frame) if old else self._started(x, kind, info, frame)
        if issubclass(kind, threading.local):
            self.note_place("thread", x, None, code)
            return self._instance(x, kind, info, code, old)
        if kind.__module__.startswith("numpy"):
            return self._array(x, kind, info, old, frame)
        if kind is functools._lru_cache_wrapper:
            found = self._attributes(vars(x), info, code, old)
            return [*self._results(x, code), *found] if old else [*found, *gc.get_referents(x)]
        if kind is operator.attrgetter:
            return self._getter(x, info, frame)
        if self._is_part(kind):
            return self._inside(x, kind, info, frame, old)
        if issubclass(kind, BaseException) and not old:
            found = [*self._instance(x, kind, info, code, old)] if is_open(cast(Any, kind)) else []
            return [*found, *self._error(x, info)]
        if kind is types.FrameType and not old:  # one that has ended
            self.refuse("it reads what a frame holds", frame)
            return ()
        if issubclass(kind, torch.jit.ScriptFunction):
            self.is_scripted = True
        if is_scripted(x):
            return self._hidden(x, info, old, frame)
        if is_open(cast(Any, kind)):
            return self._instance(x, kind, info, code, old)
        if is_of_torch(kind.__module__):
            return self._of_torch(x, kind, info, frame, old)
        return self._hidden(x, info, old, frame)

    def _of_torch(self, x: Any, kind: type, info: CodeNames, frame: types.FrameType, old: bool) -> Iterable[Any]:
        """The attributes of libtorch's own objects: what may change besides of them is part of the key, or is compared
        with the tensors."""
        if old and isinstance(x, torch.UntypedStorage) and x.device.type == "cpu":
            self.refuse("it uses the memory of a CPU tensor by its storage, which cannot be watched", frame)
        return self._instance(x, kind, info, frame.f_code, old)

    def open(self, start: Any, info: CodeNames, frame: types.FrameType) -> None:
        """Looks at all attributes of an object, and of the attributes that the code names, and so on."""
        everything, stack, done = info.opening(), [start], set[int]()
        self._opens = True
        while stack:
            x = stack.pop()
            kind = type(x)
            if kind in ATOMS or id(x) in done or not self.is_older(x):
                continue
            done.add(id(x))
            space = namespace(x)
            inside: Iterable[Any]
            if isinstance(x, (types.ModuleType, type)):
                if x.__name__ in TAKE_NUMBERS:
                    self.expect_unseen_float_calls()
                inside = self._reach(x, kind, everything, frame, True)
                if isinstance(x, types.ModuleType):
                    self.note_place("dict", x.__dict__, None, frame.f_code)
                    values = self._values(vars(x))
                    inside = [*filter(_may_hold, values)]
                    for y in values:
                        if type(y) is types.FunctionType and y.__dict__:
                            inside += self.added(y, info.closing(), frame.f_code, True)
                stack += [found for n in info.attributes if (found := vars(x).get(n)) is not None]
            elif isinstance(x, _OF_FUNCTIONS) or issubclass(kind, torch.Tensor):
                inside = self._attributes(space, everything, frame.f_code, True) if space is not None else ()
            elif space is None and not _slots(cast(Any, kind)) and not issubclass(kind, CONTAINERS):
                continue
            elif issubclass(kind, CONTAINERS):
                inside = [*self._reach(x, kind, everything, frame, True)]
                stack += inside
            else:
                inside = self._instance(x, kind, everything, frame.f_code, True)
                stack += [space[n] for n in info.attributes if space is not None and n in space]
            for y in inside:
                self.look(y, everything if info.goes_on else info.closing().shut(), frame)
        self._opens = False

    def _is_small(self, x: Any, frame: types.FrameType) -> bool:
        """Whether a container is small enough to be looked at; refuses the step if not."""
        count = base_of(x).__len__(x)
        if count > _MANY:
            self.refuse(f"it reaches a {type(x).__qualname__} of {count} members", frame)
        return bool(count <= _MANY)

    def _module(self, x: types.ModuleType, kind: type, info: CodeNames, frame: types.FrameType) -> Iterable[Any]:
        """The attributes of a module that the code names; looks at the others where the code computes names."""
        code = frame.f_code
        self.note_place("class", x, None, code)
        if "__getattr__" in x.__dict__:
            # It answers for names that the module lacks, so a missing name is watched, too.
            self.note_place("entry", x.__dict__, "__getattr__", code)
            info = info.lacking()
        # Functions, classes and modules in it are many, and what they do shows when it is done.
        found = self._attributes(x.__dict__, info, code, True, None if kind is types.ModuleType else kind, False)
        if info.all_attributes:
            self.note_place("dict", x.__dict__, None, code)
            self.looked_at.note_space(x.__dict__, info, True)
            if not self._opens:
                self.open(x, info, frame)
        return found if kind is types.ModuleType else [*found, *self._class_attributes(kind, info, code)]

    def _results(self, x: Any, code: types.CodeType) -> Iterable[Any]:
        """The mutable results in the cache of a function (`lru_cache`), and other objects that it holds. A call with
        arguments that are not in the cache runs the function, whose frame is seen."""
        found = gc.get_referents(x)
        for kept in found:
            if type(kept) is dict and kept is not x.__dict__:
                room = type(x).cache_info(x).maxsize
                self.note_place("kept", kept, room, code)
                if room is None:
                    found = [*found, *kept.values()]
                found = [y for y in found if y is not kept]
        mutable = [y for y in found if gc.is_tracked(y) and y is not x.__dict__ and not isinstance(y, _OF_MODULES)]
        # A function written in C runs without an event when the cache calls it.
        in_c = [y for y in found if type(y) in OF_C or isinstance(y, (operator.attrgetter, operator.methodcaller))]
        return [*in_c, *(y for y in mutable if type(y) in CONTAINERS or is_open(cast(Any, type(y))))]

    def _hidden(self, x: Any, info: CodeNames, old: bool, frame: types.FrameType) -> Iterable[Any]:
        """What an object of an unknown class holds, if the step has made it: the collector knows that. Refuses the step
        if the object is older, since its state cannot be looked at."""
        kind = type(x)
        if old:
            self.refuse(f"it uses a {kind.__module__}.{kind.__qualname__}, which cannot be watched", frame)
            return ()
        if kind is Token:  # besides, it holds the context
            return (x.var, x.old_value)
        if kind is Context:
            return [*x.keys(), *x.values()]
        return [*self._instance(x, kind, info, frame.f_code, old), *(y for y in gc.get_referents(x) if y is not kind)]

    def _array(self, x: Any, kind: type, info: CodeNames, old: bool, frame: types.FrameType) -> Iterable[Any]:
        """An object of numpy's: the content of small arrays is watched, larger ones refuse the step."""
        self.note_place("referent", _errors_of_numpy)
        if kind.__name__ == "ndarray" and old:
            if x.nbytes > 1 << 16 or x.dtype.hasobject:
                self.refuse(f"it uses a numpy array of {x.nbytes} bytes: make it a tensor", frame)
            elif "flags" in frame.f_code.co_names:
                self.refuse("it asks for the flags of a numpy array", frame)
            else:
                self.note_place("bytes", x, None, frame.f_code)
                for part in ("shape", "strides", "dtype"):
                    self.note_place("slot", x, vars(kind)[part], frame.f_code)
        elif kind.__name__ == "ufunc" and x.__name__.endswith(" (vectorized)"):  # of `numpy.frompyfunc`
            self.refuse(f"it uses {x.__name__}, which calls any function from C", frame)
        elif kind.__name__ in ("ndarray", "ufunc", "dtype"):
            return ()
        elif not hasattr(x, "itemsize") or hasattr(x, "__setitem__"):  # matrices, records
            return self._hidden(x, info, old, frame)
        return ()

    def _of_c(self, x: Any, kind: type, frame: types.FrameType) -> Iterable[Any]:
        """A C function that C code may come to call without an event; and the object that it is bound to."""
        owner = x.__self__
        if type(owner).__module__ == "pybind11_builtins":
            return ()
        self.note_writer(frame.f_code, x.__name__)
        if kind is types.BuiltinFunctionType:
            if not self._opens:
                self.call_of_c(frame, x, ahead=True)
        else:  # a bound operator: that of a number reads its other operand
            self.expect_unseen_float_calls()
            if x.__name__ in READ_ATTRIBUTES:
                self.look(owner, code_of(frame.f_code, frame.f_globals).opening(), frame)
        return () if type(owner) is types.ModuleType else (owner,)

    def _descriptor(self, x: Any, info: CodeNames, frame: types.FrameType) -> Iterable[Any]:
        """What is left of a slot or a C method without its object: code that has it at hand may read or write by it."""
        self.note_writer(frame.f_code, x.__name__)
        if isinstance(x, types.MemberDescriptorType) and x.__objclass__.__flags__ & 1 << 9:
            self.refuse(f"it reads {x.__objclass__.__qualname__}.{x.__name__} by the slot itself", frame)
        elif x.__name__ in READ_ATTRIBUTES or x.__name__ == "__dict__":
            self.by_name(frame, x.__name__)
        return ()

    def _partial(self, x: Any, info: CodeNames, frame: types.FrameType, old: bool) -> Iterable[Any]:
        """The parts of a `functools.partial`, whose function C code calls."""
        if old:
            for part in ("func", "args", "keywords"):
                self.note_place("slot", x, vars(functools.partial)[part], frame.f_code)
            self.note_place("namespace", x, None, frame.f_code)
        if type(x.func) is types.BuiltinFunctionType:
            self.note_writer(frame.f_code, x.func.__name__)
            self.call_of_c(frame, x.func, ahead=True)
            if x.func.__name__ in BY_NAME:
                for value in x.args:
                    self.look(value, info.opening(), frame)
        return (x.func, x.args, x.keywords, *self._attributes(vars(x), info, frame.f_code, old, type(x)))

    def _tensor(self, x: torch.Tensor, kind: type, info: CodeNames, code: types.CodeType, old: bool) -> Iterable[Any]:
        """Notes an older tensor, which the watch compares as a whole; returns its Python attributes and hooks."""
        if kind is torch.Tensor:
            self._class_attributes(kind, info, code)
        if not old:
            return ()
        if "grad" in info.attributes:
            self.uses_grads = True
        if "_version" in info.attributes and not code.co_qualname.startswith(_PUTS_VERSIONS_BACK):
            self.note_place("slot", x, torch._C.TensorBase._version, code)
        if kind is torch.Tensor:
            self.note_place("class", x, None, code)
        if "grad" in info.attributes and not (is_leaf(x) and x.requires_grad):
            self.note_place("gradient", x, "grad", code)
        self._tensors[id(x)] = x
        if x.device.type == "cpu" and id(x) not in self.on_host and not x.is_inference():
            self.on_host[id(x)] = (x, x._version)
        # Attributes that programs gave the tensor, or may come to give it, and hooks.
        found: list[Any] = []
        if kind is not torch.Tensor or x.__dict__:
            found += self._instance(x, kind, info, code, old)
        else:
            # What the class has under these names is not looked for in so many dicts.
            names = [n for n in info.may_lack | info.stored if self._lookup(kind, n) is NOTHING]
            found += self._attributes(x.__dict__, info, code, old, names=names)
        if kind in (torch.Tensor, torch.nn.Parameter):
            hooks = (x._backward_hooks, x._post_accumulate_grad_hooks)
            found += [which for which in hooks if which is not None]
        return found

    def _function(self, x: types.FunctionType, info: CodeNames, code: types.CodeType, old: bool) -> Iterable[Any]:
        """The parts of a function that the code names (`__globals__`, `__defaults__`), and attributes that programs
        gave it. What the function reads when it is called, its frame shows."""
        if old:
            self.note_place("function", x)
        found: list[Any] = []
        for name in info.attributes & PARTS_OF_FUNCTIONS.keys():
            if old:
                self.note_place("slot", x, PARTS_OF_FUNCTIONS[name], code)
                self.looked_at.note_other(x, info)
            part = getattr(x, name)
            if name == "__globals__":
                self.note_place("dict", part, None, code)
                found += [y for y in self._values(part) if not isinstance(y, _OF_MODULES)]
            else:
                found.append(part)
        return [*found, *self.added(x, info, code, old)]

    def added(self, x: types.FunctionType, info: CodeNames, code: types.CodeType, old: bool) -> list[Any]:
        """The attributes that programs gave a function, as far as the code may read them."""
        return self._attributes(x.__dict__, info, code, old)

    def _instance(self, x: Any, kind: type, info: CodeNames, code: types.CodeType, old: bool) -> Iterable[Any]:
        """The attributes of an object that the code names: in its `__dict__`, in slots, and on its class."""
        found: list[Any] = []
        if not old and is_finalised(kind) and kind.__weakrefoffset__:
            self._finalised.append((weakref.ref(x), f"{code.co_filename}:{code.co_firstlineno}"))
        old = old and bool(kind.__flags__ & 1 << 14)  # `Py_TPFLAGS_HAVE_GC`: objects of others hold no references
        if old:
            self.note_place("class", x, None, code)
        space = namespace(x)
        if old and isinstance(x, BaseException):
            for name in PARTS_OF_ERRORS.keys() & {"args", *info.attributes}:
                self.note_place("slot", x, PARTS_OF_ERRORS[name], code)
                self.looked_at.note_other(x, info)
                found.append(getattr(x, name))
        if old and isinstance(x, enum.Enum) and space is not None:
            # The properties `name` and `value` of enums read these; their code is not observed.
            for name in info.attributes & {"name", "value"}:
                self.note_place("entry", space, f"_{name}_", code)
        if old and issubclass(kind, torch._C._FunctionBase) and "metadata" in info.attributes:
            found.append(x.metadata)  # of a node of a history
        on_class = self._class_attributes(kind, info, code)
        if space is None and isinstance(other := any_namespace(x), dict) and other is not x:
            found.append(other)  # as a dict of the program's, which is read by keys, too
            if old:
                self.note_place("namespace", x, None, code)
        if space is not None:
            if old:
                owners[id(space)] = kind.__qualname__
                if not isinstance(x, threading.local):
                    self.note_place("namespace", x, None, code)
            # A `SimpleNamespace` compares and prints all its attributes.
            found += self._attributes(space, info, code, old, kind, isinstance(x, types.SimpleNamespace) or None)
            modules = space.get("_modules")
            if type(modules) is dict and "_orig_mod" in modules and isinstance(x, torch.nn.Module):
                # A wrapper (of `torch.compile` or ours): code that is not observed passes attributes on to the module.
                if old:
                    self.note_place("entry", space, "_modules", code)
                    self.note_place("entry", modules, "_orig_mod", code)
                found.append(modules["_orig_mod"])
        for name in info.attributes | _slots(kind) if info.all_attributes else info.attributes:
            slot = self._lookup(kind, name)
            if type(slot) is types.MemberDescriptorType:
                if old:
                    self.note_place("slot", x, slot, code)
                    self.looked_at.note_slot(x, name, getattr(x, name, None), info)
                if hasattr(x, name):
                    found.append(getattr(x, name))
        return [*found, *on_class]
