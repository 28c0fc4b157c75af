//! Elements that change place.

use ltc_ir::{OpCode as O, OwnedView};
use ndarray::{ArrayD, Axis, Dimension};

use super::{
    Answer, Compute, Kernel, by_result,
    value::{Data, Element, Value, shape},
};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Clone | O::UnderscoreToCopy | O::LiftFreshCopy => |k| Ok(vec![k.need(0)?.data.clone()]),
        O::Cat => by_result!(cat),
        O::Stack => by_result!(stack),
        O::Gather => by_result!(gather),
        O::ScatterAdd => by_result!(scatter, |old, new| *old += new),
        O::ScatterSrc => by_result!(scatter, |old, new| *old = new),
        O::IndexSelect => by_result!(rows, 0, 2),
        O::Embedding => embedding,
        O::EmbeddingDenseBackward => embedding_backward,
        O::IndexAdd => by_result!(index_add),
        O::IndexTensor => by_result!(index),
        O::IndexPut => by_result!(index_put),
        O::Flip => by_result!(flip),
        O::Tril => by_result!(triangle, |row, column, diagonal| column - row <= diagonal),
        O::Triu => by_result!(triangle, |row, column, diagonal| column - row >= diagonal),
        O::Repeat => by_result!(repeat),
        O::Sort => by_result!(sort),
        O::Topk => by_result!(topk),
        O::ConstantPadNd => by_result!(pad),
        O::SelectBackward | O::SliceBackward | O::DiagonalBackward => view_backward,
        O::UnfoldBackward => unfold_backward,
        _ => return None,
    })
}

fn views<T>(arrays: &[ArrayD<T>]) -> Vec<ndarray::ArrayViewD<'_, T>> {
    arrays.iter().map(ArrayD::view).collect()
}

fn cat<T: Element>(k: &Kernel<'_>) -> Answer {
    let arrays: Vec<_> = k.operands.iter().map(|v| T::array(&v.data)).filter(|a| a.shape() != [0]).collect();
    let Some(first) = arrays.first() else { return Ok(vec![T::data(ArrayD::<T>::zeros(shape(&[0])))]) };
    let dim = k.dim(1, first.ndim())?;
    ndarray::concatenate(Axis(dim), &views(&arrays)).map(|a| vec![T::data(a)]).map_err(|e| e.to_string())
}

fn stack<T: Element>(k: &Kernel<'_>) -> Answer {
    let arrays: Vec<_> = k.operands.iter().map(|v| T::array(&v.data)).collect();
    let dim = k.dim(1, arrays[0].ndim() + 1)?;
    ndarray::stack(Axis(dim), &views(&arrays)).map(|a| vec![T::data(a)]).map_err(|e| e.to_string())
}

/// A place along a dimension of this size; negative ones count from the end.
fn place(i: i64, size: usize) -> Result<usize, String> {
    let at = if i < 0 { i + size as i64 } else { i };
    usize::try_from(at).ok().filter(|&p| p < size).ok_or_else(|| format!("index {i} is out of bounds for size {size}"))
}

/// 0-dim tensors as vectors of one.
fn at_least_1d<T: Clone>(a: ArrayD<T>) -> ArrayD<T> {
    if a.ndim() == 0 { a.insert_axis(Axis(0)) } else { a }
}

fn gather<T: Element>(k: &Kernel<'_>) -> Answer {
    let (x, index) = (at_least_1d(k.array::<T>(0)?), at_least_1d(k.need(2)?.data.ints()));
    let dim = k.dim(1, x.ndim())?;
    let size = x.shape()[dim];
    let pick = |(at, &i): (ndarray::IxDyn, &i64)| {
        let mut from = at;
        from[dim] = place(i, size)?;
        Ok(x[from])
    };
    let values: Vec<T> = index.indexed_iter().map(pick).collect::<Result<_, String>>()?;
    fitted(values, k.results[0].sizes()).map(|d| vec![d])
}

fn fitted<T: Element>(values: Vec<T>, sizes: &[i64]) -> Result<Data, String> {
    ArrayD::from_shape_vec(shape(sizes), values).map(T::data).map_err(|e| e.to_string())
}

fn scatter<T: Element>(k: &Kernel<'_>, put: fn(&mut T, T)) -> Answer {
    let mut x = at_least_1d(k.array::<T>(0)?);
    let (index, source) = (at_least_1d(k.need(2)?.data.ints()), at_least_1d(k.array::<T>(3)?));
    let dim = k.dim(1, x.ndim())?;
    let size = x.shape()[dim];
    for (at, &i) in index.indexed_iter() {
        let value = source[&at];
        let mut to = at;
        to[dim] = place(i, size)?;
        put(&mut x[to], value);
    }
    fitted(x.iter().copied().collect(), k.results[0].sizes()).map(|d| vec![d])
}

/// Parts of the operand along a dimension, by index.
fn rows<T: Element>(k: &Kernel<'_>, x_at: usize, index_at: usize) -> Answer {
    let (x, index) = (at_least_1d(k.array::<T>(x_at)?), k.need(index_at)?.data.ints());
    let dim = k.dim(1, x.ndim())?;
    let places: Vec<usize> = index.iter().map(|&i| place(i, x.shape()[dim])).collect::<Result<_, _>>()?;
    let taken = x.select(Axis(dim), &places);
    fitted(taken.iter().copied().collect(), k.results[0].sizes()).map(|d| vec![d])
}

fn embedding(k: &Kernel<'_>) -> Answer {
    let (weight, index) = (k.floats(0)?, k.need(1)?.data.ints());
    let places: Vec<usize> = index.iter().map(|&i| place(i, weight.shape()[0])).collect::<Result<_, _>>()?;
    let taken = weight.select(Axis(0), &places);
    fitted(taken.iter().copied().collect(), k.results[0].sizes()).map(|d| vec![d])
}

fn embedding_backward(k: &Kernel<'_>) -> Answer {
    let (grad, index) = (k.floats(0)?, k.need(1)?.data.ints());
    let [count, width] = k.results[0].sizes() else { return Err("a matrix was recorded".into()) };
    let mut out = ndarray::Array2::<f64>::zeros((*count as usize, *width as usize));
    let values: Vec<f64> = grad.iter().copied().collect();
    let times = |i: i64| index.iter().filter(|&&j| j == i).count() as f64;
    for (row, &i) in values.chunks((*width).max(1) as usize).zip(index.iter()) {
        if i == k.call.int(3, -1) {
            continue;
        }
        let share = if k.call.bool(4) { 1.0 / times(i) } else { 1.0 };
        let mut to = out.row_mut(place(i, *count as usize)?);
        to.iter_mut().zip(row).for_each(|(a, b)| *a += b * share);
    }
    Ok(vec![Data::Float(out.into_dyn())])
}

fn index_add<T: Element>(k: &Kernel<'_>) -> Answer {
    let (mut x, index, source) = (k.array::<T>(0)?, k.need(2)?.data.ints(), k.array::<T>(3)?);
    let (dim, alpha) = (k.dim(1, x.ndim())?, k.number(4, T::one()));
    for (j, &i) in index.iter().enumerate() {
        let to = place(i, x.shape()[dim])?;
        let part = source.index_axis(Axis(dim), j).mapv(|v| v * alpha);
        let mut page = x.index_axis_mut(Axis(dim), to);
        page += &part;
    }
    Ok(vec![T::data(x)])
}

/// Places in the operand of all elements of an indexed result, and the result's sizes.
fn indexed<T>(k: &Kernel<'_>, x: &ArrayD<T>) -> Result<(Vec<Vec<usize>>, Vec<usize>), String> {
    let Some(ltc_ir::Arg::Tensors { len, mask, first_operand, .. }) = k.call.args.get(1) else {
        return Err("no list of indices".into());
    };
    let mut next = *first_operand;
    let mut lists: Vec<Option<ArrayD<i64>>> = Vec::new();
    for j in 0..*len {
        let present = mask[j / 64] >> (j % 64) & 1 == 1;
        lists.push(present.then(|| k.operands[next].data.ints()));
        if present && k.operands[next].layout.dtype() == ltc_ir::DType::Bool {
            return Err("the reference backend takes no mask as index".into());
        }
        next += usize::from(present);
    }
    lists.resize(x.ndim(), None);
    let present: Vec<usize> = (0..lists.len()).filter(|&d| lists[d].is_some()).collect();
    let shapes: Vec<Vec<i64>> = lists.iter().flatten().map(|l| l.shape().iter().map(|&s| s as i64).collect()).collect();
    let refs: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let whole = ltc_ir::rules::broadcast(&refs).map_err(|e| e.to_string())?;
    let adjacent = present.windows(2).all(|w| w[1] == w[0] + 1);
    let before = if adjacent { present.first().copied().unwrap_or(0) } else { 0 };
    let kept: Vec<usize> = (0..x.ndim()).filter(|d| !present.contains(d)).collect();
    let sizes: Vec<usize> = kept[..before]
        .iter()
        .map(|&d| x.shape()[d])
        .chain(whole.iter().map(|&s| s as usize))
        .chain(kept[before..].iter().map(|&d| x.shape()[d]))
        .collect();
    let spread: Vec<Option<ArrayD<i64>>> =
        lists.iter().map(|l| l.as_ref().and_then(|l| l.broadcast(shape(&whole)).map(|l| l.to_owned()))).collect();
    let mut places = Vec::new();
    for at in ndarray::indices(sizes.clone()) {
        let at: Vec<usize> = ndarray::Dimension::slice(&at).to_vec();
        let middle = &at[before..before + whole.len()];
        let mut from = vec![0; x.ndim()];
        for (i, &d) in kept.iter().enumerate() {
            from[d] = if i < before { at[i] } else { at[i + whole.len()] };
        }
        for &d in &present {
            if let Some(list) = &spread[d] {
                from[d] = place(list[ndarray::IxDyn(middle)], x.shape()[d])?;
            }
        }
        places.push(from);
    }
    Ok((places, sizes))
}

fn index<T: Element>(k: &Kernel<'_>) -> Answer {
    let x = k.array::<T>(0)?;
    let (places, _) = indexed(k, &x)?;
    fitted(places.into_iter().map(|p| x[ndarray::IxDyn(&p)]).collect(), k.results[0].sizes()).map(|d| vec![d])
}

fn index_put<T: Element>(k: &Kernel<'_>) -> Answer {
    let mut x = k.array::<T>(0)?;
    let (places, sizes) = indexed(k, &x)?;
    let values = k.array::<T>(2)?;
    let values = values.broadcast(sizes).ok_or("values do not broadcast to the index")?;
    let adds = k.call.bool(3);
    for (p, &v) in places.into_iter().zip(values.iter()) {
        let slot = &mut x[ndarray::IxDyn(&p)];
        *slot = if adds { *slot + v } else { v };
    }
    Ok(vec![T::data(x)])
}

fn flip<T: Element>(k: &Kernel<'_>) -> Answer {
    let mut x = k.array::<T>(0)?;
    for d in k.call.ints(1).unwrap_or_default() {
        let d = ltc_ir::rules::wrap_dim(d, x.ndim()).map_err(|e| e.to_string())?;
        if x.ndim() > 0 {
            x.invert_axis(Axis(d));
        }
    }
    Ok(vec![T::data(x)])
}

fn triangle<T: Element>(k: &Kernel<'_>, keep: fn(i64, i64, i64) -> bool) -> Answer {
    let mut x = k.array::<T>(0)?;
    let (n, diagonal) = (x.ndim(), k.call.int(1, 0));
    for (at, v) in x.indexed_iter_mut() {
        if !keep(at[n - 2] as i64, at[n - 1] as i64, diagonal) {
            *v = T::zero();
        }
    }
    Ok(vec![T::data(x)])
}

fn repeat<T: Element>(k: &Kernel<'_>) -> Answer {
    let x = k.array::<T>(0)?;
    let lead = k.results[0].rank() - x.ndim();
    let array = ArrayD::from_shape_fn(shape(k.results[0].sizes()), |at| {
        let from: Vec<usize> = (0..x.ndim()).map(|d| at[d + lead] % x.shape()[d]).collect();
        x[ndarray::IxDyn(&from)]
    });
    Ok(vec![T::data(array)])
}

fn sort<T: Element>(k: &Kernel<'_>) -> Answer {
    sorted::<T>(k, 1, 2, None)
}

fn topk<T: Element>(k: &Kernel<'_>) -> Answer {
    sorted::<T>(k, 2, 3, Some(k.call.int(1, 1) as usize))
}

/// Values and indices along a dimension, sorted; NaN counts as largest.
fn sorted<T: Element>(k: &Kernel<'_>, dim_at: usize, descending_at: usize, keep: Option<usize>) -> Answer {
    let x = at_least_1d(k.array::<T>(0)?);
    let dim = k.dim(dim_at, x.ndim())?;
    let descending = k.call.bool(descending_at);
    let sizes = at_least_1d(ArrayD::<T>::zeros(shape(k.results[0].sizes()))).raw_dim();
    let (mut values, mut indices) = (ArrayD::zeros(sizes.clone()), ArrayD::<i64>::zeros(sizes));
    let out = values.lanes_mut(Axis(dim)).into_iter().zip(indices.lanes_mut(Axis(dim)));
    for (lane, (mut v, mut at)) in x.lanes(Axis(dim)).into_iter().zip(out) {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        let compare = |a: T, b: T| match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
            (a, b) => a.cmp(&b),
        };
        order.sort_by(|&a, &b| if descending { compare(lane[b], lane[a]) } else { compare(lane[a], lane[b]) });
        for (i, &from) in order.iter().take(keep.unwrap_or(usize::MAX)).enumerate() {
            v[i] = lane[from];
            at[i] = from as i64;
        }
    }
    let sizes = k.results[0].sizes();
    let indices = ArrayD::from_shape_vec(shape(sizes), indices.iter().copied().collect()).map_err(|e| e.to_string())?;
    Ok(vec![fitted(values.iter().copied().collect(), sizes)?, Data::Int(indices)])
}

fn pad<T: Element>(k: &Kernel<'_>) -> Answer {
    let x = k.array::<T>(0)?;
    let pads = k.call.ints(1).unwrap_or_default();
    let n = x.ndim();
    let before = |d: usize| pads.get(2 * (n - 1 - d)).copied().unwrap_or(0);
    let fill = k.number(2, T::zero());
    let array = ArrayD::from_shape_fn(shape(k.results[0].sizes()), |at| {
        let from: Option<Vec<usize>> =
            (0..n).map(|d| usize::try_from(at[d] as i64 - before(d)).ok().filter(|&p| p < x.shape()[d])).collect();
        from.map_or(fill, |p| x[ndarray::IxDyn(&p)])
    });
    Ok(vec![T::data(array)])
}

/// Zeros with the part a view shows replaced by the gradient.
fn view_backward(k: &Kernel<'_>) -> Answer {
    let layout = &k.results[0];
    let whole = OwnedView::of(&ltc_ir::Layout::contiguous(layout.dtype(), layout.sizes()));
    let int = |i| k.call.int(i, 0);
    let part = match k.call.short_op() {
        "select_backward" => whole.select(int(2), int(3)),
        "slice_backward" => whole.slice(int(2), Some(int(3)), Some(int(4)), int(5)),
        _ => whole.diagonal(int(2), int(3), int(4)),
    };
    let part = part.map_err(|e| e.to_string())?;
    let base = Value::new(layout, &super::factory::filled(layout, 0.0));
    let grad = k.need(0)?;
    let grad = Value { layout: grad.layout.clone(), data: spread(&grad.data, &part.sizes)? };
    let written = base.write_view(&grad, &part.layout(), part.offset as usize).ok_or("a view outside of its base")?;
    Ok(vec![written.data])
}

/// Windows added back to where they were.
fn unfold_backward(k: &Kernel<'_>) -> Answer {
    let (grad, layout) = (k.floats(0)?, &k.results[0]);
    let (dim, step) = (k.dim(2, layout.rank())?, k.call.int(4, 1) as usize);
    let mut out = ArrayD::<f64>::zeros(shape(layout.sizes()));
    for (at, g) in grad.indexed_iter() {
        let mut to = at.slice()[..layout.rank()].to_vec();
        to[dim] = to[dim] * step + at[layout.rank()];
        out[ndarray::IxDyn(&to)] += g;
    }
    Ok(vec![Data::Float(out)])
}

fn spread(data: &Data, sizes: &[i64]) -> Result<Data, String> {
    let whole = f64::array(data);
    let whole = whole.broadcast(shape(sizes)).ok_or("the gradient does not broadcast to the view")?;
    Ok(Data::Float(whole.to_owned()))
}
