//! Checks that several rules share.

use super::{Call, ErrorClass, ShapeError, cxx_name};
use crate::{dtype::DType, layout::Layout};

/// These tensor arguments, where present, are all of the first present one's dtype.
pub(super) fn one_dtype(call: &Call<'_>, arguments: &[usize]) -> Result<(), ShapeError> {
    let mut present = arguments.iter().filter_map(|&i| call.tensor(i));
    let Some(first) = present.next() else { return Ok(()) };
    match present.find(|l| l.dtype() != first.dtype()) {
        None => Ok(()),
        Some(other) => Err(ShapeError::runtime(format!(
            "expected scalar type {} but found {}",
            cxx_name(first.dtype()),
            cxx_name(other.dtype())
        ))),
    }
}

/// A kernel, told by the name it gives itself, has no case for a dtype.
pub(super) fn not_implemented(kernel: &str, dtype: DType) -> ShapeError {
    let message = format!("\"{kernel}\" not implemented for '{}'", cxx_name(dtype));
    ShapeError { class: ErrorClass::NotImplemented, message }
}

/// A kernel that is chosen by the first tensor's dtype `has` this one, and the other tensors are of it.
pub(super) fn dispatch(
    call: &Call<'_>,
    kernel: &str,
    has: fn(DType) -> bool,
    arguments: &[usize],
) -> Result<(), ShapeError> {
    let first = arguments.iter().find_map(|&i| call.tensor(i));
    match first.map(Layout::dtype).filter(|&d| !has(d)) {
        Some(dtype) => Err(not_implemented(kernel, dtype)),
        None => one_dtype(call, arguments),
    }
}

/// Dtypes of kernels for numbers.
pub(super) fn not_bool(dtype: DType) -> bool {
    dtype != DType::Bool
}

/// Which results are wanted: a list of exactly so many.
pub(super) fn mask<const N: usize>(call: &Call<'_>, i: usize) -> Result<[bool; N], ShapeError> {
    let list = call.bools(i);
    let length = || format!("Tried to convert a List with {} elements to a fixed-size array of size {N}", list.len());
    list[..].try_into().map_err(|_| ShapeError::runtime(length()))
}

/// A tensor has these sizes.
pub(super) fn sizes_are(what: &str, l: &Layout, sizes: &[i64]) -> Result<(), ShapeError> {
    if l.sizes() == sizes {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("Expected {what} of size {sizes:?}, but got {:?}", l.sizes())))
}

/// A tensor broadcasts to these sizes.
pub(super) fn expands(l: &Layout, sizes: &[i64]) -> Result<(), ShapeError> {
    let whole = super::broadcast(&[l.sizes(), sizes])?;
    if whole[..] == *sizes {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("output with shape {sizes:?} doesn't match the broadcast shape {:?}", &whole[..])))
}

/// A tensor of this many elements.
pub(super) fn elements(what: &str, l: Option<&Layout>, n: i64) -> Result<(), ShapeError> {
    match l {
        Some(l) if l.numel() != n => {
            Err(ShapeError::runtime(format!("Expected {what} to have {n} elements, but it has {}", l.numel())))
        }
        _ => Ok(()),
    }
}

/// Sizes of memory to make.
pub(super) fn not_negative(sizes: &[i64]) -> Result<(), ShapeError> {
    match sizes.iter().find(|&&s| s < 0) {
        Some(s) => Err(ShapeError::runtime(format!("Trying to create tensor with negative dimension {s}: {sizes:?}"))),
        None => Ok(()),
    }
}
