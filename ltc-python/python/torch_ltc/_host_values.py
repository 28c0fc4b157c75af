"""Values of the host where a step is captured: what holds them, and how they get to the device."""

import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_ltc._runtime import on_device
from torch_ltc._traced import NUMBERS, plain

#: Numbers in a list that a tensor is computed from rather than copied.
_MANY = 64
#: Bytes of a tensor whose values are compared, and how many such values are kept.
_LARGE, _KEPT = 1 << 16, 256


def leaves_of(x: Any) -> Iterator[Any]:
    """What lists, tuples and dicts hold, however deep."""
    if isinstance(x, (list, tuple)):
        for each in x:
            yield from leaves_of(each)
    elif type(x) is dict:
        for each in x.values():
            yield from leaves_of(each)
    else:
        yield x


def replaced(x: Any, others: dict[int, torch.Tensor]) -> Any:
    """The same with others in place of some tensors, by their identity."""
    if type(x) in (list, tuple):
        return type(x)(replaced(each, others) for each in x)
    if type(x) is dict:
        return {k: replaced(each, others) for k, each in x.items()}
    return others.get(id(x), x) if isinstance(x, torch.Tensor) else x


def to_device(t: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of a CPU tensor."""
    return t.detach().to(device)


def _signs(t: torch.Tensor) -> torch.Tensor:
    """What :func:`torch.equal` does not compare: the signs of zeros."""
    return torch.signbit(torch.view_as_real(t.resolve_conj()) if t.is_complex() else t)


def same(t: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two CPU tensors are equal, and of one kind."""
    if not (t.dtype == other.dtype and t.shape == other.shape and t.stride() == other.stride()):
        return False
    return torch.equal(t, other) and torch.equal(_signs(t), _signs(other))


def same_zero(x: float, zero: float) -> bool:
    """Whether a number is this zero, and not that of the other sign."""
    return x == 0.0 and math.copysign(1.0, x) == math.copysign(1.0, zero)


_contents: OrderedDict[Any, torch.Tensor] = OrderedDict()


def content(t: torch.Tensor) -> torch.Tensor | None:
    """The one tensor for what a CPU tensor holds, by which captures are compared; `None` where that is too much."""
    if t.nbytes > _LARGE or t.layout is not torch.strided:
        return None
    held = t.detach().resolve_conj().resolve_neg()
    key = (t.dtype, t.shape, t.stride(), held.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    if key not in _contents:
        _contents[key] = held.clone()
        while len(_contents) > _KEPT:
            _contents.popitem(last=False)
    _contents.move_to_end(key)
    return _contents[key]


@functools.lru_cache(256)
def _number(value: int, dtype: torch.dtype) -> torch.Tensor:
    """The one tensor for a number: captures are compared by it."""
    return torch.tensor(value, dtype=dtype)


def with_tensor(func: Any, args: Any) -> Any:
    """``t += 1`` with a tensor for the number: libtorch makes one at each call, which takes twice as long as the
    sum."""
    if func is not torch.Tensor.add_ or len(args) != 2 or type(args[1]) is not int or abs(args[1]) >= 1 << 24:
        return args
    t, number = args
    # Exact in these, so that it is the same whenever it is converted.
    return (t, _number(number, t.dtype)) if t.dtype in (torch.float32, torch.float64) else args


def _filled(x: Any, like: torch.Tensor) -> torch.Tensor:
    """One number as such a tensor holds it: infinity where it is too large for it, which is an error of `full`."""
    wide = torch.float64 if like.is_floating_point() and type(x) not in (bool, int) else like.dtype
    return torch.full((), x, dtype=wide, device=like.device).to(like.dtype)


def computed(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """A tensor of numbers that the program has in plain sight, computed on the device instead of copied there."""
    data: Any = args[0] if len(args) == 1 else None
    numbers: list[Any] = data if type(data) in (list, tuple) else [data]
    if not 0 < len(numbers) <= _MANY or not all(type(plain(x)) in (*NUMBERS, complex) for x in numbers):
        return None
    out: torch.Tensor = func(*args, **kwargs)
    if out.device.type != "ltc" or out.requires_grad:
        return None
    if not out.is_floating_point() and any(plain(x) is not x for x in numbers):
        return None
    filled = [_filled(x, out) for x in numbers]
    return filled[0] if numbers is not data else torch.stack(filled)


def _ctc_loss(
    call: Callable[..., Any],
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int | str = 1,
    zero_infinity: bool = False,
) -> torch.Tensor | None:
    """libtorch divides the mean by a tensor of lengths that it makes on the host; here it is made of what is given."""
    if reduction not in (1, "mean") or not on_device(log_probs):
        return None
    lengths = target_lengths
    if not isinstance(lengths, torch.Tensor):
        lengths = call(torch.tensor, lengths)
    elif lengths.dim() != 1 or lengths.is_floating_point() or lengths.is_complex():
        return None
    losses = call(torch.ctc_loss, log_probs, targets, input_lengths, target_lengths, blank, 0, zero_infinity)
    if losses.shape != lengths.shape:
        return None
    return (losses / call(torch.Tensor.to, lengths, losses.device).to(losses.dtype).clamp_min(1)).mean()


_REWRITTEN: dict[Any, Callable[..., Any]] = {torch.ctc_loss: _ctc_loss, torch.nn.functional.ctc_loss: _ctc_loss}


def rewritten(call: Callable[..., Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What comes of the calls that are made in place of one; `None` where it is made itself."""
    function = _REWRITTEN.get(func)
    if function is None:
        return None
    try:
        inspect.signature(function).bind(call, *args, **kwargs)
    except TypeError:  # which the call itself will raise
        return None
    return function(call, *args, **kwargs)
