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
///
/// # Errors
/// Fails for an input without channels, and for a parameter or statistic that has not one number for each.
pub fn batch_norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    if input.rank() == 0 {
        return Err(ShapeError::runtime(format!(
            "batch_norm: expected at least 2 dimensions, got input of size {:?}",
            input.sizes()
        )));
    }
    let channels = input.sizes()[super::wrap_dim(1, input.rank())?];
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
///
/// # Errors
/// Fails where the input is no tensor, and for an `output_mask` of other than three entries.
pub fn batch_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = super::checks::mask::<3>(call, 9)?;
    let channels = input.sizes().get(1).copied().unwrap_or(0);
    let dtype = statistics_dtype(input, call.tensor(2));
    let parameter = |i: usize| mask[i].then(|| Layout::contiguous(dtype, &[channels]));
    let of_input = mask[0].then(|| in_format(input.dtype(), input.sizes(), suggest_memory_format(input)));
    Ok(SmallVec::from_iter([of_input, parameter(1), parameter(2)]))
}

/// `native_layer_norm(input, normalized_shape, weight?, bias?, eps)`.
///
/// # Errors
/// Fails where `normalized_shape` is empty or not what the input's sizes end with; and for a parameter of other sizes
/// or another dtype, unless that is `f32` and the input's a half.
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
                "Expected {what} to be of same shape as normalized_shape, but got {what} of shape {:?} and \
                 normalized_shape = {:?}",
                p.sizes(),
                &shape[..]
            )));
        }
    }
    mixed(call, input, &[2, 3])?;
    let mut statistics: Dims = input.sizes().into();
    let keep = input.rank() - shape.len();
    statistics[keep..].fill(1);
    let statistics = Layout::contiguous(statistics_dtype(input, call.tensor(2)), &statistics);
    let output = Layout::contiguous(input.dtype(), input.sizes());
    Ok(SmallVec::from_iter([Some(output), Some(statistics.clone()), Some(statistics)]))
}

/// `native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)`.
///
/// # Errors
/// Fails where the input is no tensor, and for an `output_mask` of other than three entries.
pub fn layer_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = super::checks::mask::<3>(call, 7)?;
    let parameter = |i: usize, m: usize| {
        let p = call.tensor(i)?;
        mask[m].then(|| Layout::contiguous(p.dtype(), p.sizes()))
    };
    let of_input = mask[0].then(|| Layout::contiguous(input.dtype(), input.sizes()));
    Ok(SmallVec::from_iter([of_input, parameter(5, 1), parameter(6, 2)]))
}

/// `native_group_norm(input, weight?, bias?, N, C, HxW, group, eps)`.
///
/// # Errors
/// Fails where the groups do not divide the channels, where the numbers do not fit the input's size, and for a
/// parameter that has not one number for each channel, or a dtype that [`layer_norm`] refuses.
pub fn group_norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(0)?;
    let (n, c, groups) = (call.int(3, 0), call.int(4, 0), call.int(6, 1));
    group_check(input, n, c, call.int(5, 0), groups)?;
    for (i, what) in [(1, "weight"), (2, "bias")] {
        if let Some(p) = call.tensor(i) {
            super::checks::sizes_are(what, p, &[c])?;
        }
    }
    mixed(call, input, &[1, 2])?;
    let statistics = Layout::contiguous(statistics_dtype(input, call.tensor(1)), &[n.max(0), groups.max(0)]);
    let output = in_format(input.dtype(), input.sizes(), suggest_memory_format(input));
    Ok(SmallVec::from_iter([Some(output), Some(statistics.clone()), Some(statistics)]))
}

/// Sizes and groups that a group norm's numbers must agree with.
fn group_check(x: &Layout, n: i64, c: i64, hxw: i64, groups: i64) -> Result<(), ShapeError> {
    if groups <= 0 || c % groups != 0 {
        return Err(ShapeError::runtime(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
             num_groups={groups}",
            x.sizes()
        )));
    }
    if n.checked_mul(c).and_then(|v| v.checked_mul(hxw)) != Some(x.numel()) {
        return Err(ShapeError::runtime("Expected X.numel() == N * C * HxW to be true, but got false."));
    }
    Ok(())
}

/// Parameters have the input's dtype, or are single where it is of reduced precision.
fn mixed(call: &Call<'_>, input: &Layout, parameters: &[usize]) -> Result<(), ShapeError> {
    let reduced = matches!(input.dtype(), DType::F16 | DType::BF16);
    for p in parameters.iter().filter_map(|&i| call.tensor(i)) {
        if p.dtype() != input.dtype() && !(reduced && p.dtype() == DType::F32) {
            return Err(ShapeError::runtime(
                "mixed dtype (CPU): expect parameter to have scalar type of Float or the input's",
            ));
        }
    }
    Ok(())
}

/// `native_group_norm_backward(grad, input, mean, rstd, weight?, N, C, HxW, group, output_mask)`.
///
/// # Errors
/// As [`group_norm`]; also for a gradient of another number of elements or another dtype, for statistics that are not
/// one for each group, and for an `output_mask` of other than three entries.
pub fn group_norm_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let input = call.need(1)?;
    let mask = super::checks::mask::<3>(call, 9)?;
    let (n, c, groups) = (call.int(5, 0), call.int(6, 0), call.int(8, 1));
    group_check(input, n, c, call.int(7, 0), groups)?;
    super::checks::elements("dY", call.tensor(0), input.numel())?;
    super::checks::elements("mean", call.tensor(2), n.saturating_mul(groups))?;
    super::checks::elements("rstd", call.tensor(3), n.saturating_mul(groups))?;
    super::checks::elements("gamma", call.tensor(4), c)?;
    super::checks::one_dtype(call, &[0, 1])?;
    mixed(call, input, &[2, 3, 4])?;
    let dtype = statistics_dtype(input, call.tensor(4));
    let channels = [c.max(0)];
    let sizes = call.tensor(4).map_or(&channels[..], Layout::sizes);
    let parameter = |m: usize| mask[m].then(|| Layout::contiguous(dtype, sizes));
    let of_input = mask[0].then(|| in_format(input.dtype(), input.sizes(), suggest_memory_format(input)));
    Ok(SmallVec::from_iter([of_input, parameter(1), parameter(2)]))
}

/// `_softmax(self, dim, half_to_float)`, `_log_softmax`: row-major.
///
/// # Errors
/// Fails for a dimension that there is not, and where `half_to_float` is asked for.
pub fn softmax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    super::wrap_dim(call.int(1, 0), x.rank())?;
    if call.bool(2) {
        return Err(ShapeError::runtime(format!(
            "{} with half to float conversion is not supported on CPU",
            call.short_op().trim_start_matches('_')
        )));
    }
    Ok(SmallVec::from_iter([Some(Layout::contiguous(x.dtype(), x.sizes()))]))
}

/// `_safe_softmax(self, dim, dtype)`.
///
/// # Errors
/// Fails for a dimension that there is not.
pub fn safe_softmax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    super::wrap_dim(call.int(1, 0), x.rank())?;
    Ok(SmallVec::from_iter([Some(Layout::contiguous(call.dtype(2).unwrap_or(x.dtype()), x.sizes()))]))
}

/// `_softmax_backward_data(grad, output, dim, input_dtype)`, `_log_softmax_backward_data`.
///
/// # Errors
/// Fails for a dimension that there is not, where sizes or dtypes differ, and for other than floating point numbers.
pub fn softmax_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, output) = (call.need(0)?, call.need(1)?);
    let same = || super::checks::sizes_are("grad", grad, output.sizes());
    // One of the kernels compares sizes first, the other one never.
    if call.short_op() == "_softmax_backward_data" {
        same()?;
    }
    super::wrap_dim(call.int(2, 0), grad.rank())?;
    same()?;
    super::checks::dispatch(call, "softmax_backward", DType::is_floating, &[0, 1])?;
    Ok(SmallVec::from_iter([Some(Layout::contiguous(grad.dtype(), grad.sizes()))]))
}
