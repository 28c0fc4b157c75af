"""These tests run `ltc` on a CUDA place over the stand-in, by `make test-dry` (docs/cuda.md); without it there is
nothing to collect. They have a process of their own, since plain `cuda` tensors cannot go backward in one that imported
`torch_ltc`."""

import os
import sys
from pathlib import Path

collect_ignore_glob = [] if "DRY_CUDA_ORDER" in os.environ else ["*.py"]

if "DRY_CUDA_ORDER" in os.environ:
    tests = Path(__file__).parent.parent
    sys.path[:0] = [str(tests / "dry"), str(tests)]
    import stand_in  # noqa: F401
    import torch_ltc

    # The shadow's: below it, operators on `cuda` have values.
    torch_ltc._ltc.set_place_key("Fake")
