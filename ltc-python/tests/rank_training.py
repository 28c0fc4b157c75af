"""Training in many processes, by all that PyTorch has for it."""

from typing import Any

import torch
import torch.distributed as dist
import torch_ltc
from ranks import ON_GPU, RANK, STORE, WORLD, drawn, join, run
from torch.nn.parallel import DistributedDataParallel


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)]
    return torch.nn.Sequential(*layers)


def with_buffers() -> torch.nn.Sequential:
    """Its buffers differ from rank to rank until DDP broadcasts them, which it does at each forward."""
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 8))


def losses(model: Any, optimizer: Any, device: str, steps: int = 12) -> list[float]:
    draws, found = torch.Generator().manual_seed(RANK), []
    for _ in range(steps):
        x = torch.randn(16, 8, generator=draws).to(device)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [loss.item() for loss in found]


def alike(name: str, train: Any, tolerance: float = 1e-5) -> None:
    cpu, ltc = torch.tensor(train("cpu")), torch.tensor(train("ltc"))
    torch.testing.assert_close(ltc, cpu, rtol=tolerance, atol=1e-6, msg=lambda m: f"{name}: {m}")


def ddp() -> None:
    join()
    kinds: list[dict[str, Any]] = [
        {},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"bucket_cap_mb": 0.001},
    ]
    for kind in kinds:

        def train(device, kind=kind):
            model = DistributedDataParallel(network().to(device), **kind)
            return losses(model, torch.optim.Adam(model.parameters(), 1e-2), device)

        alike(str(kind), train)


def ddp_bits() -> None:
    """`LTC_FUSION=exact`: the CPU's bits."""
    join()

    def train(device):
        model = DistributedDataParallel(network().to(device))
        return losses(model, torch.optim.SGD(model.parameters(), 1e-2), device, 50)

    assert train("cpu") == train("ltc")


def ddp_compiled() -> None:
    """A compiled step is recorded while DDP settles, and replayed from then on, collectives included; also where other
    ranks record theirs."""
    join()
    compiling, made = [], network

    def train(device):
        model = DistributedDataParallel(made().to(device))
        optimizer, draws, found = torch.optim.Adam(model.parameters(), 1e-2), torch.Generator().manual_seed(RANK), []

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        compiles = device == "ltc" and RANK in compiling
        run = torch_ltc.compile(step) if compiles else step
        for i in range(30):
            found.append(run(torch.randn(16, 8, generator=draws).to(device)))
            if i % 7 == RANK:
                found[-1].item()  # ranks cut their programs at different places
        if compiles:
            replayed, _ = run.counts
            assert replayed >= 15, run.explain()
        return [*(loss.item() for loss in found), *(x.double().mean().item() for x in model.buffers())]

    for made in (network, with_buffers):
        for compiling in ([0, 1], [1]):
            alike(f"{made.__name__} compiled by {compiling}", train)


def ddp_more() -> None:
    """Hooks, accumulated gradients, uneven inputs, buffers, and an optimiser in parts."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    from torch.distributed.optim import ZeroRedundancyOptimizer

    join()

    def hook(device):
        model = DistributedDataParallel(network().to(device))
        model.register_comm_hook(None, fp16_compress_hook)
        return losses(model, torch.optim.SGD(model.parameters(), 1e-2), device)

    def accumulated(device):
        model, found = DistributedDataParallel(network().to(device)), []
        optimizer, draws = torch.optim.SGD(model.parameters(), 1e-2), torch.Generator().manual_seed(RANK)
        for _ in range(4):
            with model.no_sync():
                model(torch.randn(16, 8, generator=draws).to(device)).square().mean().backward()
            loss = model(torch.randn(16, 8, generator=draws).to(device)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        return found

    def uneven(device):
        model = DistributedDataParallel(network().to(device))
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        with model.join():
            return losses(model, optimizer, device, 3 + RANK)

    def buffers(device):
        model = DistributedDataParallel(with_buffers().to(device))
        found = losses(model, torch.optim.SGD(model.parameters(), 1e-2), device)
        return [*found, *model.module[1].running_mean.tolist()]

    def zero(device):
        model = DistributedDataParallel(network().to(device))
        return losses(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2), device)

    alike("hook", hook, 1e-3)
    for train in (accumulated, uneven, buffers, zero):
        alike(train.__name__, train)


def sharded() -> None:
    """DTensor, tensor parallelism, FSDP2, and checkpoints of it."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    join()

    def product(device):
        mesh, draws = init_device_mesh(device, (WORLD,)), torch.Generator().manual_seed(1)
        a, b = (torch.randn(8, 8, generator=draws).to(device) for _ in range(2))
        rows, columns = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(b, mesh, [Shard(1)])
        return (rows @ columns.redistribute(mesh, [Replicate()])).full_tensor().flatten().tolist()

    def tensor_parallel(device):
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel(), "4": ColwiseParallel(output_layouts=Replicate())}
        model = parallelize_module(network().to(device), init_device_mesh(device, (WORLD,)), plan)
        return losses(model, torch.optim.SGD(model.parameters(), 1e-2), device)

    def split(device):
        mesh, model = init_device_mesh(device, (WORLD,)), network().to(device)
        for layer in (model[0], model[2], model[4], model):
            fully_shard(layer, mesh=mesh)
        return model

    def fsdp(device):
        model = split(device)
        return losses(model, torch.optim.Adam(model.parameters(), 1e-2), device)

    def saved(device):
        model, path = split(device), f"{STORE}-saved-{device}"
        found = losses(model, torch.optim.SGD(model.parameters(), 1e-2), device, 3)
        # Where there is a GPU, torch's writer copies ahead from `cuda` tensors only.
        ahead = {"per_thread_copy_ahead": 0} if ON_GPU else {}
        checkpoint.save(get_model_state_dict(model), storage_writer=checkpoint.FileSystemWriter(path, **ahead))
        other = split(device)
        state = get_model_state_dict(other)
        checkpoint.load(state, checkpoint_id=path)
        set_model_state_dict(other, state)
        assert all(
            torch.equal(p.full_tensor(), q.full_tensor())
            for p, q in zip(model.parameters(), other.parameters(), strict=True)
        )
        return found

    for train in (product, tensor_parallel, fsdp, saved):
        alike(train.__name__, train)


def drawing() -> None:
    """Random operators on DTensors: replicas draw alike, shards apart, and a seed says which numbers."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, rand

    join()
    mesh = init_device_mesh("ltc", (WORLD,))

    def everywhere(t: torch.Tensor) -> torch.Tensor:
        all_ranks = [torch.empty_like(t) for _ in range(WORLD)]
        dist.all_gather(all_ranks, t)
        assert all(torch.equal(t, other) for other in all_ranks), "ranks drew different numbers"
        return t.cpu()

    def draws() -> list[torch.Tensor]:
        torch.manual_seed(5)
        ones = torch.ones(64, 8, device="ltc")
        spread, copied = distribute_tensor(ones, mesh, [Shard(0)]), distribute_tensor(ones, mesh, [Replicate()])
        found = [torch.dropout(t, 0.5, True).full_tensor() for t in (spread, copied, spread)]
        found += [torch.empty_like(t).uniform_().full_tensor() for t in (spread, copied)]
        found += [rand(64, 8, device_mesh=mesh, placements=[Shard(1)]).full_tensor()]
        return [everywhere(t) for t in (*found, torch.rand(9, device="ltc"))]

    first = draws()
    assert all(torch.equal(a, b) for a, b in zip(first, draws(), strict=True)), "a seed gives other numbers"
    assert len({t.numpy().tobytes() for t in first}) == len(first), "two draws are the same"
    for t in (first[0], first[3]):
        assert not torch.equal(t[:32], t[32:]), "two shards are the same"
    assert abs(first[3].mean().item() - 0.5) < 0.1

    # As large networks begin: on no device, then each rank its shards.
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(16, 12), torch.nn.Dropout(0.5), torch.nn.Linear(12, 4))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    model.to_empty(device="ltc")
    torch.manual_seed(6)
    for layer in (model[0], model[2]):
        layer.reset_parameters()
    weights = [everywhere(p.full_tensor()) for p in model.parameters()]
    assert all(0 < w.abs().amax() < 1 for w in weights)
    model(torch.ones(3, 16, device="ltc")).sum().backward()

    # Ranks of different seeds draw by rank 0's.
    torch.distributed.tensor._random._rng_tracker = None
    torch.manual_seed(RANK)
    everywhere(
        torch.dropout(distribute_tensor(torch.ones(8, 8, device="ltc"), mesh, [Replicate()]), 0.5, True).to_local()
    )


def launched() -> None:
    """As `torchrun` starts it, with no backend named and no store."""
    dist.init_process_group()
    model = DistributedDataParallel(network().to("ltc"))
    model(drawn(4, 8).to("ltc")).sum().backward()
    mine = model.module[0].weight.grad.clone()
    dist.broadcast(mine, 0)
    assert torch.equal(mine, model.module[0].weight.grad)
    dist.destroy_process_group()


if __name__ == "__main__":
    run(globals(), destroys=True)
