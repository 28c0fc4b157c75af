"""Ranks that go on from a checkpoint: in another number of processes, or after one of them died."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch_ltc
from ranks import RANK, STORE, WORLD, drawn, join, run
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

STEPS = 6
#: Where the ranks of all runs of a test leave what they have.
KEPT = Path(STORE).parent / "kept"


def sharded() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A network whose parameters no number of ranks divides evenly, in parts."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(10, 7), torch.nn.ReLU(), torch.nn.Linear(7, 5)).to("ltc")
    mesh = init_device_mesh("ltc", (WORLD,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    return model, torch.optim.Adam(model.parameters(), 1e-2)


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss = model(x.to("ltc")).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def whole(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All that is to be the same, in one piece."""
    found = []
    for p in model.parameters():
        found += [p.full_tensor(), *(optimizer.state[p][k].full_tensor() for k in ("exp_avg", "exp_avg_sq"))]
    return [t.detach().cpu() for t in found]


def saved() -> None:
    """Parameters and moments in shards of two ranks, and whole beside them."""
    join()
    model, optimizer = sharded()
    for i in range(3):
        step(model, optimizer, drawn(4, 10, seed=i))
    state, moments = get_state_dict(model, optimizer)
    checkpoint.save({"model": state, "optimizer": moments}, checkpoint_id=KEPT)
    everything = whole(model, optimizer)
    if RANK == 0:
        torch.save(everything, KEPT / "whole.pt")


def loaded() -> None:
    """The same in another number of shards."""
    join()
    model, optimizer = sharded()
    step(model, optimizer, drawn(4, 10, seed=9))  # other values, which loading replaces
    state, moments = get_state_dict(model, optimizer)
    checkpoint.load({"model": state, "optimizer": moments}, checkpoint_id=KEPT)
    set_state_dict(model, optimizer, model_state_dict=state, optim_state_dict=moments)
    for found, expected in zip(whole(model, optimizer), torch.load(KEPT / "whole.pt"), strict=True):
        assert torch.equal(found, expected)
    step(model, optimizer, drawn(4, 10))


def restarted() -> None:
    """Under torchrun. A rank dies once, if it is told to; the next attempt goes on from the last checkpoint."""
    dist.init_process_group()
    torch.manual_seed(3)
    network = torch.nn.Sequential(torch.nn.Linear(10, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5)).to("ltc")
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    path, losses = KEPT / "checkpoint.pt", []
    if path.exists():
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        losses = kept["losses"]
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    while len(losses) < STEPS:
        if attempt == 0 and RANK == 1 and str(len(losses)) == os.environ.get("DIES_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        losses.append(step(model, optimizer, drawn(4, 10, seed=len(losses))))
        torch_ltc.mark_step()
        if RANK == 0:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, f"{path}.new"
            )
            os.replace(f"{path}.new", path)
    if RANK == 0:
        sys.stdout.write(f"attempt {attempt}: {' '.join(map(float.hex, losses))}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    run(globals(), destroys=True)
