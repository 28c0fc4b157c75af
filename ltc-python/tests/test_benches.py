"""The paired benchmark measures, and says why it cannot where a way does not work."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

PAIRED = Path(__file__).parent.parent / "benches" / "paired.py"


@pytest.mark.timeout(300)
def test_a_row_for_every_way(tmp_path):
    out = tmp_path / "rows.json"
    command = [
        sys.executable,
        str(PAIRED),
        "mlp",
        "gelu, 16",
        "--ways",
        "ltc,none",
        "--seconds",
        "0.1",
        "--read",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for rows in json.loads(out.read_text())["cases"].values():
        assert {"first", "steady", "eager", "ratio"} <= rows["ltc"].keys() and rows["ltc"]["fallbacks"] == 0
        assert "no such way" in rows["none"]["error"]
    assert "not available" in done.stdout


def _paired():
    spec = importlib.util.spec_from_file_location("paired", PAIRED)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_first_steps_are_those_of_the_process_in_the_middle(monkeypatch):
    paired, firsts = _paired(), iter([9.0, 1.0, 3.0])
    child = lambda case, way, options, seconds: {"first": next(firsts), "eager_first": 1.0, "ratio": seconds}
    monkeypatch.setattr(paired, "in_child", child)
    row = paired.row_of("mlp", "ltc", SimpleNamespace(seconds=0.5, firsts=3))
    assert row == {"first": 3.0, "eager_first": 1.0, "ratio": 0.5}


@pytest.mark.parametrize("read", [False, True])
def test_a_number_of_each_step_is_read_only_if_asked_for(monkeypatch, read):
    monkeypatch.syspath_prepend(str(PAIRED.parent))
    runner, reads = _paired().Runner("gelu, 16", "eager", read), []
    result = SimpleNamespace(sum=lambda: SimpleNamespace(item=lambda: reads.append(1)))
    runner.step = lambda: (result,)
    runner.block(7)
    assert len(reads) == (7 if read else 0)
