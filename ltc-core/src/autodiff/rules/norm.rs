//! Gradients of normalisations and dropout.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::SumDimOptions,
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::UnderscoreSoftmax, softmax),
    (O::UnderscoreLogSoftmax, log_softmax),
    (O::UnderscoreSoftmaxBackwardData, softmax_backward_data),
    (O::UnderscoreLogSoftmaxBackwardData, log_softmax_backward_data),
    (O::NativeBatchNorm, batch_norm),
    (O::NativeLayerNorm, layer_norm),
    (O::NativeGroupNorm, group_norm),
    (O::NativeDropout, native_dropout),
];

/// `half_to_float` only says in which dtype the result is.
fn softmax(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["half_to_float"]);
    s.only(s.grad(0)?.softmax_backward_data(&s.result(0), s.int("dim")?, s.need("self")?.dtype()))
}

/// As [`softmax`].
fn log_softmax(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["half_to_float"]);
    s.only(s.grad(0)?.log_softmax_backward_data(&s.result(0), s.int("dim")?, s.need("self")?.dtype()))
}

const KEEP: SumDimOptions = SumDimOptions { keepdim: true, dtype: None };

fn softmax_backward_data(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (grad, y, dim) = (s.need("grad_output")?, s.need("output")?, s.int("dim")?);
    let g = s.grad(0)?;
    s.by_argument([
        ("grad_output", &|| g.softmax_backward_data(y, dim, grad.dtype())),
        ("output", &|| {
            let inner = grad.mul(y)?.sum_dim_with(Some(&[dim]), KEEP)?;
            let outer = g.mul(y)?.sum_dim_with(Some(&[dim]), KEEP)?;
            grad.sub(inner)?.mul(&g)?.sub(grad.mul(outer)?)
        }),
    ])
}

fn log_softmax_backward_data(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (grad, y, dim) = (s.need("grad_output")?, s.need("output")?, s.int("dim")?);
    let g = s.grad(0)?;
    s.by_argument([
        ("grad_output", &|| g.sub(g.mul(y.exp()?)?.sum_dim_with(Some(&[dim]), KEEP)?)),
        ("output", &|| y.exp()?.mul(&g)?.mul(grad.sum_dim_with(Some(&[dim]), KEEP)?)?.neg()),
    ])
}

fn native_dropout(s: &Saved<'_>) -> Result<Gradients, Error> {
    let p = s.float("p")?;
    // Evaluation keeps all elements as they are.
    let evaluates = matches!(s.arg("train"), ltc_ir::Arg::Bool(false));
    let scale = match p {
        _ if evaluates => 1.0,
        p if p >= 1.0 => 0.0,
        p => 1.0 / (1.0 - p),
    };
    s.only(s.grad(0)?.native_dropout_backward(s.result(1), scale))
}

/// The momentum only says what becomes of the running statistics.
fn batch_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["momentum"]);
    let mask = ["input", "weight", "bias"].map(|name| s.wants(name));
    let (mean, inverse) = (s.result(1), s.result(2));
    let training = s.bool("training")?;
    let (mean, inverse) = if training { (Some(&mean), Some(&inverse)) } else { (None, None) };
    let parts = s.grad(0)?.native_batch_norm_backward(
        s.need("input")?,
        s.x("weight"),
        s.x("running_mean"),
        s.x("running_var"),
        mean,
        inverse,
        training,
        s.float("eps")?,
        &mask,
    )?;
    place(s, parts)
}

/// `eps` is in the deviation that the call returned.
fn layer_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["eps"]);
    let mask = ["input", "weight", "bias"].map(|name| s.wants(name));
    let shape = s.ints("normalized_shape").unwrap_or_default();
    let (mean, inverse) = (s.result(1), s.result(2));
    let g = s.grad(0)?.contiguous()?;
    let (x, weight, bias) = (s.need("input")?, s.x("weight"), s.x("bias"));
    place(s, g.native_layer_norm_backward(x, &shape, &mean, &inverse, weight, bias, &mask)?)
}

/// As [`layer_norm`].
fn group_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["eps"]);
    let mask = ["input", "weight", "bias"].map(|name| s.wants(name));
    let (mean, inverse) = (s.result(1), s.result(2));
    let (n, c, inner, groups) = (s.int("N")?, s.int("C")?, s.int("HxW")?, s.int("group")?);
    let g = s.grad(0)?.contiguous()?;
    let (x, weight) = (s.need("input")?, s.x("weight"));
    place(s, g.native_group_norm_backward(x, &mean, &inverse, weight, n, c, inner, groups, &mask)?)
}

/// Gradients for input, weight and bias of a norm, of which the last two may be absent.
fn place(s: &Saved<'_>, parts: Vec<Option<LazyTensor>>) -> Result<Gradients, Error> {
    let mut out = Gradients::from_elem(None, s.inputs().len());
    for (name, part) in ["input", "weight", "bias"].into_iter().zip(parts) {
        if let Some(operand) = s.operand_of(&s.arg(name)) {
            out[operand] = part;
        }
    }
    Ok(out)
}
