"""Backward stays on the thread that asks for it, also on threads that recorded nothing before: autograd's own threads
have no line of Python, and those that still drop Python's objects at the interpreter's end abort the process."""

import subprocess
import sys
import threading

import pytest
import torch
import torch_ltc  # noqa: F401


def on_a_new_thread(body):
    failed = []

    def run():
        try:
            body()
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def leaf_and_layers():
    x = torch.ones(2, 2, device="ltc", requires_grad=True)
    return x, [(x @ x).relu(), x.exp().T[1:], x * 2]


G = torch.ones(2, 2)
FIRST_CALLS = {
    "one root": lambda x, y, g: y[0].backward(g),
    "several roots": lambda x, y, g: torch.autograd.backward(y[::2], [g, g]),
    "a view": lambda x, y, g: y[1].backward(g[1:]),
    "gradients asked for": lambda x, y, g: torch.autograd.grad(y[0], [x], [g]),
    "a graph that begins on the CPU": lambda x, y, g: y[0].cpu().backward(G),
    "a root on the CPU": lambda x, y, g: (y[0].to("cpu") * 2).backward(G),
    "no gradient given": lambda x, y, g: y[0].sum().backward(),
    "roots on both devices": lambda x, y, g: torch.autograd.backward([y[0].cpu(), y[2]], [G, g]),
    "an edge": lambda x, y, g: torch.autograd.backward([torch.autograd.graph.get_gradient_edge(y[0])], [g]),
}


@pytest.mark.parametrize("first", FIRST_CALLS)
@pytest.mark.parametrize("then", ["one root", "a graph that begins on the CPU"])
def test_every_node_runs_on_the_thread_that_asked(first, then):
    g, ran = G.to("ltc"), []
    graphs = [leaf_and_layers() for _ in range(2)]
    for x, layers in graphs:
        for value in (x, *layers):
            value.register_hook(lambda _: ran.append(threading.get_ident()))
    here = []

    def body():
        here.append(threading.get_ident())
        for call, (x, layers) in zip((first, then), graphs, strict=True):
            FIRST_CALLS[call](x, layers, g)

    on_a_new_thread(body)
    assert len(ran) >= 4 and set(ran) == set(here), (ran, here)


def test_the_interpreter_ends_while_gradients_are_on_their_way():
    program = """
import threading, torch, torch_ltc
x = torch.ones(2, 2, device="ltc", requires_grad=True)
y, g = (x @ x).relu(), torch.ones(2, 2).to("ltc")
thread = threading.Thread(target=lambda: y.backward(g)); thread.start(); thread.join()
"""
    ends = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for end in ends:
        _, said = end.communicate(timeout=300)
        assert end.returncode == 0, said
