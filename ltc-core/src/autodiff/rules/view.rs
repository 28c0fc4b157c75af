//! Gradients of views.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved, sum_to},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::View, view),
    (O::Squeeze, view),
    (O::SqueezeDims, view),
    (O::Unsqueeze, view),
    (O::Expand, |s| s.only(sum_to(&s.grad(0)?, s.need(0)?.sizes()))),
    (O::TransposeInt, |s| s.only(s.grad(0)?.transpose(s.int(1), s.int(2)))),
    (O::T, |s| s.only(s.grad(0)?.t())),
    (O::Permute, permute),
    (O::SelectInt, |s| s.only(s.grad(0)?.select_backward(s.need(0)?.sizes(), s.int(1), s.int(2)))),
    (O::SliceTensor, |s| s.only(s.grad(0)?.slice_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3), s.int(4)))),
    (O::Diagonal, |s| s.only(s.grad(0)?.diagonal_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3)))),
    (O::Unfold, |s| s.only(s.grad(0)?.unfold_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3)))),
    (O::SelectBackward, |s| s.only(s.grad(0)?.select(s.int(2), s.int(3)))),
    (O::SliceBackward, |s| s.only(s.grad(0)?.slice(s.int(2), Some(s.int(3)), Some(s.int(4)), s.int(5)))),
];

fn view(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.only(s.grad(0)?.reshape(s.need(0)?.sizes()))
}

fn permute(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need(0)?;
    let mut inverse = vec![0; x.dim()];
    for (i, &d) in s.ints(1).unwrap_or_default().iter().enumerate() {
        inverse[ltc_ir::rules::wrap_dim(d, x.dim())?] = i as i64;
    }
    s.only(s.grad(0)?.permute(&inverse))
}
