"""Random numbers for tensors that are spread over ranks (DTensor): replicas draw the same numbers, shards their own.

DTensor gives each shard a range of one Philox generator's stream, by an offset. The device's generators are of the
CPU's kind, which has no offset. So here each draw gets a seed of its own, derived from the generator's seed, and each
shard one that is derived from that. After a draw, the generators of all ranks are in the same state again. Nothing has
to be read for this, since the host knows the seeds.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from torch_ltc import _device

_MODULE = "torch.distributed.tensor._random"
_BITS = (1 << 64) - 1


def _next(seed: int) -> int:
    """A seed that is derived from another one, by a step of SplitMix64."""
    z = seed = (seed + 0x9E3779B97F4A7C15) & _BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
    return z ^ (z >> 31)


def _shard(spec: Any) -> int:
    """The number of this rank's shard of a tensor, counted in the order of the mesh's dimensions."""
    number = 0
    for placement, size, at in zip(spec.placements, spec.mesh.shape, spec.mesh.get_coordinate() or (), strict=False):
        if hasattr(placement, "dim"):  # both kinds of shards
            number = number * size + at
    return number


class _Region(NamedTuple):
    """In the place of an offset: what a draw is made within."""

    tracker: "_Tracker"
    spec: Any


class _Tracker:
    """Takes the part of torch's trackers, which DTensor calls around each random operator."""

    distribute_region_enabled = True

    def __init__(self, run_state_sync: bool) -> None:
        _draw_by_tracker()
        if not run_state_sync:
            return
        # The seed goes in two halves, since whole numbers in tensors are signed.
        mine = _device.initial_seed()
        halves = torch.tensor([mine >> 32, mine & 0xFFFF_FFFF]).to("ltc")
        dist.broadcast(halves, 0)
        high, low = halves.tolist()
        if (high << 32 | low) != mine:
            logging.getLogger(__name__).warning(
                "DTensor draws with rank 0's seed: call torch.manual_seed with the same one on every rank"
            )
            _device.manual_seed(high << 32 | low)

    def _compute_rng_offsets(self, spec: Any) -> tuple["_Region", None]:
        return _Region(self, spec), None

    @contextlib.contextmanager
    def _distribute_region(self, spec: Any, generator: torch.Generator | None = None) -> Iterator[None]:
        if spec.mesh.device_type != "ltc":
            yield
            return
        drawn_by = _device if generator is None else generator
        state = _device.get_rng_state() if generator is not None else None
        seed = _next(drawn_by.initial_seed())
        _device.manual_seed(_next(seed ^ _shard(spec)))
        try:
            yield
        finally:
            if state is not None:
                _device.set_rng_state(state)
            drawn_by.manual_seed(seed)


def _install(module: Any) -> None:
    """Has DTensor make this tracker for ltc meshes: it calls one class by name, whatever the device."""
    general = module.OffsetBasedRNGTracker

    def chosen(kind: Any, device_mesh: Any, run_state_sync: bool = True) -> Any:
        return _Tracker(run_state_sync) if device_mesh.device_type == "ltc" else object.__new__(kind)

    class Kind(type(general)):  # type: ignore[misc]
        """DTensor of torch 2.15 asserts that its tracker is of the class that it calls."""

        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, (_Tracker, general))

    module.OffsetBasedRNGTracker = Kind(general.__name__, (general,), {"__new__": chosen})


def _draw_by_tracker() -> None:
    """Has DTensor of torch 2.15 draw within the region of a tracker of ours. It asks a tracker for two offsets and
    hands them to an operator that adds them to a generator's; ours answers with a :class:`_Region` instead."""
    dispatch: Any = sys.modules.get("torch.distributed.tensor._dispatch")
    by_offsets = getattr(dispatch, "run_dtensor_rng_op", None)
    if by_offsets is None or hasattr(by_offsets, "_of_ltc"):
        return

    def draw(start: Any, end: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(start, _Region):
            return by_offsets(start, end, op, *args, **kwargs)
        with start.tracker._distribute_region(start.spec):
            return op(*args, **kwargs)

    draw._of_ltc = True  # type: ignore[attr-defined]
    dispatch.run_dtensor_rng_op = draw


class _Importing(importlib.abc.MetaPathFinder):
    """Waits until DTensor is imported by somebody: importing it here would take longer than everything else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own spec, whose loader also installs the tracker when the module has been executed."""
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _install(module)

            loader.exec_module = exec_module
        return spec


def register() -> None:
    """Installs the tracker in DTensor, now or when it is imported."""
    if _MODULE in sys.modules:
        _install(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Importing())
