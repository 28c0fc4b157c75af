"""Gradients flow through what a compiled step returns, as they do through what the step itself returns; or it says why
not."""

import gc
import types
import weakref
from collections import deque

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint
from torch_ltc import _step


def train(device, make, calls=7):
    """Calls what ``make`` returns and goes back through the results; everything that can be seen after each call."""
    torch.manual_seed(0)
    world = types.SimpleNamespace(device=device, i=0)
    module, use = make(world)
    module.to(device)
    call = torch_ltc.compile(module) if device == "ltc" else module
    seen = []
    for world.i in range(calls):
        module.zero_grad(set_to_none=world.i % 3 != 1)
        seen += [x.detach().cpu().clone() for x in use(world, call)]
        for _, p in module.named_parameters():
            seen.append(torch.zeros(()) if p.grad is None else p.grad.cpu().clone())
            seen.append(torch.tensor(float(p.grad is None)))
            with torch.no_grad():
                if p.grad is not None and p.requires_grad:
                    p -= 0.05 * p.grad
        seen += [b.cpu().clone() for b in module.buffers()]
    return seen, call


def agree(make, least=2, back=1, calls=7):
    """The same on both devices, with so many calls and ways back replayed; returns the compiled module."""
    expected, _ = train("cpu", make, calls)
    found, call = train("ltc", make, calls)
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert call.counts[0] >= least, call.explain()
    if back and not _step._CHECK_EVERY:  # what is checked is recorded, and has a history of its own
        assert call.backward_counts[0] >= back, call.backward_counts
    return call


def simple(module, *shape, loss=lambda out: out.square().sum()):
    def use(world, call):
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(world.i)).to(world.device)
        total = loss(call(x))
        total.backward()
        return [total]

    return lambda world: (module(), use)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = [y.view(*y.shape[:-1], 2, 4).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + F.gelu(self.out(y.transpose(1, 2).reshape(x.shape)))


NETWORKS = {
    "linear": simple(lambda: nn.Linear(4, 3), 5, 4),
    "mlp": simple(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)), 5, 4),
    "convolutions": simple(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        2,
        3,
        8,
        8,
    ),
    "attention": simple(Block, 2, 5, 8),
    "recurrent": simple(
        lambda: nn.LSTM(4, 3, batch_first=True), 2, 5, 4, loss=lambda out: out[0].sum() + out[1][0].sum()
    ),
    "softmax": simple(lambda: nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1)), 5, 4, loss=lambda out: (out * out).sum()),
    "group norm": simple(lambda: nn.Sequential(nn.Linear(4, 4), nn.GroupNorm(2, 4), nn.SiLU()), 5, 4),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_train(name):
    agree(NETWORKS[name])


def test_a_compiled_module_is_a_module():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).to("ltc")
    compiled = torch_ltc.compile(module)
    assert isinstance(compiled, nn.Module)
    assert list(map(id, compiled.parameters())) == list(map(id, module.parameters()))
    compiled.eval()
    assert not module.training and not module[1].training and not compiled.training
    assert compiled.state_dict().keys() == {"_orig_mod.0.weight", "_orig_mod.0.bias"}


class Two(nn.Module):
    """Two results with parameters of their own."""

    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 1)

    def forward(self, x):
        h = self.stem(x).relu()
        return self.a(h), self.b(h).log()


def test_results_that_nobody_uses_leave_no_gradients():
    def make(world):
        def use(world, call):
            a, b = call(torch.ones(2, 3, device=world.device) * (world.i + 1))
            out = [a, b, a + b][world.i % 3].sum()
            out.backward()
            return [out]

        return Two(), use

    call = agree(make, least=6, back=4, calls=12)
    assert call.counts[0] == 9


def test_inputs_get_gradients():
    def make(world):
        before = nn.Linear(3, 3)
        after = nn.Linear(2, 1)
        both = nn.ModuleList([before, nn.Linear(3, 2), after])

        class All(nn.Module):
            def forward(self, x):
                return both[1](x).tanh()

        inner = All()
        inner.both = both

        def use(world, call):
            leaf = torch.ones(2, 3).mul(world.i).to(world.device).requires_grad_()
            h = both[0](leaf)
            out = both[2](call(h) + call(leaf)).sum()
            out.backward()
            return [out, leaf.grad]

        return inner, use

    agree(make, least=6)


def test_gradients_can_be_asked_for_and_go_back_twice():
    def make(world):
        layer = nn.Linear(3, 1)

        def use(world, call):
            x = torch.ones(2, 3, device=world.device, requires_grad=True)
            y = call(x).sigmoid().sum()
            (g,) = torch.autograd.grad(y, x, retain_graph=True)
            y.backward()
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                y.backward()
            return [y, g]

        return layer, use

    agree(make)


def test_gradients_add_up_over_calls():
    def make(world):
        layer = nn.Linear(3, 1)

        def use(world, call):
            losses = [call(torch.full((2, 3), float(i), device=world.device)).square().mean() for i in range(3)]
            for loss in losses:
                loss.backward()
            return losses

        return layer, use

    agree(make, least=12, back=6)


def test_each_gradient_has_memory_of_its_own():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x + self.a + self.b

    def make(world):
        def use(world, call):
            out = call(torch.ones(3, device=world.device))
            out.retain_grad()
            (out * 2).sum().backward()
            module = call._orig_mod if world.device == "ltc" else call
            module.a.grad.mul_(3)
            module.b.grad.add_(1)
            return [out, out.grad, module.a.grad, module.b.grad]

        return Sum(), use

    agree(make)


@pytest.mark.parametrize("which", ["result", "input", "weight"])
def test_what_was_saved_and_written_over_is_an_error(which):
    layer = nn.Linear(3, 3).to("ltc")
    call = torch_ltc.compile(nn.Sequential(layer, nn.Sigmoid()))
    for i in range(8):
        x = torch.ones(2, 3, device="ltc")
        h = x * 2
        h.requires_grad_()
        out = call(h)
        with torch.no_grad():
            {"result": out, "input": h, "weight": layer.weight}[which].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()
    assert call.counts[0] == 5


def test_what_the_step_itself_writes_over_is_an_error():
    def step(x):
        y = x * 2
        z = y.square()
        with torch.no_grad():
            y.add_(1)
        return z, x + 1

    call = torch_ltc.compile(step)
    for i in range(6):
        x = torch.ones(3, device="ltc", requires_grad=True)
        z, other = call(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
        other.sum().backward()
        assert x.grad.tolist() == [1.0] * 3
    assert call.counts[0] == 0 and "writes over" in call.refusal


def test_it_is_the_tensors_of_the_call_that_are_gone_back_through():
    layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).to("ltc")
    call = torch_ltc.compile(layer)
    for _ in range(5):
        call(torch.ones(2, 3, device="ltc")).sum().backward()
    layer.zero_grad()
    xs = [torch.randn(2, 3) for _ in range(4)]
    outs = [call(x.to("ltc")) for x in xs]
    found = []
    for out in reversed(outs):
        found.append(torch.autograd.grad(out.sum(), layer[0].weight)[0].cpu())
    reference = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    reference.load_state_dict({k: v.cpu() for k, v in layer.state_dict().items()})
    for x, g in zip(reversed(xs), found):
        (e,) = torch.autograd.grad(reference(x).sum(), reference[0].weight)
        torch.testing.assert_close(g, e)
    assert call.counts == (6, 3)


@pytest.mark.parametrize("within", [False, True])
def test_autocast_is_that_of_the_way_back(within):
    """Inside or outside of autocast: what the way back computes in, and another one on the way."""

    def make(world):
        def use(world, call):
            x = torch.linspace(-1, 1, 12).view(4, 3).to(world.device)
            with torch.autocast(world.device, torch.bfloat16):
                out = call(x).float().sum()
                if within or world.i > 8:
                    out.backward()
            if not (within or world.i > 8):
                out.backward()
            return [out]

        return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), use

    agree(make, calls=14)


def test_dropout_goes_back_through_its_own_mask():
    layer = nn.Dropout(0.5)
    call = torch_ltc.compile(layer)
    for i in range(7):
        x = torch.ones(64, device="ltc", requires_grad=True)
        out = call(x)
        out.sum().backward()
        torch.testing.assert_close(x.grad.cpu(), out.detach().cpu())
    assert call.counts[0] == 4


def test_hooks_are_called_once():
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        layer = nn.Linear(3, 3).to(device)
        call = torch_ltc.compile(layer) if device == "ltc" else layer
        log = []
        for i in range(9):
            x = torch.ones(2, 3, device=device).mul(2).requires_grad_()
            h = x * 3
            h.register_hook(lambda g: log.append(("h", g.sum().item())))
            out = call(h)
            out.register_hook(lambda g: log.append(("out", g.sum().item())))
            if i == 5:
                layer.weight.register_hook(lambda g: log.append(("weight", g.sum().item())))
            if i == 7:
                layer.weight.register_post_accumulate_grad_hook(lambda p: log.append(("after", 0.0)))
            out.sum().backward()
        if device == "cpu":
            expected = log
    assert [n for n, _ in log] == [n for n, _ in expected]
    torch.testing.assert_close([x for _, x in log], [x for _, x in expected])


class Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y + 1


def saves_on_the_host(x):
    with torch.autograd.graph.save_on_cpu():
        return x.sin() * 2


def detaches_part(x):
    return x.detach() * 2 + x


def writes_its_input(x):
    y = x * 2
    y.mul_(3)
    return y.sin()


ODD = {
    "a function of a class": (lambda x: Doubles.apply(x).sin(), "written in Python"),
    "a hook": (hooked, "gradients"),
    "a checkpoint": (lambda x: checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False), ""),
    "saved on the host": (saves_on_the_host, ""),
    "two views of one": (lambda x: (x * 2).chunk(2), "several views"),
    "a view of the input": (lambda x: x[:2], "a view of an input"),
    "the input": (lambda x: x, None),
    "goes back itself": (lambda x: x * 2 + torch.autograd.grad((x * x).sum(), x)[0], "made outside"),
    "detaches a part": (detaches_part, None),
    "writes on the way": (writes_its_input, None),
    "a view of the result": (lambda x: (x * 2).view(2, 2).t(), None),
    "expanded": (lambda x: x.sum().expand(3, 2), None),
    "nothing but a copy": (lambda x: x.clone(), None),
    "complex": (lambda x: torch.view_as_real(torch.complex(x, x * 2) ** 2), None),
    "several kinds": (lambda x: {"a": x * 2, "b": [x.detach() + 1, (x > 0), 3]}, None),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_ones_agree_or_refuse(name):
    fn, why = ODD[name]
    seen = {}
    for device in ("cpu", "ltc"):
        call = torch_ltc.compile(fn) if device == "ltc" else fn
        seen[device] = []
        for i in range(7):
            x = torch.linspace(-1, 1, 4).add(i).to(device).requires_grad_()
            h = x * 2
            out = call(h)
            flat = [y for y in torch.utils._pytree.tree_leaves(out) if isinstance(y, torch.Tensor)]
            with_history = [y for y in flat if y.requires_grad]
            sum((y * y).sum() for y in with_history).backward()
            seen[device] += [y.detach().cpu().clone() for y in (*flat, x.grad)]
            seen[device].append(torch.tensor([float(y.requires_grad) for y in flat]))
            # Results can be written to as eager's can.
            for y in with_history[:1]:
                if name not in ("two views of one", "the input", "expanded", "a view of the input"):
                    y.mul_(2)
                    seen[device].append(y.detach().cpu().clone())
    for a, b in zip(seen["cpu"], seen["ltc"], strict=True):
        torch.testing.assert_close(a, b)
    if why is None:
        assert call.counts[0] == 4, call.explain()
    else:
        assert call.counts[0] == 0 and why in call.refusal, call.explain()


def test_a_closure_over_a_tensor_with_history_is_recorded():
    for device in ("cpu", "ltc"):
        w = torch.ones(3, device=device, requires_grad=True)
        h = w * 2
        fn = lambda x: x * h
        call = torch_ltc.compile(fn) if device == "ltc" else fn
        for i in range(6):
            call(torch.full((3,), float(i), device=device)).sum().backward(retain_graph=True)
        if device == "cpu":
            expected = w.grad
    torch.testing.assert_close(w.grad.cpu(), expected)
    assert call.counts[0] == 0 and "made outside" in call.refusal


def test_freezing_and_replaced_layers_are_seen():
    def make(world):
        net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

        def use(world, call):
            if world.i == 5:
                net[0].requires_grad_(False)
            if world.i == 10:
                net[2] = nn.Linear(3, 2).to(world.device)
                nn.init.ones_(net[2].weight)
                nn.init.zeros_(net[2].bias)
            out = call(torch.ones(2, 3, device=world.device)).sum()
            out.backward()
            return [out]

        return net, use

    agree(make, least=6, calls=16)


def test_threads_go_back_for_themselves():
    import threading

    layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).to("ltc")
    call = torch_ltc.compile(layer)
    failures = []

    def work(seed):
        try:
            for i in range(12):
                x = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed * 100 + i))
                y = x.to("ltc").requires_grad_()
                (g,) = torch.autograd.grad(call(y).sum(), y)
                reference = torch.tanh(x @ weight.t() + bias)
                torch.testing.assert_close(g.cpu(), (1 - reference**2) @ weight, rtol=1e-4, atol=1e-5)
        except BaseException as e:  # noqa: BLE001
            failures.append(e)

    weight, bias = layer[0].weight.detach().cpu(), layer[0].bias.detach().cpu()
    threads = [threading.Thread(target=work, args=(s,)) for s in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures, failures


def test_nothing_of_a_replay_is_kept():
    layer = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).to("ltc")
    call = torch_ltc.compile(layer)

    def once():
        x = torch.ones(128, 64, device="ltc", requires_grad=True)
        h = x * 2
        call(h).sum().backward()  # noqa: F821  (deleted at the end)
        layer.zero_grad()  # noqa: F821
        return weakref.ref(h)

    refs = [once() for _ in range(6)]
    torch.ltc.synchronize()
    gc.collect()
    assert [r() for r in refs] == [None] * 6
    # Captures that came to nothing, too.
    hooked_step = torch_ltc.compile(hooked)
    refs = []
    for _ in range(5):
        x = torch.ones(128, 64, device="ltc", requires_grad=True)
        out = hooked_step(x).sin()
        refs += [weakref.ref(x), weakref.ref(out)]
        del x, out
    gc.collect()
    assert [r() for r in refs] == [None] * 10
    before = torch.ltc.memory_allocated()
    for _ in range(10):
        once()
    torch.ltc.synchronize()
    gc.collect()
    assert torch.ltc.memory_allocated() <= before
    parameter = weakref.ref(layer[0].weight)
    del layer, call, once
    gc.collect()
    assert parameter() is None


def test_history_that_is_spent_stays_so_from_the_first_call_to_the_last_replay():
    leaf = torch.tensor([1.0, 2.0, 4.0]).to("ltc").requires_grad_()
    inner = leaf.reciprocal()
    inner.sum().backward()
    # One result has a way back, the other leads through a graph that was let go.
    step = torch_ltc.compile(lambda: (leaf.var(), inner * 2))
    for _ in range(8):
        good, spent = step()
        assert good.requires_grad and spent.requires_grad and spent.grad_fn is not None
        good.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            spent.sum().backward()
    assert step.counts[0] >= 3, step.explain()


class _Kept:
    """Where a step leaves what its caller goes back through."""

    def __init__(self):
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to("ltc")
        self.loss, self.out, self.few, self.many = None, None, deque(maxlen=3), []


def _leaves_an_attribute(kept, x):
    kept.loss = kept.net(x).square().mean()


def _leaves_and_returns(kept, x):
    loss = kept.loss = kept.net(x).square().mean()
    return loss


def _leaves_a_dict(kept, x):
    found = kept.net(x)
    kept.out = {"loss": found.square().mean(), "shown": found.detach(), "n": 1}


def _appends_to_a_list(kept, x):
    kept.many.append(kept.net(x).square().mean())


def _appends_two_to_a_deque(kept, x):
    found = kept.net(x)
    kept.few.append((found.square().mean(), 1))
    kept.few.append(found.mean())
    return found.detach()


@pytest.mark.parametrize(
    "leaves",
    [_leaves_an_attribute, _leaves_and_returns, _leaves_a_dict, _appends_to_a_list, _appends_two_to_a_deque],
    ids=lambda f: f.__name__[1:],
)
def test_gradients_flow_through_what_every_call_leaves(leaves):
    """Also through what a captured call leaves, whose own history replays have taken."""

    def losses_of(compiled):
        kept, found = _Kept(), []
        step = torch_ltc.compile(leaves) if compiled else leaves
        optimizer = torch.optim.SGD(kept.net.parameters(), lr=0.1)
        for i in range(12):
            returned = step(kept, torch.full((3, 4), i / 4, device="ltc"))
            left = [x for x in pytree.tree_leaves((kept.loss, kept.out, [*kept.few], kept.many)) if torch.is_tensor(x)]
            assert returned is None or not returned.requires_grad or returned is kept.loss
            optimizer.zero_grad()
            sum(x for x in left if x.requires_grad).backward()
            optimizer.step()
            found.append([*(x.detach().tolist() for x in left), kept.net[0].weight.sum().item()])
            kept.many.clear()
            kept.few.clear()
        return found, step

    (expected, _), (got, step) = losses_of(False), losses_of(True)
    assert got == expected
    assert step.counts[0] >= 8, step.explain()
