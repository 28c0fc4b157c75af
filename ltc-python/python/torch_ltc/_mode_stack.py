"""The torch function and dispatch modes that a program has entered, and where a mode of ours stands among them."""

from torch import is_anomaly_enabled
from torch._C import _get_function_stack_at, _len_torch_dispatch_stack, _len_torch_function_stack
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode
from torch.utils._device import DeviceContext


def _take_all() -> list[TorchFunctionMode]:
    """Takes all modes off the stack; returns them from the innermost to the outermost."""
    return [_pop_mode() for _ in range(_len_torch_function_stack())]


def put_below(mode: TorchFunctionMode) -> None:
    """Enters a mode outside all others but `torch.set_default_device`, which expects to be the outermost: a program
    that leaves a mode takes the innermost off the stack, which is then one of its own."""
    modes = _take_all()
    while modes and isinstance(modes[-1], DeviceContext):
        _push_mode(modes.pop())
    _push_mode(mode)
    for other in reversed(modes):
        _push_mode(other)


def take_out(mode: TorchFunctionMode) -> None:
    """Leaves a mode, whichever the program has entered or left since."""
    for other in reversed([m for m in _take_all() if m is not mode]):
        _push_mode(other)


def sees_operators() -> str:
    """What of the program sees each operator that the thread calls, so that a step cannot be replayed now, in words;
    empty where there is nothing. (What `torch.set_default_device` enters only gives calls a device.)"""
    if is_anomaly_enabled():
        return "anomaly detection is on, which looks at each gradient"
    if _len_torch_dispatch_stack():
        return "a torch dispatch mode is active, which sees each operator"
    modes = map(_get_function_stack_at, range(_len_torch_function_stack()))
    if any(type(mode) is not DeviceContext for mode in modes):
        return "a torch function mode is active, which sees each call"
    return ""
