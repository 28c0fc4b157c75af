//! Gradients of normalisations and dropout.

use ltc_ir::{OpCode, OpCode as O};

use super::Rule;
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::SumDimOptions,
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::UnderscoreSoftmax, |s| s.only(s.grad(0)?.softmax_backward_data(&s.result(0), s.int(1), s.need(0)?.dtype()))),
    (O::UnderscoreLogSoftmax, |s| {
        s.only(s.grad(0)?.log_softmax_backward_data(&s.result(0), s.int(1), s.need(0)?.dtype()))
    }),
    (O::UnderscoreSoftmaxBackwardData, softmax_backward_data),
    (O::UnderscoreLogSoftmaxBackwardData, log_softmax_backward_data),
    (O::NativeBatchNorm, batch_norm),
    (O::NativeLayerNorm, layer_norm),
    (O::NativeGroupNorm, group_norm),
    (O::NativeDropout, native_dropout),
];

fn softmax_backward_data(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (grad, y, dim) = (s.need(0)?, s.need(1)?, [s.int(2)]);
    let g = s.grad(0)?;
    let keep = SumDimOptions { keepdim: true, dtype: None };
    s.by_argument([
        (0, &|| g.softmax_backward_data(y, s.int(2), grad.dtype())),
        (1, &|| {
            let inner = grad.mul(y)?.sum_dim_with(Some(&dim), keep)?;
            let outer = g.mul(y)?.sum_dim_with(Some(&dim), keep)?;
            grad.sub(inner)?.mul(&g)?.sub(grad.mul(outer)?)
        }),
    ])
}

fn log_softmax_backward_data(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (grad, y, dim) = (s.need(0)?, s.need(1)?, [s.int(2)]);
    let g = s.grad(0)?;
    let keep = SumDimOptions { keepdim: true, dtype: None };
    s.by_argument([
        (0, &|| g.sub(g.mul(y.exp()?)?.sum_dim_with(Some(&dim), keep)?)),
        (1, &|| y.exp()?.mul(&g)?.mul(grad.sum_dim_with(Some(&dim), keep)?)?.neg()),
    ])
}

fn native_dropout(s: &Saved<'_>) -> Result<Gradients, Error> {
    let p = s.float(1);
    let scale = if p >= 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    s.only(s.grad(0)?.native_dropout_backward(s.result(1), scale))
}

fn batch_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let (mean, inverse) = (s.result(1), s.result(2));
    let training = s.bool(5);
    let (mean, inverse) = if training { (Some(&mean), Some(&inverse)) } else { (None, None) };
    let parts = s.grad(0)?.native_batch_norm_backward(
        s.need(0)?,
        s.x(1),
        s.x(3),
        s.x(4),
        mean,
        inverse,
        training,
        s.float(7),
        &mask,
    )?;
    place(s, parts)
}

fn layer_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(2), s.wants(3)];
    let shape = s.ints(1).unwrap_or_default();
    let (mean, inverse) = (s.result(1), s.result(2));
    let parts = s.grad(0)?.contiguous()?.native_layer_norm_backward(
        s.need(0)?,
        &shape,
        &mean,
        &inverse,
        s.x(2),
        s.x(3),
        &mask,
    )?;
    place(s, parts)
}

fn group_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let (mean, inverse) = (s.result(1), s.result(2));
    let numbers = [3, 4, 5, 6].map(|i| s.int(i));
    let [n, c, inner, groups] = numbers;
    let parts = s.grad(0)?.contiguous()?.native_group_norm_backward(
        s.need(0)?,
        &mean,
        &inverse,
        s.x(1),
        n,
        c,
        inner,
        groups,
        &mask,
    )?;
    place(s, parts)
}

/// Gradients for input, weight and bias of a norm, of which the last two may be absent.
fn place(s: &Saved<'_>, parts: Vec<Option<LazyTensor>>) -> Result<Gradients, Error> {
    let mut out = Gradients::from_elem(None, s.inputs().len());
    let arguments = if s.code() == OpCode::NativeLayerNorm { [0, 2, 3] } else { [0, 1, 2] };
    for (argument, part) in arguments.into_iter().zip(parts) {
        if let Some(operand) = s.operand_of(argument) {
            out[operand] = part;
        }
    }
    Ok(out)
}
