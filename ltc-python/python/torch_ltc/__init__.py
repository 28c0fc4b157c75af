"""The ltc device for PyTorch.

``import torch_ltc`` registers the device; ``model.to("ltc")`` moves a model there. What is done to tensors on it is
recorded and runs as one program when a value is read or at :func:`mark_step`. The modules have the names and meanings
of ``torch._lazy``, so a program written for it runs after changing the import and the device string.
"""

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from torch_ltc._built_for import TORCH as _NEEDED

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError(
        f"torch_ltc needs torch {_NEEDED}, and there is no torch: pip install torch=={_NEEDED}"
    ) from error
if torch.__version__.split("+")[0] != _NEEDED:
    raise ImportError(
        f"torch_ltc is built for torch {_NEEDED}, but this process has torch {torch.__version__} from"
        f" {os.path.dirname(torch.__file__)}, whose C++ interface is another: pip install torch=={_NEEDED}"
    )

from torch.utils import _pytree as pytree

from torch_ltc import _device, _distributed, _ltc  # needs torch's libraries in the process

_device.register()
_distributed.register()

from torch_ltc import (
    closure,
    computation,
    config,
    debug,
    device_context,
    ir_cache,
    metrics,
    tensor_factory_functions,
    ts_backend,
)
from torch_ltc._compiling import capturing
from torch_ltc._runtime import on_device
from torch_ltc.closure import add_step_closure, has_step_closures, run_step_closures
from torch_ltc.extract_compiled_graph import extract_compiled_graph

if TYPE_CHECKING:
    from torch_ltc._compile import compile
    from torch_ltc._step import CompiledStep, StaleStep

__all__ = [
    "CompiledStep",
    "StaleStep",
    "__version__",
    "add_step_closure",
    "closure",
    "compile",
    "computation",
    "config",
    "debug",
    "device_context",
    "extract_compiled_graph",
    "fallback_count",
    "fallbacks",
    "get_tensor_id",
    "ir_cache",
    "lazy_repr",
    "mark_step",
    "metrics",
    "metrics_report",
    "run_step_closures",
    "save",
    "sync_multi",
    "tensor_factory_functions",
    "to_cpu",
    "ts_backend",
    "wait_device_ops",
]

# Compiled steps are imported on demand: they take a third of the package's import time, and many programs need none.
__version__ = _ltc.VERSION

_ON_DEMAND = ("CompiledStep", "StaleStep", "compile")


if not TYPE_CHECKING:  # type checkers would take any name to be there

    def __getattr__(name: str) -> Any:
        if name not in _ON_DEMAND:
            raise AttributeError(f"module 'torch_ltc' has no attribute {name!r}")
        from torch_ltc import _compile, _step

        for each in _ON_DEMAND:
            globals()[each] = getattr(_compile if each == "compile" else _step, each)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})


def mark_step(device: str = "", wait: bool = False) -> None:
    """Sends everything pending to run, then runs the step closures; with ``wait``, returns when it is done.

    Within a compiled step nothing is sent, as the step's program runs as a whole; but one that waits there, or that has
    step closures, is not replayed.
    """
    if wait or not getattr(capturing, "now", False) or has_step_closures():
        _ltc.mark_step(wait)
    run_step_closures()


def wait_device_ops(devices: Sequence[str] | None = None) -> None:
    """Waits until the devices (all of them) have done what was sent to them. Raises an error nobody has seen yet."""
    _ltc.wait()


def sync_multi(tensors: Sequence[Any], devices: Sequence[str] = ()) -> None:
    """Sends what these tensors need to run, and nothing else."""
    _ltc.sync([t for t in tensors if on_device(t)])


def get_tensor_id(tensor: torch.Tensor) -> int:
    """A number that names the value a tensor on the device holds."""
    return _ltc.value_id(tensor)


def to_cpu(tensors: Any, devices: Sequence[str] | None = None) -> Any:
    """Copies the tensors of a structure (lists, dicts, ...) to the CPU, after one sync for all of them."""
    flat, spec = pytree.tree_flatten(tensors)
    sync_multi(flat)
    return pytree.tree_unflatten([t.cpu() if on_device(t) else t for t in flat], spec)


def save(tensors: Any, f: str | os.PathLike[str] | IO[bytes], *args: Any, **kwargs: Any) -> None:
    """``torch.save`` of the tensors' CPU copies."""
    torch.save(to_cpu(tensors), f, *args, **kwargs)


def metrics_report() -> str:
    """Counters and timings, as text."""
    return _ltc.metrics_report()


def fallback_count() -> int:
    """How often operators ran eagerly."""
    return _ltc.fallback_count()


def fallbacks() -> list[tuple[str, str, int, str | None]]:
    """Operators that ran eagerly: a list of ``(name, reason, count, advice)``."""
    return _ltc.fallbacks()


def lazy_repr(tensor: torch.Tensor) -> str:
    """What a tensor on the device is, without running anything: shape, dtype, device, and whether it is pending."""
    text = _ltc.graph_text([tensor])
    nodes = sum(" = " in line for line in text.splitlines())
    state = f"pending, {nodes} operations" if nodes else "data"
    return f"tensor(<{state}>, size={tuple(tensor.shape)}, dtype={tensor.dtype}, device='{tensor.device}')"
