"""Steps on a GPU: eager `cuda`, and `torch.compile` where Triton is, in a process of their own beside `ltc`, recorded
and compiled; and operators that only move memory beside a copy. `make bench-cuda` prints the tables."""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    """A block of GPT."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, n, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, width))
        return x + self.feed(self.second(x))


class Gpt(nn.Module):
    """Blocks between an embedding and a head."""

    def __init__(self, width, heads, layers, words=256, most=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.body = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.body(x)))


class Lstm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm, self.head = nn.LSTM(width, width, batch_first=True), nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def _layers(*widths, between=nn.ReLU):
    made = [m for a, b in itertools.pairwise(widths) for m in (nn.Linear(a, b), between())]
    return nn.Sequential(*made[:-1])


def _square(net, x):
    return net(x).square().mean()


def _words(net, tokens):
    return nn.functional.cross_entropy(net(tokens).flatten(0, 1).float(), tokens.roll(-1, 1).flatten())


def _burgers(net, x):
    """The residual of Burgers' equation: gradients of gradients."""
    x = x.detach().requires_grad_()
    u = net(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (ddu,) = torch.autograd.grad(du[:, 0].sum(), x, create_graph=True)
    return (du[:, 1:] + u * du[:, :1] - 0.01 * ddu[:, :1]).square().mean()


def _tokens(*shape):
    return torch.randint(256, shape)


#: What makes the network, the batch, and the loss; and the dtype.
NETWORKS = {
    "a multilayer perceptron": (lambda: _layers(64, 128, 128, 1), lambda: torch.randn(128, 64), _square, None),
    "a PINN": (lambda: _layers(2, 64, 64, 64, 1, between=nn.Tanh), lambda: torch.rand(1024, 2), _burgers, None),
    "an LSTM": (lambda: Lstm(64), lambda: torch.randn(32, 24, 64), _square, None),
    "a small GPT": (lambda: Gpt(128, 4, 4), lambda: _tokens(16, 64), _words, None),
    "a large block of GPT, bf16": (
        lambda: Block(2048, 16),
        lambda: torch.randn(8, 1024, 2048),
        _square,
        torch.bfloat16,
    ),
    "a large GPT, bf16": (lambda: Gpt(1024, 16, 8), lambda: _tokens(8, 1024), _words, torch.bfloat16),
}


def _wait(device):
    torch.cuda.synchronize() if device == "cuda" else torch.ltc.synchronize(torch.device(device).index)


def _timed(call, device, steps):
    """The median of five turns, in milliseconds a call, and the same without waiting for the device."""
    times, enqueued = [], []
    for _ in range(5):
        _wait(device)
        begin = time.perf_counter()
        for _ in range(steps):
            call()
        enqueued.append((time.perf_counter() - begin) / steps * 1e3)
        _wait(device)
        times.append((time.perf_counter() - begin) / steps * 1e3)
    return statistics.median(times), statistics.median(enqueued)


def _step(network, device, way):
    """A training step, and what ends it: recorded steps are marked."""
    make, batch, lossy, dtype = NETWORKS[network]
    torch.manual_seed(0)
    net, x = make().to(device, dtype), batch().to(device)
    x = x.to(dtype) if dtype and x.is_floating_point() else x
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def forward(x):
        return lossy(net, x)

    forward = torch.compile(forward) if way == "torch.compile" else forward

    def step(x):
        opt.zero_grad()
        loss = forward(x)
        loss.backward()
        opt.step()
        return loss.detach()

    if device == "cuda":
        return lambda: step(x)
    import torch_ltc

    call = torch_ltc.compile(step) if way == "compiled" else step

    def marked():
        call(x)
        torch_ltc.mark_step()

    return marked


def _chain(x):
    for _ in range(5):
        x = (x * 1.01 + 0.1).clamp(-3, 3).abs()
    return x


def _gates(x):
    for _ in range(5):
        x = nn.functional.silu(x * 1.01 + 0.1)
    return x


#: Operators over rows of 4096 values: what they compute, and how many times the memory is gone over.
MOVES = {
    "twenty pointwise operators": (_chain, 2),
    "fifteen, five of them SiLU": (_gates, 2),
    "softmax of a multiple": (lambda x: torch.softmax(x * 0.5, 1), 2),
    "layer norm of a sum": (lambda x: nn.functional.layer_norm(x + 1, (x.shape[1],)), 2),
    "softmax": (lambda x: torch.softmax(x, 1), 2),
    "layer norm": (lambda x: nn.functional.layer_norm(x, (x.shape[1],)), 2),
    "RMS norm": (lambda x: nn.functional.rms_norm(x, (x.shape[1],)), 2),
    "sum of rows": (lambda x: x.sum(1), 1),
    "sum of columns": (lambda x: x.sum(0), 1),
    "sum of all": (lambda x: x.sum(), 1),
}


def _move(call, x, device):
    if device == "cuda":
        return lambda: call(x)
    import torch_ltc

    return lambda: torch_ltc.sync_multi([call(x)])


def _adam(elements, device, **how):
    """AdamW over one large parameter and some small ones: seven values of each element are read or written."""
    sizes = [elements // 2, elements // 4, elements // 4, 1024, 1024]
    params = [nn.Parameter(torch.randn(n, device=device)) for n in sizes]
    for p in params:
        p.grad = torch.randn_like(p)
    opt = torch.optim.AdamW(params, **how)

    def step():
        opt.step()
        if device != "cuda":
            import torch_ltc

            torch_ltc.mark_step()

    return step


def measure(device, options):
    """By name: milliseconds, and milliseconds of the host."""
    found, steps = {}, options.steps
    ways = ["eager", *(["torch.compile"] if options.inductor else [])] if device == "cuda" else ["recorded", "compiled"]

    def take(name, make):
        try:
            call = make()
            # Layouts are asked for, programs and kernels compiled.
            for _ in range(30 if steps > 1 else 3):
                call()
            found[name] = _timed(call, device, steps)
        except RuntimeError as e:  # one that fails is told of in the table
            found[name] = f"{type(e).__name__}: {e}"[:300]
        print(device, name, found[name], file=sys.stderr, flush=True)

    for network in NETWORKS:
        for way in ways:
            if not options.only or options.only in network:
                take(f"{network}|{way}", lambda network=network, way=way: _step(network, device, way))
    if options.only:
        return found
    x = torch.randn(options.elements // 4096 or 1, min(4096, options.elements)).to(device)
    for name, (call, _) in MOVES.items():
        take(name, lambda call=call: _move(call, x, device))
    if device == "cuda":
        y = torch.empty_like(x)
        take("a copy", lambda: lambda: y.copy_(x))
        take("AdamW, fused", lambda: _adam(options.elements, device, fused=True))
    take("AdamW", lambda: _adam(options.elements, device))
    return found


def _ratio(a, b):
    return f"{a[0] / b[0]:.2f}" if isinstance(a, list | tuple) and isinstance(b, list | tuple) else "—"


def _ms(took):
    return f"{took[0]:.3f}" if isinstance(took, list | tuple) else str(took)


def show(eager, ltc):
    """Prints both tables."""
    print("| a training step, ms | eager `cuda` | `torch.compile` | `ltc` recorded | compiled | eager / compiled |")
    print("|---|---|---|---|---|---|")
    for name in NETWORKS:
        row = [eager.get(f"{name}|{way}", "") for way in ("eager", "torch.compile")]
        row += [ltc.get(f"{name}|{way}", "") for way in ("recorded", "compiled")]
        print(f"| {name} | {' | '.join(map(_ms, row))} | {_ratio(row[0], row[3])} |")
    if "a copy" not in eager:
        return
    print("\n| | eager `cuda`, ms | `ltc`, ms | eager / `ltc` | of the speed of a copy |\n|---|---|---|---|---|")
    pass_ms = eager["a copy"][0] / 2
    for name, passes in [(name, passes) for name, (_, passes) in MOVES.items()] + [("AdamW", 7)]:
        took = ltc[name]
        reached = f"{passes * pass_ms / took[0]:.0%}" if isinstance(took, list | tuple) else "—"
        print(f"| {name} | {_ms(eager[name])} | {_ms(took)} | {_ratio(eager[name], took)} | {reached} |")
    copy, fused = _ms(eager["a copy"]), _ms(eager["AdamW, fused"])
    print(f"\nA copy of as many bytes takes {copy} ms, AdamW by `fused=True` {fused}.")


def main():
    """Runs both processes and prints what they found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=50, help="calls that are timed together")
    parser.add_argument("elements", nargs="?", type=int, default=100 << 20, help="of tensors that only move memory")
    parser.add_argument("--only", help="networks whose name has this")
    parser.add_argument("--inductor", action="store_true", help="torch.compile too, which takes minutes")
    options = parser.parse_args()
    if os.environ.get("BENCH_EAGER"):
        print(json.dumps(measure("cuda", options)))
        return
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LTC_")} | {"BENCH_EAGER": "1"}
    done = subprocess.run([sys.executable, *sys.argv], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    eager = json.loads(done.stdout.splitlines()[-1])
    # Kernels are compiled before their first run, so that none of the measured ones goes without.
    os.environ.setdefault("LTC_JIT", "now")
    import torch_ltc  # noqa: F401

    show(eager, measure("ltc:1", options))


if __name__ == "__main__":
    main()
