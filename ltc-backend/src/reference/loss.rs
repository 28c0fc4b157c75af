//! Losses of elements and their gradients, as far as they are no expressions of the table.

use ltc_ir::OpCode as O;
use ndarray::ArrayD;

use super::{Answer, Compute, Kernel, pointwise::together, value::Data};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::SmoothL1Loss => |k| of_pairs(k, k.float(3, 1.0), smooth_l1),
        O::SmoothL1LossBackward => |k| slopes(k, k.float(4, 1.0), |d, beta| (d / beta).clamp(-1.0, 1.0)),
        O::HuberLoss => |k| of_pairs(k, k.float(3, 1.0), huber),
        O::HuberLossBackward => |k| slopes(k, k.float(4, 1.0), |d, delta| d.clamp(-delta, delta)),
        O::BinaryCrossEntropy => binary_cross_entropy,
        O::BinaryCrossEntropyBackward => binary_cross_entropy_backward,
        _ => return None,
    })
}

/// None, or the mean or the sum.
fn reduced(each: ArrayD<f64>, reduction: i64) -> Answer {
    let one = |x: f64| ndarray::arr0(x).into_dyn();
    Ok(vec![Data::Float(match reduction {
        0 => each,
        1 => one(each.sum() / each.len() as f64),
        _ => one(each.sum()),
    })])
}

fn smooth_l1(z: f64, beta: f64) -> f64 {
    if z < beta { 0.5 * z * z / beta } else { z - 0.5 * beta }
}

fn huber(z: f64, delta: f64) -> f64 {
    if z <= delta { 0.5 * z * z } else { delta * (z - 0.5 * delta) }
}

/// A function of two operands' distance.
fn of_pairs(k: &Kernel<'_>, bound: f64, f: fn(f64, f64) -> f64) -> Answer {
    reduced(together(&k.floats(0)?, &k.floats(1)?, |x, y| f((x - y).abs(), bound))?, k.call.int(2, 1))
}

/// Its gradient, of `(grad, self, target, reduction, bound)` and its slope at a difference.
fn slopes(k: &Kernel<'_>, bound: f64, slope: fn(f64, f64) -> f64) -> Answer {
    let x = k.floats(1)?;
    let share = if k.call.int(3, 1) == 1 { 1.0 / x.len() as f64 } else { 1.0 };
    let each = together(&x, &k.floats(2)?, |x, y| slope(x - y, bound) * share)?;
    Ok(vec![Data::Float(together(&each, &k.floats(0)?, |a, g| a * g)?)])
}

/// The weight of each element.
fn weighted(k: &Kernel<'_>, each: ArrayD<f64>, weight_at: usize) -> Result<ArrayD<f64>, String> {
    match k.operand(weight_at) {
        Some(weight) => together(&each, &weight.data.floats(), |a, w| a * w),
        None => Ok(each),
    }
}

fn binary_cross_entropy(k: &Kernel<'_>) -> Answer {
    let each =
        together(&k.floats(0)?, &k.floats(1)?, |x, t| (t - 1.0) * (-x).ln_1p().max(-100.0) - t * x.ln().max(-100.0))?;
    reduced(weighted(k, each, 2)?, k.call.int(3, 1))
}

fn binary_cross_entropy_backward(k: &Kernel<'_>) -> Answer {
    let x = k.floats(1)?;
    let share = if k.call.int(4, 1) == 1 { 1.0 / x.len() as f64 } else { 1.0 };
    let each = together(&x, &k.floats(2)?, |x, t| (x - t) / ((1.0 - x) * x).max(1e-12) * share)?;
    Ok(vec![Data::Float(together(&weighted(k, each, 3)?, &k.floats(0)?, |a, g| a * g)?)])
}
