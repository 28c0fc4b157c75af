"""Small programs that fuse into one kernel, without gradients, from 16 to 16 Mi elements: cases of `paired.py` by
name."""

import inspect

import torch
import torch.nn.functional as F


def _rms_norm(x, row):
    return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * row


def _rotary(x, y, z):
    left, right = x.chunk(2, -1)
    return x * y + torch.cat([-right, left], -1) * z


def _adam(x, y, z, w):
    mean = y * 0.9 + x * 0.1
    square = z.abs() * 0.999 + x.square() * 0.001
    return w - mean / (square.sqrt() + 1e-8) * 1e-3, mean, square


#: Arguments are called as the tensors they get.
_PROGRAMS = {
    "x*exp(x)+x*x": lambda x: x * x.exp() + x * x,
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "layer norm": lambda x, row: F.layer_norm(x, row.shape, row, row),
    "softmax": lambda x: x.softmax(-1),
    "cross-entropy": lambda x, labels: F.cross_entropy(x, labels),
    "Adam": _adam,
    "RMS norm": _rms_norm,
    "rotary": _rotary,
}
#: Rows and columns.
_SIZES = {"16": (1, 16), "1 Ki": (16, 64), "1 Mi": (4096, 256), "16 Mi": (16384, 1024)}
NAMES = tuple(f"{program}, {size}" for program in _PROGRAMS for size in _SIZES)


def build(name, device, prepare, compiled):
    """The case as `cases.build` gives it."""
    program, size = name.rsplit(", ", 1)
    shape = _SIZES[size]
    tensors = {key: torch.randn(shape) for key in ("x", "y", "z", "w")}
    tensors |= {"row": torch.randn(shape[1]), "labels": torch.randint(shape[1], shape[:1])}
    program = _PROGRAMS[program]
    inputs = [tensors[key].to(device) for key in inspect.signature(program).parameters]
    call = prepare(program)

    def step():
        with torch.no_grad():
            return call(*inputs)

    return compiled(step)
