"""Steps that read weak references are recorded: a watch would keep alive what they refer to, which the program may have
let go. References to classes, and those that torch itself keeps, do not matter."""

import functools
import gc
import weakref

import pytest
import torch
import torch_ltc


class Scale:
    factor = 2.0


def of_reference(scale):
    found = weakref.ref(scale)
    return lambda: found().factor if found() is not None else -1.0


def of_tensor(scale):
    scale.tensor = torch.tensor(2.0)
    found = weakref.ref(scale.tensor)
    return lambda: float(found() is not None)


def of_set(scale):
    found = weakref.WeakSet([scale])
    return lambda: float(sum(x.factor for x in found))


def of_values(scale):
    found = weakref.WeakValueDictionary(a=scale)
    return lambda: getattr(found.get("a"), "factor", -1.0)


def of_keys(scale):
    found = weakref.WeakKeyDictionary({scale: 3.0})
    return lambda: float(len(found))


def of_method(scale):
    type(scale).read = lambda self: self.factor
    found = weakref.WeakMethod(scale.read)
    return lambda: -1.0 if found() is None else found()()


@pytest.mark.parametrize("make", [of_reference, of_tensor, of_set, of_values, of_keys, of_method])
def test_what_a_weak_reference_refers_to_may_go(make):
    scale = Scale()
    read = make(scale)
    step = torch_ltc.compile(lambda x: x * read())
    x = torch.ones(2, device="ltc")
    for i in range(12):
        if i == 8:
            del scale
            gc.collect()
        assert step(x).tolist() == [read()] * 2, i
    assert "weak reference" in step.explain(), step.explain()


@functools.singledispatch
def scaled(x):
    return x


@scaled.register(torch.Tensor)
def _(x):
    return x * 2.0


def test_references_to_classes_and_those_of_torch_do_not_matter():
    net = torch.nn.Linear(2, 2).to("ltc")
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9)
    net.register_forward_hook(lambda module, given, out: out * 1.5)

    @torch_ltc.compile
    def step(x):
        loss = scaled(net(x)).sum()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        return loss.detach()

    for _ in range(10):
        step(torch.ones(3, 2, device="ltc"))
    assert step.counts[0] >= 6, step.explain()
