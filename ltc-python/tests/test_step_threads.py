"""Compiled steps beside other threads, and beside code that runs when objects are let go: no call may wait for one that
waits for it, and none may see what another thread is in the middle of."""

import subprocess
import sys
import threading

import pytest
import torch
import torch_ltc


def test_a_tuple_that_another_thread_is_making_can_grow():
    """A tuple may only grow while nobody else holds it, and a capture holds all objects that are older than itself."""
    inside, go_on = threading.Event(), threading.Event()

    def step(x):
        inside.set()
        go_on.wait(60)
        return x + 1

    compiled, x = torch_ltc.compile(step), torch.ones(3, device="ltc")
    capturing = threading.Thread(target=compiled, args=(x,))

    def members():
        capturing.start()
        inside.wait(60)
        yield from range(100)

    try:
        made = tuple(members())
    finally:
        go_on.set()
        capturing.join()
    assert made == tuple(range(100))


#: The finaliser of what is let go has another thread, or this one, do the same as who lets go, or wait for a value.
PROGRAM = """
import gc, sys, threading
import torch, torch_ltc
from torch_ltc import _ltc
from torch_ltc._places import Place

class Value:
    def __del__(self):
        if sys.argv[1] == "thread":
            other = threading.Thread(target=again)
            other.start()
            other.join()
        else:
            again()
        print("done")
"""
A_KIND_OF_CALL = """
class World: pass

world = World()
world.kept = torch.ones(3, device="ltc")
world.kept.value = Value()
step = torch_ltc.compile(lambda x: (x * 2, world.kept))
x = torch.ones(3, device="ltc")
for _ in range(6): step(x)
assert step.counts[0] > 1, step.explain()
world.kept = torch.ones(3, device="ltc")
# From here on only the capture holds the first tensor, and its kind of call is the oldest.
step._ready_reads.clear()
step._classes.clear()
step._reads = None
for n in range(4, 150): step(torch.ones(n, device="ltc"))
gc.collect()
"""
LET_GO = {
    "a value that was read": """
names = {"value": Value()}
watch = _ltc.Watch([Place("entry", names, "value", None)], [], False)
again = watch.check
names["value"] = 1
watch.refresh()
""",
    "a kind of call": "again = lambda: step(x)" + A_KIND_OF_CALL,
    # A wait that is long enough for Python's lock to be let go, and taken again.
    "a kind of call, for one that waits": """
many = torch.ones(2500, 2500, device="ltc")
again = lambda: (many @ many).sum().item()
"""
    + A_KIND_OF_CALL,
}


@pytest.mark.parametrize("who", ["itself", "thread"])
@pytest.mark.parametrize("what", LET_GO)
def test_finalisers_may_call_what_lets_go(what, who):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + LET_GO[what], who], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("done\n", ""), done
