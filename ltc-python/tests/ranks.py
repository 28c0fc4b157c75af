"""What ranks of `test_distributed.py` have in common: `python rank_calls.py CASE STORE RANK WORLD` runs a case.

Most cases do the same on the CPU, by gloo, and on the device, and compare. A rank that is content prints "content".
"""

import datetime
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch_ltc

if "DRY_CUDA_ORDER" in os.environ:  # on a GPU's stand-in (docs/cuda.md), where the shadow gives operators values
    sys.path.insert(0, str(Path(__file__).parent / "dry"))
    import stand_in  # noqa: F401

    torch_ltc._ltc.set_place_key("Fake")

OPS = dist.ReduceOp
#: Whether the device's values are on a GPU, so that NCCL combines them.
ON_GPU = torch_ltc._ltc.device_place(0) != "cpu"
STORE = sys.argv[2]
RANK, WORLD = (
    int(sys.argv[i] if len(sys.argv) > i else os.environ[name]) for i, name in ((3, "RANK"), (4, "WORLD_SIZE"))
)


def join(timeout: float = 20, name: str | None = "cpu:gloo,ltc:ltc", store: str = STORE) -> None:
    limit = datetime.timedelta(seconds=timeout)
    dist.init_process_group(name, init_method=f"file://{store}", rank=RANK, world_size=WORLD, timeout=limit)


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Values that differ from rank to rank."""
    draws = torch.Generator().manual_seed(1000 * seed + RANK)
    if dtype == torch.bool:
        return torch.rand(shape, generator=draws) > 0.5
    if dtype.is_floating_point:
        return torch.randn(shape, generator=draws).to(dtype)
    return torch.randint(0, 7, shape, generator=draws).to(dtype)


def outcome(call: Any, device: str) -> Any:
    try:
        return [t.cpu() for t in call(device)]
    except Exception as error:  # noqa: BLE001  (any class: it is what is compared)
        return error


def same(name: str, call: Any) -> None:
    """A call's tensors have the bits of the CPU's, or it raises as that does. Three ranks' values are added in another
    order by NCCL."""
    cpu, ltc = outcome(call, "cpu"), outcome(call, "ltc")
    if isinstance(cpu, Exception) or isinstance(ltc, Exception):
        assert type(cpu) is type(ltc), f"{name}: {cpu!r} on the CPU, {ltc!r} here"
        return
    near = {} if ON_GPU and WORLD > 2 else {"rtol": 0, "atol": 0}
    for expected, found in zip(cpu, ltc, strict=True):
        torch.testing.assert_close(found, expected, **near, equal_nan=True, msg=lambda m: f"{name}: {m}")


def reduced(t: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(t)
    return t


def ones(value: float = 1.0) -> torch.Tensor:
    return torch.full((3,), float(value), device="ltc")


def run(cases: dict[str, Callable[[], None]], destroys: bool) -> None:
    """Runs this process's case. Where CPU tensors take part, `destroys` its group, as any program on the CPU must: a
    thread of gloo that lets go of one only while the interpreter ends takes the process with it (SIGABRT)."""
    cases[sys.argv[1]]()
    if destroys and dist.is_initialized():
        dist.destroy_process_group()
        gc.collect()  # what else holds the group
    # One write, as torchrun starts ranks with `-u`: `print` would write the end of the line apart.
    sys.stdout.write("content\n")
