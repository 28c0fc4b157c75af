"""Whether training ends with the same bits in every run of a program: hashes of the parameters after some steps, each
run in a process of its own on two threads, recorded, compiled, and eagerly on the CPU, which does."""

import argparse
import collections
import hashlib
import os
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn


class _Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        return F.relu(x + self.norms[1](self.second(F.relu(self.norms[0](self.first(x))))))


class _Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inputs, self.output, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.forwards = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        parts = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.inputs(self.norms[0](x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.output(seen)
        return x + self.forwards(self.norms[1](x))


class _Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.recurrent, self.output = nn.Embedding(50, 32), nn.LSTM(32, 48, 2), nn.Linear(48, 10)

    def forward(self, x):
        return self.output(self.recurrent(self.words(x))[0]).flatten(0, 1)


class _UNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = ((1, 8, 1), (8, 16, 2), (24, 8, 1))
        self.enters, self.goes_down, self.leaves = (nn.Conv2d(a, b, 3, stride=s, padding=1) for a, b, s in sizes)
        self.goes_up, self.output = nn.ConvTranspose2d(16, 16, 2, stride=2), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = F.relu(self.enters(x))
        up = self.goes_up(F.relu(self.goes_down(x)))
        return self.output(F.relu(self.leaves(torch.cat((x, up), 1))))


class _Augmented(nn.Module):
    """Draws for each image whether it is mirrored, how bright it is, and noise."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        is_mirrored = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5
        x = torch.where(is_mirrored, x.flip(-1), x) * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1, device=x.device))
        return self.net(x + 0.1 * torch.randn_like(x))


def _lenet():
    convolutions = [nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)]
    net = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))
    return net, lambda: (torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)))


def _gpt():
    blocks = [_Attention(64, 4) for _ in range(2)]
    net = nn.Sequential(nn.Embedding(65, 64), *blocks, nn.Linear(64, 65), nn.Flatten(0, 1))
    return net, lambda: (torch.randint(0, 65, (16, 32)), torch.randint(0, 65, (16 * 32,)))


def _mlp():
    net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    return net, lambda: (torch.randn(128, 64), torch.randint(0, 10, (128,)))


def _resnet():
    blocks = [_Residual(16) for _ in range(2)]
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )
    return net, lambda: (torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))


def _lstm():
    return _Tagger(), lambda: (torch.randint(0, 50, (24, 16)), torch.randint(0, 10, (24 * 16,)))


def _unet():
    return _UNet(), lambda: (torch.randn(4, 1, 32, 32), torch.randint(0, 4, (4, 32, 32)))


def _augment():
    net, batch = _lenet()
    return _Augmented(net), batch


NETWORKS = {
    "lenet": _lenet,
    "gpt": _gpt,
    "mlp": _mlp,
    "resnet": _resnet,
    "lstm": _lstm,
    "unet": _unet,
    "augment": _augment,
}
WAYS = ("eager", "recorded", "compiled")


def trained(network, way, steps):
    """A hash of the parameters, and how many programs ran on one thread beside their caller."""
    import torch_ltc

    torch.set_num_threads(2)
    torch.manual_seed(0)
    net, batch = NETWORKS[network]()
    device = "cpu" if way == "eager" else "ltc"
    net.to(device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step(x, y):
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
        return loss

    if way == "compiled":
        step = torch_ltc.compile(step)
    for _ in range(steps):
        step(*(t.to(device) for t in batch()))
        if way == "recorded":
            torch_ltc.mark_step()
    bits = b"".join(p.detach().cpu().numpy().tobytes() for p in net.parameters())
    return hashlib.sha256(bits).hexdigest()[:16], torch_ltc.metrics.counter_value("OverlappedComputation") or 0


def runs(network, way, steps, processes):
    """The hashes of that many processes, and how often each came."""
    command = [sys.executable, __file__, "--child", network, way, "--steps", str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    hashes = collections.Counter()
    for _ in range(processes):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr)
        hashes[done.stdout.strip()] += 1
    return hashes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(*trained(*options.child, options.steps))
        return 0
    different = 0
    for network in options.networks:
        for way in options.ways.split(","):
            hashes = runs(network, way, options.steps, options.processes)
            print(f"{network}, {way}: {dict(hashes)}", flush=True)
            different += len(hashes) > 1
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
