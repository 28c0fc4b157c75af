//! Gradients of losses and activations.

use ltc_ir::OpCode as O;

use super::{Rule, refused};
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::{BinaryCrossEntropyBackwardOptions, GeluBackwardOptions, Reduction},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::NllLossForward, nll_loss_forward),
    (O::MseLoss, mse_loss),
    (O::SmoothL1Loss, smooth_l1_loss),
    (O::HuberLoss, huber_loss),
    (O::BinaryCrossEntropy, binary_cross_entropy),
    (O::Gelu, gelu),
];

fn nll_loss_forward(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, target, weight) = (s.need("self")?, s.need("target")?, s.x("weight"));
    let (reduction, ignore_index) = (s.int("reduction")?, s.int("ignore_index")?);
    s.only(s.grad(0)?.nll_loss_backward(x, target, weight, reduction, ignore_index, &s.result(1)))
}

fn mse_loss(s: &Saved<'_>) -> Result<Gradients, Error> {
    let difference = s.need("self")?.sub(s.need("target")?)?;
    let is_mean = s.int("reduction")? == Reduction::Mean.code();
    let scale = if is_mean { 2.0 / difference.numel() as f64 } else { 2.0 };
    let g = difference.mul(scale)?.mul(s.grad(0)?)?;
    s.by_argument([("self", &|| Ok(g.clone())), ("target", &|| g.neg())])
}

fn smooth_l1_loss(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (reduction, beta) = (s.int("reduction")?, s.float("beta")?);
    of_difference(s, &|g, x, y| g.smooth_l1_loss_backward(x, y, reduction, beta))
}

fn huber_loss(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (reduction, delta) = (s.int("reduction")?, s.float("delta")?);
    of_difference(s, &|g, x, y| g.huber_loss_backward(x, y, reduction, delta))
}

/// The gradient of a loss for its first operand, of the loss's gradient and both operands.
type OfFirst<'f> = &'f dyn Fn(&LazyTensor, &LazyTensor, &LazyTensor) -> Result<LazyTensor, Error>;

/// Of an even function of the operands' difference: each is to the other what that is to it.
fn of_difference(s: &Saved<'_>, of_first: OfFirst<'_>) -> Result<Gradients, Error> {
    let (x, y, g) = (s.need("self")?, s.need("target")?, s.grad(0)?);
    let sizes = ltc_ir::rules::broadcast(&[x.sizes(), y.sizes()])?;
    // The operators of gradients take the mean over the elements of their first operand, which may have been broadcast.
    let whole = |t: &LazyTensor| if t.sizes() == &sizes[..] { Ok(t.clone()) } else { t.expand(&sizes) };
    let (x, y) = (whole(x)?, whole(y)?);
    s.by_argument([("self", &|| of_first(&g, &x, &y)), ("target", &|| of_first(&g, &y, &x))])
}

fn binary_cross_entropy(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, target, g) = (s.need("self")?, s.need("target")?, s.grad(0)?);
    let o = BinaryCrossEntropyBackwardOptions { weight: s.x("weight"), reduction: s.int("reduction")? };
    s.by_argument([
        ("self", &|| g.binary_cross_entropy_backward_with(x, target, o)),
        ("target", &|| {
            // The operator pairs elements of other sizes than these without their ones, which no view says.
            if x.sizes() != target.sizes() {
                return Err(refused(s, "for a target of other sizes than the input's"));
            }
            let mut each = x.logit()?.neg()?.mul(&g)?;
            if let Some(weight) = o.weight {
                each = each.mul(weight)?;
            }
            if o.reduction == Reduction::Mean.code() { each.div(target.numel() as f64) } else { Ok(each) }
        }),
    ])
}

fn gelu(s: &Saved<'_>) -> Result<Gradients, Error> {
    let approximate = s.text("approximate").ok_or_else(|| refused(s, "without a name in `approximate`"))?;
    s.only(s.grad(0)?.gelu_backward_with(s.need("self")?, GeluBackwardOptions { approximate: &approximate }))
}
