"""The entries of PyTorch's operator database: names, categories, dtypes and tolerances."""

from torch.testing._internal import common_methods_invocations as db
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo import core

#: Operators whose result is memory nobody wrote: only shape, dtype and strides can be compared.
UNINITIALISED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip

#: Operators whose tensor arguments (not the input) stay on the CPU on every device.
HOST_ARGUMENTS = {"tensor_split"}

#: Tests of PyTorch whose tolerance overrides speak about equal results on another device.
_TOLERANCE_TESTS = {None, "TestCommon", "TestUnaryUfuncs", "TestBinaryUfuncs", "TestReductions", "TestMathBits"}


def name(op):
    """The name of an entry: the operator and, after a dot, its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries():
    """All entries by name, in the order of the database."""
    return {name(op): op for op in db.op_db}


def category(op):
    """One word for the kind of operator: its namespace, else the class of its entry."""
    head = op.name.split(".")[0]
    if head in ("linalg", "fft", "nn", "special", "signal", "masked", "sparse", "torch"):
        return {"torch": "library", "nn": "nn.functional"}.get(head, head)
    for kind, word in (
        (core.UnaryUfuncInfo, "unary"),
        (core.BinaryUfuncInfo, "binary"),
        (core.ReductionOpInfo, "reduction"),
        (core.ShapeFuncInfo, "shape"),
    ):
        if isinstance(op, kind):
            return word
    if head.startswith(("_refs", "ops")):
        return "library"
    return "other"


def dtypes(op, wanted):
    """The wanted dtypes the CPU supports for `op`; if none, one that it does support, so that no entry goes
    untested."""
    supported = op.supported_dtypes("cpu")
    chosen = [d for d in wanted if d in supported]
    return chosen or sorted(supported, key=str)[:1]


def tolerance(op, dtype):
    """The operator's own (rtol, atol) for `dtype`, or None for torch.testing's defaults."""
    found = []
    for info in op.decorators:
        if getattr(info, "cls_name", None) not in _TOLERANCE_TESTS:
            continue
        for d in getattr(info, "decorators", ()):
            if isinstance(d, toleranceOverride) and dtype in d.d:
                found.append(d.d[dtype])
    if not found:
        return None
    return max(t.rtol for t in found), max(t.atol for t in found)
