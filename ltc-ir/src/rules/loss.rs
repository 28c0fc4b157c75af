//! Losses and their gradients.

use smallvec::SmallVec;

use super::{Call, NewResults, ShapeError, iterator::broadcast_layout, one};
use crate::{
    dtype::DType,
    layout::Layout,
    promote::{Category, result_type},
};

/// Reductions by libtorch's numbers: none, mean, sum.
const NONE: i64 = 0;

fn promoted(call: &Call<'_>, operands: &[&Layout]) -> Result<DType, ShapeError> {
    let kinds = operands.iter().map(|o| (o.dtype(), Category::of_rank(o.rank())));
    result_type(kinds, DType::F32)
        .ok_or_else(|| ShapeError::runtime(format!("{}: the operands' dtypes do not promote", call.short_op())))
}

/// A loss of `(self, target, reduction, ...)`.
pub fn elementwise(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    let dtype = promoted(call, &[x, target])?;
    floats(dtype)?;
    reduction(call.int(2, 1))?;
    let whole = broadcast_layout(&[x, target], dtype)?;
    one(if call.int(2, 1) == NONE { whole } else { Layout::contiguous(dtype, &[]) })
}

/// The gradient `(grad, self, target, reduction, ...)` of such a loss: row-major where the kernel allocates first.
pub fn elementwise_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(1)?, call.need(2)?);
    let dtype = promoted(call, &[x, target])?;
    let whole = super::broadcast(&[x.sizes(), target.sizes(), call.need(0)?.sizes()])?;
    super::checks::one_dtype(call, &[0, 1, 2])?;
    floats(dtype)?;
    one(Layout::contiguous(dtype, &whole))
}

/// Means of integers are none.
fn floats(dtype: DType) -> Result<(), ShapeError> {
    if dtype.is_integral(true) {
        return Err(ShapeError::runtime(format!("result type Float can't be cast to {}", super::cxx_name(dtype))));
    }
    Ok(())
}

fn reduction(by: i64) -> Result<(), ShapeError> {
    if (0..=2).contains(&by) {
        Ok(())
    } else {
        Err(ShapeError::runtime(format!("{by} is not a valid value for reduction")))
    }
}

/// `binary_cross_entropy(self, target, weight, reduction)`.
pub fn binary_cross_entropy(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    same_sizes(call, x, target)?;
    one(if call.int(3, 1) == NONE { super::empty_like(x, None) } else { Layout::contiguous(x.dtype(), &[]) })
}

fn same_sizes(call: &Call<'_>, x: &Layout, target: &Layout) -> Result<(), ShapeError> {
    if x.sizes() == target.sizes() {
        return Ok(());
    }
    Err(ShapeError::runtime(format!(
        "{}: the target's size {:?} differs from the input's {:?}",
        call.short_op(),
        target.sizes(),
        x.sizes()
    )))
}

/// `binary_cross_entropy_backward(grad, self, target, weight, reduction)`.
pub fn binary_cross_entropy_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x) = (call.need(0)?, call.need(1)?);
    super::checks::one_dtype(call, &[1, 0, 2, 3])?;
    super::checks::expands(call.need(2)?, x.sizes())?;
    super::checks::expands(grad, x.sizes())?;
    if let Some(w) = call.tensor(3) {
        super::checks::expands(w, x.sizes())?;
    }
    super::like_second(call)
}

/// `binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)`.
pub fn binary_cross_entropy_with_logits(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    let mut operands: SmallVec<[&Layout; 4]> = SmallVec::from_slice(&[x, target]);
    operands.extend(call.tensor(2));
    let dtype = promoted(call, &operands)?;
    let whole = broadcast_layout(&operands, dtype)?;
    one(if call.int(4, 1) == NONE { whole } else { Layout::contiguous(dtype, &[]) })
}

fn nll_weight(call: &Call<'_>, at: usize, classes: i64) -> Result<(), ShapeError> {
    match call.tensor(at) {
        Some(w) if w.rank() != 1 || w.numel() != classes => Err(ShapeError::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
            w.sizes()
        ))),
        _ => Ok(()),
    }
}

/// `nll_loss_forward(self, target, weight, reduction, ignore_index)`: the loss and the total weight.
pub fn nll_loss_forward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    if x.rank() == 0 || x.rank() > 2 {
        return Err(ShapeError::runtime("input tensor should be 1D or 2D"));
    }
    if target.rank() > 1 {
        return Err(ShapeError::runtime("0D or 1D target tensor expected, multi-target not supported"));
    }
    let unbatched = x.rank() == 1 && target.rank() == 0;
    if !unbatched && target.sizes().first() != x.sizes().first() {
        return Err(ShapeError::runtime(format!(
            "size mismatch (got input: {:?}, target: {:?})",
            x.sizes(),
            target.sizes()
        )));
    }
    nll_weight(call, 2, x.sizes()[x.rank() - 1])?;
    let sizes = if call.int(3, 1) == NONE && x.rank() == 2 { &x.sizes()[..1] } else { &[] };
    let of = |sizes: &[i64]| Some(Layout::contiguous(x.dtype(), sizes));
    Ok(SmallVec::from_iter([of(sizes), of(&[])]))
}

/// `nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)`.
pub fn nll_loss_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, target) = (call.need(0)?, call.need(1)?, call.need(2)?);
    if x.rank() == 0 || x.rank() > 2 {
        return Err(ShapeError::runtime("input tensor should be 1D or 2D"));
    }
    super::checks::one_dtype(call, &[1, 0, 3, 6])?;
    if x.rank() == 2 {
        super::checks::sizes_are("target", target, &x.sizes()[..1])?;
    }
    nll_weight(call, 3, x.sizes()[x.rank() - 1])?;
    let per_element = call.int(4, 1) == NONE && x.rank() == 2;
    if per_element {
        super::checks::sizes_are("grad_output", grad, &x.sizes()[..1])?;
    } else if grad.rank() > 1 || grad.numel() != 1 {
        return Err(ShapeError::runtime("Expected a single element grad_output tensor"));
    }
    super::checks::elements("total_weight", call.tensor(6), 1)?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `nll_loss2d_forward(self, target, weight, reduction, ignore_index)`.
pub fn nll_loss2d_forward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    if target.rank() != 3 {
        return Err(ShapeError::runtime(format!(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
            target.rank()
        )));
    }
    if x.rank() != 4 {
        return Err(ShapeError::runtime(format!(
            "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
            x.rank()
        )));
    }
    let s = x.sizes();
    if target.sizes() != [s[0], s[2], s[3]] {
        return Err(ShapeError::runtime(format!("size mismatch (got input: {s:?} , target: {:?}", target.sizes())));
    }
    nll_weight(call, 2, s[1])?;
    let of = |sizes: &[i64]| Some(Layout::contiguous(x.dtype(), sizes));
    Ok(SmallVec::from_iter([of(if call.int(3, 1) == NONE { target.sizes() } else { &[] }), of(&[])]))
}

/// `nll_loss2d_backward(grad, self, target, ...)`.
pub fn nll_loss2d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, target) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let [n, c, h, w] = *x.sizes() else {
        return Err(ShapeError::runtime("only batches of spatial inputs supported (4D tensors)"));
    };
    super::checks::one_dtype(call, &[1, 0, 3, 6])?;
    super::checks::sizes_are("target", target, &[n, h, w])?;
    nll_weight(call, 3, c)?;
    if call.int(4, 1) == NONE {
        super::checks::sizes_are("grad_output", grad, target.sizes())?;
    } else {
        super::checks::elements("grad_output", Some(grad), 1)?;
    }
    super::checks::elements("total_weight", call.tensor(6), 1)?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `soft_margin_loss(self, target, reduction)`: sizes of both must agree only up to broadcasting.
pub fn soft_margin_loss(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    elementwise(call)
}
