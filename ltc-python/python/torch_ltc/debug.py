"""Looking at what is recorded, without running it (``torch._lazy.debug``)."""

from torch_ltc._runtime import service


def render_ir_graph(tensors):
    """The pending graph of these tensors in the DOT language."""
    return service("graph_dot", tensors)[1]


def dump_ir(tensors, ir_format):
    """The pending graph of these tensors as ``"text"``, or lowered for the backend (``"backend"``)."""
    if ir_format == "text":
        return service("graph_text", tensors)[1]
    if ir_format == "backend":
        return service("graph_backend", tensors)[1]
    raise RuntimeError(f"Unrecognized IR format: {ir_format}")
