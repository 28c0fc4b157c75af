"""What can be asked of the gradients that flow through compiled steps is what can be asked of the step itself."""

import random

import pytest
import torch
import torch_ltc
from steps import both, seen
from torch import nn
from torch_ltc import _step


def net(device):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)


@pytest.mark.parametrize("seeded", [False, True])
def test_gradients_of_gradients_flow_through_recorded_calls(seeded):
    def run(device, compile):
        model = net(device)
        call, out = compile(model), []
        for i in range(7):
            x = torch.linspace(0, 1 + i, 6, device=device).view(2, 3).requires_grad_()
            model.zero_grad()
            u = call(x)
            (du,) = torch.autograd.grad(u if seeded else u.sum(), x, torch.ones_like(u) if seeded else None, None, True)
            ((du + u).square().mean() + u.square().sum()).backward()
            out += seen(du.requires_grad, du, x.grad, *[p.grad for p in model.parameters()])
        return out

    call = both(run)
    assert call.counts[0] == 0 and "create_graph=True" in call.refusal, call.explain()


def test_gradients_of_gradients_of_a_replay_are_an_error_and_flow_from_there_on():
    model = net("ltc")
    call = torch_ltc.compile(model)
    x = torch.ones(2, 3, device="ltc").requires_grad_()
    for _ in range(6):
        call(x).sum().backward()
    replayed = call.counts[0]
    for i in range(6):
        (g,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        assert g.requires_grad
        if i == 0 and not _step._CHECK_EVERY:
            with pytest.raises(RuntimeError, match="gradients of gradients do not flow through a call"):
                g.sum().backward()
        else:
            model.zero_grad()
            g.square().sum().backward()
            assert model[0].weight.grad.abs().sum() > 0
    assert call.counts[0] <= replayed + 1 and "create_graph=True" in call.refusal
    # Calls of another kind are replayed.
    for _ in range(5):
        call(x.detach()).sum().backward()
    assert call.counts[0] >= replayed + 2


class Chain(nn.Module):
    """Results that are computed from other results."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        h = self.a(x).tanh()
        g = self.b(h).sigmoid() + h
        return {"h": h, "g": g, "loss": self.c(g).square().mean(), "aside": (self.a(x) * 2).exp()}


def uses_loss(model, call, x, out):
    out["loss"].backward()


def uses_all(model, call, x, out):
    sum(y.sum() for y in out.values()).backward()


def retains(model, call, x, out):
    out["h"].retain_grad()
    out["g"].retain_grad()
    (out["loss"] + out["h"].sum()).backward()
    return [out["h"].grad, out["g"].grad]


def hooks(model, call, x, out):
    log = []
    out["h"].register_hook(lambda g: log.append(g.clone()) or g * 10)
    out["g"].register_hook(lambda g: g + 1)
    out["loss"].backward()
    return log


def asks(model, call, x, out):
    grad = torch.autograd.grad
    return [
        *grad(out["loss"], [out["h"], out["g"], x], retain_graph=True),
        *grad(out["g"], out["h"], torch.ones_like(out["g"]), retain_graph=True),
        grad(out["aside"].sum(), out["h"], allow_unused=True)[0] is None,
    ]


def one_after_another(model, call, x, out):
    out["loss"].backward()
    out["aside"].sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        out["h"].sum().backward()


@pytest.mark.parametrize("use", [uses_loss, uses_all, retains, hooks, asks, one_after_another])
def test_results_that_others_are_computed_from(use):
    def run(device, compile):
        torch.manual_seed(0)
        model = Chain().to(device)
        call, out = compile(model), []
        for i in range(9):
            model.zero_grad()
            x = torch.linspace(-1, i, 6, device=device).view(2, 3).requires_grad_()
            results = call(x)
            found = use(model, call, x, results) or ()
            out += seen(*found, x.grad, *[p.grad for p in model.parameters()], *results.values())
        return out

    call = both(run)
    assert call.counts[0] == 6, call.explain()
    assert call.backward_counts[0] > 0 or _step._CHECK_EVERY


def test_an_inner_result_that_is_written_over_is_an_error():
    def run(device, compile):
        torch.manual_seed(0)
        model = Chain().to(device)
        call, out = compile(model), []
        for _ in range(6):
            results = call(torch.ones(2, 3, device=device))
            with torch.no_grad():
                results["g"].mul_(2)
            try:
                results["loss"].backward()
            except RuntimeError as e:
                out.append("modified by an inplace operation" in str(e))
        return out

    assert both(run).counts[0] == 3


def test_results_that_cannot_be_told_apart_are_recorded():
    def run(device, compile):
        x, w = torch.ones(3, device=device, requires_grad=True), torch.ones(3, device=device)
        call, out = compile(lambda w: [h := (g := (x * w).exp()).sin(), h.cos() * g]), []
        for _ in range(7):
            x.grad = None
            h, both = call(w)
            h.retain_grad()
            both.sum().backward()
            out += seen(h.grad, x.grad)
        return out

    call = both(run)
    assert call.counts[0] == 0 and "another result is computed from" in call.refusal


def test_losses_of_their_own_are_gone_back_through_one_after_another():
    def run(device, compile):
        a, b = net(device), net(device)
        call, out = compile(lambda x: (a(x).square().sum(), b(x).square().sum())), []
        for i in range(8):
            p, q = call(torch.full((2, 3), float(i), device=device))
            p.backward()
            q.backward()
            out += seen(p, q, a[0].weight.grad, b[0].weight.grad)
        return out

    call = both(run)
    assert call.counts[0] == 5 and (call.backward_counts[0] >= 6 or _step._CHECK_EVERY), call.backward_counts


def test_what_no_result_takes_may_be_written_over():
    def run(device, compile):
        p, out = torch.ones(2, device=device, requires_grad=True), []

        def step(x):
            _ = (p * x).mean()
            return p * 2

        call = compile(step)
        for _ in range(7):
            x = torch.ones(2, device=device)
            result = call(x)
            x.add_(1)
            result.sum().backward()
            out += seen(p.grad)
        return out

    assert both(run).counts[0] == 4


TRANSFORMS = {
    "jacrev": lambda call, x: torch.func.jacrev(call)(x),
    "jvp": lambda call, x: torch.func.jvp(call, (x,), (x,))[1],
    "vmap": lambda call, x: torch.func.vmap(call)(x),
    "grad": lambda call, x: torch.func.grad(lambda y: call(y).sum())(x[0]),
    "hessian": lambda call, x: torch.func.hessian(lambda y: call(y).sum())(x[0]),
    "grads of each": lambda call, x: torch.func.vmap(torch.func.grad(lambda y: call(y).sum()))(x),
    "vjp": lambda call, x: torch.func.vjp(call, x)[1](call(x))[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_go_by_each_operator(name):
    """A transform of a step that was replayed before, and a step that transforms."""

    def around(device, compile):
        model = net(device)
        call, out, x = compile(model), [], torch.ones(2, 3, device=device)
        for _ in range(6):
            call(x), call(x[0])
        for i in range(3):
            out += seen(TRANSFORMS[name](call, x * i), call(x * i))
        return out

    def within(device, compile):
        model = net(device)
        step = compile(lambda x: TRANSFORMS[name](model, x).detach())
        return [y for i in range(6) for y in seen(step(torch.ones(2, 3, device=device) * i))]

    assert both(around).counts[0] > 6
    both(within)


def multiply(p, factor):
    p.grad.mul_(factor)


def test_hooks_after_accumulation_may_come_and_go():
    def run(device, compile):
        p, out = torch.ones(2, device=device, requires_grad=True), []

        def step(x):
            p.grad = None
            (p * x).sum().backward()

        call = compile(step)

        def calls():
            for _ in range(5):
                call(torch.ones(2, device=device))
            out.extend(seen(p.grad))

        calls()
        for factor in (2, 7):
            handle = p.register_post_accumulate_grad_hook(lambda q: multiply(q, factor))
            calls()
            handle.remove()
            calls()
        return out

    assert both(run).counts[0] > 5


def adds(p, x):
    (p * x).sum().backward()


def zeroes_and_adds(p, x):
    p.grad.zero_()
    (p * x).sum().backward()


@pytest.mark.parametrize("step", [adds, zeroes_and_adds])
def test_writes_to_gradients_count(step):
    def run(device, compile):
        p, w = (torch.ones(2, device=device, requires_grad=True) for _ in "pw")
        p.grad, out, x = torch.ones(2, device=device), [], torch.ones(2, device=device)
        call = compile(lambda x: step(p, x))
        for _ in range(8):
            before, grad = p.grad._version, p.grad
            y = (w * p.grad).sum()
            call(x)
            out += [p.grad is grad, p.grad._version - before, *seen(p.grad)]
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()
        return out

    assert both(run).counts[0] == 5


@pytest.mark.parametrize("kept", [False, True])
def test_gradients_that_are_returned_are_the_gradients(kept):
    def run(device, compile):
        p, out = torch.ones(2, device=device, requires_grad=True), []

        def step(x):
            if not kept:
                p.grad = None
            (p * x).sum().backward()
            return p.grad, x * 2

        call = compile(step)
        for i in range(9):
            if i == 6:
                p.grad = torch.zeros(2, device=device)
            g, _ = call(torch.full((2,), float(i), device=device))
            out += [g is p.grad, *seen(g)]
            g.mul_(2)
            out += seen(p.grad)
        return out

    assert both(run).counts[0] >= 5


class Holder:
    def __init__(self):
        self.names = ["a"]


RETURNS = {
    "an older list": (lambda holder, x, batch: (x * 2, holder.names), ""),
    "an older list by itself": (lambda holder, x, batch: x.mul_(2) is None or holder.names, ""),
    "its argument": (lambda holder, x, batch: (x * 2, batch), "a dict that it is given"),
    "a list twice": (lambda holder, x, batch: [y := [x * 2], y], "in two places"),
    "new lists": (lambda holder, x, batch: [[x * 2], {"k": [1.0]}], ""),
}


@pytest.mark.parametrize("name", RETURNS)
def test_containers_that_are_returned_are_the_same_ones(name):
    fn, why = RETURNS[name]

    def run(device, compile):
        holder, out = Holder(), []
        call = compile(lambda x, batch: fn(holder, x, batch))
        for i in range(9):
            batch = {"k": 1.0}
            found = call(torch.full((2,), float(i), device=device), batch)
            flat = [found, *found]
            out.append([any(x is y for x in flat) for y in (holder.names, batch)])
            out.append([[x is y for x in flat] for y in flat])
            out.append([x for x in flat if isinstance(x, list) and x and isinstance(x[0], str)])
            if i == 6:
                holder.names.append("b")
        return out

    call = both(run)
    assert why in call.refusal and bool(why) == (call.counts[0] == 0), call.explain()


def test_views_that_are_returned_count_writes_with_what_they_show():
    def run(device, compile):
        state, out = torch.ones(3, device=device), []
        call = compile(lambda x: (x[1:], state.mul_(1).detach(), x * 2))
        for _ in range(6):
            x, q = torch.ones(2, device=device), torch.ones(2, device=device, requires_grad=True)
            view, same, _ = call(x)
            y = (q * x).sum()
            versions = x._version, state._version
            view.mul_(2)
            same.add_(1)
            out += [x._version - versions[0], state._version - versions[1], view._is_view(), *seen(state)]
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()
        return out

    call = both(run)
    assert call.counts[0] >= 2, call.explain()


@pytest.mark.parametrize("after", [True, False])
def test_hooks_where_gradients_are_added_up_come_and_go(after):
    def run(device, compiled):
        weight = torch.ones(3, 3).to(device).requires_grad_()
        adder = weight.view_as(weight).grad_fn.next_functions[0][0]

        def put():
            if after:
                return adder.register_hook(lambda *_: weight.grad.mul_(2.0) is None or None)
            return adder.register_prehook(lambda grads: (grads[0] * 2.0,))

        def learn(x):
            weight.grad = None
            (x @ weight).sum().backward()
            return weight.grad.sum()

        step, found, hook = compiled(learn), [], None
        for i in range(16):
            if i == 5:
                hook = put()
            if i == 8:
                second = put()
            if i == 11:
                second.remove()
            if i == 12:
                hook.remove()
            found.append(step(torch.full((2, 3), float(i + 1)).to(device)).item())
        return found

    step = both(run)
    assert step.counts[0] >= 1, step.explain()
    assert "AccumulateGrad" in step.explain()


def test_operators_get_other_kernels_and_lose_them():
    library = torch.library.Library("ltc_kernels_change", "DEF")
    library.define("more(Tensor x) -> Tensor")
    library.impl("more", lambda x: x + 1, "CompositeImplicitAutograd")

    def run(device, compiled):
        def learn(x):
            return torch.ops.ltc_kernels_change.more(x) * 2

        step, found = compiled(learn), []
        for i in range(18):
            if i in (6, 12):
                by = {6: 10, 12: 1}[i]
                other = torch.library.Library("ltc_kernels_change", "IMPL")
                other.impl("more", lambda x, by=by: x + by, "CompositeImplicitAutograd", allow_override=True)
                kept.append(other)
            found.append(step(torch.full((2,), float(i)).to(device)).sum().item())
        return found

    kept = [library]
    step = both(run)
    assert step.counts[0] >= 6, step.explain()


def test_a_leaf_that_a_step_returns_detached_requires_no_gradient():
    def run(device, compiled):
        leaf = torch.arange(6.0).to(device).requires_grad_()

        def learn(x):
            (leaf * x).sum().backward()
            return leaf.detach(), leaf.detach().view(2, 3), leaf.data

        step, found = compiled(learn), []
        for i in range(7):
            results = step(torch.full((6,), float(i)).to(device))
            found += [*seen(*results), [t.requires_grad for t in results]]
            with torch.no_grad():
                leaf.mul_(2.0)
            found.append([t.sum().item() for t in results])
        return found

    assert both(run).counts[0] >= 3


@pytest.mark.parametrize("seed", range(24))
def test_gradients_of_results_that_others_are_computed_from(seed):
    """Random graphs: any results, of any of which the gradients are taken."""
    dice = random.Random(seed)
    ops = [torch.mul, torch.add, torch.sub, torch.atan2, lambda a, b: a.sin() * b, lambda a, b: a.exp() + b.cos()]
    plan = [(dice.choice(ops), dice.randrange(3 + i), dice.randrange(3 + i)) for i in range(dice.randint(2, 7))]
    kept = sorted(dice.sample(range(3, 3 + len(plan)), dice.randint(2, min(4, len(plan)))))
    asked = [dice.sample(range(len(kept)), dice.randint(1, len(kept))) for _ in range(10)]

    def run(device, compiled):
        leaf = torch.tensor([0.3, -0.2]).to(device).requires_grad_()

        def learn(x, y):
            values = [x, y, leaf]
            for op, a, b in plan:
                values.append(op(values[a], values[b]))
            return [values[i] for i in kept]

        step, found = compiled(learn), []
        for i in range(10):
            x, y = [torch.tensor([0.1 * i + k, 0.5]).to(device).requires_grad_() for k in range(2)]
            results = step(x, y)
            chosen = [results[k] for k in asked[i] if results[k].requires_grad]
            seeds = [torch.full_like(t, 1.0 + k) for k, t in enumerate(chosen)]
            leaves = [x, y, leaf]
            grads = torch.autograd.grad(chosen, leaves, seeds, allow_unused=True) if chosen else []
            found += [*seen(*results), *grads]
        return found

    assert both(run).counts[0] >= 5


def all_at_once(model, optimiser, x, last):
    optimiser.zero_grad(set_to_none=False)
    for part in x.chunk(3):
        model(part).square().mean().backward()
    optimiser.step()


def one_by_one(model, optimiser, x, last):
    (model(x).square().mean() / 4).backward()
    if last:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()


@pytest.mark.parametrize("learn", [all_at_once, one_by_one])
@pytest.mark.parametrize("bias", [False, True])
def test_steps_that_gather_gradients_are_replayed(learn, bias):
    """The gradient of a bias is a view of a row, and whole where another one is added to it."""

    def run(device, compiled):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8, bias=bias), nn.Tanh(), nn.Linear(8, 1, bias=bias)).to(device)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        step = compiled(lambda x, last: learn(model, optimiser, x, last))
        for i in range(40):
            step(torch.linspace(0, 1 + i, 18, device=device).view(6, 3), i % 4 == 3)
        return seen(*model.parameters())

    call = both(run)
    assert call.counts[0] >= 24, call.explain()


class Pix2Pix:
    """Two networks in turn; the discriminator is frozen while the generator learns, and stays so to the next call."""

    def __init__(self, device, frozen):
        torch.manual_seed(0)
        self.generator, self.discriminator = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
        self.optimisers = [torch.optim.SGD(n.parameters(), 0.05) for n in (self.generator, self.discriminator)]
        self.frozen = frozen

    def freeze(self, on):
        for p in self.discriminator.parameters():
            p.requires_grad = not on

    def step(self, real):
        of_generator, of_discriminator = self.optimisers
        fake = self.generator(real)
        self.freeze(False)
        of_discriminator.zero_grad()
        (self.discriminator(fake.detach()).square() + (1 - self.discriminator(real)).square()).mean().backward()
        of_discriminator.step()
        self.freeze(True)
        of_generator.zero_grad()
        loss = (1 - self.discriminator(fake)).square().mean()
        loss.backward()
        of_generator.step()
        self.freeze(self.frozen)
        return loss.detach()

    def state(self):
        parameters = [*self.generator.parameters(), *self.discriminator.parameters()]
        return [(p.detach().cpu(), p.requires_grad, None if p.grad is None else p.grad.cpu()) for p in parameters]


@pytest.mark.parametrize("frozen", [True, False])
def test_a_step_that_freezes_and_thaws_a_network(frozen):
    worlds = [Pix2Pix(device, frozen) for device in ("cpu", "ltc")]
    step = torch_ltc.compile(worlds[1].step)
    for k in range(12):
        given = torch.full((2, 4), k / 12)
        losses = worlds[0].step(given), step(given.to("ltc")).cpu()
        torch.testing.assert_close(losses[1], losses[0])
        if k % 3 == 2:
            for (p, trains, grad), (ours, our_trains, our_grad) in zip(*(w.state() for w in worlds), strict=True):
                torch.testing.assert_close(ours, p)
                torch.testing.assert_close(our_grad, grad)
                assert our_trains == trains
    assert step.counts[0] >= 7, step.explain()
