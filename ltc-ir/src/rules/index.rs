//! Selection and indexing: gather, scatter, and lists of index tensors.

use smallvec::SmallVec;

use super::{
    Call, ErrorClass, NewResults, ShapeError, checked, cxx_name, empty_like, iterator::strides_over, one, wrap_dim,
};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// `index_select(self, dim, index)`.
///
/// # Errors
/// Fails for a dimension that there is not; for an index that is no vector of 32- or 64-bit integers; where a dimension
/// without elements is indexed; and where a number is, by other than one index.
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
    if x.rank() > 0 && x.sizes()[dim] == 0 && index.numel() > 0 {
        return Err(ShapeError::runtime("index_select(): self indexing axis dim should be positive"));
    }
    let mut sizes: Dims = x.sizes().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = index.numel();
    } else if index.numel() != 1 {
        return Err(ShapeError::runtime("index_select(): Index to scalar can have only 1 value"));
    }
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)`.
///
/// # Errors
/// Fails for indices that are no 32- or 64-bit integers, for a gradient that has not a row for each of them, and for a
/// number of weights that is negative or too large.
pub fn embedding_dense_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, indices) = (call.need(0)?, call.need(1)?);
    let width = grad.sizes().last().copied().unwrap_or(1);
    let rows = call.int(2, 0);
    if !matches!(indices.dtype(), DType::I64 | DType::I32) {
        return Err(ShapeError::runtime(format!(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got \
             {}",
            cxx_name(indices.dtype())
        )));
    }
    if indices.numel().checked_mul(width) != Some(grad.numel()) {
        return Err(ShapeError::runtime(format!(
            "shape '[{}, {width}]' is invalid for input of size {}",
            indices.numel(),
            grad.numel()
        )));
    }
    super::checks::not_negative(&[rows])?;
    checked(call.op, rows.checked_mul(width))?;
    one(Layout::contiguous(grad.dtype(), &[rows, width]))
}

fn integer_index(call: &Call<'_>, index: &Layout) -> Result<(), ShapeError> {
    if matches!(index.dtype(), DType::I64 | DType::I32) || index.numel() == 0 {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("{}(): Expected dtype int64 for index", call.short_op())))
}

/// Sizes of a 0-dim tensor count as one dimension of size 1.
fn at_least_1d(sizes: &[i64]) -> Dims {
    if sizes.is_empty() { Dims::from_elem(1, 1) } else { sizes.into() }
}

fn index_fits(call: &Call<'_>, index: &Layout, dim: usize, within: &[(&Layout, bool, &str)]) -> Result<(), ShapeError> {
    if index.numel() == 0 {
        return Ok(());
    }
    let i = at_least_1d(index.sizes());
    for &(t, all, what) in within {
        let t = at_least_1d(t.sizes());
        if t.len() != i.len() {
            return Err(ShapeError::runtime(format!(
                "Index tensor must have the same number of dimensions as {what} tensor"
            )));
        }
        if (0..i.len()).any(|d| (all || d != dim) && i[d] > t[d]) {
            return Err(ShapeError::runtime(format!(
                "{}: expected index {:?} to be no larger than {what} {:?} apart from dimension {dim}",
                call.short_op(),
                &i[..],
                &t[..]
            )));
        }
    }
    Ok(())
}

/// `gather(self, dim, index)`.
///
/// # Errors
/// Fails for a dimension that there is not, for an index that is not of integers or not of the rank of `self`, and for
/// one that is larger than `self` in another dimension.
pub fn gather(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index) = (call.need(0)?, call.need(2)?);
    let dim = wrap_dim(call.int(1, 0), x.rank())?;
    integer_index(call, index)?;
    index_fits(call, index, dim, &[(x, false, "input")])?;
    one(Layout::contiguous(x.dtype(), index.sizes()))
}

/// `scatter(self, dim, index, src)`, with a number, with a reduction; `scatter_add`, `scatter_reduce`.
///
/// # Errors
/// As [`gather`]; also where `src` has another dtype than `self`, or is smaller than the index.
pub fn scatter(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index) = (call.need(0)?, call.need(2)?);
    let dim = wrap_dim(call.int(1, 0), x.rank())?;
    integer_index(call, index)?;
    if let Some(src) = call.tensor(3) {
        if src.dtype() != x.dtype() {
            return Err(ShapeError::runtime(format!(
                "{}(): Expected self.dtype to be equal to src.dtype",
                call.short_op()
            )));
        }
        index_fits(call, index, dim, &[(x, false, "self"), (src, true, "src")])?;
    } else {
        index_fits(call, index, dim, &[(x, false, "self")])?;
    }
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `index_add(self, dim, index, source, alpha)`, `index_copy`, `index_reduce`.
///
/// # Errors
/// Fails for a dimension that there is not, for an index that is no vector of integers, and for a source that is of
/// another dtype or has not a slice of `self`'s sizes for each index.
pub fn index_add(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index, source) = (call.need(0)?, call.need(2)?, call.need(3)?);
    let op = call.short_op();
    let dim = wrap_dim(call.int(1, 0), x.rank())?;
    if index.rank() > 1 {
        return Err(ShapeError {
            class: if op == "index_reduce" { ErrorClass::Runtime } else { ErrorClass::Index },
            message: format!("{op}(): Index should have dimension 1 or 0 (got {})", index.rank()),
        });
    }
    integer_index(call, index)?;
    if x.dtype() != source.dtype() {
        return Err(ShapeError::runtime(format!(
            "{op}(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
            cxx_name(x.dtype()),
            cxx_name(source.dtype())
        )));
    }
    let (xs, ss) = (x.sizes(), source.sizes());
    let along = ss.get(dim).copied().unwrap_or(1);
    let others = |s: &[i64]| -> Dims { s.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, &v)| v).collect() };
    let slices = ss.is_empty() || others(xs) == others(ss);
    if along != index.numel() || !slices {
        // Of `index_copy`, only slices of other sizes are a RuntimeError.
        let index_error = op == "index_copy" && (slices || xs.len() != ss.len());
        return Err(ShapeError {
            class: if index_error { ErrorClass::Index } else { ErrorClass::Runtime },
            message: format!(
                "{op}(): source {ss:?} does not fit self {xs:?} and {} indices at dimension {dim}",
                index.numel()
            ),
        });
    }
    one(Layout::contiguous(x.dtype(), xs))
}

/// `index_fill(self, dim, index, value)`.
///
/// # Errors
/// Fails for a dimension that there is not, and for an index that is no vector of 64-bit integers.
pub fn index_fill(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index) = (call.need(0)?, call.need(2)?);
    wrap_dim(call.int(1, 0), x.rank())?;
    if index.dtype() != DType::I64 {
        return Err(ShapeError::index("index_fill_(): Expected dtype int64 for index."));
    }
    if index.rank() > 1 {
        return Err(ShapeError::runtime("Index has to be a vector/scalar"));
    }
    one(empty_like(x, None))
}

/// `index(self, indices)` with integer indices; masks make the shape depend on values.
///
/// # Errors
/// Fails for more indices than dimensions, for indices that do not broadcast together or are neither integers nor
/// masks, and for masks: of other sizes than what they index, or because the result's shape depends on their values.
pub fn index(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let (sizes, strides) = indexed(call, x)?;
    one(Layout::strided(x.dtype(), &sizes, &strides))
}

/// Sizes and strides of a tensor indexed by a list of tensors.
fn indexed(call: &Call<'_>, x: &Layout) -> Result<(Dims, Dims), ShapeError> {
    let list = call.tensors(1);
    if list.len() > x.rank() {
        return Err(ShapeError::index(format!(
            "too many indices for tensor of dimension {} (got {})",
            x.rank(),
            list.len()
        )));
    }
    masks(call, x)?;
    let present: SmallVec<[usize; 4]> = (0..list.len()).filter(|&d| list[d].is_some()).collect();
    let indices: SmallVec<[&Layout; 4]> = list.iter().flatten().copied().collect();
    for i in &indices {
        match i.dtype() {
            DType::I64 | DType::I32 => {}
            DType::Bool | DType::U8 => return super::reduction::dynamic(call).map(|_| Default::default()),
            _ => {
                return Err(ShapeError::index("tensors used as indices must be long, int, byte or bool tensors"));
            }
        }
    }
    let shapes: SmallVec<[&[i64]; 4]> = indices.iter().map(|i| i.sizes()).collect();
    let whole = super::broadcast(&shapes).map_err(|_| {
        ShapeError::index(format!(
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ")
        ))
    })?;
    let adjacent = present.windows(2).all(|w| w[1] == w[0] + 1);
    // Where indexed dimensions are not neighbours their result dimensions come first.
    let at = if adjacent { present.first().copied().unwrap_or(0) } else { 0 };
    let kept: SmallVec<[usize; 6]> = (0..x.rank()).filter(|d| !present.contains(d)).collect();
    let before = if adjacent { at } else { 0 };
    let mut sizes = Dims::new();
    let mut source = Dims::new();
    for &d in &kept[..before] {
        sizes.push(x.sizes()[d]);
        source.push(x.strides()[d]);
    }
    sizes.extend(whole.iter().copied());
    source.extend(whole.iter().map(|_| 0));
    for &d in &kept[before..] {
        sizes.push(x.sizes()[d]);
        source.push(x.strides()[d]);
    }
    let after = kept.len() - before;
    let operand = |i: &&Layout| {
        let lead = before + whole.len() - i.rank();
        let ones = |n: usize| std::iter::repeat_n(1i64, n);
        let s: Dims = ones(lead).chain(i.sizes().iter().copied()).chain(ones(after)).collect();
        let t: Dims = ones(lead).map(|_| 0).chain(i.strides().iter().copied()).chain(ones(after).map(|_| 0)).collect();
        Layout::strided(DType::I64, &s, &t)
    };
    let layouts: Vec<Layout> =
        std::iter::once(Layout::strided(x.dtype(), &sizes, &source)).chain(indices.iter().map(operand)).collect();
    let strides = strides_over(&layouts.iter().collect::<Vec<_>>(), &sizes);
    Ok((sizes, strides))
}

fn is_mask(index: &Layout) -> bool {
    matches!(index.dtype(), DType::Bool | DType::U8)
}

/// Masks among indices have the sizes of the dimensions they stand for.
fn masks(call: &Call<'_>, x: &Layout) -> Result<(), ShapeError> {
    let mut at = 0;
    for index in call.tensors(1) {
        let mask = index.filter(|i| is_mask(i));
        for (k, &size) in mask.iter().flat_map(|m| m.sizes().iter().enumerate()) {
            if x.sizes().get(at + k) != Some(&size) {
                return Err(ShapeError::index(format!(
                    "The shape of the mask {:?} at index {k} does not match the shape of the indexed tensor {:?} at \
                     index {}",
                    mask.map(Layout::sizes).unwrap_or_default(),
                    x.sizes(),
                    at + k
                )));
            }
        }
        at += mask.map_or(1, Layout::rank);
    }
    Ok(())
}

/// `index_put(self, indices, values, accumulate)`.
///
/// # Errors
/// Fails where dtypes differ, unless one value fills a mask; for a mask of other sizes than what it indexes; and, of
/// indices, as [`index`] and where the values do not broadcast to its result.
pub fn index_put(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, values) = (call.need(0)?, call.need(2)?);
    // One value where a mask says so is filled in, and converted.
    let mut indices = call.tensors(1).into_iter().flatten();
    let fills = !call.bool(3) && values.numel() == 1 && indices.next().is_some_and(is_mask) && indices.next().is_none();
    if x.dtype() != values.dtype() && !fills {
        return Err(ShapeError::runtime(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the \
             source.",
            cxx_name(x.dtype()),
            cxx_name(values.dtype())
        )));
    }
    masks(call, x)?;
    if call.tensors(1).iter().flatten().all(|i| !is_mask(i)) {
        let (sizes, _) = indexed(call, x)?;
        let whole = super::broadcast(&[&sizes, values.sizes()]).ok();
        if whole.is_none_or(|w| w[..] != sizes[..]) {
            return Err(ShapeError::runtime(format!(
                "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
                values.sizes(),
                &sizes[..]
            )));
        }
    }
    one(empty_like(x, None))
}

/// `masked_scatter(self, mask, source)`.
///
/// # Errors
/// Fails where dtypes differ, for a mask that is not of booleans, and where it does not broadcast with `self`.
pub fn masked_scatter(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, mask, source) = (call.need(0)?, call.need(1)?, call.need(2)?);
    if x.dtype() != source.dtype() {
        return Err(ShapeError::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got {} and {}",
            cxx_name(x.dtype()),
            cxx_name(source.dtype())
        )));
    }
    if mask.dtype() != DType::Bool {
        return Err(ShapeError::runtime(format!(
            "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
            cxx_name(mask.dtype())
        )));
    }
    one(Layout::contiguous(x.dtype(), &super::broadcast(&[mask.sizes(), x.sizes()])?))
}

/// `take(self, index)`.
///
/// # Errors
/// Fails for an index that is not of 64-bit integers, and where `self` has no element to take.
pub fn take(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index) = (call.need(0)?, call.need(1)?);
    if index.dtype() != DType::I64 {
        return Err(ShapeError::runtime(format!(
            "take(): Expected a long tensor for index, but got {}",
            cxx_name(index.dtype())
        )));
    }
    if x.numel() == 0 && index.numel() != 0 {
        return Err(ShapeError::index("take(): tried to take from an empty tensor"));
    }
    let index = Layout::strided(x.dtype(), index.sizes(), index.strides());
    one(Layout::strided(x.dtype(), index.sizes(), &strides_over(&[&index], index.sizes())))
}

/// `put(self, index, source, accumulate)`.
///
/// # Errors
/// Fails for an index that is not of 64-bit integers, for a source of another dtype or number of elements, and where
/// `self` has no element to put them into.
pub fn put(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, index, source) = (call.need(0)?, call.need(1)?, call.need(2)?);
    if x.numel() == 0 && index.numel() != 0 {
        return Err(ShapeError::index("put_(): Tried to put elements into an empty tensor"));
    }
    if index.numel() != source.numel() {
        return Err(ShapeError::index(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {} and \
             index.numel() = {}",
            source.numel(),
            index.numel()
        )));
    }
    if index.dtype() != DType::I64 || source.dtype() != x.dtype() {
        return Err(ShapeError::runtime("put_(): Expected a long tensor for index, and self and source of one dtype"));
    }
    one(empty_like(x, None))
}
