"""That the fast ways are taken, told by what libtorch's dispatcher says."""

import pytest
import torch
import torch_ltc  # noqa: F401


@pytest.mark.parametrize("operator", ["add.Tensor", "add_.Tensor", "mul.Scalar", "relu", "mm", "addmm", "where.self"])
def test_tensors_and_numbers_are_recorded_without_a_stack(operator):
    """Copies on a stack would make PyTorch take the interpreter's lock for each tensor."""
    lines = torch._C._dispatch_dump(f"aten::{operator}").splitlines()
    (ours,) = [line for line in lines if line.startswith("PrivateUse1:")]
    assert ours.endswith("[ boxed unboxed ]"), ours
