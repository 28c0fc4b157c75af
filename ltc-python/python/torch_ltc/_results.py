"""What a captured step returns, and how a replay builds the same from the results of its program.

A :class:`ReturnSpec` is made once per capture. It has the structure of the return value (a pytree), the plain values in
it, and one :class:`Result` for each tensor: an input, a tensor that is older than the step, the gradient of a leaf, or
a result of the program. A result may be a view of another tensor, or share its memory and version counter; an
:class:`Alias` says so. What a step leaves in places or appends to lists (:class:`LeftResult`) is flattened behind the
return value. The functions below find aliases, and refuse those that a replay cannot make.
"""

import contextlib
import enum
import itertools
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from torch_ltc._arguments import TENSORS
from torch_ltc._awaited import KeptReads, LateProgram, Read
from torch_ltc._history import Backward, storage_of
from torch_ltc._left_places import freed_error
from torch_ltc._names import PLAIN, by_value
from torch_ltc._runtime import is_dense, is_tensor, on_device
from torch_ltc._traced import TracedFloat, TracedInt

if TYPE_CHECKING:
    from torch_ltc._host import HostRecorder

#: The creation meta of views that may be written in place under any grad mode.
_ORDINARY = torch._C._autograd.CreationMeta.DEFAULT


class Alias(NamedTuple):
    """The tensor (the base) whose storage a result shares, and mostly its version counter, too."""

    #: Which tensor `of` names: "input" or "result" (of the program) by position, or "older", a tensor that is older
    #: than the step, itself.
    kind: str
    of: Any
    #: Whether autograd takes the result for a view of the base; a view of a detached tensor is none.
    is_view: bool
    #: How autograd says the view was made, on which it depends whether the view may be written in place.
    creation_meta: Any = _ORDINARY
    #: Whether the result has a version counter of its own, as `x.data` has.
    counts_alone: bool = False

    def find(self, inputs: tuple[Any, ...], results: list[torch.Tensor]) -> Any:
        """The base, in a call with these inputs and these results of the program."""
        return self.of if self.kind == "older" else (inputs if self.kind == "input" else results)[self.of]

    @property
    def key(self) -> Any:
        """Equal where results of two captures share memory in the same way."""
        return (
            self.kind,
            id(self.of) if self.kind == "older" else self.of,
            self.is_view,
            str(self.creation_meta),
            self.counts_alone,
        )


class Result(NamedTuple):
    """One tensor among what the step returns: where it stands, and which tensor it is. The first of `of_leaf`,
    `itself` and `of_input` that is not `None` says so; where all are, `of_program` does."""

    #: Position among the leaves of the flattened return value.
    place: int
    #: The position of the input that the step returns as it is.
    of_input: int | None
    #: The object that is older than the step and that it returns as it is: a tensor, or a whole container.
    itself: Any
    #: Position among the results of the program.
    of_program: int
    #: The leaf whose gradient is returned, or its position if it is an input.
    of_leaf: Any = None
    #: Whose memory a result of the program shares, if that of another tensor.
    alias: Alias | None = None


class LeftResult(NamedTuple):
    """A place in which the step leaves something that it makes."""

    #: The dict in which it sets an entry, or the list to which it appends.
    holder: dict[Any, Any] | list[Any] | deque[Any]
    #: The key of the entry; `None` for a list or deque.
    name: Any
    #: The structure (a pytree's `TreeSpec`) of what it leaves.
    spec: Any
    #: The position of the entry in the dict: entries that a step adds are added by replays in the same order. In a list
    #: or deque, the position counted from its end, when the step has ended.
    position: int = 0

    def put(self, flat: list[Any], again: bool) -> None:
        """Leaves the value with these leaves in the place; or `again`, where the step has just left one."""
        x = pytree.tree_unflatten(flat, self.spec)
        if not isinstance(self.holder, (list, deque)):
            self.holder[self.name] = x
        elif again:
            self.holder[self.position] = x
        else:
            self.holder.append(x)


class ReturnSpec:
    """How a replay of one capture builds what the step returns, and leaves what the step leaves."""

    def __init__(
        self,
        spec: Any,
        leaves: "ReturnedLeaves",
        left_results: "list[LeftResult]",
        late: LateProgram | None,
        first_read: int,
    ) -> None:
        tensors = leaves.tensors
        #: Lines of the host that run when the replay's program has run, since they use numbers that are read off it.
        self.late = late
        #: The structure of the return value; plain values by place (`None` where something else stands); and tensors.
        self._spec, self._plain, self._tensors = spec, leaves.plain, tensors
        #: What the step leaves in places. Its leaves stand behind those of the return value, in this order.
        self._left_results = left_results
        #: The same in the order in which replays leave it, with where the leaves of each begin and end.
        ends = [*itertools.accumulate((left.spec.num_leaves for left in left_results), initial=spec.num_leaves)]
        self._puts = sorted(zip(left_results, ends, ends[1:]), key=lambda put: put[0].position)
        #: Computed numbers that are returned, by place: the position of each among the numbers that the host part
        #: yields, or, as `-1 - position`, among those that :attr:`late` yields.
        self._returned_numbers = leaves.returned
        #: What is read off the device and only kept, by place; and the position of the first result that is read so.
        self._read, self._first_read = leaves.read, first_read
        #: Whether the step returns one result of the program and nothing else, which replays can return right away.
        bare = spec.is_leaf() and not left_results and late is None and not leaves.read and len(tensors) == 1
        self.is_single = bare and tensors[0][1:3] + tensors[0][4:] == (None,) * 4
        #: Results of the program that share memory with another tensor, by position.
        self._aliases = {t.of_program: t.alias for t in tensors if t.alias is not None}
        self._backward: Backward | None = None
        #: The version counters of results that the step wrote to in place, by position among the program's results.
        self._versions: dict[int, int] = {}

    @property
    def has_backward(self) -> bool:
        """Whether gradients flow through the results of replays."""
        return self._backward is not None

    def note_versions(self, results: list[Any]) -> None:
        """Notes how often the step wrote to each of its new results in place (``Tensor._version``): those of replays
        count as much."""
        own = {t.of_program for t in self._tensors if t.of_input is t.itself is t.of_leaf is t.alias is None}
        counts = {i: results[i]._version for i in own if not results[i].is_inference()}
        self._versions = {i: n for i, n in counts.items() if n}
        self.is_single = self.is_single and not self._versions

    def _set_versions(self, results: list[torch.Tensor]) -> None:
        written = tuple(results[i] for i in self._versions)
        torch._C._autograd._unsafe_set_version_counter(written, tuple(self._versions.values()))

    def attach_backward(self, backward: Backward) -> None:
        """Has gradients flow through the results of replays, by this backward pass."""
        self._backward, self.is_single = backward, False

    def unflatten(
        self,
        inputs: tuple[Any, ...],
        results: list[torch.Tensor],
        returned: Sequence[float] | None,
        already_read: list[float] | None = None,
    ) -> Any:
        """Builds what the step returns from its inputs, the results of the program and the numbers that the host part
        yielded (`returned`), and leaves in places what the step leaves there. `already_read` is given after a call that
        was recorded, whose tensors have lost their history to replays: the numbers that it read off the device. Then
        what the call left is replaced, so that gradients flow through that, too."""
        late = already_read
        if late is None:
            late = self.late.run(results, returned) if self.late is not None else []
        if self._versions:
            self._set_versions(results)  # before they are saved for the backward pass, which compares them
        if self._backward is not None:
            results = self._backward.wrap(inputs, results)
            if self._versions:
                self._set_versions(results)
        flat = list(self._plain)
        if self._aliases:
            results = list(results)
            for at, alias in self._aliases.items():
                results[at] = _view(alias.find(inputs, results), results[at], alias)
        for place, at in self._returned_numbers.items():
            flat[place] = late[-1 - at] if at < 0 else (returned or ())[at]
        if self._read:
            known: dict[Any, Any] = {}
            for place, read in self._read.items():
                flat[place] = read.of(known, results, self._first_read)
        for place, of_input, itself, of_program, of_leaf, _ in self._tensors:
            if of_leaf is not None:
                flat[place] = (inputs[of_leaf] if type(of_leaf) is int else of_leaf).grad
            else:
                flat[place] = (
                    itself if itself is not None else results[of_program] if of_input is None else inputs[of_input]
                )
        if self._left_results:
            for left, begins, end in self._puts:
                left.put(flat[begins:end], again=already_read is not None)
            del flat[self._spec.num_leaves :]
        return pytree.tree_unflatten(flat, self._spec)

    @property
    def left_places(self) -> list[Any]:
        """The places in which the step leaves something, with the plain values that it leaves there, as values that can
        be compared between captures."""
        places = [(id(holder), name, str(spec)) for holder, name, spec, _ in self._left_results]
        return [*places, *map(by_value, self._plain[self._spec.num_leaves :])]

    def is_same_as(self, other: "ReturnSpec") -> bool:
        """Whether both return and leave the same, but for the values of tensors."""

        def all_of(record: "ReturnSpec") -> Any:
            by = lambda x: x if type(x) is int else id(x)
            which = [(t[0], t[1], id(t[2]), t[3], by(t[4]), t[5] and t[5].key) for t in record._tensors]
            return (
                str(record._spec),
                [*map(by_value, record._plain)],
                which,
                record._returned_numbers,
                record._read,
                record.left_places,
            )

        return all_of(self) == all_of(other)


def _view(base: torch.Tensor, shown: torch.Tensor, alias: Alias) -> torch.Tensor:
    """A tensor with the sizes, strides and offset of `shown` (a result of the program, without a history) that shares
    the version counter of `base`, whose storage both have: a view of `base`, or detached from it, as `alias` says."""
    if shown.is_inference() and not base.is_inference():
        return shown  # it has no version counter
    size, stride, offset = shown.size(), shown.stride(), shown.storage_offset()
    with torch.inference_mode(shown.is_inference()) if base.is_inference() else contextlib.nullcontext():
        if base.dtype != shown.dtype:
            base = torch.view_as_real(base)
        if base.is_inference():
            return base.as_strided(size, stride, offset)
    if alias.is_view and not base.requires_grad:
        x = base.as_strided(size, stride, offset)
        if alias.creation_meta is not _ORDINARY:
            torch._C._autograd._set_creation_meta(x, alias.creation_meta)
        return x
    # A view of a leaf requires a gradient even under `no_grad`, so it is detached.
    with torch.no_grad():
        base = base.data if alias.counts_alone else base
        return base.as_strided(size, stride, offset).detach()


def is_value(x: Any) -> bool:
    """Whether each replay may return this same object: an immutable value without attributes of its own, or a member of
    an enum, which there is once."""
    is_immutable = isinstance(x, _VALUES) and type(x) not in (TracedFloat, TracedInt)
    return isinstance(x, enum.Enum) or (is_immutable and (type(x) in _VALUES or not getattr(x, "__dict__", None)))


#: Classes of values that calls may return.
_VALUES = (*PLAIN, torch.Size, torch.dtype, torch.device, torch.layout, torch.memory_format)


class KnownStorages:
    """The tensors that there were before a call, by storage, to find which of its results share memory with them."""

    def __init__(self, inputs: Sequence[torch.Tensor], older: Iterable[torch.Tensor], copies: Container[int]) -> None:
        given = [(x, "input", i) for i, x in enumerate(inputs)]
        known: list[tuple[torch.Tensor, str, Any]] = [*given, *[(x, "older", x) for x in older]]
        dense = [k for k in known if is_dense(k[0]) and id(k[0]) not in copies]
        self._by_storage = {storage_of(k[0]): k for k in reversed(dense)}

    def alias_of(self, x: torch.Tensor) -> Alias | None:
        """The older tensor or input with which a result without a history shares its storage, if it does."""
        known = self._by_storage.get(storage_of(x)) if x.grad_fn is None else None
        if known is None:
            return None
        base, kind, of = known
        return _alias(kind, of, x._is_view() and (x._base is base or x._base is base._base), x)

    def obstacle(self, x: torch.Tensor) -> str:
        """Why a replay cannot return a tensor that the call made; empty where it can."""
        if x.requires_grad and x.grad_fn is None:
            return "it returns a leaf that requires a gradient"
        if x.is_conj() or x.is_neg():
            return "it returns a conjugated or negated view"
        if type(x) not in TENSORS:
            return f"it returns a {type(x).__name__}"
        if x.grad_fn is None and x.dtype != self._by_storage.get(storage_of(x), (x,))[0].dtype:
            return "it returns a view of another dtype of a tensor that is older than the step"
        return f"it gives a tensor that it returns attributes ({', '.join(vars(x))})" if vars(x) else ""


def _alias(kind: str, of: Any, is_view: bool, x: torch.Tensor) -> Alias:
    return Alias(kind, of, is_view, torch._C._autograd._get_creation_meta(x) if is_view else _ORDINARY)


def _shares_version_counter(x: torch.Tensor, base: torch.Tensor) -> bool:
    """Whether a tensor has the same version counter as one whose storage it shares; `base.data` has not. Tries it out
    by counting a write to the base, which is then taken back."""
    if x.is_inference() or base.is_inference():
        return True
    was, before = base._version, x._version
    torch.autograd.graph.increment_version(base)
    counts = x._version != before
    torch._C._autograd._unsafe_set_version_counter((base,), (was,))
    return counts


def check_aliases(
    tensors: list[Result], results: list[torch.Tensor], inputs: Sequence[torch.Tensor], grads: Any
) -> str:
    """Notes in `tensors` which aliases have a version counter of their own. Returns why a replay cannot return an alias
    in the way that the step does, or an empty string. `grads`: the gradients that the leaves have now."""
    storages = {storage_of(g) for g in grads if is_dense(g)}
    alone: set[Any] = set()
    for i, t in enumerate(tensors):
        if t.of_input is not None or t.itself is not None or t.of_leaf is not None:
            continue
        x = results[t.of_program]
        if storage_of(x) in storages:
            return "it returns a part of a gradient: return a copy (`w.grad[1:].clone()`)"
        if t.alias is None:
            continue
        base = t.alias.find(tuple(inputs), results)
        if t.alias.creation_meta is not _ORDINARY and base.requires_grad:
            return "it returns a view that was made without gradients, or by an operator with several results"
        if not t.alias.is_view and not _shares_version_counter(x, base):
            if x._is_view() or storage_of(x) in alone:
                return "it returns parts of `x.data`, or several of one tensor: use detach()"
            alone.add(storage_of(x))
            tensors[i] = t._replace(alias=t.alias._replace(counts_alone=True))
    return ""


def note_aliases(tensors: list[Result], results: list[torch.Tensor]) -> str:
    """Notes in `tensors` which results share memory with another result. Returns why a replay cannot return them, or an
    empty string."""
    first: dict[int, int] = {}
    new = [t for t in tensors if t.of_input is t.itself is t.of_leaf is t.alias is None]
    for t in sorted(new, key=lambda t: results[t.of_program]._is_view()):
        x = results[t.of_program]
        at = first.setdefault(storage_of(x), t.of_program)
        base = results[at]
        if at == t.of_program or x.grad_fn is not None:
            continue
        if base._is_view() or (x._is_view() and x._base is not base):
            return "it returns tensors that share memory, and not the one that they are views of"
        if x.dtype not in (base.dtype, base.dtype.to_real()):
            return "it returns a view of another dtype of a tensor that it also returns"
        tensors[tensors.index(t)] = t._replace(alias=_alias("result", at, x._is_view(), x))
    return ""


def _members(x: Any) -> list[Any]:
    """What a container holds, one level deep."""
    return pytree.tree_leaves(x, is_leaf=lambda y: y is not x)


def not_rebuilt(x: Any, spec: pytree.TreeSpec, flat: list[Any]) -> str:
    """The class of a container in `x` that flattening and unflattening does not reproduce (a subclass, say), or an
    empty string."""
    ends = {id(y) for y in flat}
    pairs = [(x, pytree.tree_unflatten(flat, spec))]
    for mine, other in pairs:
        if type(mine) is not type(other):
            return type(mine).__qualname__
        if id(mine) not in ends:
            pairs += zip(*map(_members, (mine, other)))
    return ""


class ReturnedContainers:
    """The containers among what a call returned. Replays make new ones, one for each place, so a container that is
    returned in two places, or that is an argument, is an obstacle. One that is older than the step is returned as it
    is, and is not taken apart."""

    def __init__(
        self,
        given: list[Any],
        is_older: Callable[[Any], bool],
        is_held: Callable[[Any], bool],
        is_read: Callable[[Any], bool],
    ) -> None:
        self._given, self._is_older, self._is_held, self._is_read = given, is_older, is_held, is_read
        self._seen: list[Any] = []
        self.older: list[Any] = []
        self.obstacle = ""

    def end_at(self, x: Any) -> bool:
        """Whether flattening ends at this object: at a container that is older than the step, at a list that was read
        off the device, and at a shape."""
        kind = type(x)
        if kind is torch.Size or self._is_read(x):  # pytree would make a tuple of a size
            return True
        if issubclass(kind, (tuple, torch.Tensor)) or kind not in pytree.SUPPORTED_NODES:
            return False
        if any(x is y for y in self._given):
            self.obstacle = f"it returns a {kind.__qualname__} that it is given"
        elif self._is_older(x):
            self.older.append(x)
            return True
        elif self._is_held(x):
            self.obstacle = f"it returns a {kind.__qualname__} that something else holds"
        elif any(x is y for y in self._seen):
            self.obstacle = f"it returns one {kind.__qualname__} in two places"
        self._seen.append(x)
        return False

    def close(self) -> list[Any]:
        """Returns the containers that are older than the step, and lets go of everything else: `tree_flatten` leaves a
        reference cycle behind that holds this object."""
        older, self.older = self.older, []
        self._is_older = self._is_held = self._is_read = lambda x: False
        self._given, self._seen = [], []
        return older


class ReturnedLeaves:
    """The leaves of what a call returned and left in places, sorted by how replays come by them. `grads_before`: the
    leaves of autograd with the gradients that they had before the call; `kept`: what was read off the device."""

    def __init__(
        self,
        inputs: Sequence[torch.Tensor],
        grads_before: Any,
        recorder: "HostRecorder",
        kept: KeptReads,
        memory: KnownStorages,
        is_older: Callable[[Any], bool],
    ) -> None:
        self._inputs, self._grads_before, self._recorder = inputs, grads_before, recorder
        self._kept, self._memory, self._is_older = kept, memory, is_older
        #: The tensors; the new ones among them, which the program has to compute; and the positions of those with a
        #: history that can be differentiated through.
        self.tensors: list[Result] = []
        self.results: list[torch.Tensor] = []
        self.with_history: list[int] = []
        #: New tensors whose history was freed: the position, the name of its node, and the error of going through it.
        self.freed_histories: list[tuple[int, str, str]] = []
        #: Plain values by place (`None` where something else stands); numbers that replays compute, by place, as
        #: :class:`ReturnSpec` has them; and what is read off the device and only kept, by place.
        self.plain: list[Any] = []
        self.returned: dict[int, int] = {}
        self.read: dict[int, Read] = {}
        #: Why no replay can return or leave this; empty where one can.
        self.obstacle = ""

    def sort(self, flat: Sequence[Any], older_containers: Sequence[Any]) -> None:
        """Sorts the leaves; containers among them that are older than the step are returned as they are."""
        self.plain = [None] * len(flat)
        for i, x in enumerate(flat):
            if any(x is c for c in older_containers):
                self.tensors.append(Result(i, None, x, 0))
            elif not on_device(x):
                self.obstacle = self.obstacle or self._value(i, x)
            elif x.layout is not torch.strided:
                self.obstacle = self.obstacle or f"it returns a sparse tensor ({x.layout})"
            else:
                self._tensor(i, x)

    def _value(self, i: int, x: Any) -> str:
        """Sorts a leaf that is no tensor on the device; returns why no replay can return it."""
        if (read := self._kept.how(x)) is not None:
            self.read[i] = read
            names = ", ".join(getattr(x, "__dict__", ()))
            return f"it gives a tensor that it returns attributes ({names})" if names else ""
        if type(x) in (TracedFloat, TracedInt) and x._ltc_recorder is self._recorder:
            self.returned[i] = self._recorder.return_number(x)
        elif is_value(x):
            self.plain[i] = x
        else:
            kind = f"a tensor on {x.device}" if is_tensor(x) else f"a {type(x).__qualname__}"
            return f"it returns {kind}, which is neither a tensor on ltc nor a plain value"
        return ""

    def _tensor(self, i: int, x: torch.Tensor) -> None:
        """Sorts a tensor on the device: an input, one that is older, a gradient, or a new one."""
        at_input = lambda x: next((j for j, y in enumerate(self._inputs) if y is x), None)
        is_input = at_input(x)
        leaf = next((t for t, _ in self._grads_before if t.grad is x), None) if is_input is None else None
        if leaf is not None:
            at = at_input(leaf)
            self.tensors.append(Result(i, None, None, 0, leaf if at is None else at))
            return
        if is_input is not None or self._is_older(x):
            self.tensors.append(Result(i, is_input, None if is_input is not None else x, 0))
            return
        self.obstacle = self.obstacle or self._memory.obstacle(x)
        at = next((k for k, y in enumerate(self.results) if y is x), None)
        if at is None:
            at = len(self.results)
            self.results.append(x)
            if x.grad_fn is not None and not self.obstacle:
                if said := freed_error(x):
                    self.freed_histories.append((at, x.grad_fn.name(), said))
                else:
                    self.with_history.append(at)
        self.tensors.append(Result(i, None, None, at, None, self._memory.alias_of(x)))
