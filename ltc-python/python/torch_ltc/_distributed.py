"""``torch.distributed`` on the device.

Collectives over ltc tensors are recorded like other operators. When the program runs, an engine (a c10d process group)
that each group has for the device performs them: gloo, or NCCL where the current device's values are on a GPU. Nothing
has to be called for that: ``init_process_group()`` without a backend, with ``"cpu:gloo,ltc:ltc"`` or with ``"ltc"``
makes such engines, and so does ``new_group``.
"""

import atexit
import functools
import sys
from typing import Any

import torch
import torch.distributed as dist

from torch_ltc import _device, _ltc, _sharded_random


def _engine(options: Any, backend_options: Any) -> Any:
    """A group's engine for the device. CPU tensors have another engine: the two are called from different threads, and
    gloo wants the calls of one engine in the same order on all ranks."""
    if _ltc.device_place(_device.current_device()) != "cpu":
        return _nccl_engine(options, backend_options)
    return dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=options.timeout)


def _nccl_engine(options: Any, given: Any) -> Any:
    """An NCCL engine, made as ``init_process_group`` makes it for ``cuda`` tensors."""
    if not dist.is_nccl_available():
        raise RuntimeError("ltc: this torch has no NCCL, which collectives between GPUs need")
    nccl = dist.ProcessGroupNCCL.Options() if given is None else given
    nccl._timeout = options.timeout
    nccl.global_ranks_in_group = options.global_ranks_in_group
    nccl.group_name = options.group_id
    return dist.ProcessGroupNCCL(options.store, options.group_rank, options.group_size, nccl)


def _leave() -> None:
    """At the end of the process, runs what is recorded, since other ranks wait for its collectives. Not after an
    uncaught exception: then the other ranks learn of the failure when the connection breaks."""
    if dist.is_initialized() and getattr(sys, "last_value", None) is None:
        try:
            _ltc.mark_step(True)
        finally:
            torch.ops.ltc_dist.close()


def _is_on_streams(group: Any) -> bool:
    """Whether a group's engine for the device is NCCL. It ends with the group, while gloo lives as long as what is
    recorded for it."""
    if torch.device("ltc") not in group._device_types or not dist.is_nccl_available():
        return False
    return isinstance(group._get_backend(torch.device("ltc")), dist.ProcessGroupNCCL)


def _run_before_shutdown() -> None:
    """Has ``destroy_process_group`` run what is recorded before NCCL ends, as ``cuda`` tensors' collectives are under
    way by then: other ranks wait for this one's. Not while an exception is handled: others may be gone, too."""
    shutdown = dist.ProcessGroup.shutdown

    @functools.wraps(shutdown)
    def run_and_shutdown(group: Any) -> None:
        try:
            if sys.exc_info()[1] is None and _is_on_streams(group):
                _ltc.mark_step(True)
        finally:
            shutdown(group)

    setattr(dist.ProcessGroup, "shutdown", run_and_shutdown)  # noqa: B010  (no assignment, which types forbid)


def register() -> None:
    """Registers the device with ``torch.distributed``; called once per process."""
    if dist.is_available():
        dist.Backend.register_backend("ltc", _engine, extended_api=True, devices=["ltc"])
        atexit.register(_leave)
        _run_before_shutdown()
        _sharded_random.register()
