"""What steps do to the tensors that they are given, and histories that begin outside of the step."""

import collections

import pytest
import torch
import torch_ltc
from steps import recorded_and_compiled
from torch import nn
from torch.utils.checkpoint import checkpoint

OUTSIDE = {
    "another factor": (lambda w: 0.1 * w.pow(2).sum(), lambda w: 0.9 * w.pow(2).sum()),
    "another function": (lambda w: w.relu(), lambda w: w.tanh()),
    "another part": (lambda w: w[:2].exp(), lambda w: w[1:].exp()),
    "a third factor": (lambda w: w * w, lambda w: w * w * w),
    "a product with a number": (lambda w: w * 2, lambda w: w * 3),
    "nothing saved": (lambda w: w + 1, lambda w: -w),
}


@pytest.mark.parametrize("way", ["backward", "grad"])
@pytest.mark.parametrize("place", ["argument", "attribute"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_histories_from_outside_are_not_those_of_the_capture(name, place, way):
    def run(compile):
        w, out = torch.tensor([1.0, 2.0, 3.0]).to("ltc").requires_grad_(), []
        holder = nn.Module()

        def step(loss):
            loss = (holder.loss if loss is None else loss).sum()
            if way == "grad":
                return torch.autograd.grad(loss, w)[0]
            loss.backward()
            return loss.detach()

        step = compile(step)
        for i in range(10):
            w.grad = None
            loss = OUTSIDE[name][i > 5](w)
            if place == "attribute":
                holder.loss, loss = loss, None
            out += [step(loss).tolist(), None if w.grad is None else w.grad.tolist()]
        return out

    recorded_and_compiled(run)


def test_the_refusal_names_the_tensor():
    w = torch.ones(3).to("ltc").requires_grad_()
    step = torch_ltc.compile(lambda loss: loss.backward())
    for _ in range(6):
        step(w.exp().sum())
    assert "made outside" in step.explain() and "shape []" in step.explain()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
def test_hooks_that_a_step_puts_on_arguments_are_called(leaf, inside):
    def run(compile):
        def step(x):
            x.register_hook(lambda g: g.clamp(-1, 1))
            out = (x * 5).sum()
            if inside:
                out.backward()
            return out

        step, out = compile(step), []
        for _ in range(6):
            start = torch.ones(3).to("ltc").requires_grad_()
            x = start if leaf else start * 2
            loss = step(x)
            if not inside:
                loss.backward()
            out.append((start.grad.tolist(), bool(x._backward_hooks)))
        return out

    recorded_and_compiled(run)


CHANGES = {
    "conj": lambda x: torch._C._set_conj(x, True),
    "class": lambda x: setattr(x, "__class__", nn.Parameter),
    "hooks": lambda x: setattr(x, "_backward_hooks", collections.OrderedDict()),
    "hook": lambda x: x.register_hook(lambda g: g) and None,
    "after": lambda x: x.register_post_accumulate_grad_hook(lambda t: None) and None,
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_step_changes_of_an_argument_is_changed(name):
    def run(compile):
        def step(x):
            CHANGES[name](x)
            return x.detach().abs() + 1

        step, out = compile(step), []
        for _ in range(6):
            dtype = torch.complex64 if name == "conj" else torch.float32
            x = torch.ones(3, dtype=dtype).to("ltc").requires_grad_()
            step(x)
            hooks = x._backward_hooks, x._post_accumulate_grad_hooks
            out.append((type(x), x.is_conj(), [hook and len(hook) for hook in hooks]))
        return out

    recorded_and_compiled(run)


WAYS = {
    "enable_grad": torch.enable_grad,
    "set_grad_enabled": lambda: torch.set_grad_enabled(True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ends", ["sum", "two results"])
def test_histories_that_a_step_makes_where_gradients_are_off(way, ends):
    w = torch.arange(3.0).to("ltc").requires_grad_()

    def run(compile):
        def step(x):
            with WAYS[way]():
                y = w * x
                return y.sum() if ends == "sum" else (y.sum(), y * 2)

        step, out = compile(step), []
        for i in range(8):
            with torch.no_grad():
                found = step(torch.full((3,), float(i)).to("ltc"))
            loss = found if ends == "sum" else found[0] + found[1].sum()
            assert loss.requires_grad
            w.grad = None
            loss.backward()
            out.append((loss.item(), w.grad.tolist()))
        return out

    assert recorded_and_compiled(run).counts[0] >= 3


def test_results_to_come_are_asked_each_time():
    def run(compile):
        future, out = torch.futures.Future(), []
        step = compile(lambda x: x * future.value() if future.done() else x)
        for i in range(8):
            if i == 5:
                future.set_result(5.0)
            out.append(step(torch.ones(1).to("ltc")).item())
        return out

    recorded_and_compiled(run)


def test_what_a_checkpoint_runs_again_runs_as_often_as_in_recorded_calls():
    """The way back through its results calls the function once more; finding out about it does not."""

    def run(compile):
        norm, calls, out = nn.BatchNorm1d(3).to("ltc"), [], []

        def part(x):
            calls.append(len(calls))
            return norm(x).sin()

        step = compile(lambda x: checkpoint(part, x, use_reentrant=False))
        for i in range(7):
            x = (torch.arange(12.0).reshape(4, 3) + i).to("ltc").requires_grad_()
            y = step(x * 1)
            if i % 3 != 2:
                y.sum().backward()
            out.append((len(calls), norm.num_batches_tracked.item(), norm.running_mean.tolist(), y.tolist()))
            out.append(x.grad is not None and x.grad.tolist())
        return out

    recorded_and_compiled(run)


@pytest.mark.parametrize("where", ["in the argument", "in an attribute"])
def test_a_checkpoint_of_the_program_outside_runs_as_often_as_in_recorded_calls(where):
    """Whether a backward pass has used up such a history is asked without the hooks that took what it saved."""

    def run(compile):
        calls, out, holder = [], [], nn.Module()
        w = torch.tensor([1.0, 2.0, 3.0]).to("ltc").requires_grad_()

        def part(x):
            calls.append(len(calls))
            return x.sin() * x

        def add(x):
            given = x if where == "in the argument" else holder.given
            return (given.detach() if given.grad_fn is None else given) * 2 + 1

        step = compile(add)
        for i in range(7):
            holder.given = checkpoint(part, w * (i + 1), use_reentrant=False)
            y = step(holder.given)
            if i % 3 != 2:
                y.sum().backward()
            out.append((len(calls), y.tolist(), w.grad is not None and w.grad.tolist()))
        return out

    recorded_and_compiled(run)


def test_the_gradient_of_a_tensor_that_is_no_leaf_is_compared_without_a_warning(recwarn):
    """Reading the attribute warns; what watches it for a replay is silent, as the program is."""

    def run(compile):
        w, holder, out = torch.tensor([1.0, 2.0]).to("ltc").requires_grad_(), nn.Module(), []
        holder.tripled = w * 3

        def add(x):
            kept = holder.doubled.detach() if w.grad is None else holder.doubled.grad
            return holder.tripled.detach() if kept is None else x + kept

        step = compile(add)
        for i in range(12):
            if i % 6 == 0:
                w.grad, holder.doubled = None, w * (i + 2)
                holder.doubled.retain_grad()
            if i % 6 == 3:
                holder.doubled.sum().backward(retain_graph=True)
            out.append(step(torch.ones(2, device="ltc")).tolist())
        return out

    recorded_and_compiled(run)
    assert not [w for w in recwarn if "not a leaf" in str(w.message)]


WRITES = {
    "takes a gradient": lambda x: setattr(x, "grad", None),
    "gives a gradient": lambda x: setattr(x, "grad", torch.full((2,), 3.0, device=x.device)),
    "retains the gradient": lambda x: x.retain_grad() if x.grad_fn is not None else None,
}


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_what_a_step_does_to_gradients_of_arguments_that_require_none(name, is_leaf):
    def run(compile):
        w, out = torch.tensor([1.0, 2.0]).to("ltc").requires_grad_(), []

        def write(x):
            WRITES[name](x)
            return x.detach() * 2

        step = compile(write)
        for i in range(8):
            x = (w * 1).detach() if is_leaf else w * (i + 1)
            if is_leaf:
                x.grad = torch.ones(2, device="ltc")
            with torch.no_grad():
                out.append(step(x).tolist())
            if not is_leaf:
                x.sum().backward()
            out.append((x.retains_grad, (is_leaf or x.retains_grad) and x.grad is not None and x.grad.tolist()))
        return out

    recorded_and_compiled(run)
