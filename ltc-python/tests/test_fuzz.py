"""The fuzzer's short form: random programs agree, kept ones too, and planted mistakes are found and shrunk."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from fuzz import __main__ as fuzz  # noqa: E402
from fuzz import program  # noqa: E402
from fuzz.children import Child  # noqa: E402


def quiet(*text):
    pass


@pytest.mark.timeout(120)
def test_random_programs_agree_and_half_of_the_compiled_calls_are_replayed():
    totals, findings = fuzz.campaign(30, 1, count=24, say=quiet, shrinking=10.0)
    assert not findings, "\n".join(f"{kind}: {what}\n{text}" for kind, what, text in findings)
    assert totals["programs"] > 10 and totals["replayed"] * 2 >= totals["calls"] > 50, totals


@pytest.mark.timeout(120)
def test_kept_programs_agree():
    children = {e: Child({"LTC_FUSION": e}, 60.0) for e in ("exact", "1")}
    for file in sorted(fuzz.FOLDER.glob("*.txt")):
        text = file.read_text()
        _, got = children[program.parse(text).environment["LTC_FUSION"]].ask({"program": text})
        # What is open still differs: else it is to lose its prefix.
        assert (got["outcome"] == "same") != file.name.startswith("open-"), f"{file.name}: {got}"
    for child in children.values():
        child.close()


PLANTED = {
    "value": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nt2 = t1.cos()\nt3 = t2.relu()\nt4 = t3 - t0\n", 2),
    "version": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nt0.mul_(2)\nt2 = t0 + t1\n", 2),
    "error": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 + 1\nt2 = t1.neg()\nbar()\nt3 = t1 * t0\n", 2),
    "stale": ("compiled", "t0 = new('float32', (3,), 1)\nt1 = t0 * 2\nin: x0 = new('float32', (3,), 1)\nstep: t2 = t0 + x0\n"
                          "step: t3 = t2 * 2\nstep: R.append(t2)\nstep: R.append(t3)\nafter 4: t0.mul_(2)\nafter 6: bar()\n", 5),
    "crash": ("recorded", "t0 = new('float32', (3,), 1)\nt1 = t0 + 1\nt2 = t1.sigmoid()\nbar()\n", 2),
    "hang": ("recorded", "t0 = new('float32', (3,), 1)\nbar()\nt2 = t0.tanh()\n", 2),
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_mistake_is_found_and_shrunk(plant):
    mode, text, most = PLANTED[plant]
    text = f"# mode: {mode}\n# LTC_FUSION: exact\n" + ("# calls: 8\n# style: object\n" if mode == "compiled" else "") + text
    child = Child({"LTC_FUSION": "exact"}, 2.0 if plant == "hang" else 60.0)
    ask = lambda t: child.ask({"program": t, "plant": plant})[1]  # noqa: E731
    got = ask(text)
    assert got["outcome"] == (plant if plant in ("crash", "hang") else "different"), got
    assert child.ask({"program": text})[1]["outcome"] == "same"
    small = program.parse(fuzz.shrink(text, got, ask, 10.0))
    assert len(small.statements) <= most, str(small)
    child.close()
