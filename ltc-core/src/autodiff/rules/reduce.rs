//! Gradients of reductions.

use ltc_ir::OpCode as O;

use super::{Rule, scattered};
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::{MeanDimOptions, SumDimOptions},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Sum, |s| s.only(s.grad(0)?.expand(s.need("self")?.sizes()))),
    (O::SumDimIntList, sum_dim_int_list),
    (O::Mean, |s| s.only(s.grad(0)?.div(s.folded(None)?)?.expand(s.need("self")?.sizes()))),
    (O::MeanDim, mean_dim),
    (O::Max, max),
    (O::Min, max),
    (O::Amax, amax),
    (O::Amin, amax),
    (O::MaxDim, max_dim),
    (O::MinDim, max_dim),
    (O::MedianDim, max_dim),
    (O::Mode, max_dim),
    (O::VarCorrection, var_correction),
    (O::StdCorrection, var_correction),
    (O::Logsumexp, logsumexp),
    (O::NormScalar, norm_scalar),
    (O::Cumsum, cumsum),
];

fn sum_dim_int_list(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints("dim");
    let g = s.unreduced(&s.grad(0)?, dims.as_deref(), s.bool("keepdim")?)?;
    s.only(g.expand(s.need("self")?.sizes()))
}

fn mean_dim(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints("dim");
    let dims = dims.as_deref();
    let g = s.unreduced(&s.grad(0)?, dims, s.bool("keepdim")?)?.div(s.folded(dims)?)?;
    s.only(g.expand(s.need("self")?.sizes()))
}

fn max(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.only(to_extremes(s.need("self")?, &s.grad(0)?, &s.result(0), None))
}

fn amax(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (dims, kept) = (s.ints("dim"), s.bool("keepdim")?);
    let dims = dims.as_deref();
    let (g, r) = (s.unreduced(&s.grad(0)?, dims, kept)?, s.unreduced(&s.result(0), dims, kept)?);
    s.only(to_extremes(s.need("self")?, &g, &r, dims))
}

fn max_dim(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (dim, kept) = (s.int("dim")?, s.bool("keepdim")?);
    let dims = Some(&[dim][..]);
    let (g, index) = (s.unreduced(&s.grad(0)?, dims, kept)?, s.unreduced(&s.result(1), dims, kept)?);
    s.only(scattered(s.need("self")?, dim, &index, &g))
}

fn var_correction(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (dims, kept) = (s.ints("dim"), s.bool("keepdim")?);
    let dims = dims.as_deref();
    let x = s.need("self")?;
    let correction = if s.number("correction").is_some() { s.float("correction")? } else { 1.0 };
    let n = s.folded(dims)? as f64 - correction;
    let mean = x.mean_dim_with(dims, MeanDimOptions { keepdim: true, dtype: None })?;
    let mut g = s.unreduced(&s.grad(0)?, dims, kept)?;
    if s.code() == O::StdCorrection {
        let spread = s.unreduced(&s.result(0), dims, kept)?;
        g = g.div(&spread.mul(2.0)?)?.masked_fill(spread.eq(0.0)?, 0i64)?;
    }
    s.only(x.sub(mean)?.mul(2.0 / n)?.mul(g))
}

fn logsumexp(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (dims, kept) = (s.ints("dim"), s.bool("keepdim")?);
    let dims = dims.as_deref();
    let (g, r) = (s.unreduced(&s.grad(0)?, dims, kept)?, s.unreduced(&s.result(0), dims, kept)?);
    s.only(s.need("self")?.sub(r)?.exp()?.mul(g))
}

/// Where a power has no derivative, at zeros, it gets none, as in libtorch.
fn norm_scalar(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, r, g, p) = (s.need("self")?, s.result(0), s.grad(0)?, s.float("p")?);
    // The norm's share of the gradient, none where it is zero.
    let share = |power: f64| g.div(&r.pow(power)?)?.masked_fill(r.eq(0.0)?, 0i64);
    s.only(match p {
        0.0 => x.zeros_as(),
        1.0 => x.sgn()?.mul(&g),
        2.0 => x.mul(share(1.0)?),
        p if p.is_infinite() => x.sgn()?.mul(to_extremes(&x.abs()?, &g, &r, None)?),
        p if p < 1.0 => {
            let each = x.abs()?.pow(p - 1.0)?.masked_fill(x.eq(0.0)?, 0i64)?;
            x.sgn()?.mul(each)?.mul(r.pow(1.0 - p)?)?.mul(&g)
        }
        p if p < 2.0 => x.sgn()?.mul(x.abs()?.pow(p - 1.0)?)?.mul(share(p - 1.0)?),
        p => x.mul(x.abs()?.pow(p - 2.0)?)?.mul(share(p - 1.0)?),
    })
}

fn cumsum(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dim = s.int("dim")?;
    s.only(s.grad(0)?.flip(&[dim])?.cumsum(dim)?.flip(&[dim]))
}

/// Where the extremes of a reduction are: its gradient spread evenly over equal ones.
fn to_extremes(
    x: &LazyTensor,
    g: &LazyTensor,
    extreme: &LazyTensor,
    dims: Option<&[i64]>,
) -> Result<LazyTensor, Error> {
    let mask = x.eq(extreme)?.to_dtype(x.dtype())?;
    let count = match dims.filter(|d| !d.is_empty()) {
        Some(d) => mask.sum_dim_with(Some(d), SumDimOptions { keepdim: true, dtype: None })?,
        None => mask.sum()?,
    };
    g.mul(&mask)?.div(count)
}
