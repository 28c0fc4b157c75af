"""``torch_ltc.compile``: functions, methods and modules as steps that are captured once and replayed."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import torch

from torch_ltc._step import CompiledStep

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CompiledModule(torch.nn.Module):
    """A module whose calls are replayed where that is safe; see :func:`compile`. Else it is the module that it stands
    for: what is set on it is set on that."""

    is_of_programs = True

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._orig_mod = module
        # Not an attribute that modules, state dicts or copies know of.
        object.__setattr__(self, "step", CompiledStep(module))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, or replays the call."""
        return self.step(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        if name in ("counts", "way_counts", "refusal", "explain"):
            return getattr(self.step, name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_own(name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_own(name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def _is_own(self, name: str) -> bool:
        """Whether an attribute is of this object and not of the module that it stands for: its hooks, for one."""
        return name in ("_orig_mod", "__class__") or name in vars(self)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        """Puts the module into training mode, or out of it; modules set this before they have any part."""
        if "_modules" in vars(self):
            self._orig_mod.training = mode

    def __reduce__(self) -> Any:
        return CompiledModule, (self._orig_mod,)


@overload
def compile(fn: torch.nn.Module) -> CompiledModule: ...  # type: ignore[overload-overlap]  # (modules are callable)
@overload
def compile(fn: Callable[_P, _R]) -> CompiledStep[_P, _R]: ...
@overload
def compile(fn: None = None) -> Callable[[Callable[_P, _R]], CompiledStep[_P, _R]]: ...
def compile(fn: Any = None) -> Any:
    """Makes a training step (forward, backward, optimiser) replay itself without being recorded again.

    ``fn`` may be a function, a method or a module. While it is captured (three calls), all that its Python code reads
    besides its arguments is taken down: attributes, globals, cells, containers, settings of optimisers, training flags,
    hooks, which tensors there are and which have gradients. A replay happens only if all of that, the kind of its
    inputs and the thread's state (autocast, grad mode, defaults) are as they were; else the call is recorded, and
    captured anew. A module comes back as a module. Gradients flow through what a replay returns: going back replays,
    too. Numbers that change from call to call (a learning rate) are read by replays. Steps that cannot be replayed are
    recorded each time, which is always right: :meth:`CompiledStep.explain` says why, with the line.

    What a replay leaves is what the step leaves: results, gradients, tensors written in place and their versions. What
    ``fn`` does to CPU tensors, and computes from them and from numbers that change, is repeated on the host. Steps
    within steps are captured as parts of the outer one. ``LTC_CHECK_STEPS=n`` records every n-th call that could be
    replayed, and raises :class:`StaleStep` where the replay would have done something else.
    """
    if fn is None:
        return compile
    return CompiledModule(fn) if isinstance(fn, torch.nn.Module) else CompiledStep(fn)
