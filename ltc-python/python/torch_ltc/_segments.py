"""Divides the autograd history of a step's results into segments that can be differentiated one by one.

A user may take gradients of one result without the others, or of a result with respect to another one. So the history
of a result ends where another result begins, and results whose histories have no node in common are in segments of
their own. `_history.py` gives each segment one node in the history of a replay's results.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

#: Why the history of some results cannot be divided.
MIXED = (
    "it returns a tensor with history that another result is computed from, beside what both are computed from: "
    "return tensor.detach() where no gradients are wanted"
)


class Segment(NamedTuple):
    """The nodes between some results and what these are computed from: other results, or the tensors that the step was
    given."""

    #: The positions of the results whose history this is, and the edges in the graph at which it begins.
    roots: list[int]
    edges: list[GradientEdge]
    #: The results, and the given tensors, at which it ends, by position: for each a node, and the index of the node's
    #: edge that leads there.
    results: dict[int, tuple[Any, int]]
    given: dict[int, tuple[Any, int]]

    def run(self, grads: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Gradients for the ends of the segment (results, then given tensors), from those of its own results. The
        history has to be detached (`_ltc.History.detach`): its edges then lead to stand-ins for the ends, so that no
        backward pass goes on from one segment into the next."""
        outputs = [edge for edge, g in zip(self.edges, grads) if g is not None]
        ways = [*self.results.values(), *self.given.values()]
        inputs = [GradientEdge(*node.next_functions[k]) for node, k in ways]
        seeds = [g for g in grads if g is not None]
        return list(torch.autograd.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True))


def segments(results: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> list[Segment] | str:
    """The segments of the history of these results, each after those that it leads to; or why it cannot be divided."""
    edges = [get_gradient_edge(x) for x in results]
    roots: dict[tuple[Any, int], int] = {}
    for i, edge in enumerate(edges):
        roots.setdefault((edge.node, edge.output_nr), i)
    starts = [get_gradient_edge(t) if t.requires_grad else None for t in given]
    ends = {(edge.node, edge.output_nr): i for i, edge in enumerate(starts) if edge is not None}
    group = [roots[edge.node, edge.output_nr] for edge in edges]
    of: dict[Any, int] = {}
    leads: list[dict[int, tuple[Any, int]]] = [{} for _ in edges]
    begins: list[dict[int, tuple[Any, int]]] = [{} for _ in edges]

    def same(i: int) -> int:
        """The result that stands for the segment of result `i` (union-find without compression)."""
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
                    leads[i].setdefault(roots[to, nr], (node, k))
                else:
                    ahead.append(to)
    members: dict[int, list[int]] = {}
    for i in range(len(edges)):
        members.setdefault(same(i), []).append(i)
    inner = {g: {at: way for i in all_of for at, way in leads[i].items()} for g, all_of in members.items()}
    order: list[Segment] = []
    done: set[int] = set()
    while len(done) < len(members):
        free = [g for g in members if g not in done and all(same(i) in done for i in inner[g])]
        if not free:
            return MIXED
        for g in free:
            own = members[g]
            starts_at = {at: way for i in own for at, way in begins[i].items()}
            order.append(Segment(own, [edges[i] for i in own], inner[g], starts_at))
        done.update(free)
    return order
