//! Gradients of operators that move elements.

use ltc_ir::{Arg, OpCode as O};

use super::{Rule, none, scattered};
use crate::{
    Error, LazyTensor,
    autodiff::saved::{Gradients, Saved},
    tensor::{IndexPutOptions, TrilOptions, TriuOptions},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::Cat, cat),
    (O::Stack, stack),
    (O::Gather, |s| s.only(scattered(s.need(0)?, s.int(1), s.need(2)?, &s.grad(0)?))),
    (O::ScatterAdd, |s| s.by_argument([(0, &|| s.grad(0)), (3, &|| s.grad(0)?.gather(s.int(1), s.need(2)?))])),
    (O::ScatterSrc, |s| {
        s.by_argument([
            (0, &|| {
                let zeros = LazyTensor::zeros(s.need(2)?.device(), s.need(2)?.sizes(), s.grad(0)?.dtype())?;
                s.grad(0)?.scatter(s.int(1), s.need(2)?, &zeros)
            }),
            (3, &|| s.grad(0)?.gather(s.int(1), s.need(2)?)),
        ])
    }),
    (O::IndexSelect, index_select),
    (O::IndexTensor, index_tensor),
    (O::Embedding, embedding),
    (O::Flip, flip),
    (O::Tril, |s| s.only(s.grad(0)?.tril_with(TrilOptions { diagonal: s.int(1) }))),
    (O::Triu, |s| s.only(s.grad(0)?.triu_with(TriuOptions { diagonal: s.int(1) }))),
    (O::Repeat, repeat),
    (O::Sort, sort),
    (O::Topk, sort),
    (O::Clone, copied),
    (O::UnderscoreToCopy, copied),
];

fn cat(s: &Saved<'_>) -> Result<Gradients, Error> {
    let list = s.inputs();
    let g = s.grad(0)?;
    let mut start = 0;
    let part = |t: &LazyTensor| {
        let length = if t.sizes() == [0] { 0 } else { t.size(s.int(1))? };
        start += length;
        g.narrow(s.int(1), start - length, length).map(Some)
    };
    list.iter().map(part).collect()
}

fn stack(s: &Saved<'_>) -> Result<Gradients, Error> {
    let g = s.grad(0)?;
    (0..s.inputs().len()).map(|i| g.select(s.int(1), i as i64).map(Some)).collect()
}

fn index_select(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need(0)?;
    s.only(LazyTensor::zeros(x.device(), x.sizes(), s.grad(0)?.dtype())?.index_add(s.int(1), s.need(2)?, &s.grad(0)?))
}

fn index_tensor(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need(0)?;
    let Arg::Tensors { len, mask, .. } = s.args()[1] else { return none(s) };
    let mut next = 1;
    let list: Vec<Option<&LazyTensor>> = (0..len)
        .map(|j| {
            (mask[j / 64] >> (j % 64) & 1 == 1).then(|| {
                next += 1;
                &s.inputs()[next - 1]
            })
        })
        .collect();
    let zeros = LazyTensor::zeros(x.device(), x.sizes(), s.grad(0)?.dtype())?;
    s.only(zeros.index_put_with(&list, &s.grad(0)?, IndexPutOptions { accumulate: true }))
}

fn embedding(s: &Saved<'_>) -> Result<Gradients, Error> {
    let rows = s.need(0)?.sizes()[0];
    s.only(s.grad(0)?.embedding_dense_backward(s.need(1)?, rows, s.int(2), false))
}

fn flip(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.only(s.grad(0)?.flip(&s.ints(1).unwrap_or_default()))
}

fn repeat(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need(0)?;
    let repeats = &s.ints(1).unwrap_or_default();
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

fn sort(s: &Saved<'_>) -> Result<Gradients, Error> {
    let dim = if s.code() == O::Sort { s.int(1) } else { s.int(2) };
    s.only(scattered(s.need(0)?, dim, &s.result(1), &s.grad(0)?))
}

fn copied(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.only(s.grad(0)?.to_dtype(s.need(0)?.dtype()))
}
