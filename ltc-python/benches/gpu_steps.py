"""Steps on a GPU: eager `cuda` in a process of its own beside `ltc`, recorded and compiled; and chains of pointwise
operators beside a copy of as many bytes. `make bench-cuda` prints the table."""

import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn


class _Transformer(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x))


def _perceptron():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))


NETWORKS = {
    "a multilayer perceptron": (_perceptron, (128, 64)),
    "a small transformer": (lambda: _Transformer(128, 4, 4), (16, 64, 128)),
    "a large transformer": (lambda: _Transformer(1024, 16, 4), (8, 512, 1024)),
}


def _wait(device):
    torch.cuda.synchronize() if device == "cuda" else torch.ltc.synchronize(torch.device(device).index)


def _timed(call, device, steps):
    times = []
    for _ in range(5):
        _wait(device)
        begin = time.perf_counter()
        for _ in range(steps):
            call()
        _wait(device)
        times.append((time.perf_counter() - begin) / steps * 1e3)
    return statistics.median(times)


def _step(network, device, compiled):
    make, shape = NETWORKS[network]
    torch.manual_seed(0)
    net, x = make().to(device), torch.randn(shape).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    if device == "cuda":
        return lambda: step(x)
    import torch_ltc

    call = torch_ltc.compile(step) if compiled else step

    def marked():
        call(x)
        torch_ltc.mark_step()

    return marked


def _chain(device, elements):
    x = torch.randn(elements).to(device)

    def call():
        y = x
        for _ in range(5):
            y = nn.functional.silu(y * 1.01 + 0.1)
        if device != "cuda":
            import torch_ltc

            torch_ltc.sync_multi([y])

    return call


def measure(device, steps, elements):
    """Milliseconds by name."""
    found = {}
    for network in NETWORKS:
        for compiled in [False] if device == "cuda" else [False, True]:
            call = _step(network, device, compiled)
            # Layouts are asked for, programs and kernels compiled.
            for _ in range(30 if steps > 1 else 3):
                call()
            _wait(device)
            found[f"{network}{', compiled' if compiled else ''}"] = _timed(call, device, steps)
    call = _chain(device, elements)
    for _ in range(20 if steps > 1 else 2):
        call()
    found["ten pointwise operators"] = _timed(call, device, steps)
    if device == "cuda":
        x, y = torch.randn(elements, device="cuda"), torch.empty(elements, device="cuda")
        found["a copy"] = _timed(lambda: y.copy_(x), device, steps)
    return found


def main():
    """Runs both processes and prints what they found."""
    steps, elements = (int(n) for n in (sys.argv[1:] + ["50", str(1 << 26)])[:2])
    if os.environ.get("BENCH_EAGER"):
        print(json.dumps(measure("cuda", steps, elements)))
        return
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LTC_")} | {"BENCH_EAGER": "1"}
    command = [sys.executable, __file__, str(steps), str(elements)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    eager = json.loads(done.stdout.splitlines()[-1])
    import torch_ltc  # noqa: F401

    ltc = measure("ltc:1", steps, elements)
    print("| | eager `cuda`, ms | `ltc`, ms | eager / `ltc` |\n|---|---|---|---|")
    for name, took in ltc.items():
        beside = eager[name.removesuffix(", compiled")]
        print(f"| {name} | {beside:.3f} | {took:.3f} | {beside / took:.2f} |")
    print(f"\nA copy of as many bytes takes {eager['a copy']:.3f} ms.")


if __name__ == "__main__":
    main()
