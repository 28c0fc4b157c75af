"""How far from the truth training ends: convolutional networks with batch norm, trained for a few steps of SGD eagerly
in single precision, recorded with exact kernels and with fused ones; each beside the same training in double precision,
from the same parameters and batches.

Batch norm over few pictures enlarges every rounding, and where a value lies so near to zero that ReLU sees another
sign, a gradient jumps; so several seeds run, the geometric mean of their distances counts, and `--smooth` takes SiLU
for every ReLU."""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

NETWORKS = {
    "resnet18": {},
    "efficientnet_b0": {"dropout": 0.0, "stochastic_depth_prob": 0.0},  # draws differ between devices: none are made
    "densenet121": {},
    "shufflenet_v2_x1_0": {},
}
WAYS = ("eager", "exact", "full")


def trained(network, seed, batch, size, steps, dtype, device):
    """The losses of the steps, in double precision, and how the first step and all of them moved the parameters, each
    as one vector."""
    import torchvision

    torch.manual_seed(seed)
    model = getattr(torchvision.models, network)(**NETWORKS[network])
    images = torch.randn(steps, batch, 3, size, size).to(device, dtype)
    labels = torch.randint(0, 1000, (steps, batch)).to(device)
    model.to(device, dtype).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses, seen = [], [parameters(model)]
    for step, (image, label) in enumerate(zip(images, labels)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step in (0, steps - 1):
            seen.append(parameters(model))
    start, first, last = seen
    return torch.stack(losses).cpu().double(), first - start, last - start


def parameters(model):
    """All of them as one vector in double precision."""
    return torch.cat([p.detach().cpu().double().flatten() for p in model.parameters()])


def child(options):
    """Trains one network from every seed, in the way that the environment says, and saves what came of it."""
    if options.smooth:
        F.relu = F.silu
    if options.way == "eager":
        device = "cpu"
    else:
        import torch_ltc  # noqa: F401, makes the device

        device = "ltc"
    dtype = torch.float64 if options.double else torch.float32
    settings = options.batch, options.size, options.steps, dtype, device
    torch.save([trained(options.network, seed, *settings) for seed in range(options.seeds)], options.save)


def measured(options, network, way, folder, double=False):
    """What a process of its own trained in this way, seed by seed."""
    path = Path(folder) / f"{way}{double}.pt"
    names = ("batch", "size", "steps", "seeds")
    numbers = [f"--{name}={getattr(options, name)}" for name in names]
    command = [sys.executable, "-W", "ignore", __file__, "--way", way, "--network", network, "--save", path, *numbers]
    fusion = {} if way == "eager" else {"LTC_FUSION": "exact" if way == "exact" else "1"}
    subprocess.run(command + ["--double"] * double + ["--smooth"] * options.smooth, check=True, env=os.environ | fusion)
    return torch.load(path)


def distances(found, truth):
    """Per seed: how far the losses are from the true ones at most, and each way of the parameters from the true one, in
    lengths of that."""
    for (losses, *ways), (true_losses, *true_ways) in zip(found, truth):
        off = (losses - true_losses).abs().max().item()
        yield off, *(((way - true).norm() / true.norm()).item() for way, true in zip(ways, true_ways))


def mean(values):
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(max(value, 1e-300)) for value in values))


def of(values, base):
    """How many times the base's values these are in the geometric mean, and the factor by which that may be off: e to
    the standard error of the logarithms."""
    logarithms = [math.log(value / by) for value, by in zip(values, base)]
    error = statistics.stdev(logarithms) / math.sqrt(len(logarithms)) if len(logarithms) > 1 else math.inf
    return f"{math.exp(statistics.fmean(logarithms)):.2f} (within {math.exp(error):.2f}x)"


def main():
    """Prints a row per network and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=32, help="of a picture's side, in pixels")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--smooth", action="store_true", help="SiLU in the place of every ReLU")
    parser.add_argument("--network", choices=NETWORKS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--double", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--save", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        return child(options)
    titles = ["network", "way", "losses", "first step", "of eager's", "last step", "of eager's"]
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    for network in [options.network] if options.network else NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            truth = measured(options, network, "eager", folder, double=True)
            eager = None
            for way in WAYS:
                losses, *steps = zip(*distances(measured(options, network, way, folder), truth))
                eager = eager or steps
                columns = (f"{mean(step):.1e} | {of(step, base)}" for step, base in zip(steps, eager))
                print(f"| {network} | {way} | {mean(losses):.1e} | {' | '.join(columns)} |", flush=True)
    return None


if __name__ == "__main__":
    main()
