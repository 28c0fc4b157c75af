//! Reductions that are no expressions of the table (places, products, powers), and scans.

use std::num::Wrapping;

use ltc_ir::OpCode as O;
use ndarray::{ArrayD, Axis};

use super::{
    Answer, Compute, Kernel, by_result,
    value::{Data, Element, shape},
};

type Integer = Wrapping<i64>;

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Prod => by_result!(product, None),
        O::ProdDimInt => by_result!(product, Some(1)),
        O::Any => |k| fold(k, None, any),
        O::AnyDim | O::AnyDims => |k| fold(k, Some(1), any),
        O::All => |k| fold(k, None, all),
        O::AllDim | O::AllDims => |k| fold(k, Some(1), all),
        O::NormScalar => norm,
        O::VarCorrection => |k| spread(k, false),
        O::StdCorrection => |k| spread(k, true),
        O::Argmax => |k| place(k, |a, b| a > b, |a, b| a > b),
        O::Argmin => |k| place(k, |a, b| a < b, |a, b| a < b),
        O::MaxDim => by_result!(with_index, |a, b| a > b),
        O::MinDim => by_result!(with_index, |a, b| a < b),
        O::MedianDim => by_result!(with_place, median),
        O::Mode => by_result!(with_place, mode),
        O::Cumsum => by_result!(cumsum),
        _ => return None,
    })
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn any(v: &[f64]) -> f64 {
    f64::from(u8::from(v.iter().any(|&x| x != 0.0)))
}

fn all(v: &[f64]) -> f64 {
    f64::from(u8::from(v.iter().all(|&x| x != 0.0)))
}

/// The first place of the element that is better than all others; NaN is best.
fn best<T: Element>(v: &[T], better: fn(T, T) -> bool) -> usize {
    (1..v.len()).fold(0, |best, i| {
        let (a, b) = (v[i], v[best]);
        if !b.is_nan() && (a.is_nan() || better(a, b)) { i } else { best }
    })
}

/// Which dimensions fold: those of the list argument, or all.
fn folded(k: &Kernel<'_>, dims: Option<usize>, rank: usize) -> Result<Vec<bool>, String> {
    let list = dims.and_then(|i| k.call.ints(i)).filter(|d| !d.is_empty());
    let Some(list) = list else { return Ok(vec![true; rank]) };
    let mut mask = vec![false; rank];
    for d in list {
        let d = ltc_ir::rules::wrap_dim(d, rank).map_err(|e| e.to_string())?;
        if let Some(m) = mask.get_mut(d) {
            *m = true;
        }
    }
    Ok(mask)
}

/// The elements that each element of the result folds, in order.
fn lanes<T: Element>(x: &ArrayD<T>, mask: &[bool]) -> Vec<Vec<T>> {
    let order: Vec<usize> = (0..x.ndim()).filter(|&d| !mask[d]).chain((0..x.ndim()).filter(|&d| mask[d])).collect();
    let inner: usize = (0..x.ndim()).filter(|&d| mask[d]).map(|d| x.shape()[d]).product();
    let outer: usize = (0..x.ndim()).filter(|&d| !mask[d]).map(|d| x.shape()[d]).product();
    let values: Vec<T> = x.clone().permuted_axes(order).iter().copied().collect();
    (0..outer).map(|i| values[i * inner..(i + 1) * inner].to_vec()).collect()
}

fn fold<T: Element>(k: &Kernel<'_>, dims: Option<usize>, f: impl Fn(&[T]) -> T) -> Answer {
    let x = k.array::<T>(0)?;
    let mask = folded(k, dims, x.ndim())?;
    result(k, 0, lanes(&x, &mask).iter().map(|v| f(v)).collect()).map(|d| vec![d])
}

fn result<T: Element>(k: &Kernel<'_>, i: usize, values: Vec<T>) -> Result<Data, String> {
    ArrayD::from_shape_vec(shape(k.results[i].sizes()), values).map(T::data).map_err(|e| e.to_string())
}

/// A product in another dtype reads the operand in it, which is the result's.
fn product<T: Element>(k: &Kernel<'_>, dims: Option<usize>) -> Answer {
    fold(k, dims, |v: &[T]| v.iter().fold(T::one(), |a, &b| a * b))
}

fn norm(k: &Kernel<'_>) -> Answer {
    let p = k.float(1, 2.0);
    fold(k, None, |v: &[f64]| match p {
        0.0 => v.iter().filter(|x| **x != 0.0).count() as f64,
        p if p.is_infinite() => {
            let (start, pick) = if p > 0.0 { (0.0, f64::max as fn(f64, f64) -> f64) } else { (p.abs(), f64::min as _) };
            v.iter().fold(start, |a, x| if a.is_nan() || x.is_nan() { f64::NAN } else { pick(a, x.abs()) })
        }
        p => v.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p),
    })
}

fn spread(k: &Kernel<'_>, root: bool) -> Answer {
    let correction = k.float(2, 1.0);
    fold(k, Some(1), |v: &[f64]| {
        let m = mean(v);
        let variance = v.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (v.len() as f64 - correction).max(0.0);
        if root { variance.sqrt() } else { variance }
    })
}

/// Places of the best elements, which are compared as what they are.
fn place(k: &Kernel<'_>, of_floats: fn(f64, f64) -> bool, of_ints: fn(Integer, Integer) -> bool) -> Answer {
    fn places<T: Element>(k: &Kernel<'_>, better: fn(T, T) -> bool) -> Answer {
        let x = k.array::<T>(0)?;
        let mask = folded(k, Some(1), x.ndim())?;
        let places = lanes(&x, &mask).iter().map(|v| Wrapping(best(v, better) as i64)).collect();
        result(k, 0, places).map(|d| vec![d])
    }
    match k.need(0)?.data {
        Data::Float(_) => places(k, of_floats),
        _ => places(k, of_ints),
    }
}

fn with_index<T: Element>(k: &Kernel<'_>, better: fn(T, T) -> bool) -> Answer {
    with_place(k, |v: &[T]| best(v, better))
}

/// The place of the lower median; of a NaN, if there is one.
fn median<T: Element>(v: &[T]) -> usize {
    let mut order: Vec<usize> = (0..v.len()).collect();
    order.sort_by(|&a, &b| v[a].partial_cmp(&v[b]).unwrap_or_else(|| v[a].is_nan().cmp(&v[b].is_nan())));
    let nan = v.iter().position(|x| x.is_nan());
    nan.or(order.get(v.len().saturating_sub(1) / 2).copied()).unwrap_or_default()
}

/// The last place of the most frequent element, of the smallest one among equally frequent ones.
fn mode<T: Element>(v: &[T]) -> usize {
    let times = |i: usize| v.iter().filter(|&&x| x == v[i]).count();
    let better = |i: usize, best: usize| (times(i), v[best]) >= (times(best), v[i]);
    (1..v.len()).fold(0, |best, i| if better(i, best) { i } else { best })
}

/// Elements and their places, one for each lane.
fn with_place<T: Element>(k: &Kernel<'_>, pick: impl Fn(&[T]) -> usize) -> Answer {
    let x = k.array::<T>(0)?;
    let mask = folded(k, Some(1), x.ndim())?;
    let lanes = lanes(&x, &mask);
    let places: Vec<usize> = lanes.iter().map(|v| pick(v)).collect();
    let values = lanes.iter().zip(&places).map(|(v, &i)| v.get(i).copied().unwrap_or_default()).collect();
    let places = places.into_iter().map(|i| Wrapping(i as i64)).collect();
    Ok(vec![result::<T>(k, 0, values)?, result(k, 1, places)?])
}

fn cumsum<T: Element>(k: &Kernel<'_>) -> Answer {
    let mut x = k.array::<T>(0)?;
    if x.ndim() > 0 {
        let dim = k.dim(1, x.ndim())?;
        x.accumulate_axis_inplace(Axis(dim), |&before, now| *now += before);
    }
    Ok(vec![T::data(x)])
}
