"""What PyTorch expects of a device module (``torch.ltc``), and the few places where PyTorch reads memory by address."""

import os
import types
from collections.abc import Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any, Self

import torch
from torch.multiprocessing import reductions

from torch_ltc import _ltc
from torch_ltc._runtime import Device, device_index


class device:
    """Context in which ``torch.device("ltc")`` means this index."""

    def __init__(self, device: Device) -> None:
        self.index = -1 if device is None else device_index(device)
        self.previous = 0

    def __enter__(self) -> Self:
        if self.index > 0:
            self.previous = torch._C._accelerator_exchangeDevice(self.index)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.index > 0:
            torch._C._accelerator_exchangeDevice(self.previous)


def current_device() -> int:
    """Index of the current ltc device."""
    return torch._C._accelerator_getDeviceIndex()


def set_device(device: Device) -> None:
    """Makes this the current ltc device."""
    index = device_index(device)
    if not 0 <= index < _ltc.device_count():
        raise RuntimeError(f"invalid device index {index}: there are {_ltc.device_count()} ltc devices")
    torch._C._accelerator_setDeviceIndex(index)


def synchronize(device: Device = None) -> None:
    """Runs what is recorded and waits for it."""
    _ltc.mark_step(True)


def get_rng_state(device: Device = "ltc") -> torch.Tensor:
    """State of the device's default generator, a CPU byte tensor. Waits for the draws recorded so far."""
    return _ltc.generator_state(device_index(device))


def set_rng_state(new_state: torch.Tensor, device: Device = "ltc") -> None:
    """Sets the state of the device's default generator."""
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


def memory_allocated(device: Device = None) -> int:
    """Bytes in live buffers of the device."""
    return _ltc.memory(device_index(device))[0]


def max_memory_allocated(device: Device = None) -> int:
    """Highest number of bytes in live buffers so far."""
    return _ltc.memory(device_index(device))[1]


def empty_cache() -> None:
    """Forgets compiled programs, and gives memory kept for the next run back to the system."""
    _ltc.clear_cache()
    _ltc.empty_cache()


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
        memory_allocated,
        max_memory_allocated,
        empty_cache,
        is_available,
        is_initialized,
        is_bf16_supported,
        get_amp_supported_dtype,
    ):
        setattr(m, f.__name__, f)
    m.manual_seed_all = manual_seed
    m.seed_all = seed
    m.device_count = _ltc.device_count
    m._initialized = True
    m._is_in_bad_fork = lambda: False
    m._lazy_init = lambda: None
    return m


def _host_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage.cpu())


def _storage_from_bytes(flat: torch.Tensor, device: str) -> torch.UntypedStorage:
    return flat.to(device).untyped_storage()


def _typed_storage_from_bytes(flat: torch.Tensor, device: str, dtype: torch.dtype) -> torch.storage.TypedStorage:
    return torch.storage.TypedStorage(wrap_storage=_storage_from_bytes(flat, device), dtype=dtype, _internal=True)


def _patch_memory_by_address() -> None:
    """Pickling a storage, swapping its bytes and DLPack take memory by address, which tensors on ltc do not have."""
    untyped_storage: Any = torch.UntypedStorage
    typed_storage: Any = torch.storage.TypedStorage
    untyped, typed = untyped_storage.__reduce__, typed_storage.__reduce__

    def reduce_untyped(self: Any) -> Any:
        if self.device.type != "ltc":
            return untyped(self)
        return _storage_from_bytes, (_host_bytes(self), str(self.device))

    def reduce_typed(self: Any) -> Any:
        if self._untyped_storage.device.type != "ltc":
            return typed(self)
        storage = self._untyped_storage
        return _typed_storage_from_bytes, (_host_bytes(storage), str(storage.device), self.dtype)

    swap_bytes = untyped_storage._byteswap

    def byteswap(self: Any, element_size: int) -> None:
        if self.device.type != "ltc":
            return swap_bytes(self, element_size)
        host = self.cpu()
        swap_bytes(host, element_size)
        self.copy_(host)

    untyped_storage._byteswap = byteswap
    untyped_storage.__reduce__ = reduce_untyped
    typed_storage.__reduce__ = reduce_typed

    tensor_class: Any = torch.Tensor
    modules: list[Any] = [torch, torch.utils.dlpack]
    export, to_dlpack = tensor_class.__dlpack__, torch.utils.dlpack.to_dlpack
    refusal = "tensors on ltc have no memory to share: use t.cpu()"

    def dlpack(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "ltc":
            raise BufferError(refusal)
        return export(self, *args, **kwargs)

    def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "ltc":
            raise BufferError(refusal)
        return to_dlpack(tensor, *args, **kwargs)

    tensor_class.__dlpack__ = dlpack
    for module in modules:
        module.to_dlpack = to


_interrupted = torch.library.Library("ltc", "IMPL")


def _raise_in_waits() -> None:
    """A wait inside libtorch that a signal ends calls this operator, so that what the handler raised is raised there.

    It is an operator because libtorch does not know which language waits.
    """
    _interrupted.impl("_interrupted", _ltc.raise_interrupt, "CompositeExplicitAutograd")


def _received(host: torch.Tensor, device: str, requires_grad: bool, parameter: bool) -> torch.Tensor:
    tensor = host.to(device)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _send_between_processes() -> None:
    """What :mod:`torch.multiprocessing` sends of a tensor on the device is its values, in shared memory of the CPU."""
    send, send_storage = reductions.reduce_tensor, reductions.reduce_storage

    def reduce_tensor(tensor: torch.Tensor) -> Any:
        if tensor.device.type != "ltc":
            return send(tensor)
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support"
                " crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor"
                " before serializing (e.g., putting it on the queue)."
            )
        torch.utils.hooks.warn_if_has_hooks(tensor)
        parameter = isinstance(tensor, torch.nn.Parameter)
        return _received, (tensor.detach().cpu(), str(tensor.device), tensor.requires_grad, parameter)

    def reduce_storage(storage: Any) -> Any:
        return storage.__reduce__() if storage.device.type == "ltc" else send_storage(storage)

    for known in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(known, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)


def register() -> None:
    """Registers the device with PyTorch."""
    torch.utils.rename_privateuse1_backend("ltc")
    _ltc.init()
    torch._register_device_module("ltc", _module())
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    _patch_memory_by_address()
    _raise_in_waits()
    _send_between_processes()
    # Without the interpreter's lock; what is left to do for a fork is done by the system's handlers.
    os.register_at_fork(before=_ltc.before_fork)
