"""What a failed call leaves in Python objects: optimisers and gradients.

The device gives storages back what they held before a call that failed, but by the time the failure is known Python has
gone on: gradients and states of optimisers that the failed call was the first to make are there, and hold the failure.
Eager execution would not have made them. Left as they are, they would spoil every step to come.
"""

import gc
from typing import Any

import torch

from . import _ltc


def _is_first(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> bool:
    """Whether what this state of a parameter holds, when it holds a failure, was made by its first step."""
    # Those of torch write to what they made once. Others may replace it at each step: what was there is gone then, and
    # that is not to be hidden.
    own = type(optimizer).__module__.startswith("torch.optim.") and not isinstance(optimizer, torch.optim.LBFGS)
    steps = state.get("step")
    if isinstance(steps, torch.Tensor):
        steps = steps.item() if steps.device.type == "cpu" and steps.numel() == 1 else None
    return own or bool(steps == 1)


def _parts(value: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that hold what a tensor holds: itself, but for sparse ones."""
    if value.layout is torch.strided:
        return [value]
    if value.layout is torch.sparse_coo:
        return [value._indices(), value._values()]
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [value.crow_indices(), value.col_indices(), value.values()]
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [value.ccol_indices(), value.row_indices(), value.values()]
    return []


def _never_was(value: object) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != "ltc":
        return False
    return any(_ltc.never_was(part) for part in _parts(value))


def _forget_states(optimizer: torch.optim.Optimizer) -> None:
    for parameter, state in list(optimizer.state.items()):
        if isinstance(state, dict) and any(map(_never_was, list(state.values()))) and _is_first(optimizer, state):
            del optimizer.state[parameter]


def _kinds(base: type) -> set[type]:
    """A class and all that are made of it."""
    return {base}.union(*map(_kinds, type.__subclasses__(base)))


def forget() -> None:
    """Lets go states of optimisers and gradients that only a failed call made."""
    if torch._C._current_graph_task_id() != -1:
        # The way back goes on, in other threads maybe: it is still making gradients.
        return
    tensors, optimizers = _kinds(torch.Tensor), _kinds(torch.optim.Optimizer)
    kinds = tensors | optimizers
    with torch._C.DisableTorchFunctionSubclass():
        strange: Exception | None = None
        for item in [item for item in gc.get_objects() if type(item) in kinds]:
            try:
                if type(item) in optimizers:
                    _forget_states(item)
                elif item.is_leaf and item.grad is not None and _never_was(item.grad):
                    item.grad = None
            except Exception as e:  # noqa: BLE001  (of code that is not ours)
                # One object that cannot be asked is no reason to leave the others as they are.
                strange = strange or e
        if strange:
            raise strange
