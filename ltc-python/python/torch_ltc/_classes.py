"""What code reaches from a class: attributes, special methods, bases and the metaclass."""

import builtins
import enum
import functools
import gc
import inspect
import operator
import types
from typing import Any

import torch

from torch_ltc._asked_names import BY_NAME
from torch_ltc._calls import Calls
from torch_ltc._known import (
    ATOMS,
    NOTHING,
    PARTS_OF_FUNCTIONS,
    READ_ATTRIBUTES,
    SPECIAL,
    is_of_python,
    lookup,
    takes_numbers,
)
from torch_ltc._looked_at import LookedAt
from torch_ltc._names import CodeNames
from torch_ltc._writes import writes_of

_PARTS_OF_CLASSES: dict[str, Any] = {
    name: vars(type)[name] for name in ("__name__", "__qualname__", "__bases__", "__base__", "__mro__")
}
#: Classes of callables that run without a Python frame of their own.
OF_C = (types.BuiltinFunctionType, types.MethodWrapperType, functools.partial)


#: What the constructor of an enum's class asks for.
_OF_ENUMS = ("_missing_", "_member_map_", "_value2member_map_", "_member_names_")
#: The names by which code reads through descriptors.
_BY_DESCRIPTORS = ("__get__", "__set__")
#: The names by which code goes from a class to its bases.
_TO_BASES = ("__mro__", "__bases__", "__base__", "mro")
#: Builtin functions that read attributes by name.
_READERS = frozenset((*BY_NAME, "vars"))
_GETTERS = (operator.attrgetter, operator.methodcaller)
#: Kinds of what stands on classes for methods that are written in C.
_METHODS_OF_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType)
#: Descriptors that stand on classes and show by themselves all that they read, or that Python looks behind.
_KNOWN_DESCRIPTORS = (
    *(*_METHODS_OF_C, types.ClassMethodDescriptorType, types.MemberDescriptorType),
    type(vars(inspect.FullArgSpec)["args"]),  # of named tuples
)


def _holds(x: Any) -> bool:
    """Whether what stands on a class is no descriptor, or one that holds a cache."""
    return type(x) is functools._lru_cache_wrapper or not hasattr(type(x), "__get__")


def is_only_used(x: Any, name: str, info: CodeNames) -> bool:
    """Whether code with this name does no more than call a C function, which a profile event tells of, or ask with
    `isinstance` for a C class. Then the object itself need not be looked at."""
    if type(x) is types.BuiltinFunctionType:
        if x.__name__ in _READERS and name != x.__name__ and x.__self__ is builtins:
            return False  # code has it under another name, by which its calls are not known for what they are
        # A bound method is looked at with the object that it is bound to.
        return name not in info.values and (x.__self__ is None or type(x.__self__) is types.ModuleType)
    return name in info.tested and type(x) is type and takes_numbers(x)


class Classes(Calls):
    """The part of a survey that goes from a class to what it holds."""

    def __init__(self) -> None:
        #: What was found on classes already: by the names used, by special methods, and by single names.
        self._class_values: dict[tuple[type, int], list[Any]] = {}
        self._specials: dict[type, list[Any]] = {}
        self._on_class: dict[tuple[type, str], Any] = {}
        self.looked_at = LookedAt(self.is_older)

    def added(self, x: types.FunctionType, info: CodeNames, code: types.CodeType, old: bool) -> list[Any]:
        """The attributes that programs gave a function, as far as the code may read them."""
        raise NotImplementedError

    def _hides(self, kind: type, name: str, code: types.CodeType) -> None:
        """Watches the class for a data descriptor (a property) that would come to hide an instance's attribute."""
        if kind.__flags__ & 1 << 9:  # `Py_TPFLAGS_HEAPTYPE`: a class of Python code, which can change
            self.note_place("lookup", kind, name, code)

    def _is_asked(self, kind: type, name: str) -> bool:
        """Whether a class answers for an attribute that an instance lacks: by an attribute of its own, or by a
        `__getattr__`. That of `nn.Module` does not count here, since its frame is seen (`_models.py`)."""
        getter = self._lookup(kind, "__getattr__")
        own = getter is not NOTHING and getter is not torch.nn.Module.__getattr__
        return own or self._lookup(kind, name) is not NOTHING

    def _lookup(self, kind: type, name: str) -> Any:
        """What a class or its bases have under a name; remembered."""
        key = (kind, name)
        if key not in self._on_class:
            self._on_class[key] = lookup(kind, name)
        return self._on_class[key]

    def _class_attributes(self, kind: type, info: CodeNames, code: types.CodeType) -> list[Any]:
        """What the code can reach from a class; remembered by class and names."""
        self.looked_at.note_class(kind, info)
        key = (kind, info.serial)
        if key not in self._class_values:
            self._class_values[key] = self._look_at_class(kind, info, code)
        return self._class_values[key]

    def _forget_class(self, kind: type) -> None:
        """Forgets what was found on a class that has changed."""
        self._class_values = {key: x for key, x in self._class_values.items() if not issubclass(key[0], kind)}
        self._on_class = {key: x for key, x in self._on_class.items() if not issubclass(key[0], kind)}

    def _of_metaclass(self, kind: type, info: CodeNames, code: types.CodeType) -> list[Any]:
        """What the code can reach from the metaclass of a class."""
        for name in info.attributes if kind.__flags__ & 1 << 9 else ():
            if self._is_asked(type(kind), name):  # the class may come to have the name itself
                self.note_place("lookup", kind, name, code)
        return self._class_attributes(type(kind), info, code)

    def _special(self, kind: type, code: types.CodeType) -> list[Any]:
        """Watches the special methods of a class, which Python calls although no code names them. Returns those written
        in C, which it calls without an event."""
        if kind not in self._specials:
            self._specials[kind] = found = list[Any]()
            # Python goes by the bases where it asks for kinds, and `super()` does.
            self.note_place("slot", kind, _PARTS_OF_CLASSES["__mro__"], code)
            for name in (*SPECIAL, *(_OF_ENUMS if issubclass(kind, enum.Enum) else ())):
                self.note_place("lookup", kind, name, code)
                value = self._lookup(kind, name)
                if name in _OF_ENUMS and type(value) in (dict, list):
                    self.note_place("dict" if type(value) is dict else "members", value, None, code)
                elif name not in ("__new__", "__class_getitem__"):
                    found += self._on_special(kind, name, value)
        return list(self._specials[kind])

    def _on_special(self, kind: type, name: str, value: Any) -> list[Any]:
        """What Python calls without an event where a class has a value under the name of a special method."""
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if type(value) is types.FunctionType or type(value) in ATOMS or value is NOTHING:
            return []
        if type(value) in OF_C or isinstance(value, _GETTERS):
            return [value]
        if (
            type(value) in _METHODS_OF_C
            and writes_of(value.__name__)
            and not (writes_of(name) or name == value.__name__)
        ):
            self.refuse(f"{kind.__qualname__}.{name} is {value.__qualname__}, of whose calls nothing tells")
        return self._of_descriptor(kind, name, value) if hasattr(type(value), "__get__") else []

    def _of_descriptor(self, kind: type, name: str, value: Any) -> list[Any]:
        """What a descriptor on a class reads without an event, other than a function and a slot. Refuses one of an
        unknown kind, which may read anything."""
        if isinstance(value, (property, types.DynamicClassAttribute)):
            return self._of_property(value, f"{kind.__qualname__}.{name}")
        if type(value) is types.MethodType:
            return [value]
        if type(value) in _METHODS_OF_C and value.__name__ != name:
            if value.__name__ in READ_ATTRIBUTES or value.__name__ == "__dict__":
                self.refuse(f"{kind.__qualname__}.{name} reads attributes ({value.__name__}), which nothing tells of")
        elif type(value) not in _KNOWN_DESCRIPTORS and type(value).__name__ != "instancemethod":  # pybind11's methods
            home = next((base for base in kind.__mro__ if vars(base).get(name) is value), kind)
            if type(lookup(type(value), "__get__")) is not types.FunctionType and is_of_python(home):
                self.refuse(f"{kind.__qualname__}.{name} is a {type(value).__qualname__}, which nothing tells of")
        return []

    def _of_bases(self, kind: type, info: CodeNames, code: types.CodeType) -> list[Any]:
        """What ``super()`` may find in the bases of a class, whichever of them it starts from."""
        found = []
        for base in kind.__mro__[1:]:
            if base.__flags__ & 1 << 9:
                self.looked_at.note_class(base, info)
                for name in info.attributes:
                    self.note_place("lookup", base, name, code)
                    value = vars(base).get(name)
                    found.append(value)
                    if isinstance(value, (property, types.DynamicClassAttribute)):
                        found += self._of_property(value, f"{base.__qualname__}.{name}")
        return [x for x in found if not hasattr(type(x), "__get__")]

    def _of_method(self, x: types.FunctionType, info: CodeNames, code: types.CodeType) -> list[Any]:
        """What code may read of a function that it finds on a class, besides calling it."""
        if not info.attributes.isdisjoint(PARTS_OF_FUNCTIONS):
            return [x]
        return self.added(x, info, code, self.is_older(x))

    def _of_property(self, x: property | types.DynamicClassAttribute, name: str) -> list[Any]:
        """The C functions behind a property."""
        found = []
        for function in (x.fget, x.fset, x.fdel):
            if type(function) in (operator.attrgetter, operator.methodcaller, functools.partial):
                self.refuse(f"it uses {name}, which reads what nothing tells of")
            elif type(function) in OF_C:
                found.append(function)
        return found

    def _look_at_class(self, kind: type, info: CodeNames, code: types.CodeType) -> list[Any]:
        """As :meth:`_class_attributes`, the first time."""
        if not kind.__flags__ & 1 << 9:  # not `Py_TPFLAGS_HEAPTYPE`: a class written in C, which does not change
            return []
        found = self._special(kind, code)
        for name in info.attributes & _PARTS_OF_CLASSES.keys():
            self.note_place("slot", kind, _PARTS_OF_CLASSES[name], code)
        if info.by_super:
            found += self._of_bases(kind, info, code)
        if not info.attributes.isdisjoint(_TO_BASES):
            found += [base for base in kind.__mro__[1:] if base.__flags__ & 1 << 9]
        all_of_it = info.all_attributes
        of_python = [base for base in kind.__mro__ if base.__flags__ & 1 << 9] if all_of_it else []
        for base in of_python:  # for attributes that are yet to come, and their order
            self.note_place("dict", gc.get_referents(vars(base))[0], None, code)
        names = {name for base in of_python for name in vars(base) if not name.startswith(("__", "_abc_"))}
        for name in names | info.attributes:
            value = self._lookup(kind, name)
            if all_of_it or name in info.may_lack or name in info.stored or self._is_asked(kind, name):
                self.note_place("lookup", kind, name, code)
            # What a descriptor written in Python reads, its frame shows when it runs.
            if isinstance(value, types.FunctionType):
                found += self._of_method(value, info, code)
            elif isinstance(value, (property, types.DynamicClassAttribute)):
                found += self._of_property(value, f"{kind.__qualname__}.{name}")
                for function in (value.fget, value.fset, value.fdel):
                    if type(function) is types.FunctionType:
                        found += self._of_method(function, info, code)
            elif isinstance(value, (staticmethod, classmethod)):
                inner = value.__func__
                found += self._of_method(inner, info, code) if type(inner) is types.FunctionType else [inner]
            elif type(value) is types.MemberDescriptorType and not info.attributes.isdisjoint(_BY_DESCRIPTORS):
                self.refuse(f"it reads {kind.__qualname__}.{name} by the slot itself")
            elif value is NOTHING:
                continue
            elif not _holds(value):
                if type(value) in _METHODS_OF_C and value.__name__ != name:
                    self.note_writer(code, value.__name__)
                found += self._of_descriptor(kind, name, value)
            elif not is_only_used(value, name, info):
                found.append(value)
        return found
