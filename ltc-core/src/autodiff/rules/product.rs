//! Gradients of products and convolutions.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved, sum_to},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Mm, |s| s.by_argument([(0, &|| s.grad(0)?.mm(&s.need(1)?.t()?)), (1, &|| s.need(0)?.t()?.mm(&s.grad(0)?))])),
    (O::Bmm, |s| {
        s.by_argument([
            (0, &|| s.grad(0)?.bmm(&s.need(1)?.transpose(1, 2)?)),
            (1, &|| s.need(0)?.transpose(1, 2)?.bmm(&s.grad(0)?)),
        ])
    }),
    (O::Addmm, |s| {
        s.by_argument([
            (0, &|| sum_to(&s.grad(0)?, s.need(0)?.sizes())?.mul(s.float(3))),
            (1, &|| s.grad(0)?.mm(&s.need(2)?.t()?)?.mul(s.float(4))),
            (2, &|| s.need(1)?.t()?.mm(&s.grad(0)?)?.mul(s.float(4))),
        ])
    }),
    (O::Baddbmm, |s| {
        s.by_argument([
            (0, &|| sum_to(&s.grad(0)?, s.need(0)?.sizes())?.mul(s.float(3))),
            (1, &|| s.grad(0)?.bmm(&s.need(2)?.transpose(1, 2)?)?.mul(s.float(4))),
            (2, &|| s.need(1)?.transpose(1, 2)?.bmm(&s.grad(0)?)?.mul(s.float(4))),
        ])
    }),
    (O::Mv, |s| {
        s.by_argument([
            (0, &|| s.grad(0)?.unsqueeze(1)?.mul(&s.need(1)?.unsqueeze(0)?)),
            (1, &|| s.need(0)?.t()?.mv(&s.grad(0)?)),
        ])
    }),
    (O::Dot, |s| s.by_argument([(0, &|| s.need(1)?.mul(s.grad(0)?)), (1, &|| s.need(0)?.mul(s.grad(0)?))])),
    (O::Convolution, convolution),
];

fn convolution(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, w) = (s.need(0)?, s.need(1)?);
    let lists = [3, 4, 5, 7].map(|i| s.ints(i).unwrap_or_default());
    let [stride, padding, dilation, output_padding] = &lists;
    let channels = s.x(2).map(|b| b.numel());
    let bias = channels.map(|c| [c]);
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let parts = s.grad(0)?.convolution_backward(
        x,
        w,
        bias.as_ref().map(|b| &b[..]),
        stride,
        padding,
        dilation,
        s.bool(6),
        output_padding,
        s.int(8),
        &mask,
    )?;
    Ok(parts.into_iter().take(s.inputs().len()).collect())
}
