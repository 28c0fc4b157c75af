"""A small character model: causal attention, layer norm, dropout, tied embeddings, AdamW with clipped gradients."""

import torch
import torch.nn.functional as F
from harness import as_is, run, train
from torch import nn

TEXT = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, this "
    "truth is so well fixed in the minds of the surrounding families, that he is considered the rightful property of "
    "some one or other of their daughters. "
) * 4


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        weights = self.drop(scores.masked_fill(mask, float("-inf")).softmax(-1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).reshape(b, t, c)))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Logits [batch, time, vocabulary] from token numbers [batch, time]."""

    def __init__(self, vocabulary, time, width=64, heads=4, layers=2, dropout=0.1):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=0.02)
        self.register_buffer("mask", torch.triu(torch.ones(time, time, dtype=torch.bool), 1))

    def forward(self, tokens):
        t = tokens.shape[1]
        x = self.token(tokens) + self.place(torch.arange(t, device=tokens.device))
        for block in self.blocks:
            x = block(x, self.mask[:t, :t])
        return self.head(self.norm(x))


def build(device, prepare=as_is, compiled=as_is, batch=8, time=32):
    letters = sorted(set(TEXT))
    text = torch.tensor([letters.index(c) for c in TEXT])
    model = Gpt(len(letters), time).to(device)
    forward = prepare(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    generator = torch.Generator().manual_seed(1)

    @compiled
    def learn(window):
        opt.zero_grad()
        logits = forward(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        return loss.detach()

    def step():
        starts = torch.randint(0, len(text) - time - 1, (batch, 1), generator=generator)
        return learn(text[starts + torch.arange(time + 1)].to(device))

    return step


def main(device="ltc", steps=5):
    """The losses of `steps` steps."""
    return train(build, device, steps)


if __name__ == "__main__":
    run(main, steps=60)
