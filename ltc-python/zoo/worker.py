"""A process that examines entries: requests on stdin, answers as JSON lines on the file descriptor it is given."""

import faulthandler
import json
import os
import signal
import sys
import time


def answer(request, at):
    """The row of an entry."""
    from . import train

    start = time.monotonic()
    try:
        row = train.examine(request["entry"], request["ways"], request.get("plant"), request.get("timed", True), at)
    except Exception as e:  # noqa: BLE001  (a broken entry must not end the run)
        row = {"error": f"{type(e).__name__}: {e}"[:600]}
    return row | {"seconds": round(time.monotonic() - start, 1)}


def main():
    """Answers until stdin closes."""
    lines = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    # The watchdog asks a child that hangs where it is.
    faulthandler.register(signal.SIGUSR1, file=lines)
    import torch
    import torch_ltc  # noqa: F401

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    send = lambda **row: print(json.dumps(row), file=lines)
    send(outcome="ready")
    for line in sys.stdin:
        send(outcome="row", **answer(json.loads(line), at=lambda text: send(program=text)))


if __name__ == "__main__":
    main()
