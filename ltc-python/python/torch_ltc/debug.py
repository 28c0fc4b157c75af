"""Looking at what is recorded, without running it (``torch._lazy.debug``)."""

from collections.abc import Sequence

from torch import Tensor

from torch_ltc import _ltc


def render_ir_graph(tensors: Sequence[Tensor]) -> str:
    """The pending graph of these tensors in the DOT language."""
    return _ltc.graph_dot(tensors)


def dump_ir(tensors: Sequence[Tensor], ir_format: str) -> str:
    """The pending graph of these tensors: ``"text"`` with the numbers of this recording, ``"sites"`` with the line of
    the program that recorded each operation, or ``"backend"``, lowered for the backend."""
    formats = {"text": _ltc.graph_text, "sites": _ltc.graph_sites, "backend": _ltc.graph_backend}
    if ir_format not in formats:
        raise RuntimeError(f"Unrecognized IR format: {ir_format}")
    return formats[ir_format](tensors)
