//! Operators that move elements: joining, gathering, scattering, sorting, padding.

use smallvec::SmallVec;

use super::{
    Call, ErrorClass, MemoryFormat, NewResults, ShapeError, cxx_name, empty_like, in_format, one,
    suggest_memory_format, wrap_dim,
};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
    promote::{Category, can_cast, result_type},
};

fn joined_dtype(tensors: &[&Layout]) -> Result<DType, ShapeError> {
    let kinds = tensors.iter().map(|t| (t.dtype(), Category::of_rank(t.rank())));
    result_type(kinds, DType::F32).ok_or_else(|| ShapeError::runtime("the tensors' dtypes do not promote"))
}

/// `cat(tensors, dim)`.
///
/// # Errors
/// Fails for no tensors, for one without dimensions, for a dimension that there is not, and where other sizes differ or
/// dtypes do not promote.
pub fn cat(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let tensors: SmallVec<[&Layout; 8]> = call.tensors(0).into_iter().flatten().collect();
    if tensors.is_empty() {
        return Err(ShapeError {
            class: ErrorClass::Value,
            message: "torch.cat(): expected a non-empty list of Tensors".into(),
        });
    }
    for (i, t) in tensors.iter().enumerate() {
        if t.rank() == 0 {
            return Err(ShapeError::runtime(format!(
                "zero-dimensional tensor (at position {i}) cannot be concatenated"
            )));
        }
    }
    // Vectors without elements joined with anything once, and still do.
    let counts = |t: &&&Layout| t.sizes() != [0];
    let valid: SmallVec<[&Layout; 8]> = tensors.iter().filter(counts).copied().collect();
    let first = valid.first().copied().unwrap_or(tensors[0]);
    let dim = wrap_dim(call.int(1, 0), first.rank())?;
    let mut sizes: Dims = first.sizes().into();
    for (i, t) in valid.iter().enumerate().skip(1) {
        if t.rank() != first.rank() {
            return Err(ShapeError::runtime(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                first.rank(),
                t.rank()
            )));
        }
        for d in (0..t.rank()).filter(|&d| d != dim) {
            if t.sizes()[d] != first.sizes()[d] {
                return Err(ShapeError::runtime(format!(
                    "Sizes of tensors must match except in dimension {dim}. Expected size {} but got size {} for \
                     tensor number {i} in the list.",
                    first.sizes()[d],
                    t.sizes()[d]
                )));
            }
        }
        sizes[dim] = sizes[dim].saturating_add(t.sizes()[dim]);
    }
    let format = suggest_memory_format(tensors[0]);
    let all = tensors.iter().all(|t| suggest_memory_format(t) == format);
    one(in_format(joined_dtype(&tensors)?, &sizes, if all { format } else { MemoryFormat::Contiguous }))
}

/// `stack(tensors, dim)`.
///
/// # Errors
/// Fails for no tensors, for a dimension that the result has not, and where sizes differ or dtypes do not promote.
pub fn stack(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let tensors: SmallVec<[&Layout; 8]> = call.tensors(0).into_iter().flatten().collect();
    let Some(first) = tensors.first() else {
        return Err(ShapeError::runtime("stack expects a non-empty TensorList"));
    };
    let dim = wrap_dim(call.int(1, 0), first.rank() + 1)?;
    if let Some((i, t)) = tensors.iter().enumerate().find(|(_, t)| t.sizes() != first.sizes()) {
        return Err(ShapeError::runtime(format!(
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
            first.sizes(),
            t.sizes()
        )));
    }
    let mut sizes: Dims = first.sizes().into();
    sizes.insert(dim, tensors.len() as i64);
    one(Layout::contiguous(joined_dtype(&tensors)?, &sizes))
}

/// `flip(self, dims)`.
///
/// # Errors
/// Fails for a dimension that there is not, or that is listed twice.
pub fn flip(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let mut seen: SmallVec<[usize; 6]> = SmallVec::new();
    for d in call.ints(1).unwrap_or_default() {
        let d = wrap_dim(d, x.rank())?;
        if seen.contains(&d) {
            return Err(ShapeError::runtime(format!("dim {d} appears multiple times in the list of dims")));
        }
        seen.push(d);
    }
    one(empty_like(x, None))
}

/// `roll(self, shifts, dims)`.
///
/// # Errors
/// Fails for no shifts, for a dimension that there is not, and where there are not as many shifts as dimensions, unless
/// there is one shift and no dimension.
pub fn roll(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let (shifts, dims) = (call.ints(1).unwrap_or_default(), call.ints(2).unwrap_or_default());
    if shifts.is_empty() {
        return Err(ShapeError::runtime("`shifts` required"));
    }
    if dims.is_empty() && shifts.len() == 1 {
        return one(Layout::contiguous(x.dtype(), x.sizes()));
    }
    if shifts.len() != dims.len() {
        return Err(ShapeError::runtime(format!(
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            dims.len()
        )));
    }
    for &d in &dims {
        wrap_dim(d, x.rank())?;
    }
    if x.numel() == 0 {
        return one(empty_like(x, None));
    }
    one(in_format(x.dtype(), x.sizes(), suggest_memory_format(x)))
}

/// `repeat(self, repeats)`.
///
/// # Errors
/// Fails for fewer repeats than dimensions, and for a negative one.
pub fn repeat(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let repeats = call.ints(1).unwrap_or_default();
    let Some(lead) = repeats.len().checked_sub(x.rank()) else {
        return Err(ShapeError::runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    };
    if let Some(&r) = repeats.iter().find(|&&r| r < 0) {
        return Err(ShapeError::runtime(format!(
            "Trying to create tensor with negative dimension {r}: {:?}",
            &repeats[..]
        )));
    }
    let size = |(i, &r): (usize, &i64)| if i < lead { r } else { r.saturating_mul(x.sizes()[i - lead]) };
    let sizes: Dims = repeats.iter().enumerate().map(size).collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `tril(self, diagonal)`, `triu`.
///
/// # Errors
/// Fails for fewer than two dimensions.
pub fn tril(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    if x.rank() < 2 {
        return Err(ShapeError::runtime(format!("{}: input tensor must have at least 2 dimensions", call.short_op())));
    }
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `(values, indices)` of `sort(self, dim, descending)`; stable sorts name the dimension later.
///
/// # Errors
/// Fails for a dimension that there is not.
pub fn sort(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    // `sort.stable(self, *, stable, dim, descending)`.
    let dim = if call.args.len() > 3 { call.int(2, -1) } else { call.int(1, -1) };
    wrap_dim(dim, x.rank())?;
    Ok(SmallVec::from_iter([Some(empty_like(x, None)), Some(empty_like(x, Some(DType::I64)))]))
}

/// `topk(self, k, dim, largest, sorted)`.
///
/// # Errors
/// Fails for a dimension that there is not, and for a `k` that is negative or larger than its size.
pub fn topk(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dim = wrap_dim(call.int(2, -1), x.rank())?;
    let k = call.int(1, 1);
    let size = x.sizes().get(dim).copied().unwrap_or(1);
    if k < 0 || k > size {
        return Err(ShapeError::runtime("selected index k out of range"));
    }
    let mut sizes: Dims = x.sizes().into();
    if let Some(s) = sizes.get_mut(dim) {
        *s = k;
    }
    let of = |dtype| Some(Layout::contiguous(dtype, &sizes));
    Ok(SmallVec::from_iter([of(x.dtype()), of(DType::I64)]))
}

/// `embedding(weight, indices, ...)`.
///
/// # Errors
/// Fails where the weight is no matrix, or the indices are no 32- or 64-bit integers.
pub fn embedding(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (weight, indices) = (call.need(0)?, call.need(1)?);
    if weight.rank() != 2 {
        return Err(ShapeError::runtime("'weight' must be 2-D"));
    }
    if !matches!(indices.dtype(), DType::I64 | DType::I32) {
        return Err(ShapeError::runtime(format!(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got \
             torch.{} instead (while checking arguments for embedding)",
            cxx_name(indices.dtype())
        )));
    }
    let mut sizes: Dims = indices.sizes().into();
    sizes.push(weight.sizes()[1]);
    one(Layout::contiguous(weight.dtype(), &sizes))
}

/// `constant_pad_nd(self, pad, value)`.
///
/// # Errors
/// Fails for an odd number of pads, for more than two per dimension, and where a size would become negative.
pub fn constant_pad_nd(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let pad = call.ints(1).unwrap_or_default();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > x.rank() {
        return Err(ShapeError::runtime(format!(
            "Length of pad must be even and no more than twice the number of dimensions of the input: pad {:?}, input \
             {:?}",
            &pad[..],
            x.sizes()
        )));
    }
    let mut sizes: Dims = x.sizes().into();
    for (i, pair) in pad.chunks(2).enumerate() {
        let d = x.rank() - 1 - i;
        let kept = sizes[d].saturating_add(pair[0].min(0)).saturating_add(pair[1].min(0));
        sizes[d] = sizes[d].saturating_add(pair[0]).saturating_add(pair[1]);
        if sizes[d].min(kept) < 0 {
            return Err(ShapeError::runtime(format!(
                "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is \
                 invalid. Check dimension {d} of your input.",
                x.sizes()[d],
                pair[0],
                pair[1]
            )));
        }
    }
    if pad.iter().all(|&p| p <= 0) {
        return one(empty_like(&Layout::strided(x.dtype(), &sizes, x.strides()), None));
    }
    one(in_format(x.dtype(), &sizes, suggest_memory_format(x)))
}

/// `clone(self, memory_format)`, `copy`: memory formats by libtorch's codes.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn clone(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    one(formatted(x, x.dtype(), call.int(1, PRESERVE)))
}

/// libtorch's codes of memory formats.
const PRESERVE: i64 = 1;

pub(super) fn formatted(x: &Layout, dtype: DType, format: i64) -> Layout {
    match format {
        0 => Layout::contiguous(dtype, x.sizes()),
        2 | 3 => in_format(dtype, x.sizes(), MemoryFormat::ChannelsLast),
        _ => empty_like(x, Some(dtype)),
    }
}

/// `_to_copy(self, *, dtype, layout, device, pin_memory, non_blocking, memory_format)`.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn to_copy(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let dtype = call.dtype(1).unwrap_or(x.dtype());
    let format = call.int(6, PRESERVE);
    one(formatted(x, dtype, format))
}

/// `copy(self, src, non_blocking)`, `_copy_from(self, dst, non_blocking)`: the destination's sizes.
///
/// # Errors
/// Fails where `src` does not broadcast to `self`.
pub fn copy(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, src) = (call.need(0)?, call.need(1)?);
    let whole = super::broadcast(&[x.sizes(), src.sizes()])?;
    if whole[..] != *x.sizes() {
        return Err(ShapeError::runtime(format!(
            "The expanded size of the tensor ({:?}) must match the existing size ({:?})",
            x.sizes(),
            src.sizes()
        )));
    }
    one(if x.strides().contains(&0) { empty_like(x, None) } else { Layout::strided(x.dtype(), x.sizes(), x.strides()) })
}

/// `_copy_from(self, dst, non_blocking)`.
///
/// # Errors
/// Fails where `dst` is no tensor.
pub fn copy_from(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::like_second(call)
}

/// Whatever the operator, it writes in place: there is no new result.
///
/// # Errors
/// Fails where the first argument is no tensor, where the others do not broadcast to it, and, except in `copy_`, where
/// their common dtype cannot be cast to its.
pub fn nothing_new(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    // Other operands broadcast to what is written, numbers and dtypes apart.
    let x = call.need(0)?;
    let pointwise = (1..call.args.len()).filter_map(|i| call.tensor(i)).collect::<SmallVec<[&Layout; 4]>>();
    let shapes: SmallVec<[&[i64]; 4]> = pointwise.iter().map(|l| l.sizes()).collect();
    let whole = super::broadcast(&shapes)?;
    super::checks::expands(&Layout::contiguous(x.dtype(), &whole), x.sizes())?;
    let kinds = pointwise.iter().map(|l| (l.dtype(), Category::of_rank(l.rank())));
    let own = (x.dtype(), Category::of_rank(x.rank()));
    let common = result_type(kinds.chain([own]), DType::F32).unwrap_or(x.dtype());
    if call.short_op() != "copy_" && !can_cast(common, x.dtype()) {
        return Err(ShapeError::runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            cxx_name(common),
            cxx_name(x.dtype())
        )));
    }
    Ok(NewResults::new())
}

/// `block_diag(tensors)`.
///
/// # Errors
/// Fails for a tensor of more than two dimensions, and where dtypes do not promote.
pub fn block_diag(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let tensors: SmallVec<[&Layout; 8]> = call.tensors(0).into_iter().flatten().collect();
    let (mut rows, mut columns) = (0, 0);
    for (i, t) in tensors.iter().enumerate() {
        let (r, c) = match *t.sizes() {
            [] => (1, 1),
            [c] => (1, c),
            [r, c] => (r, c),
            _ => {
                return Err(ShapeError::runtime(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {} dimensions",
                    t.rank()
                )));
            }
        };
        rows += r;
        columns += c;
    }
    if tensors.is_empty() {
        return one(Layout::contiguous(DType::F32, &[1, 0]));
    }
    one(Layout::contiguous(joined_dtype(&tensors)?, &[rows, columns]))
}

/// `diag_embed(self, offset, dim1, dim2)`.
///
/// # Errors
/// Fails for a tensor without dimensions, for a dimension that the result has not, and where both are the same.
pub fn diag_embed(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let n = x.rank() + 1;
    let (a, b) = (wrap_dim(call.int(2, -2), n)?, wrap_dim(call.int(3, -1), n)?);
    if a == b {
        return Err(ShapeError::runtime(format!(
            "diagonal dimensions cannot be identical {}, {}",
            call.int(2, -2),
            call.int(3, -1)
        )));
    }
    let Some((&last, rest)) = x.sizes().split_last() else {
        return Err(ShapeError::index("Dimension out of range (expected to be in range of [-1, 0], but got -1)"));
    };
    let size = last.saturating_add(call.int(1, 0).saturating_abs());
    let mut rest = rest.iter();
    let sizes: Dims = (0..n).map(|d| if d == a || d == b { size } else { rest.next().copied().unwrap_or(1) }).collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter)`.
///
/// # Errors
/// Fails where the sequence is neither a vector nor, the last dimension apart, of the values' sizes.
pub fn searchsorted(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (sorted, x) = (call.need(0)?, call.need(1)?);
    if sorted.rank() == 0
        || (sorted.rank() != 1
            && (sorted.rank() != x.rank() || sorted.sizes()[..sorted.rank() - 1] != x.sizes()[..x.rank() - 1]))
    {
        return Err(ShapeError::runtime(format!(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
             tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            sorted.sizes(),
            x.sizes()
        )));
    }
    one(Layout::contiguous(if call.bool(2) { DType::I32 } else { DType::I64 }, x.sizes()))
}

/// `bucketize(self, boundaries, *, out_int32, right)`.
///
/// # Errors
/// Fails where the boundaries are no vector.
pub fn bucketize(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, boundaries) = (call.need(0)?, call.need(1)?);
    if boundaries.rank() != 1 {
        return Err(ShapeError::runtime(format!(
            "boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.rank()
        )));
    }
    one(Layout::contiguous(if call.bool(2) { DType::I32 } else { DType::I64 }, x.sizes()))
}

/// `_trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim)`.
///
/// # Errors
/// Fails for a dimension that the product has not, or that is listed twice; and, unless there are no elements, where
/// sizes do not broadcast or dtypes differ, and for booleans.
pub fn trilinear(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let operands = [call.need(0)?, call.need(1)?, call.need(2)?];
    let rank = operands[0].rank() + call.ints(3).map_or(0, |e| e.len());
    let unroll = call.int(7, 1);
    if !(0..rank as i64).contains(&unroll) {
        return Err(ShapeError::runtime(format!("unroll_dim must be in [0,{}]", rank as i64 - 1)));
    }
    let listed = |i: usize| super::reduction::listed(&call.ints(i).unwrap_or_default(), rank);
    let (expanded, folded) = ([listed(3)?, listed(4)?, listed(5)?], listed(6)?);
    let mut shapes = operands.map(|o| Dims::from(o.sizes()));
    let mut whole = Dims::from_elem(0, rank);
    for d in 0..rank {
        for (shape, e) in shapes.iter_mut().zip(&expanded) {
            if e[d] {
                shape.insert(super::wrap_dim(d as i64, shape.len() + 1)?, 1);
            } else {
                let at = super::wrap_dim(d as i64, shape.len())?;
                whole[d] = shape.get(at).copied().unwrap_or(1);
            }
        }
    }
    // Of nothing the kernel makes zeros, whatever the tensors are.
    if whole[unroll as usize] != 0 && operands.iter().all(|o| o.numel() > 0) {
        if shapes.iter().any(|s| s.len() != rank) {
            return Err(ShapeError::runtime("number of dimensions must match"));
        }
        super::broadcast(&[&shapes[0], &shapes[1], &shapes[2]])?;
        super::checks::dispatch(call, "bmm", super::checks::not_bool, &[0, 1, 2])?;
    }
    let sizes: Dims = (0..rank).filter(|&d| !folded[d]).map(|d| whole[d]).collect();
    one(Layout::contiguous(operands[0].dtype(), &sizes))
}

/// `one_hot` and others whose shape depends on values.
///
/// # Errors
/// Always: such a call is not recorded.
pub fn dynamic(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::reduction::dynamic(call)
}
