"""Where PyTorch reads memory by address, which tensors on ltc do not have: values are copied to the CPU, or refused."""

from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions


def _kept(host: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU that is about to be pickled. A process that is being spawned is handed the file of its memory,
    which has to be open until then."""
    child: Any = get_spawning_popen()
    if child is not None:
        vars(child).setdefault("_copies_of_ltc", []).append(host)
    return host


def _host_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return _kept(torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage.cpu()))


def _storage_from_bytes(flat: torch.Tensor, device: str) -> torch.UntypedStorage:
    return flat.to(device).untyped_storage()


def _typed_storage_from_bytes(flat: torch.Tensor, device: str, dtype: torch.dtype) -> torch.storage.TypedStorage:
    return torch.storage.TypedStorage(wrap_storage=_storage_from_bytes(flat, device), dtype=dtype, _internal=True)


def patch_memory_by_address() -> None:
    """Pickling a storage, swapping its bytes, DLPack, and files in the format from before torch 1.6 take memory by
    address, which tensors on ltc do not have."""
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

    write, read = untyped_storage._write_file, untyped_storage._set_from_file

    def write_file(self: Any, *args: Any) -> None:
        write(self.cpu() if self.device.type == "ltc" else self, *args)

    def set_from_file(self: Any, file: Any, offset: Any, *args: Any) -> Any:
        if self.device.type != "ltc":
            return read(self, file, offset, *args)
        read(host := torch.UntypedStorage(self.nbytes()), file, offset, *args)
        return self.copy_(host)

    untyped_storage._write_file, untyped_storage._set_from_file = write_file, set_from_file
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


def _received(host: torch.Tensor, device: str, requires_grad: bool, parameter: bool) -> torch.Tensor:
    tensor = host.to(device)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def send_between_processes() -> None:
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
        return _received, (_kept(tensor.detach().cpu()), str(tensor.device), tensor.requires_grad, parameter)

    def reduce_storage(storage: Any) -> Any:
        return storage.__reduce__() if storage.device.type == "ltc" else send_storage(storage)

    for known in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(known, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)
