//! Gradients of products and convolutions.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved, sum_to},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Mm, mm),
    (O::Bmm, bmm),
    (O::Addmm, addmm),
    (O::Baddbmm, baddbmm),
    (O::Mv, mv),
    (O::Dot, dot),
    (O::Convolution, convolution),
];

fn mm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (a, b, g) = (s.need("self")?, s.need("mat2")?, s.grad(0)?);
    s.by_argument([("self", &|| g.mm(&b.t()?)), ("mat2", &|| a.t()?.mm(&g))])
}

fn bmm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (a, b, g) = (s.need("self")?, s.need("mat2")?, s.grad(0)?);
    s.by_argument([("self", &|| g.bmm(&b.transpose(1, 2)?)), ("mat2", &|| a.transpose(1, 2)?.bmm(&g))])
}

fn addmm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, a, b, g) = (s.need("self")?, s.need("mat1")?, s.need("mat2")?, s.grad(0)?);
    let (beta, alpha) = (s.float("beta")?, s.float("alpha")?);
    s.by_argument([
        ("self", &|| sum_to(&g, x.sizes())?.mul(beta)),
        ("mat1", &|| g.mm(&b.t()?)?.mul(alpha)),
        ("mat2", &|| a.t()?.mm(&g)?.mul(alpha)),
    ])
}

fn baddbmm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, a, b, g) = (s.need("self")?, s.need("batch1")?, s.need("batch2")?, s.grad(0)?);
    let (beta, alpha) = (s.float("beta")?, s.float("alpha")?);
    s.by_argument([
        ("self", &|| sum_to(&g, x.sizes())?.mul(beta)),
        ("batch1", &|| g.bmm(&b.transpose(1, 2)?)?.mul(alpha)),
        ("batch2", &|| a.transpose(1, 2)?.bmm(&g)?.mul(alpha)),
    ])
}

fn mv(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (a, v, g) = (s.need("self")?, s.need("vec")?, s.grad(0)?);
    s.by_argument([("self", &|| g.unsqueeze(1)?.mul(&v.unsqueeze(0)?)), ("vec", &|| a.t()?.mv(&g))])
}

fn dot(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (a, b, g) = (s.need("self")?, s.need("tensor")?, s.grad(0)?);
    s.by_argument([("self", &|| b.mul(&g)), ("tensor", &|| a.mul(&g))])
}

fn convolution(s: &Saved<'_>) -> Result<Gradients, Error> {
    let lists = ["stride", "padding", "dilation", "output_padding"].map(|name| s.ints(name).unwrap_or_default());
    let [stride, padding, dilation, output_padding] = &lists;
    let bias = s.x("bias").map(|b| [b.numel()]);
    let mask = ["input", "weight", "bias"].map(|name| s.wants(name));
    let parts = s.grad(0)?.convolution_backward(
        s.need("input")?,
        s.need("weight")?,
        bias.as_ref().map(|b| &b[..]),
        stride,
        padding,
        dilation,
        s.bool("transposed")?,
        output_padding,
        s.int("groups")?,
        &mask,
    )?;
    Ok(parts.into_iter().take(s.inputs().len()).collect())
}
