"""Programs that could take every processor run on one beside their caller, each in a process of its own, with full
fusion."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
import torch, torch_ltc
torch.set_num_threads(os.cpu_count())
how = sys.argv[1]
torch.use_deterministic_algorithms(how == "deterministic")
t = torch.arange(100_000.0).reshape(100, 1000) / 1e5
x = t.to("ltc")
w = 0.9 * torch.eye(1000)
y, v = torch.ones(2).to("ltc"), w.to("ltc")
products = how in ("records", "awaited")
for _ in range(48):
    # Bits of products depend on threads, so what the caller recorded decides for them; clocks decide for our kernels.
    x = x @ v if products else x * 0.5 + 0.25
    torch_ltc.mark_step()
    if how == "awaited":
        torch_ltc.wait_device_ops()
    elif how == "records":
        for _ in range(1500): y + 1
    else:
        time.sleep(0.01)  # something else to do, for long enough beside any number of processors
for _ in range(48):
    t = t @ w if products else t * 0.5 + 0.25
torch.testing.assert_close(x.cpu(), t)
print(torch_ltc.metrics.counter_value("OverlappedComputation") or 0)
"""

HOWS = ["busy", "records", "deterministic", "awaited", "LTC_OVERLAP=0", "LTC_SINGLE_THREAD_SMALL=0", "LTC_FUSION=exact"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nothing could run beside anything")
@pytest.mark.parametrize("how", HOWS)
def test_overlap_is_tried_where_the_caller_is_busy(how):
    name, _, value = how.partition("=")
    env = {**os.environ, "LTC_FUSION": "1", **({name: value} if value else {})}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) > 0) == (how in ("busy", "records", "deterministic")), done.stdout
