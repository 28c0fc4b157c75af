"""Looking at what is recorded, without running it (``torch._lazy.debug``)."""

from collections.abc import Sequence

from torch import Tensor

from torch_ltc._runtime import service


def render_ir_graph(tensors: Sequence[Tensor]) -> str:
    """The pending graph of these tensors in the DOT language."""
    return service("graph_dot", tensors)[1]


def dump_ir(tensors: Sequence[Tensor], ir_format: str) -> str:
    """The pending graph of these tensors: ``"text"`` with the numbers of this recording, ``"sites"`` with the line of the
    program that recorded each operation, or ``"backend"``, lowered for the backend."""
    if ir_format not in ("text", "sites", "backend"):
        raise RuntimeError(f"Unrecognized IR format: {ir_format}")
    return service(f"graph_{ir_format}", tensors)[1]
