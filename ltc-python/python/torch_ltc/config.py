"""Configuration at run time (``torch._lazy.config``)."""

from torch_ltc import _ltc


def get_force_fallback() -> str:
    """Operators that are forced to run eagerly, separated by commas."""
    return ",".join(_ltc.force_fallback())


def set_force_fallback(configval: str) -> None:
    """Forces operators to run eagerly: ``add``, ``aten::add`` or ``aten::add.Tensor``, separated by commas."""
    _ltc.set_force_fallback([w for w in configval.split(",") if w.strip()])


def set_reuse_ir(val: bool) -> None:
    """Whether steps are recorded into the nodes of the ones before them, as they are unless told otherwise."""
    _ltc.set_reuse_nodes(bool(val))
