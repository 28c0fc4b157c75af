"""Training for minutes: sizes that change, compiled and recorded steps, two threads, and calls that fail. What is kept
(resident memory, device memory, pending nodes, programs, fallbacks' logs) has to stay bounded:
``python -m fuzz.soak --seconds 600``."""

import argparse
import gc
import os
import resource
import sys
import threading
import time

# Few programs are kept, so that what grows shows soon.
os.environ.setdefault("LTC_CACHE_ENTRIES", "64")
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F
from torch_ltc import _ltc


def resident():
    """Resident memory, in MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


class Trainer:
    """One model with its optimiser, recorded and compiled."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.net = nn.Sequential(
            nn.Embedding(50, 16), nn.Flatten(), nn.Linear(64, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5)
        ).to("ltc")
        kind = [torch.optim.SGD, torch.optim.RMSprop, torch.optim.AdamW][seed % 3]
        self.optimiser = kind(self.net.parameters(), 1e-3)
        self.compiled = torch_ltc.compile(self.step)
        self.steps = self.errors = 0

    def step(self, words, labels):
        """A training step."""
        self.optimiser.zero_grad()
        loss = F.cross_entropy(self.net(words), labels)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def go(self, i):
        """One step of some size; every so many it fails, every so many nobody reads it."""
        rows = [8, 8, 16, 3, 1, 31][(i // 50) % 6] + i % 3
        words, labels = torch.randint(0, 50, (rows, 4)), torch.randint(0, 5, (rows,))
        if i > 50 and i % 97 == 0:
            words[0, 0] = 10_000
        call = self.compiled if (i // 200) % 2 else self.step
        try:
            loss = call(words.to("ltc"), labels.to("ltc"))
            if i % 5 == 0 or i % 97 == 0:
                assert torch.isfinite(loss.cpu())
            else:
                torch_ltc.mark_step()
        except IndexError:
            self.errors += 1
        self.steps += 1

    def new_shapes(self, i):
        """Operators of sizes that were never there: programs and layouts for each."""
        # Numbers whose sums single precision holds exactly, however long this goes on.
        n, k = 2 + i % 400, i % 1000
        x = torch.ones(n, 3 + i % 7, device="ltc")
        y = (x * k).relu().sum(0) + x[: n // 2].sum()
        assert y.max().item() == k * n + n // 2 * x.shape[1]


def figures():
    """What is kept now."""
    gc.collect()
    return {
        "resident MiB": round(resident(), 1),
        "device MiB": round(torch.ltc.memory_allocated() / 2**20, 2),
        "pending": _ltc.pending_count(),
        "programs": _ltc.cached_programs(),
    }


def soak(seconds, say=print, threads=2):
    """Trains; the figures along the way, and how many steps and errors there were."""
    begin, rows = time.monotonic(), []
    trainers = [Trainer(k) for k in range(3)]
    failed = []
    stop = threading.Event()
    # A failure is told to whoever waits first, so steps of the threads take turns; recording and running still overlap.
    turn = threading.Lock()

    def work(k):
        i = 0
        try:
            while not stop.is_set():
                with turn:
                    trainers[k].go(i)
                    if i % 11 == k:
                        trainers[k].new_shapes(i)
                if i and i % 500 == 0:
                    # A model is replaced: what belonged to the old one goes.
                    with turn:
                        torch_ltc.mark_step(wait=True)
                        steps, errors = trainers[k].steps, trainers[k].errors
                        trainers[k] = Trainer(k)
                        trainers[k].steps, trainers[k].errors = steps, errors
                i += 1
        except BaseException as e:  # noqa: BLE001  (it is told below)
            failed.append(e)
            stop.set()

    workers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)]
    for worker in workers:
        worker.start()
    while time.monotonic() - begin < seconds and not stop.is_set():
        stop.wait(seconds / 20)
        with turn:
            row = figures()
        rows.append(row)
        counts = [sum(x) for x in zip(*[t.compiled.counts for t in trainers])]
        steps, errors = sum(t.steps for t in trainers), sum(t.errors for t in trainers)
        say(
            f"{time.monotonic() - begin:.0f} s: {steps} steps, {errors} failed, "
            f"{counts} replayed and recorded of the last models; {row}"
        )
    stop.set()
    for worker in workers:
        worker.join(60)
        if worker.is_alive():
            failed.append(TimeoutError("a thread hangs"))
    if failed:
        raise failed[0]
    return rows, steps, errors


def growth(rows):
    """By how much resident memory is larger in the last quarter than it was behind the first third, in MiB, and what
    else grew."""
    early = max(r["resident MiB"] for r in rows[len(rows) // 3 : len(rows) // 2])
    late = max(r["resident MiB"] for r in rows[-(len(rows) // 4) :])
    return late - early


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="fuzz.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--grows", type=float, default=32.0, help="MiB it may grow behind the first third")
    options = parser.parse_args()
    rows, steps, errors = soak(options.seconds, lambda text: print(text, flush=True))
    more = growth(rows)
    print(f"{steps} steps, {errors} failed; resident memory grew by {more:.1f} MiB behind the first third")
    bounded = more < options.grows and rows[-1]["programs"] <= 1024 and rows[-1]["pending"] < 10_000 and errors > 0
    return 0 if bounded else 1


if __name__ == "__main__":
    sys.exit(main())
