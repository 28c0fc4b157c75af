"""``torch_ltc.compile``, the entry point: it wraps a function, a method or a module into a compiled step.

The life of a compiled step is decided in `_step.py`, whose docstring is the overview of all modules that take part.
This module adds :class:`CompiledModule`, the wrapper for modules: it is a module itself, passes attributes on to the
module that it wraps, and hands each call of ``forward`` to a :class:`torch_ltc._step.CompiledStep`.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import torch

from torch_ltc._step import CompiledStep

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CompiledModule(torch.nn.Module):
    """A module whose calls are replayed where that is safe; see :func:`compile`. In all other respects it behaves as
    the module that it wraps: attributes are read from that module and set on it."""

    #: Marks a class of this package whose objects belong to the program: the survey looks at their attributes, which it
    #: does not do for other classes of this package (`_known.is_own`).
    is_of_programs = True

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._orig_mod = module
        # Set past `Module.__setattr__`, so that state dicts and copies of the module do not know of it.
        object.__setattr__(self, "step", CompiledStep(module))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Replays the module's forward pass on these arguments, or calls the module."""
        return self.step(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        if name in ("counts", "backward_counts", "refusal", "explain"):
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
        """Whether an attribute belongs to this wrapper and not to the wrapped module: the wrapper's hooks, for one."""
        return name in ("_orig_mod", "__class__") or name in vars(self)

    @property
    def training(self) -> bool:
        """Whether the wrapped module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        """Sets the mode of the wrapped module. `Module.__init__` assigns it before there is a wrapped module, which
        does nothing."""
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

    ``fn`` may be a function, a method or a module; a module comes back as a module. The first three calls are recorded,
    and while they run, all that the Python code of ``fn`` reads besides its arguments is noted: attributes, globals,
    cells, containers, settings of optimisers, training flags, hooks, which tensors there are and which have gradients.
    A later call is replayed only if all of that, the shapes, dtypes and layouts of its inputs, and the thread's state
    (autocast, grad mode, defaults) are as they were. Otherwise the call is recorded, and captured anew. Numbers that
    change from call to call (a learning rate) are read again by each replay. Gradients flow through what a replay
    returns, and the backward pass is replayed, too. A step that cannot be replayed is recorded each time, which is
    always right; :meth:`CompiledStep.explain` says why, with the line.

    A replay has the same effects as the step: results, gradients, in-place writes and version counters. What ``fn``
    does to CPU tensors, and computes from them and from numbers that change, is repeated on the host. A compiled step
    that is called within another one is captured as a part of the outer one. ``LTC_CHECK_STEPS=n`` records every n-th
    call that could be replayed, and raises :class:`StaleStep` if the replay would have done something else.
    """
    if fn is None:
        return compile
    return CompiledModule(fn) if isinstance(fn, torch.nn.Module) else CompiledStep(fn)
