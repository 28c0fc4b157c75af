"""The ltc device for PyTorch.

``import torch_ltc`` registers the device; ``model.to("ltc")`` moves a model there. What is done to tensors on it is
recorded and runs as one program when a value is read or at :func:`mark_step`.
"""

import types

import torch

_NEEDED = "2.11.0"
if torch.__version__.split("+")[0] != _NEEDED:
    raise ImportError(
        f"torch_ltc is built for torch {_NEEDED} but torch {torch.__version__} is loaded: pip install torch=={_NEEDED}"
    )

from torch_ltc import _ltc  # noqa: E402  (needs torch's libraries in the process)


def mark_step(device="", wait=False):
    """Sends everything pending to run; with ``wait``, returns when it is done."""
    _ltc.mark_step(wait)


def metrics_report():
    """Counters and timings, as text."""
    return _ltc.metrics_report()


def fallback_count():
    """How often operators ran eagerly."""
    return _ltc.fallback_count()


def _device_module():
    """What libtorch expects of ``torch.ltc``."""
    m = types.ModuleType("torch.ltc", "The ltc device module.")
    m.is_available = lambda: True
    m.is_initialized = lambda: True
    m.device_count = _ltc.device_count
    m.current_device = lambda: 0
    m.set_device = lambda device: None
    m._is_in_bad_fork = lambda: False
    m.manual_seed = m.manual_seed_all = _ltc.manual_seed
    m.synchronize = lambda device=None: _ltc.mark_step(True)
    m.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    return m


torch.utils.rename_privateuse1_backend("ltc")
_ltc.init()
torch._register_device_module("ltc", _device_module())
torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=False)
