//! Losses and their gradients.

use smallvec::SmallVec;

use super::{Call, ErrorClass, NewResults, ShapeError, iterator::broadcast_layout, one};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
    promote::{Category, result_type},
};

/// Reductions by libtorch's numbers: none, mean, sum.
const NONE: i64 = 0;

/// The whole loss, or its mean or sum. Kernels composed of others take any other number for none.
fn reduced(by: i64, whole: Layout) -> Result<NewResults, ShapeError> {
    one(if matches!(by, 1 | 2) { Layout::contiguous(whole.dtype(), &[]) } else { whole })
}

fn promoted(call: &Call<'_>, operands: &[&Layout]) -> Result<DType, ShapeError> {
    let kinds = operands.iter().map(|o| (o.dtype(), Category::of_rank(o.rank())));
    result_type(kinds, DType::F32)
        .ok_or_else(|| ShapeError::runtime(format!("{}: the operands' dtypes do not promote", call.short_op())))
}

/// A loss of `(self, target, reduction, ...)`.
///
/// # Errors
/// Fails where dtypes do not promote, or promote to integers; where sizes do not broadcast; and for a reduction that
/// there is not.
pub fn elementwise(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    let dtype = promoted(call, &[x, target])?;
    floats(dtype)?;
    reduction(call.int(2, 1))?;
    reduced(call.int(2, 1), broadcast_layout(&[x, target], dtype)?)
}

/// `huber_loss(self, target, reduction, delta)`: computed in a tensor of the input's dtype.
///
/// # Errors
/// Fails for an input of integers, and where sizes do not broadcast.
pub fn huber_loss(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    floats(x.dtype())?;
    reduced(call.int(2, 1), broadcast_layout(&[x, target], x.dtype())?)
}

/// The gradient `(grad, self, target, reduction, ...)` of such a loss: row-major where the kernel allocates first.
///
/// # Errors
/// Fails for an input of integers, where sizes do not broadcast, and where dtypes differ, unless it is
/// `mse_loss_backward` or `smooth_l1_loss_backward`.
pub fn elementwise_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(1)?, call.need(2)?);
    let whole = super::broadcast(&[x.sizes(), target.sizes(), call.need(0)?.sizes()])?;
    if !["mse_loss_backward", "smooth_l1_loss_backward"].contains(&call.short_op()) {
        super::checks::one_dtype(call, &[0, 1, 2])?;
    }
    floats(x.dtype())?;
    one(Layout::contiguous(x.dtype(), &whole))
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
///
/// # Errors
/// Fails where dtypes differ, and where sizes do not broadcast: of input and target, those of 1 left out, together, and
/// to the input's where nothing is reduced; of the weight to the input's.
pub fn binary_cross_entropy(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    super::checks::one_dtype(call, &[0, 1])?;
    let whole = super::broadcast(&[&squeezed(x), &squeezed(target)])?;
    if call.int(3, 1) == NONE {
        super::checks::expands(&Layout::contiguous(x.dtype(), &whole), &squeezed(x))?;
    }
    if let Some(w) = call.tensor(2) {
        super::checks::expands(w, x.sizes())?;
    }
    reduced(call.int(3, 1), super::empty_like(x, None))
}

/// Sizes without those of one, which these kernels leave out before they broadcast.
fn squeezed(l: &Layout) -> Dims {
    l.sizes().iter().copied().filter(|&s| s != 1).collect()
}

/// `binary_cross_entropy_backward(grad, self, target, weight, reduction)`.
///
/// # Errors
/// Fails where dtypes differ, and where sizes do not broadcast: of gradient, input and target, those of 1 left out,
/// together; of the weight to the input's.
pub fn binary_cross_entropy_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, target) = (call.need(0)?, call.need(1)?, call.need(2)?);
    super::checks::one_dtype(call, &[1, 0, 2])?;
    super::broadcast(&[&squeezed(x), &squeezed(target), &squeezed(grad)])?;
    if let Some(w) = call.tensor(3) {
        super::checks::expands(w, x.sizes())?;
    }
    super::like_second(call)
}

/// `binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)`.
///
/// # Errors
/// Fails for integers, for a `pos_weight` of booleans, and where input or `weight` does not broadcast to the target, or
/// `pos_weight` with the target to the input.
pub fn binary_cross_entropy_with_logits(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    if x.dtype().is_integral(true) {
        return Err(super::checks::not_implemented("log_sigmoid_cpu", x.dtype()));
    }
    // Computed in place in a tensor made from the target.
    floats(target.dtype())?;
    super::checks::expands(x, target.sizes())?;
    if let Some(p) = call.tensor(3) {
        if p.dtype() == DType::Bool {
            return Err(ShapeError::runtime(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a \
                 mask, use the `~` or `logical_not()` operator instead.",
            ));
        }
        let scale = super::broadcast(&[p.sizes(), target.sizes()])?;
        super::checks::expands(&Layout::contiguous(p.dtype(), &scale), x.sizes())?;
    }
    if let Some(w) = call.tensor(2) {
        super::checks::expands(w, target.sizes())?;
    }
    reduced(call.int(4, 1), super::empty_like(target, None))
}

/// Classes are numbered by integers.
fn class_numbers(target: &Layout) -> Result<(), ShapeError> {
    match target.dtype() {
        DType::I64 | DType::U8 => Ok(()),
        other => Err(ShapeError::runtime(format!("expected scalar type Long but found {}", super::cxx_name(other)))),
    }
}

/// The batch of a target without dimensions.
fn no_batch(x: &Layout, target: &Layout) -> Result<(), ShapeError> {
    if x.rank() == 2 && target.rank() == 0 {
        return Err(ShapeError::index("Dimension specified as 0 but tensor has no dimensions"));
    }
    Ok(())
}

fn nll_weight(call: &Call<'_>, at: usize, classes: i64) -> Result<(), ShapeError> {
    match call.tensor(at) {
        Some(w) if w.numel() != classes => Err(ShapeError::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of \
             shape: {:?}",
            w.sizes()
        ))),
        _ => Ok(()),
    }
}

/// `nll_loss_forward(self, target, weight, reduction, ignore_index)`: the loss and the total weight.
///
/// # Errors
/// Fails for an input of other than one or two dimensions, or not of floating point numbers; for a target that is not a
/// class number for each row; and for a weight that is not a number of the input's dtype for each class.
pub fn nll_loss_forward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    if x.rank() == 0 || x.rank() > 2 {
        return Err(ShapeError::runtime("input tensor should be 1D or 2D"));
    }
    if target.rank() > 1 {
        return Err(ShapeError::runtime("0D or 1D target tensor expected, multi-target not supported"));
    }
    no_batch(x, target)?;
    if x.rank() == 1 && target.rank() == 1 && target.sizes() != [1] {
        let message = format!("For 1D input, 1D target must have size 1, but got target size: {}", target.numel());
        return Err(ShapeError { class: ErrorClass::Value, message });
    }
    let unbatched = x.rank() == 1;
    if !unbatched && target.sizes().first() != x.sizes().first() {
        return Err(ShapeError::runtime(format!(
            "size mismatch (got input: {:?}, target: {:?})",
            x.sizes(),
            target.sizes()
        )));
    }
    nll_weight(call, 2, x.sizes()[x.rank() - 1])?;
    if call.tensor(2).is_some_and(|w| w.rank() != 1) {
        return Err(ShapeError::runtime("weight tensor should be 1D"));
    }
    super::checks::dispatch(call, "nll_loss_out_frame", DType::is_floating, &[0, 2])?;
    class_numbers(target)?;
    let sizes = if call.int(3, 1) == NONE && x.rank() == 2 { &x.sizes()[..1] } else { &[] };
    let of = |sizes: &[i64]| Some(Layout::contiguous(x.dtype(), sizes));
    Ok(SmallVec::from_iter([of(sizes), of(&[])]))
}

/// `nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)`.
///
/// # Errors
/// As [`nll_loss_forward`]; also for a gradient of other sizes than the loss or another dtype than the input, and for a
/// total weight of other than one element.
pub fn nll_loss_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, target) = (call.need(0)?, call.need(1)?, call.need(2)?);
    if x.rank() == 0 || x.rank() > 2 {
        return Err(ShapeError::runtime("input tensor should be 1D or 2D"));
    }
    super::checks::dispatch(call, "nll_loss_backward_out_frame", DType::is_floating, &[1, 0, 3])?;
    class_numbers(target)?;
    no_batch(x, target)?;
    if x.rank() == 2 || target.rank() > 0 {
        super::checks::sizes_are("target", target, &x.sizes()[..1])?;
    }
    nll_weight(call, 3, x.sizes()[x.rank() - 1])?;
    let per_element = call.int(4, 1) == NONE && x.rank() == 2;
    if !per_element {
        super::checks::one_dtype(call, &[1, 6])?;
    }
    if per_element && grad.rank() == 0 {
        return Err(ShapeError::index("Dimension specified as 0 but tensor has no dimensions"));
    } else if per_element {
        super::checks::sizes_are("grad_output", grad, &x.sizes()[..1])?;
    } else if grad.rank() > 1 || grad.numel() != 1 {
        return Err(ShapeError::runtime("Expected a single element grad_output tensor"));
    }
    super::checks::elements("total_weight", call.tensor(6), 1)?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `nll_loss2d_forward(self, target, weight, reduction, ignore_index)`.
///
/// # Errors
/// Fails for an input of other than four dimensions, or not of floating point numbers; for a target that is not a class
/// number for each point; and for a weight that is not a number of the input's dtype for each class.
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
    super::checks::dispatch(call, "nll_loss2d_forward_out_frame", DType::is_floating, &[0, 2])?;
    class_numbers(target)?;
    let of = |sizes: &[i64]| Some(Layout::contiguous(x.dtype(), sizes));
    Ok(SmallVec::from_iter([of(if call.int(3, 1) == NONE { target.sizes() } else { &[] }), of(&[])]))
}

/// `nll_loss2d_backward(grad, self, target, ...)`.
///
/// # Errors
/// As [`nll_loss2d_forward`]; also for a gradient of other sizes than the loss or another dtype than the input, and for
/// a total weight of other than one element.
pub fn nll_loss2d_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, target) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let [n, c, h, w] = *x.sizes() else {
        return Err(ShapeError::runtime("only batches of spatial inputs supported (4D tensors)"));
    };
    super::checks::dispatch(call, "nll_loss2d_backward_out_frame", DType::is_floating, &[1, 0, 3, 6])?;
    class_numbers(target)?;
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

/// `soft_margin_loss(self, target, reduction)`: computed in a tensor made from the input; any other reduction is a sum.
///
/// # Errors
/// Fails for an input of integers, and where the target does not broadcast to it.
pub fn soft_margin_loss(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, target) = (call.need(0)?, call.need(1)?);
    super::checks::expands(target, x.sizes())?;
    floats(x.dtype())?;
    one(if call.int(2, 1) == NONE { super::empty_like(x, None) } else { Layout::contiguous(x.dtype(), &[]) })
}
