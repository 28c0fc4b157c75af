"""Eager PyTorch against each lazy or compiled way of running the same step, measured side by side.

For every case and way a process of its own runs both: first each one's first step, then blocks of steps in turn, so
that whatever else the machine does hits both alike. A row gives medians and the median of the blocks' ratios (above 1:
faster than eager). Ways: `lazy` is PyTorch's own lazy tensors with the TorchScript backend, `compile` is torch.compile,
`backend.ltc` is torch.compile with this compiler over CPU tensors, `ltc` is this device, `ltc.compile` its compiled
steps, `jax` is JAX for the cases that `jax_cases.py` has. A way that does not work here is reported with its reason.
First steps are one sample; of `ltc`, whose next process has no cache to find on disk, the median of several.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WAYS = ("lazy", "compile", "backend.ltc", "ltc", "ltc.compile", "jax")
HERE = Path(__file__).parent


class Runner:
    """A way of running a case: `block(n)` runs `n` steps to their end and returns seconds; `read`: and reads each's
    number."""

    def __init__(self, case, way, read=False):
        import cases
        import torch

        self.read = read
        if way == "jax":
            import jax
            import jax_cases

            self.sync, self.compiled, made = lambda: None, None, [None]
            self.wait = lambda: jax.block_until_ready(made[0])
            step = jax_cases.CASES[case]()

            def keeping():
                made[0] = step()
                return made[0]

            self.step = keeping
            return
        self.sync, self.wait, prepare, device, self.compiled = lambda: None, lambda: None, lambda f: f, "cpu", None
        compiled = lambda f: f
        if way.startswith("ltc"):
            import torch_ltc

            device, self.sync = "ltc", torch_ltc.mark_step
            self.wait = lambda: torch_ltc.mark_step(wait=True)
            if way == "ltc.compile":
                if not hasattr(torch_ltc, "compile"):
                    raise RuntimeError("torch_ltc.compile does not exist yet")

                def compiled(f):
                    self.compiled = torch_ltc.compile(f)
                    return self.compiled

                self.sync = lambda: None  # its calls end their own step
        elif way == "lazy":
            import torch._lazy
            import torch._lazy.ts_backend

            torch._lazy.ts_backend.init()
            device, self.sync = "lazy", torch._lazy.mark_step
            self.wait = lambda: (torch._lazy.mark_step(), torch._lazy.wait_device_ops())
        elif way == "compile":
            prepare = torch.compile
        elif way == "backend.ltc":
            prepare = functools.partial(torch.compile, backend="ltc")
        elif way != "eager":
            raise ValueError(f"no such way: {way}")
        self.step = cases.build(case, device, prepare, compiled)
        self.wait()

    def block(self, steps):
        """Seconds for `steps` steps, the device idle before and after."""
        start = time.perf_counter()
        for _ in range(steps):
            kept = self.step()
            if self.read:
                (kept[0] if isinstance(kept, tuple | list) else kept).sum().item()
            self.sync()
        self.wait()
        self.kept = kept
        return time.perf_counter() - start


def _block_size(runner):
    """Steps of a block: enough that what the other way's left behind (caches, threads that still spin) and the wait at
    the end are a small part of it."""
    return max(10, min(1000, int(0.05 / (runner.block(5) / 5))))


def measure(case, way, seconds, threads, read):
    """The row of one case and way; for no seconds, of the first steps alone."""
    import torch

    torch.set_num_threads(threads)
    eager, other = Runner(case, "eager", read), Runner(case, way, read)
    row = {"eager_first": eager.block(1), "first": other.block(1)}
    if not seconds:
        return row
    eager.block(40), other.block(40)  # in one go: our device times its ways of running a program meanwhile
    sizes = [_block_size(runner) for runner in (eager, other)]
    fallbacks = _fallbacks(way)
    pairs, end = [], time.monotonic() + seconds
    while len(pairs) < 5 or time.monotonic() < end:
        pairs.append(tuple(runner.block(size) / size for runner, size in zip((eager, other), sizes)))
    row["fallbacks"] = (_fallbacks(way) - fallbacks) / (sizes[1] * len(pairs))
    row["eager"], row["steady"] = (statistics.median(column) for column in zip(*pairs))
    row["ratio"] = statistics.median(a / b for a, b in pairs)
    row["blocks"], row["steps"] = len(pairs), sizes[1]
    row["note"] = other.compiled.explain() if other.compiled else ""
    return row


def _jax_cases():
    """Cases there are for JAX; none where it is not installed."""
    try:
        import jax_cases
    except ImportError as e:
        print(f"without JAX: {e} (pip install -r ltc-python/benches/requirements.txt)", file=sys.stderr)
        return ()
    return jax_cases.CASES


def _fallbacks(way):
    if not way.startswith("ltc"):
        return 0
    import torch_ltc

    return torch_ltc.fallback_count()


def in_child(case, way, options, seconds):
    """`measure` in a process of its own, or {"error": why}."""
    command = [
        *(sys.executable, __file__, "--child", case, way),
        *("--seconds", str(seconds), "--threads", str(options.threads)),
    ]
    command += ["--read"] * options.read
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore"}
    if way == "jax":
        environment |= {"JAX_PLATFORMS": "cpu", "NPROC": str(options.threads)}
        environment["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(options.threads > 1).lower()}"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=options.timeout, cwd=HERE, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {options.timeout:.0f} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()] or [f"exit status {done.returncode}"]
    # The line that names the exception, not the hints some errors print after it.
    named = [line for line in lines if not line.startswith(" ") and "Error" in line.split(":")[0]]
    return {"error": (named or lines)[-1][:160]}


def row_of(case, way, options):
    """`measure`, its first steps those of the process whose ratio is the median."""
    row = in_child(case, way, options, options.seconds)
    if way == "ltc" and "error" not in row:
        samples = [row, *(in_child(case, way, options, 0) for _ in range(options.firsts - 1))]
        samples = sorted((s for s in samples if "error" not in s), key=lambda s: s["first"] / s["eager_first"])
        middle = samples[len(samples) // 2]
        row |= {key: middle[key] for key in ("first", "eager_first")}
    return row


def table(case, rows):
    """The table of one case, times in milliseconds."""
    columns = f"  {'way':<12}{'first step':>12}{'eager first':>12}{'step':>10}{'eager step':>12}"
    columns += f"{'ratio':>8}{'fallbacks/step':>16}"
    lines = [f"\n{case}", columns]
    for way, r in rows.items():
        if "error" in r:
            lines.append(f"  {way:<12}not available: {r['error']}")
            continue
        first, eager_first, step, eager = (1e3 * r[k] for k in ("first", "eager_first", "steady", "eager"))
        times = f"{first:>12.2f}{eager_first:>12.2f}{step:>10.3f}{eager:>12.3f}"
        lines.append(f"  {way:<12}{times}{r['ratio']:>8.2f}{r['fallbacks']:>16.1f}  {r['note']}".rstrip())
    return "\n".join(lines)


def main():
    """The command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", help="default: all but the groups `hub` and `kernels`")
    p.add_argument("--ways", default=",".join(WAYS), help="comma-separated")
    p.add_argument("--seconds", type=float, default=3.0, help="time per row for the steady state")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="of each way; default: all processors")
    p.add_argument(
        "--read", action="store_true", help="read a number of each step's result, as loops do that print their loss"
    )
    p.add_argument("--firsts", type=int, default=3, help="processes whose first steps are measured, for `ltc`")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds after which a row is given up")
    p.add_argument("--json", type=Path, help="also write the rows here, after each case")
    p.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.child:
        print(json.dumps(measure(*options.child, options.seconds, options.threads, options.read)))
        return
    import cases

    groups = cases.groups()
    known = [*cases.names(), *(name for group in groups.values() for name in group)]
    wanted = [name for case in options.cases or cases.names() for name in groups.get(case, [case])]
    if unknown := set(wanted) - set(known):
        raise SystemExit(f"no such case: {', '.join(sorted(unknown))}; there are: {', '.join([*groups, *known])}")
    jax_cases = _jax_cases() if "jax" in options.ways.split(",") else ()
    load = os.getloadavg()[0]
    print(f"{options.threads} thread(s) each, {os.cpu_count()} cores, load before: {load:.1f}; milliseconds, medians")
    found = {}
    for case in wanted:
        ways = [way for way in options.ways.split(",") if way != "jax" or case in jax_cases]
        found[case] = {way: row_of(case, way, options) for way in ways}
        print(table(case, found[case]), flush=True)
        if options.json:  # after each case: a run that is stopped has what it measured
            options.json.write_text(json.dumps({"load": load, "threads": options.threads, "cases": found}, indent=1))


if __name__ == "__main__":
    main()
