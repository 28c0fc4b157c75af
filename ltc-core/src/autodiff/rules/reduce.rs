//! Gradients of reductions.

use ltc_ir::OpCode as O;

use super::{Rule, none, scattered};
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::{MeanDimOptions, SumDimOptions},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Sum, |s| s.only(s.grad(0)?.expand(s.need(0)?.sizes()))),
    (O::SumDimIntList, sum_dim_int_list),
    (O::Mean, |s| s.only(s.grad(0)?.div(s.folded(None)?)?.expand(s.need(0)?.sizes()))),
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
    (O::Cumsum, |s| s.only(s.grad(0)?.flip(&[s.int(1)])?.cumsum(s.int(1))?.flip(&[s.int(1)]))),
];

fn sum_dim_int_list(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    s.only(s.unreduced(&s.grad(0)?, dims, s.bool(2))?.expand(s.need(0)?.sizes()))
}

fn mean_dim(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    let g = s.unreduced(&s.grad(0)?, dims, s.bool(2))?.div(s.folded(dims)?)?;
    s.only(g.expand(s.need(0)?.sizes()))
}

fn max(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.only(to_extremes(s.need(0)?, &s.grad(0)?, &s.result(0), None))
}

fn amax(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    let (g, r) = (s.unreduced(&s.grad(0)?, dims, s.bool(2))?, s.unreduced(&s.result(0), dims, s.bool(2))?);
    s.only(to_extremes(s.need(0)?, &g, &r, dims))
}

fn max_dim(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    let (g, index) = (s.unreduced(&s.grad(0)?, dims, s.bool(2))?, s.unreduced(&s.result(1), dims, s.bool(2))?);
    s.only(scattered(s.need(0)?, s.int(1), &index, &g))
}

fn var_correction(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    let x = s.need(0)?;
    let correction = s.number(2).map_or(1.0, |_| s.float(2));
    let n = s.folded(dims)? as f64 - correction;
    let mean = x.mean_dim_with(dims, MeanDimOptions { keepdim: true, dtype: None })?;
    let mut g = s.unreduced(&s.grad(0)?, dims, s.bool(3))?;
    if s.code() == O::StdCorrection {
        let spread = s.unreduced(&s.result(0), dims, s.bool(3))?;
        g = g.div(&spread.mul(2.0)?)?.masked_fill(spread.eq(0.0)?, 0i64)?;
    }
    s.only(x.sub(mean)?.mul(2.0 / n)?.mul(g))
}

fn logsumexp(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dims = s.ints(1);
    let dims = dims.as_deref();
    let (g, r) = (s.unreduced(&s.grad(0)?, dims, s.bool(2))?, s.unreduced(&s.result(0), dims, s.bool(2))?);
    s.only(s.need(0)?.sub(r)?.exp()?.mul(g))
}

fn norm_scalar(s: &Saved<'_>) -> Result<Gradients, Error> {
    if s.float(1) != 2.0 {
        return none(s);
    }
    let (x, r) = (s.need(0)?, s.result(0));
    s.only(x.mul(s.grad(0)?.div(&r)?)?.masked_fill(r.eq(0.0)?, 0i64))
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
