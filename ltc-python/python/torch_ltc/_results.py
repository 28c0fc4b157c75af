"""What a step returns, and how a replay returns it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from torch_ltc._history import Way
from torch_ltc._names import by_value


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
    #: Whose memory it shows, a position among the inputs or an older tensor: it counts its writes with that.
    shows: Any = None


class Record:
    """What Python keeps of a captured step."""

    def __init__(self, spec: Any, plain: list[Any], tensors: list[Result], told: dict[int, int]) -> None:
        self._spec, self._plain, self._tensors = spec, plain, tensors
        #: Numbers that the host computes: their position among those, by place.
        self._told = told
        self.only = spec.is_leaf() and len(tensors) == 1 and tensors[0][1:3] + tensors[0][4:] == (None,) * 4
        #: Results that show older memory, and whose.
        self._shows = {t.of_program: t.shows for t in tensors if t.shows is not None}
        self._way: Way | None = None

    @property
    def has_way(self) -> bool:
        """Whether gradients flow through the results of replays."""
        return self._way is not None

    def lead_back(self, way: Way) -> None:
        """Gradients flow through the results, this way."""
        self._way, self.only = way, False

    def unflatten(self, inputs: tuple[Any, ...], results: list[torch.Tensor], told: list[float] | None) -> Any:
        """What the step returns, with these tensors and numbers of the host."""
        if self._way is not None:
            results = self._way.wrap(inputs, results)
        flat = list(self._plain)
        if self._shows:
            results = list(results)
            for at, shows in self._shows.items():
                results[at] = _view(inputs[shows] if type(shows) is int else shows, results[at])
        for place, at in self._told.items():
            assert told is not None
            flat[place] = told[at]
        for place, of_input, itself, of_program, of_leaf, _ in self._tensors:
            if of_leaf is not None:
                flat[place] = (inputs[of_leaf] if type(of_leaf) is int else of_leaf).grad
            else:
                flat[place] = (
                    itself if itself is not None else results[of_program] if of_input is None else inputs[of_input]
                )
        return pytree.tree_unflatten(flat, self._spec)

    def like(self, other: "Record") -> bool:
        """Whether both return the same, but for the values of tensors."""

        def all_of(record: "Record") -> Any:
            which = [(t[0], t[1], id(t[2]), t[3], id(t[4]), id(t[5])) for t in record._tensors]
            return str(record._spec), [*map(by_value, record._plain)], which, record._told

        return all_of(self) == all_of(other)


def _view(base: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """What another tensor, which has no history, shows of the memory of one, as a view of that."""
    size, stride, offset = like.size(), like.stride(), like.storage_offset()
    if not base.requires_grad:
        return base.as_strided(size, stride, offset)
    # A view of a leaf requires a gradient even where nothing is recorded for one.
    with torch.no_grad():
        return base.as_strided(size, stride, offset).detach()


class Containers:
    """Containers among what a call returned: replays make new ones, once for each place."""

    def __init__(self, given: list[Any], is_older: Callable[[Any], bool]) -> None:
        self._given, self._is_older = given, is_older
        self._seen: list[Any] = []
        self.older: list[Any] = []
        self.obstacle = ""

    def are_older(self, x: Any) -> bool:
        """Whether this is one that is older than the step, which replays return as it is."""
        kind = type(x)
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
