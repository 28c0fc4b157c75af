"""The cache of compiled programs (``torch._lazy.ir_cache``)."""

from torch_ltc import _ltc


def dump(dot_file_name: str):
    """Writes what the cache holds to a file, as a DOT graph."""
    with open(dot_file_name, "w") as f:
        f.write(f'digraph cache {{\n  cache [label="{_ltc.cached_programs()} programs"];\n}}\n')


def reset():
    """Forgets all compiled programs."""
    _ltc.clear_cache()
