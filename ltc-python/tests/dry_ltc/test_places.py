"""Programs on `ltc:1`, whose values are on `cuda:0`, against the CPU; and what of them is put on the GPU, and when."""

import copy
import os
import re
import subprocess
import sys
import time

import pytest
import stand_in
import torch
import torch_ltc
from small_networks import NETWORKS, convolutional, train
from torch import nn

GPU = "ltc:1"


def same(got, want):
    got = [got] if isinstance(got, torch.Tensor) else list(got)
    want = [want] if isinstance(want, torch.Tensor) else list(want)
    assert [g.shape for g in got] == [w.shape for w in want] and [g.dtype for g in got] == [w.dtype for w in want]
    return all(torch.equal(g.cpu(), w) for g, w in zip(got, want, strict=True))


def a(device):
    return torch.arange(-6.0, 6.0).reshape(3, 4).to(device)


def written_views(d):
    x = a(d)
    x.add_(1).mul_(x)[1:, ::2].sub_(3)
    x.t().clamp_(min=-2)
    y = x.clone()
    y[:, 1] = 7
    return [x, y, x.view(torch.int32), y.expand(2, 3, 4)]


def casts_and_broadcasts(d):
    x = a(d)
    half = x.half() + torch.ones(4, dtype=torch.half).to(d)
    return [half, x.int() // 2, x.to(torch.bfloat16) * 2, x + x[:1] - x[:, :1], x > 0, x * torch.tensor(2.0)]


def reductions(d):
    x = a(d)
    return [x.sum(), x.mean(0), x.amax(1), *x.max(1), x.argmin(), x.norm(), *torch.var_mean(x, 1), x.cumsum(1)]


def indices(d):
    x, at = a(d), torch.tensor([0, 2, 0]).to(d)
    x.index_add_(0, at, torch.ones(3, 4).to(d))
    return [x, x.gather(1, at.view(3, 1)), x[at], x.scatter_add(0, at.view(1, 3), x), torch.where(x > 0, x, -x)]


def layers(d):
    x = a(d)
    image = torch.arange(2.0 * 3 * 8 * 8).reshape(2, 3, 8, 8).to(d) / 100
    return [
        torch.softmax(x, 1),
        nn.functional.layer_norm(x, (4,)),
        nn.functional.gelu(x),
        torch.addmm(x, x[:, :3], x),
        torch.cat([x, x]),
        nn.functional.max_pool2d(image, 2),
        nn.functional.batch_norm(image, None, None, training=True),
        nn.functional.cross_entropy(x, torch.tensor([0, 1, 2]).to(d)),
    ]


def sizes_that_are_values(d):
    x = a(d).abs()
    return [x.nonzero(), x[x > 2], torch.unique(x), torch.tensor([x.sum().item(), float(x[0, 0])])]


@pytest.mark.parametrize(
    "case",
    [written_views, casts_and_broadcasts, reductions, indices, layers, sizes_that_are_values],
    ids=lambda case: case.__name__,
)
def test_values_are_the_cpus(case):
    assert same(case(GPU), case("cpu"))


def test_calls_whose_sizes_are_values_run_at_once_where_the_values_are():
    x = a(GPU)
    torch_ltc.mark_step()
    torch_ltc.metrics.reset()
    torch.ltc.synchronize(1)
    stand_in.reset()
    kept = x.abs().nonzero()
    assert torch_ltc.metrics.counter_value("aten::nonzero") == 1
    assert stand_in.count("bytes_down") < 64, "what it takes did not go over the host"
    assert kept.shape[1] == 2


def strided(d):
    image = torch.arange(2.0 * 3 * 8 * 8).reshape(2, 3, 8, 8).to(d)
    last, x = image.to(memory_format=torch.channels_last), a(d)
    nets = torch.ones(4, 3, 3, 3).to(d)
    return [
        nn.functional.conv2d(last, nets),
        nn.functional.group_norm(last, 3),
        nn.functional.pad(last, (1, 1, 1, 1), mode="reflect"),
        nn.functional.pixel_unshuffle(last, 2),
        torch.roll(last, 1, 2),
        last.to(torch.uint8) + 1.5,
        x.t().to(torch.float64) + 1,
        x.t() > 0,
        torch.native_layer_norm(x.half(), (4,), None, None, 1e-5)[1],
        nn.functional.max_pool2d(last, 2),
    ]


def test_layouts_are_those_of_cuda():
    """Asked of the host code of CUDA's kernels, which differ from the CPU's."""
    got, want = strided(GPU), strided("cuda")
    assert [(g.dtype, g.shape, g.stride()) for g in got] == [(w.dtype, w.shape, w.stride()) for w in want]
    cpu = strided("cpu")
    assert [w.stride() for w in want] != [c.stride() for c in cpu], "some are not the CPU's"


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("compiled", [False, True], ids=["recorded", "compiled"])
def test_networks_train_as_on_the_cpu(network, compiled):
    losses, parameters, call = train(network, GPU, compiled)
    # Convolutions of CUDA's are another algorithm's there, attention is another kernel, and recurrent layers are made
    # of cells.
    close = {"rtol": 0, "atol": 0} if network == "perceptron" else {"rtol": 1e-5, "atol": 1e-5}
    want, wanted, _ = train(network, "cpu")
    torch.testing.assert_close(losses, want, **close)
    for p, q in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(p, q, **close)
    if compiled:
        assert call.counts[0] >= 4, call.explain()


def looped(reads, steps=12):
    torch.manual_seed(0)
    model = nn.Linear(4, 4).to(GPU)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 4).to(GPU)
    for step in range(steps + 4):
        if step == 4:
            torch.ltc.synchronize(1)
            stand_in.reset()
        opt.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        torch_ltc.mark_step()
        if reads:
            loss.item()
    torch_ltc.wait_device_ops()
    return steps


def test_a_loop_that_reads_nothing_waits_for_the_run_ahead_alone():
    """The host is kept from running far ahead by waiting for old programs, and waits for nothing else."""
    steps = looped(reads=False)
    assert stand_in.count("blocking_copies") == 0
    # It waits at least for what is more than may be on its way.
    assert 0 < stand_in.count("event_waits") <= steps
    assert stand_in.count("stream_waits") + stand_in.count("device_waits") <= 2, "the wait at its end"


def test_a_loop_that_reads_its_loss_waits_once_a_step_for_it():
    steps = looped(reads=True)
    assert stand_in.count("blocking_copies") == 0
    assert stand_in.count("event_waits") <= 2 * steps
    assert stand_in.count("bytes_down") == 4 * steps


def test_uploads_wait_for_nothing_and_take_the_values_there_were():
    torch.ltc.synchronize(1)
    stand_in.reset()
    given = torch.ones(100)
    x = given.to(GPU)
    given.fill_(2)
    assert stand_in.waits() == 0
    assert x.sum().item() == 100


def test_what_is_uploaded_stays_until_it_has_arrived():
    """Memory of the host that a transfer reads is another one's only afterwards."""
    arrived = [torch.full((1000,), float(i)).to(GPU) for i in range(20)]
    assert [x.unique().tolist() for x in arrived] == [[float(i)] for i in range(20)]


def test_an_event_of_an_idle_gpu_is_of_the_time_when_it_is_recorded():
    x = torch.ones(8).to(GPU)
    (x * 2 + 1).cpu()
    torch.ltc.synchronize(1)
    time.sleep(2)
    begin, end = (torch.Event("ltc", enable_timing=True) for _ in range(2))
    begin.record(torch.ltc.current_stream(1))
    y = x * 2
    end.record(torch.ltc.current_stream(1))
    torch_ltc.mark_step()
    end.synchronize()
    assert y.sum().item() == 16
    assert 0 <= begin.elapsed_time(end) < 1900


def test_an_event_is_reached_when_the_gpu_has_passed_it():
    x = torch.ones(8).to(GPU)
    (x * 2 + 1).cpu()  # Layouts are asked for once.
    torch.ltc.synchronize(1)
    stand_in.reset()
    begin, end = (torch.Event("ltc", enable_timing=True) for _ in range(2))
    x = x * 2
    begin.record(torch.ltc.current_stream(1))
    torch_ltc.mark_step()
    x = x * 2
    end.record(torch.ltc.current_stream(1))
    torch_ltc.mark_step()
    after = x + 1
    torch_ltc.mark_step()
    # Once the last of three programs is on its way, what is not reached is the GPU's to reach.
    deadline = time.monotonic() + 60
    while stand_in.count("launches") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    # Work that is late is done when somebody waits, and one work more when somebody asks.
    assert end.query() is not stand_in.LATE
    begin.synchronize()
    assert begin.query()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    assert after.sum().item() == 40


def test_memory_is_told():
    torch.ltc.empty_cache()
    before = torch.ltc.memory_allocated(1)
    x = torch.ones(1 << 20).to(GPU)
    assert torch.ltc.memory_allocated(1) - before == 4 << 20
    free, total = torch.ltc.mem_get_info(1)
    assert 0 < free < total
    assert torch.ltc.get_device_name(1) == "cuda:0" and torch_ltc._ltc.device_place(0) == "cpu"
    del x


def test_generators_are_cudas():
    torch.ltc.manual_seed_all(5)
    state = torch.ltc.get_rng_state(1)
    assert state.numel() == 16, "a seed and an offset"
    first = torch.rand(5, device=GPU)
    second = torch.rand(5, device=GPU)
    torch.ltc.set_rng_state(state, 1)
    assert same(torch.rand(5, device=GPU), first.cpu()) and not same(first, second.cpu())
    own = torch.Generator(device=GPU).manual_seed(7)
    drawn = torch.randn(4, device=GPU, generator=own)
    assert own.get_offset() > 0
    own.set_offset(0)
    assert same(torch.randn(4, device=GPU, generator=own), drawn.cpu())
    kept = nn.functional.dropout(torch.ones(1000).to(GPU), 0.5)
    assert set(kept.unique().tolist()) == {0.0, 2.0}


def test_a_failed_allocation_is_one_error_and_nothing_is_lost():
    x = torch.ones(1 << 10).to(GPU)
    torch.ltc.synchronize(1)
    torch.ltc.empty_cache()
    # libtorch gives its own kept memory back and tries once more before it says so.
    stand_in.fail_allocation(1)
    y = torch.ones(1 << 24).to(GPU)
    stand_in.fail_allocation(0)
    assert (x + 1).sum().item() == 2 << 10
    too_much = x.expand(1 << 22, 1 << 10) + 1
    with pytest.raises(torch.OutOfMemoryError):
        too_much.sum().item()
    assert y[:3].sum().item() == 3 and (x * 3).sum().item() == 3 << 10


def child(text, **environment):
    """What a program prints in a process of its own, and how it ends."""
    head = "import stand_in, torch, torch_ltc\n"
    path = os.pathsep.join([os.path.dirname(stand_in.__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-c", head + text],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


NO_MEMORY = """
torch_ltc._ltc.set_place_key("Fake")
def said(call):
    try:
        call()
    except torch.OutOfMemoryError as error:
        return str(error)

def step():
    x = torch.ones(1 << 20).to("ltc:1")
    large = x.expand(6, 1 << 20) * 2  # line of the largest
    small = x + 1
    y = large.exp()
    return ((y + large) * small - x).sum()

found = said(lambda: step().item())
assert "CUDA out of memory. Tried to allocate" in found, found
head, largest = found.split("the largest values were:")
print(largest)
assert said(lambda: torch.ones(1 << 25).to("ltc:1")), "of an upload"
x = torch.ones(1 << 22).to("ltc:1")
assert said(lambda: [x.nonzero() for _ in range(2)]), "of what runs at once"
assert (x[:4] * 3).sum().item() == 12
torch.ltc.synchronize(1)
# Memory that libtorch keeps is given back, and asked for once more, before it says so.
stand_in.fail_allocation(1)
assert (x[:3].exp2() + 1).sum().item() == 9
"""


def test_no_memory_names_the_largest_values_and_where_they_were_made():
    done = child(NO_MEMORY, DRY_CUDA_MEMORY="64", LTC_FUSION="0")
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.strip().splitlines()
    assert re.fullmatch(
        r"24.0 MiB: aten::mul.Tensor, f32\[6, ?1048576\], recorded at <string>:12 in step", first.strip()
    )
    assert "4.0 MiB: an input, f32[1048576]" in "\n".join(others), done.stdout
    assert sum("aten::add.Tensor" in line and ":13 in step" in line for line in others) == 1, done.stdout


LOSE = """
x = torch.ones(4).to("ltc:1")
y = (x + 1) * 2  # its layouts are asked for
torch.ltc.synchronize(1)
stand_in.fail_launch(2)
y = (x + 1) * 2
torch_ltc.mark_step()
for _ in range(2):
    try:
        y.cpu()
    except torch.AcceleratorError as error:
        print(str(error).replace(chr(10), " "))
assert (torch.ones(2).to("ltc:0") + 1).sum().item() == 4
print("goes on")
"""


def test_a_lost_gpu_says_so_each_time_and_other_devices_go_on():
    done = child(LOSE)
    assert done.returncode == 0, done.stderr
    first, second, _ = done.stdout.splitlines()
    assert "has to be started again" in first and "has to be started again" in second


def test_waiting_after_each_step_tells_which_failed():
    done = child(LOSE, LTC_CUDA_SYNC="1")
    assert done.returncode == 0, done.stderr
    assert "aten::mul" in done.stdout.splitlines()[0], done.stdout


def test_a_forked_child_is_told_to_be_spawned():
    fork = """
import os
x = torch.ones(4).to("ltc:1")
torch.ltc.synchronize(1)
if os.fork() == 0:
    try:
        torch.ones(4).to("ltc:1").sum().item()
    except RuntimeError as error:
        print("spawn" in str(error), flush=True)
    os._exit(0)
os.wait()
x.cpu()
print("goes on")
"""
    done = child(fork)
    assert done.returncode == 0 and done.stdout.splitlines() == ["True", "goes on"], done.stdout + done.stderr


def test_a_gpu_that_is_not_there_is_an_error_when_the_device_is_set_up():
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    for places, words in (("cuda:0", "CUDA has 0 devices"), ("gpu", "expected a number")):
        command = [sys.executable, "-c", "import torch_ltc"]
        done = subprocess.run(command, env={**environment, "LTC_DEVICES": places}, capture_output=True, text=True)
        assert done.returncode != 0 and words in done.stderr, done.stderr
    command = [sys.executable, "-c", "import torch_ltc"]
    done = subprocess.run(command, env={**os.environ, "LTC_DEVICES": "cuda:7"}, capture_output=True, text=True)
    assert done.returncode != 0 and "there is no cuda:7: CUDA has 2 devices" in done.stderr, done.stderr


def test_models_keep_their_values_from_place_to_place():
    model = convolutional()
    expected = copy.deepcopy(model.state_dict())
    moved = model.to(GPU).to("ltc:0").to(GPU).to("cpu")
    assert all(torch.equal(moved.state_dict()[k], v) for k, v in expected.items())
    with stand_in.shadow():
        cuda = torch.arange(4.0).cuda() + 1
    assert same(cuda.to(GPU) * 2, (torch.arange(4.0) + 1) * 2), "what was on the user's stream came first"
