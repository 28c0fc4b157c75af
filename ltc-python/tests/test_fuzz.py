"""The fuzzer's short form: random programs agree, kept ones too, and planted mistakes are found and shrunk."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from fuzz import __main__ as fuzz
from fuzz import program


@pytest.fixture(scope="module")
def children():
    several = fuzz.Children(60.0)
    yield several
    several.close()


@pytest.mark.timeout(300)
def test_random_programs_agree_and_half_of_the_compiled_calls_are_replayed(children):
    totals, findings = fuzz.campaign(240, 7, count=12, say=lambda text: None, shrinking=10.0, children=children)
    assert not findings, "\n".join(f"{kind}: {what}\n{text}" for kind, what, text in findings)
    assert totals["programs"] > 10 and totals["replayed"] * 2 >= totals["calls"] > 50, totals


@pytest.mark.timeout(120)
@pytest.mark.parametrize("file", sorted(fuzz.FOLDER.glob("*.txt")), ids=lambda f: f.stem)
def test_kept_programs_agree(children, file):
    text = file.read_text()
    _, got = children.of(text).ask({"program": text})
    # What is open still differs: else it is to lose its prefix.
    assert (got["outcome"] == "same") != file.name.startswith("open-"), got


HANGS = "t0 = new('float32', (3,), 1)\nbar()\nt2 = t0.tanh()\n"
PLANTED = {
    "value": (
        "recorded",
        "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nt2 = t1.cos()\nt3 = t2.relu()\nt4 = t3 - t0\n",
        2,
    ),
    "version": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nt0.mul_(2)\nt2 = t0 + t1\n", 2),
    "error": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 + 1\nt2 = t1.neg()\nbar()\nt3 = t1 * t0\n", 2),
    "stale": (
        "compiled",
        (
            "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nin: x0 = new('float32', (3,), 1)\nstep: t2 = t0 + x0\n"
            "step: t3 = t2 * 2\nstep: R.append(t2)\nstep: R.append(t3)\nafter 4: t0.mul_(2)\nafter 6: bar()\n"
        ),
        5,
    ),
    "lost": (
        "compiled",
        (
            "t0 = new('float32', (3,), 1)\nin: x0 = new('float32', (3,), 1)\nstep: t2 = t0 + x0\n"
            "step: t3 = t2 * 2\nstep: K.t = K.t * 0.5 + t3.detach().float().sum()\nstep: R.append(t3)\n"
        ),
        5,
    ),
    "crash": ("recorded", "t0 = new('float32', (3,), 1)\nt2 = t0.sigmoid()\n", 2),
    "hang": ("recorded", HANGS, 2),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_mistake_is_found_and_shrunk(children, plant):
    mode, text, most = PLANTED[plant]
    text = (
        f"# mode: {mode}\n# LTC_FUSION: exact\n"
        + ("# calls: 8\n# style: object\n" if mode == "compiled" else "")
        + text
    )
    child = children.of(text)
    child.limit = 2.0 if plant == "hang" else 60.0
    if plant == "lost" and os.environ.get("LTC_CHECK_STEPS"):
        pytest.skip("nothing is replayed here, so no replay can lose what it leaves")
    ask = lambda t: child.ask({"program": t, "plant": plant})[1]
    got = ask(text)
    assert got["outcome"] == (plant if plant in ("crash", "hang") else "different"), got
    child.limit = 60.0
    assert child.ask({"program": text})[1]["outcome"] == "same"
    if plant == "hang":
        assert "modes.py" in got["where"] and "thread" in got["where"], got
    if plant != "hang":
        small = program.parse(fuzz.shrink(text, got, ask, 5.0))
        assert len(small.statements) <= most, str(small)


def test_a_loop_is_a_hang_and_a_busy_machine_is_none(children, monkeypatch):
    """The watchdog counts what the child computes, while it wants to."""
    request = {"program": f"# mode: recorded\n# LTC_FUSION: exact\n{HANGS}", "plant": "loop"}
    child = children.of(request["program"])
    assert child.ask({**request, "plant": None})[1]["outcome"] == "same"
    monkeypatch.setattr(child, "limit", 2.0)
    with monkeypatch.context() as busy:
        busy.setattr(child, "_computed", lambda: (0.0, True))
        assert child.ask(request)[1]["outcome"] == "same"
    assert child.ask(request)[1]["outcome"] == "hang"
