"""Fused kernels on a GPU: their text is compiled for the host by the stand-in's NVRTC, and launched as on a GPU."""

import os
import subprocess
import sys

import pytest
import stand_in

HEAD = """
import stand_in, torch, torch_ltc, time
from torch import nn
torch_ltc._ltc.set_place_key("Fake")
GPU = "ltc:1"

def kernels():
    return [name for name in stand_in.launches() if name.startswith(("pointwise_", "row"))]
"""


def child(text, **environment):
    path = os.pathsep.join([os.path.dirname(stand_in.__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", HEAD + text],
        env={**os.environ, "PYTHONPATH": path, "LTC_FUSION": "1", "LTC_JIT": "now", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(), done.stderr


def test_pointwise_kernels_have_the_bits_of_the_cpus_and_others_are_close():
    text = """
x = torch.randn(37, 50)
half = torch.randn(37, 50).half()
bits = [
    lambda v, h: nn.functional.silu(v * 1.5 + 0.25).tanh(),
    lambda v, h: (v.exp() + 1).log() * v.sin(),
    lambda v, h: (h * 2 + h.abs()).float() - v,
    lambda v, h: torch.where(v > 0, v.sqrt(), v.t().contiguous().t() / 3),
    lambda v, h: (v.to(torch.int32) * 3 + 1).clamp(-2, 5),
]
close = [
    lambda v, h: torch.softmax(v * 2, 1),
    lambda v, h: nn.functional.layer_norm(v, (50,)).sum(0),
    lambda v, h: (v - v.mean(1, keepdim=True)).square().amax(0),
    lambda v, h: v.log_softmax(1).logsumexp(1) + 1,
    lambda v, h: torch.randn(3, 70000, generator=torch.Generator().manual_seed(1)).to(v.device).exp().sum(1),
]
for calls, same in ((bits, torch.equal), (close, lambda a, b: torch.allclose(a, b, rtol=1e-5, atol=1e-6))):
    for call in calls:
        stand_in.reset()
        got = call(x.to(GPU), half.to(GPU)).cpu()
        want = call(x.to("ltc:0"), half.to("ltc:0")).cpu()
        print(same(got, want) and got.dtype == want.dtype, len(kernels()) > 0)
"""
    printed, _ = child(text)
    assert printed == ["True"] * 20


TRAIN = """
def train(device, steps=12, rows=lambda step: 6):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        x = torch.linspace(-1, 1, 8 * rows(step)).reshape(-1, 8).sin().to(device)
        y = (torch.arange(rows(step)) % 5).to(device)
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.detach())
        torch_ltc.mark_step()
    return torch.stack([loss.cpu() for loss in losses])
"""


@pytest.mark.parametrize("rows", ["6", "3 + step % 4"], ids=["one size", "many sizes"])
def test_networks_train_with_fused_kernels(rows):
    text = f"""
rows = lambda step: {rows}
got, want = train(GPU, rows=rows), train("cpu", rows=rows)
print(torch.allclose(got, want, rtol=1e-4, atol=1e-5), len(set(kernels())) >= 4)
"""
    printed, _ = child(TRAIN + text)
    assert printed == ["True", "True"]


def test_no_step_waits_for_the_compiler():
    """It takes three seconds here; steps run by libtorch's kernels meanwhile, and by ours afterwards."""
    text = """
train(GPU, steps=2)
begin = time.monotonic()
before = train(GPU)
took, cold = time.monotonic() - begin, len(kernels())
deadline = time.monotonic() + 120
while not kernels() and time.monotonic() < deadline:
    after = train(GPU, steps=12)
print(cold == 0, torch.allclose(before, after, rtol=1e-4, atol=1e-5), len(kernels()) > 0)
"""
    printed, _ = child(TRAIN + text, LTC_JIT="1", DRY_CUDA_COMPILE_SECONDS="3")
    assert printed == ["True", "True", "True"]


def test_without_a_compiler_libtorchs_kernels_run():
    text = """
print(torch.allclose(train(GPU), train("cpu"), rtol=1e-5, atol=1e-6), len(kernels()))
"""
    for environment in ({"DRY_CUDA_COMPILE_SECONDS": "-1"}, {"LTC_JIT": "0"}, {"LTC_FUSION": "exact"}):
        printed, _ = child(TRAIN + text, **environment)
        assert printed == ["True", "0"], environment


def test_code_is_kept_on_disk(tmp_path):
    text = """
print(len(kernels()), torch.allclose(train(GPU), train("cpu"), rtol=1e-4, atol=1e-5), len(kernels()) > 0)
"""
    first, _ = child(TRAIN + text, LTC_CUDA_CACHE=str(tmp_path))
    files = sorted(tmp_path.iterdir())
    assert first == ["0", "True", "True"] and files
    # Nothing is compiled any more: the compiler would fail.
    again, _ = child(TRAIN + text, LTC_CUDA_CACHE=str(tmp_path), DRY_CUDA_COMPILE_SECONDS="-1")
    assert again == first and sorted(tmp_path.iterdir()) == files
    # Files that are damaged are not used, and written anew.
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    mended, _ = child(TRAIN + text, LTC_CUDA_CACHE=str(tmp_path))
    assert mended == first


def test_a_first_program_without_elements_leaves_the_compiler_where_it_is():
    """Where the compiler is asked for is said by the settings, whichever program comes first."""
    text = """
empty = torch.zeros(2, 0).to(GPU)
print((empty * 2 + 1).tolist() == [[], []])
x = torch.arange(3.0)
print(torch.allclose((x.to(GPU) * 2 + 1).exp().cpu(), (x * 2 + 1).exp()), len(kernels()) > 0)
"""
    printed, _ = child(text)
    assert printed == ["True"] * 3


def test_a_launch_that_fails_names_its_operator():
    text = """
x = torch.ones(64).to(GPU)
call = lambda: (x * 2).tanh() + 1
call().cpu()
stand_in.fail_launch(1)
try:
    call().cpu()
except torch.AcceleratorError as error:
    print("aten::mul" in str(error))
"""
    printed, _ = child(text, LTC_CUDA_SYNC="1")
    assert printed == ["True"]
