"""The device is registered and trains a model as the CPU does."""

import os
import subprocess
import sys

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


@pytest.mark.parametrize("there", ["cpu", "ltc:0", "meta"])
def test_what_is_made_like_a_tensor_is_on_the_device_that_is_named(there):
    x = torch.arange(6.0).reshape(2, 3).to("ltc").t()
    made = {
        "zeros_like": lambda t: torch.zeros_like(t, device=there, dtype=torch.int32),
        "ones_like": lambda t: torch.ones_like(t, device=there),
        "full_like": lambda t: torch.full_like(t, 3, device=there),
        "rand_like": lambda t: torch.rand_like(t, device=there) * 0,
        "empty_like": lambda t: torch.empty_like(t, device=there).fill_(1),
        "new_zeros": lambda t: t.new_zeros((2, 2), device=there),
        "new_ones": lambda t: t.new_ones((2, 2), device=there),
        "new_full": lambda t: t.new_full((2, 2), 5, device=there),
        "new_empty": lambda t: t.new_empty((2, 2), device=there).fill_(1),
        "new_tensor": lambda t: t.new_tensor([1, 2], device=there),
        "new_empty_strided": lambda t: t.new_empty_strided((2, 2), (1, 2), device=there).fill_(2),
    }
    for name, make in made.items():
        got, want = make(x), make(x.cpu())
        assert got.device == torch.device(there), name
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride(), name
        if there != "meta":
            assert torch.equal(got.cpu(), want.cpu()), name


def test_what_is_made_like_a_tensor_is_on_another_ltc_device():
    program = """
import torch, torch_ltc
x = torch.ones(2, 3, device="ltc:0")
made = [torch.zeros_like(x, device="ltc:1"), torch.ones_like(x, device="ltc:1"), x.new_full((2,), 5, device="ltc:1")]
print([(str(t.device), t.sum().item()) for t in made])
"""
    settings = {**os.environ, "LTC_DEVICES": "2"}
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=settings, timeout=200)
    assert said.stdout == "[('ltc:1', 0.0), ('ltc:1', 6.0), ('ltc:1', 10.0)]\n", said.stdout + said.stderr
