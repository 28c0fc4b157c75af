"""What a run found: the table by category, the list of failures, the exceptions that are due or stale, the digest by
cause."""

import json
import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .check import PHASES


def read(path):
    """Result rows by entry; the last of equal names counts."""
    return {row["entry"]: row for row in map(json.loads, path.read_text().splitlines())}


def expectations(path):
    """The exceptions: tables with `entry` (a trailing * matches the rest), `reason`, and optionally `phases`, `dtypes`,
    `kind` of failure and what its message `says`."""
    return _tables(path, "expect", "entry")


def eager_operators(path):
    """Operators that may run eagerly: tables with `operator`, an `entry` where it does, `reason`, and `only` where it
    may in that entry alone."""
    return _tables(path, "eager", "operator")


def _tables(path, name, key):
    if not path.exists():
        return []
    listed = tomllib.loads(path.read_text()).get(name, [])
    for e in listed:
        if not e.get(key) or not e.get("reason"):
            raise ValueError(f"{path.name}: every exception needs `{key}` and `reason`: {e}")
    return listed


@dataclass
class Verdict:
    """Failures nobody expected, by entry; expected ones; exceptions that no longer fail; operators that ran eagerly and
    may not."""

    unexpected: dict = field(default_factory=dict)
    expected: dict = field(default_factory=dict)
    stale: list = field(default_factory=list)
    eager: dict = field(default_factory=dict)

    def passed(self):
        """Whether the run may be called good."""
        return not self.unexpected and not self.stale and not self.eager


def judge(rows, listed, phases, dtypes, eager=(), samples=0):
    """Sorts the failures of `rows` by what `listed` expects of a run of these phases and dtypes; `eager` may fall
    back."""
    verdict, used = Verdict(), set()
    whole = set(phases) >= set(PHASES) and "float32" in dtypes and samples >= 4
    for row in rows:
        may = {e["operator"] for e in eager if not e.get("only") or e["entry"] == row["entry"]}
        for operator in set(row["fallbacks"]) - may:
            verdict.eager.setdefault(operator, []).append(row["entry"])
        if whole:
            seen = (e for e in eager if e["entry"] == row["entry"] and samples >= e.get("samples", 0))
            lost = (e for e in seen if e["operator"] not in row["fallbacks"])
            verdict.stale += [{**e, "entry": f"{e['operator']} in {e['entry']}"} for e in lost]
    for row in rows:
        name = row["entry"]
        failures = list(row["failures"])
        if row["harness"]:
            failures.append(
                dict(phase="samples", dtype="-", sample=0, kind="harness", message=row["harness"], repro=name)
            )
        for f in failures:
            hits = [i for i, e in enumerate(listed) if _covers(e, name, f)]
            used.update(hits)
            (verdict.expected if hits else verdict.unexpected).setdefault(name, []).append(f)
    for i, e in enumerate(listed):
        ran = any(_names(e, row["entry"]) for row in rows)
        due = ran and samples >= e.get("samples", 0) and not set(e.get("phases", phases)).isdisjoint(phases)
        if due and not set(e.get("dtypes", dtypes)).isdisjoint(dtypes) and i not in used:
            verdict.stale.append(e)
    return verdict


def _names(expectation, name):
    pattern = expectation["entry"]
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _covers(expectation, name, failure):
    return (
        _names(expectation, name)
        and failure["phase"] in expectation.get("phases", [failure["phase"]])
        and failure["dtype"] in expectation.get("dtypes", [failure["dtype"]])
        and failure["kind"] == expectation.get("kind", failure["kind"])
        and expectation.get("says", "") in failure["message"]
    )


def table(rows, verdict):
    """The summary by category and the failing entries, as text."""
    lines, total = [], Counter()
    groups = defaultdict(Counter)
    for row in rows:
        c = Counter(entries=1, checks=row["checks"], values=row["values"], bitwise=row["bitwise"])
        bad = bool(row["failures"] or row["harness"])
        c["right"], c["wrong"] = not bad, bad
        c["free"] = not row["fallbacks"]
        groups[row["category"]] += c
        total += c
    lines.append(
        f"{'category':<16}{'entries':>8}{'right':>7}{'wrong':>7}{'no fallback':>13}{'checks':>9}{'bitwise values':>16}"
    )
    for word, c in [*sorted(groups.items()), ("all", total)]:
        share = f"{c['bitwise']}/{c['values']}"
        lines.append(
            f"{word:<16}{c['entries']:>8}{c['right']:>7}{c['wrong']:>7}{c['free']:>13}{c['checks']:>9}{share:>16}"
        )
    flags = Counter(k for row in rows for k in row["flags"])
    lines.append("entries with a flag: " + (", ".join(f"{k} {n}" for k, n in sorted(flags.items())) or "none"))
    for title, found in (("unexpected failures", verdict.unexpected), ("expected failures", verdict.expected)):
        if found:
            lines += ["", f"{title}: {len(found)} entries"]
            lines += [f"  {name}: {one_line(fs)}" for name, fs in found.items()]
    if verdict.eager:
        lines += ["", "operators that ran eagerly and may not (eager in expected_failures.toml):"]
        lines += [f"  {operator} in {', '.join(names)}" for operator, names in sorted(verdict.eager.items())]
    if verdict.stale:
        lines += ["", "stale exceptions (these pass now; remove them):"]
        lines += [f"  {e['entry']}: {e['reason']}" for e in verdict.stale]
    return "\n".join(lines)


def one_line(failures):
    """The first failure and how many more there are."""
    f = failures[0]
    more = f" (+{len(failures) - 1})" if len(failures) > 1 else ""
    return f"{f['phase']} {f['dtype']} {f['kind']}: {' '.join(f['message'].split())[:180]}{more}"


def write_digest(path, rows):
    """Failures grouped by cause, most entries first, each with its shortest reproduction; then flags and fallbacks."""
    groups = defaultdict(list)
    for row in rows.values():
        for f in row["failures"]:
            groups[_cause(f)].append((row["entry"], f))
        if row["harness"]:
            groups["harness: " + _plain(row["harness"])].append(
                (row["entry"], dict(phase="samples", dtype="-", repro=row["entry"], message=row["harness"]))
            )
    ranked = sorted(groups.items(), key=lambda g: -len({n for n, _ in g[1]}))
    bad = {n for g in groups.values() for n, _ in g}
    lines = [f"# Operator database: {len(rows)} entries run, {len(bad)} with a failure, {len(groups)} causes", ""]
    for cause, hits in ranked:
        names = sorted({n for n, _ in hits})
        _, f = min(hits, key=lambda h: (h[1]["phase"] != "forward", len(h[1]["repro"])))
        lines.append(f"## {len(names)} entries, {len(hits)} failures: {cause[:300]}")
        lines.append(f"- shortest: `{f['repro'][:300]}` ({f['phase']} {f['dtype']})")
        lines.append(f"- message: {' '.join(f['message'].split())[:400]}")
        lines.append(f"- phases: {dict(Counter(h[1]['phase'] for h in hits))}")
        lines += [f"- entries: {', '.join(names[:40])}{' ...' if len(names) > 40 else ''}", ""]
    flags = defaultdict(dict)
    for row in rows.values():
        for kind, text in row["flags"].items():
            flags[kind][row["entry"]] = text
    for kind, found in sorted(flags.items()):
        lines.append(f"## flag {kind}: {len(found)} entries (not counted as failures)")
        lines += [f"- {n}: {' '.join(t.split())[:300]}" for n, t in list(found.items())[:60]] + [""]
    entries, calls = defaultdict(list), Counter()
    for name, row in rows.items():
        for op, count in row["fallbacks"].items():
            entries[op].append(name)
            calls[op] += count
    lines.append(f"## fallbacks: {sum(bool(r['fallbacks']) for r in rows.values())} entries, {len(calls)} operators")
    lines += [f"- {op}: {count} runs in {', '.join(entries[op])[:200]}" for op, count in calls.most_common()]
    path.write_text("\n".join(lines) + "\n")


def _cause(f):
    return f"{f['kind']}: {_plain(f['message'])}"


def _plain(message):
    """A message without what differs between entries of the same cause: numbers, names in quotes."""
    text = re.sub(r"\d[\d.e+-]*", "N", " ".join(message.split()))
    text = re.sub(r"aten::[\w.]+", "aten::OP", text)
    return re.sub(r"(N, )+N", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", text))[:160]
