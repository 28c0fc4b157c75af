//! Normalisations, losses, and their gradients, as far as they are no expressions of the table.

use ltc_ir::OpCode as O;
use ndarray::{ArrayD, Axis, Zip};

use super::{
    Answer, Compute, Kernel,
    value::{Data, shape},
};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::NativeBatchNorm => batch_norm_of_running,
        O::NativeBatchNormBackward => batch_norm_backward,
        O::NativeLayerNormBackward => layer_norm_backward,
        O::NativeGroupNorm => group_norm,
        O::NativeGroupNormBackward => group_norm_backward,
        O::NllLossForward => nll_loss,
        O::NllLossBackward => nll_loss_backward,
        O::MseLoss => mse_of_each,
        O::LogSigmoidForward => log_sigmoid,
        _ => return None,
    })
}

/// A parameter along the channels, or ones or zeros.
fn parameter(k: &Kernel<'_>, i: usize, n: usize, default: f64) -> Vec<f64> {
    k.operand(i).map_or_else(|| vec![default; n], |v| v.data.floats().iter().copied().collect())
}

fn vector(values: Vec<f64>) -> Data {
    Data::Float(ndarray::Array1::from_vec(values).into_dyn())
}

/// By running statistics; in training the operator table says what it computes.
fn batch_norm_of_running(k: &Kernel<'_>) -> Answer {
    let mut x = k.floats(0)?;
    let (channels, eps) = (x.shape()[1], k.float(7, 1e-5));
    let (mean, variance) = (parameter(k, 3, channels, 0.0), parameter(k, 4, channels, 1.0));
    let (weight, bias) = (parameter(k, 1, channels, 1.0), parameter(k, 2, channels, 0.0));
    for (c, mut page) in x.axis_iter_mut(Axis(1)).enumerate() {
        let inverse = 1.0 / (variance[c] + eps).sqrt();
        page.mapv_inplace(|v| (v - mean[c]) * inverse * weight[c] + bias[c]);
    }
    Ok(vec![Data::Float(x), vector(vec![]), vector(vec![])])
}

/// The wanted ones of a gradient's parts.
fn wanted(k: &Kernel<'_>, mask_at: usize, parts: Vec<Data>) -> Vec<Data> {
    let mask = k.call.bools(mask_at);
    parts.into_iter().zip(mask).filter(|(_, m)| *m).map(|(p, _)| p).collect()
}

fn batch_norm_backward(k: &Kernel<'_>) -> Answer {
    let (g, x) = (k.floats(0)?, k.floats(1)?);
    let (channels, train, eps) = (x.shape()[1], k.call.bool(7), k.float(8, 1e-5));
    let (mean, inverse) = if train {
        (parameter(k, 5, channels, 0.0), parameter(k, 6, channels, 1.0))
    } else {
        let variance = parameter(k, 4, channels, 1.0);
        (parameter(k, 3, channels, 0.0), variance.iter().map(|v| 1.0 / (v + eps).sqrt()).collect())
    };
    let weight = parameter(k, 2, channels, 1.0);
    let (mut gx, mut gw, mut gb) = (g.clone(), vec![0.0; channels], vec![0.0; channels]);
    for c in 0..channels {
        let (gc, xc) = (g.index_axis(Axis(1), c), x.index_axis(Axis(1), c));
        let normal = xc.mapv(|v| (v - mean[c]) * inverse[c]);
        gb[c] = gc.sum();
        gw[c] = (&gc * &normal).sum();
        let n = gc.len() as f64;
        let scale = weight[c] * inverse[c];
        let page = if train { (&gc - gb[c] / n - &normal * (gw[c] / n)) * scale } else { gc.mapv(|v| v * scale) };
        gx.index_axis_mut(Axis(1), c).assign(&page);
    }
    Ok(wanted(k, 9, vec![Data::Float(gx), vector(gw), vector(gb)]))
}

/// Rows of the dimensions that are normalised together.
fn rows(x: &ArrayD<f64>, width: usize) -> Vec<Vec<f64>> {
    x.iter().copied().collect::<Vec<_>>().chunks(width.max(1)).map(<[f64]>::to_vec).collect()
}

fn array(sizes: &[i64], values: Vec<f64>) -> Result<Data, String> {
    ArrayD::from_shape_vec(shape(sizes), values).map(Data::Float).map_err(|e| e.to_string())
}

fn layer_norm_backward(k: &Kernel<'_>) -> Answer {
    let (g, x) = (k.floats(0)?, k.floats(1)?);
    let shape = k.call.ints(2).unwrap_or_default();
    let width = shape.iter().product::<i64>() as usize;
    let weight = parameter(k, 5, width, 1.0);
    let (means, inverses) = (k.floats(3)?, k.floats(4)?);
    let (mut gx, mut gw, mut gb) = (vec![], vec![0.0; width], vec![0.0; width]);
    let statistics = means.iter().zip(inverses.iter());
    for ((gr, xr), (mean, inverse)) in rows(&g, width).iter().zip(rows(&x, width)).zip(statistics) {
        let normal: Vec<f64> = xr.iter().map(|v| (v - mean) * inverse).collect();
        let scaled: Vec<f64> = gr.iter().zip(&weight).map(|(g, w)| g * w).collect();
        let first = scaled.iter().sum::<f64>() / width as f64;
        let second = scaled.iter().zip(&normal).map(|(a, b)| a * b).sum::<f64>() / width as f64;
        gx.extend(scaled.iter().zip(&normal).map(|(s, n)| (s - first - n * second) * inverse));
        for i in 0..width {
            gw[i] += gr[i] * normal[i];
            gb[i] += gr[i];
        }
    }
    let parts = vec![array(k.need(1)?.layout.sizes(), gx)?, array(&shape, gw)?, array(&shape, gb)?];
    Ok(wanted(k, 7, parts))
}

/// Images, channels, elements of a channel, groups: the arguments of group norms, which begin at `from`.
fn groups(k: &Kernel<'_>, from: usize) -> [usize; 4] {
    [0, 1, 2, 3].map(|i| k.call.int(from + i, 1) as usize)
}

fn group_norm(k: &Kernel<'_>) -> Answer {
    let (x, [n, channels, inner, groups], eps) = (k.floats(0)?, groups(k, 3), k.float(7, 1e-5));
    let (weight, bias) = (parameter(k, 1, channels, 1.0), parameter(k, 2, channels, 0.0));
    let each = channels / groups;
    let (mut y, mut means, mut inverses) = (vec![], vec![], vec![]);
    for (row, values) in rows(&x, each * inner).iter().enumerate() {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
        let inverse = 1.0 / (variance + eps).sqrt();
        let first = row % groups * each;
        let of = |(i, v): (usize, &f64)| (v - mean) * inverse * weight[first + i / inner] + bias[first + i / inner];
        y.extend(values.iter().enumerate().map(of));
        means.push(mean);
        inverses.push(inverse);
    }
    let statistics = [n as i64, groups as i64];
    Ok(vec![array(k.results[0].sizes(), y)?, array(&statistics, means)?, array(&statistics, inverses)?])
}

fn group_norm_backward(k: &Kernel<'_>) -> Answer {
    let (g, x, [_, channels, inner, groups]) = (k.floats(0)?, k.floats(1)?, groups(k, 5));
    let (means, inverses, weight) = (k.floats(2)?, k.floats(3)?, parameter(k, 4, channels, 1.0));
    let (each, count) = (channels / groups, (channels / groups * inner) as f64);
    let (mut gx, mut gw, mut gb) = (vec![], vec![0.0; channels], vec![0.0; channels]);
    let statistics = means.iter().zip(inverses.iter());
    let lanes = rows(&g, each * inner).into_iter().zip(rows(&x, each * inner)).zip(statistics);
    for (row, ((gr, xr), (mean, inverse))) in lanes.enumerate() {
        let channel = |i: usize| row % groups * each + i / inner;
        let normal: Vec<f64> = xr.iter().map(|v| (v - mean) * inverse).collect();
        let scaled: Vec<f64> = gr.iter().enumerate().map(|(i, g)| g * weight[channel(i)]).collect();
        let first = scaled.iter().sum::<f64>() / count;
        let second = scaled.iter().zip(&normal).map(|(a, b)| a * b).sum::<f64>() / count;
        gx.extend(scaled.iter().zip(&normal).map(|(s, n)| (s - first - n * second) * inverse));
        for (i, g) in gr.iter().enumerate() {
            gw[channel(i)] += g * normal[i];
            gb[channel(i)] += g;
        }
    }
    Ok(wanted(k, 9, vec![array(k.need(1)?.layout.sizes(), gx)?, vector(gw), vector(gb)]))
}

/// Each row's class, if it counts, with its weight.
fn targets(k: &Kernel<'_>, at: usize, weight_at: usize, ignore_at: usize) -> Result<Vec<Option<(usize, f64)>>, String> {
    let target = k.need(at)?.data.ints();
    let classes = k.need(at - 1)?.layout.sizes().last().copied().unwrap_or(1);
    let weight = parameter(k, weight_at, classes as usize, 1.0);
    let ignored = k.call.int(ignore_at, -100);
    let each = |&t: &i64| match usize::try_from(t) {
        _ if t == ignored => Ok(None),
        Ok(i) if t < classes => Ok(Some((i, weight[i]))),
        _ => Err(format!("Target {t} is out of bounds.")),
    };
    target.iter().map(each).collect()
}

fn nll_loss(k: &Kernel<'_>) -> Answer {
    let x = k.floats(0)?;
    let rows = rows(&x, x.shape().last().copied().unwrap_or(1));
    let targets = targets(k, 1, 2, 4)?;
    let losses: Vec<f64> = rows.iter().zip(&targets).map(|(r, t)| t.map_or(0.0, |(i, w)| -r[i] * w)).collect();
    let total: f64 = targets.iter().flatten().map(|(_, w)| w).sum();
    let scalar = |v: f64| Data::Float(ndarray::arr0(v).into_dyn());
    let loss = match k.call.int(3, 1) {
        0 => array(k.results[0].sizes(), losses)?,
        1 => scalar(losses.iter().sum::<f64>() / total),
        _ => scalar(losses.iter().sum()),
    };
    Ok(vec![loss, scalar(if k.call.int(3, 1) == 0 { 0.0 } else { total })])
}

fn nll_loss_backward(k: &Kernel<'_>) -> Answer {
    let (g, x) = (k.floats(0)?, k.need(1)?);
    let sizes = x.layout.sizes();
    let classes = sizes.last().copied().unwrap_or(1) as usize;
    let targets = targets(k, 2, 3, 5)?;
    let total = k.floats(6)?.iter().next().copied().unwrap_or(1.0);
    let mut out = vec![0.0; targets.len() * classes];
    for (row, t) in targets.iter().enumerate() {
        let Some((class, weight)) = t else { continue };
        let g = if g.len() == 1 { g.iter().next() } else { g.iter().nth(row) };
        let scale = if k.call.int(4, 1) == 1 { 1.0 / total } else { 1.0 };
        out[row * classes + class] = -weight * scale * g.copied().unwrap_or(0.0);
    }
    Ok(vec![array(sizes, out)?])
}

/// With `exp(-|x|)`, which the gradient reads.
fn log_sigmoid(k: &Kernel<'_>) -> Answer {
    let x = k.floats(0)?;
    let buffer = x.mapv(|v| (-v.abs()).exp());
    let value = Zip::from(&x).and(&buffer).map_collect(|v, z| v.min(0.0) - z.ln_1p());
    Ok(vec![Data::Float(value), Data::Float(buffer)])
}

/// Of each element; what it reduces is in the operator table.
fn mse_of_each(k: &Kernel<'_>) -> Answer {
    let (x, y) = (k.floats(0)?, k.floats(1)?);
    if x.shape() != y.shape() {
        return Err("the reference backend takes losses of equal sizes".into());
    }
    Ok(vec![Data::Float(Zip::from(&x).and(&y).map_collect(|a, b| (a - b) * (a - b)))])
}
