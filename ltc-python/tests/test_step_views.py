"""What a compiled step returns that shows memory of something else: what may be written to, and what counts writes, is
what it is without compiling."""

import pytest
import torch
import torch_ltc
from steps import outcome
from torch import nn


def of_gradients(part):
    def make(device):
        w = nn.Parameter(torch.ones(4).to(device))

        def step(x):
            w.grad = None
            (w * x[0]).sum().backward()
            return part(w.grad)

        return step

    return make


def of(made, without_gradients=False, inference=False):
    def make(device):
        older = torch.ones(2, 4, device=device)

        def step(x):
            with torch.inference_mode(inference), torch.set_grad_enabled(not without_gradients and not inference):
                return made(x, older)

        return step

    return make


def of_double(part, **modes):
    def made(x, _):
        h = x * 2
        return h, part(h)

    return of(made, **modes)


def view_without_gradients(x, _):
    h = x * 2
    with torch.no_grad():
        v = h.view(-1)
    return h, v


def view_in_inference_mode(x, _):
    h = x * 2
    with torch.inference_mode():
        v = h.view(-1)
    return h, v


def beside_a_history(device):
    torch.manual_seed(0)
    layer = nn.Linear(4, 2).to(device)

    def step(x):
        with torch.inference_mode():
            h = x * 2
        return layer(x), h

    return step


REPLAYED = {
    "a gradient": of_gradients(lambda g: (g, g)),
    "a view without gradients": of(view_without_gradients),
    "a view of an input without gradients": of(lambda x, _: (x, x.view(-1)), without_gradients=True),
    "a row without gradients": of_double(lambda h: h[1], without_gradients=True),
    "one of several": of_double(lambda h: h.split(1)[0]),
    "one of several of an input": of(lambda x, _: (x, x.unbind(0)[0])),
    "a row": of_double(lambda h: h[0]),
    "detached": of_double(lambda h: h.detach()),
    "data": of_double(lambda h: h.data),
    "data of an input": of(lambda x, _: (x, x.data)),
    "a view in inference mode": of_double(lambda h: h.view(-1), inference=True),
    "a turned view in inference mode": of_double(lambda h: h.t(), inference=True),
    "a view of an input in inference mode": of(lambda x, _: (x.view(-1), x), inference=True),
    "a view of a normal one in inference mode": of(view_in_inference_mode),
    "other types and back in inference mode": of(
        lambda x, _: (x * 2, x.view(torch.int32).view(torch.float32)), inference=True
    ),
    "real parts in inference mode": of(
        lambda x, _: (z := torch.complex(x, x), torch.view_as_real(z)[..., 0]), inference=True
    ),
    "beside a history": beside_a_history,
}
RECORDED = {
    "a view of a gradient": (of_gradients(lambda g: (g, g.view(-1))), "a part of a gradient"),
    "a part of a gradient": (of_gradients(lambda g: (g[1:], g.sum())), "a part of a gradient"),
    "a part of data of an input": (of(lambda x, _: (x.exp(), x.data[0])), "x.data"),
    "data twice": (of(lambda x, _: (x.data, x.data)), "x.data"),
    "data and its part": (of(lambda x, _: (d := x.data, d[1:])), "x.data"),
}


def writes_to_the_base(h, v):
    h.mul_(torch.full((), 2.0, device=h.device).requires_grad_())
    return v.sum().item(), v.requires_grad


def writes_to_the_view(h, v):
    v.add_(1)
    return h.sum().item(), h._version, v._version


def differentiates_what_is_written(h, v):
    q = torch.ones((), device=h.device).requires_grad_()
    y = (q * h).sum()
    with torch.no_grad():
        v.add_(100)
    y.backward()
    return q.grad.item()


def total(t):
    return outcome(lambda: t.sum().item())


def run(make, device, compiled):
    call, found = compiled(make(device)), []
    for use in (writes_to_the_base, writes_to_the_view, differentiates_what_is_written):
        for i in range(5):
            h, v = call(torch.full((2, 4), 1.0 + i).to(device))
            found += [use.__name__, h.is_inference(), v.is_inference(), h._is_view(), v._is_view()]
            found += [outcome(lambda use=use, h=h, v=v: use(h, v)), *map(total, (h, v))]
    return found, call


def same(make):
    expected, _ = run(make, "cpu", lambda fn: fn)
    found, call = run(make, "ltc", torch_ltc.compile)
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert str(a) == str(b), f"{i}: {b}, on the CPU {a}"
    return call


@pytest.mark.parametrize("name", REPLAYED)
def test_what_shows_other_memory_is_to_replays_what_it_is(name):
    call = same(REPLAYED[name])
    assert call.counts[0] >= 5, call.explain()


@pytest.mark.parametrize("name", RECORDED)
def test_what_no_replay_can_show_is_recorded(name):
    make, why = RECORDED[name]
    call = same(make)
    assert call.counts[0] == 0 and why in call.refusal, call.explain()


def test_gradients_of_what_was_made_in_inference_mode():
    def run(device, compiled):
        with torch.inference_mode():
            layer = nn.Linear(4, 2).to(device)
        call, found = compiled(lambda x: layer(x)), []
        for _ in range(6):
            layer.bias.grad = None
            out = call(torch.ones(3, 4).to(device))
            found.append([outcome(lambda out=out: out.sum().backward()), layer.bias.grad.tolist()])
        return found, call

    expected, _ = run("cpu", lambda fn: fn)
    found, call = run("ltc", torch_ltc.compile)
    assert str(expected) == str(found)
    assert call.counts[0] == 0 and "made in inference mode" in call.refusal
