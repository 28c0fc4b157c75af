"""The device is registered and trains a model as the CPU does."""

import pytest
import torch
import torch_ltc


def train(device):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x, y = torch.randn(12, 8), torch.randint(0, 4, (12,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(5):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        torch_ltc.mark_step()
        losses.append(loss.detach())
    return [l.cpu().item() for l in losses]


def test_training_equals_cpu_without_fallbacks():
    before = torch_ltc.fallback_count()
    assert train("ltc") == train("cpu")
    assert torch_ltc.fallback_count() == before


def test_a_tensor_knows_its_device():
    t = torch.ones(2, 3).to("ltc")
    assert t.device == torch.device("ltc", 0)
    assert torch.equal((t + 1).t().cpu(), torch.full((3, 2), 2.0))


def test_no_other_type_of_device_is_a_name_of_it():
    # Rust programs have such a name (`ltc_torch::DEVICE`).
    with pytest.raises(NotImplementedError, match="MPS"):
        torch.zeros(2, device="mps")
