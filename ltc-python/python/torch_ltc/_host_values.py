"""Helpers of the host recorder that deal with values: comparing CPU tensors, copying them to the device, and calls that
are made in another way while a step is captured.

A few functions of libtorch copy host values to the device by themselves, where the recorder cannot see it
(`torch.tensor`, `ctc_loss`). :func:`computed` and :func:`rewritten` make such a call of functions that it does see.
"""

import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_ltc._runtime import is_tensor, on_device
from torch_ltc._traced import NUMBERS, plain

#: A tensor made of a list of at most so many numbers is computed on the device, not copied there.
_MANY = 64
#: A tensor's content can be a constant up to so many bytes; and how many such constants are kept.
_LARGE, _KEPT = 1 << 16, 256


def leaves_of(x: Any) -> Iterator[Any]:
    """What nested lists, tuples, dicts and slices hold."""
    if isinstance(x, (list, tuple)):
        for each in x:
            yield from leaves_of(each)
    elif isinstance(x, dict):
        for each in x.values():
            yield from leaves_of(each)
    elif type(x) is slice:
        yield from (x.start, x.stop, x.step)
    else:
        yield x


def bounds_of(x: Any) -> Iterator[Any]:
    """What the slices in nested lists and tuples hold: libtorch reads that by itself, where it is a tensor."""
    if type(x) is slice:
        yield from (x.start, x.stop, x.step)
    elif isinstance(x, (list, tuple)):
        for each in x:
            yield from bounds_of(each)


def replaced(x: Any, others: dict[int, torch.Tensor]) -> Any:
    """The same nested containers with other tensors in place of some, which `others` has by identity."""
    if type(x) in (list, tuple):
        return type(x)(replaced(each, others) for each in x)
    if type(x) is dict:
        return {k: replaced(each, others) for k, each in x.items()}
    return others.get(id(x), x) if is_tensor(x) else x


def to_device(t: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of a CPU tensor on a device; lines call this."""
    return t.detach().to(device)


def _signs(t: torch.Tensor) -> torch.Tensor:
    """The signs of all elements: :func:`torch.equal` takes 0.0 and -0.0 for equal."""
    return torch.signbit(torch.view_as_real(t.resolve_conj()) if t.is_complex() else t)


def same(t: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two CPU tensors have the same dtype, shape, strides and values, signs of zeros included."""
    if not (t.dtype == other.dtype and t.shape == other.shape and t.stride() == other.stride()):
        return False
    return torch.equal(t, other) and torch.equal(_signs(t), _signs(other))


def same_zero(x: float, zero: float) -> bool:
    """Whether a number is zero with the same sign as `zero`."""
    return x == 0.0 and math.copysign(1.0, x) == math.copysign(1.0, zero)


#: The tensors that :func:`content` has returned, by their dtype, layout and bytes.
_contents: OrderedDict[Any, torch.Tensor] = OrderedDict()


def content(t: torch.Tensor) -> torch.Tensor | None:
    """A tensor with the content of a CPU tensor: the same object for equal contents, so that captures which use it
    compare as equal. `None` where the tensor is too large."""
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
    """A tensor with a number: the same object for equal ones, so that captures which use it compare as equal."""
    return torch.tensor(value, dtype=dtype, device="cpu")


def with_tensor(func: Any, args: Any) -> Any:
    """The arguments of ``t += 1`` with a tensor in place of the number: else libtorch makes one at each call, which
    takes twice as long as the sum."""
    if func is not torch.Tensor.add_ or len(args) != 2 or type(args[1]) is not int or abs(args[1]) >= 1 << 24:
        return args
    t, number = args
    # The number is exact in both dtypes, so it does not matter when it is converted.
    return (t, _number(number, t.dtype)) if t.dtype in (torch.float32, torch.float64) else args


def _filled(x: Any, like: torch.Tensor) -> torch.Tensor:
    """A tensor of one number with the dtype and device of another tensor. A number that is too large for the dtype
    becomes infinity, as in `torch.tensor`; `full` would raise."""
    wide = torch.float64 if like.is_floating_point() and type(x) not in (bool, int) else like.dtype
    return torch.full((), x, dtype=wide, device=like.device).to(like.dtype)


def computed(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """A call of `torch.tensor` with a few numbers: the tensor, computed on the device instead of copied there. `None`
    where the call is not of this kind."""
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
    """`ctc_loss` with the mean over examples, by functions that the recorder sees. (libtorch divides by a tensor of
    lengths that it makes on the host.) `None` where another reduction is asked for."""
    if reduction not in (1, "mean") or not on_device(log_probs):
        return None
    lengths = target_lengths
    if not is_tensor(lengths):
        lengths = call(torch.tensor, lengths)
    elif lengths.dim() != 1 or lengths.is_floating_point() or lengths.is_complex():
        return None
    losses = call(torch.ctc_loss, log_probs, targets, input_lengths, target_lengths, blank, 0, zero_infinity)
    if losses.shape != lengths.shape:
        return None
    return (losses / call(torch.Tensor.to, lengths, losses.device).to(losses.dtype).clamp_min(1)).mean()


#: The functions that are called in another way, with what calls them so.
_REWRITTEN: dict[Any, Callable[..., Any]] = {torch.ctc_loss: _ctc_loss, torch.nn.functional.ctc_loss: _ctc_loss}


def rewritten(call: Callable[..., Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call that is made in another way; `None` where it is to be made as it is. `call`: makes a call
    that the recorder sees."""
    function = _REWRITTEN.get(func)
    if function is None:
        return None
    try:
        inspect.signature(function).bind(call, *args, **kwargs)
    except TypeError:  # which the call itself will raise
        return None
    return function(call, *args, **kwargs)
