//! Convolutions (`aten/src/ATen/native/Convolution.cpp`, `ConvUtils.h`).

use smallvec::SmallVec;

use super::{Call, MemoryFormat, NewResults, ShapeError, checked, checks, in_format, one, suggest_memory_format};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// Parameter of a spatial dimension; a list of one serves all.
fn at(list: &[i64], i: usize, default: i64) -> i64 {
    if list.len() == 1 { list[0] } else { list.get(i).copied().unwrap_or(default) }
}

/// Channels-last when the input or the weight is, as the CPU's convolutions answer.
fn format_of(input: &Layout, weight: &Layout) -> MemoryFormat {
    if [input, weight].into_iter().any(|l| suggest_memory_format(l) == MemoryFormat::ChannelsLast) {
        MemoryFormat::ChannelsLast
    } else {
        MemoryFormat::Contiguous
    }
}

struct Geometry {
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    output_padding: Dims,
    transposed: bool,
    groups: i64,
}

fn check(op: &str, input: &Layout, weight: &Layout, g: &Geometry) -> Result<(), ShapeError> {
    let (x, w) = (input.sizes(), weight.sizes());
    if x.len() != w.len() {
        return Err(ShapeError::runtime(format!(
            "Expected {}-dimensional input for {}-dimensional weight {w:?}, but got {}-dimensional input of size {x:?} \
             instead",
            w.len(),
            w.len(),
            x.len()
        )));
    }
    if x.len() < 3 {
        return Err(ShapeError::runtime(format!(
            "{op}: expected at least one spatial dimension, got input of size {x:?}"
        )));
    }
    check_geometry(x.len() - 2, g)?;
    check_tensors(input, weight, g)
}

/// Whether the numbers fit each other and so many dimensions.
fn check_geometry(spatial: usize, g: &Geometry) -> Result<(), ShapeError> {
    let lists = [
        (&g.stride, "stride"),
        (&g.padding, "padding"),
        (&g.dilation, "dilation"),
        (&g.output_padding, "output_padding"),
    ];
    if let Some((list, what)) = lists.into_iter().find(|(list, _)| list.len() != 1 && list.len() != spatial) {
        return Err(ShapeError::runtime(format!(
            "expected {what} to be a single integer value or a list of {spatial} values to match the convolution \
             dimensions, but got {what}={:?}",
            &list[..]
        )));
    }
    if g.groups <= 0 {
        return Err(ShapeError::runtime("non-positive groups is not supported"));
    }
    for (list, what, least) in [(&g.stride, "stride", 1), (&g.padding, "padding", 0), (&g.dilation, "dilation", 1)] {
        if list.iter().any(|&v| v < least) {
            let kind = if least == 1 { "non-positive" } else { "negative" };
            return Err(ShapeError::runtime(format!("{kind} {what} is not supported")));
        }
    }
    if g.output_padding.iter().any(|&p| p < 0) {
        return Err(ShapeError::runtime("negative output_padding is not supported"));
    }
    let smaller = |i: usize| {
        let pad = at(&g.output_padding, i, 0);
        pad < at(&g.stride, i, 1) || pad < at(&g.dilation, i, 1)
    };
    if g.transposed && !(0..spatial).all(smaller) {
        return Err(ShapeError::runtime(format!(
            "output padding must be smaller than either stride or dilation, but got {:?}",
            &g.output_padding[..]
        )));
    }
    Ok(())
}

/// Whether input and weight fit each other.
fn check_tensors(input: &Layout, weight: &Layout, g: &Geometry) -> Result<(), ShapeError> {
    let (x, w) = (input.sizes(), weight.sizes());
    if input.dtype() == DType::Bool {
        return Err(checks::not_implemented("slow_conv2d_cpu", DType::Bool));
    }
    if w[2..].contains(&0) {
        return Err(ShapeError::runtime(format!("kernel size should be greater than zero, but got {:?}", &w[2..])));
    }
    if g.transposed && x[2..].contains(&0) {
        return Err(ShapeError::runtime(format!(
            "Only zero batch or zero channel inputs are supported, but got input shape: {x:?}"
        )));
    }
    if w[0] < g.groups {
        return Err(ShapeError::runtime(format!(
            "Given groups={}, expected weight to be at least {} at dimension 0, but got weight of size {w:?} instead",
            g.groups, g.groups
        )));
    }
    if input.dtype() != weight.dtype() {
        return Err(ShapeError::runtime(format!(
            "Input type ({}) and weight type ({}) should be the same",
            input.dtype(),
            weight.dtype()
        )));
    }
    let channels = if g.transposed { w[0] } else { w[1].saturating_mul(g.groups) };
    if x[1] != channels {
        return Err(ShapeError::runtime(format!(
            "Given {}groups={}, weight of size {w:?}, expected input{x:?} to have {channels} channels, but got {} \
             channels instead",
            if g.transposed { "transposed=1, " } else { "" },
            g.groups,
            x[1]
        )));
    }
    if !g.transposed && w[0] % g.groups != 0 {
        return Err(ShapeError::runtime(format!(
            "Given groups={}, expected weight to be divisible by {} at dimension 0, but got weight of size {w:?} \
             instead",
            g.groups, g.groups
        )));
    }
    Ok(())
}

fn output_sizes(op: &str, x: &[i64], w: &[i64], g: &Geometry) -> Result<Dims, ShapeError> {
    let mut out: Dims = SmallVec::new();
    out.push(x[0]);
    out.push(if g.transposed { checked(op, w[1].checked_mul(g.groups))? } else { w[0] });
    let (mut padded, mut kernels) = (Vec::new(), Vec::new());
    for d in 2..x.len() {
        let i = d - 2;
        let (stride, pad, dilation) = (at(&g.stride, i, 1), at(&g.padding, i, 0), at(&g.dilation, i, 1));
        let reach = checked(op, (w[d] - 1).checked_mul(dilation).and_then(|r| r.checked_add(1)))?;
        let pads = checked(op, pad.checked_mul(2))?;
        if g.transposed {
            let steps = checked(op, (x[d] - 1).checked_mul(stride))?;
            let size = steps.checked_sub(pads).and_then(|s| s.checked_add(reach));
            out.push(checked(op, size.and_then(|s| s.checked_add(at(&g.output_padding, i, 0))))?);
        } else {
            let space = checked(op, x[d].checked_add(pads))?;
            padded.push(space);
            kernels.push(reach);
            out.push((space - reach).div_euclid(stride) + 1);
        }
    }
    if padded.iter().zip(&kernels).any(|(space, reach)| space < reach) {
        let by = |v: &[i64]| v.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        return Err(ShapeError::runtime(format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than \
             actual input size",
            by(&padded),
            by(&kernels)
        )));
    }
    if out.iter().any(|&s| s < 0) {
        return Err(ShapeError::runtime(format!(
            "{op}: given input size {x:?}, calculated output size {:?} is too small",
            &out[..]
        )));
    }
    Ok(out)
}

impl Geometry {
    /// From `stride, padding, dilation, transposed, output_padding, groups`, beginning with this argument.
    fn of(call: &Call<'_>, first: usize) -> Geometry {
        let list = |i| call.ints(first + i).unwrap_or_default();
        Geometry {
            stride: list(0),
            padding: list(1),
            dilation: list(2),
            transposed: call.bool(first + 3),
            output_padding: list(4),
            groups: call.int(first + 5, 1),
        }
    }
}

/// `convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)`.
///
/// # Errors
/// Fails where input and weight differ in rank, dtype or channels, or have no spatial dimension; for booleans; for a
/// stride, padding, dilation, output padding or number of groups that is too small or of the wrong length; where the
/// kernel is larger than the padded input, or a result's size negative or too large; and for a bias of another size or
/// dtype.
pub fn convolution(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (input, weight) = (call.need(0)?, call.need(1)?);
    let g = Geometry::of(call, 3);
    check(call.op, input, weight, &g)?;
    let sizes = output_sizes(call.op, input.sizes(), weight.sizes(), &g)?;
    if let Some(bias) = call.tensor(2)
        && bias.sizes() != [sizes[1]]
    {
        return Err(ShapeError::runtime(format!(
            "Given {}weight of size {:?}, expected bias to be 1-dimensional with {} elements, but got bias of size \
             {:?} instead",
            if g.transposed { "transposed=1, " } else { "" },
            weight.sizes(),
            sizes[1],
            bias.sizes()
        )));
    }
    if let Some(bias) = call.tensor(2).filter(|b| b.dtype() != input.dtype()) {
        return Err(ShapeError::runtime(format!(
            "Input type ({}) and bias type ({}) should be the same",
            input.dtype(),
            bias.dtype()
        )));
    }
    one(in_format(input.dtype(), &sizes, format_of(input, weight)))
}

/// `convolution_backward(grad, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding,
/// groups, output_mask)`.
///
/// # Errors
/// As [`convolution`], the bias apart; also for integers, for a gradient of another size or dtype than the result, and
/// for an `output_mask` of other than three entries.
pub fn convolution_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, input, weight) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let g = Geometry::of(call, 4);
    let mask = checks::mask::<3>(call, 10)?;
    if input.dtype().is_integral(true) {
        return Err(checks::not_implemented("slow_conv2d_cpu_grad_input", input.dtype()));
    }
    check(call.op, input, weight, &g)?;
    let sizes = output_sizes(call.op, input.sizes(), weight.sizes(), &g)?;
    if grad.sizes() != &sizes[..] || grad.dtype() != input.dtype() {
        return Err(ShapeError::runtime(format!(
            "{}: expected a gradient of size {:?} and type {}, but got {grad}",
            call.short_op(),
            &sizes[..],
            input.dtype()
        )));
    }
    let format = format_of(input, weight);
    let channels = grad.sizes().get(1).copied().unwrap_or(0);
    Ok(SmallVec::from_iter([
        mask[0].then(|| in_format(input.dtype(), input.sizes(), format)),
        mask[1].then(|| in_format(weight.dtype(), weight.sizes(), format)),
        mask[2].then(|| Layout::contiguous(grad.dtype(), &[channels])),
    ]))
}
