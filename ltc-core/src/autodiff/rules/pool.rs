//! Gradients of pooling, padding and gates.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::MaxPool2dWithIndices, max_pool2d_with_indices),
    (O::AvgPool2d, avg_pool2d),
    (O::UnderscoreAdaptiveAvgPool2d, adaptive_avg_pool2d),
    (O::ConstantPadNd, constant_pad_nd),
    (O::Glu, |s| s.only(s.grad(0)?.glu_backward(s.need("self")?, s.int("dim")?))),
];

fn max_pool2d_with_indices(s: &Saved<'_>) -> Result<Gradients, Error> {
    let lists = ["kernel_size", "stride", "padding", "dilation"].map(|name| s.ints(name).unwrap_or_default());
    let [kernel, stride, padding, dilation] = &lists;
    let (x, ceil, index) = (s.need("self")?, s.bool("ceil_mode")?, s.result(1));
    s.only(s.grad(0)?.max_pool2d_with_indices_backward(x, kernel, stride, padding, dilation, ceil, &index))
}

fn avg_pool2d(s: &Saved<'_>) -> Result<Gradients, Error> {
    let lists = ["kernel_size", "stride", "padding"].map(|name| s.ints(name).unwrap_or_default());
    let [kernel, stride, padding] = &lists;
    let divisor = s.ints("divisor_override").map(|one| one[0]);
    let (x, ceil, counts_padding) = (s.need("self")?, s.bool("ceil_mode")?, s.bool("count_include_pad")?);
    s.only(s.grad(0)?.avg_pool2d_backward(x, kernel, stride, padding, ceil, counts_padding, divisor))
}

/// The sizes are the gradient's.
fn adaptive_avg_pool2d(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["output_size"]);
    s.only(s.grad(0)?.adaptive_avg_pool2d_backward(s.need("self")?))
}

/// What is put around is a constant.
fn constant_pad_nd(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["value"]);
    let inverse: Vec<i64> = s.ints("pad").unwrap_or_default().iter().map(|p| -p).collect();
    s.only(s.grad(0)?.constant_pad_nd(&inverse))
}
