"""Models of tutorials and of reinforcement learning, written afresh with nothing but torch."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..task import Task, moved, sgd

#: Batches of an entry.
COUNT = 4


def several(make):
    """Batches, each by a call."""
    return [make() for _ in range(COUNT)]


def classify(model, batch):
    """Cross entropy of a classifier."""
    return F.cross_entropy(model(batch[0]), batch[1])


def _mnist():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(32 * 12 * 12, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10),
    )  # fmt: skip
    batches = several(lambda: (torch.rand(32, 1, 28, 28), torch.randint(0, 10, (32,))))
    optimiser = lambda parameters: torch.optim.Adadelta(parameters, lr=1.0)
    return Task(model, batches, classify, optimiser)


class _Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 200), nn.ReLU())
        self.mean, self.spread = nn.Linear(200, 16), nn.Linear(200, 16)
        self.decoder = nn.Sequential(nn.Linear(16, 200), nn.ReLU(), nn.Linear(200, 784))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        drawn = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
        return self.decoder(drawn), mean, spread


def _vae():
    def loss(model, x):
        again, mean, spread = model(x)
        wrong = F.binary_cross_entropy_with_logits(again, x, reduction="sum")
        return (wrong - 0.5 * torch.sum(1 + spread - mean.square() - spread.exp())) / len(x)

    return Task(_Vae(), several(lambda: torch.rand(64, 784)), loss)


class _Words(nn.Module):
    """A recurrent language model; where it stopped is an input of the next batch."""

    def __init__(self, words, width, kind):
        super().__init__()
        self.table, self.drop = nn.Embedding(words, width), nn.Dropout(0.2)
        self.cells = kind(width, width, num_layers=2, dropout=0.2)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.drop(self.cells(self.drop(self.table(x)))[0]))


def _words(kind):
    def loss(model, x):
        return F.cross_entropy(model(x[:-1]).flatten(0, 1), x[1:].flatten())

    def clipped(model, forward, device):
        optimiser = torch.optim.SGD(model.parameters(), lr=1.0)

        def learn(x):
            optimiser.zero_grad()
            value = loss(forward, x)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimiser.step()
            return value.detach()

        return learn

    return Task(_Words(300, 64, kind), several(lambda: torch.randint(0, 300, (17, 16))), loss, stepper=clipped)


def _word_transformer():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(300, 64)
            layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(64, 300)
            places = torch.arange(64).unsqueeze(1) * torch.exp(torch.arange(0, 64, 2) * (-math.log(1e4) / 64))
            self.register_buffer("places", torch.stack([places.sin(), places.cos()], -1).flatten(1).unsqueeze(1))

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(len(x), device=x.device, dtype=self.places.dtype)
            hidden = self.table(x) * math.sqrt(64) + self.places[: len(x)]
            return self.head(self.layers(hidden, mask, is_causal=True))

    loss = lambda model, x: F.cross_entropy(model(x[:-1]).flatten(0, 1), x[1:].flatten())
    return Task(Model(), several(lambda: torch.randint(0, 300, (33, 16))), loss)


def _super_resolution():
    model = nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3),
    )  # fmt: skip
    batches = several(lambda: (torch.rand(4, 1, 24, 24), torch.rand(4, 1, 72, 72)))
    return Task(model, batches, lambda model, batch: F.mse_loss(model(batch[0]), batch[1]))


def _siamese():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.eye = nn.Sequential(
                nn.Conv2d(1, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2),
                nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
            )  # fmt: skip
            self.head = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

        def forward(self, a, b):
            return self.head(torch.cat([self.eye(a), self.eye(b)], 1)).squeeze(1)

    batches = several(lambda: (torch.rand(32, 1, 28, 28), torch.rand(32, 1, 28, 28), torch.rand(32).round()))
    loss = lambda model, batch: F.binary_cross_entropy_with_logits(model(*batch[:2]), batch[2])
    return Task(Model(), batches, loss, sgd)


def _time_sequence():
    class Model(nn.Module):
        """Two LSTM cells over time, step by step, then some steps on what they foretold."""

        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.LSTMCell(1, 24), nn.LSTMCell(24, 24), nn.Linear(24, 1)

        def forward(self, x, ahead):
            a = b = (x.new_zeros(len(x), 24), x.new_zeros(len(x), 24))
            told = []
            for t in range(x.shape[1] + ahead):
                a = self.first(x[:, t : t + 1] if t < x.shape[1] else told[-1], a)
                b = self.second(a[0], b)
                told.append(self.head(b[0]))
            return torch.cat(told, 1)

    def waves():
        return torch.sin(torch.rand(16, 1) * 6 + torch.arange(25) / 3)

    loss = lambda model, x: F.mse_loss(model(x[:, :16], 8), x[:, 1:])
    return Task(Model(), several(waves), loss)


def _regression():
    def points():
        x = torch.randn(64, 1)
        return torch.cat([x**n for n in range(1, 5)], 1), 2 * x**3 - x + 0.5

    optimiser = lambda parameters: torch.optim.SGD(parameters, lr=1e-3)
    return Task(nn.Linear(4, 1), several(points), lambda m, b: F.smooth_l1_loss(m(b[0]), b[1]), optimiser)


class _Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(
            nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1),
            nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip
        self.critic = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32),
            nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4), nn.Flatten(0),
        )  # fmt: skip

    def forward(self, x, made):
        return self.maker(x) if made else self.critic(x)


def _dcgan():
    """Two networks with an optimiser each, in turn, in one step."""

    def stepper(model, forward, device):
        adam = lambda part: torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.999))
        critic, maker = adam(model.critic), adam(model.maker)
        judge = lambda x, real: F.binary_cross_entropy_with_logits(
            forward(x, False), torch.full((len(x),), real, device=x.device, dtype=x.dtype)
        )

        def learn(batch):
            real, noise = batch
            critic.zero_grad()
            made = forward(noise, True)
            loss = judge(real, 1.0) + judge(made.detach(), 0.0)
            loss.backward()
            critic.step()
            maker.zero_grad()
            fooled = judge(made, 1.0)
            fooled.backward()
            maker.step()
            return (loss + fooled).detach()

        return learn

    batches = several(lambda: (torch.rand(16, 1, 16, 16) * 2 - 1, torch.randn(16, 16, 1, 1)))
    return Task(_Gan(), batches, None, stepper=stepper)


def _neural_style():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(
                nn.ReflectionPad2d(2), nn.Conv2d(3, 16, 5), nn.InstanceNorm2d(16, affine=True), nn.ReLU(),
                nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.InstanceNorm2d(16, affine=True), nn.ReLU(),
                nn.Upsample(scale_factor=2), nn.Conv2d(16, 3, 3, padding=1),
            )  # fmt: skip
            self.eye = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3)).requires_grad_(False)

        def forward(self, x):
            return self.eye(self.net(x)), self.eye(x)

    def loss(model, batch):
        picture, style = batch
        made, content = model(picture)
        rows = made.flatten(2)
        gram = rows @ rows.transpose(1, 2) / rows[0].numel()
        return F.mse_loss(made, content) + 10 * F.mse_loss(gram, style.expand_as(gram))

    return Task(Model(), several(lambda: (torch.rand(2, 3, 32, 32), torch.rand(1, 16, 16))), loss)


def _heat_equation():
    """Second derivatives within the step."""
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss(model, batch):
        x, t = (v.detach().requires_grad_() for v in batch)
        u = model(torch.cat([x, t], 1))
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (uxx,) = torch.autograd.grad(ux.sum(), x, create_graph=True)
        start = model(torch.cat([x, torch.zeros_like(t)], 1))
        return (ut - uxx).square().mean() + (start - torch.sin(math.pi * x)).square().mean()

    return Task(model, several(lambda: (torch.rand(128, 1), torch.rand(128, 1))), loss)


class _Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.before(x)).chunk(3, 2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class _Gpt(nn.Module):
    """A decoder as small ones are written: learned places, tied tables, projections scaled by depth."""

    def __init__(self, words=256, width=64, depth=3, heads=4, length=64):
        super().__init__()
        self.table, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(_Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.table.weight
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * depth) if name.endswith("out.weight") else 0.02)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.table(x) + self.places(torch.arange(x.shape[1], device=x.device)))))


def _decayed(model, forward, device):
    """AdamW that decays matrices alone, clipped gradients, a rate that warms up."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda n: min(1.0, (1 + n) / 5))

    def learn(x):
        loss = F.cross_entropy(forward(x[:, :-1]).flatten(0, 1).float(), x[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        plan.step()
        optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    return learn


def _nano_gpt(dtype=torch.float32):
    return Task(_Gpt().to(dtype), several(lambda: torch.randint(0, 256, (8, 65))), None, stepper=_decayed)


class _Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy, self.worth = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.policy(hidden), self.worth(hidden).squeeze(-1)


def _balanced(state, action):
    """A pole on a cart, a moment later: states of several carts (place, speed, angle, its speed), on the host."""
    place, speed, angle, turning = state.unbind(1)
    push = (action.to(state.dtype) * 2 - 1) * 10.0
    lift = (push + 0.05 * turning.square() * angle.sin()) / 1.1
    pull = (9.8 * angle.sin() - angle.cos() * lift) / (0.5 * (4 / 3 - 0.1 * angle.cos().square() / 1.1))
    gain = lift - 0.05 * pull * angle.cos() / 1.1
    state = torch.stack([place + 0.02 * speed, speed + 0.02 * gain, angle + 0.02 * turning, turning + 0.02 * pull], 1)
    fell = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 0.21)
    return torch.where(fell.unsqueeze(1), 0.01, state), fell


def _played(number, forward, device):
    """Plays eight carts for sixteen moments: each action is drawn on the device and read by the host."""
    generator = torch.Generator().manual_seed(number)
    state, moments = torch.rand(8, 4, generator=generator) * 0.1 - 0.05, []
    for _ in range(16):
        with torch.no_grad():
            logits, worth = forward(state.to(device))
            choice = torch.distributions.Categorical(logits=logits)
            action = choice.sample()
            chance = choice.log_prob(action)
        after, fell = _balanced(state, action.cpu())
        moments.append((state, action.cpu(), chance.cpu(), worth.cpu(), 1.0 - fell.float()))
        state = after
    states, actions, chances, worths, alive = (torch.stack(column) for column in zip(*moments))
    gains, gain = [], torch.zeros(8)
    for t in reversed(range(16)):
        gain = alive[t] + 0.98 * gain * alive[t]
        gains.insert(0, gain)
    batch = states, actions, chances, worths, torch.stack(gains)
    return moved(tuple(x.flatten(0, 1) for x in batch), device)


def _ppo():
    def stepper(model, forward, device):
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-4, eps=1e-5)

        def learn(batch):
            states, actions, chances, worths, gains = batch
            better = gains - worths
            better = (better - better.mean()) / (better.std() + 1e-8)
            for _ in range(2):
                logits, worth = forward(states)
                choice = torch.distributions.Categorical(logits=logits)
                ratio = (choice.log_prob(actions) - chances).exp()
                gained = torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
                loss = 0.5 * F.mse_loss(worth, gains) - gained - 0.01 * choice.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimiser.step()
            return loss.detach()

        return learn

    return Task(_Actor(), [], None, stepper=stepper, collect=_played)


def _reinforce():
    def loss(model, batch):
        states, actions, _, _, gains = batch
        logits, worth = model(states)
        gains = (gains - gains.mean()) / gains.std()
        chosen = F.log_softmax(logits, 1).gather(1, actions.unsqueeze(1)).squeeze(1)
        return -(chosen * (gains - worth.detach())).mean() + F.smooth_l1_loss(worth, gains)

    return Task(_Actor(), [], loss, collect=_played)


ENTRIES = {
    "mnist": _mnist,
    "vae": _vae,
    "word language model, lstm": lambda: _words(nn.LSTM),
    "word language model, gru": lambda: _words(nn.GRU),
    "word language model, transformer": _word_transformer,
    "super resolution": _super_resolution,
    "siamese": _siamese,
    "time sequence": _time_sequence,
    "regression": _regression,
    "dcgan": _dcgan,
    "neural style": _neural_style,
    "heat equation": _heat_equation,
    "nano gpt": _nano_gpt,
    "nano gpt, bfloat16": lambda: _nano_gpt(torch.bfloat16),
    "ppo": _ppo,
    "reinforce": _reinforce,
}
