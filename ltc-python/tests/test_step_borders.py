"""What comes out of compiled steps is to autograd what it is without compiling: nodes, views, versions and memory."""

import pytest
import torch
import torch_ltc
from steps import both, outcome


def test_the_gradient_an_argument_has_is_that_of_the_call():
    def run(device, compiled):
        step, found = compiled(lambda x: (x * x.grad).sum()), []
        for i in range(9):
            x = torch.tensor([1.0, 2.0]).to(device).requires_grad_()
            x.grad = torch.tensor([1.0 + i, 0.0]).to(device)
            found.append(torch.autograd.grad(step(x), x)[0].tolist())
        return found

    both(run)


@pytest.mark.parametrize("pair", ["view", "view first", "detached", "views"])
@pytest.mark.parametrize("has_history", [False, True])
def test_results_that_share_memory_do_so_after_a_replay(pair, has_history):
    def run(device, compiled):
        def learn(x):
            y = x * 2
            return {"view": (y, y[0]), "view first": (y[0], y), "detached": (y, y.detach()), "views": (y[0], y[1])}[
                pair
            ]

        step, found = compiled(learn), []
        for _ in range(9):
            factor = torch.tensor([3.0, 4.0]).to(device).requires_grad_()
            a, b = step(torch.ones(2, 2).to(device).requires_grad_(has_history))
            product = factor * b
            with torch.no_grad():
                a.add_(1)
            found += [a._version == b._version, b.tolist(), outcome(lambda: product.sum().backward()), factor.grad]
            a, b = step(torch.ones(2, 2).to(device))
            b.mul_(factor)
            found += [a.requires_grad, b.requires_grad]
        return [x if x is None or not isinstance(x, torch.Tensor) else x.tolist() for x in found]

    both(run)


@pytest.mark.parametrize("part", [lambda x: x.detach(), lambda x: x.detach()[0], lambda x: x[0], lambda x: x.view(-1)])
def test_writes_to_what_shows_an_input_reach_it_as_they_do_recorded(part):
    def run(device, compiled):
        step, found = compiled(part), []
        for _ in range(8):
            x, factor = torch.ones(2, 2).to(device), torch.tensor(3.0).to(device).requires_grad_()
            shown = step(x)
            shown.mul_(factor)
            found += [x.requires_grad, x.is_leaf, x.tolist(), shown.requires_grad]
        return found

    assert both(run).counts[0] >= 4


class InferenceModes:
    """Steps whose results are made in inference mode, or out of it."""

    def within(self, x):
        with torch.inference_mode():
            return x * 2

    @torch.inference_mode()
    def decorated(self, x):
        y = x.exp()
        return {"views": (y, y[1:]), "sum": y.sum()}

    def without(self, x):
        with torch.inference_mode(False):
            return x * 2

    def some(self, x):
        with torch.inference_mode():
            y = x * 2
        return y, x + 1, y[:1]

    def weights(self, x):
        self.w.mul_(0.5)
        with torch.inference_mode():
            self.w.add_(1)
            return x * self.w


@pytest.mark.parametrize("name", [n for n in vars(InferenceModes) if n[0] != "_"])
def test_inference_tensors_stay_what_they_are(name):
    def what(t):
        return [t.is_inference(), t._is_view(), t.tolist(), "none" if t.is_inference() else t._version]

    def run(device, compiled):
        steps = InferenceModes()
        steps.w = torch.ones(2, device=device)
        step, found = compiled(getattr(steps, name)), []
        for i in range(12):
            x = torch.full((2,), float(i)).to(device)
            with torch.inference_mode(i > 5):
                out = step(x)
            found += map(what, [t for t in torch.utils._pytree.tree_leaves((out, x))])
        return found

    assert both(run).counts[0] >= 4


def test_results_that_are_parts_of_complex_ones():
    def run(device, compiled):
        def learn(x):
            z = torch.complex(x, x.exp())
            return z, z.real, z.imag[:1], torch.view_as_real(z).mT

        step, found = compiled(learn), []
        for i in range(6):
            out = step(torch.full((2, 2), 0.1 * i).to(device))
            out[0].mul_(2)
            found += [[t._is_view(), t.stride(), str(t.tolist())] for t in out]
        return found

    assert both(run).counts[0] >= 3


def test_each_result_has_a_node_of_its_own():
    def run(device, compiled):
        def learn(x):
            h = x * 2
            return h.sin(), h.cos()

        def linear(x):
            h = x * 2
            return h * 2, h * 3

        step, other, sums, found = compiled(learn), compiled(linear), compiled(lambda x: (x + 1).sum()), []
        for _ in range(9):
            x = torch.tensor([0.1]).to(device).requires_grad_()
            y, z = step(x)
            calls = []
            z.register_hook(lambda g: calls.append(g) or g * 2)
            y.sum().backward(retain_graph=True)
            found += [len(calls), x.grad.clone()]
            z.sum().backward()
            found += [len(calls), x.grad.clone()]
            x = torch.tensor([0.1]).to(device).requires_grad_()
            z, y = other(x)
            y.retain_grad()
            y.mul_(2)
            y.sum().backward()
            found += [y.grad, x.grad, z.requires_grad, z.is_leaf]
            x = torch.tensor([0.1]).to(device).requires_grad_()
            total = sums(x)
            total.backward()
            total.backward()
            found.append(x.grad)
        return found

    assert both(run).counts[0] >= 4


@pytest.mark.parametrize("what", ["manual_seed", "set_state"])
def test_a_refusal_names_the_line_of_the_program_and_not_of_a_library(what):
    def body(x):
        if what == "manual_seed":
            torch.manual_seed(3)
            return x
        with torch.random.fork_rng(devices=[], device_type="cpu"):
            return x + torch.rand(2).to(x.device)

    step = torch_ltc.compile(body)
    for _ in range(6):
        step(torch.ones(2, device="ltc"))
    assert what in step.refusal and "test_step_borders.py" in step.refusal, step.refusal
