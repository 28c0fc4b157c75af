"""Memory of a rank that trains a network in shards (FSDP2) or whole (DDP), on the CPU or on ltc.

`torchrun --nproc-per-node 2 ltc-python/benches/sharded_memory.py ltc fsdp` prints MiB: the network's parameters, by how
much the process grew, and what the device holds after a step and held at most.
"""

import argparse

import torch
import torch.distributed as dist
import torch_ltc
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, STEPS = 2048, 8, 8


def process(which):
    """Resident memory (``VmRSS``) or the most of it (``VmHWM``)."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(which))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("device", choices=["cpu", "ltc"])
    arguments.add_argument("way", choices=["fsdp", "ddp"])
    options = arguments.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc")
    (torch.ones(8, 8, device=options.device) @ torch.ones(8, 8, device=options.device)).sum().item()
    before = process("VmRSS")
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)])
    parameters = sum(p.nbytes for p in model.parameters()) >> 20
    model = model.to(options.device)
    if options.way == "fsdp":
        mesh = init_device_mesh(options.device, (dist.get_world_size(),))
        for part in (*model, model):
            fully_shard(part, mesh=mesh)
    else:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.randn(16, WIDTH).to(options.device)
    for i in range(STEPS):
        if i == STEPS // 2:
            torch.ltc.reset_peak_memory_stats()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()
        torch_ltc.mark_step(wait=True)
    if dist.get_rank() == 0:
        device = f", device {torch.ltc.memory_allocated() >> 20}, at most {torch.ltc.max_memory_allocated() >> 20}"
        print(
            f"{options.device} {options.way}: parameters {parameters}, process grew by {process('VmRSS') - before}, "
            f"at most {process('VmHWM') - before}{device if options.device == 'ltc' else ''}"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
