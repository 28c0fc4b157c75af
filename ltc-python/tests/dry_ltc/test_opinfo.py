"""The short list of the operator database on a GPU, against the CPU. What differs stands in
`opinfo/expected_on_cuda.toml`, which expires."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = [ROOT / "opinfo" / name for name in ("expected_failures.toml", "expected_on_cuda.toml")]

#: Kernels of libtorch's; and of ours, which takes minutes of compiling.
WAYS = {"recorded": {"LTC_FUSION": "0"}, "fused": {"LTC_FUSION": "1", "LTC_JIT": "now"}}


def compared(*words, **environment):
    """What `python -m opinfo` says when it compares the GPU with the CPU."""
    command = [sys.executable, "-m", "opinfo", "--quick", "--device", "ltc:1", *map(str, words)]
    command += [word for path in LISTS for word in ("--expected", str(path))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("way", WAYS if "DRY_CUDA_LONG" in os.environ else ["recorded"])
def test_the_short_list_passes_on_a_gpu(way, tmp_path):
    status, said = compared("--timeout", "600", "--results", tmp_path / "quick.jsonl", **WAYS[way])
    assert status == 0, said
    rows = [json.loads(line) for line in (tmp_path / "quick.jsonl").read_text().splitlines()]
    assert len(rows) >= 60 and sum(row["values"] for row in rows) > 900
