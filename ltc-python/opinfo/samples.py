"""Sample inputs on a device: the same values, layouts, aliasing and flags as on the CPU."""

import torch
from torch.utils._pytree import tree_map


class Mover:
    """Copies tensors to `device`. Tensors that share memory share it there too, so views stay views."""

    def __init__(self, device):
        self.device = device
        self.storages = {}

    def tensor(self, t):
        """A leaf with the values, strides and `requires_grad` of `t`."""
        if t.device.type != "cpu":
            return t  # a sample about mixed devices
        if t.layout != torch.strided or type(t) not in (torch.Tensor, torch.nn.Parameter):
            return t.detach().clone().to(self.device).requires_grad_(t.requires_grad)
        plain = t.detach()
        conj, neg = plain.is_conj(), plain.is_neg()
        plain = torch._neg_view(plain) if neg else plain
        plain = plain.conj() if conj else plain
        moved = self._storage(plain).as_strided(plain.size(), plain.stride(), plain.storage_offset())
        moved = moved.conj() if conj else moved
        moved = torch._neg_view(moved) if neg else moved
        return moved.detach().requires_grad_(t.requires_grad)

    def _storage(self, t):
        memory = t.untyped_storage()
        key = (memory._cdata, t.dtype)
        if key not in self.storages:
            count = memory.nbytes() // t.element_size()
            whole = t.as_strided((count,), (1,), 0).clone()
            # The CPU tensor is kept: its address must not be reused while it is a key.
            self.storages[key] = (whole.to(self.device), t)
        return self.storages[key][0]

    def __call__(self, tree):
        """`tree` with every tensor copied and every mention of the CPU replaced."""
        return tree_map(self._leaf, tree)

    def _leaf(self, x):
        if isinstance(x, torch.Tensor):
            return self.tensor(x)
        if x == "cpu" or (isinstance(x, torch.device) and x.type == "cpu"):
            return type(x)(self.device)
        return x


def move(sample, device, host_arguments=False):
    """(input, args, kwargs) of a sample on `device`."""
    mover = Mover(device)
    if host_arguments:
        return mover(sample.input), Mover("cpu")(sample.args), Mover("cpu")(sample.kwargs)
    return mover((sample.input, sample.args, sample.kwargs))


def describe(name, sample):
    """The call as one line, tensors as shape and dtype: what a reader needs to write a reproduction."""
    words = [_word(sample.input)] + [_word(a) for a in sample.args]
    words += [f"{k}={_word(v)}" for k, v in sample.kwargs.items()]
    return f"{name}({', '.join(words)})"


def _word(x):
    if isinstance(x, torch.Tensor):
        text = f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
        if x.device.type != "cpu":
            return f"{text}/{x.device}"
        if x.layout != torch.strided:
            return f"{text}/{str(x.layout).removeprefix('torch.')}"
        if not x.is_contiguous():
            text += f"/strides{list(x.stride())}"
        if x.numel() and x.numel() <= 4 and not x.is_complex() and x.dtype != torch.float32:
            text += f"={x.tolist()}"
        return text
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(_word(v) for v in x) + "]"
    return repr(x)
