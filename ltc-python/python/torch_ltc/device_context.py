"""One object per device for whoever keeps things by device (``torch._lazy.device_context``)."""

import threading


class DeviceContext:
    """What belongs to a device: step closures and their handlers."""

    _CONTEXTS: dict = {}
    _CONTEXTS_LOCK = threading.Lock()

    def __init__(self, device):
        self.device = device


def get_device_context(device=None):
    """The context of a device (``ltc``)."""
    device = "ltc" if device is None else str(device)
    with DeviceContext._CONTEXTS_LOCK:
        return DeviceContext._CONTEXTS.setdefault(device, DeviceContext(device))
