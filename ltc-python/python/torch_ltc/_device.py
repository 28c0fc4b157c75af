"""The device module ``torch.ltc``: the functions that PyTorch expects of one, and the registration of the device."""

import os
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch

from torch_ltc import _ltc, _memory, _streams
from torch_ltc._compiling import noted_draws, resumes_draws
from torch_ltc._host_copies import patch_memory_by_address, send_between_processes
from torch_ltc._runtime import Device, current_or, device_index, on_device


class device:
    """Context in which ``torch.device("ltc")`` means this index."""

    def __init__(self, device: Device) -> None:
        self.index = -1 if device is None else device_index(device)
        self.previous = 0

    def __enter__(self) -> Self:
        if self.index >= 0:
            self.previous = torch._C._accelerator_exchangeDevice(self.index)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.index >= 0:
            torch._C._accelerator_exchangeDevice(self.previous)


def current_device() -> int:
    """Index of the current ltc device."""
    return torch._C._accelerator_getDeviceIndex()


def set_device(device: Device) -> None:
    """Makes this the current ltc device."""
    torch._C._accelerator_setDeviceIndex(current_or(device))


def synchronize(device: Device = None) -> None:
    """Runs what is recorded and waits for it."""
    _ltc.mark_step(True)


def get_rng_state(device: Device = "ltc") -> torch.Tensor:
    """State of the device's default generator, a CPU byte tensor. Waits for the draws recorded so far."""
    if _ltc.is_capturing():
        return noted_draws(device_index(device))
    return _ltc.generator_state(device_index(device))


def set_rng_state(new_state: torch.Tensor, device: Device = "ltc") -> None:
    """Sets the state of the device's default generator."""
    if resumes_draws(new_state):
        return
    _ltc.set_generator_state(device_index(device), new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """States of all devices' default generators."""
    return [get_rng_state(i) for i in range(_ltc.device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' default generators."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def initial_seed() -> int:
    """Seed of the current device's default generator."""
    return _ltc.initial_seed(current_device())


def seed() -> None:
    """Seeds the default generators with a number drawn by the system."""
    _ltc.manual_seed(int.from_bytes(os.urandom(8), "little"))


def manual_seed(seed: int) -> None:
    """Seeds the devices' default generators. Recorded: nothing runs."""
    _ltc.manual_seed(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class DeviceProperties:
    """Properties of a device, as :func:`get_device_properties` returns them."""

    #: The name of the processor.
    name: str
    #: Memory of the machine or container, in bytes.
    total_memory: int
    #: How many threads its kernels use.
    threads: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and threads of a device."""
    return DeviceProperties(get_device_name(device), _memory.mem_get_info(device)[1], torch.get_num_threads())


def get_device_name(device: Device = None) -> str:
    """The name of the processor that the device's programs run on."""
    return _ltc.device_name(current_or(device))


def get_device_capability(device: Device = None) -> dict[str, Any]:
    """What the device can do: its dtypes, as :func:`torch.accelerator.get_device_capability` tells them."""
    return torch._C._accelerator_getDeviceCapability(current_or(device))


class device_of(device):
    """Context in which ``torch.device("ltc")`` means the device of a tensor; nothing changes for tensors elsewhere."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if on_device(obj) else None)


def is_available() -> bool:
    """Whether there is an ltc device: always."""
    return True


def is_initialized() -> bool:
    """Whether the device is ready: importing :mod:`torch_ltc` does that."""
    return True


def is_bf16_supported() -> bool:
    """Whether tensors may be of dtype bfloat16: they may."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that autocast may lower to."""
    return [torch.bfloat16, torch.float16]


def init() -> None:
    """Makes the device ready: importing :mod:`torch_ltc` did that."""


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(torch.ops.ltc._default_generator(i) for i in range(_ltc.device_count()))
    raise AttributeError(f"module 'torch.ltc' has no attribute '{name}'")


def _module() -> types.ModuleType:
    m: Any = types.ModuleType("torch.ltc", "The ltc device module.")
    for f in (
        device,
        current_device,
        set_device,
        synchronize,
        get_rng_state,
        set_rng_state,
        get_rng_state_all,
        set_rng_state_all,
        initial_seed,
        seed,
        manual_seed,
        is_available,
        is_initialized,
        is_bf16_supported,
        get_amp_supported_dtype,
        init,
        device_of,
        DeviceProperties,
        get_device_properties,
        get_device_name,
        get_device_capability,
        *_memory.FUNCTIONS,
        *_streams.FUNCTIONS,
    ):
        setattr(m, f.__name__, f)
    m.Stream = torch.Stream
    m.Event = torch.Event
    m.manual_seed_all = manual_seed
    m.seed_all = seed
    m.device_count = _ltc.device_count
    m._initialized = True
    m._is_in_bad_fork = lambda: False
    m._lazy_init = init
    m.__getattr__ = __getattr__
    return m


_interrupted = torch.library.Library("ltc", "IMPL")


def _raise_in_waits() -> None:
    """Implements the operator that a wait within libtorch calls when a signal ends it: it raises what the signal's
    handler raised. It is an operator because libtorch does not know in which language the program is written."""
    _interrupted.impl("_interrupted", _ltc.raise_interrupt, "CompositeExplicitAutograd")


def register() -> None:
    """Registers the device with PyTorch."""
    torch.utils.rename_privateuse1_backend("ltc")
    _ltc.init()
    torch._register_device_module("ltc", _module())
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    patch_memory_by_address()
    _raise_in_waits()
    send_between_processes()
    # Waits for work under way without the interpreter's lock; the rest is done in C++ (`pthread_atfork`).
    os.register_at_fork(before=_ltc.before_fork)
