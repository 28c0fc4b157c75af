"""Which results of a step a history of their own leads to: a result that others are computed from is where theirs ends,
and results that are computed from nothing in common are gone back through one without the other."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

#: Why results cannot be told apart.
MIXED = (
    "it returns a tensor with history that another result is computed from, beside what both are computed from: "
    "return tensor.detach() where no gradients are wanted"
)


class Segment(NamedTuple):
    """Nodes that lead to results, from other results or from what the step was given."""

    #: Results, by position, and those that theirs are computed from.
    roots: list[int]
    results: list[int]
    #: What it was given, by position: a node and which of its edges leads there.
    given: dict[int, tuple[Any, int]]
    #: Where the results and those that they are computed from stand in the graph.
    edges: list[GradientEdge]
    ends: list[GradientEdge]

    def run(self, grads: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Gradients of the results that it begins at and of what was given, from those of its own; with a history that
        was detached, whose nodes lead to stand-ins for what was given."""
        outputs = [edge for edge, g in zip(self.edges, grads) if g is not None]
        inputs = [*self.ends, *[GradientEdge(*node.next_functions[k]) for node, k in self.given.values()]]
        seeds = [g for g in grads if g is not None]
        return list(torch.autograd.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True))


def segments(results: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> list[Segment] | str:
    """The parts of the history of these results, each after those that it leads to; or why there are none."""
    edges = [get_gradient_edge(x) for x in results]
    roots: dict[tuple[Any, int], int] = {}
    for i, edge in enumerate(edges):
        roots.setdefault((edge.node, edge.output_nr), i)
    starts = [get_gradient_edge(t) if t.requires_grad else None for t in given]
    ends = {(edge.node, edge.output_nr): i for i, edge in enumerate(starts) if edge is not None}
    group = [roots[edge.node, edge.output_nr] for edge in edges]
    of: dict[Any, int] = {}
    leads: list[set[int]] = [set() for _ in edges]
    begins: list[dict[int, tuple[Any, int]]] = [{} for _ in edges]

    def same(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for i, edge in enumerate(edges):
        ahead = [edge.node]
        while ahead:
            node = ahead.pop()
            if node in of:
                group[same(of[node])] = same(i)
                continue
            of[node] = i
            for k, (to, nr) in enumerate(node.next_functions):
                if to is None:
                    continue
                if (to, nr) in ends:
                    begins[i].setdefault(ends[to, nr], (node, k))
                elif (to, nr) in roots:
                    leads[i].add(roots[to, nr])
                else:
                    ahead.append(to)
    members: dict[int, list[int]] = {}
    for i in range(len(edges)):
        members.setdefault(same(i), []).append(i)
    inner = {g: sorted(set().union(*[leads[i] for i in all_of])) for g, all_of in members.items()}
    order: list[Segment] = []
    done: set[int] = set()
    while len(done) < len(members):
        free = [g for g in members if g not in done and all(same(i) in done for i in inner[g])]
        if not free:
            return MIXED
        for g in free:
            own = members[g]
            starts_at = {at: way for i in own for at, way in begins[i].items()}
            order.append(Segment(own, inner[g], starts_at, [edges[i] for i in own], [edges[i] for i in inner[g]]))
        done.update(free)
    return order
