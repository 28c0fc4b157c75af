//! Gradients of operators that move elements.

use ltc_ir::OpCode as O;

use super::{Rule, scattered};
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::{IndexPutOptions, TrilOptions, TriuOptions},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Cat, cat),
    (O::Stack, stack),
    (O::Gather, |s| s.only(scattered(s.need("self")?, s.int("dim")?, s.need("index")?, &s.grad(0)?))),
    (O::ScatterAdd, scatter_add),
    (O::ScatterSrc, scatter_src),
    (O::IndexSelect, index_select),
    (O::IndexTensor, index_tensor),
    (O::Embedding, embedding),
    (O::Flip, |s| s.only(s.grad(0)?.flip(&s.ints("dims").unwrap_or_default()))),
    (O::Tril, |s| s.only(s.grad(0)?.tril_with(TrilOptions { diagonal: s.int("diagonal")? }))),
    (O::Triu, |s| s.only(s.grad(0)?.triu_with(TriuOptions { diagonal: s.int("diagonal")? }))),
    (O::Repeat, repeat),
    (O::Sort, sort),
    (O::Topk, topk),
    (O::Clone, |s| s.only(s.grad(0))),
    (O::UnderscoreToCopy, |s| s.only(s.grad(0)?.to_dtype(s.need("self")?.dtype()))),
];

fn cat(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (g, dim) = (s.grad(0)?, s.int("dim")?);
    let mut start = 0;
    let part = |t: &LazyTensor| {
        let length = if t.sizes() == [0] { 0 } else { t.size(dim)? };
        start += length;
        g.narrow(dim, start - length, length).map(Some)
    };
    s.tensors("tensors")?.into_iter().flatten().map(part).collect()
}

fn stack(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (g, dim) = (s.grad(0)?, s.int("dim")?);
    (0..s.tensors("tensors")?.len()).map(|i| g.select(dim, i as i64).map(Some)).collect()
}

fn scatter_add(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (g, dim, index) = (s.grad(0)?, s.int("dim")?, s.need("index")?);
    s.by_argument([("self", &|| Ok(g.clone())), ("src", &|| g.gather(dim, index))])
}

fn scatter_src(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (g, dim, index) = (s.grad(0)?, s.int("dim")?, s.need("index")?);
    let zeros = || LazyTensor::zeros(index.device(), index.sizes(), g.dtype());
    s.by_argument([("self", &|| g.scatter(dim, index, &zeros()?)), ("src", &|| g.gather(dim, index))])
}

fn index_select(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, g) = (s.need("self")?, s.grad(0)?);
    s.only(LazyTensor::zeros(x.device(), x.sizes(), g.dtype())?.index_add(s.int("dim")?, s.need("index")?, &g))
}

fn index_tensor(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, g) = (s.need("self")?, s.grad(0)?);
    let zeros = LazyTensor::zeros(x.device(), x.sizes(), g.dtype())?;
    s.only(zeros.index_put_with(&s.tensors("indices")?, &g, IndexPutOptions { accumulate: true }))
}

/// `sparse` is not read: gradients are dense here.
fn embedding(s: &Saved<'_>) -> Result<Gradients, Error> {
    let rows = s.need("weight")?.sizes()[0];
    let (padding, by_frequency) = (s.int("padding_idx")?, s.bool("scale_grad_by_freq")?);
    s.only(s.grad(0)?.embedding_dense_backward(s.need("indices")?, rows, padding, by_frequency))
}

fn repeat(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need("self")?;
    let repeats = &s.ints("repeats").unwrap_or_default();
    let lead = repeats.len() - x.dim();
    // Each dimension as (times, size): summed over the times.
    let sizes: Vec<i64> = repeats
        .iter()
        .enumerate()
        .flat_map(|(d, &r)| if d < lead { vec![r] } else { vec![r, x.sizes()[d - lead]] })
        .collect();
    let times: Vec<i64> = (0..lead).chain((0..x.dim()).map(|d| lead + 2 * d)).map(|d| d as i64).collect();
    let g = s.grad(0)?.reshape(&sizes)?;
    s.only(if times.is_empty() { Ok(g) } else { g.sum_dim(Some(&times)) })
}

/// Which way it sorts is in the indices.
fn sort(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["descending"]);
    s.only(scattered(s.need("self")?, s.int("dim")?, &s.result(1), &s.grad(0)?))
}

/// Which elements, and their order, are in the indices.
fn topk(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["k", "largest", "sorted"]);
    s.only(scattered(s.need("self")?, s.int("dim")?, &s.result(1), &s.grad(0)?))
}
