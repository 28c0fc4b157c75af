"""Compiled steps: what becomes of each call of a function that :func:`torch_ltc.compile` wrapped.

The life of a compiled step, and the modules that do each part:

- A call is *keyed*. Its arguments are taken apart (`_arguments.py`) into tensors, which are inputs, and everything
  else, which is a key. Tensors that earlier calls left in attributes or globals are inputs, too (`_left_places.py`).
- If a capture fits (same key, inputs of the same shapes and dtypes, and everything that the step reads is as it was),
  the call is *replayed*. Rust does that (`_ltc.Replays`): it compares, runs the lines that the step runs on the host
  (`_host_program.py`), runs the program, and updates gradients and version counters. `_results.py` builds the return
  value, and `_history.py` gives it an autograd history.
- Otherwise the call is a *miss*: the Python function runs, and its operators are recorded. The first such call notes
  what the step reads (`_survey.py` and its helpers `_reached.py`, `_calls.py`, `_models.py`, `_names.py`,
  `_known.py`), which is then watched (`_reads.py`). From the second call on it is also *captured*: `_run.py` makes
  one such call, `_host.py` notes what the step computes on the host, and `_changed_places.py` finds what it changed.
- Two captures that turn out to be the same step *confirm* each other, and calls are replayed from then on.
- A step that does what no replay could repeat is *refused*: its calls are recorded each time, which is always right,
  and :attr:`CompiledStep.refusal` says why. A refused step is tried again a few times, since the first calls of a
  program may do what later ones do not.
- Numbers that differ from call to call (`_changing_numbers.py`, `_traced.py`, `_counters.py`, `_flows.py`,
  `_awaited.py`) do not refuse a step if it only computes with them; calls that a replay can simply make again are in
  `_again.py`.
"""

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

import torch

from torch_ltc import _history, _ltc
from torch_ltc._arguments import Arguments
from torch_ltc._call_class import CallClass
from torch_ltc._changed_places import RENEWED
from torch_ltc._changing_numbers import ChangingNumbers, floats
from torch_ltc._compiling import CHECK_EVERY, capturing, note_registrations, past_dynamo
from torch_ltc._history import INTERRUPTED
from torch_ltc._host_program import HostProgram
from torch_ltc._left_places import FoundValue, LeftPlaces
from torch_ltc._masks import Masks
from torch_ltc._mode_stack import sees_operators
from torch_ltc._reads import EarlierCapture, Reads
from torch_ltc._results import ReturnSpec
from torch_ltc._run import Call, Run

#: With `LTC_CHECK_STEPS`, a compared call may take a path (decisions by values) that no capture took. After this many
#: such calls in a row, the next one is captured instead.
_MAX_UNKNOWN_PATHS = 3
#: How many captures of one call class may fail to confirm an earlier one until the class is refused: captures that took
#: the same path as an earlier one, and captures of which each took another path.
_MAX_ATTEMPTS, _MAX_PATHS = 4, 6
#: A step may have this many captures that led to no replay, and one more for every so many replays: a capture costs
#: some ten times what a replay saves.
_MAX_CAPTURES, _REPLAYS_PER_CAPTURE = 32, 8
#: Why a call is recorded although it could be captured at another time.
_BUSY = "another thread was capturing a step"
#: Why two captures are not of the same step, in the words of the Rust side (`ltc-torch/src/step.rs`).
_ANOTHER_PATH = "the host computes in another way each time"
#: Why a call is recorded where the step replaces a container that somebody outside still holds.
_HELD = "somebody still holds what the step put another container in place of (a state that its last calls read)"
#: Why a call within a functorch transform is recorded: transforms have to see each operator.
_TRANSFORMED = "it is called within a transform (torch.func.grad, vmap, jvp)"
_transform_level = torch._C._functorch.maybe_current_level
#: How many different objects of one class may be keyed by identity (they cannot be taken apart) until a call with one
#: more of them is an obstacle.
_MAX_OPAQUE = 8
#: How many keys (structures and plain values of arguments) are kept per step.
_MAX_KEYS = 256
#: Every how many calls one that could be replayed is recorded and compared instead; 0: never.
_CHECK_EVERY = CHECK_EVERY
#: Seconds that a capture waits while another thread captures. With `LTC_CHECK_STEPS` some thread nearly always does, so
#: it is worth waiting; but not for ever, since the other thread may itself wait for this one.
_WAIT = 1.0 if _CHECK_EVERY else 0.0
_P = ParamSpec("_P")
_R = TypeVar("_R")


class StaleStep(RuntimeError):
    """A replay would not have done what the step does (found by ``LTC_CHECK_STEPS``)."""


class CompiledStep(Generic[_P, _R]):
    """A step function that is replayed where that is safe; see :func:`torch_ltc.compile`."""

    #: The step's own state is in slots. Its `__dict__` holds the attributes that programs give it, which the steps that
    #: read them watch like those of any other object.
    __slots__ = (
        *("_fn", "_replays", "_keys", "_last_key", "_classes", "_changing", "_reads", "_renewed", "_left_places"),
        *("_reads_decide", "sets_modes", "_masks", "_schedules", "_opaque_counts", "_is_part", "_recorded", "_checked"),
        *("_unknown_paths", "_captures", "_raised", "_last_change", "_refusal", "_until_check", "_ready_reads"),
        *("_known_ids", "__dict__", "__weakref__"),
    )
    #: See `CompiledModule`.
    is_of_programs = True

    def __init__(self, fn: Callable[_P, _R]) -> None:
        functools.update_wrapper(self, fn, updated=())
        note_registrations()
        # torch imports this when a profiler region is first named: a step within which it did so would be refused.
        getattr(torch.autograd.profiler, "_maybe_cupti_monitor", bool)()
        self._fn = fn
        #: The captures that calls are replayed from, and those that wait to be confirmed; kept by the Rust side.
        self._replays = _ltc.Replays()
        #: Short names of keys, by key; the oldest key is dropped first.
        self._keys: OrderedDict[Any, str] = OrderedDict()
        self._last_key = 0
        #: Call classes, by the number that the Rust side gave each.
        self._classes: dict[int, CallClass] = {}
        #: The numbers that differ from call to call, and where the step finds them.
        self._changing = ChangingNumbers()
        #: What the last call of any class read: the best guess for the first call of a new class.
        self._reads: Reads | None = None
        #: Places (dict, key) in which each call puts a new container, by the dict's identity and the key.
        self._renewed: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: Places in which calls leave tensors (`self.loss = loss`).
        self._left_places = LeftPlaces()
        #: Whether the step decides by numbers that it reads off the device, so that replays have to compare these.
        self._reads_decide = False
        #: Whether the step calls `train()` or `eval()` of modules that are in the other mode when it begins.
        self.sets_modes = False
        self._masks = Masks()
        #: The learning rate schedules that its calls were seen to step.
        self._schedules: list[Any] = []
        #: How many objects that could not be taken apart calls were given, by class.
        self._opaque_counts: dict[type, int] = {}
        #: Whether the step was called within another one that was being captured.
        self._is_part = False
        #: How many calls were recorded, and how many of these were compared with a replay and found the same.
        self._recorded = 0
        self._checked = 0
        #: How many compared calls in a row took a path that no capture took.
        self._unknown_paths = 0
        #: How many captures led to no replay.
        self._captures = 0
        #: How many calls that might have been captured raised an exception.
        self._raised = 0
        #: What had changed when a call was last found in another state than the one before, in words.
        self._last_change = ""
        self._refusal = ""
        #: How many calls are left until one is recorded and compared; 0 where none ever is.
        self._until_check = _CHECK_EVERY
        #: What the captures that calls are replayed from read.
        self._ready_reads: list[Reads] = []
        #: Identities of all objects that these captures watch. The watches keep the objects alive, so that no identity
        #: comes to mean another object.
        self._known_ids: set[int] = set()

    @past_dynamo
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Replays the step on these arguments, or records it. Within a step that is being captured, the function is
        simply called: it is a part of the outer step."""
        if getattr(capturing, "now", False):
            self._is_part = True
            return self._fn(*args, **kwargs)
        if why := _TRANSFORMED if _transform_level() is not None else sees_operators():
            return self._record(why, Call(args, kwargs, (), None, []))
        inputs: tuple[Any, ...] = args
        objects: Sequence[Any]
        arguments = None
        key = _ARITIES.get(len(args)) if not kwargs else None
        if key is None or not _ltc.are_bare(args):
            with torch._C.DisableTorchFunctionSubclass():  # tensor classes of the program are not to see this
                arguments, key = self._take_apart(args, kwargs)
                inputs = arguments.inputs() if not arguments.obstacle else ()
        objects = args if arguments is None else arguments.objects
        found_values: list[FoundValue] = []
        if self._left_places.places:
            found_values, states = self._left_places.find(inputs)
            key, objects = (
                self._intern_key((key, states))[0],
                (*objects, *[x for f in found_values for x in f.tensors]),
            )
            inputs = (*inputs, *[x for f in found_values for x in f.inputs])
        if not self._known_ids.isdisjoint(map(id, objects)):
            # The step's code may compare an argument with an object that it also reads (`x is self.last`). So a call
            # that is given such an object needs another capture than one that is given a new object.
            key = self._key_among_known(key, objects)
        if arguments is not None and arguments.obstacle:
            return self._record(arguments.obstacle, Call(args, kwargs, inputs, arguments, found_values))
        if arguments is None or not arguments.numbers:
            return self._replayed(key, args, kwargs, inputs, arguments, found_values)
        if not self._changing.lock.acquire(blocking=False):
            return self._record(_BUSY, Call(args, kwargs, inputs, arguments, found_values))
        try:
            self._changing.arguments.update(arguments.numbers)
            return self._replayed(key, args, kwargs, inputs, arguments, found_values)
        finally:
            self._changing.lock.release()

    def _replayed(
        self, key: str, args: Any, kwargs: Any, inputs: Any, arguments: Arguments | None, found_values: Any
    ) -> Any:
        """Replays the call if a capture fits, else records it; returns the step's result."""
        if self._until_check:
            self._until_check -= 1
            if not self._until_check:
                self._until_check = _CHECK_EVERY
                return self._record_and_compare(key, Call(args, kwargs, inputs, arguments, found_values))
        if self._renewed:
            if self._renewed_is_held():
                return self._record(_HELD, Call(args, kwargs, inputs, arguments, found_values))
            self._refusal = "" if self._refusal == _HELD else self._refusal
        hit = self._replays.replay(inputs, key)
        if hit is None:
            return self._miss(key, Call(args, kwargs, inputs, arguments, found_values))
        return_spec, results, returned = hit
        only: Any = results[0] if return_spec.is_single else return_spec.unflatten(inputs, results, returned)
        return only

    @overload
    def __get__(self, instance: None, owner: type) -> "CompiledStep[_P, _R]": ...
    @overload
    def __get__(self, instance: Any, owner: type) -> "CompiledStep[..., _R]": ...
    def __get__(self, instance: Any, owner: type) -> "CompiledStep[..., Any]":
        """Accessed as a method, each object has a compiled step of its own, which it keeps in its `__dict__`; a class
        has one for its class methods."""
        space: Any = getattr(instance, "__dict__", None)
        if instance is None or not hasattr(self._fn, "__get__"):
            return self
        method: Any = self._fn.__get__(instance, owner)
        if type(space) is not dict and not isinstance(instance, type):
            return CompiledStep(method)
        # No code can have this name by accident, and the step goes when the object goes.
        name = f"<compiled {self._fn.__qualname__}>"
        found = space.get(name)
        if type(found) is not CompiledStep or found._fn != method:
            found = CompiledStep(method)
            type.__setattr__(instance, name, found) if isinstance(instance, type) else space.__setitem__(name, found)
        return found

    def __reduce__(self) -> Any:
        """Copies and pickles of a step leave its captures behind."""
        return _made_again, (self._fn, self.__dict__)

    def _renewed_is_held(self) -> bool:
        """Whether somebody outside holds one of the containers that the step replaces by a new one. A replay leaves the
        container that is there, so whoever holds that would find it to be the same."""
        for holder, name in self._renewed.values():
            found = holder.get(name)
            # Three references are ours: the place itself, the variable here, and the argument of `getrefcount`.
            if isinstance(found, RENEWED) and sys.getrefcount(found) > 3:
                return True
        return False

    def _key_among_known(self, key: str, objects: Sequence[Any]) -> str:
        """A key that also says which of the arguments are objects that captures of this step watch, by position."""
        known = tuple([(i, id(x)) for i, x in enumerate(objects) if id(x) in self._known_ids])
        return self._intern_key((key, known))[0]

    def _intern_key(self, outside: Any) -> tuple[str, bool]:
        """A short name for a key (comparing it is part of every replay), and whether the key is new."""
        key = self._keys.get(outside)
        if key is not None:
            return key, False
        self._last_key += 1
        key = self._keys[outside] = f"k{self._last_key}"
        if len(self._keys) > _MAX_KEYS:
            self._keys.popitem(last=False)
        return key, True

    def _take_apart(self, args: Any, kwargs: Any) -> tuple[Arguments, str]:
        """The arguments of a call, taken apart, and their key. Begins anew if a float among them turns out to be one
        that changes from call to call, since the key then no longer holds its value."""
        arguments = Arguments(args, kwargs, self._changing.arguments)
        key, is_new = self._intern_key(arguments.key)
        if is_new and self._changing.note_arguments(arguments.plain):
            return self._take_apart(args, kwargs)
        if is_new:
            for x, why in arguments.opaque:
                self._opaque_counts[type(x)] = self._opaque_counts.get(type(x), 0) + 1
                if self._opaque_counts[type(x)] > _MAX_OPAQUE:
                    hint = f"dict({type(x).__name__})" if hasattr(x, "keys") else "the tensors in it"
                    arguments.obstacle = (
                        f"it is given another {type(x).__qualname__} at each call, and {why}: pass {hint}"
                    )
        return arguments, key

    def _record(self, why: str, call: Call) -> Any:
        """Calls the function without capturing it, sends what it recorded to run, and notes why."""
        self._refusal = why or self._refusal
        self._recorded += 1
        out = self._fn(*call.args, **call.kwargs)
        _ltc.mark_step(False)
        return out

    def _miss(self, key: str, call: Call) -> Any:
        """Handles a call that no capture fits: it is recorded, and captured if that may let later calls be replayed."""
        class_id, gone = self._replays.classify(call.inputs, key)
        self._classes.pop(gone, None)
        call_class = self._classes.setdefault(class_id, CallClass())
        if call_class.is_refused():
            return self._record(call_class.refusal, call)
        if not self._may_capture(call_class):
            why = (
                self._what_changes(call_class)
                or "what it is given or reads changes from call to call, or programs run in between"
            )
            return self._record(why, call)
        lock = _history.capture_lock
        if not lock.acquire(timeout=_WAIT):
            return self._record(_BUSY, call)
        try:
            return self._capture(class_id, call_class, call)
        finally:
            lock.release()

    def _may_capture(self, call_class: CallClass) -> bool:
        """Whether one more capture may be worth what it costs: captures of classes that came to be replayed are not
        counted, so that a step may be called with many kinds of inputs, if they come again."""
        return call_class.has_begun() or self._captures <= _MAX_CAPTURES + self.counts[0] // _REPLAYS_PER_CAPTURE

    def _what_changes(self, call_class: CallClass) -> str:
        """What differs from call to call so that captures are never confirmed, in words; empty where nothing is
        found."""
        reads = call_class.reads
        if reads is None:
            return (
                self._changing.why_not_lent(self._fn)
                or f"its calls differ in sizes or plain values ({len(self._classes)} kinds), and few come again: pad to"
                " a few sizes, and hand in tensors"
            )
        changes = reads.watch.changes()
        return f"{reads.places[changes[0]]} changes from call to call" if changes else ""

    def _earlier_captures(self, class_id: int, call_class: CallClass) -> list[EarlierCapture]:
        """The unconfirmed captures of this class for which everything they read is as it was. A capture that was
        replayed and no longer fitted is one of them: the call may confirm it again, or show what changed."""
        retired = self._replays.take_retired(class_id)
        if retired is not None:
            step, watch = retired
            reads = next((r for r in self._ready_reads if r.watch is watch), None)
            if reads is not None:
                call_class.captures.append(EarlierCapture(reads, step, None, 0))
        return [m for m in call_class.captures if m.reads.watch.check()]

    def _note_changed_numbers(self, reads: Reads) -> None:
        """Notes the places of floats that have changed since the last call: replays are to read them."""
        for index in reads.watch.changes():
            place = reads.places[index]
            pairs = reads.watch.expected_pairs(index) if place.kind == "dict" else []
            if place.kind == "entry":
                pairs = [(place.name, reads.watch.expected(index))]
            for name, then in pairs:
                now = place.holder.get(name)
                if then is not now and len(floats(then)) == len(floats(now)) > 0:
                    self._changing.add(place.holder, name)
        for holder, before in reads.settings:
            for name in [name for name, was in before.items() if floats(now := holder.get(name)) and now != was]:
                self._changing.add(holder, name)

    def _capture(self, class_id: int, call_class: CallClass, call: Call) -> Any:
        """Records a call under survey, captures it where an earlier call tells what it reads, and compares the capture
        with an earlier one. Returns the call's result."""
        self._captures += 1
        self._recorded += 1
        if call_class.tries is not None:
            call_class.tries += 1
        found = self._earlier_captures(class_id, call_class)
        if not found and call_class.reads is not None:
            self._note_changed_numbers(call_class.reads)
            self._last_change = self._what_changes(call_class)
        before = found[0].reads if found else call_class.reads or self._reads
        run = Run(self, call, before, found, call_class.has_history, call_class.double_backward)
        self._raised += 1
        out = run.call()
        self._raised -= 1
        call_class.has_history = run.has_history
        call_class.reads = self._reads = run.reads or before
        if run.obstacle:
            self._refusal = call_class.refuse(run.obstacle)
            if not call_class.pause:
                self._changing.tell_apart(call.numbers, run.obstacle)
        elif self._confirm(class_id, call_class, found, run):
            out = run.result_as_replayed() if run.backward is not None else out
        else:
            run.watch_for_double_backward()
        _ltc.mark_step(False)
        return out

    def _difference(self, run: Run, earlier: EarlierCapture) -> str:
        """Why a new capture is not of the same step as an earlier one; empty where it is."""
        return self._describe_difference(self._replays.confirm(run.step, earlier.step), run, earlier.program)

    def _describe_difference(self, why: str, run: Run, program: HostProgram | None) -> str:
        """Adds to a reason the line of the user's program where the host parts of two captures differ, if they do."""
        if why == _ANOTHER_PATH and run.program is not None and program is not None:
            why += run.program.where_differs(program)
        return why

    def _confirm(self, class_id: int, call_class: CallClass, found: list[EarlierCapture], run: Run) -> bool:
        """Whether a new capture turned out to be of the same step as an earlier one. Then calls are replayed from it
        from here on; otherwise it is kept, so that the next capture can be compared with it. `found` are the earlier
        captures that could confirm it."""
        assert run.reads is not None
        earlier = run.matching
        if earlier is not None and earlier in call_class.captures:
            call_class.captures.remove(earlier)
        new = earlier.reads.first_unwatched(run.reads) if earlier is not None else "something"
        reads = earlier.reads if not new and earlier is not None else run.reads
        why, attempts = "", 0
        if run.step:
            if earlier is not None and earlier.step:
                why = self._difference(run, earlier) or earlier.gives_otherwise(run)
                # A number that may change has to have been lent to both captures: else its value is a constant in one.
                is_read = reads.changing_keys <= run.lent_keys & earlier.lent_keys
                if not why and not new and run.effects_known and is_read:
                    return self._make_ready(class_id, call_class, reads, run)
                reads = reads if is_read else run.reads
            elif found and earlier is None:
                why = "it reads a value that changes from call to call"
            attempts = max([m.attempts for m in (found if earlier is None else [earlier])], default=-1) + 1
            if attempts >= (_MAX_PATHS if earlier is None else _MAX_ATTEMPTS):
                if earlier is None and found[0].step:
                    why = self._difference(run, found[0]) or why
                self._refusal = call_class.refusal = why or f"each call reads {new}, which the one before did not"
                self._replays.forget(run.step)
                self._changing.tell_apart(run.numbers, call_class.refusal)
                return False
        call_class.captures.insert(0, EarlierCapture(reads, run.step, run.program, attempts, run))
        for old in call_class.captures[8:]:
            self._replays.forget(old.step)
        del call_class.captures[8:]
        return False

    def _make_ready(self, class_id: int, call_class: CallClass, reads: Reads, run: Run) -> bool:
        """Hands a confirmed capture to the Rust side, which replays calls of this class from here on. Returns whether
        that was possible."""
        why = run.attach_backward()
        if why == INTERRUPTED:
            call_class.captures.insert(0, EarlierCapture(reads, run.step, run.program, 0, run))
            return False
        if why:
            self._refusal = call_class.refusal = why
            self._replays.forget(run.step)
            return False
        self._refusal = "" if self._refusal in (_BUSY, call_class.last_refusal) else self._refusal
        self._captures -= call_class.tries or 0
        call_class.tries = None
        self._unknown_paths = 0
        for other in call_class.captures:  # paths that the step takes now and then
            other.attempts = 0
        reads.backward, reads.program, reads.lent_places = run.backward, run.program, run.lent_places
        reads.left_places = run.return_spec.left_places if run.return_spec is not None else []
        reads.return_spec = run.return_spec
        self._ready_reads.append(reads)
        # An argument that this capture also found elsewhere has to be the same object in each replay, which Rust
        # compares; so it needs no key of its own.
        reads.ids = reads.known() - {id(x) for _, x in run.elsewhere}
        self._replays.ready(
            class_id,
            run.step,
            reads.watch,
            run.program,
            run.grads,
            run.written,
            run.freed_histories,
            run.return_spec,
            run.elsewhere,
            run.shares,
        )
        # The Rust side may have dropped old captures: what only they watched is let go.
        kept = set(map(id, self._replays.watches()))
        self._ready_reads = [r for r in self._ready_reads if id(r.watch) in kept]
        self._known_ids = set().union(*[r.ids for r in self._ready_reads])
        return True

    def _record_and_compare(self, key: str, call: Call) -> Any:
        """Records a call although it could be replayed, and compares it with what the replay would have done (for
        `LTC_CHECK_STEPS`)."""
        fitting = self._replays.fitting(call.inputs, key)
        known = [(r, return_spec) for watch, return_spec in fitting for r in self._ready_reads if r.watch is watch]
        if not known or self._unknown_paths >= _MAX_UNKNOWN_PATHS:
            return self._miss(key, call)
        lock = _history.capture_lock
        if not lock.acquire(timeout=_WAIT):
            return self._record(_BUSY, call)
        try:
            return self._compare(known, call)
        finally:
            lock.release()

    def _compare(self, known: list[tuple[Reads, ReturnSpec]], call: Call) -> Any:
        """Records a call and compares it with the captures that fit it; raises :class:`StaleStep` where it differs from
        the one that would have been replayed."""
        known = [(reads, return_spec) for reads, return_spec in known if reads.is_as_known_to(known[0][0])]
        self._recorded += 1
        earlier = [EarlierCapture(reads, 0, None, 0) for reads, _ in known]
        reads, return_spec = known[0]
        run = Run(self, call, reads, earlier, return_spec.has_backward, reads.double_backward, compares=True)
        out = run.call()
        run.watch_for_double_backward()
        _ltc.mark_step(False)
        if self._masks.missed or (run.is_captured and run.matched is None):
            # The call took another path than each of these captures, so none of them would have been replayed.
            self._unknown_paths += 1
            return out
        reads, return_spec = known[run.matched or 0]
        why = run.obstacle or self._describe_difference(run.difference, run, reads.program)
        if not why and run.return_spec is not None and not run.return_spec.is_same_as(return_spec):
            why = "it returns something else"
        if not why and run.reads is not None and (new := reads.first_unwatched(run.reads)):
            why = f"it reads {new}, which it did not when it was captured"
        if not why:
            # If the capture was interrupted, nothing was compared.
            self._checked += bool(run.step)
            self._unknown_paths = 0
            return out
        raise StaleStep(f"a replay of {self._fn!r} would not have been the step: {why}")

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)``: how many calls were replayed and recorded so far. A call that ``LTC_CHECK_STEPS``
        recorded in place of a replay, and that was found to be the same, counts as replayed."""
        return self._replays.replayed() + self._checked, self._recorded - self._checked

    @property
    def backward_counts(self) -> tuple[int, int]:
        """``(replayed, recorded)``: how many backward passes through results of replays were replayed and recorded so
        far, of the captures that are still kept."""
        ways = [w for r in self._ready_reads if (w := r.backward) is not None]
        return sum(w.counts[0] for w in ways), sum(w.counts[1] for w in ways)

    @property
    def refusal(self) -> str:
        """Why the step is not replayed; an empty string when it is, or when it was not tried yet."""
        return self._refusal or ("" if self.counts[0] else self._changing.why_not_lent(self._fn))

    def _why_not_yet(self) -> str:
        """Why nothing was replayed so far although nothing speaks against it; empty where something was."""
        replayed, recorded = self.counts
        if replayed:
            return ""
        if not recorded:
            return "its calls are part of another step" if self._is_part else "it was not called yet"
        if len(self._classes) > 1 and recorded > 3:
            return "what it is given (shapes, values, kinds of objects) was not the same for three calls in one state"
        if self._raised == recorded:
            return "each call raised an exception"
        if self._last_change and recorded > 3:
            return self._last_change
        return "three calls in one state are recorded first"

    def explain(self) -> str:
        """One line: how many calls were replayed and recorded, and why the step is not replayed, if it is not."""
        replayed, recorded = self.counts
        why = f"; {why}" if (why := self.refusal or self._why_not_yet()) else ""
        checked = f" ({self._checked} of them recorded and compared)" if self._checked else ""
        return f"{replayed} calls replayed{checked}, {recorded} recorded{why}"


def _made_again(fn: Any, attributes: dict[str, Any]) -> CompiledStep[..., Any]:
    """A copied or unpickled step: the function, and the attributes that programs gave the step."""
    step = CompiledStep(fn)
    step.__dict__.update(attributes)
    return step


#: Keys of calls whose arguments are tensors on the device and nothing else, by how many there are.
_ARITIES = {n: str(n) for n in range(64)}
