"""Tests compare with the CPU bit by bit: kernels are fused only where that stays so. Others say so themselves."""

import os

os.environ.setdefault("LTC_FUSION", "exact")
