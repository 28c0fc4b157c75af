//! Gradients of pooling, padding and gates.

use ltc_ir::{Arg, OpCode as O};

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::MaxPool2dWithIndices, max_pool2d_with_indices),
    (O::AvgPool2d, avg_pool2d),
    (O::UnderscoreAdaptiveAvgPool2d, |s| s.only(s.grad(0)?.adaptive_avg_pool2d_backward(s.need(0)?))),
    (O::ConstantPadNd, constant_pad_nd),
    (O::Glu, |s| s.only(s.grad(0)?.glu_backward(s.need(0)?, s.int(1)))),
];

fn max_pool2d_with_indices(s: &Saved<'_>) -> Result<Gradients, Error> {
    let lists = [1, 2, 3, 4].map(|i| s.ints(i).unwrap_or_default());
    let [kernel, stride, padding, dilation] = &lists;
    let (x, index) = (s.need(0)?, s.result(1));
    s.only(s.grad(0)?.max_pool2d_with_indices_backward(x, kernel, stride, padding, dilation, s.bool(5), &index))
}

fn avg_pool2d(s: &Saved<'_>) -> Result<Gradients, Error> {
    let lists = [1, 2, 3].map(|i| s.ints(i).unwrap_or_default());
    let [kernel, stride, padding] = &lists;
    let divisor = matches!(s.args()[6], Arg::Int(_)).then(|| s.int(6));
    s.only(s.grad(0)?.avg_pool2d_backward(s.need(0)?, kernel, stride, padding, s.bool(4), s.bool(5), divisor))
}

fn constant_pad_nd(s: &Saved<'_>) -> Result<Gradients, Error> {
    let inverse: Vec<i64> = s.ints(1).unwrap_or_default().iter().map(|p| -p).collect();
    s.only(s.grad(0)?.constant_pad_nd(&inverse))
}
