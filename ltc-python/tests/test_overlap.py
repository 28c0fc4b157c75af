"""Programs that could take every processor run on one beside their caller, each in a process of its own, with full fusion."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
import torch, torch_ltc
torch.set_num_threads(os.cpu_count())
torch.use_deterministic_algorithms(sys.argv[1] == "deterministic")
t = torch.arange(100_000.0).reshape(100, 1000)
x = t.to("ltc")
for _ in range(48):
    x = (x * 0.5).cos()
    torch_ltc.mark_step()
    if sys.argv[1] == "awaited":
        torch_ltc.wait_device_ops()
    else:
        time.sleep(0.01)  # something else to do, for long enough beside any number of processors
for _ in range(48):
    t = (t * 0.5).cos()
torch.testing.assert_close(x.cpu(), t)
print(torch_ltc.metrics.counter_value("OverlappedComputation") or 0)
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nothing could run beside anything")
@pytest.mark.parametrize("how", ["busy", "deterministic", "awaited", "LTC_OVERLAP=0", "LTC_NARROW=0", "LTC_FUSION=exact"])
def test_overlap_is_tried_where_the_caller_is_busy_and_bits_may_differ(how):
    name, _, value = how.partition("=")
    env = {**os.environ, "LTC_FUSION": "1", **({name: value} if value else {})}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) > 0) == (how == "busy"), done.stdout
