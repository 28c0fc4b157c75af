"""These tests run over the CUDA stand-in, by `make test-dry` (docs/cuda.md); without it there is nothing to collect."""

import os

collect_ignore_glob = [] if "DRY_CUDA_ORDER" in os.environ else ["*.py"]
