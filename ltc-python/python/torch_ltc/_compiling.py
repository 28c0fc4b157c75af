"""What is known of compiled steps before there is one, and ``torch.compiler.is_compiling()`` while one is captured."""

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_ltc import _ltc

#: Whether this thread captures a step: others within it are part of it.
capturing = threading.local()


def _every() -> int:
    """How many replays it takes until one is recorded and compared instead (``LTC_CHECK_STEPS``); 0: never."""
    try:
        return max(int(os.environ.get("LTC_CHECK_STEPS") or 0), 0)
    except ValueError:
        raise ValueError(f"LTC_CHECK_STEPS={os.environ['LTC_CHECK_STEPS']!r} is not a number") from None


#: Read when the package is imported, so that a value that makes no sense is told then.
CHECK_EVERY = _every()

_asks = torch.compiler.is_compiling


def _noted(register: Callable[..., Any]) -> Callable[..., Any]:
    """What gives operators kernels, or takes them (``torch.library.Library``): captured steps went by those of then."""

    @functools.wraps(register)
    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            return register(*args, **kwargs)
        finally:
            _ltc.note_registration()

    return noted


@functools.cache
def note_registrations() -> None:
    """From here on a kernel that an operator gets in Python ends what was captured before."""
    module = torch._C._DispatchModule
    for name in ("reset", "impl", "impl_t_t", "impl_with_aoti_compile", "fallback", "fallback_fallthrough"):
        if hasattr(module, name):
            setattr(module, name, _noted(getattr(module, name)))


def _answer() -> bool:
    """Takes the place of ``torch.compiler.is_compiling`` while some thread captures."""
    asker = sys._getframe(1).f_globals.get("__name__") or ""
    return (getattr(capturing, "now", False) and asker.partition(".")[0] != "torch") or _asks()


def noted_draws(device: int) -> torch.Tensor:
    """Stands for the state of a device's generator where a step is captured, which goes on without waiting for it: to
    be set again, and for nothing else."""
    with torch._C.DisableTorchFunction():
        state = torch.zeros(0, dtype=torch.uint8)
    state._ltc_draws = (device, _ltc.Draws(device))  # type: ignore[attr-defined]
    return state


def seen_draws(state: Any) -> Any:
    """What a noted state is, for whoever looks at it: a wait, which ends what is captured; anything else as it is."""
    device, draws = getattr(state, "_ltc_draws", (0, None))
    if draws is None:
        return state
    now = _ltc.Draws(device)
    draws.resume()
    try:
        return _ltc.generator_state(device)
    finally:
        now.resume()


def resumes_draws(state: torch.Tensor) -> bool:
    """Sets a generator to a state that was noted while a step was captured; whether it is one."""
    _, draws = getattr(state, "_ltc_draws", (0, None))
    if draws is None:
        return False
    draws.resume()
    return True


@contextlib.contextmanager
def is_compiling() -> Iterator[None]:
    """Within it, code outside torch that asks whether it is compiled is told so: packages then leave out what reads
    values. Torch itself, whose optimisers would compute in other numbers, does what it does when it is called
    eagerly."""
    torch.compiler.is_compiling = _answer
    capturing.now = True
    try:
        yield
    finally:
        capturing.now = False
        torch.compiler.is_compiling = _asks
