"""A small convolutional network reads digits: drawn ones, or MNIST if `DATA` names a folder with its IDX files."""

import gzip
import os
import struct
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn

#: 5x3 pictures of the ten digits, row by row.
GLYPHS = (
    "111101101101111 010110010010111 111001111100111 111001111001111 101101111001001 "
    "111100111001111 111100111101111 111001010010010 111101111101111 111101111001111"
).split()


def drawn_digits(count, generator):
    """`count` pictures [count, 1, 28, 28] of digits at random places with noise, and their labels [count]."""
    glyphs = torch.tensor([[float(c) for c in g] for g in GLYPHS]).view(10, 1, 5, 3)
    glyphs = F.interpolate(glyphs, scale_factor=4)[:, 0]
    labels = torch.randint(0, 10, (count,), generator=generator)
    images = 0.2 * torch.rand(count, 1, 28, 28, generator=generator)
    for i, label in enumerate(labels.tolist()):
        y, x = (int(torch.randint(0, n, (), generator=generator)) for n in (9, 17))
        images[i, 0, y : y + 20, x : x + 12] += 0.8 * glyphs[label]
    return images, labels


def idx_digits(folder, count):
    """The first `count` training digits of MNIST in its IDX files, packed or not."""

    def read(name, header):
        path = Path(folder, name)
        data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(name + ".gz").read_bytes())
        return struct.unpack(f">{header}i", data[: 4 * header]), bytearray(data[4 * header :])

    (_, total, height, width), pixels = read("train-images-idx3-ubyte", 4)
    _, labels = read("train-labels-idx1-ubyte", 2)
    count = min(count, total)
    images = torch.frombuffer(pixels, dtype=torch.uint8)[: count * height * width].view(count, 1, height, width)
    return images.float() / 255, torch.frombuffer(labels, dtype=torch.uint8)[:count].long()


def build(device, prepare=as_is, compiled=as_is, batch=32):
    generator = torch.Generator().manual_seed(1)
    data = os.environ.get("DATA")
    images, labels = idx_digits(data, 2048) if data else drawn_digits(256, generator)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, 10),
    ).to(device)  # fmt: skip
    forward = prepare(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = [(x.to(device), y.to(device)) for x, y in zip(images.split(batch), labels.split(batch))]
    count = 0

    @compiled
    def learn(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    def step():
        nonlocal count
        count += 1
        return learn(*batches[(count - 1) % len(batches)])

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=60)
