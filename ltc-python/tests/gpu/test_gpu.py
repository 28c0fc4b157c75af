"""What only a GPU can show: `ltc` on it against eager `cuda`, which computes in a process of its own."""

import os
import subprocess
import sys

import pytest
import torch
import torch_ltc
from networks import CALLS, NETWORKS, called, drawn, trained

GPU = "ltc:1"


@pytest.fixture(scope="session")
def eager(tmp_path_factory):
    """What eager CUDA computes, by a process that has no other accelerator."""
    path = tmp_path_factory.mktemp("eager") / "values.pt"
    program = os.path.join(os.path.dirname(__file__), "networks.py")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LTC_")}
    subprocess.run([sys.executable, program, str(path)], check=True, env=environment)
    return torch.load(path)


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_those_of_eager_cuda(eager, call):
    # As often as makes a graph of it; there are layouts to be asked for in the first.
    for _ in range(8):
        got, want = called(call, GPU), eager["calls"][call]
        torch_ltc.sync_multi(got)
    assert [(g.dtype, g.shape, g.stride()) for g in got] == [(w.dtype, w.shape, w.stride()) for w in want]
    for g, w in zip(got, want, strict=True):
        rtol, atol = (1e-2, 1e-2) if w.dtype == torch.bfloat16 else (2e-5, 1e-5)
        torch.testing.assert_close(g.cpu(), w, rtol=rtol, atol=atol, check_stride=False)


def graphs():
    """How often a program was launched as a graph since the last call."""
    torch.ltc.synchronize(1)
    before, graphs.seen = getattr(graphs, "seen", 0), torch_ltc.metrics.executions()["graph_runs"]
    return graphs.seen - before


@pytest.mark.parametrize("compiled", [False, True], ids=["recorded", "compiled"])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_train_as_eager_cuda_does(eager, network, compiled):
    losses, counts = trained(network, GPU, compiled)
    torch.testing.assert_close(losses, eager["losses"][network], rtol=1e-3, atol=1e-4)
    assert not compiled or counts[0] >= 10
    assert graphs() > 5


def test_draws_are_eager_cudas(eager):
    for got, want in zip(drawn(GPU), eager["draws"], strict=True):
        assert torch.equal(got, want)


def test_memory_stays_flat():
    trained("perceptron", GPU, True)
    before = torch.ltc.memory_allocated(1)
    for _ in range(20):
        trained("perceptron", GPU, True)
    assert torch.ltc.memory_allocated(1) <= before + (1 << 20)
