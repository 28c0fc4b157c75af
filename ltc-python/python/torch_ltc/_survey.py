"""The survey: finds what the Python code of a step reads, while it runs.

A replay is right only if everything that the captured Python read is as it was. :class:`Survey` is the thread's profile
function (``_ltc.observe``) during a captured call, so it sees every Python frame and every call of a C function. From
each frame it follows the names in the frame's code: locals, cells and globals, then attributes, members of containers
and class attributes. What it reaches and is older than the step becomes a place to watch, which `_ltc.Watch` compares
at each later call; what the step itself made is only passed through. What cannot be watched, and a C function that is
not known to depend on its arguments alone, refuse the step, with the line.

The class is in three layers: `_calls.py` judges calls of C functions, `_reached.py` goes from an object to what it
holds, and this module handles events and keeps the places. `docs/adr/0011-compiled-steps-watch-what-they-read.md` has
the reasons and the cost.
"""

import contextlib
import enum
import functools
import gc
import inspect
import operator
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import torch

from torch_ltc import _ltc
from torch_ltc._again import modes, own_changes, repeatable
from torch_ltc._calls import state_of
from torch_ltc._classes import is_only_used
from torch_ltc._compiling import past_dynamo
from torch_ltc._errors import Errors
from torch_ltc._handlers import Handlers
from torch_ltc._known import (
    ATOMS,
    OF_THE_MACHINE,
    is_of_builtins,
    is_own,
)
from torch_ltc._left_places import FoundValue
from torch_ltc._models import MODELS, SEARCHES, enter_quiet, search
from torch_ltc._names import (
    OF_ATTRIBUTES,
    CodeNames,
    arguments_of,
    code_of,
    is_of_program,
    may_write,
    of_program,
)
from torch_ltc._places import Place, owners
from torch_ltc._reached import ATOMIC_BASES
from torch_ltc._readers import Readers
from torch_ltc._traced import TracedFloat, TracedInt
from torch_ltc._untracked import Untracked
from torch_ltc._writes import CONTENTS, EVERYTHING

#: Names under which code puts the class of an object, or the classes that a class is made from.
_CHANGE_CLASSES = frozenset(("__class__", "__bases__"))
#: Methods whose result C code reads, which asked for a plain number.
_CONVERT = frozenset(
    ("__float__", "__int__", "__index__", "__complex__", "__round__", "__trunc__", "__hash__", "__len__")
)


class Survey(Errors):
    """Notes what a step reads. A context manager, within which it is the profile function of this thread.

    `given`: arguments and gradients, which are other objects at each call. `renewed`: places in which the step puts new
    containers. `on_repeatable`: called where a call begins that replays make again (`_again.py`); what it returns is
    called when that call ends. `found`: what stands in the places in which the step leaves something. `sets_modes`:
    whether replays call `train()` and `eval()` as the step does.
    """

    def __init__(
        self,
        given: Iterable[Any] = (),
        renewed: Iterable[tuple[dict[Any, Any], Any]] = (),
        on_repeatable: "Callable[[types.FunctionType, list[Any]], Callable[[], None]] | None" = None,
        found: Sequence[FoundValue] = (),
        sets_modes: bool = False,
    ) -> None:
        super().__init__()
        self._left_places = frozenset(f.key for f in found)
        # Of the member of an enum that stands in a place, too, code may read attributes.
        self.given_places = frozenset(f.key for f in found if not isinstance(f.value, enum.Enum))
        self.looked_at.given_places = self.given_places
        #: Identities of arguments and gradients: other objects at each call, so they are not watched.
        self._given = set(map(id, given))
        #: Those of them that something older than the step holds, too, and what that is, in words.
        self.elsewhere: dict[int, str] = {}
        #: Places in which the step puts new containers, and the identities of the containers there: what is compared
        #: is what they hold, not which containers they are.
        renewed = list(renewed)
        self._renewed = {(id(holder), name) for holder, name in renewed}
        self._containers = {id(old): old for old in (holder.get(name) for holder, name in renewed)}
        self._on_repeatable, self.sets_modes = on_repeatable, sets_modes
        #: The places of modules' modes that repeatable calls have set: they need not be watched.
        self._modes: set[tuple[int, Any]] = set()
        #: The repeatable call that is running, and what is to be called when it ends.
        self._repeats: tuple[types.FrameType, Callable[[], None]] | None = None
        #: Frames that change how the recorder works while they run, innermost last, and what is to be called at the
        #: end of each.
        self._within: list[tuple[types.FrameType, Callable[[], None]]] = []
        #: Why the step cannot be replayed; empty where it can.
        self.obstacle = ""
        #: Knows which objects there were when the step began.
        self._older: _ltc.Older | None = None
        self._is_closed = False
        #: The frame of a call that asks what machine this is (`_known.OF_THE_MACHINE`), while it runs unobserved.
        self._machine: types.FrameType | None = None
        #: What was looked at already: the object's identity, and the serial number of the names that led to it.
        self._seen: set[tuple[int, int]] = set()
        #: The names by which each code was seen to look, by serial number.
        self._variants: dict[types.CodeType, dict[int, CodeNames]] = {}
        #: When the variables of the frames that are running were looked at, as that number, by identity.
        self._looked: dict[int, int] = {}
        #: The `with` blocks that the step is in.
        self.handlers = Handlers()
        #: What the garbage collector does not track.
        self.untracked = Untracked()
        #: Places to watch, by kind, identity of the holder, and name.
        self._found: dict[tuple[str, int, Any], Place] = {}
        #: Which code reads each entry of a dict.
        self.readers = Readers()
        #: The code whose globals were looked at, with the identity of its namespace.
        self._globals: dict[tuple[types.CodeType, int], int] = {}
        #: Whether the garbage collector was on before.
        self._collects = self._collected = False
        #: Whether it is turned on or off by a call of the step, or asked about, that has not returned.
        self._speaks = False
        #: The filters of warnings when the step began.
        self._filters: list[Any] = []

    def __enter__(self) -> Self:
        if sys.getprofile() is not None:
            self.obstacle = "a profile function is installed (sys.setprofile)"
            return self
        owners.clear()  # the names of objects that may be gone by now
        # A collection would run finalisers of other objects within the step.
        self._collects = self._collected = gc.isenabled()
        gc.disable()
        self._filters = list(warnings.filters)
        self.draws_from = state_of(torch.default_generator)
        try:
            self._older = _ltc.Older()
        except RuntimeError as e:
            self.obstacle = str(e)
            return self
        gc.callbacks.append(self._older.announce)
        _ltc.observe(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.getprofile() == self._see:
            sys.setprofile(None)
        elif not self.obstacle:
            self.obstacle = "it installs a profile function"
        self.expect_no_error(None, "return")
        while self._within:
            self._within.pop()[1]()
        if self._collects != self._collected:
            self.refuse("it turns the garbage collector on or off")
        if any(len(x) < expected for x, expected in self.appends.values()):
            self.refuse("what it appends to a list is taken out again, by another thread or by code that is not seen")
        self._look_at_appends()
        if self._filters != list(warnings.filters):
            self.refuse("it changes the filters of warnings")
        self._filters = []
        if self.resets_generator and self.draws_from != state_of(torch.default_generator):
            self.refuse("it sets the CPU's generator (set_state)")
        self.untracked.end()
        ours = Counter(id(x) for x, _ in self._suspects)
        for x, at in self._suspects:
            # References that are ours: one in each tuple, the loop's variable, and the argument of `getrefcount`.
            if sys.getrefcount(x) > ours[id(x)] + 2 and operator.length_hint(x):
                self.refuse(f"it uses a {type(x).__qualname__}, which cannot be watched ({at})")
        for ref, at in self._finalised:
            if (x := ref()) is not None:
                self.refuse(f"it makes a {type(x).__qualname__}, whose finaliser is still to run ({at})")
        self._suspects, self._finalised = [], []
        if not self.obstacle:
            self.look_at_functions()
        self._seen, self._containers = set(), {}
        self.looked_at.close()

    def _look_at_appends(self) -> None:
        """Refuses the step if it appended to an older list that it was not seen to hold."""
        for x, _ in self.firsts.values():
            is_known = id(x) in self._appended or id(x) in self._containers or id(x) in self._given
            if not is_known and ("members", id(x), None) not in self._found:
                self.refuse(f"it appends to a {type(x).__qualname__} that it was not seen to hold")
        self.appends, self.firsts = {}, {}

    def is_older(self, x: Any) -> bool:
        """Whether an object was there before the step."""
        assert not self._is_closed
        return self._older is not None and (
            x in self._older or (id(x) in self.untracked.held and self.untracked.is_running)
        )

    def is_held(self, x: Any) -> bool:
        """Whether something older was seen to hold an object of which the collector does not tell how old it is."""
        return id(x) in self.untracked.held

    def unknown(self, tensors: Iterable[torch.Tensor]) -> torch.Tensor | None:
        """One of these older tensors, which the step uses, that was not reached; `None` where all were."""
        return next((x for x in tensors if id(x) not in self._tensors and id(x) not in self._given), None)

    def note_own(self, x: Any) -> None:
        """Notes that the step made an object, which stays alive until it has ended: the collector does not tell."""
        self._given.add(id(x))

    def expect_collection(self) -> None:
        """Notes that the collector may be about to change what it knows."""
        if self._older is not None:
            self._older.announce()

    def speak_to_collector(self, function: str) -> None:
        """The step is about to call a function of `gc`. It finds the collector as it would be without this survey,
        which keeps it off, and what it says of it counts when the step has ended."""
        if function == "isenabled":
            self.refuse("it asks whether the garbage collector is on")
            if self._collects:
                gc.enable()
        elif function in ("enable", "disable"):
            self._collects = function == "enable"
        self._speaks = function != "collect"

    def said_of_age(self) -> str:
        """Why some objects may have been taken for older than the step that are not, in words; empty where none are."""
        is_lost = self._older is not None and self._older.is_lost()
        return "another thread changes what the garbage collector knows meanwhile (gc.freeze())" if is_lost else ""

    def may_be_older(self, x: Any, is_held: Callable[[], bool]) -> bool:
        """Whether an object was there before the step, or may have been, since the collector does not track it (as it
        holds no references). `is_held`: whether something older holds it."""
        if self.is_older(x) or gc.is_tracked(x):
            return self.is_older(x)
        self.untracked.note(x, is_held())
        return True

    def close(self) -> None:
        """Lets go of what the survey holds, and of callbacks: it is part of reference cycles, so they would otherwise
        stay until the collector runs."""
        if self._older is not None:
            with contextlib.suppress(ValueError):  # the program empties the list
                gc.callbacks.remove(self._older.announce)
        if self._collects:
            gc.enable()
        self._older, self._on_repeatable, self._is_closed = None, None, True
        self._functions = {}
        self._appended = {}
        self.only_set.close()
        self.__dict__.pop("on_float_call", None)
        self.__dict__.pop("on_going_back", None)
        self.__dict__.pop("on_kind_check", None)
        self.__dict__.pop("on_program_frame", None)
        self.__dict__.pop("on_class_check", None)
        self.__dict__.pop("on_refusal", None)

    def look_at_step(self, fn: Callable[..., Any]) -> None:
        """Looks at the step itself where it is called by C code (a `functools.partial`): no frame shows what that
        holds."""
        called = fn.__func__ if type(fn) is types.MethodType else fn
        if (
            self._older is not None
            and not hasattr(type(called).__call__, "__code__")
            and not hasattr(called, "__code__")
        ):
            frame = sys._getframe()
            self.look(fn, code_of(frame.f_code, frame.f_globals), frame)

    def places(self) -> tuple[list[Place], list[torch.Tensor]]:
        """The places and the tensors to watch. Drops places of objects that only the survey holds: the step made and
        dropped these."""
        for unsure in self.only_set.settle({key[1:] for key in self._found}, self.readers.whole):
            self.note_place("entry", *unsure)
        places = list(self._found.values())
        self._found.clear()
        while dropped := self.untracked.dropped(places, self.is_older, self.expect_collection):
            # The objects that are let go here may have been the last to hold others.
            places = [p for p in places if id(p.holder) not in dropped]
        return places, list(self._tensors.values())

    def refuse(self, why: str, frame: types.FrameType | None = None) -> None:
        """Notes why the step cannot be replayed, with the line of the program at `frame`; the first reason stays."""
        if not self.obstacle:
            frame = frame and of_program(frame)
            self.obstacle = why + (f" ({frame.f_code.co_filename}:{frame.f_lineno})" if frame is not None else "")
            self.on_refusal()

    # ---- events ----

    @past_dynamo
    def _see(self, frame: types.FrameType, event: str, argument: Any) -> None:
        """The profile function."""
        if self._catcher is not None:
            self.expect_no_error(frame, event)
        while self._within and event == "return" and frame is self._within[-1][0]:
            self._within.pop()[1]()
        if self._speaks:
            self._speaks = False
            gc.disable()
        if self.obstacle:
            if event == "c_call" and getattr(argument, "__self__", None) is gc:
                self.speak_to_collector(argument.__name__)
            return
        if self._machine is not None:
            if event == "return" and frame is self._machine:
                self._machine = None
            return
        if self._repeats is not None:
            if event == "return" and frame is self._repeats[0]:
                self._repeats[1]()
                self._repeats = None
                self.looked_at.note_writes(frozenset((EVERYTHING, CONTENTS)))
            return
        writer = frame if event == "return" else frame.f_back
        if event != "c_call" and writer is not None and may_write(writer):
            self.looked_at.note_writes(code_of(writer.f_code, writer.f_globals).writes)
            if writer.f_code in self.writing:
                self.looked_at.note_writes(self.writing[writer.f_code])
        try:
            with torch._C.DisableTorchFunction():  # modes and tensor classes of the program are not to see this
                if event == "c_call":
                    self.note_writer(frame.f_code, argument.__name__)
                    self.call_of_c(frame, argument)
                elif event == "call":
                    self._enter(frame)
                elif event == "return":
                    self._leave(frame, argument)
        except Exception as e:  # noqa: BLE001  (raised by the program's code: properties, comparisons)
            self.refuse(f"what it reads could not be looked at: {type(e).__name__}: {e}", frame)

    def _enter(self, frame: types.FrameType) -> None:
        """A Python frame begins: looks at its globals and arguments, unless more is known of its code."""
        code = frame.f_code
        if code in OF_THE_MACHINE:
            self._machine = frame
            return
        if code.co_name == "__enter__":
            self.handlers.note(frame)
        if code in SEARCHES and search(self, frame):
            self._machine = frame
            return
        info = code_of(code, frame.f_globals)
        if not _CHANGE_CLASSES.isdisjoint(info.writes):
            return self.refuse("it changes the class of an object, or the bases of a class", frame)
        if info.quiet:
            if "_tuple_new" in frame.f_globals:  # the constructor of a named tuple, which has defaults
                self.note_function(frame)
            return enter_quiet(self, frame)
        if code.co_flags & (0x80 | 0x200):  # `CO_COROUTINE`, `CO_ASYNC_GENERATOR`
            return self.refuse("it runs a coroutine", frame)
        call = repeatable(frame, self.sets_modes) if self._on_repeatable is not None else None
        if call is not None and self._on_repeatable is not None and self.is_older(call[1][0]):
            relied_on: list[tuple[str, Any, Any]] = []
            if why := own_changes(call[1][0], relied_on):
                return self.refuse(f"its schedule runs code that may change more than the schedule: {why}", frame)
            if isinstance(call[1][0], torch.nn.Module):
                self._modes |= {(id(vars(part)), "training") for part in modes(call[1][0])}
            for place in relied_on:
                self.note_place(*place, code)
            self._repeats = (frame, self._on_repeatable(*call))
            return
        if is_of_program(frame) and (ends := self.on_program_frame()):
            self._within.append((frame, ends))
        if ends := self.on_class_check(frame, info):
            self._within.append((frame, ends))
        if info.takes_numbers:
            self.expect_unseen_float_calls()
        self.note_function(frame)
        self._look_at_globals(frame, info.closing() if code in MODELS else info)
        special = MODELS.get(code)
        if special is not None:
            return special(self, frame)
        if code.co_name in OF_ATTRIBUTES and code.co_argcount >= 2:
            owner, name = (frame.f_locals[argument] for argument in code.co_varnames[:2])
            if type(name) is str:
                self.look(owner, info.naming(frozenset((name,))), frame)
        self._look_at_locals(frame, info)
        self._look_where_changed(frame)
        self._looked[id(frame)] = self.looked_at.writes

    def _look_where_changed(self, frame: types.FrameType) -> None:
        """Looks at what the code of a frame can reach by now, and could not when it was looked at."""
        for info in [*self._variants.get(frame.f_code, {}).values()]:
            found, again = self.looked_at.changed(info)
            self._opens = info.is_shut
            for x in found:
                self.look(x, info, frame)
            for x in again:
                if isinstance(x, type):
                    self._forget_class(x)
                self._seen.discard((id(x), info.serial))
                self.look(x, info, frame)
            self._opens = False

    def _look_at_locals(self, frame: types.FrameType, info: CodeNames) -> None:
        """Looks at what the code can reach from its variables, those of enclosing functions included."""
        free = frame.f_code.co_freevars
        is_held = functools.partial(self.is_of_older, frame)
        for name, value in frame.f_locals.items():
            if info.all_attributes and isinstance(value, (types.ModuleType, type)):
                self.open(value, info.closing(), frame)
            if name not in free:
                self.look(value, info, frame)
                continue
            for x in self.read_of(value, name, info, frame.f_code, True, is_held):
                asks = id(x) in self._given or (type(x) not in ATOMS and not gc.is_tracked(x))
                self.look(x, info, frame, f"the variable {name}" if asks and is_held() else "")
        if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            # A copy, which would keep alive what the code drops. The frame, the variable and the argument hold it; the
            # program may, too (`vars()`).
            variables = frame.f_locals
            if sys.getrefcount(variables) <= 3:
                variables.clear()

    def _leave(self, frame: types.FrameType, result: Any) -> None:
        """A Python frame ends: looks at its variables once more, and at its result, which its caller may go on with."""
        info = code_of(frame.f_code, frame.f_globals)
        if not info.quiet and frame.f_code not in MODELS:
            self._look_at_locals(frame, info)
            self._look_where_changed(frame)
            self.look(result, info, frame)
            if result is None and frame.f_lasti not in info.ends:
                self._fails(frame, info.lacking())
        if result is None and frame.f_lasti not in info.ends:
            self.expect_error(frame)
        if type(result) in (TracedFloat, TracedInt) and frame.f_code.co_name in _CONVERT:
            self.on_float_call(ahead=type(result) is TracedInt)
        self._looked.pop(id(frame), None)
        self.handlers.end(frame)
        caller = frame.f_back
        outer = code_of(caller.f_code, caller.f_globals) if caller is not None else None
        if caller is None or outer is None or outer.quiet:
            return
        if type(result) not in ATOMS:
            self.look(result, outer, caller)
        if self._looked.get(id(caller)) != self.looked_at.writes and may_write(caller):
            self._looked[id(caller)] = self.looked_at.writes
            self._look_at_globals(caller, outer)
            self._look_at_locals(caller, outer)
            self._look_where_changed(caller)
            # The caller may hold what it gave without a variable (an object that it has just made).
            for x in () if info.quiet else arguments_of(frame):
                self.look(x, outer, caller)

    def _fails(self, frame: types.FrameType, info: CodeNames) -> None:
        """A function is left by an exception. An attribute that it names may have been missing, so all of them are
        watched, also those that are not there."""
        self._look_at_locals(frame, info)
        for name in info.globals:
            if name in frame.f_globals:
                self.look(frame.f_globals[name], info.closing(), frame)

    # ---- what is reached ----

    def _look_at_globals(self, frame: types.FrameType, info: CodeNames) -> None:
        """Looks at the globals and builtins that the code names, and at modules that it imports, unless nothing was
        changed since the last time."""
        key = (frame.f_code, id(frame.f_globals))
        if self._globals.get(key) == self.looked_at.writes:
            return
        self._globals[key] = self.looked_at.writes
        scope, builtins, around = frame.f_globals, frame.f_builtins, self.of_globals(info, frame)
        for name in info.globals:
            if name in info.only_set:
                self.note_only_set(scope, name, frame.f_code)
                continue
            self.note_place("entry", scope, name, frame.f_code)
            if name in scope:
                if info.all_attributes:
                    self.open(scope[name], info.closing(), frame)
                if (id(scope), name) not in self.given_places and not is_only_used(scope[name], name, info):
                    for x in self.read_of(scope[name], name, info, frame.f_code, False, lambda: True):
                        self.look(x, around, frame, f"the global {name}")
            else:
                self.note_place("entry", builtins, name, frame.f_code)
                found = builtins.get(name)
                if not is_of_builtins(found) and not is_only_used(found, name, info):
                    self.look(found, around, frame)
        for name in info.modules:
            module = sys.modules.get(name)
            if module is not None:
                self.note_place("entry", sys.modules, name, frame.f_code)
                # Where the code goes on with the module itself, a variable holds it, and is looked at.
                self.look(module, around, frame)

    def note_place(self, kind: str, holder: Any, name: Any = None, reader: types.CodeType | None = None) -> None:
        """Notes a place to watch. `kind` says how it is read (the kinds are those of `_ltc.Watch`), `holder` and `name`
        where it is, and `reader` which code reads it, for messages."""
        if name == "is_compiling" and holder is torch.compiler.__dict__:
            return  # it is another function for as long as some thread captures
        if kind == "entry" and (id(holder), name) in self._renewed:
            kind = "renewed"
        elif kind == "entry" and (id(holder), name) in self._left_places:
            kind = "left"
        if kind == "dict":
            self.readers.whole.add(id(holder))
        elif kind == "entry":
            self.readers.note(holder, name, reader)
        key = (kind, id(holder), name)
        if key not in self._found and key[1:] not in self._modes:
            self._found[key] = Place(kind, holder, name, reader)

    def note_only_set(self, holder: dict[Any, Any], name: Any, reader: types.CodeType) -> None:
        """Notes a place that code sets and does not read. One that is known to hold an input is a place like others."""
        key = (id(holder), name)
        if key in self._left_places or key in self._renewed or not self.only_set.note(holder, name, reader):
            self.note_place("entry", holder, name, reader)
        self.readers.note(holder, name, reader)

    def look(self, start: Any, info: CodeNames, frame: types.FrameType, holder: str = "") -> None:
        """Looks at everything that code with these names can reach from an object. `holder`: what holds the object, in
        words, if that is older than the step."""
        info = self.widened(info, frame)
        if type(start) in ATOMS:
            return self.look_at_atom(start, info)
        stack: list[tuple[Any, str, Any]] = [(start, holder, None)]
        made, older = set(), self._older
        assert older is not None
        self._variants.setdefault(frame.f_code, {}).setdefault(info.serial, info)
        while stack:
            x, holder, owner = stack.pop()
            kind = type(x)
            if kind in ATOMS or issubclass(kind, ATOMIC_BASES) or is_own(kind):
                self.look_at_atom(x, info)
                continue
            key = (id(x), info.serial)
            old = True
            if id(x) in self._containers:
                continue
            if id(x) in self._given:
                old = False
                if holder:
                    self.elsewhere.setdefault(id(x), f"{holder} ({frame.f_code.co_filename}:{frame.f_lineno})")
                if key in made:
                    continue
                made.add(key)
            elif x not in older:
                # Objects that hold no references, and dicts and tuples of such, are not tracked: they may be older.
                # One that something older was seen to hold may have got a container since, and be tracked for that.
                old = not gc.is_tracked(x) or id(x) in self.untracked.held
                if old:
                    self.untracked.note(x, bool(holder), owner is not None and owner in older)
                elif key in made:
                    continue
                else:
                    made.add(key)
            if not old and owner is not None:
                self.looked_at.note_holder(owner, info)
            if old:
                if key in self._seen:
                    continue
                self._seen.add(key)
            name = f"a {kind.__qualname__}" if old or isinstance(x, types.ModuleType) else ""
            owner = x if old else None
            stack += [(y, name, owner) for y in self._reach(x, kind, info, frame, old)]
        if self.widened(info, frame) is not info:  # it met a getter, which the code may call with what it met before
            self.look(start, info, frame)
