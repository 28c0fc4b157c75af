//! Adaptive pooling (`AdaptiveAveragePooling*.cpp`).

use super::{Call, NewResults, ShapeError, in_format, one, suggest_memory_format};
use crate::layout::{Dims, Layout};

fn adaptive(call: &Call<'_>, spatial: usize) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    let out = call.ints(1).unwrap_or_default();
    if out.len() != spatial {
        return Err(ShapeError::runtime(format!("adaptive_avg_pool{spatial}d: output_size must be {spatial}")));
    }
    let rank = input.rank();
    if rank != spatial + 1 && rank != spatial + 2 {
        return Err(ShapeError::runtime(format!(
            "adaptive_avg_pool{spatial}d(): Expected {}D or {}D tensor, but got {:?}",
            spatial + 1,
            spatial + 2,
            input.sizes()
        )));
    }
    if let Some(d) = (rank - spatial..rank).find(|&d| input.sizes()[d] == 0) {
        return Err(ShapeError::runtime(format!(
            "adaptive_avg_pool{spatial}d(): Expected input to have non-zero size for non-batch dimensions, but input \
             has sizes {:?} with dimension {d} being empty",
            input.sizes()
        )));
    }
    if out.iter().any(|&s| s < 0) {
        return Err(ShapeError::runtime(format!(
            "adaptive_avg_pool{spatial}d: elements of output_size must be greater than or equal to 0"
        )));
    }
    let mut sizes: Dims = input.sizes().into();
    sizes[rank - spatial..].copy_from_slice(&out);
    // The volumetric kernel makes a row-major result whatever the input's format.
    if spatial == 3 {
        one(Layout::contiguous(input.dtype(), &sizes))
    } else {
        one(in_format(input.dtype(), &sizes, suggest_memory_format(input)))
    }
}

/// `_adaptive_avg_pool2d(input, output_size)`.
///
/// # Errors
/// Fails for an input that is no plane with channels, nor a batch of them, or has no points; and for output sizes that
/// are not two or are negative.
pub fn adaptive_avg_pool2d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    adaptive(call, 2)
}

/// `_adaptive_avg_pool3d(input, output_size)`.
///
/// # Errors
/// As [`adaptive_avg_pool2d`], of volumes and three sizes.
pub fn adaptive_avg_pool3d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    adaptive(call, 3)
}

/// `_adaptive_avg_pool2d_backward(grad, input)`: the input's sizes in its memory format.
///
/// # Errors
/// Fails where the input is no tensor.
pub fn adaptive_avg_pool2d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    one(in_format(input.dtype(), input.sizes(), suggest_memory_format(input)))
}

/// `_adaptive_avg_pool3d_backward(grad, input)`.
///
/// # Errors
/// Fails where the input is no tensor.
pub fn adaptive_avg_pool3d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::like_second(call)
}
