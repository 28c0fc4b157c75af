//! Reductions and scans. Results are row-major.

use smallvec::SmallVec;

use super::{Call, ErrorClass, NewResults, ShapeError, cxx_name, one, real_of, wrap_dim};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// Which dimensions a reduction folds: none listed are all.
fn mask(dims: Option<&[i64]>, rank: usize) -> Result<SmallVec<[bool; 6]>, ShapeError> {
    match dims.filter(|d| !d.is_empty()) {
        Some(dims) => listed(dims, rank),
        None => Ok(SmallVec::from_elem(true, rank)),
    }
}

/// Which dimensions are in a list.
pub(super) fn listed(dims: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>, ShapeError> {
    let mut mask = SmallVec::from_elem(false, rank.max(1));
    for &d in dims {
        let d = wrap_dim(d, rank)?;
        if mask[d] {
            return Err(ShapeError::runtime(format!("dim {d} appears multiple times in the list of dims")));
        }
        mask[d] = true;
    }
    mask.truncate(rank);
    Ok(mask)
}

fn fold(sizes: &[i64], mask: &[bool], keep: bool) -> Dims {
    let dims = sizes.iter().zip(mask);
    dims.filter_map(|(&s, &folded)| if folded { keep.then_some(1) } else { Some(s) }).collect()
}

fn reduced(call: &Call<'_>, dims: Option<&[i64]>, keep: bool, dtype: DType) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let mask = mask(dims, x.rank())?;
    one(Layout::contiguous(dtype, &fold(x.sizes(), &mask, keep)))
}

fn sum_dtype(x: DType) -> DType {
    if x.is_integral(true) { DType::I64 } else { x }
}

/// `sum(self, dtype)`, `prod(self, dtype)`, `nansum`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn sum(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = call.dtype(1).unwrap_or(sum_dtype(call.need(0)?.dtype()));
    reduced(call, None, false, dtype)
}

/// `sum(self, dim, keepdim, dtype)`, `prod(self, dim, keepdim, dtype)`.
///
/// # Errors
/// Fails for a dimension that there is not, or that is listed twice.
pub fn sum_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = call.dtype(3).unwrap_or(sum_dtype(call.need(0)?.dtype()));
    reduced(call, call.ints(1).as_deref(), call.bool(2), dtype)
}

fn mean_dtype(call: &Call<'_>, given: Option<DType>) -> Result<DType, ShapeError> {
    let x = call.need(0)?.dtype();
    let dtype = given.unwrap_or(x);
    if dtype.is_integral(true) {
        let (what, verb) = if given.is_some() { ("Optional", "") } else { ("Input", "could not infer output dtype. ") };
        return Err(ShapeError::runtime(format!(
            "mean(): {verb}{what} dtype must be either a floating point or complex dtype. Got: {}",
            cxx_name(dtype)
        )));
    }
    Ok(dtype)
}

/// `mean(self, dtype)`.
///
/// # Errors
/// Fails where the result would be of integers.
pub fn mean(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = mean_dtype(call, call.dtype(1))?;
    reduced(call, None, false, dtype)
}

/// `mean(self, dim, keepdim, dtype)`.
///
/// # Errors
/// As [`sum_dim`]; also where the result would be of integers.
pub fn mean_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = mean_dtype(call, call.dtype(3))?;
    reduced(call, call.ints(1).as_deref(), call.bool(2), dtype)
}

/// The class of exception where a dimension without elements is folded and there is no value to start from.
fn no_identity(call: &Call<'_>, x: &Layout, dims: Option<&[i64]>) -> Result<(), ShapeError> {
    if x.numel() > 0 {
        return Ok(());
    }
    let name = call.short_op();
    match dims.filter(|d| !d.is_empty()) {
        None => Err(ShapeError::index(format!(
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with \
             the 'dim' argument."
        ))),
        Some(dims) => dims.iter().try_for_each(|&d| {
            let d = wrap_dim(d, x.rank())?;
            if x.sizes().get(d) != Some(&0) {
                return Ok(());
            }
            Err(ShapeError::index(format!("{name}(): Expected reduction dim {d} to have non-zero size.")))
        }),
    }
}

/// `max(self)`, `min(self)`, `median(self)`.
///
/// # Errors
/// Fails where there are no elements.
pub fn extremum(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    no_identity(call, x, None).map_err(|e| ShapeError { class: ErrorClass::Runtime, ..e })?;
    reduced(call, None, false, x.dtype())
}

/// `median(self)`: NaN of no elements.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn median(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    reduced(call, None, false, call.need(0)?.dtype())
}

/// `(values, indices)` of `max(self, dim, keepdim)` and its like.
///
/// # Errors
/// Fails for a dimension that there is not, or that has no elements.
pub fn extremum_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    indexed(call, call.int(1, -1), call.bool(2), x)
}

fn indexed(call: &Call<'_>, dim: i64, keep: bool, x: &Layout) -> Result<NewResults, ShapeError> {
    wrap_dim(dim, x.rank())?;
    no_identity(call, x, Some(&[dim]))?;
    let values = reduced(call, Some(&[dim]), keep, x.dtype())?;
    let indices = reduced(call, Some(&[dim]), keep, DType::I64)?;
    Ok(values.into_iter().chain(indices).collect())
}

/// `kthvalue(self, k, dim, keepdim)`.
///
/// # Errors
/// As [`extremum_dim`]; also for a `k` below 1 or above the dimension's size.
pub fn kthvalue(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dim = call.int(2, -1);
    let size = x.sizes().get(wrap_dim(dim, x.rank())?).copied().unwrap_or(1);
    no_identity(call, x, Some(&[dim]))?;
    let k = call.int(1, 1);
    if k < 1 || k > size {
        return Err(ShapeError::runtime("selected number k out of range for dimension ".to_owned() + &dim.to_string()));
    }
    indexed(call, dim, call.bool(3), x)
}

/// `mode(self, dim, keepdim)`.
///
/// # Errors
/// As [`extremum_dim`].
pub fn mode(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    extremum_dim(call)
}

/// `amax(self, dim, keepdim)`, `amin`.
///
/// # Errors
/// As [`sum_dim`]; also for a dimension without elements, and where there are no elements at all and none is listed.
pub fn amax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dims = call.ints(1);
    let all = dims.as_ref().is_none_or(|d| d.is_empty());
    let class = if all { ErrorClass::Runtime } else { ErrorClass::Index };
    no_identity(call, x, dims.as_deref()).map_err(|e| ShapeError { class, ..e })?;
    reduced(call, dims.as_deref(), call.bool(2), x.dtype())
}

/// `aminmax(self, *, dim, keepdim)`.
///
/// # Errors
/// As [`extremum_dim`]; also where there are no elements at all and no dimension is given.
pub fn aminmax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dims = call.ints(1);
    no_identity(call, x, dims.as_deref())
        .map_err(|e| if dims.is_none() { ShapeError { class: ErrorClass::Runtime, ..e } } else { e })?;
    let one = reduced(call, dims.as_deref(), call.bool(2), x.dtype())?;
    Ok(one.iter().cloned().chain(one.iter().cloned()).collect())
}

/// `argmax(self, dim, keepdim)`, `argmin`.
///
/// # Errors
/// As [`aminmax`].
pub fn argmax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dims = call.ints(1);
    no_identity(call, x, dims.as_deref())?;
    if let Some(&dim) = dims.as_ref().and_then(|dims| dims.first()) {
        wrap_dim(dim, x.rank())?;
    }
    let keep = call.bool(2);
    reduced(call, dims.as_deref(), keep, DType::I64)
}

fn truth(x: DType) -> DType {
    // Bytes were booleans once.
    if x == DType::U8 { DType::U8 } else { DType::Bool }
}

/// `any(self)`, `all(self)`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn any(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    reduced(call, None, false, truth(call.need(0)?.dtype()))
}

/// `any(self, dim, keepdim)`, also of several dimensions.
///
/// # Errors
/// As [`sum_dim`].
pub fn any_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    reduced(call, call.ints(1).as_deref(), call.bool(2), truth(call.need(0)?.dtype()))
}

/// `norm(self, p)`.
///
/// # Errors
/// Fails for integers and booleans.
pub fn norm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = norm_dtype(call, None)?;
    reduced(call, None, false, dtype)
}

/// `norm(self, p, dim, keepdim, dtype)`, `linalg_vector_norm(self, ord, dim, keepdim, dtype)`.
///
/// # Errors
/// As [`sum_dim`]; also for integers and booleans.
pub fn norm_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = norm_dtype(call, call.dtype(4))?;
    reduced(call, call.ints(2).as_deref(), call.bool(3), dtype)
}

fn norm_dtype(call: &Call<'_>, given: Option<DType>) -> Result<DType, ShapeError> {
    let x = call.need(0)?.dtype();
    if x.is_integral(true) {
        return Err(ShapeError::runtime(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            cxx_name(x)
        )));
    }
    Ok(real_of(given.unwrap_or(x)))
}

/// `std(self, unbiased)`, `var(self, unbiased)`.
///
/// # Errors
/// Fails for integers and booleans.
pub fn std(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = std_dtype(call)?;
    reduced(call, None, false, dtype)
}

fn std_dtype(call: &Call<'_>) -> Result<DType, ShapeError> {
    let x = call.need(0)?.dtype();
    if x.is_integral(true) {
        return Err(ShapeError::runtime("std and var only support floating point and complex dtypes"));
    }
    Ok(real_of(x))
}

/// `std(self, dim, unbiased, keepdim)`.
///
/// # Errors
/// As [`sum_dim`]; also for integers and booleans.
pub fn std_dim(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = std_dtype(call)?;
    reduced(call, call.ints(1).as_deref(), call.bool(3), dtype)
}

/// `std(self, dim, *, correction, keepdim)`.
///
/// # Errors
/// As [`std_dim`].
pub fn std_correction(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    std_dim(call)
}

/// `(std, mean)` of `std_mean(self, dim, *, correction, keepdim)`.
///
/// # Errors
/// As [`std_dim`].
pub fn std_mean_correction(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let spread = std_dim(call)?;
    let mean = reduced(call, call.ints(1).as_deref(), call.bool(3), call.need(0)?.dtype())?;
    Ok(spread.into_iter().chain(mean).collect())
}

/// `logsumexp(self, dim, keepdim)`.
///
/// # Errors
/// As [`sum_dim`]; also where an empty list of dimensions is not to be kept, unless `self` has none.
pub fn logsumexp(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let (dims, keep) = (call.ints(1), call.bool(2));
    // The kernel squeezes listed dimensions: none of them.
    if !keep && x.rank() > 0 && dims.as_ref().is_some_and(|d| d.is_empty()) {
        return Err(ShapeError::runtime(format!(
            "output with shape [] doesn't match the broadcast shape {:?}",
            vec![1; x.rank()]
        )));
    }
    let dtype = if x.dtype().is_integral(true) { DType::F32 } else { x.dtype() };
    reduced(call, dims.as_deref(), keep, dtype)
}

/// `count_nonzero(self, dim)`.
///
/// # Errors
/// As [`sum_dim`].
pub fn count_nonzero(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    reduced(call, call.ints(1).as_deref(), false, DType::I64)
}

/// `trace(self)`.
///
/// # Errors
/// Fails where `self` is no matrix.
pub fn trace(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    if x.rank() != 2 {
        return Err(ShapeError::runtime("trace: expected a matrix"));
    }
    one(Layout::contiguous(sum_dtype(x.dtype()), &[]))
}

/// `cumsum(self, dim, dtype)`, `cumprod`.
///
/// # Errors
/// Fails for a dimension that there is not.
pub fn cumsum(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    wrap_dim(call.int(1, 0), x.rank())?;
    let dtype = call.dtype(2).unwrap_or(sum_dtype(x.dtype()));
    one(Layout::contiguous(dtype, x.sizes()))
}

/// `logcumsumexp(self, dim)`.
///
/// # Errors
/// Fails for a dimension that there is not.
pub fn logcumsumexp(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    wrap_dim(call.int(1, 0), x.rank())?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `(values, indices)` of `cummax(self, dim)`, `cummin`.
///
/// # Errors
/// Fails for a dimension that there is not.
pub fn cummax(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    wrap_dim(call.int(1, 0), x.rank())?;
    let of = |dtype| Some(Layout::contiguous(dtype, x.sizes()));
    Ok(SmallVec::from_iter([of(x.dtype()), of(DType::I64)]))
}

/// `renorm(self, p, dim, maxnorm)`.
///
/// # Errors
/// Fails for fewer than two dimensions, for one that there is not, and for integers and booleans.
pub fn renorm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    if x.rank() < 2 {
        return Err(ShapeError::runtime(format!(
            "renorm: input needs at least 2 dimensions, got {} dimensions",
            x.rank()
        )));
    }
    wrap_dim(call.int(2, 0), x.rank())?;
    if x.dtype().is_integral(true) {
        return Err(ShapeError::runtime(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            cxx_name(x.dtype())
        )));
    }
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `histc(self, bins, min, max)`.
///
/// # Errors
/// Fails for `bins` that are not positive, and where `self` is no tensor.
pub fn histc(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let bins = call.int(1, 100);
    if bins <= 0 {
        return Err(ShapeError::runtime("bins must be > 0"));
    }
    one(Layout::contiguous(call.need(0)?.dtype(), &[bins]))
}

/// Operators whose result's shape depends on values.
///
/// # Errors
/// Always: such a call is not recorded.
pub fn dynamic(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    Err(ShapeError {
        class: ErrorClass::NotImplemented,
        message: format!("{}: the result's shape depends on values, so it cannot be recorded", call.short_op()),
    })
}
