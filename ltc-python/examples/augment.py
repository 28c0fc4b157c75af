"""Data augmentation with shapes that depend on data: digits are shifted, relit and partly erased on the device; those
with too little ink left are dropped, classes are weighed by how often they came, and nothing is learnt from easy
ones."""

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from mnist import drawn_digits
from torch import nn


def augmented(x):
    """Pictures [n, 1, 28, 28], each shifted by up to two pixels, with other light and noise, and a square of it
    erased."""
    n = len(x)
    place = torch.arange(28, device=x.device)
    shift = torch.randint(-2, 3, (2, n, 1), device=x.device)
    rows, columns = ((place + s).clamp(0, 27) for s in shift)
    x = x[torch.arange(n, device=x.device)[:, None, None], 0, rows[:, :, None], columns[:, None, :]]
    light, contrast = torch.rand(2, n, 1, 1, device=x.device)
    x = (x - 0.5) * (0.8 + 0.4 * contrast) + 0.4 + 0.2 * light
    x = (x + 0.1 * torch.randn_like(x)).clamp(0, 1)
    corner = torch.randint(0, 20, (2, n, 1), device=x.device)
    down, right = ((place >= c) & (place < c + 12) for c in corner)
    return x.masked_fill(down[:, :, None] & right[:, None, :], 0).unsqueeze(1)


def build(device, prepare=as_is, compiled=as_is, batch=64):
    generator = torch.Generator().manual_seed(1)
    images, labels = drawn_digits(256, generator)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, 10),
    ).to(device)  # fmt: skip
    forward = prepare(model)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    batches = [(x.to(device), y.to(device)) for x, y in zip(images.split(batch), labels.split(batch))]
    seen = torch.zeros(10, device=device)
    count = 0

    @compiled
    def learn(x, y):
        x = augmented(x)
        keep = (x > 0.5).sum((1, 2, 3)) > 80
        x, y = x[keep], y[keep]
        present, number = torch.unique(y, return_counts=True)
        seen.index_add_(0, present, number.float())
        losses = F.cross_entropy(forward(x), y, reduction="none")
        hard = torch.nonzero(losses.detach() > 0.1 * losses.detach().max()).squeeze(1)
        weights = 1 / seen[y[hard]].clamp(min=1)
        opt.zero_grad()
        loss = (losses[hard] * weights).sum() / weights.sum()
        loss.backward()
        opt.step()
        return loss.detach()

    def step():
        nonlocal count
        count += 1
        return learn(*batches[count % len(batches)])

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=40)
