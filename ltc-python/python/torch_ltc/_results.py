"""What a step returns, and how a replay returns it."""

import contextlib
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from torch_ltc._arguments import TENSORS
from torch_ltc._awaited import LateProgram
from torch_ltc._history import Backward, storage_of
from torch_ltc._names import by_value
from torch_ltc._runtime import is_dense

#: Of views that no mode forbids to write to.
_ORDINARY = torch._C._autograd.CreationMeta.DEFAULT


class Alias(NamedTuple):
    """Whose memory a result shows: it counts its writes with that."""

    #: "input" or "result" (of the program), by position; "older": a tensor that is older than the step.
    kind: str
    of: Any
    #: Whether it is a view of that for autograd: one of a detached tensor is not.
    is_view: bool
    #: What made it: operators that write to it in place ask.
    creation_meta: Any = _ORDINARY
    #: Whether it counts its own writes: `x.data` does.
    counts_alone: bool = False

    def find(self, inputs: tuple[Any, ...], results: list[torch.Tensor]) -> Any:
        """That tensor."""
        return self.of if self.kind == "older" else (inputs if self.kind == "input" else results)[self.of]

    @property
    def key(self) -> Any:
        """Equal of two captures that show the same."""
        return (
            self.kind,
            id(self.of) if self.kind == "older" else self.of,
            self.is_view,
            str(self.creation_meta),
            self.counts_alone,
        )


class Result(NamedTuple):
    """One of the results that are tensors: where it stands, and which it is."""

    place: int
    #: Position among the inputs, where the step returns one of these as it is.
    of_input: int | None
    #: A tensor that is older than the step, returned as it is.
    itself: Any
    #: Position among the results of the program.
    of_program: int
    #: A leaf whose gradient it is, or such an input's position.
    of_leaf: Any = None
    alias: Alias | None = None


class LeftResult(NamedTuple):
    """Somewhere a step leaves something that it makes."""

    #: A dict, or a list that it appends to.
    holder: dict[Any, Any] | list[Any]
    name: Any
    spec: Any

    def put(self, flat: list[Any]) -> None:
        """Leaves what is taken apart here."""
        x = pytree.tree_unflatten(flat, self.spec)
        if isinstance(self.holder, list):
            self.holder.append(x)
        else:
            self.holder[self.name] = x


class ReturnSpec:
    """What Python keeps of a captured step."""

    def __init__(
        self,
        spec: Any,
        plain: list[Any],
        tensors: list[Result],
        returned: dict[int, int],
        left_results: "list[LeftResult]",
        late: LateProgram | None,
    ) -> None:
        #: What is done when the program has run.
        self.late = late
        self._spec, self._plain, self._tensors = spec, plain, tensors
        #: What it leaves, which stands behind what it returns.
        self._left_results = left_results
        #: Numbers that the host computes: their position among those, by place.
        self._returned_numbers = returned
        bare = spec.is_leaf() and not left_results and late is None and len(tensors) == 1
        self.is_single = bare and tensors[0][1:3] + tensors[0][4:] == (None,) * 4
        #: Results that show older memory, and whose.
        self._aliases = {t.of_program: t.alias for t in tensors if t.alias is not None}
        self._backward: Backward | None = None

    @property
    def has_backward(self) -> bool:
        """Whether gradients flow through the results of replays."""
        return self._backward is not None

    def attach_backward(self, backward: Backward) -> None:
        """Gradients flow through the results, this way."""
        self._backward, self.is_single = backward, False

    def unflatten(
        self,
        inputs: tuple[Any, ...],
        results: list[torch.Tensor],
        returned: Sequence[float] | None,
        already_read: list[float] | None = None,
    ) -> Any:
        """What the step returns, with these tensors and numbers of the host, when it has left the rest; nothing is left
        where the numbers that it reads off the device are `known`, since that was done."""
        late = already_read
        if late is None:
            late = self.late.run(results, returned) if self.late is not None else []
        if self._backward is not None:
            results = self._backward.wrap(inputs, results)
        flat = list(self._plain)
        if self._aliases:
            results = list(results)
            for at, alias in self._aliases.items():
                results[at] = _view(alias.find(inputs, results), results[at], alias)
        for place, at in self._returned_numbers.items():
            flat[place] = late[-1 - at] if at < 0 else (returned or ())[at]
        for place, of_input, itself, of_program, of_leaf, _ in self._tensors:
            if of_leaf is not None:
                flat[place] = (inputs[of_leaf] if type(of_leaf) is int else of_leaf).grad
            else:
                flat[place] = (
                    itself if itself is not None else results[of_program] if of_input is None else inputs[of_input]
                )
        if self._left_results:
            at = self._spec.num_leaves
            for left in self._left_results:
                if already_read is None:
                    left.put(flat[at : at + left.spec.num_leaves])
                at += left.spec.num_leaves
            del flat[self._spec.num_leaves :]
        return pytree.tree_unflatten(flat, self._spec)

    @property
    def left_places(self) -> list[Any]:
        """Where it leaves something, in a form to compare."""
        return [(id(holder), name, str(spec)) for holder, name, spec in self._left_results]

    def is_same_as(self, other: "ReturnSpec") -> bool:
        """Whether both return the same, but for the values of tensors."""

        def all_of(record: "ReturnSpec") -> Any:
            by = lambda x: x if type(x) is int else id(x)
            which = [(t[0], t[1], id(t[2]), t[3], by(t[4]), t[5] and t[5].key) for t in record._tensors]
            return (
                str(record._spec),
                [*map(by_value, record._plain)],
                which,
                record._returned_numbers,
                record.left_places,
            )

        return all_of(self) == all_of(other)


def _view(base: torch.Tensor, shown: torch.Tensor, alias: Alias) -> torch.Tensor:
    """What another tensor, which has no history, shows of the memory of one, as a view of that or detached from it."""
    if shown.is_inference() and not base.is_inference():
        return shown  # it counts no writes
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
    # A view of a leaf requires a gradient even where nothing is recorded for one.
    with torch.no_grad():
        base = base.data if alias.counts_alone else base
        return base.as_strided(size, stride, offset).detach()


class KnownStorages:
    """What tensors that are older than a call show, by storage."""

    def __init__(self, inputs: Sequence[torch.Tensor], older: Iterable[torch.Tensor], copies: Container[int]) -> None:
        given = [(x, "input", i) for i, x in enumerate(inputs)]
        known: list[tuple[torch.Tensor, str, Any]] = [*given, *[(x, "older", x) for x in older]]
        dense = [k for k in known if is_dense(k[0]) and id(k[0]) not in copies]
        self._by_storage = {storage_of(k[0]): k for k in reversed(dense)}

    def alias_of(self, x: torch.Tensor) -> Alias | None:
        """Whose memory a result without history shows."""
        known = self._by_storage.get(storage_of(x)) if x.grad_fn is None else None
        if known is None:
            return None
        base, kind, of = known
        return _alias(kind, of, x._is_view() and (x._base is base or x._base is base._base), x)

    def obstacle(self, x: torch.Tensor) -> str:
        """Why a replay cannot return a tensor that the call made, or nothing."""
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
    """Whether writes to a tensor are counted as writes to one whose memory it shows: not of `base.data`."""
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
    """Finds results that count their own writes, and notes that; why a replay cannot return one that shows other memory
    the way that it does, or nothing. `grads`: the gradients there are."""
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
    """Finds results that show another one's memory, and notes that; why a replay cannot return them, or nothing."""
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
    return pytree.tree_leaves(x, is_leaf=lambda y: y is not x)


def not_rebuilt(x: Any, spec: pytree.TreeSpec, flat: list[Any]) -> str:
    """The class of a container that is not made again as it is, in something taken apart; or nothing."""
    ends = {id(y) for y in flat}
    pairs = [(x, pytree.tree_unflatten(flat, spec))]
    for mine, other in pairs:
        if type(mine) is not type(other):
            return type(mine).__qualname__
        if id(mine) not in ends:
            pairs += zip(*map(_members, (mine, other)))
    return ""


class ReturnedContainers:
    """Containers among what a call returned: replays make new ones, once for each place."""

    def __init__(self, given: list[Any], is_older: Callable[[Any], bool]) -> None:
        self._given, self._is_older = given, is_older
        self._seen: list[Any] = []
        self.older: list[Any] = []
        self.obstacle = ""

    def end_at(self, x: Any) -> bool:
        """Whether this is no container to be taken apart: one that is older than the step, which replays return as it
        is, or a shape."""
        kind = type(x)
        if kind is torch.Size:  # what pytree makes of its members is a tuple
            return True
        if isinstance(x, (tuple, torch.Tensor)) or kind not in pytree.SUPPORTED_NODES:
            return False
        if any(x is y for y in self._given):
            self.obstacle = f"it returns a {kind.__qualname__} that it is given"
        elif self._is_older(x):
            self.older.append(x)
            return True
        elif any(x is y for y in self._seen):
            self.obstacle = f"it returns one {kind.__qualname__} in two places"
        self._seen.append(x)
        return False

    def close(self) -> list[Any]:
        """Those that are older. Lets go of all else: `tree_flatten` leaves a cycle behind that holds this."""
        older, self.older = self.older, []
        self._is_older, self._given, self._seen = lambda x: False, [], []
        return older
