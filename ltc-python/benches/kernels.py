"""Small programs that fuse into one kernel, without gradients, from 16 to 16 Mi elements: cases of `paired.py` by name."""

import torch
import torch.nn.functional as F


def _rms_norm(t):
    return t["x"] * (t["x"].square().mean(-1, keepdim=True) + 1e-5).rsqrt() * t["row"]


def _rotary(t):
    left, right = t["x"].chunk(2, -1)
    return t["x"] * t["y"] + torch.cat([-right, left], -1) * t["z"]


def _adam(t):
    mean = t["y"] * 0.9 + t["x"] * 0.1
    square = t["z"].abs() * 0.999 + t["x"].square() * 0.001
    return t["w"] - mean / (square.sqrt() + 1e-8) * 1e-3, mean, square


_PROGRAMS = {
    "x*exp(x)+x*x": lambda t: t["x"] * t["x"].exp() + t["x"] * t["x"],
    "gelu": lambda t: F.gelu(t["x"]),
    "silu": lambda t: F.silu(t["x"]),
    "layer norm": lambda t: F.layer_norm(t["x"], t["row"].shape, t["row"], t["row"]),
    "softmax": lambda t: t["x"].softmax(-1),
    "cross-entropy": lambda t: F.cross_entropy(t["x"], t["labels"]),
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
    tensors = {key: value.to(device) for key, value in tensors.items()}
    call = prepare(_PROGRAMS[program])

    def step():
        with torch.no_grad():
            return call(tensors)

    return compiled(step)
