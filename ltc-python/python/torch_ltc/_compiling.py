"""State of the process and of its threads that concerns compiled steps: the setting `LTC_CHECK_STEPS`, whether this
thread captures, kernels that are registered meanwhile, and ``torch.compiler.is_compiling()`` during a capture.

Functions that ``torch.compile`` made run as they are written within a capture (:class:`_StanceWhileCapturing`).

Random draws are here, too: the state of a device's generator that a captured step asks for is a stand-in, since reading
it would wait for the device (:func:`noted_draws`).
"""

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

from torch_ltc import _ltc

_F = TypeVar("_F", bound=Callable[..., Any])

#: Whether this thread captures a step (`now`): compiled steps that are called within it are parts of it.
capturing = threading.local()


def _every() -> int:
    """Every how many calls one that could be replayed is recorded and compared (``LTC_CHECK_STEPS``); 0: never."""
    try:
        return max(int(os.environ.get("LTC_CHECK_STEPS") or 0), 0)
    except ValueError:
        raise ValueError(f"LTC_CHECK_STEPS={os.environ['LTC_CHECK_STEPS']!r} is not a number") from None


#: Read when the package is imported, so that a value that makes no sense is an error right then.
CHECK_EVERY = _every()

_asks = torch.compiler.is_compiling


def _noted(register: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that registers a kernel of an operator, or removes one (``torch.library.Library``): captures
    that were made before it may not be replayed any more."""

    @functools.wraps(register)
    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            return register(*args, **kwargs)
        finally:
            _ltc.note_registration()

    return noted


@functools.cache
def note_registrations() -> None:
    """From here on a kernel that is registered in Python makes earlier captures useless."""
    module = torch._C._DispatchModule
    for name in ("reset", "impl", "impl_t_t", "impl_with_aoti_compile", "fallback", "fallback_fallthrough"):
        if hasattr(module, name):
            setattr(module, name, _noted(getattr(module, name)))


def _answer() -> bool:
    """Stands in for ``torch.compiler.is_compiling`` while some thread captures: true for code outside torch in a thread
    that does."""
    asker = sys._getframe(1).f_globals.get("__name__") or ""
    return (getattr(capturing, "now", False) and asker.partition(".")[0] != "torch") or _asks()


def noted_draws(device: int) -> torch.Tensor:
    """A stand-in for the state of a device's generator, for a step that is captured: it can be set again and used for
    nothing else, and so nothing has to wait for the device."""
    with torch._C.DisableTorchFunction():
        state = torch.zeros(0, dtype=torch.uint8, device="cpu")
    state._ltc_draws = (device, _ltc.Draws(device))  # type: ignore[attr-defined]
    return state


def noted_in(state: Any) -> tuple[int, Any]:
    """The device whose generator's state an object stands in for, and what that was; `(0, None)` for others."""
    # Attributes of other objects are not asked for, since that may run their code.
    return getattr(state, "_ltc_draws", (0, None)) if type(state) is torch.Tensor else (0, None)


def seen_draws(state: Any) -> Any:
    """The actual state for a stand-in that somebody looks at, which waits for the device and so ends the capture; any
    other object as it is."""
    device, draws = noted_in(state)
    if draws is None:
        return state
    now = _ltc.Draws(device)
    draws.resume()
    try:
        return _ltc.generator_state(device)
    finally:
        now.resume()


def resumes_draws(state: torch.Tensor) -> bool:
    """Sets a generator to the state that a stand-in stands for; returns false where `state` is no stand-in."""
    _, draws = noted_in(state)
    if draws is None:
        return False
    draws.resume()
    return True


def past_dynamo(fn: _F) -> _F:
    """Has Dynamo neither trace nor compile a function and what it calls, within one that ``torch.compile`` made, as
    ``torch._dynamo.disable`` does without the time that importing it takes."""
    fn._torchdynamo_disable = True  # type: ignore[attr-defined]
    set_code_exec_strategy(fn.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    return fn


class _StanceWhileCapturing:
    """What ``torch.compiler.set_stance`` set, but for threads that capture: ``"force_eager"``, with which functions
    that ``torch.compile`` made run as they are written. Dynamo cannot trace the function mode that captures them."""

    def __init__(self, stance: Any):
        self._stance = stance

    def __getattr__(self, name: str) -> Any:
        return "force_eager" if name == "stance" and getattr(capturing, "now", False) else getattr(self._stance, name)


@contextlib.contextmanager
def _as_written() -> Iterator[None]:
    """Within this context, functions that ``torch.compile`` made run as they are written in a thread that captures."""
    dynamo: Any = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None or isinstance(dynamo._stance, _StanceWhileCapturing):
        yield
        return
    prior = dynamo._stance
    dynamo._stance = stance = _StanceWhileCapturing(prior)
    try:
        yield
    finally:
        if dynamo._stance is stance:
            dynamo._stance = prior


@contextlib.contextmanager
def is_compiling() -> Iterator[None]:
    """Within this context, code outside torch that asks whether it is being compiled is told so: packages then leave
    out checks that read values. Torch itself is not told so, since its optimisers would compute in other precision."""
    torch.compiler.is_compiling = _answer
    capturing.now = True
    try:
        with _as_written():
            yield
    finally:
        capturing.now = False
        torch.compiler.is_compiling = _asks
