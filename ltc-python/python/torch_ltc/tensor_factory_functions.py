"""Factory functions whose device a graph that is moved to ltc has to change
(``torch._lazy.tensor_factory_functions``)."""

from collections.abc import Callable

import torch

tensor_factory_functions: tuple[Callable[..., torch.Tensor], ...] = (
    torch._cudnn_init_dropout_state,
    torch.arange,
    torch.bartlett_window,
    torch.blackman_window,
    torch._empty_affine_quantized,
    torch.empty_strided,
    torch.eye,
    torch.full,
    torch.from_file,
    torch.hann_window,
    torch.hamming_window,
    torch.kaiser_window,
    torch.linspace,
    torch.logspace,
    torch.ones,
    torch.scalar_tensor,
    torch.rand,
    torch.randint,
    torch.randn,
    torch.randperm,
    torch.range,
    torch._efficientzerotensor,
    torch.sparse_compressed_tensor,
    torch.sparse_csr_tensor,
    torch.sparse_csc_tensor,
    torch.sparse_bsr_tensor,
    torch.sparse_bsc_tensor,
    torch.sparse_coo_tensor,
    torch.sparse_coo_tensor,
    torch.empty,
    torch.tril_indices,
    torch.triu_indices,
    torch.zeros,
)
