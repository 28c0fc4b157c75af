"""Graphs over CPU tensors, which ``torch.compile(backend="ltc")`` hands over, run as programs (`_dynamo.py`).

A graph is recorded once for each set of layouts of its inputs: its operators are called with tensors on ltc that share
the memory of the CPU tensors. From then on the program runs on the memory of the CPU tensors that a call is given,
without copies. A graph that cannot be a program is run as it is, with a warning.
"""

import math
import operator
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_ltc import _ltc
from torch_ltc._runtime import on_device

#: How many programs are kept per graph, one for each set of layouts; the least recently used one is dropped.
MAX_PROGRAMS = 64
#: How many recordings in a row other threads may spoil until the graph is run as it is.
MAX_ATTEMPTS = 8

_CPU = torch.device("cpu")
#: The device that takes the CPU's place while a graph is recorded.
_LTC = torch.device("ltc:0")


def _is_view(node: fx.Node) -> bool:
    """Whether a node's value is a view of its first argument."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and _is_view(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    schema = node.target._schema
    aliases = [r.alias_info for r in schema.returns]
    shows = bool(aliases) and all(a is not None and not a.is_write for a in aliases)
    return shows and not schema.is_mutable and isinstance(node.args[0] if node.args else None, fx.Node)


def _takes_device(target: Any) -> bool:
    """Whether an operator has an argument `device`."""
    return isinstance(target, torch._ops.OpOverload) and any(a.name == "device" for a in target._schema.arguments)


def _is_tensor(node: fx.Node) -> bool:
    """Whether a node's value is a tensor, and not a size or another number."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def _effect(graph: fx.GraphModule) -> str | None:
    """What a call of the graph does besides returning results, in words; `None` where it does nothing else."""
    for node in graph.graph.nodes:
        target = node.target
        if node.op == "call_function" and isinstance(target, torch._ops.OpOverload):
            if target._schema.is_mutable or not target._schema.returns:
                return f"{target} does more than return a value"
        elif node.op in ("call_method", "call_module"):
            return f"{node.op} of {target} may do anything"
    return None


def _lend(tensor: torch.Tensor, kind: list[Any]) -> torch.Tensor:
    """A dense tensor over the memory of a tensor, which may be a strided view. Appends to `kind` the sizes and strides
    that the dense tensor does not show."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if torch.empty_like(plain, device="meta").stride() == plain.stride():
        return plain
    size, stride = plain.size(), plain.stride()
    kind.append((size, stride))
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if plain.numel() > 0 else 0
    return plain.as_strided((extent,), (1,))


def _shown(lent: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """The view of `lent`, which :func:`_lend` made of a tensor, that has the tensor's sizes and strides."""
    if lent.size() == tensor.size() and lent.stride() == tensor.stride():
        return lent
    return lent.as_strided(tensor.size(), tensor.stride(), 0)


class _Recorder(fx.Interpreter):
    """Records a graph: calls its operators with tensors on ltc. `wanted`: the nodes whose values are kept in `found`;
    `constants`: the tensors on ltc that take the place of those that the graph holds."""

    def __init__(self, graph: fx.GraphModule, wanted: set[fx.Node], constants: dict[str, torch.Tensor]) -> None:
        super().__init__(graph)
        self.wanted = wanted
        self.constants = constants
        self.found: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Runs a node, and keeps its value if that is wanted."""
        result = super().run_node(n)
        if n in self.wanted:
            self.found[n] = result
        return result

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the graph; of a tensor, the one on ltc that takes its place."""
        if target in self.constants:
            return self.constants[target]
        return super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Calls an operator, with ltc in the place of the CPU where it names or implies that."""

        def moved(value: Any) -> Any:
            return _LTC if isinstance(value, torch.device) and value == _CPU else value

        args, kwargs = tuple(moved(a) for a in args), {name: moved(a) for name, a in kwargs.items()}
        if _takes_device(target) and kwargs.get("device") is None:
            is_factory = not any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values()))
            if is_factory and not any(isinstance(a, torch.device) for a in args):
                kwargs["device"] = _LTC
        return super().call_function(target, args, kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> None:
        """Does nothing: the values that are wanted were kept when their nodes ran."""
        return


class _Recorded(NamedTuple):
    """A program, and the inputs for which it was recorded."""

    program: _ltc.HostProgram
    #: The inputs that are no tensors, and then sizes and strides of the tensors at `windows`.
    kind: list[Any]
    #: The positions among the tensors of those that are not dense.
    windows: list[int]

    def run(self, numbers: list[Any], tensors: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """Runs the program on these inputs; `None` where it was recorded for others."""
        kind = numbers
        if self.windows:
            kind, tensors = list(numbers), list(tensors)
            for i in self.windows:
                tensors[i] = _lend(tensors[i], kind)
        return self.program.run(tensors) if _are_same(self.kind, kind) else None


class HostGraph:
    """A graph over CPU tensors, called with a list of its inputs, which is emptied."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self.inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
        (output,) = (n for n in graph.graph.nodes if n.op == "output")
        self.results: Sequence[Any] = output.args[0]
        #: The nodes whose values a program computes, in order.
        self.computed: list[fx.Node] = []
        #: The nodes that are called on the CPU after it, in order: numbers, and views of inputs or computed tensors.
        self.after: list[fx.Node] = []
        for node in self.results:
            if isinstance(node, fx.Node):
                self._provide(node)
        #: The tensors that the graph holds, by name; programs take them as further inputs.
        self.constants: dict[str, torch.Tensor] = {}
        for node in graph.graph.nodes:
            if node.op == "get_attr":
                value = operator.attrgetter(node.target)(graph)
                if isinstance(value, torch.Tensor):
                    self.constants[node.target] = value
        self.finish = self._finish()
        #: Whether it addresses elements by their place in a storage (`as_strided`), and not in a tensor.
        self.is_absolute = any("as_strided" in str(n.target) for n in graph.graph.nodes if n.op == "call_function")
        #: The programs, most recently used first.
        self.programs: list[_Recorded] = []
        #: How many calls ran a program, and how many ran the graph.
        self.counts = [0, 0]
        #: How many recordings in a row failed.
        self.attempts = 0
        self.lock = threading.Lock()
        #: Why the graph is run as it is; `None` where it need not be.
        self.refusal: str | None = None
        if (effect := _effect(graph)) is not None:
            self._refuse(effect)

    def _provide(self, node: fx.Node) -> None:
        """Arranges for a node's value: it is an input, a program computes it, or it is called after the program."""
        if node.op in ("placeholder", "get_attr") or node in self.computed or node in self.after:
            return
        if _is_tensor(node) and not _is_view(node):
            self.computed.append(node)
            return
        for needed in node.all_input_nodes:
            self._provide(needed)
        self.after.append(node)

    def _finish(self) -> Callable[..., list[Any]]:
        """The rest of the graph as a function of the inputs, the computed values and the constants, which returns the
        results."""
        rest = fx.Graph()
        known = {node: rest.placeholder(f"input_{i}") for i, node in enumerate(self.inputs)}
        known.update((node, rest.placeholder(f"computed_{i}")) for i, node in enumerate(self.computed))
        held = {name: rest.placeholder(f"constant_{i}") for i, name in enumerate(self.constants)}

        def place(node: fx.Node) -> fx.Node:
            return held[str(node.target)] if node.op == "get_attr" else known[node]

        for node in self.after:
            known[node] = rest.node_copy(node, place)
        rest.output(fx.map_arg(list(self.results), place))
        return fx.GraphModule({}, rest).forward

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        given = list(args)
        args.clear()
        computed = self._computed(given) if self.refusal is None else None
        if computed is None:
            self.counts[1] += 1
            return self.graph.forward(*given)
        self.counts[0] += 1
        return self.finish(*given, *computed, *self.constants.values())

    def _computed(self, given: list[Any]) -> list[torch.Tensor] | None:
        """The values of the nodes in `self.computed`; `None` where there can be no program for these inputs."""
        numbers = [a for a in given if not isinstance(a, torch.Tensor)]
        tensors = [a for a in given if isinstance(a, torch.Tensor)]
        tensors.extend(self.constants.values())
        if self.is_absolute and any(t.layout == torch.strided and t.storage_offset() != 0 for t in tensors):
            return None  # the inputs of a program begin where their memory does
        for place, recorded in enumerate(self.programs):
            found = recorded.run(numbers, tensors)
            if found is not None:
                if place > 0:
                    self._keep(recorded)
                return found
        if other := [t for t in tensors if t.layout != torch.strided or t.device != _CPU]:
            self._refuse(f"it takes a tensor of layout {other[0].layout} on {other[0].device}")
            return None
        kind, windows, lent = list(numbers), [], []
        for i, tensor in enumerate(tensors):
            told = len(kind)
            lent.append(_lend(tensor, kind))
            if len(kind) > told or lent[-1].is_conj() != tensor.is_conj() or lent[-1].is_neg() != tensor.is_neg():
                windows.append(i)
        program = self._record(given, lent)
        if program is None:
            return None
        self._keep(_Recorded(program, kind, windows))
        return program.run(lent)

    def _keep(self, recorded: _Recorded) -> None:
        """Puts a program first among those that are kept."""
        with self.lock:
            others = [r for r in self.programs if r is not recorded]
            self.programs = [recorded, *others][:MAX_PROGRAMS]

    def _record(self, given: list[Any], lent: list[torch.Tensor]) -> _ltc.HostProgram | None:
        """Records the graph into a program; `None` where that fails, or has to wait for another thread."""
        recording = _ltc.record_host_graph()
        if recording is None:
            return None  # another thread captures; the next call may record
        self.attempts += 1
        try:
            shown = iter([recording.lend(t) for t in lent])
            arguments = [_shown(next(shown), a) if isinstance(a, torch.Tensor) else a for a in given]
            constants = {name: _shown(next(shown), t) for name, t in self.constants.items()}
            recorder = _Recorder(self.graph, set(self.computed), constants)
            with torch.no_grad(), torch._C._DisableAutocast():
                recorder.run(*arguments)
            results = [recorder.found[n] for n in self.computed]
            for node, result in zip(self.computed, results, strict=True):
                if not on_device(result):
                    self._refuse(f"{node.target} makes no tensor on ltc")
                    return None
            program, why, may_go_better = recording.end(results)
        except Exception as error:  # noqa: BLE001  whatever it is: the graph as it is raises it again, or works
            self._refuse(f"it cannot be recorded: {error}")
            return None
        finally:
            recording.close()
        if program is None and not (may_go_better and self.attempts < MAX_ATTEMPTS):
            self._refuse(why)
        self.attempts = self.attempts if program is None else 0
        return program

    def _refuse(self, why: str) -> None:
        self.refusal = why
        warnings.warn(f'torch.compile(backend="ltc"): a graph runs as it is on the CPU: {why}', stacklevel=2)


def _are_same(expected: list[Any], given: list[Any]) -> bool:
    """Whether the values beside tensors are those that a program was recorded with (0.0 and -0.0 differ)."""
    same = len(expected) == len(given) and all(type(a) is type(b) and a == b for a, b in zip(expected, given))
    return same and all(math.copysign(1, a) == math.copysign(1, b) for a, b in zip(expected, given) if type(a) is float)
