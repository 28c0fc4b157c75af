"""One compiled program for many batch sizes."""

import torch
import torch_ltc
from torch import nn


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 16, 5),
    ), lambda n: torch.randn(n, 1, 8, 8)


def transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(16 * 6, 5)), lambda n: torch.randn(n, 6, 16)


def steps(make, device):
    torch.manual_seed(1)
    model, inputs = make()
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for n in range(1, 17):
        torch.manual_seed(n)
        x, y = inputs(n).to(device), torch.randint(5, (n,)).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


def test_models_compile_at_most_twice_for_any_batch():
    for make in (convnet, transformer):
        # The model moves, and whatever is pending runs, before anything is counted.
        steps(make, "cpu")
        torch_ltc.mark_step(wait=True)
        torch_ltc.metrics.reset()
        losses, parameters = steps(make, "ltc")
        counts = ("UncachedCompile", "RespecialisedCompile")
        compiled, respecialised = map(torch_ltc.metrics.counter_value, counts)
        assert compiled <= 2 and respecialised >= 14, (compiled, respecialised)
        expected, wanted = steps(make, "cpu")
        torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
        for a, b in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
