"""A small residual network with batch norm, a strided shortcut and a cosine schedule, on generated pictures of
stripes."""

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


def stripes(count, size, generator):
    """Pictures [count, 3, size, size] of noisy stripes in four directions, and the directions [count]."""
    labels = torch.randint(0, 4, (count,), generator=generator)
    angles = labels * torch.pi / 4
    grid = torch.arange(size) - size / 2
    waves = torch.cos(angles)[:, None, None] * grid[:, None] + torch.sin(angles)[:, None, None] * grid
    images = torch.sin(waves)[:, None].repeat(1, 3, 1, 1)
    return images + 0.3 * torch.randn(count, 3, size, size, generator=generator), labels


def build(device, prepare=as_is, compiled=as_is, batch=16, size=16):
    x, y = stripes(batch * 4, size, torch.Generator().manual_seed(1))
    batches = [(a.to(device), b.to(device)) for a, b in zip(x.split(batch), y.split(batch))]
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Block(16, 16), Block(16, 32, stride=2), Block(32, 64, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4),
    ).to(device)  # fmt: skip
    forward = prepare(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
    count = 0

    @compiled
    def learn(a, b):
        opt.zero_grad()
        loss = F.cross_entropy(forward(a), b, label_smoothing=0.1)
        loss.backward()
        opt.step()
        return loss.detach()

    def step():
        nonlocal count
        count += 1
        loss = learn(*batches[(count - 1) % len(batches)])
        schedule.step()
        return loss

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=40)
