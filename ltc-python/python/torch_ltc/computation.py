"""Recorded computations by hash (``torch._lazy.computation``)."""

from collections.abc import Sequence

from torch import Tensor

from torch_ltc import _ltc


def get_tensors_ts_device_data_node(tensors: Sequence[Tensor]) -> tuple[list[int], list[Tensor]]:
    """Data that the pending computation of these tensors starts from.

    Returns ``(ids, tensors)``: the ids of :func:`torch_ltc.get_tensor_id` and CPU tensors that must only be read.
    """
    return _ltc.graph_data(tensors)


def get_graph_hash(tensors: Sequence[Tensor]) -> str:
    """Structural hash of the pending computation of these tensors; :func:`run_cached_graph` takes it."""
    return _ltc.graph_hash(tensors)


def run_cached_graph(hash_str: str, graph_inputs: Sequence[Tensor]) -> list[Tensor]:
    """Runs the computation of this hash on other data, in the order of :func:`get_tensors_ts_device_data_node`.

    Returns CPU tensors, one per tensor the hash was asked for. Nothing is recorded.
    """
    return _ltc.run_graph(hash_str, graph_inputs)
