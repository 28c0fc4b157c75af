"""What overlap hides: rank 1 comes to a reduction 20 ms late, while rank 0 has other work in the same program.

`torchrun --nproc-per-node 2 ltc-python/benches/late_rank.py` prints rank 0's milliseconds, least and median, of the
work alone, of the reduction alone, and of both; with `LTC_REWRITES=-waits` each collective is waited for at its place.
"""

import statistics
import time

import torch
import torch.distributed as dist
import torch_ltc

LATE, ROUNDS = 0.02, 30


def main():
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc")
    rank, x = dist.get_rank(), torch.rand(512, 512).to("ltc")

    def work():
        y = x
        for _ in range(8):
            y = torch.tanh(y @ x)
        return [y]

    def reduction():
        t = torch.ones(3, device="ltc")
        dist.all_reduce(t)
        return [t]

    def timed(does):
        dist.barrier()
        start = time.perf_counter()
        if rank == 1 and reduction in does:
            time.sleep(LATE)
        results = [result for do in does if rank == 0 or do is reduction for result in do()]
        torch_ltc.sync_multi(results)
        for result in results:
            result.cpu()
        return 1e3 * (time.perf_counter() - start)

    for name, does in {"work": [work], "reduction": [reduction], "both": [reduction, work]}.items():
        times = [timed(does) for _ in range(ROUNDS)][5:]
        if rank == 0:
            print(f"{name:10} {min(times):6.1f} {statistics.median(times):6.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
