"""The autograd history of replayed results: how `backward()` works on what a compiled step returns.

A replay runs no operator that autograd could see, so the history is made when the step is captured. Then hooks of saved
tensors put numbered boxes into autograd's nodes instead of tensors (:class:`SavedTensors`), and the tensors become
additional results of the captured program. Each replay gives its results one node (:class:`_Back`) for each segment of
the captured history (`_segments.py`), which saves this replay's tensors with `save_for_backward`. A backward pass
through it runs the captured nodes with these tensors in their boxes (:class:`_SegmentBackward`). That run is captured
like a step of its own, and replayed from the third time on. `docs/adr/0012-gradients-flow-through-replays.md` has the
reasons.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch

from torch_ltc import _ltc
from torch_ltc._runtime import is_dense
from torch_ltc._segments import Segment, segments

#: Held by the thread that captures: only one does at a time.
capture_lock = threading.Lock()


def _renew_lock() -> None:
    """In a forked child no other thread captures, whoever held the lock."""
    global capture_lock
    capture_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
#: Why a backward pass could not be tried out: another capture of the step may succeed.
INTERRUPTED = "other threads send programs to run"
#: Why calls are recorded whose gradients are differentiated again (double backward).
DOUBLE_BACKWARD = "gradients of its gradients are taken (create_graph=True), which a replay does not lead to"
_DOUBLE_BACKWARD_ERROR = (
    "gradients of gradients do not flow through a call that torch_ltc.compile replayed. Calls like it are recorded "
    "from here on, and gradients of gradients flow through these: take them (create_graph=True) from the first call "
    "on, or call what was compiled itself (of a module: compiled._orig_mod)"
)
#: How many captures of a backward pass may differ from the one before until it is run node by node each time.
_MAX_ATTEMPTS = 4


class DoubleBackward:
    """Whether gradients of the gradients are taken (`create_graph=True`) of calls of one class. If so, these calls are
    recorded from then on."""

    def __init__(self) -> None:
        #: A dict, since the guards of captures watch its entry.
        self.place = {"found": False}

    @property
    def found(self) -> bool:
        """Whether a backward pass was run with `create_graph=True`."""
        return self.place["found"]

    def note(self) -> None:
        """Notes that a backward pass runs with `create_graph=True`."""
        self.place["found"] = True

    def __call__(self, _: Any) -> None:
        """A pre-hook for the nodes of a recorded call: grad mode is on where the backward pass is itself recorded."""
        if torch.is_grad_enabled():
            self.note()


class _Box:
    """Stands in an autograd node for a tensor that the node saved. `place` is the position among the sources of all
    saved tensors, once that is known; the tensor itself is held until replays provide their own."""

    __slots__ = ("place", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        # A node that saves its own result would keep itself alive, so that is detached.
        self.tensor: Any = tensor if tensor.grad_fn is None or tensor.is_leaf else tensor.detach()
        self.version = tensor._version
        self.place = -1


class _Source(NamedTuple):
    """Where a replay finds one of the tensors that its backward pass takes."""

    #: "input" or "result" (of the program) by position, or "own": ``tensor``, which is older than the step.
    kind: str
    position: int
    tensor: Any = None

    def find(self, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> Any:
        """The tensor, in a replay with these inputs and results."""
        if self.kind == "own":
            return self.tensor
        return inputs[self.position] if self.kind == "input" else results[self.position]


def storage_of(x: torch.Tensor) -> int:
    """The identity of a tensor's storage: equal for tensors that share memory."""
    return int(x.untyped_storage()._cdata)


class _Hooks:
    """The saved-tensor hooks: autograd calls `pack` when a node saves a tensor, and `unpack` when it wants it back. The
    nodes hold a reference to this object, so it must not hold any to the nodes."""

    def __init__(self) -> None:
        self.boxes: list[_Box] = []
        #: Why a replay cannot save what a node saved; empty where it can.
        self.obstacle = ""
        #: While captured nodes run for a replay: the replay's saved tensors by place, and the places that were used.
        self.saved: Sequence[torch.Tensor | None] | None = None
        self.used: set[int] = set()

    def pack(self, x: torch.Tensor) -> _Box:
        """Puts a tensor into a new box, which the node keeps."""
        if not is_dense(x):
            self.obstacle = self.obstacle or "it saves a tensor of another device, or a sparse one, for going back"
        box = _Box(x)
        self.boxes.append(box)
        return box

    def unpack(self, box: _Box) -> torch.Tensor:
        """The tensor for a box: this replay's, or, outside of replays, the one that was saved."""
        if self.saved is not None:
            self.used.add(box.place)
            held = self.saved[box.place]
            if held is None:
                raise RuntimeError("torch_ltc.compile: going back through a replay takes what it did not save")
            return held
        x: torch.Tensor | None = box.tensor
        if x is None:
            raise RuntimeError("torch_ltc.compile: this history of a captured call has become that of its replays")
        if x._version != box.version:
            # Autograd checks this itself only where there are no hooks.
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{x.type()} {list(x.shape)}] is at version {x._version}; expected version {box.version} instead. "
                "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
                "torch.autograd.set_detect_anomaly(True)."
            )
        return x


class SavedTensors:
    """What autograd saves while a step is captured, and the history that it makes from the tensors `given` on. A
    context manager around the step's call."""

    def __init__(self, given: list[torch.Tensor]) -> None:
        #: The tensors at which the history begins: inputs and leaves that require gradients.
        self._given = given
        self._hooks = _Hooks()
        self._active = torch.autograd.graph.saved_tensors_hooks(self._hooks.pack, self._hooks.unpack)
        self._boxes: list[_Box] = []
        #: Held by the thread that runs the captured nodes for a replay: they are one set for all replays.
        self.lock = threading.RLock()

    def __enter__(self) -> Self:
        self._history = _ltc.History(self._given)
        self._active.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._active.__exit__()
        self._boxes, self._hooks.boxes = self._hooks.boxes, []

    def begins_at(self, leaves: list[torch.Tensor]) -> bool:
        """Whether all of these tensors were known as possible beginnings of the history when the call was made."""
        return {id(t) for t in self._given}.issuperset(map(id, leaves))

    def backward(
        self,
        inputs: Sequence[torch.Tensor],
        watched: Sequence[torch.Tensor],
        results: list[torch.Tensor],
        with_history: list[int],
        older: Callable[[Any], bool],
    ) -> "Backward | str":
        """The backward pass from the results at the positions `with_history`, or why replays cannot have one. Appends
        to `results` the saved tensors that replays have to compute. `watched`: the older tensors that the step reads;
        `older`: whether an object is older than the step."""
        if self._hooks.obstacle:
            return self._hooks.obstacle
        if any(box.tensor._version != box.version for box in self._boxes):
            return "it writes over a tensor that autograd saved"
        memory: dict[int, _Source] = {}
        for at, t in enumerate(results):
            first = memory.setdefault(storage_of(t), _Source("result", at)).position
            if first != at and (at in with_history or t.requires_grad):
                return "it returns several views of one tensor with history"
        for t in watched:
            if is_dense(t):
                known = memory.setdefault(storage_of(t), _Source("own", 0, t))
                if known.kind == "result":
                    return "it returns a view of a tensor that is older than the step, with history"
        for i, t in enumerate(inputs):
            if memory.get(storage_of(t), _Source("own", 0)).kind == "result":
                return "it returns a view of an input, with history"
            memory[storage_of(t)] = _Source("input", i)
        try:
            reached = self._history.take([results[i] for i in with_history])
        except RuntimeError as e:
            return str(e)
        parts = segments([results[i] for i in with_history], self._given)
        if isinstance(parts, str):
            return parts
        position = {id(x): i for i, x in reversed([*enumerate(inputs)])}
        place = lambda t: _Source("input", position[id(t)]) if id(t) in position else _Source("own", 0, t)
        known_older = set(map(id, watched))
        saved: dict[int, int] = {}
        sources: list[_Source] = []
        checked: dict[int, _Source] = {}
        for box in self._boxes:
            x = box.tensor
            if id(x) not in saved:
                at = saved[id(x)] = len(sources)
                if id(x) in position or older(x):
                    if id(x) not in position and id(x) not in known_older:
                        return "autograd saves a tensor that an argument leads to (its gradient, say)"
                    sources.append(place(x))
                else:
                    # A write to a tensor that shares memory with a saved one has to raise, as it does in eager mode.
                    if storage_of(x) in memory:
                        checked[at] = memory[storage_of(x)]
                    sources.append(_Source("result", len(results)))
                    results.append(x)
            box.place = saved[id(x)]
        given = [place(t) for t in self._given]
        whole = [i for i, found in enumerate(reached) if found] if len(parts) == 1 else None
        return Backward(
            self, [_SegmentBackward(self, part, with_history, sources, checked, given, whole) for part in parts]
        )

    def detach(self, keep: bool) -> None:
        """Cuts the captured history off from what was before the step, so that gradients end at its border; or, with
        `keep` false, connects it again."""
        if keep:
            self._history.detach()
        else:
            self._history.mend()

    def let_go(self) -> None:
        """Lets go of all saved tensors: from here on the nodes run only for replays, which bring their own."""
        for box in self._boxes:
            box.tensor = None
        self._history.let_go()
        self._given = []

    def run_nodes(
        self, segment: Segment | None, grads: Sequence[Any], saved: Sequence[torch.Tensor | None]
    ) -> tuple[list[Any], set[int]]:
        """Runs the nodes of a segment (of `None`: all nodes) with these tensors in their boxes. Returns the gradients,
        and the places of the saved tensors that were used."""
        hooks = self._hooks
        outer, hooks.saved, hooks.used = (hooks.saved, hooks.used), saved, set()
        try:
            return self._history.run([*grads]) if segment is None else segment.run(grads), hooks.used
        finally:
            hooks.saved, hooks.used = outer


class Backward:
    """The backward pass through results of the replays of one capture: a part for each segment of its history."""

    def __init__(self, saving: SavedTensors, parts: "list[_SegmentBackward]") -> None:
        self._saving, self._parts = saving, parts

    def prove(
        self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor], double_backward: DoubleBackward
    ) -> str:
        """Tries out that the nodes need nothing but their boxes and the gradients that they are given. Returns why they
        do need more, or an empty string: then the nodes are used for replays from here on, and the captured call's own
        results have to be given a history as a replay's are."""
        self._saving.detach(keep=True)
        why = next((why for part in self._parts if (why := part.prove(inputs, results, double_backward))), "")
        if why:
            self._saving.detach(keep=False)
        else:
            self._saving.let_go()
        return why

    def wrap(self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor]) -> list[torch.Tensor]:
        """The results of a replay with their history."""
        results = results[:]
        for part in self._parts:
            part.wrap(inputs, results)
        return results

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)``: how many backward passes were replayed, and how many ran the nodes."""
        counts = [part.counts for part in self._parts]
        return sum(c[0] for c in counts), sum(c[1] for c in counts)


class _SegmentBackward:
    """The backward pass through one segment of the captured history."""

    def __init__(
        self,
        saving: SavedTensors,
        segment: Segment,
        with_history: list[int],
        sources: list[_Source],
        checked: dict[int, _Source],
        given: list[_Source],
        whole: list[int] | None,
    ) -> None:
        self._saving, self._sources, self._shared = saving, sources, checked
        #: The segment whose nodes are run; `None` where it is the whole history.
        self._segment = segment if whole is None else None
        #: Positions of the results whose history this is.
        self._with_history = [with_history[i] for i in segment.roots]
        inner = [_Source("result", with_history[i]) for i in segment.results]
        self._targets = [*inner, *[given[i] for i in (segment.given if whole is None else whole)]]
        #: What gradients are returned for: the tensors (`_targets`), and the position of each among the gradients that
        #: running the nodes gives.
        self._reached = whole if whole is not None else list(range(len(self._targets)))
        #: Places of the saved tensors that these nodes use; where replays find these; and tensors that share memory
        #: with one of them, which are saved so that autograd notices writes to them.
        self._used: list[int] = []
        self._saved: list[_Source] = []
        self._checked: list[_Source] = []
        self._double_backward = DoubleBackward()
        self._replays = _ltc.Replays()
        self._lock = saving.lock
        #: For each class of backward passes: the capture that the next one may confirm (0: none), and how many captures
        #: there were.
        self._earlier: dict[int, tuple[int, int]] = {}
        self._recorded = 0

    def prove(
        self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor], double_backward: DoubleBackward
    ) -> str:
        """As :meth:`Backward.prove`, for this segment: captures a run of the nodes, which must read nothing else."""
        saved = [s.find(inputs, results) for s in self._sources]
        seeds = [torch.zeros_like(results[i]) for i in self._with_history]
        taken = (*seeds, *saved)
        self._replays.begin(taken)
        try:
            all_found, used = self._saving.run_nodes(self._segment, seeds, saved)
            found = [g for g in all_found if g is not None]
            step, why = self._replays.end(taken, tuple(_unshared(found, taken)), "", [])
        except RuntimeError as e:
            self._replays.abort()
            return f"going back through it fails: {e}"
        if step and not self._replays.is_closed(step):
            why = "going back through it reads a tensor that autograd does not save"
        self._replays.forget(step)
        # Tensors that were saved by nodes which no result leads to are not used.
        self._double_backward, self._used = double_backward, sorted(used)
        self._saved = [self._sources[at] for at in self._used]
        self._checked = [*{self._shared[at]: None for at in self._used if at in self._shared}]
        return why or ("" if step else INTERRUPTED)

    def wrap(self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Replaces the segment's results by tensors with a history."""
        outputs = [results[i] for i in self._with_history]
        saved = [s.find(inputs, results) for s in self._saved]
        saved += [s.find(inputs, results) for s in self._checked]
        # Where gradients are off, a step may have turned them on for these results.
        with contextlib.nullcontext() if torch.is_grad_enabled() else torch.enable_grad():
            out = _Back.apply(self, outputs, saved, *[s.find(inputs, results) for s in self._targets])
        if len(out) > 1:
            # Results of one node would be tied together. Each gets a node of its own behind that one, so that hooks of
            # a result that gets no gradient are not called, and one can be written in place without the others.
            with torch.no_grad():
                apart = [x.detach() for x in out]
            _ltc.pass_to(apart, out)
            out = apart
        for i, x in zip(self._with_history, out):
            results[i] = x

    def note_double_backward(self) -> None:
        """Notes that this backward pass runs with `create_graph=True`."""
        self._double_backward.note()

    @property
    def saves(self) -> bool:
        """Whether a replay saves any tensor for it."""
        return bool(self._saved or self._checked)

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)``: how often this part was replayed, and how often it ran the nodes."""
        return self._replays.replayed(), self._recorded

    def run(self, grads: Sequence[torch.Tensor | None], saved: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """The backward pass: gradients of the targets from those of the results (`None` for one that got no gradient),
        with the tensors that a replay saved. A replay of the nodes' run if there is one, else the nodes themselves."""
        del saved[len(self._saved) :]
        seeds = tuple([g for g in grads if g is not None])
        taken = (*seeds, *saved)
        key = "".join(["-" if g is None else "+" for g in grads])
        hit = self._replays.replay(taken, key)
        if hit is None:
            return self._record(key, grads, taken, saved)
        places, results, _ = hit
        found: list[torch.Tensor | None] = [None] * len(self._reached)
        for place, x in zip(places, results):
            found[place] = x
        return found

    def _record(
        self, key: str, grads: Sequence[Any], taken: tuple[Any, ...], saved: list[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """Runs the nodes, captures the run where that is possible, and has the next ones replayed if two captures were
        the same."""
        with self._lock:
            self._recorded += 1
            captures = not _ltc.is_capturing() and not _ltc.Ambient().has_modes() and all(map(is_dense, taken))
            kind = self._replays.classify(taken, key)[0] if captures else 0
            earlier, attempts = self._earlier.get(kind, (0, 0))
            turn = capture_lock
            captures = captures and attempts < _MAX_ATTEMPTS and turn.acquire(blocking=False)
            try:
                if captures:
                    self._replays.begin(taken)
                boxes: list[torch.Tensor | None] = [None] * len(self._sources)
                for at, x in zip(self._used, saved):
                    boxes[at] = x
                all_found, _ = self._saving.run_nodes(self._segment, grads, boxes)
                found = [all_found[i] for i in self._reached]
                places = [i for i, x in enumerate(found) if x is not None]
                for i, x in zip(places, _unshared([found[i] for i in places], taken)):
                    found[i] = x
                if not all(x is None or is_dense(x) for x in found):
                    if captures:  # a sparse gradient has no storage that a replay could leave it in
                        self._replays.abort()
                    return found
                if not captures:
                    return found
                step, why = self._replays.end(taken, tuple([found[i] for i in places]), "", [])
            except BaseException:
                if captures:
                    self._replays.abort()
                raise
            finally:
                if captures:
                    turn.release()
            closed = step and self._replays.is_closed(step)
            if closed and earlier and not self._replays.confirm(step, earlier):
                self._replays.ready(
                    kind,
                    step,
                    _ltc.Watch([], [], False),
                    None,
                    ([], [], [], []),
                    ([], [], []),
                    [],
                    places,
                    [],
                    ([], []),
                )
                del self._earlier[kind]
            else:
                self._earlier[kind] = (step if closed else 0, attempts + 1 if step or why else attempts)
            return found


def _unshared(found: list[Any], taken: Sequence[torch.Tensor]) -> list[Any]:
    """The gradients, copied where they share memory with each other or with what was `taken`: whoever gets a gradient
    may write to it in place."""
    known = set(map(storage_of, taken))
    apart = []
    for x in found:
        if not is_dense(x):
            apart.append(x)
            continue
        memory = storage_of(x)
        apart.append(x.clone() if memory in known else x)
        known.add(memory)
    return apart


class _Once(torch.autograd.Function):
    """Gives the gradients of a replay, where they were asked for with `create_graph=True`, a history whose backward
    pass raises an error."""

    @staticmethod
    def forward(ctx: Any, grads: list[torch.Tensor], _: torch.Tensor) -> Any:
        """The same gradients."""
        return tuple(grads)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Raises: gradients of gradients do not flow through a replay."""
        raise RuntimeError(_DOUBLE_BACKWARD_ERROR)


def _differentiated(found: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """The gradients, with a history that raises an error when it is differentiated."""
    places = [i for i, x in enumerate(found) if x is not None]
    anchor = torch.ones((), device="cpu", requires_grad=True)
    for i, x in zip(places, _Once.apply([found[i] for i in places], anchor) if places else ()):
        found[i] = x
    return found


class _Back(torch.autograd.Function):
    """The autograd node of a replay's results. Its name shows in their `grad_fn`."""

    @staticmethod
    def forward(
        ctx: Any, part: _SegmentBackward, outputs: list[torch.Tensor], saved: list[torch.Tensor], *_: torch.Tensor
    ) -> Any:
        """Saves the tensors that the backward pass takes, and returns the results as outputs of this node."""
        ctx.part = part
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        """Runs the segment's backward pass."""
        with torch.no_grad():
            # A node that saved nothing may be run again without `retain_graph`, as in eager mode; but asking for
            # `saved_tensors` the second time would raise.
            found = ctx.part.run(grads, [*ctx.saved_tensors] if ctx.part.saves else [])
        if torch.is_grad_enabled():
            ctx.part.note_double_backward()
            found = _differentiated(found)
        return (None, None, None, *found)
