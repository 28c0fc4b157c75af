"""Removes what a failed call left in Python objects: gradients, and states of optimisers.

After a call that failed on its values, the device gives storages back what they held before. But the failure becomes
known later, and Python has gone on meanwhile: gradients and optimiser states that were first made after the failing
call exist, and reading them raises. Eager execution would not have made them, and they would spoil every later step.
Rust calls :func:`forget` when a failure becomes known.
"""

import gc
from typing import Any

import torch

from . import _ltc
from ._collector import all_shown


def _is_first(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> bool:
    """Whether the state of a parameter that holds a failed tensor was made by the parameter's first step."""
    # torch's optimisers make a state once and then write to it. Others may replace it at each step: then an earlier
    # state is gone, and removing the failed one would hide that.
    own = type(optimizer).__module__.startswith("torch.optim.") and not isinstance(optimizer, torch.optim.LBFGS)
    steps = state.get("step")
    if isinstance(steps, torch.Tensor):
        steps = steps.item() if steps.device.type == "cpu" and steps.numel() == 1 else None
    return own or bool(steps == 1)


def _parts(value: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors that a tensor consists of: itself, or the parts of a sparse one."""
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
    """Whether an object is a tensor that only a failed call made, so that reading it raises."""
    if not isinstance(value, torch.Tensor) or value.device.type != "ltc":
        return False
    return any(_ltc.never_was(part) for part in _parts(value))


def _forget_states(optimizer: torch.optim.Optimizer) -> None:
    """Removes the states of parameters that only a failed call made."""
    for parameter, state in list(optimizer.state.items()):
        if isinstance(state, dict) and any(map(_never_was, list(state.values()))) and _is_first(optimizer, state):
            del optimizer.state[parameter]


def _kinds(base: type) -> set[type]:
    """A class and all its subclasses."""
    return {base}.union(*map(_kinds, type.__subclasses__(base)))


def forget() -> None:
    """Removes the gradients and optimiser states that only a failed call made, from all objects of the process."""
    if torch._C._current_graph_task_id() != -1:
        # A backward pass is running, maybe in other threads, and is still making gradients.
        return
    tensors, optimizers = _kinds(torch.Tensor), _kinds(torch.optim.Optimizer)
    kinds = tensors | optimizers
    with torch._C.DisableTorchFunctionSubclass():
        strange: Exception | None = None
        with all_shown():
            found = [item for item in gc.get_objects() if type(item) in kinds]
        for item in found:
            try:
                if type(item) in optimizers:
                    _forget_states(item)
                elif item.is_leaf and item.grad is not None and _never_was(item.grad):
                    item.grad = None
            except Exception as e:  # noqa: BLE001  (raised by code that is not ours)
                # One object that cannot be examined is no reason to leave the others as they are; it is raised last.
                strange = strange or e
        if strange:
            raise strange
