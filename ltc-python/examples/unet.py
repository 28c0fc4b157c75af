"""A diffusion model: a U-Net with timestep embedding, group norm, SiLU and attention learns to remove noise from
discs."""

import math

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn


def timestep_embedding(t, width):
    """Sines and cosines [batch, width] of the timesteps [batch]."""
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(width // 2, device=t.device) / (width // 2))
    angles = t[:, None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)


class Block(nn.Module):
    def __init__(self, inputs, outputs, embedding):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.embed = nn.Linear(embedding, outputs)
        self.short = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, e):
        y = self.conv1(F.silu(self.norm1(x))) + self.embed(F.silu(e))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.short(x)


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(4, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w).transpose(-2, -1).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-2, -1).reshape(b, c, h, w))


class UNet(nn.Module):
    """The noise [batch, 1, h, w] in pictures [batch, 1, h, w] at timesteps [batch]."""

    def __init__(self, width=16):
        super().__init__()
        self.width, e = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, e), nn.SiLU(), nn.Linear(e, e))
        self.enter, self.leave = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 1, 3, padding=1)
        self.down1, self.down2 = Block(width, width, e), Block(width, 2 * width, e)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle, self.attention = Block(2 * width, 2 * width, e), Attention(2 * width)
        self.up = Block(3 * width, width, e)

    def forward(self, x, t):
        e = self.time(timestep_embedding(t, self.width))
        a = self.down1(self.enter(x), e)
        b = self.down2(self.shrink(a), e)
        b = self.attention(self.middle(b, e))
        y = self.up(torch.cat([F.interpolate(b, scale_factor=2), a], 1), e)
        return self.leave(F.silu(y))


def discs(count, size, generator):
    """Pictures [count, 1, size, size] of one disc each, in -1..1."""
    x, y, r = (torch.rand(count, 1, 1, generator=generator) for _ in range(3))
    grid = torch.linspace(0, 1, size)
    inside = (grid[:, None] - y) ** 2 + (grid - x) ** 2 < (0.1 + 0.2 * r) ** 2
    return inside.float()[:, None] * 2 - 1


def build(device, prepare=as_is, compiled=as_is, batch=8, size=16, timesteps=100):
    images = discs(batch, size, torch.Generator().manual_seed(1)).to(device)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.05, timesteps), 0).to(device)
    model = UNet().to(device)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    forward = prepare(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @compiled
    def step():
        t = torch.randint(0, timesteps, (batch,), device=device)
        noise = torch.randn_like(images)
        share = kept[t][:, None, None, None]
        noisy = share.sqrt() * images + (1 - share).sqrt() * noise
        opt.zero_grad()
        loss = F.mse_loss(forward(noisy, t), noise)
        loss.backward()
        opt.step()
        average.update_parameters(model)
        return loss.detach()

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=40)
