//! Result layouts of element-wise kernels, as libtorch's `TensorIterator` chooses them.
//!
//! Strides of a new result follow the operands': equal dense operands pass theirs on, others decide by the order of
//! their strides, and where nothing says otherwise results are row-major.

use smallvec::SmallVec;

use super::{ShapeError, broadcast};
use crate::{
    dtype::DType,
    layout::{Dims, Layout, contiguous_strides},
};

/// The layout of a new result of dtype `dtype` over these operands.
///
/// # Errors
/// As [`broadcast`].
pub fn broadcast_layout(operands: &[&Layout], dtype: DType) -> Result<Layout, ShapeError> {
    let shapes: SmallVec<[&[i64]; 4]> = operands.iter().map(|o| o.sizes()).collect();
    let sizes = broadcast(&shapes)?;
    Ok(Layout::strided(dtype, &sizes, &strides_over(operands, &sizes)))
}

/// Strides of a new result of these sizes, which the operands broadcast to.
pub fn strides_over(operands: &[&Layout], sizes: &[i64]) -> Dims {
    if let Some(strides) = same_shape(operands, sizes) {
        return strides;
    }
    let order = inner_to_outer(operands, sizes);
    if order.iter().rev().enumerate().all(|(i, &d)| i == d) {
        return contiguous_strides(sizes);
    }
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut step = 1i64;
    for d in order {
        strides[d] = step;
        step = step.saturating_mul(sizes[d]);
    }
    strides
}

/// The fast cases: all operands of the result's sizes, and all row-major, all channels-last, or all of equal dense
/// strides.
fn same_shape(operands: &[&Layout], sizes: &[i64]) -> Option<Dims> {
    let first = operands.first()?;
    if operands.iter().any(|o| o.sizes() != sizes) {
        return None;
    }
    if operands.iter().all(|o| o.is_contiguous()) {
        return Some(contiguous_strides(sizes));
    }
    if sizes.len() == 4 {
        let channels_last = super::in_format(first.dtype(), sizes, super::MemoryFormat::ChannelsLast);
        let is = |o: &&Layout| {
            // Strides of dimensions of size 1 do not matter.
            let dims = o.strides().iter().zip(channels_last.strides()).zip(sizes);
            dims.into_iter().all(|((a, b), &n)| n == 1 || a == b)
        };
        if operands.iter().all(is) {
            return Some(channels_last.strides().into());
        }
    }
    let equal = operands.iter().all(|o| o.is_dense() && o.strides() == first.strides());
    equal.then(|| first.strides().into())
}

/// Dimensions from the innermost out: row-major, insertion-sorted by the strides of the operands, in their order, each
/// having its say where it does not broadcast.
fn inner_to_outer(operands: &[&Layout], sizes: &[i64]) -> SmallVec<[usize; 6]> {
    let n = sizes.len();
    let mut order: SmallVec<[usize; 6]> = (0..n).rev().collect();
    let stride = |o: &Layout, d: usize| {
        let missing = n - o.rank();
        let kept = d >= missing && !(o.sizes()[d - missing] == 1 && sizes[d] != 1);
        if kept { o.strides()[d - missing] } else { 0 }
    };
    // 1: swap, -1: in order, 0: nobody can tell.
    let compare = |a: usize, b: usize| {
        for o in operands {
            // The iterator's strides are in bytes; within one operand elements order the same.
            let (sa, sb) = (stride(o, a), stride(o, b));
            if sa == 0 || sb == 0 {
                continue;
            }
            if sa != sb {
                return if sa < sb { -1 } else { 1 };
            }
            if sizes[a] > sizes[b] {
                return 1;
            }
        }
        0
    };
    for i in 1..n {
        let mut at = i;
        for j in (0..i).rev() {
            match compare(order[j], order[at]) {
                1 => {
                    order.swap(j, at);
                    at = j;
                }
                0 => {}
                _ => break,
            }
        }
    }
    order
}
