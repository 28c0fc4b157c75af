//! Reductions that are no expressions of the table (places, products, powers), and scans.

use ltc_ir::{DType, OpCode as O};
use ndarray::{ArrayD, Axis};

use super::{
    Answer, Compute, Kernel,
    value::{Data, shape},
};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Prod => |k| fold(k, None, |v| v.iter().product()),
        O::ProdDimInt => |k| fold(k, Some(1), |v| v.iter().product()),
        O::Any => |k| fold(k, None, any),
        O::AnyDim | O::AnyDims => |k| fold(k, Some(1), any),
        O::All => |k| fold(k, None, all),
        O::AllDim | O::AllDims => |k| fold(k, Some(1), all),
        O::NormScalar => norm,
        O::VarCorrection => |k| spread(k, false),
        O::StdCorrection => |k| spread(k, true),
        O::Argmax => |k| fold(k, Some(1), |v| place_of(v, largest(v)) as f64),
        O::Argmin => |k| fold(k, Some(1), |v| place_of(v, smallest(v)) as f64),
        O::MaxDim => |k| with_index(k, largest),
        O::MinDim => |k| with_index(k, smallest),
        O::Cumsum => cumsum,
        _ => return None,
    })
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(f64::NEG_INFINITY, |a, &b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
}

fn smallest(v: &[f64]) -> f64 {
    v.iter().fold(f64::INFINITY, |a, &b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) })
}

fn any(v: &[f64]) -> f64 {
    f64::from(u8::from(v.iter().any(|&x| x != 0.0)))
}

fn all(v: &[f64]) -> f64 {
    f64::from(u8::from(v.iter().all(|&x| x != 0.0)))
}

/// The first place of a value; NaN is found.
fn place_of(v: &[f64], x: f64) -> usize {
    v.iter().position(|&y| y == x || (y.is_nan() && x.is_nan())).unwrap_or(0)
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
fn lanes(x: &ArrayD<f64>, mask: &[bool]) -> Vec<Vec<f64>> {
    let order: Vec<usize> = (0..x.ndim()).filter(|&d| !mask[d]).chain((0..x.ndim()).filter(|&d| mask[d])).collect();
    let inner: usize = (0..x.ndim()).filter(|&d| mask[d]).map(|d| x.shape()[d]).product();
    let outer: usize = (0..x.ndim()).filter(|&d| !mask[d]).map(|d| x.shape()[d]).product();
    let values: Vec<f64> = x.clone().permuted_axes(order).iter().copied().collect();
    (0..outer).map(|i| values[i * inner..(i + 1) * inner].to_vec()).collect()
}

fn fold(k: &Kernel<'_>, dims: Option<usize>, f: impl Fn(&[f64]) -> f64) -> Answer {
    let x = k.floats(0)?;
    // Sums in another dtype read the operand in it.
    let sums = matches!(k.call.short_op(), "sum" | "prod");
    let x = if sums && k.results[0].dtype() == DType::I64 { x.mapv(f64::trunc) } else { x };
    let mask = folded(k, dims, x.ndim())?;
    result(k, 0, lanes(&x, &mask).iter().map(|v| f(v)).collect()).map(|d| vec![d])
}

fn result(k: &Kernel<'_>, i: usize, values: Vec<f64>) -> Result<Data, String> {
    ArrayD::from_shape_vec(shape(k.results[i].sizes()), values).map(Data::Float).map_err(|e| e.to_string())
}

fn norm(k: &Kernel<'_>) -> Answer {
    let p = k.float(1, 2.0);
    fold(k, None, |v| match p {
        0.0 => v.iter().filter(|x| **x != 0.0).count() as f64,
        p if p.is_infinite() => largest(&v.iter().map(|x| x.abs()).collect::<Vec<_>>()),
        p => v.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p),
    })
}

fn spread(k: &Kernel<'_>, root: bool) -> Answer {
    let correction = k.float(2, 1.0);
    fold(k, Some(1), |v| {
        let m = mean(v);
        let variance = v.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (v.len() as f64 - correction).max(0.0);
        if root { variance.sqrt() } else { variance }
    })
}

fn with_index(k: &Kernel<'_>, pick: fn(&[f64]) -> f64) -> Answer {
    let x = k.floats(0)?;
    let mask = folded(k, Some(1), x.ndim())?;
    let lanes = lanes(&x, &mask);
    let values: Vec<f64> = lanes.iter().map(|v| pick(v)).collect();
    let indices = lanes.iter().zip(&values).map(|(v, &x)| place_of(v, x) as f64).collect();
    Ok(vec![result(k, 0, values)?, result(k, 1, indices)?])
}

fn cumsum(k: &Kernel<'_>) -> Answer {
    let mut x = k.floats(0)?;
    if x.ndim() > 0 {
        let dim = k.dim(1, x.ndim())?;
        x.accumulate_axis_inplace(Axis(dim), |before, now| *now += before);
    }
    Ok(vec![Data::Float(x)])
}
