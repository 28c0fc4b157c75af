"""The cache of compiled programs (``torch._lazy.ir_cache``)."""

import os

from torch_ltc import _ltc


def dump(dot_file_name: str | os.PathLike[str]) -> None:
    """Writes the cached programs to a file in the DOT language: hash, operations, inputs and outputs of each."""
    with open(dot_file_name, "w") as f:
        f.write(_ltc.cache_dot())


def reset() -> None:
    """Forgets all compiled programs."""
    _ltc.clear_cache()
