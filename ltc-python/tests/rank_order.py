"""Ranks that read, leave, fail or die at different places."""

import os
import signal
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch_ltc
from ranks import RANK, STORE, WORLD, join, ones, reduced, run
from torch_ltc import _ltc


def cuts() -> None:
    """One rank reads after each collective, the others at the end."""
    join()
    found = []
    for i in range(4):
        found.append(reduced(ones(i + RANK)))
        if RANK == 0:
            found[-1].sum().item()
    assert [t[0].item() for t in found] == [WORLD * i + sum(range(WORLD)) for i in range(4)]


def unneeded(reduced: Callable[[torch.Tensor], torch.Tensor]) -> None:
    t = reduced(ones(1 + RANK))
    if RANK == 0:
        del t
    found = reduced(ones(10 + RANK))[0].item()
    assert found == 21, found


def other_first() -> None:
    """Ranks ask for different values first, and one needs no result."""
    join()
    a, b = reduced(ones(1 + RANK)), reduced(ones(10 + RANK))
    torch_ltc.sync_multi([b] if RANK == 0 else [a])
    torch_ltc.mark_step()
    assert (a[0].item(), b[0].item()) == (3, 21)
    unneeded(reduced)


def planted() -> None:
    """A mistake: each collective has a token of its own, so one whose result nobody needs is none."""
    join(timeout=4)

    def on_its_own(t: torch.Tensor) -> torch.Tensor:
        token = torch.zeros((), dtype=torch.long, device="ltc")
        handle = torch.ops.ltc_dist.all_reduce(t, 0, dist.group.WORLD.group_name, token)
        return torch.ops.ltc_dist.wait(t, handle, None)

    assert reduced(ones()).tolist() == [2] * 3  # the group is known to the engine
    unneeded(on_its_own)


def late() -> None:
    """A rank that records and then does something else keeps nobody waiting."""
    join()
    reduced(ones()).tolist()
    dist.barrier()
    store = dist.distributed_c10d._get_default_store()
    t = reduced(ones(RANK))
    if RANK == 0:
        store.wait(["had it"])  # an error where the other rank waits for this one
    assert t.tolist() == [1] * 3
    if RANK == 1:
        store.set("had it", "yes")
    if RANK == 1:
        t = reduced(ones(RANK))
        assert t.tolist() == [1] * 3
        dist.barrier()
    else:
        t = reduced(ones(RANK))
        dist.barrier()  # while the other rank waits for what is recorded here
        assert t.tolist() == [1] * 3


def leaves() -> None:
    """A rank ends with collectives recorded; a group goes, another of its name comes."""
    join()
    t = reduced(ones(RANK))
    dist.destroy_process_group()
    assert t.tolist() == [1] * 3
    join(store=STORE + "-again")
    t = reduced(ones(RANK))
    if RANK == 1:
        assert t.tolist() == [1] * 3


def destroys() -> None:
    """A rank destroys the group with a collective recorded that nobody there has read; others need it."""
    join()
    assert reduced(ones()).tolist() == [WORLD] * 3
    dist.barrier()
    t = reduced(ones(RANK))
    if RANK == 0:
        assert t.tolist() == [1] * 3
    dist.destroy_process_group()
    assert t.tolist() == [1] * 3


def fails() -> None:
    """An operator before a collective fails on one rank: no other collective takes its place."""
    join(timeout=5)
    table = torch.nn.Embedding(4, 2).to("ltc")
    index = torch.tensor([1, 9 if RANK == 0 else 2]).to("ltc")
    for t in (reduced(table(index).sum()), reduced(ones())):
        try:
            t.tolist()
        except IndexError as error:
            assert RANK == 0 and "rank_order.py" in str(error), error
        except RuntimeError as error:
            assert RANK == 1 and "ltc_dist::all_reduce" in str(error), error
        else:
            raise AssertionError("a collective met one that was not its own")
    assert (torch.ones(2, device="ltc") + 1).tolist() == [2, 2]


def killed() -> None:
    """The other ranks are told, with operator and line, and go on alone."""
    join()
    older = reduced(ones())
    assert older.tolist() == [WORLD] * 3
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    # Nobody can say what is left of a tensor that was to be reduced; of what is computed from it nothing is lost.
    newer = reduced(older) * 2
    for t, never_was in ((newer, True), (older, False)):
        try:
            t.tolist()
        except RuntimeError as error:
            assert "ltc_dist::all_reduce" in str(error), error
        else:
            raise AssertionError("a collective without all ranks")
        assert _ltc.never_was(t) is never_was
    for _ in range(2):
        try:
            reduced(ones()).tolist()
        except RuntimeError as error:
            assert "ltc_dist::all_reduce" in str(error) and "ranks.py" in str(error), error
        else:
            raise AssertionError("a collective without all ranks")
    assert time.monotonic() - start < 10
    assert (torch.ones(2, device="ltc") + 1).tolist() == [2, 2]


def stopped() -> None:
    """A rank that is silent is an error after the group's timeout."""
    join(timeout=4)
    pids = reduced(torch.tensor([os.getpid() if RANK == rank else 0 for rank in range(WORLD)]).to("ltc")).tolist()
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        reduced(ones()).tolist()
    except RuntimeError as error:
        assert "ltc_dist::all_reduce" in str(error) and "ranks.py" in str(error), error
    else:
        raise AssertionError("a collective without all ranks")
    assert 3 < time.monotonic() - start < 30
    assert (torch.ones(2, device="ltc") + 1).tolist() == [2, 2]
    os.kill(pids[1], signal.SIGKILL)


def disagreed() -> None:
    """Asked to compare, ranks that call different collectives are told both calls and lines, and wait for nobody."""
    join(timeout=60)
    assert reduced(ones()).tolist() == [2] * 3
    t = torch.full((3 if RANK == 0 else 4,), 1.0, device="ltc")
    start = time.monotonic()
    for call in ("all_reduce(Float[3], op 0)", "all_reduce(Float[4], op 0)"):
        try:
            reduced(t).tolist()
        except RuntimeError as error:
            at = f"{call} at {os.path.dirname(__file__)}/ranks.py:"
            assert "ranks disagree" in str(error) and at in str(error), error
        else:
            raise AssertionError("collectives of different shapes met")
    assert time.monotonic() - start < 20
    assert (torch.ones(2, device="ltc") + 1).tolist() == [2, 2]


def mistaken() -> None:
    """A rank that ends by an error does not wait for others first."""
    join()
    reduced(ones()).tolist()
    dist.barrier()
    t = reduced(ones()) if RANK == 0 else ones()
    if RANK == 0:
        raise ValueError("a mistake")
    time.sleep(2)
    start = time.monotonic()
    try:
        reduced(reduced(t)).tolist()
    except RuntimeError as error:
        assert "ltc_dist::all_reduce" in str(error), error
    else:
        raise AssertionError("a collective without all ranks")
    assert time.monotonic() - start < 10


if __name__ == "__main__":
    run(globals(), destroys=False)
