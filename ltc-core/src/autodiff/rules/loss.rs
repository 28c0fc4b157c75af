//! Gradients of losses and activations.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved},
    tensor::BinaryCrossEntropyBackwardOptions,
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::NllLossForward, nll_loss_forward),
    (O::MseLoss, mse_loss),
    (O::SmoothL1Loss, |s| s.only(s.grad(0)?.smooth_l1_loss_backward(s.need(0)?, s.need(1)?, s.int(2), s.float(3)))),
    (O::HuberLoss, |s| s.only(s.grad(0)?.huber_loss_backward(s.need(0)?, s.need(1)?, s.int(2), s.float(3)))),
    (O::BinaryCrossEntropy, binary_cross_entropy),
    (O::Gelu, |s| s.only(s.grad(0)?.gelu_backward(s.need(0)?.clone()))),
    (O::Mish, mish),
];

fn nll_loss_forward(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, target) = (s.need(0)?, s.need(1)?);
    s.only(s.grad(0)?.nll_loss_backward(x, target, s.x(2), s.int(3), s.int(4), &s.result(1)))
}

fn mse_loss(s: &Saved<'_>) -> Result<Gradients, Error> {
    let difference = s.need(0)?.sub(s.need(1)?)?;
    let scale = if s.int(2) == 1 { 2.0 / difference.numel() as f64 } else { 2.0 };
    let g = difference.mul(scale)?.mul(s.grad(0)?)?;
    s.by_argument([(0, &|| Ok(g.clone())), (1, &|| g.neg())])
}

fn binary_cross_entropy(s: &Saved<'_>) -> Result<Gradients, Error> {
    let o = BinaryCrossEntropyBackwardOptions { weight: s.x(2), reduction: s.int(3) };
    s.only(s.grad(0)?.binary_cross_entropy_backward_with(s.need(0)?, s.need(1)?, o))
}

fn mish(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need(0)?;
    let (t, sigma) = (x.softplus()?.tanh()?, x.sigmoid()?);
    s.only(t.mul(&t)?.rsub(1i64)?.mul(x.mul(sigma)?)?.add(t)?.mul(s.grad(0)?))
}
