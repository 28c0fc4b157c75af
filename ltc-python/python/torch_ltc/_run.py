"""One recorded call of a compiled step that is observed, and captured where that is possible.

A :class:`Run` makes the call (:meth:`Run.call`) while a survey notes what its Python code reads, a host recorder notes
what it computes on the host, and, if results have an autograd history, hooks note what autograd saves. Afterwards it
examines what the call did: results, gradients, in-place writes, places that it changed. What no replay could repeat is
an `obstacle`, with which `_step.py` refuses the step. Otherwise the run has the capture's number and everything that a
replay has to do besides running the program; `_step.py` decides what becomes of it.
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._again import KnownSchedules
from torch_ltc._arguments import Arguments
from torch_ltc._awaited import AwaitedNumbers, KeptReads
from torch_ltc._changed_places import RENEWED, ChangedPlaces
from torch_ltc._compiling import is_compiling, noted_in, seen_draws
from torch_ltc._flows import are_kept
from torch_ltc._given import GivenTensors
from torch_ltc._history import Backward, DoubleBackward, SavedTensors, storage_of
from torch_ltc._host import HostRecorder
from torch_ltc._host_program import HostProgram
from torch_ltc._left_places import FoundValue, LeftPlaces, is_state, kind_of
from torch_ltc._reads import EarlierCapture, Reads
from torch_ltc._refusals import BY_HOOKS, OUTSIDE, with_advice
from torch_ltc._results import (
    KnownStorages,
    LeftResult,
    ReturnedContainers,
    ReturnedLeaves,
    ReturnSpec,
    check_aliases,
    not_rebuilt,
    note_aliases,
)
from torch_ltc._runtime import as_program, is_dense, is_leaf, on_device
from torch_ltc._survey import Survey
from torch_ltc._traced import TracedFloat, TracedInt, plain

if TYPE_CHECKING:
    from torch_ltc._step import CompiledStep


def _version(x: torch.Tensor) -> int:
    """A tensor's version counter; inference tensors have none."""
    return 0 if x.is_inference() else x._version


def _forget_casts() -> None:
    """Empties autocast's cache of casted parameters. A captured step has to cast parameters itself, as its replays do:
    casts from before it must not be read, and its own must not stay for later calls."""
    if torch.is_autocast_enabled("ltc"):
        torch.clear_autocast_cache()


class Call(NamedTuple):
    """One call's arguments, and the inputs that follow from them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: The inputs of a capture or replay: the tensors among the arguments (of CPU tensors, their copies on the device),
    #: and then the tensors that the call finds where earlier calls left some.
    inputs: tuple[torch.Tensor, ...]
    #: The arguments taken apart; `None` where they are tensors on the device and nothing else.
    arguments: Arguments | None
    #: What the call finds in the places in which earlier calls left tensors.
    found: list[FoundValue]

    def copies(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The CPU tensors among the arguments, each with its copy on the device."""
        own = self.arguments.tensors if self.arguments is not None else self.inputs
        return [(x, copy) for x, copy in zip(own, self.inputs) if x is not copy]

    def is_changed(self) -> bool:
        """Whether the step changed what its arguments contain (entries of a dict, attributes of an object)."""
        given = self.arguments
        return given is not None and not given.is_like(Arguments(self.args, self.kwargs, given.numbers))

    @property
    def numbers(self) -> dict[Any, float]:
        """The floats among the arguments that are known to change from call to call, by position or name."""
        return self.arguments.numbers if self.arguments is not None else {}

    def call_with(self, fn: Callable[..., Any], lent: dict[Any, float]) -> Any:
        """Calls the function and returns its result. In place of the floats that change it is given those in `lent`,
        which remember what becomes of them."""
        if self.arguments is None or not self.arguments.numbers:
            return fn(*self.args, **self.kwargs)
        args, kwargs = self.arguments.with_lent(self.args, self.kwargs, lent)
        return fn(*args, **kwargs)


class Run:
    """One recorded call, with what it read, changed and returned.

    `before` is what an earlier call read, if there was one: only then is the call captured. `earlier` are the captures
    that this one might confirm. `saves`: results of the last call had a history. `compares`: the call could have been
    replayed from the `earlier` captures, and is to be compared with them (`LTC_CHECK_STEPS`).
    """

    def __init__(
        self,
        step: "CompiledStep[..., Any]",
        call: Call,
        before: Reads | None,
        earlier: list[EarlierCapture],
        saves: bool,
        double_backward: DoubleBackward,
        compares: bool = False,
    ) -> None:
        self._double_backward = double_backward
        #: The `grad_fn` of each result that has a history.
        self._last_nodes: list[Any] = []
        self._owner, self._call, self._before, self._earlier = step, call, before, earlier
        self.numbers = call.numbers
        self._inputs = call.inputs
        #: The earlier capture that took the same path (the host read and decided the same), if there is one.
        self.matching: EarlierCapture | None = None
        #: Whether the call is compared with captures that could have been replayed. It is then made with what was known
        #: of the step when those were made. The position of the one that took the same path, and how this call differs
        #: from it; `None` where each took another path.
        self._is_compared = compares
        self.matched: int | None = None
        self.difference = ""
        #: Whether a capture was ended, also where it then turned out to be unusable.
        self.is_captured = False
        #: Inputs that the step also finds in a place outside its arguments, with their positions.
        self.elsewhere: list[tuple[int, torch.Tensor]] = []
        #: Positions of inputs that share a storage with a tensor which is older than the step, and these tensors.
        self.shares: tuple[list[int], list[torch.Tensor]] = ([], [])
        #: Why the step is refused; empty where nothing speaks against replaying it.
        self.obstacle = ""
        self.reads: Reads | None = None
        self.return_spec: ReturnSpec | None = None
        #: What a replay has to do on the host; `None` where that is nothing.
        self.program: HostProgram | None = None
        #: The number of the capture, for `_ltc.Replays`; 0 where there is none.
        self.step = 0
        #: Leaves whose gradients are inputs, leaves whose gradients are set to results, and leaves whose gradients
        #: become `None`; each as a tensor, or as the position of an input. Last, how often each gradient that is a
        #: result was written in place.
        self.grads: tuple[list[Any], list[Any], list[Any], list[int]] = ([], [], [], [])
        #: Tensors that are written in place; how often each; and inputs that are, with their positions and how often.
        self.written: tuple[list[Any], list[int], list[tuple[int, int]]] = ([], [], [])
        #: Results whose history was freed by a backward pass within the step: the position, the name of its node, and
        #: the error that going through it again raises.
        self.freed_histories: list[tuple[int, str, str]] = []
        #: Whether it was found out what the call changed besides its results.
        self.effects_known = False
        #: Whether gradients flow through results, and the backward pass through them, where what autograd saved was
        #: noted.
        self.has_history = False
        self.backward: Backward | None = None
        self._saves_for_backward = saves
        changing = step._changing
        to_lend = (
            [*before.to_lend(changing), *[(changing.arguments, name) for name in call.numbers]]
            if before is not None
            else []
        )
        #: The places of numbers that are replaced by traced ones during the call, as ``(dict, key)`` and as
        #: ``(id(dict), key)``.
        if compares and before is not None:
            to_lend = before.lent_places
        self.lent_places, self.lent_keys = to_lend, frozenset((id(holder), name) for holder, name in to_lend)
        #: The containers in the places that the step reads, as they were before the call: it may replace them.
        self._old_containers: dict[tuple[int, Any], Any] = {}
        #: Settings of optimisers that a schedule turned out to set: the next capture takes them for changing numbers.
        self._moved_settings: list[tuple[dict[Any, Any], Any]] = []
        self._saved_tensors: SavedTensors | None = None
        self._results: list[torch.Tensor] = []
        #: Numbers that the step returns: those that the host computes, and those that it reads off the device.
        self._returned_numbers: list[float] = []
        self._read_numbers: list[float] = []

    def call(self) -> Any:
        """Calls the step under observation, finds out what it did, and returns its result."""
        asks_classes = torch._C._is_torch_function_enabled()
        with torch._C.DisableTorchFunctionSubclass():  # tensor classes of the program see its own calls alone
            return self._observe(asks_classes)

    def _observe(self, asks_classes: bool) -> Any:
        """As :meth:`call`; the program's own code runs as it did before where tensor classes are concerned."""
        owner, before, call = self._owner, self._before, self._call
        captures = before is not None
        leaves = [*(before.leaves() if before else []), *[x for x in self._inputs if is_leaf(x) and x.requires_grad]]
        if before is not None:
            before.watch.refresh()
        for earlier in self._earlier:
            earlier.reads.watch.expect_versions()
        for place in self._earlier[0].reads.places if self._earlier else ():
            if place.kind == "entry" and type(place.holder.get(place.name)) in RENEWED:
                self._old_containers[id(place.holder), place.name] = place.holder[place.name]
        leaves = list({id(t): t for t in leaves}.values())
        grads_before = [(t, t.grad) for t in leaves]
        grads = [g for _, g in grads_before if g is not None]
        capture_inputs = (*self._inputs, *grads)
        copies = call.copies()
        versions = [(x, _version(x)) for x in capture_inputs]
        self.given = GivenTensors(self._inputs)
        if captures and self._saves_for_backward:
            self._saved_tensors = SavedTensors(list({id(t): t for t in self._history_starts(before)}.values()))
        ambient = _ltc.Ambient()
        recorder = HostRecorder(copies, self.lent_places, owner._changing.arguments)
        call_objects = [*(call.arguments.objects if call.arguments is not None else ()), *capture_inputs]
        call_objects += [x for f in call.found if f.tensors for x in (f.value, *f.tensors)]
        sets_modes = self._earlier[0].reads.sets_modes if self._is_compared else owner.sets_modes
        survey = Survey(call_objects, owner._renewed.values(), recorder.note_repeatable, call.found, sets_modes)
        self._connect(survey, recorder)
        if self._is_compared:
            survey.only_set.left_before = frozenset(
                p[:2] for m in self._earlier for p in m.left_places if type(p) is tuple
            )
        if captures:
            _forget_casts()
        try:
            captures = captures and owner._replays.begin(self._inputs)
            recorder.awaited = AwaitedNumbers() if captures and not owner._reads_decide else None
            saves = self._saved_tensors or contextlib.nullcontext()
            with as_program(asks_classes), saves, is_compiling(), recorder, survey:
                survey.look_at_step(owner._fn)
                out = call.call_with(owner._fn, owner._changing.arguments)
            if captures:
                _forget_casts()
            if what := self.given.changed():
                self.obstacle = f"it changes {what}"
            survey.untracked.note_result(out)
            self._examine_arguments(survey, copies, grads)
            self._examine(survey, recorder, out, ambient, grads_before, capture_inputs, versions, captures)
            recorder.release_numbers()
            owner._masks.work_out()
        except BaseException as e:
            owner._replays.abort()
            recorder.release_numbers()
            if any(plain(x) is not x for x in e.args):
                e.args = tuple(map(plain, e.args))
            raise
        finally:
            survey.close()
        return self._plain_result(out)

    def _connect(self, survey: Survey, recorder: HostRecorder) -> None:
        """Has the survey and the recorder tell each other what they see."""
        recorder.masks = self._owner._masks
        recorder.known_schedules = KnownSchedules(self._owner._schedules)
        recorder.is_older, recorder.is_met = survey.is_older, survey.handlers.meet
        recorder.on_kept = survey.note_own
        recorder.is_given = lambda x: any(x is y for y in self._inputs)
        own = self._call.arguments.objects if self._call.arguments is not None else []
        survey.is_given = lambda x: any(x is y for y in (*own, *self._inputs))
        survey.on_float_call, survey.on_kind_check = recorder.guard_held_numbers, recorder.guard_asked
        survey.on_going_back = lambda: self.given.note_going_back(survey.older_tensors())
        survey.on_program_frame = recorder.activate_within
        survey.on_class_check, survey.on_refusal = recorder.make_plain_within, recorder.end_tracing

    def _examine_arguments(self, survey: Survey, copies: Any, grads: list[torch.Tensor]) -> None:
        """Notes which arguments the step also finds in other places, or through shared storages; refuses what it did
        to them that replays cannot do."""
        call = self._call
        for x in grads if call.arguments is None else [*call.arguments.opened, *[x for x, _ in copies], *grads]:
            holder = survey.elsewhere.get(id(x))
            if holder:
                what = "a gradient" if any(x is g for g in grads) else "an argument"
                self.obstacle = self.obstacle or f"it finds {what} in {holder}, too"
        self.elsewhere = [(i, x) for i, x in enumerate(self._inputs) if id(x) in survey.elsewhere]
        older = {storage_of(t): t for t in survey.older_tensors() if is_dense(t)}
        shared = [(i, older[storage_of(x)]) for i, x in enumerate(self._inputs) if storage_of(x) in older]
        self.shares = ([i for i, _ in shared], [t for _, t in shared])
        if not self.obstacle and call.is_changed():
            self.obstacle = "it changes what is in an argument: hand in a copy, dict(batch)"

    def _made_outside(self) -> str:
        """Where the step finds a tensor whose history begins outside of it and could be differentiated, with what to do
        about it, in words; empty where it finds none."""
        assert self.reads is not None
        for x in [*self.reads.watch.tensors(), *self._inputs]:
            if self.given.begins_outside(x):
                return f", {self.reads.where_is(x)}: detach() it"
        return ""

    def _history_starts(self, before: Reads | None) -> list[torch.Tensor]:
        """The tensors at which an autograd history within the step may begin: inputs, and leaves that it reads."""
        leaves = [t for t in before.watch.tensors() if is_leaf(t)] if before else []
        if any(t.requires_grad and t.is_inference() for t in [*self._inputs, *leaves]):
            self.obstacle = self.obstacle or "it takes gradients of a tensor that was made in inference mode"
            return []
        return [t for t in [*self._inputs, *leaves] if on_device(t) and t.requires_grad]

    def _plain_result(self, out: Any) -> Any:
        """The result for the caller, with plain numbers in place of traced ones."""
        flat, spec = pytree.tree_flatten(out, is_leaf=lambda x: type(x) is torch.Size)
        if any(plain(x) is not x or noted_in(x)[1] for x in flat):
            return pytree.tree_unflatten([seen_draws(plain(x)) for x in flat], spec)
        return out

    def _refuse(self, why: str, captures: bool) -> None:
        """Notes an obstacle, and ends the capture in progress, if there is one."""
        self.obstacle = self.obstacle or why
        if captures:
            self._owner._replays.abort()

    def _examine(
        self,
        survey: Survey,
        recorder: HostRecorder,
        out: Any,
        ambient: _ltc.Ambient,
        grads_before: Any,
        capture_inputs: Any,
        versions: Any,
        captures: bool,
    ) -> None:
        """Finds out what the call did, and ends its capture. `grads_before`: the leaves with the gradients that they
        had; `versions`: inputs and these gradients with their version counters before the call."""
        owner = self._owner
        self._moved_settings = [(h, name) for h, name in recorder.moved if (id(h), name) not in owner._changing.places]
        for holder, name in self._moved_settings:
            owner._changing.add(holder, name)
        for x in filter(survey.is_older, recorder.gradients):
            survey.note_place("slot", x, torch._C.TensorBase.grad)
        self.reads = Reads(survey, owner._changing, self._call.found, self._double_backward, self._call.numbers)
        self.reads.watch.expect_grads([(t, g is not None) for t, g in grads_before])
        owner._schedules += recorder.new_schedules
        if recorder.new_schedules and captures:
            # The next capture knows how they are when it begins.
            return owner._replays.abort()
        if recorder.awaited is not None and not self._are_kept(survey, recorder):
            recorder.awaited.decides = True
        if recorder.awaited is not None and recorder.awaited.decides:
            # The next capture has its reads compared by replays instead.
            owner._reads_decide = True
            return owner._replays.abort()
        unseen = recorder.unseen(survey.on_host.values(), survey.is_scripted)
        why: str | None = self.obstacle or survey.obstacle or recorder.obstacle or unseen
        if not why and (out_of_sight := survey.unknown(recorder.operands.values())) is not None:
            why = f"it uses a tensor of shape {list(out_of_sight.shape)}, and it cannot be told where it finds that"
        recorder.operands.clear()
        for holder, name in self.lent_places:
            is_whole = type(plain(holder.get(name))) is int
            if is_whole and not survey.readers.only_counts(holder, name, lambda *place: place in self.lent_keys):
                owner._changing.note_uncounted(holder, name)
                why = why or f"it does not only count with {name}"
        if not why and ambient.changed():
            why = f"it changes {ambient.changed()}"
        if not why and _ltc.gather_by_python([*self.reads.watch.tensors(), *self._inputs]):
            why = "the node that adds up a gradient (AccumulateGrad) has hooks"
        if not why and _ltc.any_is_dual(self._inputs):
            why = (
                "it is given a tensor with a tangent (forward_ad.make_dual), through which replays do not differentiate"
            )
        outside = self._made_outside()
        if outside and survey.uses_grads and (survey.goes_back or torch.is_grad_enabled()):
            why = why or OUTSIDE
        results, with_history, why = self._examine_results(out, survey, recorder, grads_before, why)
        (gets_grad, loses_grad), why = self._examine_grads(grads_before, results, survey, why)
        if with_history and survey.saves_by_hooks:
            why = why or BY_HOOKS
        if with_history and not why:
            why = self._examine_history(with_history, results, survey, recorder, bool(gets_grad or loses_grad))
        self.matching = self._earlier[0] if self._earlier else None
        if not why and not captures:
            why = self._examine_effects(versions, survey) or survey.said_of_age()
        if why:
            return self._refuse(why + (outside if why == OUTSIDE else ""), captures)
        if not captures:
            return
        if self.has_history and self.backward is None:
            # This call was not prepared for a history: the next capture also notes what autograd saves.
            return owner._replays.abort()
        self.program, self._returned_numbers = recorder.program(), recorder.returned
        parts = (self.program, self.return_spec.late if self.return_spec is not None else None)
        identity = "".join(part.identity for part in parts if part is not None)
        # By now the survey holds no tensor that the step dropped: one that somebody holds would become an output.
        self._results = results
        if self.return_spec is not None:
            self.return_spec.note_versions(results)
        capture_inputs = (*capture_inputs, *recorder.take_uploaded())
        self.step, why = owner._replays.end(capture_inputs, tuple(results), identity, recorder.handed)
        del capture_inputs
        self.is_captured = bool(self.step)
        if self.step:
            # What the host read and decided tells which path the call took.
            self.matching = self._replay_on_same_path() if self._is_compared else self._capture_on_same_path()
        why = why or self._examine_effects(versions, survey) or survey.said_of_age()
        if why:
            self.obstacle = with_advice(why)
            owner._replays.forget(self.step)
            self.step = 0

    def _are_kept(self, survey: Survey, recorder: HostRecorder) -> bool:
        """Whether the step only counts with the whole numbers that it read off the device (`_flows.py`)."""

        def only_counts(holder: dict[Any, Any], name: Any) -> bool:
            # Where a traced number stays, the next capture is lent one, and has what is divided by it traced, too.
            stays = type(holder.get(name)) in (TracedInt, TracedFloat)
            return survey.readers.only_counts(holder, name, lambda *place: stays or place in self.lent_keys)

        def readers(holder: dict[Any, Any], name: Any) -> set[Any]:
            return survey.readers.of(holder, name) if id(holder) not in survey.readers.whole else set()

        return are_kept(recorder.kept_in, self.lent_keys, only_counts, readers)

    def _capture_on_same_path(self) -> EarlierCapture | None:
        """The earlier capture that took the same path as this one, if there is one."""
        same_path = self._owner._replays.same_path
        return next((m for m in self._earlier if not m.step or same_path(self.step, m.step)), None)

    def _replay_on_same_path(self) -> EarlierCapture | None:
        """The capture that would have been replayed in place of this call, if there is one; notes how they differ."""
        found = self._owner._replays.differs(self.step, [m.reads.watch for m in self._earlier])
        self.matched, self.difference = found or (None, "")
        return self._earlier[self.matched] if self.matched is not None else None

    def _examine_results(
        self, out: Any, survey: Survey, recorder: HostRecorder, grads_before: Any, why: str | None
    ) -> tuple[list[Any], list[int], str | None]:
        """Notes what the call returned and left in places. Returns its new tensors, which the program has to compute,
        the positions of those with a history among them, and why no replay can return this, if none can."""
        kept = recorder.awaited.kept if recorder.awaited is not None else KeptReads()
        given = self._call.arguments.opened if self._call.arguments is not None else []
        is_read = lambda x: kept.how(x) is not None
        containers = ReturnedContainers(given, survey.is_older, survey.is_held, is_read)
        flat, spec = pytree.tree_flatten(out, is_leaf=containers.end_at)
        if other := not_rebuilt(out, spec, flat):
            why = why or f"it returns a {other}, of which a replay would make something else"
        left_results, parts, said = self._left_results(survey, containers)
        flat, why = flat + parts, why or said
        older_containers = containers.close()
        why = why or containers.obstacle
        copies = {id(copy) for _, copy in self._call.copies()}
        memory = KnownStorages(self._inputs, self.reads.watch.tensors() if self.reads else (), copies)
        leaves = ReturnedLeaves(self._inputs, grads_before, recorder, kept, memory, survey.is_older)
        leaves.sort(flat, older_containers)
        tensors, results, why = leaves.tensors, leaves.results, why or leaves.obstacle
        self.freed_histories += leaves.freed_histories
        why = why or note_aliases(tensors, results)
        why = why or check_aliases(tensors, results, self._inputs, [t.grad for t, _ in grads_before])
        late = recorder.late(len(results))
        if recorder.awaited is not None:
            numbers = recorder.awaited.take()
            results += numbers if late is not None else []
            self._read_numbers = [value for _, value in recorder.awaited.returned]
        first_read, tensors_read = len(results), kept.take()
        results += tensors_read if leaves.read else []
        self.return_spec = ReturnSpec(spec, leaves, left_results, late, first_read)
        return results, leaves.with_history, why

    def _left_results(self, survey: Survey, containers: ReturnedContainers) -> tuple[list[LeftResult], list[Any], str]:
        """What the call left in places and appended to lists: the places, the leaves of what is left there, flattened,
        and why no replay can leave it (empty where one can)."""
        found = [f for f in self._call.found if f.is_other]
        other = [f for f in found if not (LeftPlaces.accepts(f.current) or is_state(f.current))]
        why = (
            f"it puts {kind_of(other[0].current)} in the place of {kind_of(other[0].value)} ({other[0].name})"
            if other
            else ""
        )
        appended = [(xs, i - len(new), x) for xs, new in survey.appended() for i, x in enumerate(new)]
        left_results: list[LeftResult] = []
        flat: list[Any] = []
        put = [(holder, name, holder.get(name)) for holder, name in survey.only_set.places.values()]
        left: list[tuple[Any, Any, Any]] = [*[(f.holder, f.name, f.current) for f in found], *put, *appended]
        for holder, name, x in left:
            parts, spec = pytree.tree_flatten(x, is_leaf=containers.end_at)
            if unlike := not_rebuilt(x, spec, parts):
                why = why or f"it leaves a {unlike}, of which a replay would make something else"
            if isinstance(holder, dict):
                at = [*holder].index(name) if name in holder else 0
                left_results.append(LeftResult(holder, name, spec, at))
            else:
                left_results.append(LeftResult(holder, None, spec, name))
            flat += parts
        return left_results, flat, why or survey.obstacle

    def _examine_grads(
        self, grads_before: Any, results: list[Any], survey: Survey, why: str | None
    ) -> tuple[tuple[list[Any], list[Any]], str | None]:
        """Notes which leaves' gradients the call set, which become results, and which it set to `None`. Returns both
        lists, and why no replay can do this, if none can."""
        gets_grad, loses_grad, writes = [], [], []
        position = {id(x): i for i, x in enumerate(self._inputs)}
        for t, grad in grads_before:
            now = t.grad
            if now is grad:
                continue
            place = position.get(id(t), t)
            if now is None:
                loses_grad.append(place)
            elif id(now) in position or survey.is_older(now):
                why = why or "it puts a tensor that is older than the step into `grad`"
            elif not on_device(now) or now.requires_grad:
                why = why or "it leaves a gradient with history"
            elif now.layout is not torch.strided:
                why = why or f"it leaves a sparse gradient ({now.layout})"
            else:
                gets_grad.append(place)
                results.append(now)
                writes.append(_version(now))
        with_grad = [position.get(id(t), t) for t, g in grads_before if g is not None]
        self.grads = (with_grad, gets_grad, loses_grad, writes)
        return (gets_grad, loses_grad), why

    def _examine_history(
        self,
        with_history: list[int],
        results: list[torch.Tensor],
        survey: Survey,
        recorder: HostRecorder,
        leaves_grads: bool,
    ) -> str:
        """Finds out how gradients flow through the results at the positions `with_history`; returns why they could not
        flow through a replay's results, or an empty string."""
        if survey.uses_grads or leaves_grads:
            return (
                "it returns a tensor with history and deals with gradients itself: "
                "return tensor.detach() where none is wanted"
            )
        if recorder.handed:
            return "gradients flow through numbers that the host computes"
        self.has_history = True
        self._last_nodes = [results[i].grad_fn for i in with_history]
        if (
            self._saved_tensors is None
            or self.reads is None
            or not self._saved_tensors.begins_at(self._history_starts(self.reads))
        ):
            return ""
        backward = self._saved_tensors.backward(
            self._inputs, self.reads.watch.tensors(), results, with_history, survey.is_older
        )
        if isinstance(backward, str):
            return backward
        self.backward = backward
        return ""

    def attach_backward(self) -> str:
        """Has gradients flow through the results of replays, and of this call, by the captured history; returns why
        they cannot, or an empty string."""
        if self.backward is None or self.return_spec is None:
            return ""
        why = self.backward.prove(self._inputs, self._results, self._double_backward)
        if not why:
            self.return_spec.attach_backward(self.backward)
        return why

    def watch_for_double_backward(self) -> None:
        """Notices it if somebody differentiates the gradients of this call again; the call stays recorded."""
        for node in self._last_nodes:
            node.register_prehook(self._double_backward)
        self._last_nodes = []

    def result_as_replayed(self) -> Any:
        """The call's result with the history that a replay would give it: the capture took the call's own."""
        assert self.return_spec is not None
        results = _ltc.without_history(self._results, self.freed_histories)
        return self.return_spec.unflatten(self._inputs, results, self._returned_numbers, self._read_numbers)

    def _examine_effects(self, versions: list[tuple[torch.Tensor, int]], survey: Survey) -> str:
        """Finds out what the call changed, with the watch of the capture that took the same path: that shows what is
        not as it was before the call. Returns why a replay cannot change it, or an empty string."""
        owner = self._owner
        if self.matching is None:
            # The call may have taken another path because of what changes: that is to be learned all the same.
            if self._before is not None:
                found = ChangedPlaces(owner, survey, self._before)
                found.learn()
                owner.sets_modes = owner.sets_modes or found.sets_modes
            return ""
        reads = self.matching.reads
        found = ChangedPlaces(owner, survey, reads)
        if not reads.sets_modes and found.sets_modes:
            owner.sets_modes = True  # the next capture is made knowing that replays set modes
            return ""
        changes = found.unexplained(self._old_containers, self._moved_settings)
        if changes:
            return f"it changes {changes[0]}"
        found.learn()
        if found.is_new or changes is None:
            return ""
        tensors, times = [], []
        for t, is_other, written in reads.watch.effects():
            if is_other:
                shape = list(t.shape)
                return f"it changes what a tensor of shape {shape} is (its storage, layout, hooks or requires_grad)"
            if t.device.type == "ltc" and not any(t is x for x in self._inputs):
                tensors.append(t)
                times.append(written)
        # Positions count the inputs, and then the gradients that there were.
        times_given = [(i, _version(x) - then) for i, (x, then) in enumerate(versions)]
        self.written = (tensors, times, [(i, n) for i, n in times_given if n])
        self.effects_known = True
        return ""
