"""One recorded call of a step: what it read, changed, saved and returned."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._arguments import Arguments
from torch_ltc._awaited import Awaited
from torch_ltc._compiling import is_compiling, seen_draws
from torch_ltc._history import Saving, Twice, Way, storage_of
from torch_ltc._host import HostRecorder
from torch_ltc._host_program import HostProgram
from torch_ltc._left import MISSING, Found, Left, spent
from torch_ltc._names import PLAIN
from torch_ltc._newly_left import RENEWED, NewlyLeft
from torch_ltc._reads import Making, Reads
from torch_ltc._results import Containers, Leave, Memory, Record, Result, made_otherwise, shown_results, strange_views
from torch_ltc._runtime import history_of, is_dense, is_leaf, on_device
from torch_ltc._survey import Survey
from torch_ltc._traced import Counted, Traced, plain

if TYPE_CHECKING:
    from torch_ltc._step import CompiledStep


def _kind_of(x: Any) -> str:
    """What something is, in words."""
    if isinstance(x, torch.Tensor):
        return "a tensor with a history" if x.requires_grad else f"a {type(x).__name__} ({x.device}, {x.layout})"
    return "nothing" if x is MISSING else f"a {type(x).__qualname__}"


def _version(x: torch.Tensor) -> int:
    """How often a tensor was written."""
    return 0 if x.is_inference() else x._version


def _forget_casts() -> None:
    """Parameters that autocast keeps in the type it computes in would be read, or left behind: a replay casts them
    itself."""
    if torch.is_autocast_enabled("ltc"):
        torch.clear_autocast_cache()


class Call(NamedTuple):
    """What a step is called with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: Tensors on the device: what replays read.
    inputs: tuple[torch.Tensor, ...]
    #: All of it, taken apart; `None` where it is but these inputs.
    given: Arguments | None
    #: Tensors that it finds where the step leaves some: the last inputs.
    left: list[Found]

    def copies(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The CPU tensors among the arguments, each with its copy."""
        own = self.given.tensors if self.given is not None else self.inputs
        return [(x, copy) for x, copy in zip(own, self.inputs) if x is not copy]

    def is_changed(self) -> bool:
        """Whether the step put other things into its arguments, or took some out."""
        given = self.given
        return given is not None and not given.is_like(Arguments(self.args, self.kwargs, given.numbers))

    @property
    def numbers(self) -> dict[Any, float]:
        """The floats among the arguments that change, by position or name."""
        return self.given.numbers if self.given is not None else {}

    def made(self, fn: Callable[..., Any], lent: dict[Any, float]) -> Any:
        """What the function returns, called with what is lent in place of the numbers that change."""
        if not self.numbers:
            return fn(*self.args, **self.kwargs)
        return fn(
            *[lent[i] if i in self.numbers else x for i, x in enumerate(self.args)],
            **{name: lent[name] if name in self.numbers else x for name, x in self.kwargs.items()},
        )


#: What is returned as it is.
_KEPT = (*PLAIN, torch.Size, torch.dtype, torch.device, torch.layout, torch.memory_format)
#: Why such a step is recorded, as libtorch's half of the recorder (`history.cpp`) says it, too.
_OUTSIDE = "it differentiates through a tensor that was made outside"


class Run:
    """One recorded call with what it read, changed and returned."""

    def __init__(
        self,
        step: "CompiledStep[..., Any]",
        call: Call,
        before: Reads | None,
        making: list[Making],
        saves: bool,
        twice: Twice,
        compares: bool = False,
    ) -> None:
        self._twice = twice
        #: Where the history of results of this call ends.
        self._last_nodes: list[Any] = []
        self._owner, self._call, self._before, self._making = step, call, before, making
        self.numbers = call.numbers
        self._inputs = call.inputs
        #: The earlier capture that this one went the way of, if any.
        self.like: Making | None = None
        #: Whether the call is compared with those captures, which would be replayed: it is made with what was known
        #: when they were. Which of them went the way that it went, and how that differs from it.
        self._compares = compares
        self.went: int | None = None
        self.differs = ""
        #: Whether it was captured, whatever became of that.
        self.is_captured = False
        #: Inputs, by position, that the step also finds elsewhere.
        self.elsewhere: list[tuple[int, torch.Tensor]] = []
        #: Inputs, by position, that show the memory of something older, and that.
        self.shares: tuple[list[int], list[torch.Tensor]] = ([], [])
        self.obstacle = ""
        self.reads: Reads | None = None
        self.record: Record | None = None
        self.program: HostProgram | None = None
        #: The capture's number; 0 where there is none.
        self.step = 0
        #: Leaves whose gradients are inputs; leaves that get results as gradients; those that lose theirs; and how
        #: often the gradients that are results were written in place.
        self.grads: tuple[list[Any], list[Any], list[Any], list[int]] = ([], [], [], [])
        #: Tensors that are written and how often; inputs by position.
        self.written: tuple[list[Any], list[int], list[tuple[int, int]]] = ([], [], [])
        #: Results whose history is used up, with its name and what it says.
        self.spent: list[tuple[int, str, str]] = []
        #: Whether what it changed besides is known.
        self.is_plain = False
        #: Whether it returns tensors that gradients flow through, and how, where what autograd saved was taken down.
        self.has_history = False
        self.way: Way | None = None
        self._saves = saves
        free = step._free
        to_lend = [*before.to_lend(free), *[(free.given, name) for name in call.numbers]] if before is not None else []
        #: Numbers that are lent to it, as ``(dict, key)``, and their places.
        if compares and before is not None:
            to_lend = before.lends
        self.lends, self.lent = to_lend, frozenset((id(holder), name) for holder, name in to_lend)
        #: Containers in places that the step reads, which it may put others in place of.
        self._old: dict[tuple[int, Any], Any] = {}
        #: Settings that a schedule turned out to set: the next capture takes them for numbers that change.
        self._moved: list[tuple[dict[Any, Any], Any]] = []
        self._saving: Saving | None = None
        self._results: list[torch.Tensor] = []
        #: Numbers of the host that it returns, and those that it reads off the device.
        self._told: list[float] = []
        self._known_numbers: list[float] = []

    def call(self) -> Any:
        """Calls the step, and finds out what it did."""
        owner, before, call = self._owner, self._before, self._call
        captures = before is not None
        leaves = [*(before.leaves() if before else []), *[x for x in self._inputs if is_leaf(x) and x.requires_grad]]
        if before is not None:
            before.watch.refresh()
        for making in self._making:
            making.reads.watch.expect_versions()
        for place in self._making[0].reads.places if self._making else ():
            if place.kind == "entry" and type(place.holder.get(place.name)) in RENEWED:
                self._old[id(place.holder), place.name] = place.holder[place.name]
        leaves = list({id(t): t for t in leaves}.values())
        had = [(t, t.grad) for t in leaves]
        grads = [g for _, g in had if g is not None]
        givens = (*self._inputs, *grads)
        copies = call.copies()
        versions = [(x, _version(x)) for x in givens]
        histories = [(x.requires_grad, history_of(x)) for x in self._inputs]
        attributes = [dict(vars(x)) for x in self._inputs]
        if captures and self._saves:
            self._saving = Saving(list({id(t): t for t in self._begins(before)}.values()))
        ambient = _ltc.Ambient()
        recorder = HostRecorder(copies, self.lends)
        ours = [*(call.given.objects if call.given is not None else ()), *givens]
        ours += [x for f in call.left for x in (f.value, *f.tensors)]
        sets_modes = self._making[0].reads.sets_modes if self._compares else owner.sets_modes
        survey = Survey(ours, owner._renewed.values(), recorder.again, [f.key for f in call.left], sets_modes)
        recorder.masks = owner._masks
        recorder.is_older = survey.is_older
        recorder.is_given = lambda x: any(x is y for y in self._inputs)
        survey.numbers_leave, survey.numbers_are_asked = recorder.leave, recorder.asks
        survey.begins_within = recorder.begins_within
        survey.numbers_become_plain = recorder.gives_plain
        if captures:
            _forget_casts()
        try:
            captures = captures and owner._replays.begin(self._inputs)
            recorder.awaited = Awaited() if captures and not owner._reads_decide else None
            with self._saving or contextlib.nullcontext(), is_compiling(), recorder, survey:
                out = call.made(owner._fn, owner._free.given)
            if captures:
                _forget_casts()
            if any(
                vars(x).keys() != then.keys() or any(vars(x)[name] is not value for name, value in then.items())
                for x, then in zip(self._inputs, attributes)
            ):
                self.obstacle = "it changes attributes of an input"
            if any((x.requires_grad, history_of(x)) != then for x, then in zip(self._inputs, histories)):
                self.obstacle = "it changes the history of an input"
            self._look_at_arguments(survey, copies, grads)
            self._look(survey, recorder, out, ambient, had, givens, versions, captures)
            recorder.let_go()
            owner._masks.work_out()
        except BaseException as e:
            owner._replays.abort()
            recorder.let_go()
            if any(type(x) in (Traced, Counted) for x in e.args):
                e.args = tuple(map(plain, e.args))
            raise
        finally:
            survey.close()
        return self._returned(out)

    def _look_at_arguments(self, survey: Survey, copies: Any, grads: list[torch.Tensor]) -> None:
        """Finds out what became of the arguments, and whether the step also gets at them in other ways."""
        call = self._call
        for x in grads if call.given is None else [*call.given.apart, *[x for x, _ in copies], *grads]:
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
        """Where the step finds a tensor with a history that somebody may go back through, with what to do about it; or
        nothing."""
        assert self.reads is not None
        for x in [*self.reads.watch.tensors(), *self._inputs]:
            if on_device(x) and not is_leaf(x) and x.requires_grad and not spent(x):
                return f", {self.reads.where_is(x)}: detach() it"
        return ""

    def _begins(self, before: Reads | None) -> list[torch.Tensor]:
        """Tensors that a history of the step may begin at: its inputs, and the leaves that it reads."""
        leaves = [t for t in before.watch.tensors() if is_leaf(t)] if before else []
        if any(t.requires_grad and t.is_inference() for t in [*self._inputs, *leaves]):
            self.obstacle = self.obstacle or "it takes gradients of a tensor that was made in inference mode"
            return []
        return [t for t in [*self._inputs, *leaves] if on_device(t) and t.requires_grad]

    def _returned(self, out: Any) -> Any:
        flat, spec = pytree.tree_flatten(out, is_leaf=lambda x: type(x) is torch.Size)
        if any(type(x) in (Traced, Counted) or hasattr(x, "_ltc_draws") for x in flat):
            return pytree.tree_unflatten([seen_draws(plain(x)) for x in flat], spec)
        return out

    def _advised(self, why: str) -> str:
        """Why the step is recorded, with what to do about an operator that ran eagerly."""
        name, eagerly, _ = why.partition(" runs eagerly")
        known = {op: advice for op, _, _, advice in _ltc.fallbacks()}
        advice = known.get(name) or known.get(name.rpartition(".")[0])
        return f"{why}: {advice}" if eagerly and advice else why

    def _refuse(self, why: str, captures: bool) -> None:
        self.obstacle = self.obstacle or why
        if captures:
            self._owner._replays.abort()

    def _look(
        self,
        survey: Survey,
        recorder: HostRecorder,
        out: Any,
        ambient: _ltc.Ambient,
        had: Any,
        givens: Any,
        versions: Any,
        captures: bool,
    ) -> None:
        """Finds out what the call did."""
        owner = self._owner
        self._moved = [(h, name) for h, name in recorder.moved if (id(h), name) not in owner._free.places]
        for holder, name in self._moved:
            owner._free.add(holder, name)
        for x in filter(survey.is_older, recorder.gradients):
            survey.place("slot", x, torch._C.TensorBase.grad)
        self.reads = Reads(survey, owner._free, self._call.left, self._twice, self._call.numbers)
        self.reads.watch.expect_grads([(t, g is not None) for t, g in had])
        if recorder.awaited is not None and recorder.awaited.decides:
            # From here on what is read is compared instead.
            owner._reads_decide = True
            return owner._replays.abort()
        unseen = recorder.unseen(survey.on_host.values(), survey.is_scripted)
        why: str | None = self.obstacle or survey.obstacle or recorder.obstacle or unseen
        for holder, name in self.lends:
            is_whole = type(plain(holder.get(name))) is int
            if is_whole and not survey.only_counts(holder, name, lambda *place: place in self.lent):
                owner._free.not_counted(holder, name)
                why = why or f"it does not only count with {name}"
        if not why and ambient.changed():
            why = f"it changes {ambient.changed()}"
        if not why and _ltc.gather_by_python([*self.reads.watch.tensors(), *self._inputs]):
            why = "the node that adds up a gradient (AccumulateGrad) has hooks"
        outside = self._made_outside()
        if outside and survey.uses_grads and torch.is_grad_enabled():
            why = why or _OUTSIDE
        results, flow, why = self._look_at_results(out, survey, recorder, had, why)
        (gets, loses), why = self._look_at_grads(had, results, why)
        if flow and not why:
            why = self._flows(flow, results, survey, recorder, bool(gets or loses))
        self.like = self._making[0] if self._making else None
        if not why and not captures:
            why = self._effects(versions, survey)
        if why:
            return self._refuse(why + (outside if why == _OUTSIDE else ""), captures)
        if not captures:
            return
        if self.has_history and self.way is None:
            # What autograd saves is taken down next time.
            return owner._replays.abort()
        self.program, self._told = recorder.program(), recorder.told
        parts = (self.program, self.record.late if self.record is not None else None)
        identity = "".join(part.identity for part in parts if part is not None)
        # The survey holds nothing any more that the step dropped.
        self._results = results
        if self.record is not None:
            self.record.count_writes(results)
        givens = (*givens, *recorder.take_uploaded())
        self.step, why = owner._replays.end(givens, tuple(results), identity, recorder.handed)
        del givens
        self.is_captured = bool(self.step)
        if self.step:
            # What the host read and decided says which way it went.
            self.like = self._compared() if self._compares else self._alike()
        why = why or self._effects(versions, survey)
        if why:
            self.obstacle = self._advised(why)
            owner._replays.forget(self.step)
            self.step = 0

    def _alike(self) -> Making | None:
        """The earlier capture that this one went the way of, if any."""
        goes_like = self._owner._replays.goes_like
        return next((m for m in self._making if not m.step or goes_like(self.step, m.step)), None)

    def _compared(self) -> Making | None:
        """The capture that would have been replayed, with which this one is compared, if any."""
        found = self._owner._replays.differs(self.step, [m.reads.watch for m in self._making])
        self.went, self.differs = found or (None, "")
        return self._making[self.went] if self.went is not None else None

    def _look_at_results(
        self, out: Any, survey: Survey, recorder: HostRecorder, had: Any, why: str | None
    ) -> tuple[list[Any], list[int], str | None]:
        """Takes down what the call returned: its new tensors, and the places of those with a history among them."""
        containers = Containers(self._call.given.apart if self._call.given is not None else [], survey.is_older)
        flat, spec = pytree.tree_flatten(out, is_leaf=containers.end_at)
        if other := made_otherwise(out, spec, flat):
            why = why or f"it returns a {other}, of which a replay would make something else"
        leaves, parts, said = self._leaves(survey, containers)
        flat, why = flat + parts, why or said
        older_containers = containers.close()
        why = why or containers.obstacle
        copies = {id(copy) for _, copy in self._call.copies()}
        memory = Memory(self._inputs, self.reads.watch.tensors() if self.reads else (), copies)
        tensors: list[Result] = []
        results: list[Any] = []
        plain: list[Any] = [None] * len(flat)
        flow: list[int] = []
        told: dict[int, int] = {}
        for i, x in enumerate(flat):
            if any(x is c for c in older_containers):
                tensors.append(Result(i, None, x, 0))
                continue
            if not on_device(x):
                if type(x) in (Traced, Counted) and x._ltc_recorder is recorder:
                    told[i] = recorder.tell(x)
                elif isinstance(x, _KEPT) and type(x) not in (Traced, Counted):
                    plain[i] = x
                else:
                    kind = f"a tensor on {x.device}" if isinstance(x, torch.Tensor) else f"a {type(x).__qualname__}"
                    why = why or f"it returns {kind}, which is neither a tensor on ltc nor a plain value"
                continue
            if x.layout is not torch.strided:
                why = why or f"it returns a sparse tensor ({x.layout})"
                continue
            is_input = next((j for j, y in enumerate(self._inputs) if y is x), None)
            leaf = next((t for t, _ in had if t.grad is x), None) if is_input is None else None
            if leaf is not None:
                at_input = next((j for j, y in enumerate(self._inputs) if y is leaf), None)
                tensors.append(Result(i, None, None, 0, leaf if at_input is None else at_input))
                continue
            if is_input is not None or survey.is_older(x):
                tensors.append(Result(i, is_input, None if is_input is not None else x, 0))
                continue
            why = why or memory.obstacle(x)
            at = next((k for k, y in enumerate(results) if y is x), None)
            if at is None:
                at = len(results)
                results.append(x)
                if x.grad_fn is not None and not why:
                    said = spent(x)
                    if said:
                        self.spent.append((at, x.grad_fn.name(), said))
                    else:
                        flow.append(at)
            tensors.append(Result(i, None, None, at, None, memory.shown(x)))
        why = why or shown_results(tensors, results)
        why = why or strange_views(tensors, results, self._inputs, [t.grad for t, _ in had])
        late = recorder.late(len(results))
        if recorder.awaited is not None:
            read = recorder.awaited.take()
            results += read if late is not None else []
            self._known_numbers = [value for _, value in recorder.awaited.told]
        self.record = Record(spec, plain, tensors, told, leaves, late)
        return results, flow, why

    def _leaves(self, survey: Survey, containers: Containers) -> tuple[list[Leave], list[Any], str]:
        """What the call left in places and at the ends of lists, taken apart; why no replay can, or nothing."""
        found = [f for f in self._call.left if f.now is not f.value]
        other = [f for f in found if not Left.takes(f.now)]
        why = f"it puts {_kind_of(other[0].now)} in the place of a tensor ({other[0].name})" if other else ""
        appended: list[tuple[Any, Any, Any]] = [(xs, None, x) for xs, new in survey.appended() for x in new]
        leaves: list[Leave] = []
        flat: list[Any] = []
        for holder, name, x in [*[(f.holder, f.name, f.now) for f in found], *appended]:
            parts, spec = pytree.tree_flatten(x, is_leaf=containers.end_at)
            leaves.append(Leave(holder, name, spec))
            flat += parts
        return leaves, flat, why

    def _look_at_grads(
        self, had: Any, results: list[Any], why: str | None
    ) -> tuple[tuple[list[Any], list[Any]], str | None]:
        """Takes down whose gradients the call set, which become results too, and whose it took away."""
        gets, loses, writes = [], [], []
        position = {id(x): i for i, x in enumerate(self._inputs)}
        for t, grad in had:
            now = t.grad
            if now is grad:
                continue
            place = position.get(id(t), t)
            if now is None:
                loses.append(place)
            elif not on_device(now) or now.requires_grad:
                why = why or "it leaves a gradient with history"
            elif now.layout is not torch.strided:
                why = why or f"it leaves a sparse gradient ({now.layout})"
            else:
                gets.append(place)
                results.append(now)
                writes.append(_version(now))
        self.grads = ([position.get(id(t), t) for t, g in had if g is not None], gets, loses, writes)
        return (gets, loses), why

    def _flows(
        self,
        flow: list[int],
        results: list[torch.Tensor],
        survey: Survey,
        recorder: HostRecorder,
        leaves_grads: bool,
    ) -> str:
        """How gradients flow through these results; why a replay's cannot, or nothing."""
        if survey.uses_grads or leaves_grads:
            return (
                "it returns a tensor with history and deals with gradients itself: "
                "return tensor.detach() where none is wanted"
            )
        if recorder.handed:
            return "gradients flow through numbers that the host computes"
        self.has_history = True
        self._last_nodes = [results[i].grad_fn for i in flow]
        if self._saving is None or self.reads is None or not self._saving.begins_at(self._begins(self.reads)):
            return ""
        way = self._saving.way(self._inputs, self.reads.watch.tensors(), results, flow, survey.is_older)
        if isinstance(way, str):
            return way
        self.way = way
        return ""

    def lead_back(self) -> str:
        """From here on gradients flow through what was captured as they do through a replay; why they cannot, or
        nothing."""
        if self.way is None or self.record is None:
            return ""
        why = self.way.prove(self._inputs, self._results, self._twice)
        if not why:
            self.record.lead_back(self.way)
        return why

    def ask_for_gradients(self) -> None:
        """Finds out whether gradients of gradients are taken of a call that stays recorded."""
        for node in self._last_nodes:
            node.register_prehook(self._twice)
        self._last_nodes = []

    def again(self) -> Any:
        """What the step returned, as a replay returns it."""
        assert self.record is not None
        results = _ltc.without_history(self._results, self.spent)
        return self.record.unflatten(self._inputs, results, self._told, self._known_numbers)

    def _effects(self, versions: list[tuple[torch.Tensor, int]], survey: Survey) -> str:
        """What the call changed; why a replay cannot, or nothing."""
        owner = self._owner
        if self.like is None:
            # Where it may be another way because of what changes, that is to be known all the same.
            if self._before is not None:
                found = NewlyLeft(owner, survey, self._before)
                found.learn()
                owner.sets_modes = owner.sets_modes or found.sets_modes
            return ""
        reads = self.like.reads
        found = NewlyLeft(owner, survey, reads)
        if not reads.sets_modes and found.sets_modes:
            owner.sets_modes = True  # the next capture knows that replays do
            return ""
        changes = found.not_renewed(self._old, self._moved)
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
        # Inputs, and then the gradients there were.
        times_given = [(i, _version(x) - then) for i, (x, then) in enumerate(versions)]
        self.written = (tensors, times, [(i, n) for i, n in times_given if n])
        self.is_plain = True
        return ""
