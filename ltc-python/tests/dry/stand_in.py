"""The CUDA stand-in as tests see it: what `tests/cuda/dry_cuda.h` and `tests/cuda/dry_shadow.h` declare."""

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import torch

LIBRARY = Path(os.environ.get("LD_PRELOAD", "").split(":")[0])
LATE = os.environ.get("DRY_CUDA_ORDER") != "early"

# Their handles ask the driver themselves, so they are not there.
torch.backends.cudnn.enabled = False

_runtime = ctypes.CDLL(str(LIBRARY))
_runtime.dry_cuda_count.argtypes, _runtime.dry_cuda_count.restype = [ctypes.c_char_p], ctypes.c_uint64
_runtime.dry_cuda_launches.restype = ctypes.c_char_p
for _name in ("dry_cuda_fail_allocation", "dry_cuda_fail_launch", "dry_cuda_refuse_graph"):
    getattr(_runtime, _name).argtypes = [ctypes.c_uint64]
reset, fail_allocation, fail_launch, refuse_graph = (
    _runtime.dry_cuda_reset,
    _runtime.dry_cuda_fail_allocation,
    _runtime.dry_cuda_fail_launch,
    _runtime.dry_cuda_refuse_graph,
)
driver = ctypes.CDLL("libcuda.so.1")

_shadow = ctypes.CDLL(str(LIBRARY.with_name("libdry_shadow.so")))
_shadow.dry_shadow_report.restype, _shadow.dry_shadow_count.restype = ctypes.c_char_p, ctypes.c_uint64
_shadow.dry_shadow_enable.argtypes = [ctypes.c_bool]


def count(name):
    return _runtime.dry_cuda_count(name.encode())


def waits():
    """How often the host waited for a device since the last reset."""
    return sum(count(name) for name in ("stream_waits", "event_waits", "device_waits", "blocking_copies"))


def launches():
    return _runtime.dry_cuda_launches().decode().splitlines()


@contextlib.contextmanager
def shadow(complete=True):
    """Operators within have true values. `complete`: it is an error that one has none."""
    _shadow.dry_shadow_reset()
    _shadow.dry_shadow_enable(True)
    try:
        yield _shadow.dry_shadow_count
    finally:
        _shadow.dry_shadow_enable(False)
    if complete:
        torch.cuda.synchronize()
        assert not (report := _shadow.dry_shadow_report().decode()), report


def run(text, **environment):
    """What a program prints in a process of its own, with other switches; it may end its device."""
    head = "import os, torch, stand_in\nfrom stand_in import *\n"
    done = subprocess.run(
        [sys.executable, "-c", head + text],
        env=dict(os.environ, PYTHONPATH=str(Path(__file__).parent), **environment),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
