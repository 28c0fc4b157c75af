"""Streams of the device module. A device has one: its programs run in the order in which they were sent."""

from typing import Any, Self

import torch

from torch_ltc._runtime import Device, current_or


def current_stream(device: Device = None) -> torch.Stream:
    """The device's stream."""
    return torch.Stream(device=f"ltc:{current_or(device)}")


def default_stream(device: Device = None) -> torch.Stream:
    """The device's stream, which is the current one, too."""
    return current_stream(device)


def set_stream(stream: torch.Stream) -> None:
    """Makes this the current stream, and its device the current device."""
    _check(stream)
    torch._C._accelerator_setStream(stream)


def _check(stream: torch.Stream) -> None:
    if stream.device.type != "ltc":
        raise ValueError(f"expected a stream of an ltc device, got one of {stream.device}")


class StreamContext:
    """Context in which a stream, and its device, are the current ones; nothing changes for ``None``."""

    def __init__(self, stream: torch.Stream | None) -> None:
        if stream is not None:
            _check(stream)
        self.stream = stream
        self.previous = 0

    def __enter__(self) -> Self:
        if self.stream is not None:
            self.previous = torch._C._accelerator_exchangeDevice(self.stream.device.index)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            torch._C._accelerator_exchangeDevice(self.previous)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context in which a stream, and its device, are the current ones; nothing changes for ``None``."""
    return StreamContext(stream)


FUNCTIONS: tuple[Any, ...] = (current_stream, default_stream, set_stream, StreamContext, stream)
