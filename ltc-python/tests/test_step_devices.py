"""Compiled steps where there are several ltc devices: the device of each argument and the current one count."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, torch_ltc
from torch import nn

def ones(on):
    return torch.ones(2, device=f"ltc:{int(on)}")

def argument():
    return lambda x: x + torch.ones(2, device=x.device), lambda i: [ones(i > 4)]

def attribute():
    holder = nn.Module()
    def on_each(i):
        if i in (0, 5):
            holder.kept = ones(i > 4)
        return [ones(i > 4)]
    return lambda x: x + holder.kept, on_each

def current():
    return lambda x: torch.ones(2, device="ltc"), lambda i: (torch.ltc.set_device(int(i > 4)), [ones(0)])[1]

def asks():
    return lambda x: x * torch.ltc.current_device(), lambda i: (torch.ltc.set_device(int(i > 4)), [ones(0)])[1]

def without_arguments():
    return lambda: torch.ones(2, device="ltc") * 2, lambda i: (torch.ltc.set_device(int(i > 4)), [])[1]

def sets():
    def step(x):
        torch.ltc.set_device(1)
        return x * 2
    return step, lambda i: (torch.ltc.set_device(0), [ones(0)])[1]

def result():
    return lambda x: ones(1), lambda i: [ones(0)]

def between():
    return lambda x: (x.to("ltc:1") * 3).to("ltc:0") + 1, lambda i: [ones(0)]

def two_arguments():
    return lambda x, y: x + y.to(x.device), lambda i: [ones(0), ones(1)]

def pipeline():
    first, second = nn.Linear(2, 2).to("ltc:0"), nn.Linear(2, 2).to("ltc:1")
    def step(x):
        second(first(x).to("ltc:1")).sum().backward()
        found = first.weight.grad.sum() + 0
        first.zero_grad(), second.zero_grad()
        return found.detach()
    return step, lambda i: [ones(0)]

def run(make, compiles):
    torch.manual_seed(0)
    torch.ltc.set_device(0)
    step, given = make()
    step = torch_ltc.compile(step) if compiles else step
    out = []
    for i in range(10):
        y = step(*given(i))
        out.append((str(y.device), torch.ltc.current_device(), y.tolist()))
    return out, step

name = __import__("sys").argv[1]
(expected, _), (found, step) = run(globals()[name], False), run(globals()[name], True)
assert expected == found, (name, expected, found, step.explain())
print(step.counts[0])
"""
#: Whether replays are to be seen.
STEPS = {
    "argument": True,
    "attribute": True,
    "current": True,
    "asks": True,
    "without_arguments": True,
    "sets": False,
    "result": False,
    "between": False,
    "two_arguments": False,
    "pipeline": False,
}


@pytest.mark.parametrize("name", STEPS)
def test_devices_are_told_apart(name):
    settings = {**os.environ, "LTC_DEVICES": "2"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, name]
    said = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=300)
    assert said.returncode == 0, said.stdout + said.stderr
    assert (int(said.stdout) > 0) == STEPS[name], said.stdout
