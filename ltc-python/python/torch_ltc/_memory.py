"""Memory functions of the device module: numbers in bytes, of one device; nothing is recorded and nothing waits."""

from collections import OrderedDict
from typing import Any

import torch
from torch import accelerator

from torch_ltc import _ltc
from torch_ltc._runtime import Device, current_or


def memory_stats(device: Device = None) -> OrderedDict[str, Any]:
    """All numbers, by the names that :func:`torch.cuda.memory_stats` has for them.

    ``allocated_bytes`` is what live buffers hold, ``reserved_bytes`` that and what is kept for the next run, which all
    devices share. Their highest value is looked for when a program has run and when somebody asks.
    """
    return accelerator.memory_stats(current_or(device))


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The numbers of :func:`memory_stats`, as dicts in dicts."""
    return torch._C._accelerator_getDeviceStats(current_or(device))


def _bytes(device: Device, name: str, which: str) -> int:
    return memory_stats_as_nested_dict(device)[f"{name}_bytes"]["all"][which]


def memory_allocated(device: Device = None) -> int:
    """Bytes in live buffers of the device."""
    return _bytes(device, "allocated", "current")


def max_memory_allocated(device: Device = None) -> int:
    """Highest number of bytes in live buffers since the last reset."""
    return _bytes(device, "allocated", "peak")


def memory_reserved(device: Device = None) -> int:
    """Bytes in live buffers, or kept for the next run."""
    return _bytes(device, "reserved", "current")


def max_memory_reserved(device: Device = None) -> int:
    """Highest number of bytes in live buffers, or kept for the next run, since the last reset."""
    return _bytes(device, "reserved", "peak")


def reset_peak_memory_stats(device: Device = None) -> None:
    """Has the highest values begin anew."""
    torch._C._accelerator_resetPeakStats(current_or(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Has the numbers of bytes that were taken and let go begin anew."""
    torch._C._accelerator_resetAccumulatedStats(current_or(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Bytes that are free, and all there are, on the machine or in the container."""
    return torch._C._accelerator_getMemoryInfo(current_or(device))


def empty_cache() -> None:
    """Gives memory that is kept for the next run back to the system. Waits for what was sent; programs are kept."""
    _ltc.empty_cache()


FUNCTIONS: tuple[Any, ...] = (
    memory_stats,
    memory_stats_as_nested_dict,
    memory_allocated,
    max_memory_allocated,
    memory_reserved,
    max_memory_reserved,
    reset_peak_memory_stats,
    reset_accumulated_memory_stats,
    mem_get_info,
    empty_cache,
)
