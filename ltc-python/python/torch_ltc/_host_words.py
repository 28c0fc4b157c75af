"""Tables of what torch's functions and methods do, by name, for the host recorder (`_host.py`)."""

import types
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from torch_ltc._runtime import is_tensor

#: Methods that tell about a tensor without reading its values.
METADATA = frozenset(
    "size stride dim ndimension numel nelement element_size storage_offset is_contiguous is_floating_point is_complex"
    " is_conj is_neg is_signed is_pinned is_shared is_set_to is_inference is_same_size is_tensor _is_view data_ptr"
    " get_device untyped_storage __len__ __hash__".split()
)

#: Those of them, and attributes, that tell of a tensor's shape and dtype alone.
_OF_SHAPE = frozenset(
    "size dim ndimension numel nelement element_size is_floating_point is_complex __len__"
    " shape dtype device ndim".split()
)


def _asked(func: Any) -> str:
    """The name of a method, or of the attribute that a getter gets."""
    word = getattr(func, "__name__", "")
    return str(getattr(func.__self__, "__name__", "") if word == "__get__" else word)


def tells_shape(func: Any) -> bool:
    """Whether a function tells of a tensor's shape or dtype, and of nothing else."""
    return _asked(func) in _OF_SHAPE


def tells_memory(func: Any) -> bool:
    """Whether a function tells about a tensor's memory, version counter or history."""
    return _asked(func) in _OF_MEMORY


#: Functions that make a view, a cast or a copy of a tensor, and nothing else.
VIEWS_AND_CASTS = frozenset(
    "to ltc as_tensor view reshape flatten unflatten squeeze unsqueeze transpose permute contiguous t narrow expand"
    " detach clone float double half bfloat16 long int bool __getitem__".split()
)

#: Functions that copy a CPU tensor to the device, and functions of device tensors that take CPU tensors as they are.
MOVES, USES = frozenset(("to", "ltc", "as_tensor")), frozenset(("to", "copy_", "__setitem__", "__getitem__"))
#: Functions that use no more of another tensor than its shape, dtype or device.
LIKE = frozenset(("to", "type_as", "expand_as", "view_as", "reshape_as", "is_same_size"))

#: Methods and attributes that tell about a tensor's memory, version counter or history.
_OF_MEMORY = frozenset(
    "untyped_storage storage _typed_storage data_ptr storage_offset is_set_to is_shared is_pinned _is_view _version"
    " _base output_nr _cdata".split()
)
#: Methods that tell of the memory of a CPU tensor what may change.
OF_MEMORY_OF_HOST = frozenset("data_ptr is_shared is_pinned".split())
#: Methods that tell where a tensor is; what they return is not compared.
PLACES = frozenset(("data_ptr", "untyped_storage", "get_device", "__hash__", "__set__"))

#: Functions that do nothing with the numbers they take but compute. Whatever such a number is, libtorch calls the same
#: operators, results have the same shapes, and the same arguments are errors, but for what `_CONDITIONS` asks. Any
#: other function may decide by a number (`cross_entropy` smooths labels only if it is to smooth them by more than 0,
#: `isclose` refuses a tolerance below 0). The names are without the marks of methods that write in place (`add_`), are
#: operators (`__radd__`), or take lists (`_foreach_add`).
_COMPUTES = frozenset(
    "add radd iadd sub subtract rsub isub mul multiply rmul imul div divide true_divide truediv rdiv rtruediv"
    " idiv itruediv pow rpow ipow float_power remainder rmod mod imod fmod floor_divide floordiv rfloordiv"
    " ifloordiv lt le gt ge eq ne less less_equal greater greater_equal not_equal maximum minimum clamp clip"
    " clamp_min clamp_max lerp addcmul addcdiv addmm addmv addr addbmm baddbmm where masked_fill index_fill fill"
    " full full_like new_full setitem scalar_tensor leaky_relu elu celu softplus hardshrink threshold nan_to_num"
    " smooth_l1_loss huber_loss batch_norm layer_norm group_norm instance_norm normal bernoulli uniform"
    " gumbel_softmax fused_adam fused_adamw fused_sgd fused_adagrad".split()
)


#: A condition on a number, as the text of a line and as a function.
_Condition: TypeAlias = tuple[str, Callable[[float], bool]]
#: Conditions on numbers for which what autograd does depends on them, by function: the gradient of a sum's part that is
#: multiplied by 1 is the given gradient itself, that of a power by 0 is no power, and gradients of what is written in
#: place are errors for negative slopes.
_IS_ONE, _IS_ZERO = ("{} == 1.0", lambda x: x == 1.0), ("{} == 0.0", lambda x: x == 0.0)
_IS_NEGATIVE = ("{} < 0.0", lambda x: x < 0.0)
_CONDITIONS: dict[str, _Condition] = {
    **dict.fromkeys("add iadd sub isub subtract rsub addmm addmv addr addbmm baddbmm addcmul addcdiv".split(), _IS_ONE),
    **dict.fromkeys("pow ipow float_power".split(), _IS_ZERO),
    **dict.fromkeys("leaky_relu elu celu".split(), _IS_NEGATIVE),
}
#: Some functions raise for numbers that are too large for half precision.
_IS_HALF: _Condition = ("abs({}) <= 65504.0", lambda x: abs(x) <= 65504.0)


def _plain_name(func: Any) -> str:
    """The name of a function without such marks."""
    return str(getattr(func, "__name__", "")).strip("_").removeprefix("foreach_")


def conditions(func: Any, leaves: list[Any]) -> list[_Condition]:
    """The conditions on a number that a function takes, of which replays have to compare the outcome: what the capture
    recorded depends on it."""
    condition = _CONDITIONS.get(_plain_name(func)) if torch.is_grad_enabled() else None
    is_half = any(is_tensor(x) and x.dtype == torch.float16 for x in leaves)
    return [*([condition] if condition else []), *([_IS_HALF] if is_half else [])]


#: Functions that convert a number to the dtype of a tensor, which raises for one that does not fit a whole dtype.
_CONVERTS = frozenset("setitem fill masked_fill index_fill full full_like new_full scalar_tensor".split())


def _is_whole(x: Any) -> bool:
    dtype = x.dtype if is_tensor(x) else x
    return isinstance(dtype, torch.dtype) and not (dtype.is_floating_point or dtype.is_complex)


def computes_with_numbers(func: Any, leaves: list[Any]) -> bool:
    """Whether a function of torch's only computes with the numbers among what it is given (`leaves`)."""
    module = func.__module__ if isinstance(func, types.FunctionType) else getattr(func, "namespace", "torch")
    word = _plain_name(func)
    if word in _CONVERTS and (any(_is_whole(x) for x in leaves if not is_tensor(x)) or _is_whole(leaves[0])):
        return False
    return word in _COMPUTES and (module == "aten" or module.partition(".")[0] == "torch")
