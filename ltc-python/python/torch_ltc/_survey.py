"""What the Python code of a step reads, found while it runs.

A replay is right only if everything that the captured Python read is as it was. :class:`Survey` sees every Python frame
and every call of a C function (``sys.setprofile``). From what a frame can reach by the names in its code (locals,
cells, globals, then attributes, members of containers, class attributes) it takes down what is older than the step:
places to watch, which ``_ltc.Watch`` compares at each call. What cannot be watched, and C functions that are not known
to depend on their arguments only, refuse the step by name and line. ``docs/adr/0011`` has the reasons and the cost.
"""

import functools
import gc
import operator
import sys
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Self

import torch
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

from torch_ltc import _ltc
from torch_ltc._again import modes, own_changes, repeatable
from torch_ltc._calls import state_of
from torch_ltc._counters import counts, only_adds
from torch_ltc._known import (
    ATOMS,
    OF_THE_MACHINE,
    is_own,
)
from torch_ltc._models import MODELS, QUIET_MODELS, SEARCHES, search
from torch_ltc._names import OF_ATTRIBUTES, Code, code_of, of_program
from torch_ltc._places import Place, owners
from torch_ltc._reached import ATOMIC_BASES, Reached, is_only_used


def _counts(**given: Any) -> int:
    return sys.getrefcount(given)


def _others_count(given: Any = None) -> int:
    """As :func:`_counts`: more where calls hold on to what they are given."""
    return sys.getrefcount(given) if given is not None else _others_count({})


class Survey(Reached):
    """Takes down what a step reads, while it is the profile function of this thread."""

    def __init__(
        self,
        given: Iterable[Any] = (),
        renewed: Iterable[tuple[dict[Any, Any], Any]] = (),
        on_repeatable: "Callable[[types.FunctionType, list[Any]], Callable[[], None]] | None" = None,
        tensor_places: Iterable[tuple[int, Any]] = (),
        sets_modes: bool = False,
    ) -> None:
        super().__init__()
        self.tensor_places = frozenset(tensor_places)
        #: Arguments and gradients: other objects at each call.
        self._given = set(map(id, given))
        #: Those of them that something older holds, too.
        self.elsewhere: dict[int, str] = {}
        #: Places in which steps put new containers; the containers are no others for that.
        self._renewed = {(id(holder), name) for holder, name in renewed}
        self._containers = {id(holder.get(name)) for holder, name in renewed}
        #: What is told of a call that replays make again, and answers with what is to be told when it returns.
        self._on_repeatable, self.sets_modes = on_repeatable, sets_modes
        #: The modes of modules that the step has set by such calls, by dict and name.
        self._modes: set[tuple[int, Any]] = set()
        self._repeats: tuple[types.FrameType, Callable[[], None]] | None = None
        #: Code of the program that began within a call that somebody handles, and what is told when it returns.
        self._within: list[tuple[types.FrameType, Callable[[], None]]] = []
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
        #: What of it something else was seen to hold.
        self._held: set[int] = set()
        self._found: dict[tuple[str, int, Any], Place] = {}
        #: Which code names an entry of a dict, by holder and name.
        self._readers: dict[tuple[int, Any], set[types.CodeType | None]] = {}
        #: Dicts that are read as a whole.
        self._whole: set[int] = set()
        self._frames: set[tuple[types.CodeType, int]] = set()
        self._globals: set[tuple[types.CodeType, int]] = set()
        self._collects = False

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
        while self._within:
            self._within.pop()[1]()
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

    def may_be_older(self, x: Any, is_held: Callable[[], bool]) -> bool:
        """Whether an object was there before the step, or may have been: what has no references is not tracked."""
        if self.is_older(x) or gc.is_tracked(x):
            return self.is_older(x)
        self._untracked.append(x)
        if is_held():
            self._held.add(id(x))
        return True

    def close(self) -> None:
        """Forgets which objects were there: megabytes, which would stay until the collector finds the cycles that
        surveys are part of."""
        self._older, self._on_repeatable, self._is_closed = None, None, True
        self._appended = {}
        self.__dict__.pop("numbers_leave", None)
        self.__dict__.pop("numbers_are_asked", None)
        self.__dict__.pop("begins_within", None)
        self.__dict__.pop("numbers_become_plain", None)

    def places(self) -> tuple[list[Place], list[torch.Tensor]]:
        """What to watch. What only the survey holds was made and dropped by the step."""
        places = list(self._found.values())
        self._found.clear()
        while True:
            ours = Counter(id(p.holder) for p in places)
            held = [p for p in places if self._is_still_held(p.holder, ours[id(p.holder)])]
            if len(held) == len(places):
                return held, list(self._tensors.values())
            # What is let go here may have held others.
            places = held

    def _is_still_held(self, x: Any, places: int) -> bool:
        """Whether somebody holds an object but these places and, as an argument, this call. What was not tracked may be
        of the step: then nobody does."""
        if id(x) not in self._doubtful:
            return True
        if sys.getrefcount(x) <= places + 2:
            return False
        # After a `torch.compile` that failed, calls hold on to what they were given, which nobody can see.
        return (
            id(x) in self._held
            or _others_count() <= _counts()
            or any(type(y) is not Place for y in gc.get_referrers(x))
        )

    def refuse(self, why: str, frame: types.FrameType | None = None) -> None:
        """The first reason is the one that is told."""
        if not self.obstacle:
            frame = frame and of_program(frame)
            self.obstacle = why + (f" ({frame.f_code.co_filename}:{frame.f_lineno})" if frame is not None else "")

    # ---- events ----

    def _see(self, frame: types.FrameType, event: str, argument: Any) -> None:
        while self._within and event == "return" and frame is self._within[-1][0]:
            self._within.pop()[1]()
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
        call = repeatable(frame, self.sets_modes) if self._on_repeatable is not None else None
        if call is not None and self._on_repeatable is not None and self.is_older(call[1][0]):
            if why := own_changes(call[1][0]):
                return self.refuse(f"its schedule runs code that may change more than the schedule: {why}", frame)
            if isinstance(call[1][0], torch.nn.Module):
                self._modes |= {(id(vars(part)), "training") for part in modes(call[1][0])}
            self._repeats = (frame, self._on_repeatable(*call))
            return
        if (frame.f_globals.get("__name__") or "").partition(".")[0] != "torch" and (ends := self.begins_within()):
            self._within.append((frame, ends))
        if info.asks_classes and (ends := self.numbers_become_plain(frame)):
            self._within.append((frame, ends))
        if info.takes_numbers:
            self.numbers_leave_unseen()
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
        is_held = functools.partial(self._is_of_older, frame)
        for name, value in frame.f_locals.items():
            if info.all_attributes and isinstance(value, (types.ModuleType, type)):
                self.open(value, info.closing(), frame)
            held = name in free and id(value) in self._given and self._is_of_older(frame)
            for x in self.read_of(value, name, frame.f_code, True, is_held) if name in free else (value,):
                self.look(x, info, frame, f"the variable {name}" if held else "")

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
            if result is None and frame.f_lasti not in info.ends:
                self._fails(frame, info.lacking())
        caller = frame.f_back
        if caller is not None and type(result) not in ATOMS:
            outer = code_of(caller.f_code, caller.f_globals)
            if not outer.quiet:
                self.look(result, outer, caller)

    def _fails(self, frame: types.FrameType, info: Code) -> None:
        """A function is left by an exception: it may have lacked any attribute that it names."""
        self._look_at_locals(frame, info)
        for name in info.globals:
            if name in frame.f_globals:
                self.look(frame.f_globals[name], info.closing(), frame)

    # ---- what is reached ----

    def _look_at_globals(self, frame: types.FrameType, info: Code) -> None:
        scope, builtins = frame.f_globals, frame.f_builtins
        for name in info.globals:
            self.note_place("entry", scope, name, frame.f_code)
            if name in scope:
                if info.all_attributes:
                    self.open(scope[name], info.closing(), frame)
                if (id(scope), name) not in self.tensor_places and not is_only_used(scope[name], name, info):
                    for x in self.read_of(scope[name], name, frame.f_code, False, lambda: True):
                        self.look(x, info.closing(), frame, f"the global {name}")
            else:
                self.note_place("entry", builtins, name, frame.f_code)
                found = builtins.get(name)
                if type(found) is types.BuiltinFunctionType and not is_only_used(found, name, info):
                    self.look(found, info.closing(), frame)
        for name in info.modules:
            module = sys.modules.get(name)
            if module is not None:
                self.note_place("entry", sys.modules, name, frame.f_code)
                self.look(module, info, frame)

    def note_place(self, kind: str, holder: Any, name: Any = None, reader: types.CodeType | None = None) -> None:
        """Takes down a place to watch; ``reader``: the code that reads it, for messages."""
        if name == "is_compiling" and holder is torch.compiler.__dict__:
            return  # another answer for as long as some thread captures
        if kind == "entry" and (id(holder), name) in self._renewed:
            kind = "renewed"
        elif kind == "entry" and (id(holder), name) in self.tensor_places:
            kind = "left"
        if kind == "dict":
            self._whole.add(id(holder))
        elif kind == "entry":
            self._readers.setdefault((id(holder), name), set()).add(reader)
        key = (kind, id(holder), name)
        if key not in self._found and key[1:] not in self._modes:
            self._found[key] = Place(kind, holder, name, reader)

    def only_counts(self, holder: Any, name: Any, remembers: Callable[[int, Any], bool]) -> bool:
        """Whether all that reads an entry of a dict is code that counts with it, and what that divides by it remembers
        (by the dict, as a number, and the name)."""
        for reader in self._readers_of(holder, name):
            divided = counts(reader, name) if reader is not None else None
            if divided is None or not all(remembers(id(holder), n) and self._only_adds(holder, n) for n in divided):
                return False
        return id(holder) not in self._whole and bool(self._readers_of(holder, name))

    def divided_by(self, holder: Any, name: Any) -> frozenset[str]:
        """The entries of the same dict that code divides by one."""
        return frozenset().union(*(counts(r, name) or () for r in self._readers_of(holder, name) if r is not None))

    def _only_adds(self, holder: Any, name: str) -> bool:
        return all(reader is not None and only_adds(reader, name) for reader in self._readers_of(holder, name))

    def _readers_of(self, holder: Any, name: Any) -> set[types.CodeType | None]:
        return self._readers.get((id(holder), name), set()) - {torch.nn.Module.__setattr__.__code__}

    def look(self, start: Any, info: Code, frame: types.FrameType, holder: str = "") -> None:
        """Looks at what can be reached from here; ``holder``: what it is held by, if that is older than the step."""
        if type(start) in ATOMS:
            return self.look_at_atom(start, info)
        stack, made, older = [(start, holder)], set(), self._older
        assert older is not None
        while stack:
            x, holder = stack.pop()
            kind = type(x)
            if kind in ATOMS or isinstance(x, ATOMIC_BASES) or is_own(kind):
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
                # What has no references is not tracked, and neither are dicts and tuples of such.
                old = not gc.is_tracked(x)
                if old:
                    self._untracked.append(x)
                    if holder:
                        self._held.add(id(x))
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
                self.note_place("function", function)
                for name, cell in zip(code.co_freevars, function.__closure__ or ()):
                    self.note_place("cell", cell, name, code)
                if function.__kwdefaults__:
                    self.note_place("dict", function.__kwdefaults__)
                for value in function.__defaults__ or ():
                    if id(value) in self._given:
                        self.elsewhere.setdefault(id(value), f"a default of {code.co_qualname}")
                    if isinstance(value, (list, set, deque)):
                        self.note_place("members", value)
                    elif isinstance(value, dict):
                        self.note_place("dict", value)


# Within a function of torch.compile, Dynamo would compile what looks, and all that it calls.
set_code_exec_strategy(Survey._see.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
