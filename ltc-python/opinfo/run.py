"""Drives workers over the entries and keeps their results, one JSON line per entry, so that a run can be resumed."""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import report
from .check import PHASES

HERE = Path(__file__).parent
_START_LIMIT = 180.0


def arguments(argv=None):
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m opinfo", description=sys.modules[__package__].__doc__)
    p.add_argument("entries", nargs="*", help="names of entries; a trailing * matches the rest (default: all)")
    p.add_argument("--samples", type=int, default=4, help="samples per entry and dtype")
    p.add_argument("--dtypes", default="float32,int64,bool", help="comma-separated")
    p.add_argument("--phases", default=",".join(PHASES), help="comma-separated")
    p.add_argument("--quick", action="store_true", help="the short list, 2 samples, float32")
    p.add_argument("--numbers", action="store_true", help="each number of a sample replaced by extreme ones, in turn")
    p.add_argument("--timeout", type=float, default=120.0, help="seconds per entry")
    p.add_argument("--results", type=Path, default=Path("target/opinfo.jsonl"), help="where the results go")
    p.add_argument("--resume", action="store_true", help="keep the results there and run only the entries they lack")
    p.add_argument("--rerun-failures", action="store_true", help="like --resume, and run again what failed there")
    p.add_argument("--device", default="ltc", help="what is compared with the CPU, such as ltc:1")
    p.add_argument("--expected", type=Path, action="append", help="exceptions (default: expected_failures.toml)")
    p.add_argument("--digest", type=Path, help="write failures grouped by cause to this file")
    p.add_argument("--batch", type=int, default=100, help="entries per worker process")
    options = p.parse_args(argv)
    options.expected = options.expected or [HERE / "expected_failures.toml"]
    if options.quick:
        options.samples, options.dtypes = 2, "float32"
        options.entries = options.entries or (HERE / "quick.txt").read_text().split()
    return options


class Worker:
    """A worker process and the lines it sends."""

    def __init__(self, options):
        read, write = os.pipe()
        lists = dict(phases=options.phases.split(","), dtypes=options.dtypes.split(","))
        config = dict(samples=options.samples, numbers=options.numbers, device=options.device, fd=write, **lists)
        errors = (os.devnull, "w") if options.quick else (options.results.with_suffix(".stderr"), "a")
        self.errors = open(*errors)  # noqa: SIM115  (as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=self.errors,
            stderr=self.errors,
            pass_fds=[write],
            cwd=HERE.parent,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        )
        os.close(write)
        self.fd, self.rest, self.served, self.lost = read, b"", 0, False
        started, _ = self._until("ready", _START_LIMIT, lambda row: None)
        if not started:
            raise RuntimeError(f"the worker did not start (exit {self.process.poll()})")

    def check(self, name, limit):
        """The result row of an entry; a crash or a hang is a failure of the phase it was in."""
        self.served += 1
        failures, place = [], ["before the first call"]

        def collect(row):
            if "fail" in row:
                failures.append(row["fail"])
            elif "at" in row:
                place[0] = row["at"]

        start = time.monotonic()
        try:
            print(name, file=self.process.stdin, flush=True)
            row, hung = self._until("done", limit, collect)
        except BrokenPipeError:
            row, hung = None, False
        if row is None:
            if hung:
                self.process.kill()
            code = self.process.wait()
            kind = "hang" if hung else "crash"
            why = f"no answer in {limit:.0f} s" if hung else f"died of {_signal(code)}"
            phase, dtype = (place[0].split() + ["", ""])[:2]
            failures.append(
                dict(phase=phase, dtype=dtype, sample=0, kind=kind, message=why, repro=place[0].partition(": ")[2])
            )
            row = dict(done=name, category="?", checks=0, values=0, bitwise=0, flags={}, fallbacks={}, harness=None)
            row["seconds"] = round(time.monotonic() - start, 2)
        self.lost = row.pop("lost", False)
        return {"entry": row.pop("done"), **row, "failures": failures}

    def _until(self, key, limit, collect):
        """(row with `key` or None at the end of the stream or time, whether time ran out)."""
        end = time.monotonic() + limit
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                row = json.loads(line)
                if key in row:
                    return row, False
                collect(row)
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                return None, True
            data = os.read(self.fd, 1 << 16)
            if not data:
                return None, False
            self.rest += data

    def alive(self):
        """Whether it can take another entry: it is there, and so is its device."""
        return self.process.poll() is None and not self.lost

    def close(self):
        """Ends the process."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.fd)
        self.errors.close()


def _signal(code):
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def select_entries(patterns):
    """The names the patterns match, in database order."""
    from . import database

    names = list(database.entries())
    if not patterns:
        return names
    unknown = [p for p in patterns if not any(_matches(n, p) for n in names)]
    if unknown:
        raise SystemExit(f"no such entry: {', '.join(unknown)}")
    return [n for n in names if any(_matches(n, p) for p in patterns)]


def _matches(name, pattern):
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def progress(items):
    """A progress bar where tqdm is installed, else a line every 25 items."""
    try:
        from tqdm import tqdm

        return tqdm(items, unit="entry", mininterval=2.0)
    except ImportError:
        return _plain_progress(items)


def _plain_progress(items):
    for i, item in enumerate(items):
        if i % 25 == 0:
            print(f"{i}/{len(items)} {item}", file=sys.stderr, flush=True)
        yield item


def run(options):
    """Checks the selected entries; returns the rows of all of them."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    rows = {}
    if (options.resume or options.rerun_failures) and options.results.exists():
        rows = report.read(options.results)
    names = select_entries(options.entries)
    again = {n for n, r in rows.items() if r["failures"] or r["harness"]} if options.rerun_failures else set()
    todo = [n for n in names if n not in rows or n in again]
    worker = None
    mode = "a" if rows else "w"
    with open(options.results, mode) as out:
        for i, name in enumerate(progress(todo)):
            if worker and (not worker.alive() or worker.served >= options.batch):
                worker.close()
                worker = None
            worker = worker or Worker(options)
            row = worker.check(name, options.timeout)
            rows[name] = row
            print(json.dumps(row), file=out, flush=True)
            if options.digest and i % 50 == 49:
                report.write_digest(options.digest, rows)
    if worker:
        worker.close()
    if options.digest:
        report.write_digest(options.digest, rows)
    return [rows[n] for n in names if n in rows]


def main(argv=None):
    """Runs, prints the table, and returns the exit status: 0 when the only failures are the expected ones."""
    options = arguments(argv)
    rows = run(options)
    listed = [e for path in options.expected for e in report.expectations(path)]
    eager = [e for path in options.expected for e in report.eager_operators(path)]
    phases, dtypes = options.phases.split(","), options.dtypes.split(",")
    verdict = report.judge(rows, listed, phases, dtypes, eager, options.samples)
    print(report.table(rows, verdict))
    return 0 if verdict.passed() else 1
