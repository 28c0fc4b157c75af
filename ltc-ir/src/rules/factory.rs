//! Operators that make tensors from sizes and numbers.

use super::{Call, NewResults, ShapeError, movement::formatted, one};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
    scalar::Scalar,
};

/// No size is negative.
///
/// # Errors
/// Fails where one is.
pub fn check_sizes(sizes: &[i64]) -> Result<(), ShapeError> {
    super::checks::not_negative(sizes)
}

fn make(sizes: &[i64], dtype: Option<DType>) -> Result<NewResults, ShapeError> {
    check_sizes(sizes)?;
    one(Layout::contiguous(dtype.unwrap_or(DType::F32), sizes))
}

/// `zeros(size, *, dtype, ...)`, `ones`, `empty`, `rand`, `randn`.
///
/// # Errors
/// Fails for a negative size.
pub fn zeros(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    make(&call.ints(0).unwrap_or_default(), call.dtype(1))
}

fn number_dtype(n: Option<Scalar>) -> DType {
    match n {
        Some(Scalar::Bool(_)) => DType::Bool,
        Some(Scalar::Int(_)) => DType::I64,
        Some(Scalar::Complex(..)) => DType::C64,
        _ => DType::F32,
    }
}

/// `full(size, fill_value, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size.
pub fn full(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = call.dtype(2).unwrap_or_else(|| number_dtype(call.number(1)));
    make(&call.ints(0).unwrap_or_default(), Some(dtype))
}

/// `scalar_tensor(s, *, dtype, ...)`.
///
/// # Errors
/// Never: there is no size to refuse.
pub fn scalar_tensor(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    make(&[], call.dtype(1))
}

/// `empty_strided(size, stride, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size or stride, and where there are not as many of one as of the other.
pub fn empty_strided(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    strided(&call.ints(0).unwrap_or_default(), &call.ints(1).unwrap_or_default(), call.dtype(2).unwrap_or(DType::F32))
}

fn strided(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<NewResults, ShapeError> {
    check_sizes(sizes)?;
    if strides.iter().any(|&s| s < 0) {
        return Err(ShapeError::runtime(format!(
            "Storage size calculation overflowed with sizes={sizes:?} and strides={strides:?}"
        )));
    }
    if sizes.len() != strides.len() {
        return Err(ShapeError::runtime(format!(
            "dimensionality of sizes ({}) must match dimensionality of strides ({})",
            sizes.len(),
            strides.len()
        )));
    }
    one(Layout::strided(dtype, sizes, strides))
}

/// `new_empty_strided(self, size, stride, *, dtype, ...)`.
///
/// # Errors
/// As [`empty_strided`]; also where `self` is no tensor.
pub fn new_empty_strided(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = call.dtype(3).unwrap_or(call.need(0)?.dtype());
    strided(&call.ints(1).unwrap_or_default(), &call.ints(2).unwrap_or_default(), dtype)
}

/// `new_zeros(self, size, *, dtype, ...)`, `new_ones`, `new_empty`.
///
/// # Errors
/// Fails for a negative size, and where `self` is no tensor.
pub fn new_zeros(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    make(&call.ints(1).unwrap_or_default(), Some(call.dtype(2).unwrap_or(call.need(0)?.dtype())))
}

/// `new_full(self, size, fill_value, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size, and where `self` is no tensor.
pub fn new_full(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    make(&call.ints(1).unwrap_or_default(), Some(call.dtype(3).unwrap_or(call.need(0)?.dtype())))
}

/// `zeros_like(self, *, dtype, layout, device, pin_memory, memory_format)`, `ones_like`, `empty_like`, `rand_like`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn zeros_like(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    like(call, 1)
}

/// `full_like(self, fill_value, *, dtype, ...)`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn full_like(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    like(call, 2)
}

pub(super) fn like(call: &Call<'_>, dtype_at: usize) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    one(formatted(x, call.dtype(dtype_at).unwrap_or(x.dtype()), call.int(dtype_at + 4, 1)))
}

/// `eye(n, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size.
pub fn eye(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let n = call.int(0, 0);
    square(n, n, call.dtype(1))
}

/// `eye.m(n, m, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size.
pub fn eye_m(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    square(call.int(0, 0), call.int(1, 0), call.dtype(2))
}

fn square(n: i64, m: i64, dtype: Option<DType>) -> Result<NewResults, ShapeError> {
    for (size, name) in [(n, "n"), (m, "m")] {
        if size < 0 {
            return Err(ShapeError::runtime(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    one(Layout::contiguous(dtype.unwrap_or(DType::F32), &[n, m]))
}

fn as_f64(n: Scalar) -> f64 {
    match n {
        Scalar::Bool(b) => f64::from(u8::from(b)),
        Scalar::Int(i) => i as f64,
        Scalar::Float(x) | Scalar::Complex(x, _) => x,
    }
}

fn range(numbers: [Scalar; 3], given: Option<DType>) -> Result<NewResults, ShapeError> {
    let [start, end, step] = numbers;
    let integers = numbers.iter().all(|n| matches!(n, Scalar::Int(_) | Scalar::Bool(_)));
    let (a, b, s) = (as_f64(start), as_f64(end), as_f64(step));
    if s == 0.0 {
        return Err(ShapeError::runtime("step must be nonzero"));
    }
    if !a.is_finite() || !b.is_finite() {
        return Err(ShapeError::runtime(format!("unsupported range: {a} -> {b}")));
    }
    if (s > 0.0 && a > b) || (s < 0.0 && a < b) {
        return Err(ShapeError::runtime("upper bound and lower bound inconsistent with step sign"));
    }
    let dtype = given.unwrap_or(if integers { DType::I64 } else { DType::F32 });
    let size = ((b - a) / s).ceil();
    if !(0.0..=i64::MAX as f64).contains(&size) {
        return Err(ShapeError::runtime(format!("invalid size, possible overflow? {size}")));
    }
    one(Layout::contiguous(dtype, &[size as i64]))
}

fn number(call: &Call<'_>, i: usize) -> Result<Scalar, ShapeError> {
    call.number(i).ok_or_else(|| ShapeError::runtime(format!("{}: argument {i} must be a number", call.short_op())))
}

/// `arange(end, *, dtype, ...)`.
///
/// # Errors
/// Fails where `end` is no finite number, negative, or too large.
pub fn arange(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    range([Scalar::Int(0), number(call, 0)?, Scalar::Int(1)], call.dtype(1))
}

/// `arange.start(start, end, *, dtype, ...)`.
///
/// # Errors
/// Fails where a bound is no finite number, `end` is below `start`, or there are too many elements.
pub fn arange_start(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    range([number(call, 0)?, number(call, 1)?, Scalar::Int(1)], call.dtype(2))
}

/// `arange.start_step(start, end, step, *, dtype, ...)`.
///
/// # Errors
/// Fails where an argument is no number, a bound is not finite, the step is zero or leads away from `end`, or there are
/// too many elements.
pub fn arange_step(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    range([number(call, 0)?, number(call, 1)?, number(call, 2)?], call.dtype(3))
}

/// `linspace(start, end, steps, *, dtype, ...)`.
///
/// # Errors
/// Fails for negative `steps`.
pub fn linspace(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let steps = call.int(2, 0);
    if steps < 0 {
        return Err(ShapeError::runtime("number of steps must be non-negative"));
    }
    one(Layout::contiguous(call.dtype(3).unwrap_or(DType::F32), &[steps]))
}

/// `logspace(start, end, steps, base, *, dtype, ...)`.
///
/// # Errors
/// Fails for negative `steps`.
pub fn logspace(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let steps = call.int(2, 0);
    if steps < 0 {
        return Err(ShapeError::runtime("number of steps must be non-negative"));
    }
    one(Layout::contiguous(call.dtype(4).unwrap_or(DType::F32), &[steps]))
}

/// How many elements of a matrix lie on and below a diagonal. Rows have one more each, between those with none and
/// those with all.
fn triangle(rows: i128, columns: i128, offset: i128) -> i128 {
    let first = (-offset).clamp(0, rows);
    let whole = (columns - 1 - offset).clamp(first, rows);
    let (shortest, longest) = (first + 1 + offset, whole + offset);
    (whole - first) * (shortest + longest) / 2 + (rows - whole) * columns
}

/// `tril_indices(row, col, offset, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size, and where there are too many elements.
pub fn tril_indices(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    triangle_indices(call, triangle)
}

/// `triu_indices(row, col, offset, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative size, and where there are too many elements.
pub fn triu_indices(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    triangle_indices(call, |n, m, k| n * m - triangle(n, m, k - 1))
}

fn triangle_indices(call: &Call<'_>, count: impl Fn(i128, i128, i128) -> i128) -> Result<NewResults, ShapeError> {
    let (n, m) = (call.int(0, 0), call.int(1, 0));
    for (size, name) in [(n, "row"), (m, "col")] {
        if size < 0 {
            return Err(ShapeError::runtime(format!("{name} must be non-negative, got{size}")));
        }
    }
    let count = count(n.into(), m.into(), call.int(2, 0).into());
    let sizes: Dims = Dims::from_slice(&[2, super::checked(call.op, i64::try_from(count).ok())?]);
    one(Layout::contiguous(call.dtype(3).unwrap_or(DType::I64), &sizes))
}
