"""``torch.compile(model, backend="ltc")``.

PyTorch finds the compiler by the entry point ``torch_dynamo_backends`` of the package and imports this module when
somebody asks for it: ``torch._dynamo`` takes most of a second to load.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_ltc._host_graph import HostGraph
from torch_ltc._runtime import on_device
from torch_ltc._step import CompiledStep


def _devices(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> set[str]:
    """Kinds of devices of all tensors in a graph, but for numbers in tensors on the CPU."""
    values = [*example_inputs, *graph.buffers(), *(node.meta.get("val") for node in graph.graph.nodes)]
    tensors = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
    return {
        t.device.type for t in tensors if isinstance(t, torch.Tensor) and not (t.device.type == "cpu" and t.dim() == 0)
    }


def _boxed(graph: HostGraph) -> Callable[..., Any]:
    """A function, since PyTorch wraps what it is given and copies only a function's attributes."""

    def run(args: list[Any]) -> Sequence[Any]:
        return graph(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _compiler(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func

    devices = _devices(graph, example_inputs)
    if devices <= {"ltc"} and any(on_device(x) for x in example_inputs):
        return make_boxed_func(CompiledStep(graph.forward))
    if devices <= {"cpu"}:
        return _boxed(HostGraph(graph))
    return make_boxed_func(graph.forward)


def backend(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Forward and backward graphs as programs: over ltc tensors as captured steps, over CPU tensors on their memory.

    Graphs over both run as they are.
    """
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    compiled = aot_autograd(fw_compiler=_compiler, partition_fn=min_cut_rematerialization_partition)
    return compiled(graph, example_inputs)
