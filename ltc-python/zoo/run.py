"""Drives workers over the entries and keeps their results, one JSON line per entry, so that a run can be resumed."""

import argparse
import json
import os
import sys
from pathlib import Path

import torch

from fuzz.children import Child
from opinfo.run import progress

from . import models, report
from .train import WAYS

HERE = Path(__file__).parent


def arguments(argv=None):
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m zoo", description=sys.modules[__package__].__doc__)
    p.add_argument("entries", nargs="*", help="names of entries or families; a trailing * matches the rest")
    p.add_argument("--ways", default=",".join(WAYS), help="comma-separated")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="of each way; default: all processors")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds that a part of an entry (a step) may take")
    p.add_argument("--results", type=Path, default=Path("target/zoo.jsonl"), help="where the results go")
    p.add_argument("--resume", action="store_true", help="keep the results there and run only the entries they lack")
    p.add_argument(
        "--rerun-failures", action="store_true", help="like --resume, and run again what has a failure there"
    )
    p.add_argument("--known", type=Path, default=HERE / "known.toml", help="what is known of entries")
    p.add_argument("--table", type=Path, help="also write the table to this file")
    p.add_argument("--plant", choices=["loss", "gradient", "draws"], help="a mistake to put in: it has to be found")
    p.add_argument("--untimed", action="store_true", help="compare, and measure no times")
    p.add_argument("--batch", type=int, default=12, help="entries per worker process")
    return p.parse_args(argv)


def chosen(patterns):
    """The names that the patterns match, in order."""
    families = [f for f in models.FAMILIES if not patterns or any(p.split("/")[0] in (f, f"{f}*") for p in patterns)]
    if lacking := models.missing(families):
        raise SystemExit(
            f"not installed: {', '.join(lacking)} (pip install -r ltc-python/zoo/requirements.txt, or `make zoo`)"
        )
    names = [f"{f}/{n}" for f in families for n in models.family(f)]
    unknown = [p for p in patterns if not any(_matches(n, p) for n in names)]
    if unknown:
        raise SystemExit(f"no such entry: {', '.join(unknown)}; families are {', '.join(models.FAMILIES)}")
    return [n for n in names if not patterns or any(_matches(n, p) for p in patterns)]


def _matches(name, pattern):
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else pattern in (name, name.partition("/")[0])


def run(options):
    """Examines the chosen entries; their rows by name."""
    names = chosen(options.entries)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    rows = {}
    if (options.resume or options.rerun_failures) and options.results.exists():
        rows = report.read(options.results)
    if options.rerun_failures:
        rows = {n: row for n, row in rows.items() if not report.problems(row)}
    environment = {"OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    environment["TRANSFORMERS_VERBOSITY"] = "critical"
    child, served = Child(environment, options.timeout, f"{__package__}.worker"), 0
    with open(options.results, "a" if rows else "w") as out:
        for name in progress([n for n in names if n not in rows]):
            if served >= options.batch:
                child.close()
                served = 0
            served += 1
            request = dict(entry=name, ways=options.ways.split(","), plant=options.plant, timed=not options.untimed)
            place, row = child.ask(request)
            if row.pop("outcome") != "row":
                row = {"error": f"{row['what']} ({place or 'before the first step'})", "where": row.get("where", "")}
            rows[name] = {"entry": name, **row}
            print(json.dumps(rows[name]), file=out, flush=True)
    child.close()
    return [rows[n] for n in names]


def main(argv=None):
    """Runs, prints the table, and returns the exit status: 0 when nothing is wrong but what is known."""
    options = arguments(argv)
    load = os.getloadavg()[0]
    rows = run(options)
    known = report.known(options.known)
    about = (
        f"torch {torch.__version__}, {options.threads} thread(s), {os.cpu_count()} processors, load before {load:.1f}"
    )
    text = report.table(rows, known, about)
    print(text)
    if options.table:
        options.table.write_text(text + "\n")
    verdict = report.judge(rows, known, options.ways.split(","))
    print("\n".join(verdict), file=sys.stderr)
    return 1 if verdict else 0
