"""``torch.compile(model, backend="ltc")``.

PyTorch finds the compiler by the entry point ``torch_dynamo_backends`` of the package and imports this module when
somebody asks for it: ``torch._dynamo`` takes most of a second to load.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_ltc._runtime import on_device
from torch_ltc._step import CompiledStep


def _compiler(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func

    has_cpu_constants = any(isinstance(t, torch.Tensor) and not on_device(t) for t in graph.buffers())
    on_cpu = any(isinstance(x, torch.Tensor) and x.device.type == "cpu" and x.dim() > 0 for x in example_inputs)
    if on_cpu or has_cpu_constants:
        return make_boxed_func(graph.forward)
    return make_boxed_func(CompiledStep(graph.forward))


def backend(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Forward and backward graphs run as captured programs on ltc; graphs over CPU tensors run as they are."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compiler)(graph, example_inputs)
