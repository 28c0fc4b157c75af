//! Normalisations (`batch_norm`, `layer_norm`, `group_norm` of `aten/src/ATen/native`).

use smallvec::SmallVec;

use super::{Call, NewResults, ShapeError, in_format, suggest_memory_format};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// Statistics are kept in the parameters' dtype when the input is of reduced precision and the parameters are not.
fn statistics_dtype(input: &Layout, parameter: Option<&Layout>) -> DType {
    match (input.dtype(), parameter) {
        (DType::F16 | DType::BF16, Some(p)) => p.dtype(),
        (dtype, _) => dtype,
    }
}

/// `native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps)`.
pub fn batch_norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    if input.rank() < 2 {
        return Err(ShapeError::runtime(format!(
            "batch_norm: expected at least 2 dimensions, got input of size {:?}",
            input.sizes()
        )));
    }
    let channels = input.sizes()[1];
    for (i, what) in [(1, "weight"), (2, "bias"), (3, "running_mean"), (4, "running_var")] {
        if let Some(p) = call.tensor(i)
            && p.numel() != channels
        {
            return Err(ShapeError::runtime(format!("{what} should contain {channels} elements not {}", p.numel())));
        }
    }
    let saved = if call.bool(5) { channels } else { 0 };
    let parameter = call.tensor(1).or(call.tensor(2)).or(call.tensor(3));
    let statistics = Layout::contiguous(statistics_dtype(input, parameter), &[saved]);
    let output = in_format(input.dtype(), input.sizes(), suggest_memory_format(input));
    Ok(SmallVec::from_iter([Some(output), Some(statistics.clone()), Some(statistics)]))
}

/// `native_batch_norm_backward(grad, input, weight?, ..., train, eps, output_mask)`.
pub fn batch_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = call.bools(9);
    let wanted = |i: usize| mask.get(i).copied().unwrap_or(false);
    let channels = input.sizes().get(1).copied().unwrap_or(0);
    let dtype = statistics_dtype(input, call.tensor(2));
    let parameter = |i| wanted(i).then(|| Layout::contiguous(dtype, &[channels]));
    let of_input = wanted(0).then(|| in_format(input.dtype(), input.sizes(), suggest_memory_format(input)));
    Ok(SmallVec::from_iter([of_input, parameter(1), parameter(2)]))
}

/// `native_layer_norm(input, normalized_shape, weight?, bias?, eps)`.
pub fn layer_norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    let shape = call.ints(1).unwrap_or_default();
    if shape.is_empty() || !input.sizes().ends_with(&shape) {
        return Err(ShapeError::runtime(format!(
            "Given normalized_shape={:?}, expected input with shape [*, {}], but got input of size{:?}",
            &shape[..],
            shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            input.sizes()
        )));
    }
    for (i, what) in [(2, "weight"), (3, "bias")] {
        if let Some(p) = call.tensor(i)
            && p.sizes() != &shape[..]
        {
            return Err(ShapeError::runtime(format!(
                "Expected {what} to be of same shape as normalized_shape, but got {what} of shape {:?} and normalized_shape = {:?}",
                p.sizes(),
                &shape[..]
            )));
        }
    }
    let mut statistics: Dims = input.sizes().into();
    let keep = input.rank() - shape.len();
    statistics[keep..].fill(1);
    let statistics = Layout::contiguous(statistics_dtype(input, call.tensor(2)), &statistics);
    let output = Layout::contiguous(input.dtype(), input.sizes());
    Ok(SmallVec::from_iter([Some(output), Some(statistics.clone()), Some(statistics)]))
}

/// `native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)`.
pub fn layer_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = call.bools(7);
    let wanted = |i: usize| mask.get(i).copied().unwrap_or(false);
    let parameter = |i: usize, m| {
        let p = call.tensor(i)?;
        wanted(m).then(|| Layout::contiguous(p.dtype(), p.sizes()))
    };
    let of_input = wanted(0).then(|| Layout::contiguous(input.dtype(), input.sizes()));
    Ok(SmallVec::from_iter([of_input, parameter(5, 1), parameter(6, 2)]))
}

/// `native_group_norm(input, weight?, bias?, N, C, HxW, group, eps)`.
pub fn group_norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    let (n, groups) = (call.int(3, 0), call.int(6, 1));
    let statistics = Layout::contiguous(statistics_dtype(input, call.tensor(1)), &[n.max(0), groups.max(0)]);
    let output = in_format(input.dtype(), input.sizes(), suggest_memory_format(input));
    Ok(SmallVec::from_iter([Some(output), Some(statistics.clone()), Some(statistics)]))
}

/// `native_group_norm_backward(grad, input, mean, rstd, weight?, N, C, HxW, group, output_mask)`.
pub fn group_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = call.bools(9);
    let wanted = |i: usize| mask.get(i).copied().unwrap_or(false);
    let dtype = statistics_dtype(input, call.tensor(4));
    let parameter = |m| wanted(m).then(|| Layout::contiguous(dtype, &[call.int(6, 0).max(0)]));
    let of_input = wanted(0).then(|| in_format(input.dtype(), input.sizes(), suggest_memory_format(input)));
    Ok(SmallVec::from_iter([of_input, parameter(1), parameter(2)]))
}
