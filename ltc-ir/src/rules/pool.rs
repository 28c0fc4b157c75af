//! Pooling over windows (`AveragePool*.cpp`, `DilatedMaxPool*.cpp`, `Pool.h`).

use smallvec::SmallVec;

use super::{Call, MemoryFormat, NewResults, ShapeError, cxx_name, in_format, one, suggest_memory_format};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

struct Window {
    kernel: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    ceil: bool,
}

/// A list of one serves all dimensions, an empty stride is the kernel.
fn spread(call: &Call<'_>, list: Option<Dims>, n: usize, what: &str, default: &[i64]) -> Result<Dims, ShapeError> {
    let list = list.unwrap_or_default();
    match list.len() {
        0 if !default.is_empty() => Ok(default.into()),
        1 => Ok(Dims::from_elem(list[0], n)),
        k if k == n => Ok(list),
        _ => Err(ShapeError::runtime(format!(
            "{}: {what} must either be a single int, or a tuple of {n} ints",
            call.short_op()
        ))),
    }
}

impl Window {
    fn read(
        call: &Call<'_>,
        n: usize,
        from: usize,
        dilation: Option<usize>,
        ceil: usize,
    ) -> Result<Window, ShapeError> {
        let kernel = spread(call, call.ints(from), n, "kernel_size", &[])?;
        let stride = spread(call, call.ints(from + 1), n, "stride", &kernel)?;
        let padding = spread(call, call.ints(from + 2), n, "padding", &Dims::from_elem(0, n))?;
        let ones = Dims::from_elem(1, n);
        let dilation = match dilation {
            Some(i) => spread(call, call.ints(i), n, "dilation", &ones)?,
            None => ones,
        };
        let w = Window { kernel, stride, padding, dilation, ceil: call.bool(ceil) };
        for (list, what, least) in
            [(&w.kernel, "kernel size", 1), (&w.stride, "stride", 1), (&w.dilation, "dilation", 1)]
        {
            if list.iter().any(|&v| v < least) {
                return Err(ShapeError::runtime(format!(
                    "{what} should be greater than zero, but got {:?}",
                    &list[..]
                )));
            }
        }
        for i in 0..n {
            let reach = (w.kernel[i] - 1).saturating_mul(w.dilation[i]).saturating_add(1);
            if w.padding[i] < 0 || w.padding[i] > reach / 2 {
                return Err(ShapeError::runtime(format!(
                    "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and \
                     dilation={}",
                    w.padding[i], w.kernel[i], w.dilation[i]
                )));
            }
        }
        Ok(w)
    }

    fn output(&self, size: i64, i: usize) -> i64 {
        let (k, s, p, d) = (self.kernel[i], self.stride[i], self.padding[i], self.dilation[i]);
        let padded = size.saturating_add(p.saturating_mul(2));
        let room = padded.saturating_sub(d.saturating_mul(k - 1)).saturating_sub(1);
        let room = room.saturating_add(if self.ceil { s - 1 } else { 0 });
        let mut out = room.div_euclid(s).saturating_add(1);
        // The last window must begin inside the input or its left padding.
        if self.ceil && (out - 1).saturating_mul(s) >= size.saturating_add(p) {
            out -= 1;
        }
        out
    }
}

fn pooled(call: &Call<'_>, x: &Layout, n: usize, w: &Window) -> Result<Dims, ShapeError> {
    let rank = x.rank();
    let from = rank.saturating_sub(n);
    let batched = rank == n + 2;
    // A batch may be empty, nothing else.
    if !(batched || rank == n + 1) || x.sizes()[usize::from(batched)..].contains(&0) {
        return Err(ShapeError::runtime(format!(
            "{}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: {:?}",
            call.short_op(),
            n + 1,
            n + 2,
            x.sizes()
        )));
    }
    let mut sizes: Dims = x.sizes().into();
    for i in 0..n {
        sizes[from + i] = w.output(x.sizes()[from + i], i);
        if sizes[from + i] < 1 {
            return Err(ShapeError::runtime(format!(
                "Given input size: {:?}. Calculated output size: {:?}. Output size is too small",
                x.sizes(),
                &sizes[..=from + i]
            )));
        }
    }
    Ok(sizes)
}

fn avg(call: &Call<'_>, n: usize) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let w = Window::read(call, n, 1, None, 4)?;
    if n == 2 {
        super::wrap_dim(-3, x.rank())?;
    }
    if matches!(call.args.get(6), Some(crate::args::Arg::Int(0))) {
        return Err(ShapeError::runtime("divisor must be not zero"));
    }
    let format = if n == 2 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    one(in_format(x.dtype(), &pooled(call, x, n, &w)?, format))
}

/// `avg_pool2d(self, kernel_size, stride, padding, ceil_mode, ...)`.
///
/// # Errors
/// Fails for an input that is no plane with channels, nor a batch of them, or has no channels or points; for a kernel,
/// stride or padding that is too small, too large or of the wrong length; for a divisor of 0; and where no window fits.
pub fn avg_pool2d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    avg(call, 2)
}

/// `avg_pool3d(self, kernel_size, stride, padding, ceil_mode, ...)`.
///
/// # Errors
/// As [`avg_pool2d`], of volumes.
pub fn avg_pool3d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    avg(call, 3)
}

fn checked_grad(call: &Call<'_>, n: usize, w: &Window) -> Result<Layout, ShapeError> {
    let (grad, x) = (call.need(0)?, call.need(1)?);
    let sizes = pooled(call, x, n, w)?;
    if grad.sizes() != &sizes[..] {
        return Err(ShapeError::runtime(format!(
            "Expected a gradient of size {:?}, but got {:?}",
            &sizes[..],
            grad.sizes()
        )));
    }
    let format = if n == 2 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    Ok(in_format(x.dtype(), x.sizes(), format))
}

/// `avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, ...)`.
///
/// # Errors
/// As [`avg_pool2d`], the divisor apart; also for a gradient of other sizes than the result.
pub fn avg_pool2d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let w = Window::read(call, 2, 2, None, 5)?;
    one(checked_grad(call, 2, &w)?)
}

/// `avg_pool3d_backward`.
///
/// # Errors
/// As [`avg_pool2d_backward`], of volumes; also for booleans, and for a gradient of another dtype.
pub fn avg_pool3d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let w = Window::read(call, 3, 2, None, 5)?;
    let result = checked_grad(call, 3, &w)?;
    super::checks::dispatch(call, "avg_pool3d_backward_out_frame", super::checks::not_bool, &[1, 0])?;
    one(result)
}

fn max(call: &Call<'_>, n: usize) -> Result<(Layout, Layout), ShapeError> {
    let x = call.need(0)?;
    let w = Window::read(call, n, 1, Some(4), 5)?;
    let sizes = pooled(call, x, n, &w)?;
    let format = if n == 2 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    Ok((in_format(x.dtype(), &sizes, format), in_format(DType::I64, &sizes, format)))
}

/// `max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)`.
///
/// # Errors
/// As [`avg_pool2d`], with a dilation in place of the divisor.
pub fn max_pool2d_with_indices(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (values, indices) = max(call, 2)?;
    Ok(SmallVec::from_iter([Some(values), Some(indices)]))
}

/// `max_pool3d_with_indices`.
///
/// # Errors
/// As [`max_pool2d_with_indices`], of volumes.
pub fn max_pool3d_with_indices(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (values, indices) = max(call, 3)?;
    Ok(SmallVec::from_iter([Some(values), Some(indices)]))
}

/// `max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode)`.
///
/// # Errors
/// As [`max_pool3d_with_indices`].
pub fn max_pool3d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    one(max(call, 3)?.0)
}

/// `max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)`.
///
/// # Errors
/// As [`max_pool2d_with_indices`]; also for a gradient of other sizes than the result or another dtype, and for indices
/// that are not of its sizes or no 64-bit integers.
pub fn max_pool2d_with_indices_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let w = Window::read(call, 2, 2, Some(5), 6)?;
    let (result, indices) = (checked_grad(call, 2, &w)?, call.need(7)?);
    super::checks::one_dtype(call, &[1, 0])?;
    super::checks::sizes_are("indices", indices, call.need(0)?.sizes())?;
    if indices.dtype() != DType::I64 {
        return Err(ShapeError::runtime(format!("expected scalar type Long but found {}", cxx_name(indices.dtype()))));
    }
    one(result)
}

/// `max_pool3d_with_indices_backward`.
///
/// # Errors
/// As [`max_pool3d_with_indices`]; also for a gradient of other sizes than the result.
pub fn max_pool3d_with_indices_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let w = Window::read(call, 3, 2, Some(5), 6)?;
    one(checked_grad(call, 3, &w)?)
}

fn adaptive_max(call: &Call<'_>, n: usize) -> Result<NewResults, ShapeError> {
    let (x, out) = (call.need(0)?, call.ints(1).unwrap_or_default());
    let rank = x.rank();
    if out.len() != n {
        return Err(ShapeError::runtime(format!(
            "{}(): internal error: output_size.size() must be {n}",
            call.short_op()
        )));
    }
    if rank != n + 1 && rank != n + 2 {
        return Err(ShapeError::runtime(format!(
            "{}(): Expected {}D or {}D tensor, but got: {:?}",
            call.short_op(),
            n + 1,
            n + 2,
            x.sizes()
        )));
    }
    if x.sizes()[rank - n - usize::from(rank == n + 1)..].contains(&0) && x.sizes()[1..].contains(&0) {
        return Err(ShapeError::runtime(format!(
            "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {:?}",
            call.short_op(),
            x.sizes()
        )));
    }
    super::checks::not_negative(&out)?;
    let mut sizes: Dims = x.sizes().into();
    sizes[rank - n..].copy_from_slice(&out);
    let format = if n == 2 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    Ok(SmallVec::from_iter([Some(in_format(x.dtype(), &sizes, format)), Some(in_format(DType::I64, &sizes, format))]))
}

/// `adaptive_max_pool2d(self, output_size)`.
///
/// # Errors
/// Fails for an input that is no plane with channels, nor a batch of them, or has no points; and for output sizes that
/// are not two or are negative.
pub fn adaptive_max_pool2d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    adaptive_max(call, 2)
}

/// `adaptive_max_pool3d(self, output_size)`.
///
/// # Errors
/// As [`adaptive_max_pool2d`], of volumes and three sizes.
pub fn adaptive_max_pool3d(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    adaptive_max(call, 3)
}

/// `adaptive_max_pool2d_backward(grad, self, indices)`, `adaptive_max_pool3d_backward`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn adaptive_max_pool_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(1)?;
    let format = if x.rank() == 4 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    one(in_format(x.dtype(), x.sizes(), format))
}
