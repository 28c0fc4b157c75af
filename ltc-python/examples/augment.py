"""Shapes that depend on data: outliers are masked away, classes present are counted, hard samples are picked, inside the step."""

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn


def build(device, prepare=as_is, compiled=as_is, batch=64):
    generator = torch.Generator().manual_seed(1)
    centres = 2 * torch.randn(5, 8, generator=generator)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)).to(device)
    forward = prepare(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    counts = torch.zeros(5, device=device)

    @compiled
    def learn(x, y):
        keep = x.norm(dim=1) < 7.0
        x, y = x[keep], y[keep]
        present, number = torch.unique(y, return_counts=True)
        counts.index_add_(0, present, number.float())
        losses = F.cross_entropy(forward(x), y, reduction="none")
        hard = torch.nonzero(losses.detach() > losses.detach().median()).squeeze(1)
        weights = 1 / counts[y[hard]].clamp(min=1)
        opt.zero_grad()
        loss = (losses[hard] * weights).sum() / weights.sum()
        loss.backward()
        opt.step()
        return loss.detach()

    def step():
        labels = torch.randint(0, 5, (batch,), generator=generator)
        x = centres[labels] + torch.randn(batch, 8, generator=generator)
        return learn(x.to(device), labels.to(device))

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=40)
