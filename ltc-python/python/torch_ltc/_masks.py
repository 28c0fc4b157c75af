"""Boolean masks that stay as they are from call to call (the training nodes of a graph), as indices.

What a mask selects has as many elements as the mask has true ones, which no program can know. While a step is captured,
a mask that is older than the step or given to it is read, and what it selects is taken by indices that were worked out
for such a mask before. Replays compare the mask with what was read.
"""

from collections import OrderedDict
from typing import Any

import torch

#: Masks whose indices are kept per step.
_MAX_MASKS = 16


class Masks:
    """Indices by what masks hold."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, bytes], tuple[torch.Tensor, ...]] = OrderedDict()
        self._wanted: dict[tuple[Any, bytes], torch.Tensor] = {}
        #: Whether the last call had a mask that was not known: no replay would have been made of it.
        self.missed = False

    def indices(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
        """Indices of the true elements, where they are known already; else they will be for the next call."""
        with torch._C.DisableTorchFunction():
            host = mask.cpu()
            key = (tuple(host.shape), host.numpy().tobytes())
        if key not in self._known:
            self._wanted[key] = host
        return self._known.get(key)

    def work_out(self) -> None:
        """Works out what was asked for; nothing is captured meanwhile."""
        self.missed = bool(self._wanted)
        for key, host in self._wanted.items():
            self._known[key] = tuple([i.to("ltc") for i in host.nonzero(as_tuple=True)])
        self._wanted = {}
        while len(self._known) > _MAX_MASKS:
            self._known.popitem(last=False)
