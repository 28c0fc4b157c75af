"""One object per device for whoever keeps things by device (``torch._lazy.device_context``)."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import torch

if TYPE_CHECKING:
    from torch_ltc.closure import AsyncClosureHandler, ClosureHandler


class DeviceContext:
    """What belongs to a device: step closures and their handlers."""

    _CONTEXTS: ClassVar[dict[str, "DeviceContext"]] = {}
    _CONTEXTS_LOCK = threading.Lock()

    def __init__(self, device: str) -> None:
        self.device = device
        self.step_closures: list[Callable[[], object]] = []
        self.async_step_closures: list[Callable[[], object]] = []
        self.closure_handler: ClosureHandler | None = None
        self.async_closure_handler: AsyncClosureHandler | None = None


def get_device_context(device: str | torch.device | None = None) -> DeviceContext:
    """The context of a device (``ltc``)."""
    device = "ltc" if device is None else str(device)
    if context := DeviceContext._CONTEXTS.get(device):  # each step asks; entries are only ever added
        return context
    with DeviceContext._CONTEXTS_LOCK:
        return DeviceContext._CONTEXTS.setdefault(device, DeviceContext(device))
