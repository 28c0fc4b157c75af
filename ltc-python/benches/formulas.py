"""Formulas of pointwise operators and means: microseconds on the CPU eagerly, by `torch.compile`, and on ltc recorded
and compiled, each waited for; medians of seven, all in one run."""

import argparse
import statistics
import time
import warnings

import torch
import torch.nn.functional as F
import torch_ltc

FORMULAS = {
    "`cos(x) * y + sin(x) * y`": lambda x, y: x.cos() * y + x.sin() * y,
    "`elu(elu(x) + y)`": lambda x, y: F.elu(F.elu(x) + y),
    "`log1p(expm1(abs(x))) + y`": lambda x, y: torch.log1p(torch.expm1(x.abs())) + y,
    "`remainder(x, abs(y) + 1) * sign(y)`": lambda x, y: torch.remainder(x, y.abs() + 1) * torch.sign(y),
    "`softplus(x) * y`": lambda x, y: F.softplus(x) * y,
    "`hardswish(x) + hardswish(y)`": lambda x, y: F.hardswish(x) + F.hardswish(y),
    "`mish(x) * y`": lambda x, y: F.mish(x) * y,
    "`gelu(x, tanh) * y`": lambda x, y: F.gelu(x, approximate="tanh") * y,
    "`x - x.square().mean()`": lambda x, y: x - x.square().mean(),
}


def _microseconds(call, times):
    for _ in range(4):
        call()
    took = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(times):
            call()
        took.append((time.perf_counter() - start) / times)
    return statistics.median(took) * 1e6


def main():
    """Prints a row of a Markdown table for each formula and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="16,1024,1048576")
    sizes = [int(n) for n in parser.parse_args().sizes.split(",")]
    print("| formula | elements | eager | torch.compile | recorded | compiled | recorded / eager | / torch.compile |")
    print("|---|---|---|---|---|---|---|---|")
    for n in sizes:
        times = 200 if n < 1 << 18 else 5
        for name, formula in FORMULAS.items():
            a, b = torch.randn(n), torch.randn(n)
            x, y = a.to("ltc"), b.to("ltc")
            compiled = torch_ltc.compile(formula)

            def waited(call, x=x, y=y):
                result = call(x, y)
                torch_ltc.mark_step(wait=True)
                return result

            eager = _microseconds(lambda: formula(a, b), times)
            inductor = torch.compile(formula)
            rival = _microseconds(lambda: inductor(a, b), times)
            recorded = _microseconds(lambda: waited(formula), times)
            replayed = _microseconds(lambda: waited(compiled), times)
            torch.testing.assert_close(waited(compiled).cpu(), formula(a, b), rtol=1e-5, atol=1e-5)
            figures = " | ".join(f"{t:.1f}" for t in (eager, rival, recorded, replayed))
            print(f"| {name} | {n} | {figures} | {recorded / eager:.2f} | {recorded / rival:.2f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
