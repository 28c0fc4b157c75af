"""Compiled steps that draw, count and decide on the host, and take tensors from there to the device. What a replay does
to the host is what the step does, and what is taken back is as if it had not been."""

import array
import copy
import datetime
import math
import operator
import types

import pytest
import torch
import torch_ltc
from torch.nn import functional
from torch_ltc import _step

STEPS = 14
DEVICES = ("cpu", "recorded", "compiled")


def outcomes(body, given):
    """What a step returns and leaves on the host, on the CPU, recorded, and compiled; and the compiled step."""
    outs, step = [], None
    for way in DEVICES:
        torch.manual_seed(0)
        world = types.SimpleNamespace(
            draws=torch.Generator().manual_seed(3),
            device="cpu" if way == "cpu" else "ltc",
            count=torch.zeros((), dtype=torch.int64),
            real=torch.zeros(()),
            row=torch.zeros(3),
            made=None,
        )
        call = lambda x, world=world: body(world, x)
        if way == "compiled":
            call = step = torch_ltc.compile(call)
        outs.append([call(x.to(world.device)).cpu() for x in given])
        outs[-1] += [world.count, world.real, world.row, torch.rand(2), torch.rand(2, generator=world.draws)]
    return outs, step


def agree(body, least, given=None):
    """All three ways agree, and so many calls are replayed; returns the compiled step."""
    (cpu, *others), step = outcomes(body, [torch.ones(3) + i % 2 for i in range(STEPS)] if given is None else given)
    for way, outs in zip(DEVICES[1:], others, strict=True):
        for i, (expected, found) in enumerate(zip(cpu, outs, strict=True)):
            torch.testing.assert_close(found, expected, msg=lambda m, at=f"{way}, call {i}": f"{at}: {m}")
    assert step.counts[0] >= least, step.explain()
    return step


# ---- draws ----


def unused(world, x):
    torch.rand(3)
    torch.rand(3, generator=world.draws)
    return x * 2


def drops_a_layer(_, x):
    return x * 2 if torch.rand([]) < 0.5 else x


def drops_by_its_own_generator(world, x):
    return x * 2 if torch.rand([], generator=world.draws) < 0.5 else x


def decides_by_a_draw_and_a_read(_, x):
    return x + 1 if torch.rand([]) < 0.5 and x.sum() > 4 else x


def permutes(_, x):
    return x + torch.randperm(3)[0].item()


def draws_within_another_function(_, x):
    return x * float(functional.dropout(torch.ones(4)).sum())


def fills_what_is_older(world, x):
    world.row.bernoulli_(0.5, generator=world.draws)
    return x * world.row.sum()


def adds_noise(world, x):
    return x + torch.randn(3, generator=world.draws).to(x.device)


@pytest.mark.parametrize("body", [unused, adds_noise, fills_what_is_older], ids=lambda f: f.__name__)
def test_draws_are_repeated(body):
    agree(body, 10)


@pytest.mark.parametrize(
    "body",
    [
        *(drops_a_layer, drops_by_its_own_generator, decides_by_a_draw_and_a_read, permutes),
        draws_within_another_function,
    ],
    ids=lambda f: f.__name__,
)
def test_a_replay_that_draws_another_way_is_taken_back(body):
    agree(body, 3)


@torch.jit.script
def scripted_draw():
    return torch.rand(3)


def test_draws_that_no_replay_can_repeat_are_recorded():
    def body(_, x):
        scripted_draw()
        return x * 2

    step = agree(body, 0)
    assert step.counts[0] == 0 and "it draws numbers on the host" in step.refusal, step.explain()


# ---- what the host knows, where the device uses it ----


def counted(dtype, use):
    """A count in a type, and what is made of it."""

    def body(world, x):
        world.count += 1
        return use(world, x, (world.count // 6).to(dtype))

    return body


USES = {
    "product": lambda _, x, n: x * n,
    "where": lambda _, x, n: torch.where(n > 0, x, 2 * x),
    "index": lambda _, x, n: x[n.long()],
    "factory": lambda world, x, n: torch.full((3,), n, device=world.device) + x,
    "slice": lambda _, x, n: x[int(n) :].sum() + x,
    "sizes": lambda _, x, n: functional.one_hot(x.long() % 3, int(n) + 3).sum(1) + x,
    "split": lambda _, x, n: torch.tensor_split(x, n.long().reshape(1))[1].sum() + x,
    "item": lambda _, x, n: x + n.item(),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("use", USES)
def test_a_count_on_the_host_is_not_a_constant(use, dtype):
    agree(counted(dtype, USES[use]), 3)


def test_a_complex_count_is_not_a_constant():
    agree(lambda world, x: (x * (world.count.add_(1) // 6 + 1j)).abs(), 4)


def real(world, by=6):
    """A number that stays as it is for some calls, and then is another one."""
    world.real += 1
    return (world.real // by).item()


FORMAT = "%.3f"
#: What becomes of a float on the host, by ways of which many do not tell that they were given it.
NUMBERS = {
    "root": lambda world, x: x * math.sqrt(real(world)),
    "exact sum": lambda world, x: x * math.fsum([real(world), 1.0]),
    "close": lambda world, x: x * (1.0 if math.isclose(real(world, 1), 12.0) else 2.0),
    "operator": lambda world, x: x * operator.add(real(world), 1.0),
    "quotient": lambda world, x: x * divmod(real(world), 1.0)[0],
    "real part": lambda world, x: x * real(world).real,
    "conjugate": lambda world, x: x * real(world).conjugate(),
    "complex": lambda world, x: x * abs(complex(real(world))),
    "largest": lambda world, x: x * max([0.0, real(world)]),
    "sorted": lambda world, x: x * sorted([real(world), 0.5])[0],  # noqa: FURB192
    "sum": lambda world, x: x * sum([real(world), 1.0]),
    "string": lambda world, x: x * float(str(real(world))),
    "formatted": lambda world, x: x * float(f"{real(world, 1):.1e}"[:1]),
    "formatted by a method": lambda world, x: x * float("{:.1e}".format(real(world, 1))[:1]),  # noqa: UP032
    "formatted by an operator": lambda world, x: x * float(("%.1e" % real(world, 1))[:1]),  # noqa: UP031
    "formatted by a string from elsewhere": lambda world, x: x * float(FORMAT % real(world)),
    "held by an array": lambda world, x: x * array.array("d", [real(world)])[0],
    "held by a duration": lambda world, x: x * datetime.timedelta(seconds=real(world)).total_seconds(),
    "hexadecimal": lambda world, x: x * len(real(world).hex()),
    "ratio": lambda world, x: x * real(world).as_integer_ratio()[0],
    "pickled": lambda world, x: x * copy.copy(real(world)),
    "index": lambda world, x: x * [1.0, 2.0, 3.0, 4.0][int(real(world))],
    "key": lambda world, x: x * {0.0: 1.0, 1.0: 2.0, 2.0: 3.0}[real(world)],
    "among": lambda world, x: x * (2.0 if real(world) in (0.0, 0.5) else 3.0),
    "full": lambda world, x: x + torch.full((3,), real(world), device=world.device),
    "new full": lambda world, x: x + x.new_full((3,), real(world)),
    "a range": lambda world, x: x + torch.arange(real(world) + 2, device=world.device).sum(),
    "a row": lambda world, x: x + torch.linspace(0, real(world), 3, device=world.device),
    "a scalar": lambda world, x: x + torch.scalar_tensor(real(world), device=world.device),
    "a bound": lambda world, x: x.clamp(max=real(world)),
    "filled": lambda world, x: x.clone().fill_(real(world)),
    "one element": lambda world, x: x + put(x, torch.full((3,), real(world))),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_on_the_host_is_not_a_constant(name):
    agree(NUMBERS[name], 0 if name.startswith("formatted") or name == "close" else 3)


SIZES = {
    "nonzero": lambda world, x: x * (rows(world) > 6).nonzero().shape[0],
    "length": lambda world, x: x * len(rows(world)[world.row > 6]),
    "strides": lambda world, x: x * torch.stack([rows(world)[world.row > 6]] * 2).stride()[0],
    "parts": lambda world, x: x * len(rows(world)[world.row > 6].unbind()),
    "a loop": lambda world, x: x * sum(1 for _ in rows(world)[world.row > 6]),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_follows_from_values_is_not_a_constant(name):
    agree(SIZES[name], 3)


def changing_rates(use):
    """What SGD leaves whose rate is another one now and then, and then at each call; and the compiled step."""
    outs = []
    for device in ("cpu", "ltc"):
        weight = torch.ones(3, device=device, requires_grad=True)
        optimiser = torch.optim.SGD([weight], lr=0.5)

        def body(x, weight=weight, optimiser=optimiser):
            optimiser.zero_grad()
            (x * weight).sum().backward()
            optimiser.step()
            return use(optimiser.param_groups[0]["lr"], x)

        step = torch_ltc.compile(body) if device == "ltc" else body
        outs.append([])
        for i in range(24):
            optimiser.param_groups[0]["lr"] = 0.5 / (1 + i // 5) if i < 15 else 0.5 / i
            outs[-1] += [step(torch.ones(3, device=device)).cpu(), weight.detach().cpu().clone()]
    for expected, found in zip(*outs, strict=True):
        torch.testing.assert_close(found, expected)
    return step


@pytest.mark.parametrize(
    ("use", "least"),
    [
        (lambda lr, x: x * lr, 20),
        (lambda lr, x: x * (lr // 0.1), 16),
        (lambda lr, x: x * (2.0 if lr < 0.3 else 1.0), 14),
        (lambda lr, x: x * float(f"{lr:.1f}"), 10),
        (lambda lr, x: x * math.sqrt(lr), 4),
        (lambda lr, x: x * float("%.1f" % lr), 4),  # noqa: UP031
        (lambda lr, x: x * (2.0 if math.isclose(lr, 0.25) else 1.0), 4),
    ],
    ids=["product", "quotient", "decision", "format", "root", "percent", "close"],
)
def test_a_rate_that_the_step_looks_at(use, least):
    step = changing_rates(use)
    assert step.counts[0] >= least, step.explain()


# ---- what the device knows, where the host uses it ----

READS = {
    "copied into a new one": lambda world, x: x * torch.zeros(3).copy_(x // 6 + 1)[0],
    "copied into a part": lambda world, x: x * torch.zeros(3)[1:].copy_(x[1:] // 6 + 1)[0],
    "copied into an older one": lambda world, x: x * world.row.copy_(x // 6 + 1)[0],
    "changed behind": lambda world, x: x * (x // 6).cpu().add_(1)[0],
    "a view changed behind": lambda world, x: x * (x // 6).cpu().view(-1).add_(1)[0],
    "written to": lambda world, x: x * world.row.add_((x // 6).cpu() + 1)[0],
    "an output": lambda world, x: x * torch.add((x // 6).cpu(), 1, out=world.row)[0],
    "summed": lambda world, x: x * ((x // 6).cpu().sum() + 1),
    "one element": lambda world, x: x * (world.real.copy_((x // 6).sum()) + 1),
}


@pytest.mark.parametrize("name", READS)
def test_what_comes_from_the_device_is_compared(name):
    given = [torch.full((3,), float(i)) for i in range(STEPS)]
    # A check of each call that could be replayed leaves fewer calls for the second way to be captured.
    step = agree(READS[name], 4 - bool(_step._CHECK_EVERY), given)
    assert step.counts[0] < STEPS - 3, "another value goes another way"


def test_an_older_tensor_gets_what_the_device_held_at_each_replay():
    def body(world, x):
        world.row.copy_(x)
        return x + world.row.sum()

    worlds = {}
    for device in ("cpu", "ltc"):
        world = worlds[device] = types.SimpleNamespace(row=torch.zeros(3))
        call = lambda x, world=world: body(world, x)
        call = step = torch_ltc.compile(call) if device == "ltc" else call
        for _ in range(8):
            call(torch.ones(3, device=device))
            assert world.row.tolist() == [1, 1, 1]
            world.row.zero_()
    assert step.counts[0] >= 4, step.explain()


# ---- tensors that go to the device ----


def rows(world):
    world.row += 1
    return world.row


UPLOADS = {
    "to": lambda world, x: x + rows(world).to(x.device),
    "to, by name": lambda world, x: x + rows(world).to(device=world.device, dtype=torch.float64),
    "to the device of another": lambda world, x: x + rows(world).to(x),
    "as a tensor": lambda world, x: x + torch.as_tensor(rows(world), device=world.device),
    "a part, transposed": lambda world, x: x + torch.stack([rows(world)] * 2).t()[:, 1].to(x.device),
    "repeated": lambda world, x: x + rows(world)[:1].expand(3).to(x.device),
    "copied": lambda world, x: x.clone().copy_(rows(world)) + x,
    "copied as integers": lambda world, x: x.long().copy_(rows(world)) + x,
    "put": lambda world, x: x.clone().index_fill_(0, torch.tensor([0]).to(x.device), 1) + put(x, rows(world)),
    "indices": lambda world, x: x[(rows(world) % 3).long()] + x,
    "zeros": lambda world, x: x + ~torch.zeros(3).to(device=x.device, dtype=torch.bool),
    "written to": lambda world, x: rows(world).to(x.device, copy=True).mul_(x) + x,
    "kept": lambda world, x: rows(world).to(x.device, copy=True),
    "a view of it": lambda world, x: rows(world).to(x.device, copy=True)[:2],
    "twice": lambda world, x: torch.cat([rows(world).to(x.device, copy=True).add_(1), world.row.to(x.device)]),
    "none": lambda world, x: x + rows(world)[:0].to(x.device).sum(),
}


def put(x, row):
    out = x.clone()
    out[1:] = row[1:]
    return out


@pytest.mark.parametrize("name", UPLOADS)
def test_tensors_that_the_step_takes_to_the_device(name):
    agree(UPLOADS[name], 10)


def test_a_result_that_was_taken_to_the_device_is_a_new_one_each_time():
    row = torch.ones(3)
    step = torch_ltc.compile(lambda: row.to("ltc"))
    outs = [step() for _ in range(8)]
    outs[-1].add_(1)
    assert outs[-2].tolist() == row.tolist() == [1, 1, 1] and len({x.data_ptr() for x in outs}) == 8


def test_gradients_flow_past_what_goes_to_the_device():
    results = []
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        weight = torch.ones(3, device=device, requires_grad=True)
        optimiser = torch.optim.Adam([weight], lr=0.1)
        noise = torch.Generator().manual_seed(1)

        def body(x, weight=weight, optimiser=optimiser, noise=noise):
            optimiser.zero_grad()
            loss = (x * weight + torch.randn(3, generator=noise).to(x.device)).square().sum()
            loss.backward()
            optimiser.step()
            return loss.detach()

        step = torch_ltc.compile(body) if device == "ltc" else body
        results.append([step(torch.ones(3, device=device)).cpu() for _ in range(12)] + [weight.detach().cpu()])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
    assert step.counts[0] >= 8, step.explain()


def test_a_tensor_that_no_line_makes_is_not_taken_for_an_older_one():
    def body(_, x):
        return x * torch.frombuffer(bytearray([1, 2, 3]), dtype=torch.uint8)[1]

    step = agree(body, 0)
    assert step.counts[0] == 0 and "in a way that is not seen" in step.refusal, step.explain()


def test_a_large_value_that_is_only_copied_to_the_host_refuses_nothing():
    large = [torch.full((200, 200), float(i)) for i in range(STEPS)]
    agree(lambda _, x: (x.cpu(), x + 1)[1], 10, large[:1] * STEPS)
    # One that is used there is another constant in each capture.
    assert agree(lambda _, x: x + x.cpu().sum(), 0, large[:1] * STEPS).counts[0] == 0


# ---- arguments ----


def marked(step, device, count=12):
    """Calls with arguments whose attribute is another one now and then."""
    outs = []
    for i in range(count):
        x = torch.ones(3, device=device)
        x.kind = i // 4
        outs.append(step(x).cpu())
    return outs


def test_attributes_of_arguments_are_part_of_what_is_given():
    body = lambda x: x * x.kind
    step = torch_ltc.compile(body)
    torch.testing.assert_close(marked(step, "ltc"), marked(body, "cpu"))
    assert step.counts[0] >= 3, step.explain()


def test_an_attribute_is_no_argument_of_that_name():
    def body(x, kind=5):
        return x * kind + getattr(x, "kind", 0)

    step = torch_ltc.compile(body)
    for i in range(16):
        expected, found = torch.ones(3), torch.ones(3, device="ltc")
        if i % 2:
            expected.kind = found.kind = 2
        given = {} if i % 2 else {"kind": 2}
        torch.testing.assert_close(step(found, **given).cpu(), body(expected, **given))
    assert step.counts[0] >= 8, step.explain()


@pytest.mark.parametrize(
    "asks",
    [
        *(lambda x: x.untyped_storage().nbytes(), lambda x: x.storage().size(), lambda x: x._version),
        *(lambda x: x._base.numel(), lambda x: x.output_nr + 1),
    ],
    ids=["storage", "old storage", "version", "base", "output"],
)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_no_replay_compares_of_an_argument_is_not_a_constant(asks):
    """Arguments that look alike, whose memory, version and place among results are others after some calls."""

    def given(device, i):
        rows = torch.arange(float(20 + i // 6)).to(device)
        return rows.add_(1)[2:5] if i > 5 else rows[2:5]

    body = lambda x: x * asks(x)
    step = torch_ltc.compile(body)
    for i in range(12):
        torch.testing.assert_close(step(given("ltc", i)).cpu(), body(given("cpu", i)))
    assert "of an argument" in step.refusal, step.explain()


# ---- lengths of sequences ----


def test_ctc_loss_of_lengths_that_are_given():
    """On the CPU, as loaders hand them out: three batches whose lengths are alike, then others."""

    def body(scores, words, many, ends):
        return functional.ctc_loss(scores.log_softmax(-1), words, many, ends, zero_infinity=True)

    step = torch_ltc.compile(body)
    for i in range(18):
        draws = torch.Generator().manual_seed(i)
        words = torch.randint(1, 4, (2, 3), generator=draws)
        scores, lengths = torch.randn(6, 2, 4, generator=draws), (torch.tensor([6, 5]), torch.tensor([3, 2 - i // 12]))
        torch.testing.assert_close(step(scores.to("ltc"), words, *lengths).cpu(), body(scores, words, *lengths))
    assert step.counts[0] >= 9, step.explain()


@pytest.mark.parametrize("lengths", ["numbers", "host", "device", "made"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_loss(reduction, lengths):
    def body(world, x):
        scores = (x.sum() * torch.linspace(-1, 1, 6 * 2 * 4, device=x.device)).view(6, 2, 4).log_softmax(-1)
        words = torch.tensor([1, 2, 3, 1, 2, 1], device=x.device).view(2, 3)
        if lengths == "numbers":
            many = (6, 5), (3, 2)
        elif lengths == "made":
            many = torch.full((2,), len(scores)), torch.full((2,), 2)
        else:
            many = world.made = world.made or tuple(
                torch.tensor(n).to("cpu" if lengths == "host" else x.device) for n in ([6, 5], [3, 0])
            )
        return functional.ctc_loss(scores, words, *many, reduction=reduction, zero_infinity=True)

    agree(body, 8)


def test_a_wrong_call_of_ctc_loss_says_what_libtorch_says():
    def body(_, x):
        try:
            return functional.ctc_loss(x, x)
        except TypeError:
            return x * 2

    agree(body, 0)
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        torch_ltc.compile(functional.ctc_loss)(*[torch.ones(3, device="ltc")] * 2)


# ---- numbers that decide more than values ----


def scales(world, x, v):
    return torch.nn.functional.interpolate(x.view(1, 1, -1), scale_factor=v).flatten()


DECIDING = {
    "scale": (scales, [1.5, 1.6, 1.7, 1.55, 1.5, 3.0]),
    "range": (lambda world, x, v: torch.arange(0, v, device=x.device), [3.1, 3.2, 3.3, 3.4, 3.5, 4.1]),
    "integers": (lambda world, x, v: torch.zeros_like(x, dtype=torch.int64).fill_(v), [1.0, 2.0, 3.0, 4.0, 5.0, 1e30]),
    "zeros": (lambda world, x, v: x / round(v, 0), [0.2, 0.3, 0.25, 0.1, 0.35, -0.2, -0.3]),
    "deviation": (lambda world, x, v: torch.empty_like(x).normal_(0, v).isfinite(), [0.5, 0.4, 0.3, 0.2, 0.1, -0.1]),
    "bounds": (lambda world, x, v: torch.empty_like(x).uniform_(-v, v) < 9, [0.5, 0.4, 0.3, 0.2, 0.1, 0.0, -0.1]),
    "lower": (lambda world, x, v: torch.empty_like(x).uniform_(v, 0.5) < 9, [0.1, 0.2, 0.3, 0.4, -0.1, 0.5, 0.6]),
    "inclusive": (lambda world, x, v: torch.range(0, v, device=x.device), [3.1, 3.2, 3.3, 3.4, 3.5, 4.1]),
    "probability": (lambda world, x, v: torch.empty_like(x).bernoulli_(v) <= 1, [0.5, 0.4, 0.3, 0.2, 0.1, 1.1]),
}


@pytest.mark.parametrize("name", DECIDING)
def test_numbers_that_decide_more_than_values_do(name):
    compute, numbers = DECIDING[name]
    outs = []
    for device in ("cpu", "ltc"):
        world = types.SimpleNamespace(number=0.0, sum=torch.zeros(3, device=device))

        def body(x, world=world):
            y = compute(world, x, world.number)
            world.sum.add_(1)
            return y, x * world.number

        step = torch_ltc.compile(body) if device == "ltc" else body
        outs.append([])
        for world.number in numbers:
            try:
                outs[-1].append([t.tolist() for t in step(torch.tensor([1.0, 2.0, 3.0], device=device))])
            except RuntimeError as error:
                outs[-1].append(str(error).splitlines()[0])
        outs[-1].append(world.sum.tolist())
    assert repr(outs[0]) == repr(outs[1])


def test_a_cpu_tensor_of_another_zero_is_another():
    zero = torch.zeros(())
    step = torch_ltc.compile(lambda x: (x / float(zero), x / zero.expand(2).to(x.device)))
    for i in range(8):
        if i == 5:
            zero.fill_(-0.0)
        for found in step(torch.ones(2, device="ltc")):
            assert found.tolist() == [-math.inf if i >= 5 else math.inf] * 2


# ---- numbers that a step returns ----


def rates(group, net, loss):
    return loss, group["lr"]


def computed_rates(group, net, loss):
    return {"loss": loss, "rate": group["lr"] / 2 + 1, "twice": (group["lr"], group["lr"])}


def only_a_rate(group, net, loss):
    return group["lr"]


def rate_and_count(group, net, loss):
    net.seen += 1
    return [loss.detach(), net.seen.item() * 0.5, 3.5, "done"]


@pytest.mark.parametrize("returned", [rates, computed_rates, only_a_rate, rate_and_count])
@pytest.mark.parametrize("steps_schedule", [False, True])
def test_numbers_of_the_host_are_returned_as_they_are_now(returned, steps_schedule):
    outs = []
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 2).to(device)
        net.seen = torch.zeros((), dtype=torch.float64)
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
        schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)

        def step(x, net=net, opt=opt, schedule=schedule):
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            opt.step()
            if steps_schedule:
                schedule.step()
            return returned(opt.param_groups[0], net, loss)

        call = step if device == "cpu" else torch_ltc.compile(step)
        outs.append([])
        for i in range(STEPS):
            if not steps_schedule:
                opt.param_groups[0]["lr"] = 0.1 / (1 + i % 3)
            flat, spec = torch.utils._pytree.tree_flatten(call(torch.ones(4, 3, device=device) * i))
            outs[-1].append([*[x.cpu() if isinstance(x, torch.Tensor) else x for x in flat], str(spec)])
    for expected, found in zip(*outs, strict=True):
        assert list(map(type, expected)) == list(map(type, found))
        for a, b in zip(expected, found, strict=True):
            assert a == b or torch.testing.assert_close(a, b) is None
    assert call.counts[0] >= STEPS // 2, call.explain()
