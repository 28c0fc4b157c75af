"""Peak memory of training steps, next to eager's: all that libtorch's allocator was asked for, work space of kernels
included."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
import torch_ltc
from torch_ltc._survey import Survey

EXAMPLES = Path(__file__).parent.parent / "examples"

PROGRAM = """
import importlib, json, sys
import torch
from torch.profiler import ProfilerActivity, profile, record_function
examples, model, device = sys.argv[1:]
sys.path.insert(0, examples)
sync = lambda: None
if device == "ltc":
    import torch_ltc
    sync = lambda: torch_ltc.mark_step(wait=True)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    torch.manual_seed(0)
    step = importlib.import_module(model).build(torch.device(device))
    for _ in range(5):
        step()
        sync()
    with record_function("measured"):
        step()
        sync()
measured = next(e for e in p.profiler.kineto_results.events() if e.name() == "measured")
start, end = measured.start_ns(), measured.start_ns() + measured.duration_ns()
peak, nodes = 0, list(p.profiler.kineto_results.experimental_event_tree())
while nodes:
    node = nodes.pop()
    nodes.extend(node.children)
    if node.tag.name == "Allocation" and start <= node.start_time_ns <= end:
        peak = max(peak, node.extra_fields.total_allocated)
print(json.dumps(peak))
"""


def peak(model, device):
    """Bytes, in a process of its own. The profiler sees the thread it was started on, and no pool."""
    env = {**os.environ, "LTC_ASYNC": "0", "LTC_POOL_BYTES": "0"}
    command = [sys.executable, "-c", PROGRAM, str(EXAMPLES), model, device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("model", ["mnist", "gpt", "resnet", "lstm", "unet"])
def test_a_step_takes_no_more_memory_than_an_eager_one(model):
    eager, lazy = peak(model, "cpu"), peak(model, "ltc")
    assert eager > 1 << 20, "the measurement found nothing"
    assert lazy <= eager, f"{model}: {lazy} bytes, eager {eager}"


class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(4, 4).to("ltc")
        self.optimiser = torch.optim.SGD(self.net.parameters(), 0.1)
        self.compiled = torch_ltc.compile(self.step)

    def step(self, x):
        self.optimiser.zero_grad()
        loss = self.net(x).sum()
        loss.backward()
        self.optimiser.step()
        return loss.detach()


@pytest.mark.parametrize("calls", [1, 6])
def test_what_compiles_its_own_method_is_let_go_with_its_model(calls):
    trainer = Trainer()
    for _ in range(calls):
        trainer.compiled(torch.ones(2, 4).to("ltc"))
    held = weakref.ref(trainer.net)
    del trainer
    torch_ltc.mark_step(wait=True)
    gc.collect()
    assert held() is None


def test_a_step_is_let_go_with_its_model_at_once():
    """What a capture looked at holds megabytes, and what it found the model: neither waits for the collector, which
    counts objects and knows no memory."""

    def train():
        net = torch.nn.Linear(4, 4).to("ltc")
        optimiser, x = torch.optim.Adam(net.parameters()), torch.ones(2, 4).to("ltc")

        def step():
            optimiser.zero_grad()
            net(x).square().sum().backward()
            optimiser.step()

        call = torch_ltc.compile(step)
        for _ in range(7):
            call()
        assert call.counts[0] >= 2, call.explain()
        return weakref.ref(call), weakref.ref(net)

    train()  # imports leave cycles behind
    torch_ltc.mark_step(wait=True)
    gc.collect()
    gc.disable()
    try:
        assert [ref() for ref in train()] == [None, None]
        assert not any(type(x) is Survey for x in gc.get_objects())
    finally:
        gc.enable()
