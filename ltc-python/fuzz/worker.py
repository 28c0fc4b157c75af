"""A process that runs programs: requests on stdin, answers as JSON lines on the file descriptor it is given."""

import faulthandler
import json
import os
import signal
import sys


def answer(request):
    """What comes of a program's text."""
    from . import modes, program
    from .world import Difference, Undefined, quiet

    quiet()
    try:
        made = program.parse(request["program"])
        counts = modes.run(made, request.get("plant"))
    except Difference as e:
        return {"outcome": "different", "what": str(e)}
    except Undefined as e:
        return {"outcome": "undefined", "what": str(e)}
    except BaseException as e:  # a panic of the extension is a finding, too
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        return {"outcome": "different", "what": f"{type(e).__name__}: {e}"[:600]}
    return {"outcome": "same", "counts": counts}


def main():
    """Answers until stdin closes."""
    lines = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    # The watchdog asks a child that hangs where it is.
    faulthandler.register(signal.SIGUSR1, file=lines)
    import torch
    import torch_ltc  # noqa: F401

    # What a program needs is imported before the child says that it is ready: who cannot import it does not start.
    from . import generate, modes  # noqa: F401

    torch.set_num_threads(2)
    print(json.dumps({"outcome": "ready"}), file=lines)
    for line in sys.stdin:
        request = json.loads(line)
        if "make" in request:
            made = str(generate.make(request["make"], request.get("mode")))
            print(json.dumps({"program": made}), file=lines)
            print(json.dumps({"outcome": "made"}), file=lines)
            continue
        print(json.dumps(answer(request)), file=lines)


if __name__ == "__main__":
    main()
