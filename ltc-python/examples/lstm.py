"""A two-layer LSTM learns to continue sums of sine waves."""

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn


class Forecaster(nn.Module):
    """The next value [batch, time, 1] at every place of a series [batch, time, 1]."""

    def __init__(self, width=32):
        super().__init__()
        self.lstm = nn.LSTM(1, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def waves(count, length, generator):
    """Series [count, length, 1], each the sum of two sines."""
    t = torch.arange(length, dtype=torch.float32)
    frequency, phase = (torch.rand(count, 2, 1, generator=generator) for _ in range(2))
    return torch.sin((0.1 + 0.4 * frequency) * t + 6.28 * phase).sum(1)[..., None]


def build(device, prepare=as_is, compiled=as_is, batch=16, time=20):
    series = waves(batch, time + 1, torch.Generator().manual_seed(1)).to(device)
    model = Forecaster().to(device)
    forward = prepare(model)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    @compiled
    def step():
        opt.zero_grad()
        loss = F.mse_loss(forward(series[:, :-1]), series[:, 1:])
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        opt.step()
        return loss.detach()

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=60)
