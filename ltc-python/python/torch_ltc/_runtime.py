"""Which device is meant, and what is on one."""

import contextlib
from typing import Any, TypeGuard

import torch

from torch_ltc import _ltc

#: What names an ltc device: an index, a string, a `torch.device`, or nothing for the first.
Device = int | str | torch.device | None


def device_index(device: Device = None) -> int:
    """The index of an ltc device given as index, string, ``torch.device`` or ``None``."""
    if device is None or device == "":
        return 0
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "ltc":
        raise ValueError(f"expected an ltc device, got {device}")
    return device.index or 0


def current_or(device: Device) -> int:
    """The index of the ltc device that is meant, the current one by ``None``; checked."""
    index = torch._C._accelerator_getDeviceIndex() if device is None else device_index(device)
    if not 0 <= index < _ltc.device_count():
        raise RuntimeError(f"invalid device index {index}: there are {_ltc.device_count()} ltc devices")
    return index


def as_program(asks_classes: bool) -> Any:
    """A context for calls of the program's within what tensor classes of the program are not to see. `asks_classes`:
    whether they saw calls (`torch._C._is_torch_function_enabled()`) before that."""
    return torch._C._EnableTorchFunction() if asks_classes else contextlib.nullcontext()


def is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    """Whether an object is a tensor, whatever its `__class__` says: mocks and proxies say what they stand for."""
    return issubclass(type(value), torch.Tensor)


def on_device(value: Any) -> TypeGuard[torch.Tensor]:
    """Whether this is a tensor on an ltc device."""
    return is_tensor(value) and value.device.type == "ltc"


def is_dense(value: Any) -> TypeGuard[torch.Tensor]:
    """Whether this is a tensor on an ltc device with a storage of its own: not a sparse one."""
    return on_device(value) and value.layout is torch.strided


def is_leaf(t: torch.Tensor) -> bool:
    """Whether a tensor has no history; not where autograd refuses to tell (of one view among several, where something
    with history was written to what they show)."""
    try:
        return t.is_leaf
    except RuntimeError:
        return False


def history_of(t: torch.Tensor) -> Any:
    """Where a tensor's history begins; `None` also where autograd refuses to tell."""
    try:
        return t.grad_fn
    except RuntimeError:
        return None
