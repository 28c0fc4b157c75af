"""Steps that return tensors which gradients flow through: how to go back through a replay.

While such a step is captured, hooks of saved tensors put numbered boxes into autograd's nodes instead of tensors
(:class:`Saving`), and what the boxes held becomes part of what the captured program returns. Each replay gives its
results a history of one node (:class:`_Back`), which keeps what that replay saved. Going back runs the captured nodes
with these tensors in their boxes, or, from the third time on, a replay of what they did.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch.autograd.function import once_differentiable

from torch_ltc import _ltc
from torch_ltc._runtime import is_dense

#: Held by the thread that captures.
alone = threading.Lock()


def _begin_anew() -> None:
    """In a forked child no other thread captures."""
    global alone
    alone = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)
#: Why a way back is not proven yet.
INTERRUPTED = "other threads send programs to run"
#: Captures of one way back that may differ from the one before until it is recorded each time.
_MAX_ATTEMPTS = 4


class _Box:
    """What a node saved: the tensor, until its place among what replays save is known."""

    __slots__ = ("place", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        # A result of the node itself would keep the node alive.
        self.tensor: Any = tensor if tensor.grad_fn is None or tensor.is_leaf else tensor.detach()
        self.version = tensor._version
        self.place = -1


class _Source(NamedTuple):
    """Where a replay finds a tensor."""

    #: "input" or "result", by position; "own": ``tensor``, which is older than the step.
    kind: str
    position: int
    tensor: Any = None

    def find(self, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> Any:
        """The tensor of this replay."""
        if self.kind == "own":
            return self.tensor
        return inputs[self.position] if self.kind == "input" else results[self.position]


def _storage(x: torch.Tensor) -> int:
    return int(x.untyped_storage()._cdata)


class _Hooks:
    """What autograd calls when its nodes save a tensor, and when they want it back. The nodes hold on to this, so it
    must not hold on to the nodes."""

    def __init__(self) -> None:
        self.boxes: list[_Box] = []
        self.obstacle = ""
        #: While nodes run for a replay: what is in the boxes.
        self.saved: list[torch.Tensor] | None = None

    def pack(self, x: torch.Tensor) -> _Box:
        """A box with this in it."""
        if not is_dense(x):
            self.obstacle = self.obstacle or "it saves a tensor of another device, or a sparse one, for going back"
        box = _Box(x)
        self.boxes.append(box)
        return box

    def unpack(self, box: _Box) -> torch.Tensor:
        """What is in a box."""
        if self.saved is not None:
            return self.saved[box.place]
        x: torch.Tensor = box.tensor
        if x._version != box.version:
            # Eager checks this where there are no hooks.
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{x.type()} {list(x.shape)}] is at version {x._version}; expected version {box.version} instead. "
                "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
                "torch.autograd.set_detect_anomaly(True)."
            )
        return x


class Saving:
    """While a step is captured: what autograd saves, and the history it makes from these tensors on."""

    def __init__(self, given: list[torch.Tensor]) -> None:
        self._given = given
        self._hooks = _Hooks()
        self._active = torch.autograd.graph.saved_tensors_hooks(self._hooks.pack, self._hooks.unpack)
        self._boxes: list[_Box] = []

    def __enter__(self) -> Self:
        self._history = _ltc.History(self._given)
        self._active.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._active.__exit__()
        self._boxes, self._hooks.boxes = self._hooks.boxes, []

    def begins_at(self, leaves: list[torch.Tensor]) -> bool:
        """Whether it was known that gradients may be for all of these."""
        return {id(t) for t in self._given}.issuperset(map(id, leaves))

    def way(
        self,
        inputs: Sequence[torch.Tensor],
        watched: Sequence[torch.Tensor],
        results: list[torch.Tensor],
        flow: list[int],
        older: Callable[[Any], bool],
    ) -> "Way | str":
        """The way back from these of the results, which what was saved is added to; or why there is none."""
        if self._hooks.obstacle:
            return self._hooks.obstacle
        if any(box.tensor._version != box.version for box in self._boxes):
            return "it writes over a tensor that autograd saved"
        memory: dict[int, _Source] = {}
        for at, t in enumerate(results):
            if memory.setdefault(_storage(t), _Source("result", at)).position != at and (at in flow or t.requires_grad):
                return "it returns several views of one tensor with history"
        for t in watched:
            if is_dense(t):
                known = memory.setdefault(_storage(t), _Source("own", 0, t))
                if known.kind == "result":
                    return "it returns a view of a tensor that is older than the step, with history"
        for i, t in enumerate(inputs):
            if memory.get(_storage(t), _Source("own", 0)).kind == "result":
                return "it returns a view of an input, with history"
            memory[_storage(t)] = _Source("input", i)
        try:
            reached = self._history.take([results[i] for i in flow])
        except RuntimeError as e:
            return str(e)
        position = {id(x): i for i, x in reversed([*enumerate(inputs)])}
        place = lambda t: _Source("input", position[id(t)]) if id(t) in position else _Source("own", 0, t)
        saved: dict[int, int] = {}
        sources: list[_Source] = []
        checked: dict[_Source, None] = {}
        for box in self._boxes:
            x = box.tensor
            if id(x) not in saved:
                saved[id(x)] = len(sources)
                if id(x) in position or older(x):
                    sources.append(place(x))
                else:
                    # Writes to what it shares memory with count.
                    if _storage(x) in memory:
                        checked[memory[_storage(x)]] = None
                    sources.append(_Source("result", len(results)))
                    results.append(x)
            box.place = saved[id(x)]
        differentiated = [place(t) for t in self._given]
        return Way(self, flow, sources, [*checked], differentiated, [i for i, found in enumerate(reached) if found])

    def detach(self, keep: bool) -> None:
        """The nodes lead to nothing outside; or, not to be kept, they do again."""
        if keep:
            self._history.detach()
        else:
            self._history.mend()

    def let_go(self) -> None:
        """The nodes are run by replays only from here on, and hold no tensors."""
        for box in self._boxes:
            box.tensor = None
        self._history.let_go()
        self._given = []

    def go_back(self, grads: Sequence[Any], saved: list[torch.Tensor]) -> list[Any]:
        """Runs the nodes with these tensors in their boxes."""
        outer, self._hooks.saved = self._hooks.saved, saved
        try:
            return self._history.run([*grads])
        finally:
            self._hooks.saved = outer


class Way:
    """The way back through replays of one capture."""

    def __init__(
        self,
        saving: Saving,
        flow: list[int],
        saved: list[_Source],
        checked: list[_Source],
        given: list[_Source],
        reached: list[int],
    ) -> None:
        self._saving, self._flow, self._saved, self._checked = saving, flow, saved, checked
        self._reached = reached
        self._leads_to = [given[i] for i in reached]
        self._replays = _ltc.Replays()
        self._lock = threading.RLock()
        #: By kind of call: the capture that another one may confirm, and how many there were.
        self._making: dict[int, tuple[int, int]] = {}
        self._recorded = 0

    def prove(self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor]) -> str:
        """Whether the nodes need nothing but their boxes and the gradients they are given; why not, or nothing. From
        there on the nodes are this way's, and what was captured has no history of its own."""
        saved = [s.find(inputs, results) for s in self._saved]
        seeds = [torch.zeros_like(results[i]) for i in self._flow]
        taken = (*seeds, *saved)
        self._replays.begin(taken)
        self._saving.detach(keep=True)
        try:
            found = [g for g in self._saving.go_back(seeds, saved) if g is not None]
            step, why = self._replays.end(taken, tuple(_apart(found, taken)), "", [])
        except RuntimeError as e:
            self._replays.abort()
            step, why = 0, f"going back through it fails: {e}"
        if step and not self._replays.is_closed(step):
            why = "going back through it reads a tensor that autograd does not save"
        self._replays.forget(step)
        if why or not step:
            self._saving.detach(keep=False)
        else:
            self._saving.let_go()
        return why or ("" if step else INTERRUPTED)

    def wrap(self, inputs: Sequence[torch.Tensor], results: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gives the results of a replay their history."""
        outputs = [results[i] for i in self._flow]
        saved = [s.find(inputs, results) for s in self._saved]
        saved += [s.find(inputs, results) for s in self._checked]
        out = _Back.apply(self, outputs, saved, *[s.find(inputs, results) for s in self._leads_to])
        results = results[:]
        for i, x in zip(self._flow, out):
            results[i] = x
        return results

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)`` ways back so far."""
        return self._replays.replayed(), self._recorded

    def go(self, grads: Sequence[torch.Tensor | None], saved: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """Gradients of what it leads to, from those of the results."""
        del saved[len(self._saved) :]
        seeds = tuple([g for g in grads if g is not None])
        taken = (*seeds, *saved)
        key = "".join(["-" if g is None else "+" for g in grads])
        hit = self._replays.replay(taken, key)
        if hit is None:
            return self._record(key, grads, taken, saved)
        places, results = hit
        found: list[torch.Tensor | None] = [None] * len(self._reached)
        for place, x in zip(places, results):
            found[place] = x
        return found

    def _record(
        self, key: str, grads: Sequence[Any], taken: tuple[Any, ...], saved: list[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        with self._lock:
            self._recorded += 1
            captures = not _ltc.is_capturing() and not _ltc.Ambient().has_modes() and all(map(is_dense, taken))
            kind = self._replays.classify(taken, key)[0] if captures else 0
            earlier, attempts = self._making.get(kind, (0, 0))
            turn = alone
            captures = captures and attempts < _MAX_ATTEMPTS and turn.acquire(blocking=False)
            try:
                if captures:
                    self._replays.begin(taken)
                all_found = self._saving.go_back(grads, saved)
                found = [all_found[i] for i in self._reached]
                places = [i for i, x in enumerate(found) if x is not None]
                for i, x in zip(places, _apart([found[i] for i in places], taken)):
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
                    kind, step, _ltc.Watch([], [], False), None, ([], [], []), ([], [], []), [], places, []
                )
                del self._making[kind]
            else:
                self._making[kind] = (step if closed else 0, attempts + 1 if step or why else attempts)
            return found


def _apart(found: list[Any], taken: Sequence[torch.Tensor]) -> list[Any]:
    """Gradients that share memory with none of the others: whoever gets one may write to it."""
    known = set(map(_storage, taken))
    apart = []
    for x in found:
        if not is_dense(x):
            apart.append(x)
            continue
        memory = _storage(x)
        apart.append(x.clone() if memory in known else x)
        known.add(memory)
    return apart


class _Back(torch.autograd.Function):
    """The history of a replay's results."""

    @staticmethod
    def forward(ctx: Any, way: Way, outputs: list[torch.Tensor], saved: list[torch.Tensor], *_: torch.Tensor) -> Any:
        """Keeps what going back takes."""
        ctx.way = way
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        """Goes back."""
        return (None, None, None, *ctx.way.go(grads, [*ctx.saved_tensors]))
