"""What a step calls of functions written in C: those that are known to depend on their arguments, or on what is
watched, and those that refuse the step. :class:`torch_ltc._survey.Survey` hands them over as they are called."""

import abc
import ctypes
import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import torch

from torch_ltc._flows import variable_given
from torch_ltc._host_written import KIND_CHECKS
from torch_ltc._known import (
    ATOMS,
    CLASS_METHODS,
    HOOKING,
    IMPURE_BUILTINS,
    IMPURE_TORCH,
    ITERATORS,
    OF_COPIES,
    OF_THE_COLLECTOR,
    PURE_MODULES,
    STORES,
    TAKE_NUMBERS,
    VIEWS,
    copies_as_objects_do,
    is_open,
)
from torch_ltc._models import MODELS
from torch_ltc._names import BY_NAME, PLAIN, Code, code_of, has_constant_name, names_in_format


def state_of(generator: torch.Generator) -> bytes:
    """The state of a generator, to be compared."""
    with torch._C.DisableTorchFunction():
        state = generator.get_state()
        # No operator: transforms (torch.func) would wrap what it returns.
        return ctypes.string_at(state.data_ptr(), state.nbytes)


def _is_setting(getter: Any) -> bool:
    """Whether a getter takes nothing and gives something plain: a setting of the process."""
    try:
        return type(getter()) in (*PLAIN, torch.dtype, torch.device)
    except TypeError:
        return False


_LOCKS = (type(threading.Lock()), type(threading.RLock()))
#: What takes locks and gives them back.
_OWN_LOCKS = frozenset(("threading", "queue", "logging", "torch", "torch_ltc"))
#: Settings of one kind of device each.
_OF_A_DEVICE = {
    getter: tuple(functools.partial(getter, kind) for kind in ("cpu", "cuda", "xpu", "mps", "ltc"))
    for getter in (torch.get_autocast_dtype, torch.is_autocast_enabled)
}


class Calls:
    """The part of a survey that sees functions written in C."""

    #: The state of the CPU's generator when the step began, and whether the step sets it.
    draws_from = b""
    goes_back = False
    #: Called before a function that asks of what kind a float is, with that, if it is known.
    numbers_are_asked: Callable[[Any, Any], None] = staticmethod(lambda function, given: None)
    #: Called before a function that takes floats, and with true where it may take any that the step has, or will have.
    numbers_leave: Callable[..., None] = staticmethod(lambda ahead=False: None)
    _left_unseen = False
    #: Called where code of the program begins; answers with what is to be called where it returns, if anything is.
    begins_within: Callable[[], Callable[[], None] | None] = staticmethod(lambda: None)
    #: Called where code begins that may ask for the class of a number, with its frame; as the one before.
    numbers_become_plain: Callable[[types.FrameType], Callable[[], None] | None] = staticmethod(lambda frame: None)
    #: Whether gradients are read or made.
    uses_grads = False

    def refuse(self, why: str, frame: types.FrameType | None = None) -> None:
        """Says why the step cannot be replayed."""
        raise NotImplementedError

    def note_place(self, kind: str, holder: Any, name: Any = None, reader: types.CodeType | None = None) -> None:
        """Takes down a place to watch."""
        raise NotImplementedError

    def look(self, start: Any, info: Code, frame: types.FrameType, holder: str = "") -> None:
        """Looks at what code can reach from an object."""
        raise NotImplementedError

    def open(self, start: Any, info: Code, frame: types.FrameType) -> None:
        """Looks at all attributes of an object and of those that the code names from there on."""
        raise NotImplementedError

    def numbers_leave_unseen(self) -> None:
        """C code that no event tells of may compute with any number of the step."""
        if not self._left_unseen:
            self._left_unseen = True
            self.numbers_leave(ahead=True)

    def call_of_c(self, frame: types.FrameType, function: Any, ahead: bool = False) -> None:
        """A function is called that is written in C; with what is not told. One that is only found is `ahead`: C code
        may come to call it, which nothing tells."""
        owner = getattr(function, "__self__", None)
        name = function.__name__
        leave = self.numbers_leave_unseen if ahead else self.numbers_leave
        if type(owner) is types.ModuleType:
            module = owner.__name__
            if module == "builtins":
                if name in IMPURE_BUILTINS and not code_of(frame.f_code, frame.f_globals).quiet:
                    self.refuse(f"it calls {name}()", frame)
                elif name in BY_NAME or name == "vars":
                    self._by_name(frame, name)
                return
        else:
            module = getattr(function, "__module__", None) or type(owner).__module__
            if owner is not None and not module.startswith("torch"):
                return self._method(frame, function, owner, name, leave)
        takes_numbers = module in TAKE_NUMBERS or (module == "_operator" and "mod" in name)
        if takes_numbers and frame.f_globals.get("__name__") != "torch_ltc._traced":  # it is about these numbers
            if function in KIND_CHECKS and not ahead:
                self.numbers_are_asked(function, variable_given(frame))
            else:
                leave()
        if module == "_abc":
            # Whether a class counts as another one, which anybody may say of any two.
            self.note_place("referent", abc.get_cache_token)
        elif module == "_thread" and name in ("get_ident", "get_native_id"):
            self.note_place("thread", function)
        elif module == "_warnings" and name.startswith("warn"):
            if not ahead:  # who only has it at hand mostly does not warn
                self._warns(frame)
        elif function in _OF_A_DEVICE:
            for getter in _OF_A_DEVICE[function]:
                self.note_place("referent", getter)
        elif module == "gc" and name in OF_THE_COLLECTOR:
            pass
        elif module == "_weakref" and name == "proxy":
            self.refuse("it uses a weakref.proxy, which cannot be watched", frame)
        elif module.startswith(("torch._C", "torch")):
            if name in IMPURE_TORCH and not (name == "set_state" and self._draws_nothing(owner)):
                self.refuse(f"it calls {name}()", frame)
            elif isinstance(owner, STORES):
                self.refuse(f"it calls {name}() of a {type(owner).__name__}", frame)
            elif name == "run_backward" or name in HOOKING:
                self.uses_grads = True
            elif module == "torch._C" and name.startswith("_get_") and _is_setting(function):
                self.note_place("referent", function)
            elif module == "torch._C" and name.startswith("_set_"):
                # What is set is what is found: only where it is another one would setting it do something.
                found: Any = getattr(torch._C, "_get_" + name.removeprefix("_set_"), None)
                if found is not None and _is_setting(found):
                    self.note_place("referent", found)
        elif not (module in PURE_MODULES or code_of(frame.f_code, frame.f_globals).quiet or module == "torch_ltc._ltc"):
            self.refuse(f"it calls {module}.{name}()", frame)

    def _warns(self, frame: types.FrameType) -> None:
        """A warning is told: once, as long as nobody wants it otherwise."""
        if any(action in ("always", "all", "error") for action, *_ in warnings.filters):
            self.refuse("it warns, and warnings are to be told each time", frame)
        self.note_place("entry", vars(warnings), "filters", frame.f_code)
        self.note_place("members", warnings.filters, None, frame.f_code)

    def _draws_nothing(self, generator: Any) -> bool:
        """Whether the CPU's generator is where it was when the step began, so that going back there changes nothing
        (``torch.random.fork_rng``); it has to be there in the end, too."""
        is_default = generator is torch.default_generator
        self.goes_back = self.goes_back or is_default
        return is_default and self.draws_from == state_of(generator)

    def _method(self, frame: types.FrameType, function: Any, owner: Any, name: str, leave: Callable[..., None]) -> None:
        kind = type(owner)
        if kind in _LOCKS and name in ("acquire", "locked"):
            # Whether somebody has it is no place; a `with` asks nobody and leaves it as it was.
            if (frame.f_globals.get("__name__") or "").partition(".")[0] not in _OWN_LOCKS:
                self.refuse(f"it asks for a lock by {name}()", frame)
        elif isinstance(owner, type):
            # A class's own constructor and class methods: of classes that hold nothing hidden.
            if name in CLASS_METHODS:
                return
            if not owner.__module__.startswith("torch") and owner.__module__ != "builtins":
                self.refuse(f"it calls {owner.__qualname__}.{name}()", frame)
        elif kind is str and name in ("format", "format_map"):
            own = code_of(frame.f_code, frame.f_globals)
            if not own.quiet:
                leave()
            if names := names_in_format(owner):
                info = own.naming(names)
                for value in (*frame.f_locals.values(), *map(frame.f_globals.get, own.globals)):
                    self.look(value, info, frame)
        elif name in ("__setattr__", "__delattr__", "__getattribute__"):
            if frame.f_code in MODELS:
                return
            info = code_of(frame.f_code, frame.f_globals)
            self.look(owner, info.opening(), frame)
        elif kind in ATOMS or is_open(cast(Any, kind)) or kind in ITERATORS or kind in VIEWS:
            if name in ("__reduce_ex__", "__reduce__", "__getstate__") and copies_as_objects_do(kind):
                # It reads all that the object has, and whoever asked for it goes on with what it found.
                for asked in OF_COPIES:
                    self.note_place("lookup", kind, asked, frame.f_code)
                self.look(owner, code_of(frame.f_code, frame.f_globals).opening(), frame)
            elif name.startswith(("__reduce", "__getstate__", "__sizeof__")):
                self.refuse(f"it copies a {kind.__qualname__} ({name})", frame)
        elif kind.__module__ in ("builtins", *PURE_MODULES) or kind in (weakref.ref, ContextVar, functools.partial):
            if kind.__module__ in TAKE_NUMBERS:
                leave()
        elif not code_of(frame.f_code, frame.f_globals).quiet or kind.__module__.startswith("_io"):
            self.refuse(f"it calls {kind.__module__}.{kind.__qualname__}.{name}()", frame)

    def _by_name(self, frame: types.FrameType, function: str) -> None:
        """``getattr`` and its kin: a name that is a constant is known; else everything the object has may be read."""
        info = code_of(frame.f_code, frame.f_globals)
        if info.quiet or frame.f_code in MODELS:
            return
        if function != "vars" and has_constant_name(frame.f_code, frame.f_lasti):
            return
        everything = info.opening()
        for value in frame.f_locals.values():
            if isinstance(value, (types.ModuleType, type)):
                self.open(value, info, frame)
            self.look(value, everything, frame)
        for name in info.globals:
            self.open(frame.f_globals.get(name), info, frame)
