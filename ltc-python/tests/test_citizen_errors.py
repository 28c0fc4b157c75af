"""Errors have eager PyTorch's class and place, and leave everything usable; threads record side by side."""

import threading
import traceback

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from citizen import batch, model, same

BAD_CALLS = [
    lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
    lambda d: torch.ones(6, device=d).view(4, 2),
    lambda d: torch.ones(2, 3, device=d).t().view(6),
    lambda d: torch.ones(2, device=d).sum(dim=3),
    lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(3, 3, device=d)]),
    lambda d: torch.ones(3, device=d)[5],
    lambda d: torch.ones(3, device=d)[:, 0],
    lambda d: torch.ones(3, device=d).long().mean(),
    lambda d: torch.ones(2, device=d).expand(3, 4),
    lambda d: F.conv2d(torch.ones(1, 2, 4, 4, device=d), torch.ones(3, 5, 2, 2, device=d)),
    lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
    lambda d: F.cross_entropy(torch.ones(2, 3, device=d), torch.ones(4, dtype=torch.long, device=d)),
    lambda d: torch.ones(3, dtype=torch.long, device=d).add_(0.5),
    lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    lambda d: torch.ones(1, device=d).expand(3).add_(1),
    lambda d: torch.ones(3, 3, device=d).add_("x"),
    lambda d: torch.ones(2, 2, device=d).item(),
    lambda d: bool(torch.ones(2, device=d)),
    lambda d: torch.ones(3, device=d).backward(),
    lambda d: torch.ones(3, requires_grad=True, device=d).mul(2).backward(),
    lambda d: torch.add(torch.ones(2, device=d), 1, out=torch.empty(2, dtype=torch.long, device=d)),
    lambda d: torch.einsum("ij,jk", torch.ones(2, 3, device=d), torch.ones(2, 3, device=d)),
    lambda d: torch.nn.Linear(2, 2).to(d)(torch.ones(1, 3, device=d)),
    lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
    lambda d: torch.bernoulli(torch.full((2,), 1.0, device=d).long()),
    lambda d: torch.ones(2, 3, device=d).transpose(0, 5),
    lambda d: torch.ones(4, device=d).unfold(0, 9, 1),
    lambda d: torch.tensor([1.0, 2.0], device=d).gather(0, torch.tensor([0.5], device=d)),
    lambda d: torch.stack([]),
]


def failure(call, device):
    """(class, first line of the message, innermost line of this file) of what `call` raises."""
    try:
        call(device)
    except Exception as e:  # noqa: BLE001
        frames = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == __file__]
        return type(e), str(e).split("\n")[0], frames[-1]
    return None


@pytest.mark.parametrize("number", range(len(BAD_CALLS)))
def test_bad_calls_raise_the_same_class_at_the_same_line(number):
    call = BAD_CALLS[number]
    cpu, ltc = failure(call, "cpu"), failure(call, "ltc")
    assert cpu is not None
    assert ltc is not None, f"ltc accepts what the cpu refuses with {cpu}"
    assert (ltc[0], ltc[2]) == (cpu[0], cpu[2]), (cpu, ltc)


DATA_ERRORS = [
    lambda d: torch.ones(3, device=d)[torch.tensor([5], device=d)],
    lambda d: F.embedding(torch.tensor([7], device=d), torch.ones(3, 2, device=d)),
    lambda d: torch.ones(3, device=d).gather(0, torch.tensor([4], device=d)),
    lambda d: torch.zeros(3, device=d).scatter_(0, torch.tensor([4], device=d), 1.0),
    lambda d: F.nll_loss(torch.ones(2, 3, device=d), torch.tensor([0, 9], device=d)),
    lambda d: torch.multinomial(torch.tensor([-1.0, 2.0], device=d), 1),
    lambda d: torch.ones(3, dtype=torch.long, device=d) // torch.zeros(3, dtype=torch.long, device=d),
]


@pytest.mark.parametrize("number", range(len(DATA_ERRORS)))
def test_errors_in_data_have_the_same_class_and_harm_nothing_else(number):
    call = DATA_ERRORS[number]
    kept = torch.arange(3.0, device="ltc") * 2
    cpu = failure(lambda d: call(d), "cpu")
    ltc = failure(lambda d: call(d).cpu(), "ltc")
    assert cpu is not None and ltc is not None
    assert ltc[0] is cpu[0], (cpu, ltc)
    same(kept, torch.tensor([0.0, 2.0, 4.0]))
    same(kept + 1, torch.tensor([1.0, 3.0, 5.0]))


def test_a_data_error_names_the_operator_and_the_users_line():
    x = torch.ones(3, device="ltc")
    y = x[torch.tensor([5], device="ltc")]  # the culprit
    line = traceback.extract_stack()[-1].lineno - 1
    with pytest.raises(IndexError) as caught:
        y.cpu()
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "index" in text and f"test_citizen_errors.py:{line}" in text


def test_what_was_recorded_before_a_failure_is_there():
    x = torch.ones(3, device="ltc")
    good = x * 3
    bad = x[torch.tensor([5], device="ltc")] * 2
    with pytest.raises(IndexError):
        bad.cpu()
    with pytest.raises(IndexError):
        (bad + 1).cpu()
    same(good, torch.full((3,), 3.0))
    torch_ltc.mark_step(wait=True)


def test_an_exception_in_the_middle_of_a_step_leaves_the_tensors_usable():
    cpu, ltc = model(), model().to("ltc")
    x, y = batch()
    losses = []
    for m, d in ((cpu, "cpu"), (ltc, "ltc")):
        opt = torch.optim.Adam(m.parameters(), lr=0.01)
        for step in range(6):
            opt.zero_grad()
            out = m(x.to(d))
            if step in (1, 3):
                with pytest.raises(RuntimeError):
                    out @ out
                with pytest.raises(ZeroDivisionError):
                    out.mul_(0 / 0)
            loss = F.cross_entropy(out, y.to(d))
            loss.backward()
            opt.step()
        losses.append(loss)
    torch.testing.assert_close(losses[1].cpu(), losses[0], rtol=1e-5, atol=0)


def test_keyboard_interrupt_during_recording():
    t = torch.ones(3, device="ltc")
    with pytest.raises(KeyboardInterrupt):
        t = t + 1
        raise KeyboardInterrupt
    same(t, torch.full((3,), 2.0))


@pytest.mark.timeout(120)
def test_threads_record_side_by_side():
    results, errors = {}, []

    def work(i):
        try:
            t = torch.full((4,), float(i), device="ltc")
            for k in range(200):
                t = t * 1.0 + 1
                if k % 50 == i:
                    torch_ltc.mark_step()
            results[i] = t.sum().item()
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors and results == {i: 4 * (i + 200.0) for i in range(6)}


@pytest.mark.timeout(120)
def test_threads_share_a_tensor_and_train_their_own_models():
    shared = torch.arange(4.0, device="ltc") * 2
    expected = _train("cpu", torch.arange(4.0) * 2)
    results = [None] * 3

    def work(i):
        results[i] = _train("ltc", shared)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for r in results:
        assert r is not None
        torch.testing.assert_close(torch.tensor(r), torch.tensor(expected), rtol=1e-5, atol=0)


def _train(device, x):
    w = torch.ones(4, 4).to(device).requires_grad_()
    losses = []
    for _ in range(10):
        loss = ((x @ w).relu() - 1).square().mean()
        (g,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.001 * g
        losses.append(loss.detach())
    return [v.item() for v in losses]


@pytest.mark.timeout(300)
def test_a_long_chain_neither_recurses_nor_overflows():
    t = torch.zeros(2, device="ltc")
    for _ in range(100_000):
        t = t + 1
    same(t, torch.full((2,), 100_000.0))


def test_memory_is_flat_over_equal_steps():
    import resource

    m = model().to("ltc")
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    x, y = (t.to("ltc") for t in batch())
    peaks = []
    for step in range(600):
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        opt.step()
        torch_ltc.mark_step()
        if step in (200, 599):
            torch_ltc.mark_step(wait=True)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[1] - peaks[0] < 8 * 1024, peaks  # kilobytes
