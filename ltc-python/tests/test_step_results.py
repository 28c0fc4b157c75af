"""What a compiled step returns is made again as it is: classes of containers, shapes, what operators return."""

import collections

import pytest
import torch
import torch_ltc
from torch.utils import _pytree as pytree

Pair = collections.namedtuple("Pair", "first second")


def by_default(x):
    found = collections.defaultdict(list)
    found["a"].append(x * 2)
    return found


RESULTS = {
    "shape": lambda x: (x * 2, x.shape),
    "size": lambda x: {"s": x.size(), "t": x.t()},
    "kinds": lambda x: (x * 2, x.dtype, x.device, x.layout),
    "max": lambda x: x.max(0),
    "sort": lambda x: torch.sort(x),
    "topk": lambda x: x.topk(2),
    "mode": lambda x: x.mode(0),
    "namedtuple": lambda x: Pair(x * 2, x.shape[0]),
    "ordered": lambda x: collections.OrderedDict(a=x * 2),
    "default": by_default,
    "deque": lambda x: collections.deque([x * 2], maxlen=3),
    "nested": lambda x: [x.max(0), {"k": (x.shape, [torch.var_mean(x)], (), [])}],
    "read": lambda x: (x.shape, x.sum().item(), [x.max(1)]),
}


def classes(x):
    inside = pytree.tree_leaves(x, is_leaf=lambda y: y is not x) if type(x) is not torch.Size else []
    return type(x), [classes(y) for y in inside if y is not x]


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_the_classes_that_they_are(name):
    make = RESULTS[name]
    step = torch_ltc.compile(make)
    for i in range(8):
        x = torch.arange(6.0).reshape(2, 3).to("ltc") + i
        got, expected = step(x), make(x)
        assert classes(got) == classes(expected)
        for a, b in zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True):
            assert torch.equal(a.cpu(), b.cpu()) if torch.is_tensor(a) else a == b
    assert step.counts == (5, 3), step.explain()


class Bag:
    def __init__(self, members):
        self.members = members


class Named(Bag):
    pass


pytree.register_pytree_node(Named, lambda b: (b.members, None), lambda members, _: Bag(members))


def test_a_container_that_would_be_made_otherwise_is_recorded():
    step = torch_ltc.compile(lambda x: Named([x * 2]))
    for _ in range(6):
        assert type(step(torch.ones(2, device="ltc"))) is Named
    assert step.counts[0] == 0 and "Named" in step.refusal


@pytest.mark.parametrize(
    "make, what", [(lambda x: x.cpu() + 0, "tensor on cpu"), (lambda x: (x, slice(0, 2)), "slice")]
)
def test_what_cannot_be_made_again_is_named(make, what):
    step = torch_ltc.compile(make)
    for _ in range(6):
        step(torch.ones(2, device="ltc"))
    assert step.counts[0] == 0 and what in step.refusal, step.explain()


WEIGHT = torch.nn.Parameter(torch.ones(3, device="ltc"))


def grown_twice(x):
    WEIGHT.grad = None
    for _ in range(2):
        (x * WEIGHT).sum().backward()
    return WEIGHT.grad


WRITTEN = {
    "copy": lambda x: x.clone().add_(1).mul_(2),
    "history": lambda x: (x * WEIGHT).add_(1).relu_(),
    "two": lambda x: [(y := (x * WEIGHT).add_(1)), y.sin().mul_(2)],
    "view": lambda x: [(y := x.clone().add_(1)), y[1:]],
    "gradient": grown_twice,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_results_count_the_writes_that_the_step_made_to_them(name):
    make = WRITTEN[name]
    step = torch_ltc.compile(make)
    versions = lambda found: [y._version for y in pytree.tree_leaves(found)]
    x = torch.arange(3.0, device="ltc")
    expected = versions(make(x))
    assert max(expected) > 0
    for _ in range(6):
        found = step(x)
        assert versions(found) == expected
        for y in pytree.tree_leaves(found):
            if y.requires_grad:
                y.sum().backward(retain_graph=True)
    assert step.counts == (3, 3), step.explain()
