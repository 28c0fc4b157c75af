//! Convolutions and pooling over planes, and gates.

use ltc_ir::OpCode as O;
use ndarray::{Array2, Array4, ArrayD, Axis, Ix4, Slice};

use super::{
    Answer, Compute, Kernel,
    value::{Data, shape},
};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Convolution => convolution,
        O::ConvolutionBackward => convolution_backward,
        O::MaxPool2dWithIndices => max_pool,
        O::MaxPool2dWithIndicesBackward => max_pool_backward,
        O::AvgPool2d => avg_pool,
        O::AvgPool2dBackward => avg_pool_backward,
        O::UnderscoreAdaptiveAvgPool2d => adaptive_avg_pool,
        O::UnderscoreAdaptiveAvgPool2dBackward => adaptive_avg_pool_backward,
        O::Glu => glu,
        O::GluBackward => glu_backward,
        _ => return None,
    })
}

fn planes(k: &Kernel<'_>, argument: usize) -> Result<Array4<f64>, String> {
    let x = k.floats(argument)?;
    let rank = x.ndim();
    x.into_dimensionality::<Ix4>().map_err(|_| format!("the reference backend takes planes of rank 4, not {rank}"))
}

/// Step, padding and spread of a window over planes.
struct Window {
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

fn pair(k: &Kernel<'_>, argument: usize, default: [usize; 2]) -> [usize; 2] {
    match k.call.ints(argument).unwrap_or_default()[..] {
        [a] => [a as usize; 2],
        [a, b] => [a as usize, b as usize],
        _ => default,
    }
}

impl Window {
    /// Places of the input that the window covers at one place of the output; `None` in the padding.
    fn place(&self, out: [usize; 2], within: [usize; 2], size: [usize; 2]) -> Option<[usize; 2]> {
        let at = |d: usize| {
            let p = (out[d] * self.stride[d] + within[d] * self.dilation[d]).checked_sub(self.padding[d])?;
            (p < size[d]).then_some(p)
        };
        Some([at(0)?, at(1)?])
    }

    fn within(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let [h, w] = self.kernel;
        (0..h).flat_map(move |i| (0..w).map(move |j| [i, j]))
    }

    /// A plane's windows as columns: one row for each place within, one column for each place of the output.
    fn columns(&self, x: ndarray::ArrayView3<'_, f64>, out: [usize; 2]) -> Array2<f64> {
        let (channels, h, w) = x.dim();
        let each = self.kernel[0] * self.kernel[1];
        let mut columns = Array2::zeros((channels * each, out[0] * out[1]));
        for c in 0..channels {
            for (i, within) in self.within().enumerate() {
                for o in 0..out[0] * out[1] {
                    if let Some([y, z]) = self.place([o / out[1], o % out[1]], within, [h, w]) {
                        columns[[c * each + i, o]] = x[[c, y, z]];
                    }
                }
            }
        }
        columns
    }

    /// Adds columns back to the places they came from.
    fn add_columns(&self, mut x: ndarray::ArrayViewMut3<'_, f64>, columns: &Array2<f64>, out: [usize; 2]) {
        let (channels, h, w) = x.dim();
        let each = self.kernel[0] * self.kernel[1];
        for c in 0..channels {
            for (i, within) in self.within().enumerate() {
                for o in 0..out[0] * out[1] {
                    if let Some([y, z]) = self.place([o / out[1], o % out[1]], within, [h, w]) {
                        x[[c, y, z]] += columns[[c * each + i, o]];
                    }
                }
            }
        }
    }
}

/// Geometry of a convolution whose arguments after the weight begin at `from`.
fn convolution_window(k: &Kernel<'_>, weight: &Array4<f64>, from: usize) -> (Window, usize) {
    let (_, _, h, w) = weight.dim();
    let window = Window {
        kernel: [h, w],
        stride: pair(k, from, [1; 2]),
        padding: pair(k, from + 1, [0; 2]),
        dilation: pair(k, from + 2, [1; 2]),
    };
    (window, k.call.int(from + 5, 1) as usize)
}

/// Some channels of one image.
fn channels(x: &Array4<f64>, image: usize, first: usize, count: usize) -> ndarray::ArrayView3<'_, f64> {
    x.index_axis(Axis(0), image).slice_axis_move(Axis(0), Slice::from(first..first + count))
}

fn rows_of(weight: &Array4<f64>, group: usize, groups: usize) -> Array2<f64> {
    let (o, c, h, w) = weight.dim();
    let each = o / groups;
    let part = weight.slice_axis(Axis(0), Slice::from(group * each..(group + 1) * each));
    let flat: Vec<f64> = part.iter().copied().collect();
    Array2::from_shape_vec((each, c * h * w), flat).unwrap_or_default()
}

/// How planes and what a window makes of them are shaped.
struct Convolution<'a> {
    window: Window,
    weight: &'a Array4<f64>,
    groups: usize,
}

impl Convolution<'_> {
    /// Channels of a group of planes, and of what the window makes of them.
    fn channels(&self) -> (usize, usize) {
        (self.weight.dim().1, self.weight.dim().0 / self.groups)
    }

    fn rows(&self, y: &Array4<f64>, image: usize, group: usize) -> Result<Array2<f64>, String> {
        let (_, outputs) = self.channels();
        let flat: Vec<f64> = channels(y, image, group * outputs, outputs).iter().copied().collect();
        Array2::from_shape_vec((outputs, y.dim().2 * y.dim().3), flat).map_err(|e| e.to_string())
    }

    /// The window's products at these many places.
    fn forward(&self, x: &Array4<f64>, out: [usize; 2]) -> Array4<f64> {
        let (inputs, outputs) = self.channels();
        let mut y = Array4::zeros((x.dim().0, outputs * self.groups, out[0], out[1]));
        for n in 0..x.dim().0 {
            for g in 0..self.groups {
                let columns = self.window.columns(channels(x, n, g * inputs, inputs), out);
                let product = rows_of(self.weight, g, self.groups).dot(&columns);
                let mut image = y.index_axis_mut(Axis(0), n);
                let mut part = image.slice_axis_mut(Axis(0), Slice::from(g * outputs..(g + 1) * outputs));
                part.iter_mut().zip(product.iter()).for_each(|(a, b)| *a = *b);
            }
        }
        y
    }

    /// What the window made, back at the places of planes of this size.
    fn back(&self, y: &Array4<f64>, size: [usize; 2]) -> Result<Array4<f64>, String> {
        let (inputs, _) = self.channels();
        let mut x = Array4::zeros((y.dim().0, inputs * self.groups, size[0], size[1]));
        for n in 0..y.dim().0 {
            for g in 0..self.groups {
                let columns = rows_of(self.weight, g, self.groups).t().dot(&self.rows(y, n, g)?);
                let mut image = x.index_axis_mut(Axis(0), n);
                let part = image.slice_axis_mut(Axis(0), Slice::from(g * inputs..(g + 1) * inputs));
                self.window.add_columns(part, &columns, [y.dim().2, y.dim().3]);
            }
        }
        Ok(x)
    }

    /// The weight's gradient, of planes and the gradient of what the window made, or of that and their gradient.
    fn of_weight(&self, x: &Array4<f64>, y: &Array4<f64>) -> Result<Array4<f64>, String> {
        let (inputs, outputs) = self.channels();
        let mut gw = Array4::zeros(self.weight.dim());
        for n in 0..x.dim().0 {
            for g in 0..self.groups {
                let columns = self.window.columns(channels(x, n, g * inputs, inputs), [y.dim().2, y.dim().3]);
                let product = self.rows(y, n, g)?.dot(&columns.t());
                let mut part = gw.slice_axis_mut(Axis(0), Slice::from(g * outputs..(g + 1) * outputs));
                part.iter_mut().zip(product.iter()).for_each(|(a, b)| *a += b);
            }
        }
        Ok(gw)
    }
}

fn convolution(k: &Kernel<'_>) -> Answer {
    let (x, weight) = (planes(k, 0)?, planes(k, 1)?);
    let (window, groups) = convolution_window(k, &weight, 3);
    let convolution = Convolution { window, weight: &weight, groups };
    let sizes = shape(k.results[0].sizes());
    let out = [sizes[2], sizes[3]];
    // A transposed one is another's gradient.
    let mut y = if k.call.bool(6) { convolution.back(&x, out)? } else { convolution.forward(&x, out) };
    if let Some(bias) = k.operand(2) {
        for (c, b) in bias.data.floats().iter().enumerate() {
            y.index_axis_mut(Axis(1), c).mapv_inplace(|v| v + b);
        }
    }
    Ok(vec![Data::Float(y.into_dyn())])
}

fn convolution_backward(k: &Kernel<'_>) -> Answer {
    let (grad, x, weight) = (planes(k, 0)?, planes(k, 1)?, planes(k, 2)?);
    let (window, groups) = convolution_window(k, &weight, 4);
    let convolution = Convolution { window, weight: &weight, groups };
    let size = [x.dim().2, x.dim().3];
    let (gx, gw) = if k.call.bool(7) {
        (convolution.forward(&grad, size), convolution.of_weight(&grad, &x)?)
    } else {
        (convolution.back(&grad, size)?, convolution.of_weight(&x, &grad)?)
    };
    let bias = grad.sum_axis(Axis(3)).sum_axis(Axis(2)).sum_axis(Axis(0)).into_dyn();
    let parts = [gx.into_dyn(), gw.into_dyn(), bias];
    let mask = k.call.bools(10);
    Ok(parts.into_iter().zip(mask).filter(|(_, m)| *m).map(|(p, _)| Data::Float(p)).collect())
}

/// A pooling window; the list arguments begin at `from`.
fn pool_window(k: &Kernel<'_>, from: usize, dilated: bool) -> Window {
    let kernel = pair(k, from, [1; 2]);
    Window {
        kernel,
        stride: pair(k, from + 1, kernel),
        padding: pair(k, from + 2, [0; 2]),
        dilation: if dilated { pair(k, from + 3, [1; 2]) } else { [1; 2] },
    }
}

fn max_pool(k: &Kernel<'_>) -> Answer {
    let x = planes(k, 0)?;
    let window = pool_window(k, 1, true);
    let (_, _, h, w) = x.dim();
    let sizes = shape(k.results[0].sizes());
    let (mut values, mut indices) = (ArrayD::zeros(sizes.clone()), ArrayD::<i64>::zeros(sizes));
    for (at, value) in values.indexed_iter_mut() {
        let (mut best, mut place) = (f64::NEG_INFINITY, 0);
        for within in window.within() {
            let Some([y, z]) = window.place([at[2], at[3]], within, [h, w]) else { continue };
            let v = x[[at[0], at[1], y, z]];
            if v > best || v.is_nan() {
                (best, place) = (v, y * w + z);
            }
        }
        *value = best;
        indices[&at] = place as i64;
    }
    Ok(vec![Data::Float(values), Data::Int(indices)])
}

fn max_pool_backward(k: &Kernel<'_>) -> Answer {
    let (grad, index) = (planes(k, 0)?, k.need(7)?.data.ints());
    let mut out = planes(k, 1)?;
    out.fill(0.0);
    let w = out.dim().3;
    for ((n, c, y, z), g) in grad.indexed_iter() {
        let place = index[[n, c, y, z]] as usize;
        out[[n, c, place / w, place % w]] += g;
    }
    Ok(vec![Data::Float(out.into_dyn())])
}

/// What a window's sum is divided by: its places inside input and padding, or those inside the input, or a given
/// number.
fn divisor(window: &Window, out: [usize; 2], size: [usize; 2], padded: bool, given: i64) -> f64 {
    if given != 0 {
        return given as f64;
    }
    let extent = |d: usize| {
        let start = (out[d] * window.stride[d]) as i64 - window.padding[d] as i64;
        let end = (start + window.kernel[d] as i64).min((size[d] + window.padding[d]) as i64);
        if padded { end - start } else { end.min(size[d] as i64) - start.max(0) }
    };
    (extent(0) * extent(1)) as f64
}

fn avg_pool(k: &Kernel<'_>) -> Answer {
    let x = planes(k, 0)?;
    let window = pool_window(k, 1, false);
    let (_, _, h, w) = x.dim();
    let (padded, given) = (k.call.bool(5), k.call.int(6, 0));
    let array = ArrayD::from_shape_fn(shape(k.results[0].sizes()), |at| {
        let places = window.within().filter_map(|p| window.place([at[2], at[3]], p, [h, w]));
        let sum: f64 = places.map(|[y, z]| x[[at[0], at[1], y, z]]).sum();
        sum / divisor(&window, [at[2], at[3]], [h, w], padded, given)
    });
    Ok(vec![Data::Float(array)])
}

fn avg_pool_backward(k: &Kernel<'_>) -> Answer {
    let grad = planes(k, 0)?;
    let mut out = planes(k, 1)?;
    out.fill(0.0);
    let window = pool_window(k, 2, false);
    let (_, _, h, w) = out.dim();
    let (padded, given) = (k.call.bool(6), k.call.int(7, 0));
    for ((n, c, y, z), g) in grad.indexed_iter() {
        let share = g / divisor(&window, [y, z], [h, w], padded, given);
        for p in window.within() {
            if let Some([a, b]) = window.place([y, z], p, [h, w]) {
                out[[n, c, a, b]] += share;
            }
        }
    }
    Ok(vec![Data::Float(out.into_dyn())])
}

/// The places along one dimension that are averaged to one place of the output.
fn share(out: usize, outs: usize, size: usize) -> std::ops::Range<usize> {
    out * size / outs..((out + 1) * size).div_ceil(outs)
}

/// The places of a plane that are averaged to one place of the output.
fn shares(out: [usize; 2], outs: [usize; 2], size: [usize; 2]) -> Vec<[usize; 2]> {
    let [rows, columns] = [0, 1].map(|d| share(out[d], outs[d], size[d]));
    rows.flat_map(|y| columns.clone().map(move |z| [y, z])).collect()
}

fn adaptive_avg_pool(k: &Kernel<'_>) -> Answer {
    let x = planes(k, 0)?;
    let (_, _, h, w) = x.dim();
    let sizes = shape(k.results[0].sizes());
    let outs = [sizes[2], sizes[3]];
    let array = ArrayD::from_shape_fn(sizes, |at| {
        let places = shares([at[2], at[3]], outs, [h, w]);
        places.iter().map(|&[y, z]| x[[at[0], at[1], y, z]]).sum::<f64>() / places.len() as f64
    });
    Ok(vec![Data::Float(array)])
}

fn adaptive_avg_pool_backward(k: &Kernel<'_>) -> Answer {
    let (grad, mut out) = (planes(k, 0)?, planes(k, 1)?);
    out.fill(0.0);
    let (outs, size) = ([grad.dim().2, grad.dim().3], [out.dim().2, out.dim().3]);
    for ((n, c, y, z), g) in grad.indexed_iter() {
        let places = shares([y, z], outs, size);
        places.iter().for_each(|&[a, b]| out[[n, c, a, b]] += g / places.len() as f64);
    }
    Ok(vec![Data::Float(out.into_dyn())])
}

/// The halves of an operand along a dimension; the second one as the gate it is.
fn halves(k: &Kernel<'_>, argument: usize, dim_at: usize) -> Result<(usize, ArrayD<f64>, ArrayD<f64>), String> {
    let x = k.floats(argument)?;
    let dim = k.dim(dim_at, x.ndim())?;
    let (first, second) = x.view().split_at(Axis(dim), x.shape()[dim] / 2);
    Ok((dim, first.to_owned(), second.mapv(|v| 1.0 / (1.0 + (-v).exp()))))
}

fn glu(k: &Kernel<'_>) -> Answer {
    let (_, x, gate) = halves(k, 0, 1)?;
    Ok(vec![Data::Float(x * gate)])
}

fn glu_backward(k: &Kernel<'_>) -> Answer {
    let (dim, x, gate) = halves(k, 1, 2)?;
    let of_first = k.floats(0)? * &gate;
    let of_second = &of_first * &x * gate.mapv(|s| 1.0 - s);
    let both = ndarray::concatenate(Axis(dim), &[of_first.view(), of_second.view()]);
    both.map(|a| vec![Data::Float(a)]).map_err(|e| e.to_string())
}
