//! Operators that draw. The generator's next state is the recorder's business; rules answer the drawn tensors.

use smallvec::SmallVec;

use super::{Call, NewResults, ShapeError, broadcast, empty_like, factory, one};
use crate::{
    args::Arg,
    dtype::DType,
    layout::{Dims, Layout},
};

/// `bernoulli(self)`, `bernoulli(self, p)`: row-major.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn bernoulli(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::contiguous_like_first(call)
}

/// `uniform(self, ...)` and other functional forms of draws in place.
///
/// # Errors
/// Fails for integers where the distribution is of floating point numbers, for a range of integers that is empty, and
/// where the probabilities do not broadcast to `self`.
pub fn drawn(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let kernel = match call.short_op() {
        "uniform" => Some("check_uniform_bounds"),
        "log_normal" => Some("log_normal_cpu"),
        "normal_functional" => Some("normal_kernel_cpu"),
        _ => None,
    };
    if let Some(kernel) = kernel.filter(|_| x.dtype().is_integral(true)) {
        return Err(super::checks::not_implemented(kernel, x.dtype()));
    }
    let continuous = ["cauchy", "exponential"].contains(&call.short_op());
    if continuous && x.dtype().is_integral(true) {
        return Err(ShapeError::runtime(format!(
            "{} is a continuous probability distribution. dtype must be a floating point but you specified {}",
            call.short_op(),
            super::cxx_name(x.dtype())
        )));
    }
    let (from, to) = match call.op {
        "aten::random.from" => (call.int(1, 0), call.int(2, i64::MAX)),
        "aten::random.to" => (0, call.int(1, 1)),
        _ => (0, 1),
    };
    less(from, to)?;
    if let Some(p) = call.tensor(1).filter(|_| x.numel() > 0) {
        super::checks::expands(p, x.sizes())?;
    }
    super::like_first(call)
}

/// `native_dropout(input, p, train)`: the result and the mask.
///
/// # Errors
/// Fails for integers and booleans where it trains, unless there are no elements.
pub fn native_dropout(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let trains = call.args.get(2).is_none_or(|a| !matches!(a, Arg::Bool(false)));
    if trains && x.numel() > 0 && x.dtype().is_integral(true) {
        return Err(ShapeError::runtime(format!(
            "result type Float can't be cast to the desired output type {}",
            super::cxx_name(x.dtype())
        )));
    }
    let like = |dtype| Some(empty_like(x, Some(dtype)));
    // Of nothing, the kernel draws no mask.
    let mask = if x.numel() == 0 { x.dtype() } else { DType::Bool };
    Ok(SmallVec::from_iter([like(x.dtype()), like(mask)]))
}

/// `rand(size, *, dtype, ...)`, `randn`.
///
/// # Errors
/// As [`factory::zeros`].
pub fn rand(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    factory::zeros(call)
}

/// `rand_like(self, *, dtype, ...)`, `randn_like`.
///
/// # Errors
/// As [`factory::zeros_like`].
pub fn rand_like(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    factory::like(call, 1)
}

fn less(from: i64, to: i64) -> Result<(), ShapeError> {
    if from < to {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("random_ expects 'from' to be less than 'to', but got from={from} >= to={to}")))
}

fn integers(call: &Call<'_>, sizes_at: usize) -> Result<NewResults, ShapeError> {
    let sizes = call.ints(sizes_at).unwrap_or_default();
    let (low, high) = if sizes_at == 1 { (0, call.int(0, 0)) } else { (call.int(0, 0), call.int(1, 0)) };
    less(low, high)?;
    if let Some(s) = sizes.iter().find(|&&s| s < 0) {
        return Err(ShapeError::runtime(format!(
            "Trying to create tensor with negative dimension {s}: {:?}",
            &sizes[..]
        )));
    }
    one(Layout::contiguous(call.dtype(sizes_at + 1).unwrap_or(DType::I64), &sizes))
}

/// `randint(high, size, *, dtype, ...)`.
///
/// # Errors
/// Fails for a range that is empty, and for a negative size.
pub fn randint(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    integers(call, 1)
}

/// `randint.low(low, high, size, *, dtype, ...)`.
///
/// # Errors
/// As [`randint`].
pub fn randint_low(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    integers(call, 2)
}

/// `randint_like(self, high, *, dtype, ...)`.
///
/// # Errors
/// Fails for a range that is empty, and where `self` is no tensor.
pub fn randint_like(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    less(0, call.int(1, 1))?;
    factory::like(call, 2)
}

/// `randint_like.low_dtype(self, low, high, *, dtype, ...)`.
///
/// # Errors
/// As [`randint_like`].
pub fn randint_like_low(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    less(call.int(1, 0), call.int(2, 1))?;
    factory::like(call, 3)
}

/// `randperm(n, *, dtype, ...)`.
///
/// # Errors
/// Fails for a negative `n`.
pub fn randperm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let n = call.int(0, 0);
    if n < 0 {
        return Err(ShapeError::runtime(format!("n must be non-negative, got{n}")));
    }
    one(Layout::contiguous(call.dtype(1).unwrap_or(DType::I64), &[n]))
}

/// `multinomial(self, num_samples, replacement)`.
///
/// # Errors
/// Fails for other than one or two dimensions, for other than floating point numbers, for no samples or no categories,
/// and for more samples than categories where none is replaced.
pub fn multinomial(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let n = call.int(1, 0);
    let Some((&categories, lead)) = x.sizes().split_last().filter(|_| x.rank() <= 2) else {
        return Err(ShapeError::runtime("prob_dist must be 1 or 2 dim"));
    };
    if !x.dtype().is_floating() {
        return Err(ShapeError::runtime(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            super::cxx_name(x.dtype())
        )));
    }
    if n <= 0 {
        return Err(ShapeError::runtime("cannot sample n_sample <= 0 samples"));
    }
    if !call.bool(2) && n > categories {
        return Err(ShapeError::runtime("cannot sample n_sample > prob_dist.size(-1) samples without replacement"));
    }
    if categories == 0 && lead != [0] {
        return Err(ShapeError::runtime("invalid multinomial distribution (sum of probabilities <= 0)"));
    }
    let sizes: Dims = lead.iter().copied().chain([n]).collect();
    one(Layout::contiguous(DType::I64, &sizes))
}

/// `poisson(self)`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn poisson(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::contiguous_like_first(call)
}

/// `normal(mean, std)` of tensors.
///
/// # Errors
/// Fails where sizes do not broadcast, or an argument is no tensor.
pub fn normal_tensors(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (mean, std) = (call.need(0)?, call.need(1)?);
    one(Layout::contiguous(mean.dtype(), &broadcast(&[mean.sizes(), std.sizes()])?))
}

/// `normal(mean, std)` with one of them a number: the tensor's sizes, row-major.
///
/// # Errors
/// Fails where both are numbers.
pub fn normal(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.tensor(0).or(call.tensor(1));
    let x = x.ok_or_else(|| ShapeError::runtime("normal: mean or std must be a tensor"))?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}
