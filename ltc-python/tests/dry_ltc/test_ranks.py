"""`torch.distributed` between devices whose values are on GPUs: NCCL's real host code in libtorch, over a stand-in of
NCCL (`tests/cuda/nccl.cpp`) and of CUDA. Ranks are processes that run the cases of `rank_*.py`, which compare with gloo
on the CPU."""

import os
import sys
from pathlib import Path

import pytest
from start_ranks import are_content, ended

TESTS = Path(__file__).parent.parent

FILES = {
    "rank_calls.py": ["reductions", "shapes", "movements", "no_messages", "groups"],
    "rank_training.py": ["ddp", "ddp_compiled", "ddp_more", "sharded"],
    "rank_order.py": ["cuts", "other_first", "leaves", "destroys"],
}
#: Where tensors go around, or ranks leave others out.
OF_THREE = ["movements", "groups", "cuts"]


@pytest.mark.parametrize("file,case", [(file, case) for file, cases in FILES.items() for case in cases])
@pytest.mark.timeout(200)
def test_ranks_agree_with_the_cpu(file, case, tmp_path):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "LTC_DEVICES": "cuda:0,cpu", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", TESTS / file, case, tmp_path / f"store-{case}"]
    are_content(ended(command, 3 if case in OF_THREE else 2, env))
