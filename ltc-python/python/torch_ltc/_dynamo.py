"""The backend of ``torch.compile(model, backend="ltc")``.

Dynamo hands over graphs, and AOTAutograd divides them into forward and backward graphs. A graph over ltc tensors
becomes a compiled step (`_step.py`), one over CPU tensors a program on their own memory (`_host_graph.py`), and one
over both runs as it is. PyTorch finds this module by the entry point ``torch_dynamo_backends`` of the package, and
imports it only when the backend is asked for, since ``torch._dynamo`` takes most of a second to load.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_ltc._host_graph import HostGraph
from torch_ltc._runtime import on_device
from torch_ltc._step import CompiledStep


def _devices(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> set[str]:
    """The types of devices that the tensors in a graph are on; CPU tensors without dimensions do not count."""
    values = [*example_inputs, *graph.buffers(), *(node.meta.get("val") for node in graph.graph.nodes)]
    tensors = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
    return {
        t.device.type for t in tensors if isinstance(t, torch.Tensor) and not (t.device.type == "cpu" and t.dim() == 0)
    }


def _boxed(graph: HostGraph) -> Callable[..., Any]:
    """The graph as a function: PyTorch wraps what it is given, and copies attributes (`_boxed_call`) of functions
    only."""

    def run(args: list[Any]) -> Sequence[Any]:
        return graph(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _compiler(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compiles one graph, by the devices that its tensors are on."""
    from functorch.compile import make_boxed_func

    devices = _devices(graph, example_inputs)
    if devices <= {"ltc"} and any(on_device(x) for x in example_inputs):
        return make_boxed_func(CompiledStep(graph.forward))
    if devices <= {"cpu"}:
        return _boxed(HostGraph(graph))
    return make_boxed_func(graph.forward)


def _as_it_is(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Runs a graph operator by operator."""
    from functorch.compile import make_boxed_func

    return make_boxed_func(graph.forward)


def _aot(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Forward and backward graphs by AOTAutograd, compiled."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    try:
        return aot_autograd(fw_compiler=_compiler, partition_fn=min_cut_rematerialization_partition)(
            graph, example_inputs
        )
    except AssertionError as error:
        # AOTAutograd moves in-place writes to inputs behind the graph, but for `set_()` and `resize_()` of a storage:
        # those it can only keep within the graph, which then runs as it is.
        if "on a graph input" not in str(error):
            raise
        return aot_autograd(
            fw_compiler=_as_it_is,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )(graph, example_inputs)


class _Sharing:
    """Which inputs of a graph share memory that the graph writes.

    AOTAutograd compiles a graph for the inputs at hand, and knows which of them share memory. Dynamo does not guard
    that for later inputs, unless their sizes are symbolic. AOTAutograd writes to inputs after the graph, when autograd
    has saved some of them, and version counters are those of storages: so where gradients are taken, inputs count as
    sharing memory as soon as they are parts of one storage.
    """

    def __init__(self, example_inputs: Sequence[Any]) -> None:
        #: Positions of the inputs that are tensors with a storage. (Which kinds of tensors come, Dynamo guards.)
        self.tensors = [
            i
            for i, a in enumerate(example_inputs)
            if isinstance(a, torch.Tensor) and a.layout == torch.strided and torch._C._has_storage(a)
        ]
        self.written = self._written(example_inputs)
        self.takes_gradients = any(isinstance(a, torch.Tensor) and a.requires_grad for a in example_inputs)
        #: What :meth:`of` gives for the inputs that the graph is compiled for.
        self.expected = [] if self.takes_gradients else self.of(example_inputs)

    def _written(self, example_inputs: Sequence[Any]) -> set[int]:
        """Positions of the inputs that the graph writes in place."""
        context = torch._guards.TracingContext.try_get()
        meta = context.fw_metadata if context is not None else None
        # AOTAutograd may have replaced inputs that share memory by one; then the positions are not known.
        if meta is None or len(meta.input_info) != len(example_inputs):
            return set(self.tensors)
        return {i for i in self.tensors if meta.input_info[i].mutates_data}

    def of(self, inputs: Sequence[Any]) -> list[Any]:
        """Pairs of inputs of which one is written and the other shares the memory: positions, and the bytes of the
        storage that each covers. Nearly always an empty list."""
        storages = [inputs[i].untyped_storage()._cdata for i in self.tensors]
        if len(set(storages)) == len(storages):
            return []
        sharing: dict[int, list[int]] = {}
        for i, storage in zip(self.tensors, storages, strict=True):
            sharing.setdefault(storage, []).append(i)
        found = []
        for positions in sharing.values():
            parts = {i: _part(inputs[i]) for i in positions}
            for i in self.written.intersection(positions):
                for j in positions:
                    overlap = self.takes_gradients or (parts[i][0] < parts[j][1] and parts[j][0] < parts[i][1])
                    if i != j and overlap:
                        found.append((i, parts[i], j, parts[j]))
        return found


def _part(tensor: torch.Tensor) -> tuple[int | torch.SymInt, int | torch.SymInt]:
    """The range of bytes of its storage, from and to, within which a tensor's elements lie."""
    sizes = tensor.size()
    if 0 in sizes:
        return (0, 0)
    begin = tensor.storage_offset()
    end = begin + 1 + sum((n - 1) * s for n, s in zip(sizes, tensor.stride(), strict=True))
    return (begin * tensor.itemsize, end * tensor.itemsize)


def backend(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compiles a graph; see the module. A call with inputs that share memory otherwise than those for which the graph
    was compiled runs the graph as it is."""
    compiled = _aot(graph, example_inputs)
    sharing = _Sharing(example_inputs)
    if not sharing.written or len(sharing.tensors) < 2:
        return compiled
    if not all(type(end) is int for found in sharing.expected for end in (*found[1], *found[3])):
        return compiled  # sizes are symbolic, so Dynamo guards what shares memory

    def run(*inputs: Any) -> Any:
        return compiled(*inputs) if sharing.of(inputs) == sharing.expected else graph(*inputs)

    return torch._dynamo.disable(run)
