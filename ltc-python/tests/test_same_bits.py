"""Training ends with the same bits in every run of a program, as it does with eager PyTorch on the CPU: no clock
decides any. The long form is `benches/same_bits.py`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benches"))
import same_bits


@pytest.mark.parametrize("way", ["recorded", "compiled"])
@pytest.mark.parametrize("network", ["lenet", "gpt"])
def test_three_runs_end_with_the_same_bits(network, way, monkeypatch):
    monkeypatch.setenv("LTC_FUSION", "1")
    hashes = same_bits.runs(network, way, steps=40, processes=3)
    assert len(hashes) == 1, hashes
