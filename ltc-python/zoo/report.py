"""What a run found: what is wrong with an entry, what of it is known, and the table in Markdown."""

import json
import math
import re
import textwrap
import tomllib

from .train import SETTLED

#: The least share of calls after the first three that a compiled step replays.
REPLAYED = 0.9
#: From this ratio on, a way counts as no slower than eager: times of blocks vary by that much.
_AS_FAST = 0.95
_WRAPPED = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
_PLACES = re.compile(r"/\S*/(?:site-packages|lib/python[\d.]+)/")


def read(path):
    """Result rows by entry; the last of equal names counts."""
    return {row["entry"]: row for row in map(json.loads, path.read_text().splitlines())}


def known(path):
    """What is known of entries: tables with `entry` (a trailing * matches the rest), `kind`, `way` where it is one way
    alone, and `reason`."""
    listed = tomllib.loads(path.read_text()).get("known", []) if path.exists() else []
    for row in listed:
        if not all(row.get(key) for key in ("entry", "kind", "reason")):
            raise ValueError(f"{path.name}: each needs `entry`, `kind` and `reason`: {row}")
    return listed


def problems(row):
    """What is wrong with an entry: way, kind and words of each.

    Kinds: `error` (it fails), `differs`, `eager` (operators fall back), `programs` (some are compiled after the third
    step), `recorded` (too few calls are replayed), `as it is` (a graph of the backend is no program). What is no better
    with PyTorch's own `aot_eager` is left out: see `alike`.
    """
    if "error" in row:
        return [("all", "error", row["error"])]
    found = []
    for way, got in row["ways"].items():
        if "error" in got:
            found += [(way, "error", got["error"])] if not got.get("aot_eager") else []
            continue
        if got.get("difference") and not got.get("aot_eager"):
            found.append((way, "differs", got["difference"]))
        if got.get("fallbacks") and way != "eager":
            operators = ", ".join(f"{name} ({n} a step)" for name, n in sorted(got["fallbacks"].items()))
            found.append((way, "eager", operators))
        if late := sum(got.get("programs", [])[SETTLED:]):
            found.append((way, "programs", f"{late} compiled after step {SETTLED}: {got['programs']}"))
        if "calls" in got and share(got) < REPLAYED:
            found.append((way, "recorded", got["explain"]))
        found += [(way, "as it is", why) for why in got.get("as it is", [])]
    return found


def alike(row):
    """What fails, or differs from eager, with PyTorch's `aot_eager` as with the backend, in words; empty if nothing."""
    return row.get("ways", {}).get("backend", {}).get("aot_eager") or ""


def share(got):
    """The share of the calls after the first three that were replayed."""
    return min(1.0, got["replayed"] / max(1, got["calls"] - SETTLED))


def ratio(row, way):
    """Eager's time of a step divided by a way's; nothing where there is none."""
    got = row.get("ways", {}).get(way, {})
    return got["eager seconds"] / got["seconds"] if "seconds" in got else None


def _covers(one, entry, way, kind):
    name = one["entry"]
    is_it = entry.startswith(name[:-1]) if name.endswith("*") else name == entry
    return is_it and one["kind"] == kind and one.get("way", way) == way


def judge(rows, listed, ways):
    """Lines about what is wrong and not known, and about what is known and no longer wrong."""
    said, used = [], set()
    for row in rows:
        for way, kind, words in problems(row):
            hits = [i for i, one in enumerate(listed) if _covers(one, row["entry"], way, kind)]
            used.update(hits)
            if not hits:
                said.append(f"{row['entry']}, {way}: {kind}: {words}")
    for i, one in enumerate(listed):
        ran = any(_covers(one, row["entry"], one.get("way"), one["kind"]) for row in rows)
        if ran and i not in used and one.get("way", ways[0]) in ways:
            said.append(f"{one['entry']}: {one['kind']} is listed as known and is not so any more: {one['reason']}")
    return said


def table(rows, listed, about):
    """The table and its notes, in Markdown."""
    head = (
        "| entry | agrees | runs eagerly, a step | programs after step 3 | replayed | recorded | compiled | backend |"
    )
    lines = [head, "|---" * 8 + "|"]
    for row in rows:
        found = problems(row)
        ways = {way: got for way, got in row.get("ways", {}).items() if way != "eager"}
        wrong = {way for way, kind, _ in found if kind in ("error", "differs")}
        agrees = "no" if "all" in wrong else ", ".join(f"not {w}" for w in ways if w in wrong) or "yes"
        agrees += "; backend as `aot_eager`" if alike(row) else ""
        eager = sum(sum(got.get("fallbacks", {}).values()) for way, got in ways.items() if way == "recorded")
        late = sum(sum(got.get("programs", [])[SETTLED:]) for got in ways.values())
        replayed = "".join(f"{share(got):.0%}" for got in ways.values() if "calls" in got)
        times = [f"{r:.2f}" if (r := ratio(row, way)) else "" for way in ("recorded", "compiled", "backend")]
        lines.append(f"| {' | '.join([row['entry'], agrees, f'{eager:g}', str(late), replayed, *times])} |")
    said = [textwrap.fill(f"- {line}", 118, **_WRAPPED) for line in (*_totals(rows), *_notes(rows, listed))]
    return "\n".join([about, "", *lines, "", *said])


def _notes(rows, listed):
    """A line for each thing that is wrong, with why where that is known, and the entries where it is."""
    places, words_of = {}, {}
    for row in rows:
        for way, kind, words in problems(row):
            why = next((one["reason"] for one in listed if _covers(one, row["entry"], way, kind)), "not known yet")
            places.setdefault((kind, why), {}).setdefault(row["entry"], {})[way] = True
            words_of.setdefault((kind, why), words)
        if alike(row):
            yield f"{row['entry']}, as it is with PyTorch's own: {_short(alike(row))}."
    for (kind, why), found in places.items():
        names = "; ".join(f"{entry} ({', '.join(ways)})" for entry, ways in found.items())
        yield f"{kind}: {why}. {names}. The first says {_short(words_of[kind, why])}."


def _short(words):
    """Words on one line, as code; of files only where they are in their package."""
    return f"`{_PLACES.sub('', ' '.join(words.split()))[:240]}`"


def _totals(rows):
    """What it all comes to."""
    kinds = lambda row: {kind for _, kind, _ in problems(row)}
    good = sum(not kinds(row) & {"error", "differs"} for row in rows)
    calls = [got for row in rows for got in row.get("ways", {}).values() if "calls" in got]
    replayed, later = sum(got["replayed"] for got in calls), sum(got["calls"] - SETTLED for got in calls)
    yield f"{good} of {len(rows)} entries agree in all ways."
    if later:
        enough = sum(share(got) >= REPLAYED for got in calls)
        yield (
            f"Of the calls of compiled steps after the first three, {replayed / later:.1%} were replayed;"
            f" in {enough} of {len(calls)} entries, {REPLAYED:.0%} of them or more."
        )
    for way in ("recorded", "compiled", "backend"):
        ratios = [r for row in rows if (r := ratio(row, way))]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slower = [row["entry"] for row in rows if ratio(row, way) and ratio(row, way) < _AS_FAST]
            names = f": {'; '.join(slower)}" if slower else ""
            yield f"{way}: {mean:.2f} times as fast as eager (geometric mean)."
            yield f"{way}: slower by more than {1 - _AS_FAST:.0%} in {len(slower)} of {len(ratios)}{names}."
