"""Networks that are trained on a GPU and compared: over the stand-in (`dry_ltc`) and on a real one (`gpu`)."""

import torch
from torch import nn


def perceptron(width=1):
    layers = nn.Linear(64, 16 * width), nn.LayerNorm(16 * width), nn.GELU(), nn.Linear(16 * width, 11)
    return nn.Sequential(nn.Flatten(), *layers)


def convolutional(width=1):
    layers = nn.Conv2d(1, 4 * width, 3), nn.BatchNorm2d(4 * width), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(36 * width, 11))


class Attention(nn.Module):
    def __init__(self, width=1):
        super().__init__()
        self.embed, self.norm = nn.Embedding(11, 8 * width), nn.LayerNorm(8 * width)
        self.layer = nn.TransformerEncoderLayer(8 * width, 2, 16 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8 * width, 11)

    def forward(self, x):
        return self.head(self.layer(self.norm(self.embed(x)))).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self, width=1):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(11, 8 * width), nn.LSTM(8 * width, 8 * width, batch_first=True)
        self.head = nn.Linear(8 * width, 11)

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0]).flatten(0, 1)


def words(width=1):
    at = torch.arange(20 * width).reshape(2 * width, 10)
    return at % 11, (at.flatten() + 1) % 11


def images(width=1):
    return torch.arange(5 * width * 64.0).reshape(-1, 1, 8, 8).sin(), torch.arange(5 * width) * 3 % 11


NETWORKS = {
    "perceptron": (perceptron, images, torch.optim.AdamW),
    "convolutional": (convolutional, images, torch.optim.SGD),
    "attention": (Attention, words, torch.optim.SGD),
    "recurrent": (Recurrent, words, torch.optim.RMSprop),
}


def train(network, device, compiled=False, steps=8, width=1):
    """The losses and parameters on the CPU, and the step, which is compiled or not."""
    make, data, optimizer = NETWORKS[network]
    torch.manual_seed(0)
    model = make(width).to(device)
    x, y = (t.to(device) for t in data(width))
    opt = optimizer(model.parameters(), lr=0.01)

    def step(x, y):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    call, losses = step, []
    if device.startswith("ltc"):  # else `ltc` is not there: it changes what plain `cuda` tensors can do
        import torch_ltc

        call = torch_ltc.compile(step) if compiled else step
    for _ in range(steps):
        losses.append(call(x, y))
        if device.startswith("ltc"):
            torch_ltc.mark_step()
    return torch.stack([loss.cpu() for loss in losses]), [p.detach().cpu() for p in model.parameters()], call
