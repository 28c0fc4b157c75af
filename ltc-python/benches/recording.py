"""What recording an operator costs from Python, against eager CPU tensors computing it: microseconds, best of many, in
one run."""

import time

import torch
import torch_ltc

OPERATORS, CHAINS, REPETITIONS = 50, 20, 300


def _chain(t):
    y = t
    for _ in range(OPERATORS // 2):
        y = y * 1.01 + 0.5
    return y


def _add(t):
    y = t
    for _ in range(OPERATORS):
        y = torch.add(y, t)
    return y


def _relu(t):
    y = t
    for _ in range(OPERATORS):
        y = torch.relu(y)
    return y


def best(program, device):
    """Microseconds per operator; on ``ltc`` nothing runs within the time taken."""
    t = torch.randn(16).to(device)
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        kept = [program(t) for _ in range(CHAINS)]
        times.append(time.perf_counter() - start)
        del kept
        if device == "ltc":
            torch_ltc.mark_step()
    return min(times) / (CHAINS * OPERATORS) * 1e6


def main():
    torch.set_num_threads(1)
    print(f"{'us per operator':<18}{'eager':>8}{'record':>8}{'ratio':>8}")
    with torch.no_grad():
        for name, program in (("t * 1.01 + 0.5", _chain), ("add(t, t)", _add), ("relu", _relu)):
            eager, lazy = best(program, "cpu"), best(program, "ltc")
            print(f"{name:<18}{eager:>8.3f}{lazy:>8.3f}{lazy / eager:>8.2f}")


if __name__ == "__main__":
    main()
