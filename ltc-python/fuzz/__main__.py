"""The campaign: ``python -m fuzz --seconds 60 --seed 1``; a file instead runs that program."""

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

from .children import Child
from .shrink import kind, shrink

FOLDER = Path(__file__).parent / "regressions"
#: What is known and expected: lines of a regular expression, a tab, and what it is. Counted, not shrunk.
KNOWN = Path(__file__).parent / "known.txt"


def campaign(
    seconds,
    seed,
    mode=None,
    plant=None,
    limit=60.0,
    keep=None,
    most=10,
    say=print,
    count=None,
    shrinking=60.0,
    children=None,
):
    """Runs programs until the time is over or `most` were found; totals, and the findings as ``(kind, what, text)``."""
    end, begin = time.monotonic() + seconds, time.monotonic()
    totals, findings, told = Counter(), [], begin
    lent, children = children is not None, children or Children(limit)
    child = children.of

    # Programs are made in a child that never touches the device, so that whoever crashes, the text is known.
    maker = Child({}, limit)
    number = seed * 1_000_000
    known, open_ = set(), expected()
    try:
        while time.monotonic() < end and len(findings) < most and (count is None or totals["programs"] < count):
            text, made = maker.ask({"make": number, "mode": mode})
            if made["outcome"] != "made":
                findings.append(("harness", f"making program {number}: {made}", ""))
                number += 1
                continue
            request = {"program": text, "plant": plant}
            _, got = child(text).ask(request)
            totals["programs"] += 1
            totals[got["outcome"]] += 1
            totals.update(got.get("counts", {}))
            why = next(
                (w for pattern, w in open_ if got["outcome"] == "different" and re.search(pattern, got["what"])), None
            )
            if why and plant is None:
                totals["known"] += 1
                totals[f"known: {why}"] += 1
            elif got["outcome"] not in ("same", "undefined"):
                say("\n".join(filter(None, [f"program {number}: {got['outcome']}: {got['what']}", got.get("where")])))
                finding, why = confirmed(text, got, child, (plant, limit, shrinking), open_, say)
                if why and plant is None:
                    totals["known"] += 1
                    totals[f"known: {why}"] += 1
                    say(f"  known: {why}")
                elif finding[0] == "seen once":
                    findings.append(finding)
                elif finding[2] not in known:
                    known.add(finding[2])
                    findings.append(finding)
                if keep and not why and finding[0] != "seen once":
                    keep.mkdir(parents=True, exist_ok=True)
                    kept = f"## {finding[1].splitlines()[0]}\n{finding[2]}".replace("\n## ", "\n")
                    (keep / f"found-{number}.txt").write_text(kept)
            number += 1
            if time.monotonic() - told > 30:
                told = time.monotonic()
                say(f"{told - begin:.0f} s: {_line(totals)}, {len(findings)} findings")
    finally:
        maker.close()
        if not lent:
            children.close()
    return totals, findings


def confirmed(text, got, child, settings, open_, say):
    """The finding that a program is, as ``(kind, what, text)`` and shrunk if it comes again in a child of its own, and
    what is known of it. ``child`` gives the child that a program runs in."""
    plant, limit, shrinking = settings
    before = [*child(text).ran]
    fresh = Child(child(text).environment, limit if got["outcome"] != "hang" else min(limit, 20.0))
    try:
        ask = lambda t: fresh.ask({"program": t, "plant": plant})[1]
        again = ask(text)
        if again["outcome"] in ("same", "undefined"):
            say(f"  not alone: it takes what ran before ({len(before)} programs), or luck\n{text}")
            return ("seen once", got["what"], text), None
        small = shrink(text, again, ask, shrinking)
        last = ask(small)
        finding = (kind(again), last["what"] if "what" in last else again["what"], small)
        pattern, why = next((row for row in open_ if re.search(row[0], f"{small}{finding[1]}")), ("", None))
        if "LTC_FUSION: 1" in pattern:
            # What is expected of fused kernels alone is not there without them.
            exact = small.replace("# LTC_FUSION: 1", "# LTC_FUSION: exact")
            _, without = child(exact).ask({"program": exact, "plant": plant})
            why = why if without["outcome"] == "same" else None
        say(f"  shrunk to\n{small}  {finding[1]}")
        return finding, why
    finally:
        fresh.close()


class Children:
    """A child for each environment that programs ask for."""

    def __init__(self, limit):
        self.limit, self.all = limit, {}

    def of(self, text):
        """The child that runs this program."""
        fusion = "exact" if "# LTC_FUSION: exact" in text else "1"
        if fusion not in self.all:
            self.all[fusion] = Child({"LTC_FUSION": fusion}, self.limit)
        return self.all[fusion]

    def close(self):
        """Ends them."""
        for child in self.all.values():
            child.close()


def expected():
    """Differences that are known, as pairs of a regular expression and what it is."""
    rows = [line.split("\t") for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    return [(pattern, why) for pattern, why in rows]


def _line(totals):
    keys = (
        "programs",
        "statements",
        "errors",
        "late",
        "calls",
        "replayed",
        "calls at once",
        "replayed at once",
        "refused",
        "threads",
        "undefined",
        "known",
    )
    return ", ".join(f"{totals[k]} {k}" for k in keys)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("programs", nargs="*", type=Path, help="files of programs to run instead")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["recorded", "compiled", "threads", "steps"])
    parser.add_argument("--plant", help="a mistake to put in (plants.py)")
    parser.add_argument("--most", type=int, default=10, help="findings after which it stops")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a program may take")
    parser.add_argument("--keep", type=Path, default=FOLDER, help="where minimal programs are written")
    options = parser.parse_args()
    if options.programs:
        return replay(options.programs, options.limit)
    say = lambda *text: print(*text, flush=True)
    totals, findings = campaign(
        options.seconds, options.seed, options.mode, options.plant, options.limit, options.keep, options.most, say
    )
    print(f"{_line(totals)}; {len(findings)} findings")
    for name, what, _ in findings:
        print(f"  {name}: {what}")
    if totals["calls"] >= 200 and totals["replayed"] * 2 < totals["calls"]:
        print(f"only {totals['replayed']} of {totals['calls']} calls of compiled steps were replayed")
        return 1
    return 1 if findings else 0


def replay(files, limit=60.0):
    """Runs programs of files; how many fail."""
    failed, children = 0, Children(limit)
    for file in files:
        text = file.read_text()
        _, got = children.of(text).ask({"program": text})
        print(f"{file.name}: {got['outcome']} {got.get('what', '')}")
        failed += got["outcome"] not in ("same", "undefined") and not file.name.startswith("open-")
    children.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
