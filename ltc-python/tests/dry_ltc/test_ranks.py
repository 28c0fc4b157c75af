"""`torch.distributed` between devices whose values are on GPUs: NCCL's real host code in libtorch, over a stand-in of
NCCL (`tests/cuda/nccl.cpp`) and of CUDA. Ranks are processes that run the cases of `rank_*.py`, which compare with gloo
on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


def ranks(file, case, tmp_path, world=2, **settings):
    """Runs a case in fresh processes; each one's exit code and output."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "LTC_DEVICES": "cuda:0,cpu", "TMPDIR": str(tmp_path), **settings}
    command = [sys.executable, "-W", "ignore", str(TESTS / file), case, str(tmp_path / f"store-{case}")]
    everything = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": env}
    running = [subprocess.Popen([*command, str(rank), str(world)], **everything) for rank in range(world)]
    try:
        outs = [process.communicate(timeout=170)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [(process.returncode, out) for process, out in zip(running, outs, strict=True)]


FILES = {
    "rank_calls.py": ["reductions", "shapes", "movements", "no_messages", "groups"],
    "rank_training.py": ["ddp", "ddp_compiled", "ddp_more", "sharded"],
    "rank_order.py": ["cuts", "other_first"],
}
#: Where tensors go around, or ranks leave others out.
OF_THREE = ["movements", "groups", "cuts"]


@pytest.mark.parametrize("file,case", [(file, case) for file, cases in FILES.items() for case in cases])
@pytest.mark.timeout(200)
def test_ranks_agree_with_the_cpu(file, case, tmp_path):
    for rank, (code, out) in enumerate(ranks(file, case, tmp_path, 3 if case in OF_THREE else 2)):
        assert code == 0 and out.endswith("content\n"), f"rank {rank} ended with {code}:\n{out[-3000:]}"
