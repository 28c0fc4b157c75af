"""A process that checks entries: reads names from stdin, writes JSON lines to the file descriptor it is given."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch

if "DRY_CUDA_ORDER" in os.environ:  # on a GPU's stand-in (docs/cuda.md), where the shadow gives operators values
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "dry"))
    import stand_in  # noqa: F401
    import torch_ltc

    torch_ltc._ltc.set_place_key("Fake")

# PyTorch's tests, which come with the database, let nobody set flags any more.
from . import database
from .check import Checker


def main():
    """Checks the entries named on stdin until it closes."""
    wanted = json.loads(sys.argv[1])
    lines = os.fdopen(wanted.pop("fd"), "w", buffering=1)
    options = SimpleNamespace(**wanted)
    options.dtypes = [getattr(torch, d) for d in options.dtypes]
    send = lambda **row: print(json.dumps(row), file=lines)
    torch.set_num_threads(1)
    entries = database.entries()
    send(ready=True)
    for name in map(str.strip, sys.stdin):
        start = time.monotonic()
        checker = Checker(
            entries[name],
            options,
            at=lambda text: send(at=text),
            fail=lambda phase, dtype, sample, kind, message, repro: send(
                fail=dict(phase=phase, dtype=dtype, sample=sample, kind=kind, message=message, repro=repro)
            ),
        )
        harness = None
        try:
            checker.run()
        except Exception as e:  # noqa: BLE001  (a broken entry must not end the run)
            harness = f"{type(e).__name__}: {e}"
        tally = checker.tally
        send(
            done=name,
            category=database.category(entries[name]),
            checks=tally.checks,
            values=tally.values,
            bitwise=tally.bitwise,
            flags=tally.flags,
            fallbacks=tally.fallbacks,
            lost=tally.lost,
            harness=harness,
            seconds=round(time.monotonic() - start, 2),
        )


if __name__ == "__main__":
    main()
