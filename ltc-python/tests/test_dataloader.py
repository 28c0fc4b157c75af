"""Loading with worker processes while the device records: the losses are those of the CPU."""

import pytest
import torch
import torch_ltc
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Noisy(Dataset):
    """Draws of its own in each worker, as augmentation does."""

    def __init__(self):
        self.x = torch.arange(96.0).view(24, 4) / 96

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        assert get_worker_info() is not None
        return self.x[i] + 0.01 * torch.randn(4), self.x[i].sum()


class OnTheDevice(Noisy):
    """Uses the device inside a worker."""

    def __getitem__(self, i):
        return (self.x[i].to("ltc") * 2).sum().item()


def losses(device, compiled, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        loss.backward()
        opt.step()
        return loss.detach()

    step = torch_ltc.compile(step) if compiled else step
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True, **options)
    found = []
    for _ in range(3):
        found += [step(x.to(device, non_blocking=True), y.to(device, non_blocking=True)) for x, y in loader]
    return [loss.item() for loss in found]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_training_from_workers(context, compiled):
    torch.ones(2, device="ltc").add(1)  # pending while the workers start
    expected = losses("cpu", False, multiprocessing_context=context)
    assert losses("ltc", compiled, multiprocessing_context=context) == expected and len(expected) == 18


@pytest.mark.timeout(300)
def test_pinned_memory_is_no_obstacle():
    assert losses("ltc", False, pin_memory=True) == losses("cpu", False)
    plain = torch.arange(4.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned() and pinned[2:].is_pinned() and not plain.is_pinned() and torch.equal(pinned, plain)
    del pinned
    assert torch.empty(0, pin_memory=True).tolist() == []


@pytest.mark.timeout(300)
def test_workers_may_use_the_device_themselves():
    pending = torch.ones(2, device="ltc") * 3
    found = [v for batch in DataLoader(OnTheDevice(), batch_size=4, num_workers=2) for v in batch.tolist()]
    assert found == [float((x * 2).sum()) for x in Noisy().x]
    assert pending.tolist() == [3.0, 3.0]
