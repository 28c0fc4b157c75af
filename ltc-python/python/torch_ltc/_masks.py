"""Selections by values (`x[mask]`, `nonzero`) within a captured step.

How many elements a mask selects is in its values, so the shapes that follow are not known before it is read. While a
step is captured, its masks are read, and what a mask selects is taken by indices that an earlier call worked out for a
mask with the same values. Replays compare their mask with what the capture read; one that finds another mask is taken
back. A mask that is new is selected by as usual, and its indices are worked out for the next call.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._runtime import on_device

#: Masks whose indices are kept per step.
_MAX_MASKS = 64

_Indices = tuple[torch.Tensor, ...]


class Masks:
    """The indices that a step's masks select, by the content of the masks (shape and bytes)."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, bytes], _Indices] = OrderedDict()
        self._wanted: dict[tuple[Any, bytes], torch.Tensor] = {}
        #: Whether the last call had a mask that was not known: no replay would have been made of it.
        self.missed = False

    def select(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """The result of a call that selects by masks whose indices are known, in a tuple; `None` for any other call.
        Indices of masks that are not known will be for the next call."""
        selection, count, names = _SELECTIONS.get(func, (None, 0, frozenset()))
        return (
            selection(self, func, args, **kwargs)
            if selection and len(args) == count and kwargs.keys() <= names
            else None
        )

    def indices(self, mask: torch.Tensor) -> _Indices | None:
        """The indices of the true elements of a mask, if they are known; else `None`, and they are noted as wanted."""
        with torch._C.DisableTorchFunction():
            host = mask.cpu()
            key = (tuple(host.shape), host.numpy().tobytes())
        if key not in self._known:
            self._wanted[key] = host
            return None
        self._known.move_to_end(key)
        return self._known[key]

    def work_out(self) -> None:
        """Works out the indices that were wanted, while nothing is captured."""
        self.missed = bool(self._wanted)
        for key, host in self._wanted.items():
            self._known[key] = tuple([i.to("ltc") for i in host.nonzero(as_tuple=True)])
        self._wanted = {}
        while len(self._known) > _MAX_MASKS:
            self._known.popitem(last=False)

    def _by_index(self, func: Any, args: tuple[Any, ...]) -> tuple[Any] | None:
        """``x[mask]``, ``x[:, mask]``: a mask stands for as many indices as it has dimensions."""
        index = args[1] if type(args[1]) is tuple else (args[1],)
        if not any(map(_is_mask, index)) or not all(_is_mask(i) or type(i) in _OTHERS for i in index):
            return None
        if not _fits(args[0], index):
            return None  # eager libtorch refuses it
        places: list[Any] = []
        for i in index:
            found = self.indices(i) if _is_mask(i) else (i,)
            if found is None:
                return None
            places += found
        return (func(args[0], tuple(places)),)

    def _by_mask(self, _: Any, args: tuple[Any, ...]) -> tuple[Any] | None:
        """``masked_select``."""
        x, mask = args
        if not (on_device(x) and _is_mask(mask) and x.shape == mask.shape):
            return None
        found = self.indices(mask)
        return None if found is None else (x[found],)

    def _nonzero(self, _: Any, args: tuple[Any, ...], as_tuple: bool = False) -> tuple[Any] | None:
        """``nonzero`` and ``argwhere``."""
        (x,) = args
        if not (on_device(x) and x.dim() > 0):
            return None
        found = self.indices(x if x.dtype is torch.bool else x.detach() != 0)
        if found is None:
            return None
        # Copies, since the caller may write to its result in place.
        if as_tuple:
            return (tuple([i.clone() for i in found]),)
        # Eager libtorch lays the indices of each dimension out one after another.
        if found[0].numel() == 0:
            return (x.new_empty_strided((0, x.dim()), (1, 0), dtype=torch.int64).zero_(),)
        return (torch.stack(found).t().clone(),)

    def _where(self, func: Any, args: tuple[Any, ...]) -> tuple[Any] | None:
        """``where`` with a mask alone."""
        return self._nonzero(func, args, as_tuple=True) if _is_mask(args[0]) else None


#: Classes of what may stand beside a mask in an index.
_OTHERS = (slice, int, type(None), type(Ellipsis), torch.Tensor)


def _is_mask(x: Any) -> bool:
    return on_device(x) and x.dtype is torch.bool and x.dim() > 0


def _fits(x: Any, index: tuple[Any, ...]) -> bool:
    """Whether each mask in an index has the sizes of the dimensions for which it stands."""
    takes = [i.dim() if _is_mask(i) else int(i is not None and i is not Ellipsis) for i in index]
    rest = x.dim() - sum(takes)  # for which an ellipsis stands
    at = 0
    for i, count in zip(index, takes):
        if _is_mask(i) and x.shape[at : at + count] != i.shape:
            return False
        at += rest if i is Ellipsis else count
    return rest >= 0


#: The functions that select: by which method, with how many positional arguments, and which keyword arguments.
_SELECTIONS: dict[Any, tuple[Callable[..., tuple[Any] | None], int, frozenset[str]]] = {
    torch.Tensor.__getitem__: (Masks._by_index, 2, frozenset()),
    torch.masked_select: (Masks._by_mask, 2, frozenset()),
    torch.Tensor.masked_select: (Masks._by_mask, 2, frozenset()),
    torch.nonzero: (Masks._nonzero, 1, frozenset(("as_tuple",))),
    torch.Tensor.nonzero: (Masks._nonzero, 1, frozenset(("as_tuple",))),
    torch.argwhere: (Masks._nonzero, 1, frozenset()),
    torch.Tensor.argwhere: (Masks._nonzero, 1, frozenset()),
    torch.where: (Masks._where, 1, frozenset()),
}
