"""Steps of DDP on two processes of one thread each: on the CPU, recorded on ltc, and compiled, in turns.

`torchrun --nproc-per-node 2 ltc-python/benches/ddp.py` prints milliseconds a step, the least and the median, each step
waited for.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_ltc
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import gpt


class Transformer(nn.Module):
    def __init__(self, width=128, heads=4, layers=4, words=256, length=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.layers, self.out = (
            nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            nn.Linear(width, words),
        )

    def forward(self, x):
        return self.out(self.layers(self.words(x) + self.places)).flatten(0, 1)


def perceptron():
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


def parallel(model):
    """Its only buffer is a mask, so nothing has to be broadcast in each step."""
    return DistributedDataParallel(model, broadcast_buffers=False)


def prepared(kind, name, device):
    """A step that is waited for and gives its milliseconds."""
    torch.manual_seed(0)
    compiled = torch_ltc.compile if kind == "compiled" else lambda step: step
    step = gpt.build(device, parallel, compiled) if name == "gpt" else trained(name, device, compiled)

    def timed():
        dist.barrier()
        start = time.perf_counter()
        step()
        torch_ltc.mark_step(wait=True)
        return 1e3 * (time.perf_counter() - start)

    return timed


def trained(name, device, compiled):
    model = DistributedDataParallel((perceptron() if name == "mlp" else Transformer()).to(device))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    if name == "mlp":
        x, y = torch.randn(64, 256).to(device), torch.randint(10, (64,)).to(device)
    else:
        x, y = torch.randint(256, (8, 64)).to(device), torch.randint(256, (512,)).to(device)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda: step(x, y)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=40)
    rounds = arguments.parse_args().rounds
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc")
    for name in ("mlp", "gpt", "transformer"):
        ways = {
            kind: prepared(kind, name, "cpu" if kind == "cpu" else "ltc") for kind in ("cpu", "recorded", "compiled")
        }
        for timed in ways.values():
            for _ in range(10):
                timed()
        times = {kind: [] for kind in ways}
        for _ in range(rounds):
            for kind, timed in ways.items():
                times[kind].append(timed())
        if dist.get_rank() == 0:
            for kind, t in times.items():
                print(f"{name:12} {kind:9} {min(t):7.2f} {statistics.median(t):7.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
