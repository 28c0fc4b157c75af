"""Ranks whose programs run on while others are waited for."""

import os
import re
import signal

import torch
import torch.distributed as dist
import torch_ltc
from ranks import RANK, WORLD, drawn, join, ones, reduced, run, same
from torch.nn.parallel import DistributedDataParallel


def meets() -> None:
    """Rank 1 comes to the reduction after it has what rank 0 sends after beginning it."""
    join(timeout=8)
    if RANK == 0:
        t = reduced(ones())
        dist.isend(ones(5), 1)
        assert t.tolist() == [2] * 3
    else:
        first = ones(0)
        dist.recv(first, 0)
        assert first.tolist() == [5] * 3
        assert reduced(ones()).tolist() == [2] * 3


def steps() -> None:
    """Buckets are reduced during the backward pass of the same program, and waited for by the optimiser."""
    join()
    layers = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)]).to("ltc")
    model = DistributedDataParallel(layers, bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(drawn(32, 64).to("ltc")).square().sum().backward()
        optimizer.step()
        program = torch_ltc.debug.dump_ir(list(model.parameters()), "backend")
        torch_ltc.mark_step()
    calls = re.findall(r"= (ltc_dist::\w+|aten::mm|fused)", program.split("graph(")[0])
    begins, waits = ([i for i, c in enumerate(calls) if c == f"ltc_dist::{name}"] for name in ("all_reduce", "wait"))
    assert len(begins) == len(waits) > 1
    products = [i for i, call in enumerate(calls) if call == "aten::mm"]
    put_off = os.environ.get("LTC_REWRITES") != "-waits"
    assert begins[0] < products[-1]
    assert (waits[0] > products[-1]) == put_off, program


def memory() -> None:
    """What an engine reads or writes is written by nobody else, and let go when it is done."""
    join()

    def overwritten(device: str) -> list[torch.Tensor]:
        found = []
        for i in range(8):
            x = drawn(1 << 18, seed=i).to(device)
            out = torch.empty(WORLD << 18, device=device)
            dist.all_gather_into_tensor(out, x)
            x.mul_(0)
            part = torch.empty(1 << 17, device=device)
            source = drawn(1 << 18, seed=-i).to(device)
            dist.reduce_scatter_tensor(part, source)
            source.add_(x.sum())
            found += [out, x, part, source]
        return found

    def views(device: str) -> list[torch.Tensor]:
        x = drawn(256, 256).to(device)
        for view in (x[::2], x.t()[3:9]):
            # On the CPU, gloo takes memory as it lies: there it gets a copy.
            piece = view if device == "ltc" else view.contiguous()
            dist.all_reduce(piece)
            view.copy_(piece)
        dist.broadcast(x[1], 1)
        return [x, reduced(x * 2), x + 1]

    same("written while it is read", overwritten)
    same("views", views)

    def resident() -> int:
        with open("/proc/self/statm") as text:
            return int(text.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

    for i in range(120):
        if i == 40:
            before = resident()
        large = torch.ones(1 << 18, device="ltc")
        reduced(large.clone())  # a result that nobody needs
        if RANK == 0:
            dist.isend(large, 1)
        else:
            dist.irecv(torch.empty_like(large), 0).wait()
        if i % 8 == 0:
            dist.barrier()  # a sender may be ahead of others
    assert resident() - before < 60, "80 messages of a megabyte are still there"


def unneeded() -> None:
    """What goes wrong in a collective whose result nobody needs fails the next one."""
    join()
    assert reduced(ones()).tolist() == [2] * 3
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    reduced(ones())
    torch_ltc.mark_step(wait=True)
    for _ in range(2):
        try:
            reduced(ones()).tolist()
        except RuntimeError as error:
            assert "ltc_dist::all_reduce" in str(error) and "ranks.py" in str(error), error
        else:
            raise AssertionError("a collective without all ranks")
    assert (ones() + 1).tolist() == [2] * 3


if __name__ == "__main__":
    run(globals(), destroys=True)
