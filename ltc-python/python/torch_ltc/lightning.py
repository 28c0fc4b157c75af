"""PyTorch Lightning on ltc: ``Trainer(accelerator="ltc", strategy="ltc")`` after ``import torch_ltc.lightning``.

Both names are needed: Lightning takes the CPU for whatever accelerator it does not know, and this one refuses that.
"""

from typing import Any

import torch
from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from lightning.pytorch.strategies import SingleDeviceStrategy, StrategyRegistry

import torch_ltc
from torch_ltc import _device, _memory


class LTCAccelerator(Accelerator):
    """The ltc devices of this process."""

    def setup_device(self, device: torch.device) -> None:
        """Makes the device the current one.

        Raises:
            ValueError: where Lightning would train on another device.
        """
        if device.type != "ltc":
            raise ValueError(f'Lightning would train on {device}: say Trainer(accelerator="ltc", strategy="ltc")')
        _device.set_device(device)

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Statistics of the device's memory."""
        return dict(_memory.memory_stats(device))

    def teardown(self) -> None:
        """Gives memory that is kept for later runs back to the system."""
        _memory.empty_cache()

    @staticmethod
    def parse_devices(devices: Any) -> list[int]:
        """The indices of devices that are given as their number (-1 and "auto": one) or as a list."""
        if isinstance(devices, (list, tuple)):
            return [int(d) for d in devices]
        count = 1 if devices in ("auto", -1, "-1") else int(devices)
        return list(range(count))

    @staticmethod
    def get_parallel_devices(devices: Any) -> list[torch.device]:
        """The devices that are meant, as :meth:`parse_devices` takes them."""
        return [torch.device("ltc", i) for i in LTCAccelerator.parse_devices(devices)]

    @staticmethod
    def auto_device_count() -> int:
        """One: a model trains on one device."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Whether there is an ltc device: always."""
        return True

    @staticmethod
    def name() -> str:
        """The name of the accelerator, as `Trainer` takes it."""
        return "ltc"


class LTCStrategy(SingleDeviceStrategy):
    """One model on one ltc device. A step ends with its optimiser, and mixed precision is that of ltc."""

    strategy_name = "ltc"

    def __init__(self, device: Any = "ltc", **options: Any) -> None:
        super().__init__(device=torch.device(device), **options)

    @property
    def precision_plugin(self) -> Precision:
        """Lightning's plugin that says in which precision a model trains."""
        return super().precision_plugin

    @precision_plugin.setter
    def precision_plugin(self, plugin: Precision | None) -> None:
        """Sets the plugin; one for mixed precision on another device becomes one for ltc."""
        # Lightning makes it for CUDA where it does not know the accelerator, and autocast would then do nothing here.
        if isinstance(plugin, MixedPrecision) and plugin.device != "ltc":
            plugin = MixedPrecision(plugin.precision, "ltc")  # type: ignore[arg-type]
        SingleDeviceStrategy.precision_plugin.fset(self, plugin)  # type: ignore[attr-defined]

    def optimizer_step(self, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimiser, and then a barrier: what was recorded is sent to run, without waiting for it."""
        result = super().optimizer_step(*args, **kwargs)
        torch_ltc.mark_step()
        return result


AcceleratorRegistry.register("ltc", LTCAccelerator, description="Lazy tensors of ltc", override=True)
StrategyRegistry.register("ltc", LTCStrategy, description="One model on one ltc device", override=True)
