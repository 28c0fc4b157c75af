"""A traced module as a function that runs its compiled graph (``torch._lazy.extract_compiled_graph``)."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

import torch_ltc
from torch_ltc.tensor_factory_functions import tensor_factory_functions


def _force_device(module: fx.GraphModule) -> None:
    """Moves the factory calls of a graph to ltc."""
    for node in module.graph.nodes:
        if "device" in node.kwargs or node.target in tensor_factory_functions:
            node.update_kwarg("device", torch.device("ltc"))
    module.recompile()


def _fallbacks() -> dict[str, int]:
    """How often each operator ran eagerly so far."""
    counts: dict[str, int] = {}
    for name, _, count, _ in torch_ltc.fallbacks():
        counts[name] = counts.get(name, 0) + count
    return counts


def _reads() -> int:
    """How often values were read so far."""
    return torch_ltc.metrics.counter_value("TransferFromDevice") or 0


def extract_compiled_graph(model: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Traces ``model`` once on ltc and returns a callable that runs the compiled graph on new CPU inputs.

    The callable takes inputs of the same shapes and dtypes as ``example_inputs``, updates those that the model changes
    in place, and returns what the model returns. A model with operators that run eagerly is refused: what follows from
    their values would be part of the graph.
    """
    lazy_args = [x.to("ltc") if isinstance(x, torch.Tensor) else x for x in example_inputs]
    arg_ids = {torch_ltc.get_tensor_id(x): i for i, x in enumerate(lazy_args) if isinstance(x, torch.Tensor)}
    lazy_model = copy.deepcopy(model).to(torch.device("ltc"))
    _force_device(lazy_model)
    torch_ltc.mark_step()
    before, reads = _fallbacks(), _reads()
    out = lazy_model(*lazy_args)
    eager = sorted(name for name, count in _fallbacks().items() if count > before.get(name, 0))
    if eager:
        raise RuntimeError(
            f"Fail to extract the compiled graph because of operators that run eagerly: {', '.join(eager)}"
        )
    if _reads() > reads:
        raise RuntimeError("Fail to extract the compiled graph because the model reads a value, by `item` or the like")
    single = isinstance(out, torch.Tensor)
    outs = [out] if single else list(out)
    tensor_args = [(i, x) for i, x in enumerate(lazy_args) if isinstance(x, torch.Tensor)]
    # What each result is: an argument (changed in place or not), one of the computed tensors, or plain.
    computed: list[torch.Tensor] = []
    sources: list[tuple[str, Any]] = []
    for t in outs:
        if not isinstance(t, torch.Tensor):
            sources.append(("plain", t))
            continue
        same = [i for i, x in tensor_args if x is t]
        if same:
            sources.append(("argument", same[0]))
            continue
        if not any(t is c for c in computed):
            computed.append(t)
        sources.append(("computed", next(k for k, c in enumerate(computed) if c is t)))
    wanted = [x for _, x in tensor_args] + computed
    ids, constants = torch_ltc.computation.get_tensors_ts_device_data_node(wanted)
    origins = [arg_ids.get(i) for i in ids]
    graph = torch_ltc.computation.get_graph_hash(wanted)
    changed = [torch_ltc.get_tensor_id(x) not in arg_ids for _, x in tensor_args]

    def run(*args: Any) -> Any:
        inputs = [constants[k] if origin is None else args[origin] for k, origin in enumerate(origins)]
        results = torch_ltc.computation.run_cached_graph(graph, inputs)
        for (i, _), was_changed, result in zip(tensor_args, changed, results):
            if was_changed:
                args[i].copy_(result)
        values = {"argument": args, "computed": results[len(tensor_args) :]}
        full = [what if kind == "plain" else values[kind][what] for kind, what in sources]
        return full[0] if single else tuple(full)

    return run


__all__ = ["extract_compiled_graph"]
