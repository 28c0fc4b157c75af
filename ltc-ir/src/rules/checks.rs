//! Checks that several rules share.

use super::{Call, ShapeError, cxx_name};
use crate::layout::Layout;

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
