"""Compiled steps whose host program reads values: replays compute them, compare them with what was read, and are taken
back where they differ."""

import re

import pytest
import torch
import torch_ltc
from torch import nn

ROWS = [torch.randn(6, 4, generator=torch.Generator().manual_seed(i)) for i in range(24)]


def learner(device, body, drop=0.0, **settings):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(drop), nn.Linear(8, 2)).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return model, optimiser, lambda x: body(model, optimiser, x, **settings)


def both(body, batches=ROWS, least=9, change=None, **settings):
    """Runs on both devices, comparing losses and all state; returns the compiled step."""
    model, optimiser, plain = learner("cpu", body, **settings)
    mine, other, learn = learner("ltc", body, **settings)
    step = torch_ltc.compile(learn)
    for i, x in enumerate(batches):
        if change is not None:
            change(i, model, optimiser)
            change(i, mine, other)
        outcomes = []
        for call, on in ((plain, "cpu"), (step, "ltc")):
            try:
                outcomes.append(call(x.to(on)).cpu())
            except RuntimeError as error:
                outcomes.append(torch.tensor(float(len(str(error).splitlines()[0]))))
        torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-5, atol=1e-6, equal_nan=True)
        for name, value in model.state_dict().items():
            torch.testing.assert_close(mine.state_dict()[name].cpu(), value, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert step.counts[0] >= least, step.explain()
    return step


def clips(model, optimiser, x, **how):
    optimiser.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05, **how)
    optimiser.step()
    return torch.stack([loss.detach(), norm])


@pytest.mark.parametrize(
    "how", [{}, {"error_if_nonfinite": True}, {"foreach": True}, {"foreach": False}, {"norm_type": float("inf")}]
)
def test_clipped_gradients(how):
    both(clips, ROWS[:12], **how)


def test_a_norm_that_is_not_finite_is_an_error_in_the_call_that_has_it():
    batches = [*ROWS[:8], torch.full((6, 4), float("nan"))]
    # The parameters are as they were: the error comes before the optimiser.
    step = both(clips, batches, 5, error_if_nonfinite=True)
    with pytest.raises(RuntimeError, match="non-finite"):
        step(torch.full((6, 4), float("inf"), device="ltc"))


def decides(model, optimiser, x):
    optimiser.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    if loss > 1:
        optimiser.step()
    return loss.detach()


def test_a_call_that_goes_the_other_way_is_taken_back_and_recorded():
    # One batch in five is large: weights, averages and momentum are those of the way that is gone.
    batches = [x * (30 if i % 5 == 4 else 0.1) for i, x in enumerate(ROWS)]
    both(decides, batches, 12)


def test_both_ways_are_replayed_in_the_end():
    step = both(decides, [x * (30 if i % 2 else 0.1) for i, x in enumerate(ROWS)], 8)
    before = step.counts
    for i in range(8):
        step((ROWS[i] * (30 if i % 2 else 0.1)).to("ltc"))
    assert step.counts[0] >= before[0] + 6, step.explain()


def draws(x):
    noise = torch.rand(3, device=x.device)
    return noise * 2 if (x > 0).all() else noise


def test_a_call_that_is_taken_back_has_drawn_nothing():
    torch.manual_seed(3)
    expected = [torch.rand(3, device="ltc").cpu() for _ in range(12)]
    torch.manual_seed(3)
    step = torch_ltc.compile(draws)
    for i in range(12):
        sign = -1.0 if i in (6, 9) else 1.0
        got = step(torch.full((2,), sign, device="ltc"))
        assert torch.equal(got.cpu(), expected[i] * (2 if sign > 0 else 1))
    assert step.counts[0] >= 6, step.explain()


def test_gradients_versions_and_host_counts_are_those_of_one_call():
    count = torch.zeros(())
    w = torch.ones(3, device="ltc", requires_grad=True)

    def body(x):
        count.add_(1)
        (w * x).sum().backward()
        with torch.no_grad():
            w.mul_(2 if x.sum() > 0 else 3)
        return w.detach() * 1

    step = torch_ltc.compile(body)
    value = 1.0
    for i in range(12):
        w.grad = None
        version = w._version
        sign = -1.0 if i in (5, 8, 9) else 1.0
        value *= 2 if sign > 0 else 3
        assert step(torch.full((3,), sign, device="ltc")).tolist() == [value] * 3
        assert w.grad.tolist() == [sign] * 3 and w._version == version + 1 and count.item() == i + 1
    assert step.counts[0] >= 5, step.explain()


def test_a_value_that_differs_each_time_is_refused_by_line():
    step = torch_ltc.compile(lambda x: x * x.sum().long().item())
    for i in range(12):
        assert step(torch.full((2,), float(i), device="ltc")).tolist() == [2.0 * i * i] * 2
    assert step.counts[0] == 0
    assert re.search(
        r"changes from call to call \(i64\[\], .*test_step_reads.py:\d+.*\): return the tensor", step.refusal
    )


def test_a_read_that_comes_to_differ_is_recorded_from_then_on():
    n = torch.zeros((), device="ltc")
    step = torch_ltc.compile(lambda x: x * n.item())
    for i in range(30):
        n.fill_(max(0, i - 8))
        assert step(torch.ones(1, device="ltc")).item() == max(0, i - 8)
    assert step.counts[0] >= 5, step.explain()


# ---- torch.amp, torch.distributions ----


def scaled(device, unscale):
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**4, growth_interval=4)

    def learn(x):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimiser)
        scaler.update()
        return loss.detach()

    return model, optimiser, scaler, learn


@pytest.mark.parametrize("unscale", [False, True])
def test_grad_scaler(unscale):
    model, _, scale, plain = scaled("cpu", unscale)
    mine, _, scaler, learn = scaled("ltc", unscale)
    step = torch_ltc.compile(learn)
    for i, x in enumerate(ROWS):
        x = x * float("inf") if i in (9, 15) else x  # skipped, and the scale goes down
        torch.testing.assert_close(step(x.to("ltc")).cpu(), plain(x), equal_nan=True)
        assert scaler.get_scale() == scale.get_scale()
        torch.testing.assert_close(mine.weight.cpu(), model.weight, rtol=1e-5, atol=1e-6)
    assert step.counts[0] >= 14 and step.refusal == "", step.explain()


def test_a_scaler_that_was_used_in_between_is_noticed():
    _, optimiser, scaler, learn = scaled("ltc", True)
    step = torch_ltc.compile(learn)
    for x in ROWS[:12]:
        step(x.to("ltc"))
    assert step.counts[0] >= 2, step.explain()
    scaler.unscale_(optimiser)
    with pytest.raises(RuntimeError, match="already been called"):
        step(ROWS[8].to("ltc"))


def test_distributions_are_checked_in_replays():
    def body(x):
        # Dynamo, once it is loaded, takes the default away.
        dist = torch.distributions.Normal(x, 1.0, validate_args=True)
        other = torch.distributions.Categorical(logits=x, validate_args=True)
        return dist.log_prob(torch.zeros_like(x)).sum() + other.entropy().sum()

    step = torch_ltc.compile(body)
    for x in ROWS[:12]:
        torch.testing.assert_close(step(x.to("ltc")).cpu(), body(x))
    assert step.counts == (9, 3), step.explain()
    with pytest.raises(ValueError, match="invalid values"):
        step(torch.full((6, 4), float("nan"), device="ltc"))


# ---- masks ----


@pytest.mark.parametrize("given", [False, True])
def test_masks_that_stay_select_the_same(given):
    mask = torch.tensor([True, False, True, True, False, True])
    masks = {"cpu": mask.clone(), "ltc": mask.to("ltc")}

    def body(model, optimiser, x):
        optimiser.zero_grad()
        loss = model(x)[masks[x.device.type]].square().mean()
        loss.backward()
        optimiser.step()
        return loss.detach()

    def change(i, *_):
        if i == 12:
            for m in masks.values():
                m[1] = True

    step = both(body, ROWS, 12, change)
    assert step.counts[0] >= 12


def test_a_mask_that_is_another_one_each_time_is_recorded():
    step = torch_ltc.compile(lambda x: x[x > 0].sum())
    for x in ROWS[:8]:
        torch.testing.assert_close(step(x.to("ltc")).cpu(), x[x > 0].sum())
    assert step.counts[0] == 0 and re.search(r"index.*test_step_reads.py:\d+.*where", step.refusal), step.explain()


SELECTS = {
    "rows": lambda x, m: x[m],
    "columns": lambda x, m: x[:, m[:4]],
    "both": lambda x, m: x[m, 0],
    "beside a new dimension": lambda x, m: x[None, m, ..., 1:],
    "elements": lambda x, m: x[x.sign() * m[:, None] > 0],
    "masked_select": lambda x, m: x.masked_select(m[:, None].expand(6, 4)),
    "nonzero": lambda x, m: x[m.nonzero().squeeze(1)],
    "nonzero of numbers": lambda x, m: x[(m * 2).nonzero(as_tuple=True)[0]],
    "where": lambda x, m: x[torch.where(m)[0]],
    "argwhere": lambda x, m: torch.argwhere(m).add_(1).float(),
    "none": lambda x, m: x[m & ~m],
}


@pytest.mark.parametrize("name", SELECTS)
def test_masks_that_the_step_computes(name):
    """Two batches take turns, whose masks differ: each has a capture of its own."""
    choose = SELECTS[name]
    weight = {d: torch.ones(4, device=d, requires_grad=True) for d in ("cpu", "ltc")}

    def body(x):
        w = weight[x.device.type]
        chosen = choose(x * w, x[:, 0] > 0)
        w.grad = None
        if chosen.requires_grad:
            chosen.square().sum().backward()
        return chosen.detach(), w.grad

    step = torch_ltc.compile(body)
    for i in range(16):
        expected, found = body(ROWS[i % 2]), step(ROWS[i % 2].to("ltc"))
        torch.testing.assert_close([x.cpu() for x in found if x is not None], [x for x in expected if x is not None])
    assert step.counts[0] >= 5, step.explain()


# ---- packages that ask whether they are compiled ----


def test_code_outside_torch_is_told_that_it_is_captured_and_torch_is_not():
    asked = []

    def body(x):
        inside = torch.compiler.is_compiling()
        return x * (2 if inside else 2.0), inside

    step = torch_ltc.compile(body)
    for _ in range(6):
        asked.append(step(torch.ones(1, device="ltc"))[1])
    assert all(asked) and not torch.compiler.is_compiling() and step.counts == (3, 3)


@pytest.mark.parametrize("kind", ["Bert", "Llama"])
def test_padded_batches_of_transformers(kind):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = getattr(transformers, f"{kind}Config")(**sizes, vocab_size=90)
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        setattr(config, name, 0.0)
    head = {"Bert": "BertForMaskedLM", "Llama": "LlamaForCausalLM"}[kind]

    def run(device, compiled):
        torch.manual_seed(0)
        model = getattr(transformers, head)(config).to(device).train()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def learn(batch):
            loss = model(**batch).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            return loss.detach()

        step = torch_ltc.compile(learn) if compiled else learn
        losses = []
        for i in range(12):
            ids = torch.randint(1, 90, (3, 7), generator=torch.Generator().manual_seed(i))
            mask = torch.ones_like(ids)
            mask[i % 3, 7 - i % 4 :] = 0  # now and then nothing is padded
            batch = {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}
            losses.append(step(transformers.BatchEncoding(batch).to(device)).item())
        return losses, step

    losses, step = run("ltc", True)
    assert losses == pytest.approx(run("cpu", False)[0], rel=1e-4)
    # The first model in a process fills what it keeps for all: other calls are captured anew for that.
    assert step.counts[0] >= 7, step.explain()


def test_what_a_step_writes_is_counted_once_whichever_way_it_goes():
    draws = torch.Generator().manual_seed(3)
    weight, state = torch.ones(3).to("ltc"), torch.ones(3).to("ltc")

    @torch_ltc.compile
    def step():
        twice = weight * 2 if torch.rand([], generator=draws) < 0.5 else weight * 3
        more = weight + 2 if torch.rand([], generator=draws) < 0.5 else weight + 3
        state.tanh_()
        return twice, more

    for i in range(40):
        step()
        assert state._version == i + 1, step.explain()
    assert step.counts[0] >= 20, step.explain()


def test_a_replay_that_fails_on_its_way_to_another_value_is_taken_back():
    """How many classes there are is read, and decides how large a memory is that is written to."""
    seen = [0, 0, 0, 0, 1, 1, 2, 0, 2, 1, 2, 2, 0, 1, 2, 0] * 2
    state = torch.zeros(3).to("ltc")

    @torch_ltc.compile
    def step(x):
        state.add_(x)
        return nn.functional.one_hot(x.argmax())

    for i, at in enumerate(seen):
        x = nn.functional.one_hot(torch.tensor(at), 3).float()
        assert step(x.to("ltc")).tolist() == nn.functional.one_hot(torch.tensor(at)).tolist()
        torch_ltc.mark_step(wait=True)
        assert state.tolist() == [seen[: i + 1].count(k) for k in range(3)]
    assert step.counts[0] >= 12, step.explain()


def test_a_replay_that_fails_as_it_does_recorded_says_so():
    @torch_ltc.compile
    def step(x, i):
        return x[i] * 2 if x.sum() > 0 else x

    x = torch.ones(3).to("ltc")
    for at in [0, 1, 2, 0, 1]:
        assert step(x, torch.tensor([at]).to("ltc")).tolist() == [2]
    with pytest.raises(IndexError):
        step(x, torch.tensor([7]).to("ltc")).tolist()
    assert step(x, torch.tensor([1]).to("ltc")).tolist() == [2]
    torch_ltc.mark_step(wait=True)
    assert step.counts[0] >= 2, step.explain()
