"""The cache of compiled programs (``torch._lazy.ir_cache``)."""

from torch_ltc import _ltc
from torch_ltc._runtime import service


def dump(dot_file_name: str):
    """Writes the cached programs to a file in the DOT language: hash, operations, inputs and outputs of each."""
    with open(dot_file_name, "w") as f:
        f.write(service("cache_dot")[1])


def reset():
    """Forgets all compiled programs."""
    _ltc.clear_cache()
