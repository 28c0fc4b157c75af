"""Judges the C functions that a step calls.

A C function shows nothing of what it reads. Those that are known to depend on their arguments alone are allowed, some
read a setting that can be watched (:meth:`Calls.note_place`), and all others refuse the step. Functions that may
compute with floats need more: a traced number (`_traced.py`) that C code reads leaves no trace, so the recorder is told
before such a call. This is the lowest layer of :class:`torch_ltc._survey.Survey`.
"""

import abc
import codecs
import ctypes
import functools
import sys
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import torch

from torch_ltc import _ltc
from torch_ltc._asked_names import BY_NAME, formats_variables, names_in_format
from torch_ltc._flows import variable_given
from torch_ltc._host_written import KIND_CHECKS
from torch_ltc._known import (
    ATOMS,
    CLASS_METHODS,
    ELSEWHERE,
    HOLDERS,
    HOOKING,
    IMPURE_BUILTINS,
    IMPURE_TORCH,
    ITERATORS,
    LOCKS,
    METHODS_ELSEWHERE,
    OF_COPIES,
    OF_REFERENCES,
    OF_THE_COLLECTOR,
    OF_THREADS,
    PURE_MODULES,
    TAKE_NUMBERS,
    VIEWS,
    WRAPPERS,
    copies_as_objects_do,
    is_of_torch,
    is_open,
)
from torch_ltc._models import MODELS
from torch_ltc._names import PLAIN, CodeNames, code_of, has_constant_name
from torch_ltc._traced import TracedFloat, TracedInt, plain
from torch_ltc._writes import writes_of


def state_of(generator: torch.Generator) -> bytes:
    """The state of a generator as bytes, to be compared."""
    with torch._C.DisableTorchFunction():
        state = generator.get_state()
        # Read from memory and not by an operator, whose result transforms (torch.func) would wrap.
        return ctypes.string_at(state.data_ptr(), state.nbytes)


#: The handlers of errors in text that Python has itself.
_OF_CODECS = frozenset(
    "strict ignore replace xmlcharrefreplace backslashreplace namereplace surrogateescape surrogatepass".split()
)


@functools.lru_cache(256)
def _tells_handler(name: str) -> Callable[[], Any]:
    """What tells the handler of errors in text that has a name."""
    return functools.partial(codecs.lookup_error, name)


def _handler_of_errors(name: str) -> Callable[[], Any] | None:
    """The same, for a name that there is."""
    try:
        codecs.lookup_error(name)
    except (LookupError, ValueError):
        return None
    return _tells_handler(name)


def _is_setting(getter: Any) -> bool:
    """Whether a getter reads a setting of the process: it takes no arguments and returns a plain value."""
    try:
        value = getter()
    except TypeError:
        return False
    return all(type(x) in (*PLAIN, torch.dtype, torch.device) for x in (value if type(value) is tuple else (value,)))


#: How the names of functions of `torch._C` begin that tell what a setting of the process is; how those may begin that
#: tell what a function sets; those of other names; and functions that set what nothing tells.
_GETTERS = ("_get_", "_check_", "get_autocast_", "_is_multithreading_")
_TELL_OF_SETTER = ("_get_", "_check_", "_is_", "get_", "_")
_TELL_OF_ATTENTION = {
    f"sdp_use_{way}": f"_get_{way}_sdp_enabled" for way in ("flash", "math", "mem_efficient", "cudnn")
}
_UNTOLD = frozenset("set_flush_denormal _set_fp32_precision_setter _set_throw_on_mutable_data_ptr".split())
#: Functions of ours that tell what the device has done, or holds, and functions that set what is kept for it.
_TELLS = frozenset(
    "cache_dot cached_programs counters executions fallback_count fallbacks force_fallback get_tensor_id graph_data"
    " graph_dot graph_hash graph_sites graph_text initial_seed metrics_report pending_count take_events take_profile"
    " value_id".split()
)
_SETS = frozenset(
    "clear_cache reset_metrics run_graph set_force_fallback set_generator_state set_profiling set_reuse_nodes".split()
)
#: Functions of ours that send what is recorded, or wait for it.
_SENDS = ("mark_step", "sync", "wait")
#: Packages that take locks of their own, only to release them again; and modules that take them for their callers.
_OWN_LOCKS = frozenset(("logging", "torch", "torch_ltc"))
_FOR_CALLERS = frozenset(("threading", "queue"))
#: Getters and setters of settings that there are for each kind of device, with what reads the setting of each.
_OF_A_DEVICE = {
    function: tuple(functools.partial(getter, kind) for kind in ("cpu", "cuda", "xpu", "mps", "mtia", "hpu", "ltc"))
    for getter, setter in (
        (torch.get_autocast_dtype, torch.set_autocast_dtype),
        (torch.is_autocast_enabled, torch.set_autocast_enabled),
    )
    for function in (getter, setter)
}


class Calls:
    """The part of a survey that sees calls of C functions. The callbacks are set to methods of the host recorder."""

    #: The state of the CPU's generator when the step began, and whether the step sets the generator back to it.
    draws_from = b""
    resets_generator = False
    #: Whether the step asked for that state: a state from elsewhere may be another one when a replay comes.
    asks_generator = False
    #: Called before a function that asks of what kind a float is (`math.isnan`), with the function and the float; with
    #: `None` where code does not show which float it is given.
    on_kind_check: Callable[[Any, Any], None] = staticmethod(lambda function, given: None)
    #: Called before a C function that computes with floats: it may be given any traced number that the step holds. With
    #: `ahead`, it may also be given any number that the step comes to hold later.
    on_float_call: Callable[..., None] = staticmethod(lambda ahead=False: None)
    #: Called before the step goes back (`backward()`, `torch.autograd.grad`).
    on_going_back: Callable[[], None] = staticmethod(lambda: None)
    _expects_unseen = False
    #: Called where a frame of the program begins; returns what is to be called where it ends, if anything is.
    on_program_frame: Callable[[], Callable[[], None] | None] = staticmethod(lambda: None)
    #: Called with each frame and what its code can read, where it begins, for code that may ask for the class or the
    #: identity of a number; returns the same.
    on_class_check: Callable[[types.FrameType, CodeNames], Callable[[], None] | None] = staticmethod(lambda *_: None)
    #: Called where the step turns out to be one that cannot be replayed.
    on_refusal: Callable[[], None] = staticmethod(lambda: None)
    #: Tells whether an object is an argument of the step, or in one.
    is_given: Callable[[Any], bool] = staticmethod(lambda x: False)
    #: Whether the step reads or makes gradients; and whether it goes back, which it may do under `no_grad`, too.
    uses_grads = False
    goes_back = False
    #: Whether functions of Python take what is saved for going back (`torch.utils.checkpoint`, `save_on_cpu`).
    saves_by_hooks = False
    #: The older lists to which it appended and from which it took nothing, by identity, and how long they have to be.
    appends: dict[int, tuple[Any, int]]
    #: How often it called `append` of a bounded deque, by identity.
    pushed: dict[int, int]
    #: The older lists and deques to which it appended, by identity, and how long each was before.
    firsts: dict[int, tuple[Any, int]]
    #: What code may change by C functions that it was seen to have under other names.
    writing: dict[types.CodeType, frozenset[str]]

    def refuse(self, why: str, frame: types.FrameType | None = None) -> None:
        """Notes why the step cannot be replayed."""
        raise NotImplementedError

    def is_older(self, x: Any) -> bool:
        """Whether an object was there before the step."""
        raise NotImplementedError

    def note_place(self, kind: str, holder: Any, name: Any = None, reader: types.CodeType | None = None) -> None:
        """Notes a place to watch."""
        raise NotImplementedError

    def look(self, start: Any, info: CodeNames, frame: types.FrameType, holder: str = "") -> None:
        """Looks at what code with these names can reach from an object."""
        raise NotImplementedError

    def open(self, start: Any, info: CodeNames, frame: types.FrameType) -> None:
        """Looks at all attributes of an object, and of the attributes that the code names."""
        raise NotImplementedError

    def speak_to_collector(self, function: str) -> None:
        """The step calls a function of `gc`; see the survey."""
        raise NotImplementedError

    def expect_unseen_float_calls(self) -> None:
        """From here on C code may compute with any number of the step without an event that tells of it."""
        if not self._expects_unseen:
            self._expects_unseen = True
            self.on_float_call(ahead=True)

    def call_of_c(self, frame: types.FrameType, function: Any, ahead: bool = False) -> None:
        """Judges a C function that a frame calls; the profile event does not tell with which arguments. `ahead`: the
        function was only found, and C code may come to call it without an event."""
        owner = getattr(function, "__self__", None)
        name = function.__name__
        notify = self.expect_unseen_float_calls if ahead else self.on_float_call
        if name in ("__dir__", "__subclasses__") and not code_of(frame.f_code, frame.f_globals).quiet:
            return self.refuse(f"it calls {name}()", frame)
        if type(owner) is types.ModuleType:
            module = owner.__name__
            if module == "builtins":
                if name in IMPURE_BUILTINS and not code_of(frame.f_code, frame.f_globals).quiet:
                    self.refuse(f"it calls {name}()", frame)
                elif name in BY_NAME or name == "vars":
                    self.by_name(frame, name)
                elif name in ("id", "hash") and not ahead:
                    self._asks_identity(frame, name)
                return
        else:
            module = getattr(function, "__module__", None) or type(owner).__module__
            if owner is not None and not is_of_torch(module):
                return self._method(frame, function, owner, name, notify)
        takes_numbers = module in TAKE_NUMBERS or (module == "_operator" and "mod" in name)
        if takes_numbers and frame.f_globals.get("__name__") != "torch_ltc._traced":  # it is about these numbers
            if function in KIND_CHECKS and not ahead:
                self.on_kind_check(function, variable_given(frame))
            else:
                notify()
        if module == "_abc":
            # `isinstance` and `issubclass` of an ABC: any code may register any class, which changes this token.
            self.note_place("referent", abc.get_cache_token)
        elif module == "_thread" and name in ("get_ident", "get_native_id"):
            self.note_place("thread", function)
        elif module == "_warnings" and name.startswith("warn"):
            if not ahead:  # code that only has it at hand mostly does not warn
                self._warns(frame)
        elif function in _OF_A_DEVICE:
            for getter in _OF_A_DEVICE[function]:
                self.note_place("referent", getter)
        elif module == "_thread" and name in ("_count", "stack_size"):
            self.refuse(f"it asks for threads by {name}()", frame)
        elif module == "_thread" and name in OF_THREADS:
            if not ahead:
                self.refuse(f"it starts or ends a thread, by {name}()", frame)
        elif module == "gc" and name in OF_THE_COLLECTOR:
            if not ahead:
                self.speak_to_collector(name)
        elif module == "_codecs" and "register" in name:
            self.refuse(f"it calls codecs.{name}()", frame)
        elif module == "_weakref" and name in OF_REFERENCES:
            self.refuse(f"it uses weakref.{name}, which cannot be watched", frame)
        elif module == "torch_ltc._ltc":
            self._call_of_ours(frame, name)
        elif is_of_torch(module):
            self._call_of_torch(frame, function, owner, name)
        elif not (module in PURE_MODULES or code_of(frame.f_code, frame.f_globals).quiet):
            self.refuse(f"it calls {module}.{name}()", frame)

    def _call_of_torch(self, frame: types.FrameType, function: Any, owner: Any, name: str) -> None:
        """Judges a C function of torch's."""
        if name == "get_state" and owner is torch.default_generator:
            self.asks_generator = True
        if name in IMPURE_TORCH and not (name == "set_state" and self._draws_nothing(owner)):
            self.refuse(f"it calls {name}()", frame)
        elif isinstance(owner, ELSEWHERE) and not isinstance(owner, torch._C.ScriptModule):
            self.refuse(f"it calls {type(owner).__name__}.{name}(), which tells of what happens elsewhere", frame)
        elif function in METHODS_ELSEWHERE:
            self.refuse(f"it calls {name}(), which tells of what happens elsewhere", frame)
        elif name in ("_push_on_torch_dispatch_stack", "_set_dispatch_mode"):
            self.refuse("it enters a torch dispatch mode, which sees each operator", frame)
        elif name == "_push_saved_tensors_default_hooks":
            self.saves_by_hooks = True
        elif name == "run_backward" or name in HOOKING:
            self.uses_grads = True
            if name == "run_backward":
                self.goes_back = True
                self.on_going_back()
        elif owner is torch._C and name in _UNTOLD:
            self.refuse(f"it calls {name}()", frame)
        elif owner is torch._C and name.startswith(_GETTERS) and _is_setting(function):
            self.note_place("referent", function)
        elif owner is torch._C and name.startswith(("_set_", "set_")):
            # Setting a setting to what it is does nothing, so it is enough to watch that.
            what = name.removeprefix("_").removeprefix("set_")
            names = [start + what for start in _TELL_OF_SETTER] + [_TELL_OF_ATTENTION.get(what, "")]
            for getter in filter(None, [getattr(torch._C, asked, None) for asked in names]):
                if _is_setting(getter):
                    self.note_place("referent", getter)

    def _call_of_ours(self, frame: types.FrameType, name: str) -> None:
        """Judges a C function of ours."""
        if name in _TELLS:
            self.refuse(f"it asks what the device has done or holds, by {name}()", frame)
        elif name in _SETS and (name != "set_generator_state" or _ltc.is_capturing()):
            # A call that is not captured sets actual states back, where a captured one has stand-ins.
            self.refuse(f"it sets what is kept for the device, by {name}()", frame)
        elif name in _SENDS:
            self.refuse(f"it sends work to the device or waits for it, by {name}(): do so after the step", frame)

    def _asks_identity(self, frame: types.FrameType, name: str) -> None:
        """Code asks which object something is. Of what is older than the step, that is watched; a later call is given
        other arguments, and makes other objects. The standard library and torch ask only to go over something once."""
        package = (frame.f_globals.get("__name__") or "").partition(".")[0]
        if package in ("torch", "torch_ltc") or package in sys.stdlib_module_names:
            return
        given = variable_given(frame)
        is_shown = given is not None
        hashes: Any = type(given).__hash__
        by_identity = name == "id" or (is_shown and hashes in (object.__hash__, torch.Tensor.__hash__))
        if by_identity and not (is_shown and self.is_older(given) and not self.is_given(given)):
            self.refuse(f"it asks which object something is, by {name}()", frame)

    def note_writer(self, code: types.CodeType, function: str) -> None:
        """Notes that code calls a C function, or has it at hand, which may change something. Its name in the code may
        be another one."""
        known, found = self.writing.get(code, frozenset()), writes_of(function)
        if not found <= known:
            self.writing[code] = known | found

    def throw_into(self, generator: "types.GeneratorType[Any, Any, Any]") -> None:
        """Code throws an exception into a generator; see `_errors.py`."""
        raise NotImplementedError

    def _warns(self, frame: types.FrameType) -> None:
        """The step warns. Python shows a warning once, so replays need not warn, unless a filter asks for each one."""
        if any(action in ("always", "all", "error") for action, *_ in warnings.filters):
            self.refuse("it warns, and warnings are to be told each time", frame)
        self.note_place("entry", vars(warnings), "filters", frame.f_code)
        self.note_place("members", warnings.filters, None, frame.f_code)

    def _draws_nothing(self, generator: Any) -> bool:
        """Whether the CPU's generator is in the state in which the step found it. Then a step that sets the generator's
        state has drawn nothing (``torch.random.fork_rng``); it has to be in that state in the end, too."""
        is_default = generator is torch.default_generator
        self.resets_generator = self.resets_generator or is_default
        return is_default and self.asks_generator and self.draws_from == state_of(generator)

    def _method(
        self, frame: types.FrameType, function: Any, owner: Any, name: str, notify: Callable[..., None]
    ) -> None:
        """Judges a C function that is a method of `owner`. `notify`: called where it may compute with floats."""
        kind = type(owner)
        if kind in (TracedFloat, TracedInt) and frame.f_globals.get("__name__") != "torch_ltc._traced":
            owner._ltc_recorder.expect(plain(owner), "{}", owner)  # a method of the plain class, by whatever name
        if kind in LOCKS:
            self.uses_lock(frame, owner, name)
        elif kind in (list, deque) and name in ("append", "appendleft"):
            if self.is_older(owner) and not code_of(frame.f_code, frame.f_globals).quiet:
                self.firsts.setdefault(id(owner), (owner, len(owner)))
            if getattr(owner, "maxlen", None) is not None:
                self.pushed[id(owner)] = self.pushed.get(id(owner), 0) + (name == "append")
            elif self.is_older(owner):
                before = self.appends.setdefault(id(owner), (owner, len(owner)))[1]
                self.appends[id(owner)] = (owner, before + 1)
        elif kind in (list, deque) and name in ("pop", "popleft", "remove", "clear"):
            self.appends.pop(id(owner), None)
        elif kind is types.GeneratorType and name == "send":
            self.refuse("it sends something to a generator", frame)
        elif kind is types.GeneratorType and name == "throw":
            self.throw_into(owner)
        elif isinstance(owner, type):
            # A constructor or class method: allowed for classes whose objects hold nothing that is hidden.
            if name in CLASS_METHODS:
                return
            if not is_of_torch(owner.__module__) and owner.__module__ != "builtins":
                self.refuse(f"it calls {owner.__qualname__}.{name}()", frame)
        elif issubclass(kind, str) and name in ("format", "format_map"):
            self._formats(frame, str.__str__(owner), notify)
        elif kind in (str, bytes) and name in ("encode", "decode"):
            self._encodes(frame)
        elif name in ("__setattr__", "__delattr__", "__getattribute__"):
            if frame.f_code in MODELS:
                return
            info = code_of(frame.f_code, frame.f_globals)
            self.look(owner, info.opening(), frame)
        elif (
            kind in ATOMS
            or kind in HOLDERS
            or issubclass(kind, WRAPPERS)
            or is_open(cast(Any, kind))
            or kind in ITERATORS
            or kind in VIEWS
        ):
            if name in ("__reduce_ex__", "__reduce__", "__getstate__") and copies_as_objects_do(kind):
                # It reads all attributes of the object, and whoever called it goes on with what it found.
                for asked in OF_COPIES:
                    self.note_place("lookup", kind, asked, frame.f_code)
                self.look(owner, code_of(frame.f_code, frame.f_globals).opening(), frame)
            elif name.startswith(("__reduce", "__getstate__", "__sizeof__")):
                self.refuse(f"it copies a {kind.__qualname__} ({name})", frame)
        elif kind.__module__ in ("builtins", *PURE_MODULES) or kind in (weakref.ref, ContextVar, functools.partial):
            if kind.__module__ in TAKE_NUMBERS:
                notify()
        elif not code_of(frame.f_code, frame.f_globals).quiet or kind.__module__.startswith("_io"):
            self.refuse(f"it calls {kind.__module__}.{kind.__qualname__}.{name}()", frame)

    def uses_lock(self, frame: types.FrameType, lock: Any, name: str) -> None:
        """Judges a method of a lock. Whether a lock is held cannot be watched, and a replay takes none."""
        user: types.FrameType | None = frame
        while user is not None and user.f_globals.get("__name__") in _FOR_CALLERS:
            user = user.f_back
        package = (user.f_globals.get("__name__") or "").partition(".")[0] if user is not None else ""
        is_installed = user is not None and "site-packages" in user.f_code.co_filename  # it guards its own tables
        if package in _OWN_LOCKS or is_installed or name in ("release", "__exit__"):
            return
        if name != "__enter__":
            self.refuse(f"it asks for a lock by {name}()", frame)
        elif self.is_older(lock):
            self.refuse("it takes a lock, which replays do not: take it around the step", user)

    def _encodes(self, frame: types.FrameType) -> None:
        """Code encodes or decodes text, for which it may name a handler of errors that a program registered."""
        info = code_of(frame.f_code, frame.f_globals)
        at_hand = (*frame.f_code.co_consts, *frame.f_locals.values(), *map(frame.f_globals.get, info.globals))
        for text in at_hand:
            if type(text) is str and text not in _OF_CODECS and (handler := _handler_of_errors(text)) is not None:
                self.note_place("referent", handler)

    def _formats(self, frame: types.FrameType, text: str, notify: Callable[..., None]) -> None:
        """Code formats by a string, or has its `format` at hand, which may read attributes of what it is given."""
        info = code_of(frame.f_code, frame.f_globals)
        if not info.quiet:
            notify()
        names = names_in_format(text)
        if "__class__" in names:
            self.refuse("it formats the class of an object", frame)
        if names <= info.added:  # the code shows them, so they were looked for in all that it reaches
            return
        if not formats_variables(frame.f_code, frame.f_lasti):
            self.refuse("it formats what it computes by a format that it computes", frame)
        for value in (*frame.f_locals.values(), *map(frame.f_globals.get, info.globals)):
            self.look(value, info.naming(names), frame)

    def opens_all(self, frame: types.FrameType) -> None:
        """Notes that the code of a frame may read any attribute of what it has at hand."""
        raise NotImplementedError

    def by_name(self, frame: types.FrameType, function: str) -> None:
        """Code calls ``getattr``, ``hasattr``, ``vars`` and the like. If the name is a constant, the code's names have
        it; otherwise the code may read any attribute of any object at hand."""
        info = code_of(frame.f_code, frame.f_globals)
        if info.quiet or frame.f_code in MODELS:
            return
        is_named = function != "vars" and function in frame.f_code.co_names  # not another name for it
        if is_named and has_constant_name(frame.f_code, frame.f_lasti):
            return
        self.opens_all(frame)
        everything = info.opening()
        for value in frame.f_locals.values():
            if isinstance(value, (types.ModuleType, type)):
                self.open(value, info, frame)
            self.look(value, everything, frame)
        for name in info.globals:
            self.open(frame.f_globals.get(name), info, frame)
