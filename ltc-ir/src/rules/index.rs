//! Selection and indexing.

use super::{Call, NewResults, ShapeError, checked, one, wrap_dim};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// `index_select(self, dim, index)`.
pub fn index_select(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index) = (call.need(0)?, call.need(2)?);
    let dim = wrap_dim(call.int(1, 0), x.rank())?;
    if index.rank() > 1 {
        return Err(ShapeError::index(format!(
            "index_select(): Index is supposed to be a vector, got sizes {:?}",
            index.sizes()
        )));
    }
    if !matches!(index.dtype(), DType::I32 | DType::I64) {
        return Err(ShapeError::runtime("index_select(): Expected dtype int32/int64 for index"));
    }
    let mut sizes: Dims = x.sizes().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = index.numel();
    } else if index.numel() != 1 {
        return Err(ShapeError::index("index_select(): Index to scalar can have only 1 value"));
    }
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)`.
pub fn embedding_dense_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let grad = call.need(0)?;
    let width = grad.sizes().last().copied().unwrap_or(1);
    let rows = call.int(2, 0);
    checked(call.op, rows.checked_mul(width))?;
    one(Layout::contiguous(grad.dtype(), &[rows.max(0), width]))
}
