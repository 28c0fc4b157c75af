"""What the Python code of a step reads, found while it runs.

A replay is right only if everything that the captured Python read is as it was. :class:`Survey` sees every Python frame
and every call of a C function (``sys.setprofile``). From what a frame can reach by the names in its code (locals,
cells, globals, then attributes, members of containers, class attributes) it takes down what is older than the step:
places to watch, which ``_ltc.Watch`` compares at each call. What cannot be watched, and C functions that are not known
to depend on their arguments only, refuse the step by name and line. ``docs/adr/0011`` has the reasons and the cost.
"""

import enum
import functools
import gc
import operator
import sys
import threading
import types
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Self, cast

import torch
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

from torch_ltc import _ltc
from torch_ltc._again import own_changes, repeatable
from torch_ltc._calls import Calls, state_of
from torch_ltc._known import (
    ATOMS,
    CONTAINERS,
    ITERATORS,
    NOTHING,
    OF_THE_MACHINE,
    SPECIAL,
    VIEWS,
    is_open,
    is_scripted,
    lookup,
    namespace,
)
from torch_ltc._models import MODELS, QUIET_MODELS, SEARCHES, search
from torch_ltc._names import BY_NAME, OF_ATTRIBUTES, Code, code_of, is_quiet
from torch_ltc._places import Place, owners


class Survey(Calls):
    """Takes down what a step reads, while it is the profile function of this thread."""

    def __init__(
        self,
        except_for: Iterable[Any] = (),
        renewed: Iterable[tuple[dict[Any, Any], Any]] = (),
        again: "Callable[[types.FunctionType, list[Any]], Callable[[], None]] | None" = None,
    ) -> None:
        #: Arguments and gradients: other objects at each call.
        self._except = set(map(id, except_for))
        #: Those of them that something older holds, too.
        self.elsewhere: dict[int, str] = {}
        #: Places in which steps put new containers; the containers are no others for that.
        self._renewed = {(id(holder), name) for holder, name in renewed}
        self._containers = {id(holder.get(name)) for holder, name in renewed}
        #: What is told of a call that replays make again, and answers with what is to be told when it returns.
        self._again = again
        self._repeats: tuple[types.FrameType, Callable[[], None]] | None = None
        #: Why the step cannot be replayed; empty where it can.
        self.obstacle = ""
        self._older: _ltc.Older | None = None
        self._is_closed = False
        #: A call that asks what machine this is, while it runs.
        self._machine: types.FrameType | None = None
        self._seen: set[tuple[int, int]] = set()
        self._untracked: list[Any] = []
        #: What was not tracked when it was seen: it may be of the step.
        self._doubtful: set[int] = set()
        self._suspects: list[tuple[Any, str]] = []
        self._found: dict[tuple[str, int, Any], Place] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self._frames: set[tuple[types.CodeType, int]] = set()
        self._globals: set[tuple[types.CodeType, int]] = set()
        self._collects = False
        self._class_values: dict[tuple[type, int], list[Any]] = {}
        self._on_class: dict[tuple[type, str], Any] = {}

    def __enter__(self) -> Self:
        if sys.getprofile() is not None:
            self.obstacle = "a profile function is installed (sys.setprofile)"
            return self
        owners.clear()  # of objects that may be gone by now
        # Finalisers of other objects would run within the step.
        self._collects = gc.isenabled()
        gc.disable()
        self.draws_from = state_of(torch.default_generator)
        self._older = _ltc.Older()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.getprofile() == self._see:
            sys.setprofile(None)
        elif not self.obstacle:
            self.obstacle = "it installs a profile function"
        if self._collects:
            gc.enable()
        if self.goes_back and self.draws_from != state_of(torch.default_generator):
            self.refuse("it sets the CPU's generator (set_state)")
        self._doubtful, self._untracked = set(map(id, self._untracked)), []
        ours = Counter(id(x) for x, _ in self._suspects)
        for x, at in self._suspects:
            # Names of it: one in each tuple, the loop's, and the argument.
            if sys.getrefcount(x) > ours[id(x)] + 2 and operator.length_hint(x):
                self.refuse(f"it uses a {type(x).__qualname__}, which cannot be watched ({at})")
        self._suspects = []
        if not self.obstacle:
            self._look_at_functions()
        self._seen = set()
        if self._older is not None:
            self._older.release()

    def is_older(self, x: Any) -> bool:
        """Whether an object that is alive was there before the step."""
        assert not self._is_closed
        return self._older is not None and x in self._older

    def close(self) -> None:
        """Forgets which objects were there: megabytes, which would stay until the collector finds the cycles that
        surveys are part of."""
        self._older, self._again, self._is_closed = None, None, True
        self.__dict__.pop("numbers_leave", None)

    def places(self) -> tuple[list[Place], list[torch.Tensor]]:
        """What to watch. What only the survey holds was made and dropped by the step."""
        places = list(self._found.values())
        self._found.clear()
        while True:
            ours = Counter(id(p.holder) for p in places)
            left = [p for p in places if self._is_left(p.holder, ours[id(p.holder)])]
            if len(left) == len(places):
                return left, list(self._tensors.values())
            # What is let go here may have held others.
            places = left

    def _is_left(self, x: Any, places: int) -> bool:
        """Whether somebody holds an object but these places and, as an argument, this call. What was not tracked may be
        of the step: then nobody does."""
        return id(x) not in self._doubtful or sys.getrefcount(x) > places + 2

    def refuse(self, why: str, frame: types.FrameType | None = None) -> None:
        """The first reason is the one that is told."""
        if not self.obstacle:
            while frame is not None and is_quiet(frame.f_globals.get("__name__") or "") and frame.f_back is not None:
                frame = frame.f_back
            at = f" ({frame.f_code.co_filename}:{frame.f_lineno})" if frame is not None else ""
            self.obstacle = why + at

    # ---- events ----

    def _see(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if self.obstacle:
            return
        if self._machine is not None:
            if event == "return" and frame is self._machine:
                self._machine = None
            return
        if self._repeats is not None:
            if event == "return" and frame is self._repeats[0]:
                self._repeats[1]()
                self._repeats = None
            return
        try:
            if event == "c_call":
                self.call_of_c(frame, argument)
            elif event == "call":
                self._enter(frame)
            elif event == "return":
                self._leave(frame, argument)
        except Exception as e:  # noqa: BLE001  (of code we look at: properties, comparisons)
            self.refuse(f"what it reads could not be looked at: {type(e).__name__}: {e}", frame)

    def _enter(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code in OF_THE_MACHINE:
            self._machine = frame
            return
        if code in SEARCHES and search(self, frame):
            self._machine = frame
            return
        info = code_of(code, frame.f_globals)
        if info.quiet:
            quiet = QUIET_MODELS.get(code)
            return quiet(self, frame) if quiet is not None else None
        if code.co_flags & (0x80 | 0x200):
            return self.refuse("it runs a coroutine", frame)
        call = repeatable(frame) if self._again is not None else None
        if call is not None and self._again is not None and self.is_older(call[1][0]):
            if why := own_changes(call[1][0]):
                return self.refuse(f"its schedule runs code that may change more than the schedule: {why}", frame)
            self._repeats = (frame, self._again(*call))
            return
        if info.by_percent:
            self.numbers_leave(ahead=True)
        self._frames.add((code, _ltc.function_of_frame(frame)))
        if (code, id(frame.f_globals)) not in self._globals:
            self._globals.add((code, id(frame.f_globals)))
            self._look_at_globals(frame, info.closing() if code in MODELS else info)
        special = MODELS.get(code)
        if special is not None:
            return special(self, frame)
        if code.co_name in OF_ATTRIBUTES and code.co_argcount >= 2:
            owner, name = (frame.f_locals[argument] for argument in code.co_varnames[:2])
            if type(name) is str:
                self.look(owner, info.naming(frozenset((name,))), frame)
        self._look_at_locals(frame, info)

    def _look_at_locals(self, frame: types.FrameType, info: Code) -> None:
        free = frame.f_code.co_freevars
        for name, value in frame.f_locals.items():
            if info.all_attributes and isinstance(value, (types.ModuleType, type)):
                self.open(value, info.closing(), frame)
            held = name in free and id(value) in self._except and self._is_of_older(frame)
            self.look(value, info, frame, f"the variable {name}" if held else "")

    def _is_of_older(self, frame: types.FrameType) -> bool:
        """Whether a frame runs a function that is older than the step, and so are its cells."""
        assert self._older is not None
        if _ltc.KNOWS_FRAMES:
            return bool(self._older.at([_ltc.function_of_frame(frame)]))
        return any(f.__code__ is frame.f_code for f in self._older.of_class(types.FunctionType))

    def _leave(self, frame: types.FrameType, result: Any) -> None:
        info = code_of(frame.f_code, frame.f_globals)
        if not info.quiet and frame.f_code not in MODELS:
            self._look_at_locals(frame, info)
            self.look(result, info, frame)
        caller = frame.f_back
        if caller is not None and type(result) not in ATOMS:
            outer = code_of(caller.f_code, caller.f_globals)
            if not outer.quiet:
                self.look(result, outer, caller)

    # ---- what is reached ----

    def _look_at_globals(self, frame: types.FrameType, info: Code) -> None:
        scope, builtins = frame.f_globals, frame.f_builtins
        for name in info.globals:
            self.place("entry", scope, name, frame.f_code)
            if name in scope:
                if info.all_attributes:
                    self.open(scope[name], info.closing(), frame)
                self.look(scope[name], info.closing(), frame, f"the global {name}")
            else:
                self.place("entry", builtins, name, frame.f_code)
        for name in info.modules:
            module = sys.modules.get(name)
            if module is not None:
                self.place("entry", sys.modules, name, frame.f_code)
                self.look(module, info, frame)

    def place(self, kind: str, holder: Any, name: Any = None, reader: types.CodeType | None = None) -> None:
        """Takes down a place to watch; ``reader``: the code that reads it, for messages."""
        if name == "is_compiling" and holder is torch.compiler.__dict__:
            return  # another answer for as long as some thread captures
        if kind == "entry" and (id(holder), name) in self._renewed:
            kind = "renewed"
        key = (kind, id(holder), name)
        if key not in self._found:
            self._found[key] = Place(kind, holder, name, reader)

    def look(self, start: Any, info: Code, frame: types.FrameType, holder: str = "") -> None:
        """Looks at what can be reached from here; ``holder``: what it is held by, if that is older than the step."""
        if type(start) in ATOMS:
            return
        stack, made, older = [(start, holder)], set(), self._older
        assert older is not None
        while stack:
            x, holder = stack.pop()
            kind = type(x)
            if kind in ATOMS or isinstance(x, _ATOMIC_BASES) or kind.__module__.startswith("torch_ltc"):
                continue
            key = (id(x), info.serial)
            old = True
            if id(x) in self._containers:
                continue
            if id(x) in self._except:
                old = False
                if holder:
                    self.elsewhere.setdefault(id(x), f"{holder} ({frame.f_code.co_filename}:{frame.f_lineno})")
                if key in made:
                    continue
                made.add(key)
            elif x not in older:
                # What has no references is not tracked, and neither are dicts and tuples of such.
                old = not gc.is_tracked(x)
                if old:
                    self._untracked.append(x)
                elif key in made:
                    continue
                else:
                    made.add(key)
            if old:
                if key in self._seen:
                    continue
                self._seen.add(key)
            name = f"a {kind.__qualname__}" if old or isinstance(x, types.ModuleType) else ""
            stack += [(y, name) for y in self._reach(x, kind, info, frame, old)]

    def _reach(self, x: Any, kind: type, info: Code, frame: types.FrameType, old: bool) -> Iterable[Any]:
        code = frame.f_code
        if isinstance(x, torch.Tensor):
            return self._tensor(x, kind, info, code, old)
        if isinstance(x, dict):
            if old and not ("__name__" in x and "__builtins__" in x):
                self.place("dict", x, None, code)
            inside = [*x.keys(), *x.values()] if self._is_small(x, frame) else []
            return inside if kind in CONTAINERS else [*inside, *self._instance(x, kind, info, code, old)]
        if isinstance(x, (list, tuple, set, frozenset, deque)):
            if old and not isinstance(x, (tuple, frozenset)):
                self.place("members", x, None, code)
            inside = list(x) if self._is_small(x, frame) else []
            return inside if kind in CONTAINERS else [*inside, *self._instance(x, kind, info, code, old)]
        if kind is types.FunctionType:
            return self._function(x, info, code, old)
        if kind is types.MethodType:
            return (x.__self__, x.__func__)
        if kind.__name__ == "instancemethod":  # of pybind11's classes
            return (x.__func__,)
        if kind is types.CellType:
            if old:
                self.place("cell", x, None, code)
            try:
                return (x.cell_contents,)
            except ValueError:
                return ()
        if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
            owner = x.__self__
            known = type(owner) is types.ModuleType or type(owner).__module__ == "pybind11_builtins"
            return () if known else (owner,)
        if isinstance(x, types.ModuleType):
            return self._attributes(x.__dict__, info, code, True)
        if isinstance(x, type):
            if x.__module__ in ("decimal", "_decimal"):
                self.refuse(f"it uses decimal.{x.__name__}, which computes as a context says", frame)
            found = self._class_attributes(x, info, code)
            return found if type(x) is type else [*found, *self._class_attributes(type(x), info, code)]
        if isinstance(x, functools.partial):
            if old:
                for part in ("func", "args", "keywords"):
                    self.place("slot", x, vars(functools.partial)[part], code)
            if type(x.func) is types.BuiltinFunctionType:
                self.call_of_c(frame, x.func)  # which nothing tells when it happens
                if x.func.__name__ in BY_NAME:
                    for value in x.args:
                        self.look(value, info.opening(), frame)
            return (x.func, x.args, x.keywords)
        if isinstance(x, weakref.ref):
            if old:
                self.place("referent", x, None, code)
            return (x(),)
        if kind is ContextVar:
            self.place("variable", x, None, code)
            return (x.get(None),)
        if kind is super:
            return (x.__self__,)
        if kind in VIEWS or kind is types.MappingProxyType:
            return gc.get_referents(x)
        if kind in ITERATORS and not kind.__flags__ & 1 << 14:
            # Whose it is shows who holds it afterwards.
            self._suspects.append((x, f"{code.co_filename}:{frame.f_lineno}"))
            return ()
        if kind in ITERATORS:
            return gc.get_referents(x) if not old and kind is not types.GeneratorType else self._hidden(x, old, frame)
        if isinstance(x, threading.local):
            self.place("thread", x, None, code)
            return self._instance(x, kind, info, code, old)
        if kind.__module__.startswith("numpy"):
            return self._array(x, kind, old, frame)
        if kind is functools._lru_cache_wrapper:
            # What it keeps, its results among that; functions that are called for others run, and so are seen.
            for kept in gc.get_referents(x) if old else ():
                if type(kept) is dict and kept is not x.__dict__:
                    self.place("kept", kept, None, code)
            return ()
        if kind is operator.attrgetter:
            names = frozenset(name for path in x.__reduce__()[1] for name in path.split("."))
            for value in frame.f_locals.values():
                self.look(value, info.naming(names), frame)
            return ()
        if is_scripted(x):
            return self._hidden(x, old, frame)
        if is_open(kind):
            return self._instance(x, kind, info, code, old)
        if kind.__module__.startswith("torch"):
            # Handles of libtorch's own: what changes of them is part of the key, or is noted where tensors are.
            return self._instance(x, kind, info, code, old)
        return self._hidden(x, old, frame)

    def open(self, start: Any, info: Code, frame: types.FrameType) -> None:
        """Looks at all attributes of an object and of those that the code names from there on."""
        everything, stack, done = info.opening(), [start], set[int]()
        while stack:
            x = stack.pop()
            kind = type(x)
            if kind in ATOMS or id(x) in done or isinstance(x, _OF_FUNCTIONS) or not self.is_older(x):
                continue
            done.add(id(x))
            space = namespace(x)
            if isinstance(x, (types.ModuleType, type)):
                inside = self._reach(x, kind, everything, frame, True)
                if isinstance(x, types.ModuleType):
                    self.place("dict", x.__dict__, None, frame.f_code)
                    inside = [
                        y for y in x.__dict__.values() if not isinstance(y, _OF_MODULES) and is_open(cast(Any, type(y)))
                    ]
                stack += [found for n in info.attributes if (found := vars(x).get(n)) is not None]
            elif space is None or isinstance(x, torch.Tensor):
                continue
            else:
                inside = self._instance(x, kind, everything, frame.f_code, True)
                stack += [space[n] for n in info.attributes if n in space]
            for y in inside:
                self.look(y, everything if info.goes_on else info, frame)

    def _is_small(self, x: Any, frame: types.FrameType) -> bool:
        if len(x) > _MANY:
            self.refuse(f"it reaches a {type(x).__qualname__} of {len(x)} members", frame)
        return len(x) <= _MANY

    def _hidden(self, x: Any, old: bool, frame: types.FrameType) -> Iterable[Any]:
        if old:
            self.refuse(f"it uses a {type(x).__module__}.{type(x).__qualname__}, which cannot be watched", frame)
        return ()

    def _array(self, x: Any, kind: type, old: bool, frame: types.FrameType) -> Iterable[Any]:
        if kind.__name__ == "ndarray" and old:
            if x.nbytes > 1 << 16 or x.dtype.hasobject:
                self.refuse(f"it uses a numpy array of {x.nbytes} bytes: make it a tensor", frame)
            else:
                self.place("bytes", x, None, frame.f_code)
        elif kind.__name__ not in ("ndarray", "ufunc", "dtype") and not hasattr(x, "itemsize"):
            return self._hidden(x, old, frame)
        return ()

    def _tensor(self, x: torch.Tensor, kind: type, info: Code, code: types.CodeType, old: bool) -> Iterable[Any]:
        if not old:
            return ()
        if "grad" in info.attributes:
            self.uses_grads = True
        if "_version" in info.attributes and not code.co_qualname.startswith(_PUTS_VERSIONS_BACK):
            self.place("slot", x, torch._C.TensorBase._version, code)
        self._tensors[id(x)] = x
        # Attributes that Python code gave it, and hooks.
        found = list(self._instance(x, kind, info, code, old)) if kind is not torch.Tensor or x.__dict__ else []
        hooks = x._backward_hooks if kind in (torch.Tensor, torch.nn.Parameter) else None
        return found if hooks is None else [*found, hooks]

    def _function(self, x: types.FunctionType, info: Code, code: types.CodeType, old: bool) -> Iterable[Any]:
        if old:
            self.place("function", x)
        return self._attributes(x.__dict__, info, code, old) if x.__dict__ else ()

    def _instance(self, x: Any, kind: type, info: Code, code: types.CodeType, old: bool) -> Iterable[Any]:
        found: list[Any] = []
        old = old and bool(kind.__flags__ & 1 << 14)  # others hold no references
        if old:
            self.place("class", x, None, code)
        space = namespace(x)
        if old and isinstance(x, BaseException):
            self.place("slot", x, vars(BaseException)["args"], code)
        if old and isinstance(x, enum.Enum) and space is not None:
            # What its class's properties, which are quiet, read.
            for name in info.attributes & {"name", "value"}:
                self.place("entry", space, f"_{name}_", code)
        on_class = self._class_attributes(kind, info, code)
        if space is not None:
            if old:
                owners[id(space)] = kind.__qualname__
                if not isinstance(x, threading.local):
                    self.place("namespace", x, None, code)
            # Namespaces compare and show all that they have.
            if info.all_attributes or isinstance(x, types.SimpleNamespace):
                if old:
                    self.place("dict", space, None, code)
                for name in space:
                    self._hides(kind, name, code)
                found += space.values()
            else:
                found += self._attributes(space, info, code, old, kind)
        for name in info.attributes:
            slot = self._lookup(kind, name)
            if type(slot) is types.MemberDescriptorType and hasattr(x, name):
                if old:
                    self.place("slot", x, slot, code)
                found.append(getattr(x, name))
        return [*found, *on_class]

    def _attributes(
        self, space: dict[str, Any], info: Code, code: types.CodeType, old: bool, kind: type | None = None
    ) -> list[Any]:
        found = []
        for name in info.attributes:
            if name in space:
                if old:
                    self.place("entry", space, name, code)
                if kind is not None:
                    self._hides(kind, name, code)
                found.append(space[name])
            elif old and (name in info.may_lack or (kind is not None and self._is_asked(kind, name))):
                self.place("entry", space, name, code)
        return found

    def _hides(self, kind: type, name: str, code: types.CodeType) -> None:
        """An instance has an attribute of this name, which a property of its class would hide."""
        if kind.__flags__ & 1 << 9:
            self.place("lookup", kind, name, code)

    def _is_asked(self, kind: type, name: str) -> bool:
        """Whether a class answers for an attribute that an instance lacks: it has it, or code for what is lacking, as
        all modules have (`torch_ltc._models`)."""
        getter = self._lookup(kind, "__getattr__")
        own = getter is not NOTHING and getter is not torch.nn.Module.__getattr__
        return own or self._lookup(kind, name) is not NOTHING

    def _lookup(self, kind: type, name: str) -> Any:
        key = (kind, name)
        if key not in self._on_class:
            self._on_class[key] = lookup(kind, name)
        return self._on_class[key]

    def _class_attributes(self, kind: type, info: Code, code: types.CodeType) -> list[Any]:
        key = (kind, info.serial)
        if key not in self._class_values:
            self._class_values[key] = self._look_at_class(kind, info, code)
        return self._class_values[key]

    def _look_at_class(self, kind: type, info: Code, code: types.CodeType) -> list[Any]:
        if not kind.__flags__ & 1 << 9:  # classes written in C do not change
            return []
        found = []
        for name in SPECIAL:
            self.place("lookup", kind, name, code)
        all_of_it = info.all_attributes
        of_python = [base for base in kind.__mro__ if base.__flags__ & 1 << 9] if all_of_it else []
        names = {name for base in of_python for name in vars(base) if not name.startswith(("__", "_abc_"))}
        for name in names | info.attributes:
            value = self._lookup(kind, name)
            if all_of_it or name in info.may_lack or self._is_asked(kind, name):
                self.place("lookup", kind, name, code)
            # What a descriptor written in Python reads, its frames show.
            if value is not NOTHING and not hasattr(type(value), "__get__"):
                found.append(value)
        return found

    def _look_at_functions(self) -> None:
        """The functions behind the frames that ran: their code, defaults and cells."""
        older = self._older
        if older is None:
            return
        codes = {code for code, _ in self._frames}
        # Where frames do not tell which function they ran, it may have been any of this code.
        known = older.at([at for _, at in self._frames]) if _ltc.KNOWS_FRAMES else older.of_class(types.FunctionType)
        for function in known:
            if type(function) is types.FunctionType and function.__code__ in codes:
                code = function.__code__
                self.place("function", function)
                for name, cell in zip(code.co_freevars, function.__closure__ or ()):
                    self.place("cell", cell, name, code)
                if function.__kwdefaults__:
                    self.place("dict", function.__kwdefaults__)
                for value in function.__defaults__ or ():
                    if id(value) in self._except:
                        self.elsewhere.setdefault(id(value), f"a default of {code.co_qualname}")
                    if isinstance(value, (list, set, deque)):
                        self.place("members", value)
                    elif isinstance(value, dict):
                        self.place("dict", value)


#: What modules have, and what computed names of theirs lead to without being looked at: frames and calls show it.
_OF_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_OF_MODULES = (types.ModuleType, type, *_OF_FUNCTIONS)
#: What reads versions of tensors to put them back.
_PUTS_VERSIONS_BACK = "_unsafe_preserve_version_counter."
#: Members of a container that are looked at; more refuse the step.
_MANY = 100_000
_ATOMIC_BASES = (torch.Size, types.GenericAlias)


# Within a function of torch.compile, Dynamo would compile what looks, and all that it calls.
set_code_exec_strategy(Survey._see.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
