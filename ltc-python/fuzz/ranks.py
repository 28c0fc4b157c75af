"""Two ranks that draw collectives from one seed, and from their own where they read, cut, log, drop and pause. Every
value is compared with what it must be, which each rank computes alone; nothing may hang, and memory stays bounded:
``torchrun --nproc-per-node 2 -m fuzz.ranks --steps 10000``."""

import argparse
import datetime
import faulthandler
import gc
import os
import random
import time

# Few programs are kept, so that what grows shows soon.
os.environ.setdefault("LTC_CACHE_ENTRIES", "64")
import torch
import torch.distributed as dist
import torch_ltc
from torch.nn.parallel import DistributedDataParallel

from fuzz.soak import resident

#: No step takes as long; who waits longer waits for ever.
HANGS = 120


def filled(rows, step, rank):
    """A rank's input: small whole numbers, whose sums have no rounding."""
    return (torch.arange(rows * 3).view(rows, 3) * (rank + 1) + step % 7).float()


class Ranks:
    """This rank; and what it knows of all."""

    def __init__(self, seed):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        #: Equal in all ranks.
        self.shared = random.Random(seed)
        #: This rank's own.
        self.own = random.Random(seed * 1000 + self.rank + 1)
        #: What was not read yet: a result and what it must be.
        self.pending = []
        self.checked = 0
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        self.plain = DistributedDataParallel(net)
        self.lazy = DistributedDataParallel(
            torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to("ltc")
        )
        self.lazy.module.load_state_dict(net.state_dict())
        self.optimisers = [torch.optim.SGD(model.parameters(), 1e-3) for model in (self.plain, self.lazy)]

    def everybody(self, rows, step):
        """The inputs of all ranks."""
        return [filled(rows, step, rank) for rank in range(self.world)]

    def all_reduce(self, rows, step):
        """The sum."""
        x = filled(rows, step, self.rank).to("ltc")
        dist.all_reduce(x)
        return x, sum(self.everybody(rows, step))

    def greatest(self, rows, step):
        """The greatest, of a view with gaps."""
        x = filled(2 * rows, step, self.rank).to("ltc")
        dist.all_reduce(x[::2], dist.ReduceOp.MAX)
        expected = filled(2 * rows, step, self.rank)
        expected[::2] = torch.stack(self.everybody(2 * rows, step)).amax(0)[::2]
        return x, expected

    def broadcast(self, rows, step):
        """The last rank's."""
        x = filled(rows, step, self.rank).to("ltc")
        dist.broadcast(x, self.world - 1)
        return x, filled(rows, step, self.world - 1)

    def all_gather(self, rows, step):
        """Those of all; then this rank writes over its own."""
        x = filled(rows, step, self.rank).to("ltc")
        out = torch.empty(self.world * rows, 3, device="ltc")
        dist.all_gather_into_tensor(out, x)
        x.zero_()
        return out, torch.cat(self.everybody(rows, step))

    def all_to_all(self, rows, step):
        """Parts of sizes that differ by rank: rank r takes `rows + r` rows of each."""
        sizes = [rows + r for r in range(self.world)]
        mine = sizes[self.rank]
        out = torch.empty(self.world * mine, 3, device="ltc")
        x = filled(sum(sizes), step, self.rank).to("ltc")
        dist.all_to_all_single(out, x, [mine] * self.world, sizes)
        start = sum(sizes[: self.rank])
        return out, torch.cat([each[start : start + mine] for each in self.everybody(sum(sizes), step)])

    def message(self, rows, step):
        """Around the ring."""
        after, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        x, out = filled(rows, step, self.rank).to("ltc"), torch.empty(rows, 3, device="ltc")
        works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, out, before), dist.P2POp(dist.isend, x, after)])
        for work in works:
            work.wait()
        return out, filled(rows, step, before)

    def train(self, rows, step):
        """A step of DDP on both devices; ranks have batches of different sizes."""
        batch = torch.rand(rows + self.rank, 3, generator=torch.Generator().manual_seed(step * self.world + self.rank))
        for model, optimiser in zip((self.plain, self.lazy), self.optimisers, strict=True):
            optimiser.zero_grad()
            model(batch.to(next(model.parameters()).device)).square().mean().backward()
            optimiser.step()
        return self.lazy.module[0].weight.detach().clone(), self.plain.module[0].weight.detach().clone()

    def step(self, i):
        """One collective, and what this rank does besides."""
        kinds = ["all_reduce", "greatest", "broadcast", "all_gather", "all_to_all", "message", "train"]
        kind, rows = self.shared.choice(kinds), self.shared.choice([1, 2, 5, 64])
        result, expected = getattr(self, kind)(rows, i)
        if self.own.random() < 0.8:  # else nobody needs it
            self.pending.append((f"step {i}, {kind} of {rows}", result, expected))
        chance = self.own.random()
        if chance < 0.2:
            torch_ltc.mark_step()
        elif chance < 0.25:
            torch_ltc.mark_step(wait=True)
        elif chance < 0.4:
            self.check(self.own.randrange(len(self.pending) + 1))
        elif chance < 0.42:
            time.sleep(self.own.random() / 20)
        elif chance < 0.45 and self.rank == 0:
            str(result)  # a log
        if len(self.pending) > 20:
            self.check(len(self.pending))

    def check(self, count):
        """Reads some results, in this rank's own order."""
        for _ in range(count):
            name, result, expected = self.pending.pop(self.own.randrange(len(self.pending)))
            torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
            self.checked += 1


def main():
    """Runs the steps; rank 0 says how it went."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc", timeout=datetime.timedelta(seconds=HANGS))
    ranks, start, before = Ranks(options.seed), time.monotonic(), 0.0
    for i in range(options.steps):
        faulthandler.dump_traceback_later(2 * HANGS, exit=True)
        ranks.step(i)
        if i == options.steps // 5:
            torch_ltc.mark_step(wait=True)
            before = resident()
    ranks.check(len(ranks.pending))
    torch_ltc.mark_step(wait=True)
    faulthandler.cancel_dump_traceback_later()
    after, took = resident(), time.monotonic() - start
    dist.destroy_process_group()
    gc.collect()  # what else holds the group: gloo's threads must not outlive the interpreter
    print(
        f"rank {ranks.rank}: {options.steps} steps in {took:.0f} s, {ranks.checked} values right, "
        f"{after:.0f} MiB resident, {after - before:.1f} more than behind the first fifth",
        flush=True,
    )
    assert after - before < 64, "memory grew"


if __name__ == "__main__":
    main()
