"""The requests that hand tensors to the Rust side and get tensors back."""

import torch


def service(name, tensors=(), text="", numbers=()):
    """Asks ``ltc-torch``: returns ``(tensors, text, numbers)``."""
    return torch.ops.ltc._service.default(name, tensors, text, numbers)


def device_index(device=None):
    """The index of an ltc device given as index, string, ``torch.device`` or ``None``."""
    if device is None or device == "":
        return 0
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "ltc":
        raise ValueError(f"expected an ltc device, got {device}")
    return device.index or 0


def on_device(value):
    """Whether this is a tensor on an ltc device."""
    return isinstance(value, torch.Tensor) and value.device.type == "ltc"
