"""What the examples share: the command line, the training loop, the printed losses.

Every example has `build(device, prepare, compiled)`, which returns a function that runs one training step and returns
its loss, still on the device, and `main(device, steps)`, which trains and returns the losses. `prepare` is what is done
with the model before it trains (a benchmark compiles it), `compiled` what is done with the part of the step that
follows from its batch (`torch_ltc.compile` replays it; drawing the batch stays outside). Seeds are fixed: the losses on
ltc equal those on the CPU.
"""

import argparse
import time

import torch
import torch_ltc


def as_is(model):
    """The model unchanged."""
    return model


def train(build, device, steps, sync=torch_ltc.mark_step):
    """Runs `steps` steps. Losses are read only at the end, so that no step waits for the device."""
    torch.manual_seed(0)
    step = build(torch.device(device))
    torch.manual_seed(1)  # models are initialised on the CPU, so only now do both devices' generators stand alike
    losses = []
    for _ in range(steps):
        losses.append(step())
        if device == "ltc":
            sync()
    return [loss.item() for loss in losses]


def run(main, steps):
    """The command line of an example: trains and prints every tenth loss and the time."""
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="ltc", help="ltc or cpu")
    p.add_argument("--steps", type=int, default=steps)
    args = p.parse_args()
    start = time.perf_counter()
    losses = main(args.device, args.steps)
    for i in sorted({*range(0, args.steps, 10), args.steps - 1}):
        print(f"step {i + 1:4}  loss {losses[i]:.6f}")
    print(f"{args.steps} steps on {args.device}: {time.perf_counter() - start:.2f} s")
