"""The paired benchmark measures, and says why it cannot where a way does not work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PAIRED = Path(__file__).parent.parent / "benches" / "paired.py"


@pytest.mark.timeout(300)
def test_a_row_for_every_way(tmp_path):
    out = tmp_path / "rows.json"
    command = [sys.executable, str(PAIRED), "mlp", "gelu, 16", "--ways", "ltc,none", "--seconds", "0.1", "--read", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for rows in json.loads(out.read_text())["cases"].values():
        assert {"first", "steady", "eager", "ratio"} <= rows["ltc"].keys() and rows["ltc"]["fallbacks"] == 0
        assert "no such way" in rows["none"]["error"]
    assert "not available" in done.stdout
