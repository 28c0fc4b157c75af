"""Steps whose host part matters are replayed with it: optimisers that count steps in CPU tensors."""

import copy
import re

import pytest
import torch
import torch_ltc
from torch import nn
from torch_ltc import _step
from torch_ltc._host import HostRecorder


def data(steps):
    g = torch.Generator().manual_seed(5)
    return [(torch.randn(4, 8, generator=g), torch.randn(4, 1, generator=g)) for _ in range(steps)]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("ltc")


def train(make, compiled, steps=12, during=lambda i, opt: None):
    """Losses, weights and optimiser state of a run, and the step function."""
    model = network()
    opt = make(model.parameters())

    def step(x, t):
        opt.zero_grad()
        loss = ((model(x) - t) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.detach()

    call = torch_ltc.compile(step) if compiled else step
    losses = []
    for i, (x, t) in enumerate(data(steps)):
        losses.append(call(x.to("ltc"), t.to("ltc")).item())
        during(i, opt)
    state = [v.cpu() for s in opt.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return losses, [p.detach().cpu() for p in model.parameters()] + state, call


def both(make, least, **kwargs):
    recorded, state, _ = train(make, False, **kwargs)
    replayed, replayed_state, call = train(make, True, **kwargs)
    assert recorded == replayed, call.explain()
    assert len(state) == len(replayed_state) and all(torch.equal(a, b) for a, b in zip(state, replayed_state))
    assert call.counts[0] >= least, call.explain()


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adamax", "NAdam", "Adagrad", "RMSprop", "Adadelta"])
def test_optimisers_that_count_on_the_host(name, foreach):
    both(lambda p: getattr(torch.optim, name)(p, lr=0.01, foreach=foreach), least=8)


def test_adam_as_one_writes_it():
    both(lambda p: torch.optim.Adam(p), least=8)
    both(lambda p: torch.optim.Adam(p, amsgrad=True, weight_decay=0.1), least=8)


def test_a_step_that_has_its_optimiser_s_method_s_name():
    # `opt.step()` mentions `step`, which is the function itself: the optimiser is found twice.
    model = network()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scope = {"model": model, "opt": opt}
    exec(
        "def step(x):\n  opt.zero_grad()\n  model(x).sum().backward()\n  opt.step()\n  return model(x).sum().detach()",
        scope,
    )
    call = torch_ltc.compile(scope["step"])
    for x, _ in data(8):
        call(x.to("ltc"))
    # One more is captured where it is the first of the process to use an optimiser.
    assert call.counts[0] >= 4, call.explain()


@pytest.mark.parametrize("number", [1, 0, -3, 1 << 24, 0.1, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_counting_with_a_number_that_is_a_tensor_already(dtype, number):
    if dtype is torch.int64 and type(number) is float:
        number = 2
    expected = torch.tensor([-0.0, 7, 1e9]).to(dtype)
    count = expected.clone()
    with HostRecorder() as recorder:
        count += number
    program = recorder.program()
    for _ in range(3):
        program.run()
    for _ in range(4):
        expected += number
    assert count.dtype == dtype and torch.equal(count, expected) and count.signbit().equal(expected.signbit())
    converted = any(type(c) is torch.Tensor and c is not count for c in recorder._constants.values())
    assert converted == (
        dtype.is_floating_point and dtype is not torch.bfloat16 and type(number) is int and number < 1 << 24
    )


def test_a_decision_that_depends_on_the_count_is_taken_again():
    # RAdam takes another formula from its sixth step on.
    both(lambda p: torch.optim.RAdam(p, lr=0.01, foreach=False), least=6, steps=16)


def test_settings_and_state_may_change_between_steps():
    saved = []

    def during(i, opt):
        if i == 5:
            opt.param_groups[0]["lr"] = 0.003
            saved.append(copy.deepcopy(opt.state_dict()))
        if i == 9:
            opt.load_state_dict(saved.pop())

    both(lambda p: torch.optim.Adam(p, lr=0.01), least=5, steps=20, during=during)


@pytest.mark.parametrize(
    "make", [torch.optim.Adam, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)], ids=["adam", "sgd"]
)
def test_a_learning_rate_that_a_schedule_changes_each_step(make):
    schedules = {}

    def during(i, opt):
        if i == 0:
            schedules["one"] = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
        schedules["one"].step()
        assert type(opt.param_groups[0]["lr"]) is float

    both(make, least=16, steps=20, during=during)


def test_a_learning_rate_that_stays_and_then_changes():
    both(torch.optim.Adam, least=10, steps=20, during=lambda i, opt: i == 9 and opt.param_groups[0].update(lr=0.1))


@pytest.mark.parametrize(
    ("change", "least"),
    [({"betas": (0.5, 0.9)}, 10), ({"weight_decay": 0.1}, 10), ({"unheard_of": 1}, 10), ({"betas": [0.5, 0.9]}, 5)],
)
def test_a_setting_that_changes_once(change, least):
    both(torch.optim.Adam, least, steps=16, during=lambda i, opt: i == 7 and opt.param_groups[0].update(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda i: {"weight_decay": 0.1 / (1 + i)},
        lambda i: {"betas": (0.9 - i / 50, 0.99)},
        lambda i: {"eps": 1e-8 * i, "lr": 0.01 + i / 1000, "betas": (0.5, 0.9 + i / 1000)},
    ],
    ids=["decay", "betas", "several"],
)
def test_settings_that_change_at_each_call(change):
    both(torch.optim.AdamW, least=9, steps=16, during=lambda i, opt: opt.param_groups[0].update(change(i)))


def test_a_setting_may_take_the_place_of_another():
    def during(i, opt):
        if i == 0:
            opt.param_groups[0]["first"] = 1
        if i == 7:
            opt.param_groups[0]["second"] = opt.param_groups[0].pop("first")

    both(torch.optim.Adam, least=9, steps=16, during=during)


@pytest.mark.parametrize("as_a_group", [True, False])
def test_parameters_may_be_added_between_steps(as_a_group):
    later = []

    def make(parameters):
        later[:] = parameters
        return torch.optim.Adam([later.pop(0)], lr=0.01)

    def during(i, opt):
        if i == 7 and as_a_group:
            opt.add_param_group({"params": later})
        elif i == 7:
            opt.param_groups[0]["params"] += later

    both(make, 9, steps=16, during=during)


def test_a_step_within_a_step_is_part_of_it():
    def run(compiled):
        wrap = torch_ltc.compile if compiled else lambda f: f
        model = network()
        model.insert(2, nn.Dropout(0.5))
        opt = torch.optim.Adam(model.parameters(), lr=0.01)
        loss = wrap(lambda x, t: ((model(x) - t) ** 2).mean())

        @wrap
        def update():
            opt.step()

        @wrap
        def step(x, t):
            opt.zero_grad()
            value = loss(x, t)
            value.backward()
            update()
            return value.detach()

        torch.manual_seed(3)
        losses = []
        for i, (x, t) in enumerate(data(20)):
            if i == 10:
                model.eval()  # only the inner step mentions the model
            losses.append(step(x.to("ltc"), t.to("ltc")).item())
        return losses, step

    (recorded, _), (replayed, step) = run(False), run(True)
    assert recorded == replayed, step.explain()
    assert step.counts[0] >= 12, step.explain()


def test_two_counts_are_not_taken_for_each_other():
    def run(compiled):
        nets = [network(), network()]
        opts = [torch.optim.Adam(n.parameters(), lr=0.01) for n in nets]

        def step(x, t, both):
            for net, opt in list(zip(nets, opts))[: 2 if both else 1]:
                opt.zero_grad()
                ((net(x) - t) ** 2).mean().backward()
                opt.step()
            return (nets[0][0].weight.sum() + nets[1][0].weight.sum()).detach()

        call = torch_ltc.compile(step) if compiled else step
        out = []
        for i, (x, t) in enumerate(data(20)):
            out.append(call(x.to("ltc"), t.to("ltc"), i not in (0, 1, 11, 12)).item())
        return out, call

    expected, _ = run(False)
    got, call = run(True)
    assert expected == got and call.counts[0] >= 8, call.explain()


def test_what_a_replay_does_on_the_host():
    count, seen = torch.zeros(()), torch.zeros(3)
    w = torch.ones(2).to("ltc")

    def step(x):
        count.add_(1)
        seen[0] += count
        w.add_(x, alpha=1 / count.item())
        return w * count

    call = torch_ltc.compile(step)
    x = torch.ones(2).to("ltc")
    total = 1.0
    for k in range(1, 9):
        total += 1 / k
        assert call(x)[0].item() == pytest.approx(total * k)
        assert count.item() == k and seen[0].item() == k * (k + 1) / 2
    assert call.counts == (5, 3), call.explain()


def test_results_of_host_operators_that_give_several_and_writes_through_views():
    table = torch.zeros(2, 3)

    def step(x):
        row, other = table.unbind(0)
        row.detach().add_(1)
        other.data.add_(2)
        low, high = torch.aminmax(table[:, 1:])
        return x * low.item() + high.item()

    call = torch_ltc.compile(step)
    x = torch.ones(1).to("ltc")
    assert [call(x).item() for _ in range(8)] == [3.0 * k for k in range(1, 9)]
    assert table.tolist() == [[8.0] * 3, [16.0] * 3] and call.counts == (5, 3), call.explain()


def test_arrays_made_anew_each_time_are_not_taken_for_one():
    import numpy as np

    n = [0]

    def step(x):
        n[0] += 1
        return x * torch.tensor(np.full(2000, float(n[0]))).sum().item()

    call = torch_ltc.compile(step)
    assert [call(torch.ones(1).to("ltc")).item() for _ in range(6)] == [2000.0 * k for k in range(1, 7)]


def test_a_failed_replay_leaves_the_host_as_it_was():
    count = torch.zeros(())

    def step(x):
        count.add_(1)
        return x * 2 if count.item() <= 6 else x * 3

    call = torch_ltc.compile(step)
    x = torch.ones(1).to("ltc")
    assert [call(x).item() for _ in range(12)] == [2.0] * 6 + [3.0] * 6
    assert count.item() == 12 and call.counts[0] >= 6, call.explain()


def test_a_replay_that_raises_leaves_the_host_as_it_was(monkeypatch):
    monkeypatch.setattr(_step, "_CHECK_EVERY", 0)  # what is checked is recorded instead
    count = torch.zeros(())
    call = torch_ltc.compile(lambda x: x * count.add_(1))
    x = torch.ones(1).to("ltc")
    assert [call(x).item() for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0] and call.counts == (2, 3)
    replays = call._replays

    class Failing:
        def replay(self, *_):
            raise RuntimeError("planted")

        def __getattr__(self, name):
            return getattr(replays, name)

    monkeypatch.setattr(call, "_replays", Failing())
    with pytest.raises(RuntimeError, match="planted"):
        call(x)
    monkeypatch.undo()
    assert count.item() == 5 and call(x).item() == 6.0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda x, n: x * int(n.add_(1)), "other|another"),
        (lambda x, n: x * n.add_(1).tolist(), "another|change"),
        (lambda x, n: x * float(n.add_(1).item()), "another"),
        (lambda x, n: x * n.add_(1).numpy().item(), "numpy"),
        (lambda x, n: x * n.add_(1).clone().requires_grad_().exp().item(), "differentiation"),
    ],
)
def test_what_cannot_be_replayed_says_why(body, why):
    n, m = torch.zeros(()), torch.zeros(())
    call = torch_ltc.compile(lambda x: body(x, n))
    for _ in range(8):
        x = torch.ones(1).to("ltc")
        got, expected = call(x), body(x, m)
        got, expected = (got[1], expected[1]) if isinstance(got, tuple) else (got.item(), expected.item())
        assert got == expected and type(got) is float
    assert re.search(why, call.refusal), call.explain()


def test_a_step_whose_plain_values_change_says_so():
    batches = [x.to("ltc") for x, _ in data(4)]
    count = 0

    @torch_ltc.compile
    def step():
        nonlocal count
        count += 1
        return batches[count % len(batches)].sum()

    for _ in range(12):
        step()
    assert step.counts == (0, 12)
    assert re.search(r"changes the variable count .*test_step_host.py:\d+", step.explain())


def test_a_step_that_asks_for_other_devices_is_replayed(monkeypatch):
    # As Lightning has it: torch then asks the driver, by ctypes, each time.
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    model = torch.nn.Linear(2, 2).to("ltc")
    optimiser = torch.optim.Adam(model.parameters())

    def learn(x):
        optimiser.zero_grad()
        loss = model(x).square().sum() + torch.cuda.is_available() + torch.xpu.is_available()
        loss.backward()
        optimiser.step()
        return loss.detach()

    step = torch_ltc.compile(learn)
    for _ in range(12):
        step(torch.ones(1, 2, device="ltc"))
    assert step.counts[0] >= 8, step.explain()
