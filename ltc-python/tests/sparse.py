"""Shared by the tests of sparse tensors: comparisons and matrices."""

import torch
from citizen import same

COO, CSR = torch.sparse_coo, torch.sparse_csr


def dense(rows=4, columns=5, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(-9, 10, (rows, columns), generator=g)
    return (x * (torch.rand(rows, columns, generator=g) < 0.5)).to(dtype)


def moved(x):
    """`x` on ltc: a leaf of its own that requires grad where `x` does."""
    if not isinstance(x, torch.Tensor):
        return x
    return x.detach().clone().to("ltc").requires_grad_(x.requires_grad)


def agree(ltc, cpu):
    """The same layout and the same bits, part by part for sparse tensors."""
    if not isinstance(cpu, torch.Tensor):
        assert ltc == cpu and type(ltc) is type(cpu)
        return
    assert ltc.device.type == "ltc"
    found = (ltc.layout, ltc.dtype, ltc.shape, ltc.requires_grad)
    assert found == (cpu.layout, cpu.dtype, cpu.shape, cpu.requires_grad)
    if cpu.layout is COO:
        assert (ltc.is_coalesced(), ltc._nnz()) == (cpu.is_coalesced(), cpu._nnz())
        assert (ltc.sparse_dim(), ltc.dense_dim()) == (cpu.sparse_dim(), cpu.dense_dim())
        for part in (lambda t: t._indices(), lambda t: t._values()):
            assert part(ltc).device.type == "ltc" and part(ltc).layout is torch.strided
            same(part(ltc), part(cpu))
    elif cpu.layout is not torch.strided:
        rows = cpu.layout in (CSR, torch.sparse_bsr)
        indices = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        for part in (*indices, "values"):
            same(getattr(ltc, part)(), getattr(cpu, part)())
    else:
        same(ltc, cpu)


def coo(grad=False, **given):
    return dense(**given).to_sparse().requires_grad_(grad)


def csr(grad=False, **given):
    return dense(**given).to_sparse_csr().requires_grad_(grad)
