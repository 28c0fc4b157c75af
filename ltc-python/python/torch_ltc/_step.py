"""``torch_ltc.compile``: a step captured once and replayed without recording."""

import contextlib
import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._host import HostProgram, HostTape, Traced
from torch_ltc._runtime import on_device
from torch_ltc._survey import Place, Survey

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: Captures that may differ from the one before until calls like these are left alone.
_MAX_ATTEMPTS = 4
#: Captures until there have to be about as many replays: a capture costs more than recording.
_MAX_CAPTURES = 32
#: Different plain values and structures of arguments kept per step.
_MAX_KEYS = 256
#: Whether this thread captures a step: others within it are part of it.
_capturing = threading.local()
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _every() -> int:
    """How many replays it takes until one is recorded and compared instead (``LTC_CHECK_STEPS``); 0: never."""
    try:
        return max(int(os.environ.get("LTC_CHECK_STEPS") or 0), 0)
    except ValueError:
        raise ValueError(f"LTC_CHECK_STEPS={os.environ['LTC_CHECK_STEPS']!r} is not a number") from None


_CHECK_EVERY = _every()


class StaleStep(RuntimeError):
    """A replay would not have done what the step does (found by ``LTC_CHECK_STEPS``)."""


def _by_value(x: Any) -> Any:
    """A plain value as part of a key: by type, and bit by bit."""
    if type(x) is float:
        return x.hex()
    return (type(x), x.real.hex(), x.imag.hex()) if type(x) is complex else (type(x), x)


class _Result(NamedTuple):
    """One of the results that are tensors: where it stands, and which it is."""

    place: int
    #: Position among the inputs, where the step returns one of these as it is.
    of_input: int | None
    #: A tensor that is older than the step, returned as it is.
    itself: Any
    #: Position among the results of the program.
    of_program: int


class _Record:
    """What Python keeps of a captured step."""

    def __init__(self, spec: Any, plain: list[Any], tensors: list[_Result]) -> None:
        self._spec, self._plain, self._tensors = spec, plain, tensors
        self.only = spec.is_leaf() and len(tensors) == 1 and tensors[0].of_input is None and tensors[0].itself is None

    def unflatten(self, inputs: tuple[Any, ...], results: list[torch.Tensor]) -> Any:
        """What the step returns, with these tensors."""
        flat = list(self._plain)
        for place, of_input, itself, of_program in self._tensors:
            flat[place] = itself if itself is not None else results[of_program] if of_input is None else inputs[of_input]
        return pytree.tree_unflatten(flat, self._spec)

    def like(self, other: "_Record") -> bool:
        """Whether both return the same, but for the values of tensors."""
        return (str(self._spec), [*map(_by_value, self._plain)], [(t[0], t[1], id(t[2]), t[3]) for t in self._tensors]) == (
            str(other._spec), [*map(_by_value, other._plain)], [(t[0], t[1], id(t[2]), t[3]) for t in other._tensors]
        )


class _Making:
    """A captured step that the next call may confirm."""

    def __init__(self, watch: "_Reads", step: int, program: HostProgram | None, attempts: int) -> None:
        self.reads, self.step, self.program, self.attempts = watch, step, program, attempts


class _Reads:
    """What a survey found, watched."""

    def __init__(self, survey: Survey, free: dict[tuple[int, Any], tuple[dict[Any, Any], Any]]) -> None:
        places, tensors = survey.places()
        self.places: list[Place] = places
        for holder, name in _rates(places):
            free.setdefault((id(holder), name), (holder, name))
        known = {(id(p.holder), p.name): i for i, p in enumerate(places) if p.kind == "entry"}
        whole = {id(p.holder) for p in places if p.kind == "dict"}
        lent = []
        for key, (holder, name) in free.items():
            if key not in known and key[0] in whole:
                known[key] = len(places)
                places.append(Place("entry", holder, name, None))
            if key in known and type(holder.get(name)) is float:
                lent.append((known[key], holder, name))
        self.watch = _ltc.Watch(places, tensors, survey.uses_grads)
        for index, _, _ in lent:
            self.watch.free(index)
        #: Numbers that may change, as ``(dict, key)``: replays read them.
        self.free = [(holder, name) for _, holder, name in lent]
        self.uses_grads = survey.uses_grads

    def covers(self, other: "_Reads") -> bool:
        """Whether all that the other reads is watched here."""
        mine = {(p.kind, id(p.holder), id(p.name) if p.kind == "slot" else p.name) for p in self.places}
        theirs = {(p.kind, id(p.holder), id(p.name) if p.kind == "slot" else p.name) for p in other.places}
        tensors = set(map(id, self.watch.tensors()))
        return theirs <= mine and tensors.issuperset(map(id, other.watch.tensors())) and self.uses_grads == other.uses_grads

    def leaves(self) -> list[torch.Tensor]:
        """Tensors whose gradients the step may read or leave."""
        if not self.uses_grads:
            return []
        return [t for t in self.watch.tensors() if on_device(t) and t.is_leaf and t.requires_grad]


def _rates(places: list[Place]) -> Iterator[tuple[dict[Any, Any], str]]:
    """Learning rates: the setting that schedules change."""
    for place in places:
        if place.kind == "dict" and "params" in place.holder and type(place.holder.get("lr")) is float:
            yield place.holder, "lr"


#: What settings of optimisers are called.
_WORDS = {"lr": "the learning rate"}


@contextlib.contextmanager
def _lent(tape: HostTape, slots: list[tuple[dict[Any, Any], Any]]) -> Iterator[None]:
    """While a step is captured, numbers that may change remember what becomes of them."""
    lent = [(holder, name, holder[name], tape.setting(holder, name)) for holder, name in slots if type(holder.get(name)) is float]
    for holder, name, _, traced in lent:
        holder[name] = traced
    try:
        yield
    finally:
        for holder, name, plain, traced in lent:
            now = holder.get(name)
            if now is not traced:
                tape.obstacle = tape.obstacle or f"it changes {_WORDS.get(name, name)} itself"
                plain = float(now) if type(now) is Traced else now
            holder[name] = plain


class _Class:
    """Calls with inputs of one kind, and arguments of one structure with the same plain values."""

    def __init__(self) -> None:
        self.making: list[_Making] = []
        self.refusal = ""
        #: What the last call read.
        self.reads: _Reads | None = None


class CompiledStep(Generic[_P, _R]):
    """A step function that is replayed where that is safe; see :func:`compile`."""

    def __init__(self, fn: Callable[_P, _R]) -> None:
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._replays = _ltc.Replays()
        self._keys: OrderedDict[Any, str] = OrderedDict()
        self._last_key = 0
        self._classes: dict[int, _Class] = {}
        #: Numbers that changed between calls, by dict and key.
        self._free: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        #: What any call read last: an idea of what the next one will.
        self._reads: _Reads | None = None
        self._recorded = 0
        self._captures = 0
        self._refusal = ""
        self._until_check = _CHECK_EVERY
        self._threads: set[int] = set()

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Replays the step on these arguments, or records it. Within a step that is being captured it is part of that."""
        if getattr(_capturing, "now", False):
            return self._fn(*args, **kwargs)
        inputs: tuple[Any, ...] = args
        key = _ARITIES.get(len(args)) if not kwargs else None
        if key is None or not all(map(_is_tensor, args)):
            flat, spec = pytree.tree_flatten((args, kwargs))
            inputs = tuple([x for x in flat if on_device(x)])
            others = [x for x in flat if not on_device(x)]
            if not all(isinstance(x, _PLAIN) for x in others):
                return self._record("an argument is neither a tensor on ltc nor a plain value", args, kwargs)
            key = self._key_of((str(spec), tuple([on_device(x) for x in flat]), tuple(map(_by_value, others))))
        if self._until_check:
            self._until_check -= 1
            if not self._until_check:
                self._until_check = _CHECK_EVERY
                return self._compared(key, inputs, args, kwargs)
        hit = self._replays.replay(inputs, key)
        if hit is None:
            return self._miss(key, inputs, args, kwargs)
        record, results = hit
        only: Any = results[0] if record.only else record.unflatten(inputs, results)
        return only

    def _key_of(self, outside: Any) -> str:
        try:
            key = self._keys.get(outside)
        except TypeError:
            return f"?{outside!r}"
        if key is None:
            self._last_key += 1
            key = self._keys[outside] = f"k{self._last_key}"
            if len(self._keys) > _MAX_KEYS:
                self._keys.popitem(last=False)
        return key

    def _record(self, why: str, args: Any, kwargs: Any) -> Any:
        self._refusal = why
        self._recorded += 1
        out = self._fn(*args, **kwargs)
        _ltc.mark_step(False)
        return out

    def _miss(self, key: str, inputs: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        """A call that is not replayed: it is recorded, and captured where that may help later ones."""
        if not all(map(on_device, inputs)):
            return self._record("an argument is neither a tensor on ltc nor a plain value", args, kwargs)
        number, gone = self._replays.classify(inputs, key)
        self._classes.pop(gone, None)
        kind = self._classes.setdefault(number, _Class())
        if kind.refusal:
            return self._record(kind.refusal, args, kwargs)
        if self._captures > _MAX_CAPTURES + self._replays.replayed():
            why = self._changed(kind) or "what it is given or reads changes from call to call"
            return self._record(why, args, kwargs)
        return self._capture(number, kind, inputs, args, kwargs)

    def _changed(self, kind: _Class) -> str:
        reads = kind.reads
        if reads is None:
            return "plain values it is given change from call to call: hand in tensors instead"
        changes = reads.watch.changes()
        return f"{reads.places[changes[0]]} changes from call to call" if changes else ""

    def _found(self, number: int, kind: _Class) -> _Making | None:
        """An earlier capture in whose state the program is now."""
        fallen = self._replays.fallen(number)
        if fallen is not None:
            step, watch = fallen
            reads = next((r for r in self._ready_reads if r.watch is watch), None)
            if reads is not None:
                kind.making.append(_Making(reads, step, None, 0))
        return next((m for m in kind.making if m.reads.watch.check()), None)

    @property
    def _ready_reads(self) -> list[_Reads]:
        return self.__dict__.setdefault("_kept_reads", [])

    def _free_numbers(self, reads: _Reads) -> None:
        """Floats that changed since: replays shall read them."""
        for index in reads.watch.changes():
            place = reads.places[index]
            if place.kind == "entry" and reads.watch.float(index) is not None and type(place.holder.get(place.name)) is float:
                self._free.setdefault((id(place.holder), place.name), (place.holder, place.name))

    def _capture(self, number: int, kind: _Class, inputs: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        self._captures += 1
        self._recorded += 1
        making = self._found(number, kind)
        if making is None and kind.reads is not None:
            self._free_numbers(kind.reads)
        before = making.reads if making is not None else kind.reads or self._reads
        run = _Run(self, inputs, before, making)
        out = run.call(args, kwargs)
        kind.reads = self._reads = run.reads or before
        if making is not None and making in kind.making:
            kind.making.remove(making)
        if run.obstacle:
            self._refusal = kind.refusal = run.obstacle
            _ltc.mark_step(False)
            return out
        assert run.reads is not None
        settled = making is not None and making.reads.covers(run.reads)
        reads = making.reads if settled and making is not None else run.reads
        why = ""
        if run.step:
            if making is not None and making.step:
                why = self._replays.confirm(run.step, making.step)
                if not why and settled and run.is_plain:
                    self._kept_reads_of(reads)
                    self._replays.ready(number, run.step, reads.watch, run.program, run.grads, run.written, run.spent, run.record)
                    _ltc.mark_step(False)
                    return out
            attempts = making.attempts + 1 if making is not None else 0
            if attempts >= _MAX_ATTEMPTS:
                self._refusal = kind.refusal = why or "it reads something else each time"
                self._replays.forget(run.step)
                _ltc.mark_step(False)
                return out
        else:
            attempts = 0
        kind.making.insert(0, _Making(reads, run.step, run.program, attempts))
        for old in kind.making[8:]:
            self._replays.forget(old.step)
        del kind.making[8:]
        _ltc.mark_step(False)
        return out

    def _kept_reads_of(self, reads: _Reads) -> None:
        kept = self._ready_reads
        kept.append(reads)
        del kept[:-512]

    def _compared(self, key: str, inputs: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        """Records a call that could be replayed, and compares it with what the replay would have done."""
        fitting = self._replays.fitting(inputs, key)
        if fitting is None:
            return self._miss(key, inputs, args, kwargs)
        watch, record = fitting
        reads = next((r for r in self._ready_reads if r.watch is watch), None)
        self._recorded += 1
        run = _Run(self, inputs, reads, _Making(reads, 0, None, 0) if reads is not None else None)
        out = run.call(args, kwargs)
        _ltc.mark_step(False)
        why = run.obstacle
        if not why and run.step:
            why = self._replays.differs(run.step, watch)
        if not why and run.record is not None and not run.record.like(record):
            why = "it returns something else"
        if not why and reads is not None and run.reads is not None and not reads.covers(run.reads):
            mine = {(p.kind, id(p.holder), id(p.name) if p.kind == "slot" else p.name) for p in reads.places}
            other = [p for p in run.reads.places if (p.kind, id(p.holder), id(p.name) if p.kind == "slot" else p.name) not in mine]
            why = f"it reads {other[0] if other else 'other tensors'}, which it did not when it was captured"
        if why:
            raise StaleStep(f"a replay of {self._fn!r} would not have been the step: {why}")
        return out

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)`` calls so far."""
        return self._replays.replayed(), self._recorded

    @property
    def refusal(self) -> str:
        """Why it is not replayed; an empty string when it is (or was not tried yet)."""
        return self._refusal

    def explain(self) -> str:
        """One line about how the step runs."""
        replayed, recorded = self.counts
        why = f"; {self.refusal}" if self.refusal else ""
        return f"{replayed} calls replayed, {recorded} recorded{why}"


_ARITIES = {n: str(n) for n in range(64)}
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))


def _is_tensor(x: Any) -> bool:
    return type(x) in _TENSORS or isinstance(x, torch.Tensor)


def _spent(x: torch.Tensor) -> str:
    """What going back through a tensor's history would say where the step has done so and let it go; empty where it can be."""
    seen: set[Any] = set()
    ahead: list[Any] = [x.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for name in dir(type(node)):
            if name.startswith("_saved_") or name == "saved_tensors":
                try:
                    getattr(node, name)
                except RuntimeError as e:
                    return str(e)
        ahead += [n for n, _ in node.next_functions]
    return ""


def _containers(x: Any) -> Iterator[Any]:
    """The containers that arguments come in."""
    if isinstance(x, (tuple, list, dict)):
        yield x
        for y in x.values() if isinstance(x, dict) else x:
            yield from _containers(y)


class _Run:
    """One recorded call with what it read, changed and returned."""

    def __init__(self, step: CompiledStep[..., Any], inputs: tuple[Any, ...], before: _Reads | None, making: _Making | None) -> None:
        self._owner, self._inputs, self._before, self._making = step, inputs, before, making
        self.obstacle = ""
        self.reads: _Reads | None = None
        self.record: _Record | None = None
        self.program: HostProgram | None = None
        #: The capture's number; 0 where there is none.
        self.step = 0
        #: Leaves whose gradients are inputs; leaves that get results as gradients; those that lose theirs.
        self.grads: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        #: Tensors that are written and how often; inputs by position.
        self.written: tuple[list[Any], list[int], list[tuple[int, int]]] = ([], [], [])
        #: Results whose history is used up, with its name and what it says.
        self.spent: list[tuple[int, str, str]] = []
        #: Whether what it changed besides is known.
        self.is_plain = False

    def call(self, args: Any, kwargs: Any) -> Any:
        """Calls the step, and finds out what it did."""
        owner, before = self._owner, self._before
        captures = before is not None
        leaves = [*(before.leaves() if before else []), *[x for x in self._inputs if x.is_leaf and x.requires_grad]]
        if before is not None:
            before.watch.refresh()
        leaves = list({id(t): t for t in leaves}.values())
        had = [(t, t.grad) for t in leaves]
        givens = (*self._inputs, *[g for _, g in had if g is not None])
        versions = [x._version if not x.is_inference() else 0 for x in self._inputs]
        ambient = _ltc.Ambient()
        tape, survey = HostTape(), Survey([*_containers((args, kwargs)), *givens])
        if captures:
            owner._replays.begin(self._inputs)
        _capturing.now = True
        try:
            with _lent(tape, before.free if before else []), tape, survey:
                out = owner._fn(*args, **kwargs)
        except BaseException:
            if captures:
                owner._replays.abort()
            raise
        finally:
            _capturing.now = False
        try:
            self._look(survey, tape, out, ambient, had, givens, versions, captures)
        except BaseException:
            owner._replays.abort()
            raise
        return self._returned(out)

    def _returned(self, out: Any) -> Any:
        flat, spec = pytree.tree_flatten(out)
        if any(type(x) is Traced for x in flat):
            return pytree.tree_unflatten([float(x) if type(x) is Traced else x for x in flat], spec)
        return out

    def _refuse(self, why: str, captures: bool) -> None:
        self.obstacle = self.obstacle or why
        if captures:
            self._owner._replays.abort()

    def _look(self, survey: Survey, tape: HostTape, out: Any, ambient: _ltc.Ambient, had: Any, givens: Any, versions: Any, captures: bool) -> None:
        """Finds out what the call did."""
        owner = self._owner
        older = survey.is_older
        self.reads = _Reads(survey, owner._free)
        self.reads.watch.expect_grads([(t, g is not None) for t, g in had])
        why = survey.obstacle or tape.obstacle
        if not why and ambient.changed():
            why = f"it changes {ambient.changed()}"
        flat, spec = pytree.tree_flatten(out)
        tensors: list[_Result] = []
        results: list[Any] = []
        plain: list[Any] = []
        for i, x in enumerate(flat):
            plain.append(None)
            if not on_device(x):
                plain[i] = x
                if type(x) is Traced:
                    why = why or "it returns a number that the host computes"
                elif not isinstance(x, _PLAIN):
                    why = why or "it returns what is neither a tensor on ltc nor a plain value"
                continue
            given = next((j for j, y in enumerate(self._inputs) if y is x), None)
            if given is not None or older(x):
                tensors.append(_Result(i, given, None if given is not None else x, 0))
                continue
            if x.requires_grad and x.grad_fn is None:
                why = why or "it returns a leaf that requires a gradient"
            elif x.is_conj() or x.is_neg():
                why = why or "it returns a conjugated or negated view"
            elif type(x) not in _TENSORS:
                why = why or f"it returns a {type(x).__name__}"
            at = next((k for k, y in enumerate(results) if y is x), None)
            if at is None:
                at = len(results)
                results.append(x)
                if x.grad_fn is not None and not why:
                    said = _spent(x)
                    if not said:
                        why = "it returns a tensor with history: return tensor.detach() where no gradient is wanted"
                    self.spent.append((at, x.grad_fn.name(), said))
            tensors.append(_Result(i, None, None, at))
        self.record = _Record(spec, plain, tensors)
        if survey.uses_grads and torch.is_grad_enabled():
            outside = [t for t in [*self.reads.watch.tensors(), *self._inputs] if on_device(t) and not t.is_leaf]
            if any(t.requires_grad for t in outside):
                why = why or "it differentiates through a tensor that was made outside"
        gets, loses = [], []
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
            else:
                gets.append(place)
                results.append(now)
        self.grads = ([position.get(id(t), t) for t, g in had if g is not None], gets, loses)
        if not why and self._making is not None:
            why = self._effects(versions)
            self.is_plain = not why
        if why:
            return self._refuse(why, captures)
        if not captures:
            return
        self.program = tape.program()
        identity = self.program.identity if self.program else ""
        # The survey holds nothing any more that the step dropped.
        self.step, why = owner._replays.end(givens, tuple(results), identity, tape.handed)
        if why:
            self.obstacle = why

    def _effects(self, versions: list[int]) -> str:
        """What the call changed; why a replay cannot, or nothing."""
        making = self._making
        assert making is not None
        reads = making.reads
        changes = reads.watch.changes()
        if changes:
            return f"it changes {reads.places[changes[0]]}"
        tensors, times = [], []
        for t, is_other, written in reads.watch.effects():
            if is_other:
                return f"it changes what a tensor of shape {list(t.shape)} is (its storage, layout, hooks or requires_grad)"
            if t.device.type == "ltc" and not any(t is x for x in self._inputs):
                tensors.append(t)
                times.append(written)
        now = [x._version if not x.is_inference() else 0 for x in self._inputs]
        self.written = (tensors, times, [(i, n - v) for i, (n, v) in enumerate(zip(now, versions)) if n != v])
        return ""


@overload
def compile(fn: Callable[_P, _R]) -> CompiledStep[_P, _R]: ...
@overload
def compile(fn: None = None) -> Callable[[Callable[_P, _R]], CompiledStep[_P, _R]]: ...
def compile(fn: Any = None) -> Any:
    """Makes a training step (forward, backward, optimiser) replay itself without being recorded again.

    ``fn`` may be a function, a method or a module. While it is captured (three calls), all that its Python code reads
    besides its arguments is taken down: attributes, globals, cells, containers, settings of optimisers, training flags,
    hooks, which tensors there are and which have gradients. A replay happens only if all of that, the kind of its inputs
    and the thread's state (autocast, grad mode, defaults) are as they were; else the call is recorded, and captured anew.
    Numbers that change from call to call (a learning rate) are read by replays. Steps that cannot be replayed are
    recorded each time, which is always right: :meth:`CompiledStep.explain` says why, with the line.

    What a replay leaves is what the step leaves: results, gradients, tensors written in place and their versions. What
    ``fn`` does to CPU tensors, and computes from them and from numbers that change, is repeated on the host. Steps within
    steps are captured as parts of the outer one. ``LTC_CHECK_STEPS=n`` records every n-th call that could be replayed, and
    raises :class:`StaleStep` where the replay would have done something else.
    """
    if fn is None:
        return compile
    return CompiledStep(fn)
