"""Calls of `torch.distributed`, and mistakes in them."""

import contextlib
import os
from typing import Any

import torch
import torch.distributed as dist
import torch_ltc
from ranks import ON_GPU, OPS, RANK, STORE, WORLD, drawn, join, ones, reduced, run, same

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
)


def reductions() -> None:
    """All operations of all dtypes."""
    join()
    of_bits = () if ON_GPU else (OPS.BAND, OPS.BOR, OPS.BXOR)
    for dtype in (*DTYPES, torch.bool):
        for op in (OPS.SUM, OPS.PRODUCT, OPS.MIN, OPS.MAX, *of_bits, OPS.AVG):

            def all_reduce(device, dtype=dtype, op=op):
                t = drawn(3, 4, dtype=dtype).to(device)
                dist.all_reduce(t, op)
                return [t]

            if not (dtype.is_floating_point and op in of_bits) and op != OPS.AVG:
                same(f"all_reduce {dtype} {op}", all_reduce)
        if dtype.is_floating_point:
            found, expected = drawn(4, dtype=dtype).to("ltc"), drawn(4, dtype=dtype)
            dist.all_reduce(found, OPS.AVG)
            dist.all_reduce(expected)
            assert torch.equal(found.cpu(), expected / WORLD)

        def reduce(device, dtype=dtype):
            t = drawn(3, 4, dtype=dtype).to(device)
            dist.reduce(t, 0)
            return [t] if RANK == 0 else []

        same(f"reduce {dtype}", reduce)
    t = ones(RANK)
    dist.reduce(t, 0)
    assert t.tolist() == [float(sum(range(WORLD)) if RANK == 0 else RANK)] * 3


def shapes() -> None:
    """Tensors that are not simply all of their memory."""
    join()

    def views(device):
        whole = drawn(4, 6).to(device)
        dist.all_reduce(whole.t())
        dist.all_reduce(whole[1])
        return [whole]

    def strided(device):
        # On the CPU gloo takes memory for what lies in it, gaps included.
        whole = drawn(4, 6).to(device)
        for view, call in ((whole[:, 2], dist.all_reduce), (whole[::2], lambda t: dist.broadcast(t, 1))):
            piece = view if device == "ltc" else view.contiguous()
            call(piece)
            view.copy_(piece)
        return [whole]

    def small(device):
        scalar, empty = drawn().to(device), torch.zeros(0, device=device)
        dist.all_reduce(scalar)
        dist.all_reduce(empty)
        return [scalar, empty]

    def complex_numbers(device):
        t = torch.complex(drawn(3), drawn(3, seed=1)).to(device)
        dist.all_reduce(t)
        return [t]

    def parameter(device):
        p = torch.nn.Parameter(drawn(3).to(device))
        version = p._version
        dist.broadcast(p, 1)
        return [p.detach(), torch.tensor(p._version - version)]

    for call in (views, strided, small, complex_numbers, parameter):
        same(call.__name__, call)


def movements() -> None:
    """What hands values from rank to rank."""
    join()
    for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16):

        def broadcast(device, dtype=dtype):
            t = drawn(3, 4, dtype=dtype).to(device)
            dist.broadcast(t, WORLD - 1)
            return [t]

        def all_gather(device, dtype=dtype):
            t = drawn(3, 4, dtype=dtype).to(device)
            parts = [torch.empty_like(t) for _ in range(WORLD)]
            whole = torch.empty(3 * WORLD, 4, dtype=dtype, device=device)
            dist.all_gather(parts, t)
            dist.all_gather_into_tensor(whole, t)
            return [*parts, whole]

        def gather(device, dtype=dtype):
            t = drawn(3, 4, dtype=dtype).to(device)
            parts = [torch.empty_like(t) for _ in range(WORLD)] if RANK == 1 else None
            dist.gather(t, parts, 1)
            return parts or []

        def scatter(device, dtype=dtype):
            t = torch.empty(3, 4, dtype=dtype, device=device)
            parts = [drawn(3, 4, dtype=dtype, seed=k).to(device) for k in range(WORLD)] if RANK == 1 else None
            dist.scatter(t, parts, 1)
            return [t]

        def all_to_all_single(device, dtype=dtype):
            given = drawn(2 * WORLD, 3, dtype=dtype).to(device)
            taken = torch.empty_like(given)
            dist.all_to_all_single(taken, given)
            # This rank gives one row to itself and two to each other.
            splits = [1 if k == RANK else 2 for k in range(WORLD)]
            uneven = torch.empty(sum(splits), 3, dtype=dtype, device=device)
            dist.all_to_all_single(uneven, given[: sum(splits)], splits, splits)
            return [taken, uneven]

        def all_to_all(device, dtype=dtype):
            given = [drawn(2, 3, dtype=dtype, seed=k).to(device) for k in range(WORLD)]
            taken = [torch.empty_like(t) for t in given]
            dist.all_to_all(taken, given)
            return taken

        for call in (broadcast, all_gather, gather, scatter, all_to_all_single, all_to_all):
            same(f"{call.__name__} {dtype}", call)

    def reduce_scatter(device):
        one, other = torch.empty(3, 4, device=device), torch.empty(3, 4, device=device)
        dist.reduce_scatter_tensor(one, drawn(3 * WORLD, 4).to(device))
        dist.reduce_scatter(other, [drawn(3, 4, seed=k).to(device) for k in range(WORLD)], OPS.MAX)
        return [one, other]

    def coalesced(device):
        several = [drawn(3).to(device), drawn(4, seed=1).to(device)]
        with dist._coalescing_manager():
            for t in several:
                dist.all_reduce(t)
        return several

    # Parts of different sizes, which gloo on the CPU does not take.
    given = [torch.full((1 + abs(k - RANK),), float(RANK), device="ltc") for k in range(WORLD)]
    taken = [torch.empty_like(t) for t in given]
    dist.all_to_all(taken, given)
    assert [t.tolist() for t in taken] == [[k] * (1 + abs(k - RANK)) for k in range(WORLD)]
    same("reduce_scatter", reduce_scatter)
    same("coalesced", coalesced)


def messages() -> None:
    """From one rank to another."""
    join()
    following, before = (RANK + 1) % WORLD, (RANK - 1) % WORLD

    def receive_first(device):
        t = torch.empty(5, device=device)
        works = [dist.irecv(t, before), dist.isend(drawn(5).to(device), following)]
        if device == "ltc":
            torch_ltc.mark_step()  # programs of all ranks end where messages are awaited that are not sent yet
        for work in works:
            work.wait()
        return [t]

    def into_views(device):
        whole = torch.zeros(4, 6, device=device)
        received = dist.P2POp(dist.irecv, whole[2], before)
        sent = dist.P2POp(dist.isend, drawn(6).to(device), following)
        for work in dist.batch_isend_irecv([received, sent]):
            work.wait()
        return [whole]

    def from_any(device):
        t = torch.zeros(3, device=device)
        if RANK == 0:
            dist.send(torch.arange(3.0, device=device), 1)
        if RANK == 1:
            return [torch.tensor(dist.recv(t)), t]
        return []

    for call in (receive_first, into_views, from_any):
        same(call.__name__, call)
    objects: list[Any] = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK})
    assert [o["rank"] for o in objects] == list(range(WORLD))


def groups() -> None:
    """Subgroups, works, barriers, functional collectives; and engines by every name."""
    import torch.distributed._functional_collectives as functional

    join()

    def subgroup(device):
        pair = dist.new_group([0, 1])
        if RANK > 1:
            return []
        t = drawn(3).to(device)
        dist.all_reduce(t, group=pair)
        return [t]

    def awaited(device):
        t = drawn(3).to(device)
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        assert work.is_completed()
        return [t, *work.get_future().value()]

    def functions(device):
        t, world = drawn(2 * WORLD, 2).to(device), dist.group.WORLD
        results = [
            functional.all_reduce(t, "sum", world),
            functional.all_gather_tensor(t, 0, world),
            functional.reduce_scatter_tensor(t, "sum", 0, world),
            functional.broadcast(t, 1, world),
            *functional.all_reduce_coalesced([t, t * 2], "max", world),
        ]
        return [r + 0 for r in results]

    for call in (subgroup, awaited, functions):
        same(call.__name__, call)
    dist.barrier()
    dist.destroy_process_group()
    for attempt in range(2):
        join(name="ltc" if attempt == 0 else None, store=f"{STORE}-{attempt}")
        pending = reduced(ones(RANK))
        dist.barrier()
        assert pending.tolist() == [sum(range(WORLD))] * 3
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to("ltc"))
        dist.destroy_process_group()


def no_messages() -> None:
    """Messages between GPUs are refused: NCCL's may wait for each other."""
    join()
    for call in (lambda t: dist.send(t, 1 - RANK), lambda t: dist.recv(t, 1 - RANK), dist.recv):
        with contextlib.suppress(NotImplementedError):
            call(ones())
            raise AssertionError("a message was taken")
    assert reduced(ones()).tolist() == [float(WORLD)] * 3


def mistakes() -> None:
    """Errors come at the call, and of the CPU's class."""
    join()
    ranks = range(WORLD)
    calls = {
        "all_gather_into_tensor": lambda d: dist.all_gather_into_tensor(
            torch.empty(3, device=d), torch.ones(2, device=d)
        ),
        "reduce_scatter": lambda d: dist.reduce_scatter_tensor(torch.empty(3, device=d), torch.ones(2, device=d)),
        "all_gather": lambda d: dist.all_gather([torch.empty(3, device=d) for _ in ranks], torch.ones(2, device=d)),
        "all_to_all": lambda d: dist.all_to_all_single(
            torch.empty(2, device=d), torch.ones(2, device=d), [1, 5], [1, 1]
        ),
        "premul": lambda d: dist.all_reduce(torch.ones(2, device=d), dist._make_nccl_premul_sum(2.0)),
        "average": lambda d: dist.all_reduce(torch.ones(2, device=d, dtype=torch.int64), OPS.AVG),
    }
    for name, call in calls.items():
        for device in ("cpu", "ltc"):
            try:
                call(device)
            except RuntimeError as error:
                message = str(error)
            else:
                raise AssertionError(f"{name} on {device} raises nothing")
        assert "c10d::" in message, message
    assert reduced(ones()).tolist() == [WORLD] * 3
    shared = dist.new_group(backend="cpu:gloo,ltc:gloo")
    try:
        dist.all_reduce(ones(), group=shared)
    except RuntimeError as error:
        assert 'init_process_group("cpu:gloo,ltc:ltc")' in str(error), error
    else:
        raise AssertionError("one engine for two threads is no error")
    pid = os.fork()
    if pid == 0:
        try:
            dist.all_reduce(ones())
        except RuntimeError as error:
            os._exit(0 if "its parent's" in str(error) else 3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


if __name__ == "__main__":
    run(globals(), destroys=True)
