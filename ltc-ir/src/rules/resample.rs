//! Up- and downsampling, padding by repetition, grids, pixel shuffles, patches.

use smallvec::SmallVec;

use super::{Call, ErrorClass, MemoryFormat, NewResults, ShapeError, in_format, one, suggest_memory_format};
use crate::{
    dtype::DType,
    layout::{Dims, Layout},
    view::OwnedView,
};

fn format_of(x: &Layout, spatial: usize) -> MemoryFormat {
    if spatial == 1 { MemoryFormat::Contiguous } else { suggest_memory_format(x) }
}

/// Spatial dimensions, by the operator's name.
fn spatial(call: &Call<'_>) -> usize {
    let digit = call.short_op().chars().find(char::is_ascii_digit);
    digit.and_then(|c| c.to_digit(10)).unwrap_or(2) as usize
}

/// `upsample_*(self, output_size, ...)`.
///
/// # Errors
/// Fails where input and output sizes are not as many as the operator has dimensions, where one of them is not
/// positive, and for an input without channels.
pub fn upsample(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let (n, out) = (spatial(call), call.ints(1).unwrap_or_default());
    if out.len() != n {
        return Err(ShapeError::runtime(format!(
            "It is expected output_size equals to {n}, but got size {}",
            out.len()
        )));
    }
    if x.rank() != n + 2 {
        return Err(ShapeError::runtime(format!(
            "It is expected input_size equals to {}, but got size {}",
            n + 2,
            x.rank()
        )));
    }
    let input = &x.sizes()[2..];
    if input.iter().chain(&out).any(|&s| s <= 0) {
        return Err(ShapeError::runtime(format!(
            "Input and output sizes should be greater than 0, but got input {input:?} output {:?}",
            &out[..]
        )));
    }
    if x.sizes()[1] == 0 {
        return Err(ShapeError::runtime(format!(
            "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
            n + 2,
            x.sizes()
        )));
    }
    let mut sizes: Dims = x.sizes().into();
    sizes[2..].copy_from_slice(&out);
    one(in_format(x.dtype(), &sizes, format_of(x, n)))
}

/// `upsample_*_backward(grad_output, output_size, input_size, ...)`.
///
/// # Errors
/// Fails where the input's sizes are not as many as the operator has dimensions, or are not positive, and for a
/// gradient of other sizes than the output.
pub fn upsample_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let grad = call.need(0)?;
    let sizes = call.ints(2).unwrap_or_default();
    let n = spatial(call);
    if sizes.len() != n + 2 || grad.rank() != n + 2 {
        return Err(ShapeError::runtime(format!(
            "It is expected input_size equals to {}, but got size {}",
            n + 2,
            sizes.len()
        )));
    }
    let out = call.ints(1).unwrap_or_default();
    if sizes[2..].iter().any(|&s| s <= 0) {
        return Err(ShapeError::runtime(format!(
            "Input and output sizes should be greater than 0, but got input {:?} output {:?}",
            &sizes[2..],
            &out[..]
        )));
    }
    if grad.sizes()[..2] != sizes[..2] || grad.sizes()[2..] != out[..] {
        return Err(ShapeError::runtime(format!(
            "Expected grad_output to have the same shape as output; output.size is {:?} but got grad_output.size {:?}",
            &out[..],
            grad.sizes()
        )));
    }
    one(in_format(grad.dtype(), &sizes, format_of(grad, n)))
}

/// `reflection_pad*(self, padding)`, `replication_pad*`.
///
/// # Errors
/// Fails for other than two pads per spatial dimension, for an input of other dimensions or without points, for a
/// reflection of more than there is, and where a size would not be positive.
pub fn pad(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let (n, pad) = (spatial(call), call.ints(1).unwrap_or_default());
    if pad.len() != 2 * n {
        return Err(ShapeError::runtime(format!("padding size is expected to be {}, but got: {}", 2 * n, pad.len())));
    }
    if x.rank() != n + 1 && x.rank() != n + 2 {
        return Err(ShapeError::runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
             input, but got: {:?}",
            n + 1,
            n + 2,
            x.sizes()
        )));
    }
    let mut sizes: Dims = x.sizes().into();
    let reflects = call.short_op().starts_with("reflection");
    for i in 0..n {
        let d = x.rank() - 1 - i;
        let (before, after, size) = (pad[2 * i], pad[2 * i + 1], x.sizes()[d]);
        if size == 0 {
            return Err(ShapeError::runtime(format!("Expected a non-empty input, but got {:?}", x.sizes())));
        }
        if reflects && (before >= size || after >= size) {
            return Err(ShapeError::runtime(format!(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding \
                 ({before}, {after}) at dimension {d} of input {:?}",
                x.sizes()
            )));
        }
        sizes[d] = size.saturating_add(before).saturating_add(after);
        if sizes[d] < 1 {
            return Err(ShapeError::runtime(format!(
                "input ({:?}) is too small. Calculated output size {} at dimension {d}",
                x.sizes(),
                sizes[d]
            )));
        }
    }
    // Only the planar kernels keep channels last.
    let format = if n == 2 { suggest_memory_format(x) } else { MemoryFormat::Contiguous };
    one(in_format(x.dtype(), &sizes, format))
}

/// `pixel_shuffle(self, upscale_factor)`.
///
/// # Errors
/// Fails for fewer than three dimensions, for a factor that is not positive, and where its square does not divide the
/// channels.
pub fn pixel_shuffle(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, r) = (call.need(0)?, call.int(1, 1));
    let [lead @ .., c, h, w] = x.sizes() else {
        return Err(ShapeError::runtime(format!(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            x.rank()
        )));
    };
    if r <= 0 {
        return Err(ShapeError::runtime(format!("pixel_shuffle expects a positive upscale_factor, but got {r}")));
    }
    let Some(square) = r.checked_mul(r) else {
        let message = format!("upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}");
        return Err(ShapeError { class: ErrorClass::Value, message });
    };
    if c % square != 0 {
        return Err(ShapeError::runtime(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, \
             but input.size(-3)={c} is not divisible by {square}"
        )));
    }
    let sizes: Dims = lead.iter().copied().chain([c / square, h.saturating_mul(r), w.saturating_mul(r)]).collect();
    one(in_format(x.dtype(), &sizes, suggest_memory_format(x)))
}

/// `pixel_unshuffle(self, downscale_factor)`.
///
/// # Errors
/// Fails for fewer than three dimensions, for a factor that is not positive, and where it does not divide height and
/// width.
pub fn pixel_unshuffle(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, r) = (call.need(0)?, call.int(1, 1));
    let [lead @ .., c, h, w] = x.sizes() else {
        return Err(ShapeError::runtime(format!(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            x.rank()
        )));
    };
    if r <= 0 {
        return Err(ShapeError::runtime(format!("pixel_unshuffle expects a positive downscale_factor, but got {r}")));
    }
    for (size, what) in [(h, "height"), (w, "width")] {
        if size % r != 0 {
            return Err(ShapeError::runtime(format!(
                "pixel_unshuffle expects {what} to be divisible by downscale_factor, but {size} is not divisible by {r}"
            )));
        }
    }
    if x.numel() == 0 {
        return one(super::empty_like(x, None));
    }
    let sizes: Dims = lead.iter().copied().chain([c.saturating_mul(r).saturating_mul(r), h / r, w / r]).collect();
    one(in_format(x.dtype(), &sizes, suggest_memory_format(x)))
}

/// `channel_shuffle(self, groups)`.
///
/// # Errors
/// Fails for fewer than three dimensions, and for groups that are not positive or do not divide the channels.
pub fn channel_shuffle(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, groups) = (call.need(0)?, call.int(1, 1));
    if x.rank() < 3 || groups <= 0 || x.sizes()[1] % groups != 0 {
        return Err(ShapeError::runtime(format!(
            "Number of channels must be divisible by groups. Got {:?} channels and {groups} groups.",
            x.sizes()
        )));
    }
    one(in_format(x.dtype(), x.sizes(), suggest_memory_format(x)))
}

fn grid_check<'a>(call: &Call<'a>, n: usize) -> Result<(&'a Layout, &'a Layout), ShapeError> {
    let (x, grid) = (call.need(0)?, call.need(1)?);
    super::checks::dispatch(call, "grid_sampler_cpu", DType::is_floating, &[0, 1])?;
    let fits = x.rank() == n + 2
        && grid.rank() == n + 2
        && x.sizes()[0] == grid.sizes()[0]
        && grid.sizes()[n + 1] == n as i64
        && x.sizes()[2..].iter().all(|&s| s > 0);
    if !fits {
        return Err(ShapeError::runtime(format!(
            "grid_sampler(): expected grid and input of one batch size, grid with size {n} in its last dimension, and \
             non-empty spatial dimensions, but got input with sizes {:?} and grid with sizes {:?}",
            x.sizes(),
            grid.sizes()
        )));
    }
    Ok((x, grid))
}

/// `grid_sampler_2d(input, grid, ...)`, `grid_sampler_3d`.
///
/// # Errors
/// Fails for other than floating point numbers of one dtype, for an input or grid of other dimensions, where their
/// batches differ, for a grid that has not a coordinate per dimension, and for an input without points.
pub fn grid_sampler(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let n = spatial(call);
    let (x, grid) = grid_check(call, n)?;
    let sizes: Dims = x.sizes()[..2].iter().chain(&grid.sizes()[1..=n]).copied().collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `grid_sampler_2d_backward(grad, input, grid, interpolation, padding, align_corners, output_mask)`.
///
/// # Errors
/// As [`grid_sampler`]; also for a gradient of other sizes than the result or another dtype, and for an `output_mask`
/// of other than two entries.
pub fn grid_sampler_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x, grid) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let n = spatial(call);
    grid_check(&call.part(call.op, 1..call.args.len()), n)?;
    super::checks::one_dtype(call, &[0, 1, 2])?;
    let sizes: Dims = x.sizes()[..2].iter().chain(&grid.sizes()[1..=n]).copied().collect();
    super::checks::sizes_are("grad_output", grad, &sizes)?;
    let [wanted, _] = super::checks::mask(call, 6)?;
    let of = |l: &Layout| Layout::contiguous(l.dtype(), l.sizes());
    Ok(SmallVec::from_iter([wanted.then(|| of(x)), Some(super::empty_like(grid, None))]))
}

fn patches(size: i64, kernel: i64, dilation: i64, padding: i64, stride: i64) -> i64 {
    let reach = dilation.saturating_mul(kernel - 1);
    size.saturating_add(padding.saturating_mul(2))
        .saturating_sub(reach)
        .saturating_sub(1)
        .div_euclid(stride)
        .saturating_add(1)
}

/// `im2col(self, kernel_size, dilation, padding, stride)`.
///
/// # Errors
/// Fails for a kernel, dilation, padding or stride that is too small or not two numbers, for an input that is no plane
/// with channels, nor a batch of them, and where no window fits.
pub fn im2col(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let lists = [1, 2, 3, 4].map(|i| call.ints(i).unwrap_or_default());
    let [kernel, dilation, padding, stride] = &lists;
    check_patches(&lists)?;
    let (lead, [c, h, w]) = match x.sizes() {
        [n, rest @ ..] if rest.len() == 3 => (Some(*n), [rest[0], rest[1], rest[2]]),
        &[c, h, w] => (None, [c, h, w]),
        s => {
            return Err(ShapeError::runtime(format!(
                "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
                 input, but got: {s:?}"
            )));
        }
    };
    let across = patches(h, kernel[0], dilation[0], padding[0], stride[0]);
    let along = patches(w, kernel[1], dilation[1], padding[1], stride[1]);
    if across < 1 || along < 1 || c == 0 {
        return Err(ShapeError::runtime(format!(
            "Given input with spatial size ({h}, {w}), calculated shape of the array of sliding blocks as ({across}, \
             {along}), but its components must be at least one."
        )));
    }
    let sizes: Dims = lead
        .into_iter()
        .chain([c.saturating_mul(kernel[0]).saturating_mul(kernel[1]), across.saturating_mul(along)])
        .collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

fn check_patches(lists: &[SmallVec<[i64; 6]>; 4]) -> Result<(), ShapeError> {
    let least = [1, 1, 0, 1];
    for (list, least) in lists.iter().zip(least) {
        if list.len() != 2 {
            return Err(ShapeError::runtime(format!(
                "It is expected that lists have 2 entries, but got {}",
                list.len()
            )));
        }
        if list.iter().any(|&v| v < least) {
            return Err(ShapeError::runtime(format!("kernel, dilation, padding or stride too small: {:?}", &list[..])));
        }
    }
    Ok(())
}

/// `col2im(self, output_size, kernel_size, dilation, padding, stride)`.
///
/// # Errors
/// Fails for a kernel, dilation, padding or stride that is too small or not two numbers, for other than two output
/// sizes, and for an input that has not a column for each window, nor is a batch of such.
pub fn col2im(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let out = call.ints(1).unwrap_or_default();
    let lists = [2, 3, 4, 5].map(|i| call.ints(i).unwrap_or_default());
    let [kernel, dilation, padding, stride] = &lists;
    check_patches(&lists)?;
    if out.len() != 2 {
        return Err(ShapeError::runtime(format!("It is expected output_size equals to 2, but got size {}", out.len())));
    }
    let (lead, columns, blocks) = match *x.sizes() {
        [n, c, l] => (Some(n), c, l),
        [c, l] => (None, c, l),
        _ => {
            return Err(ShapeError::runtime(format!(
                "Expected 2D or 3D (batch mode) tensor for input, but got: {:?}",
                x.sizes()
            )));
        }
    };
    let across = patches(out[0], kernel[0], dilation[0], padding[0], stride[0]);
    let along = patches(out[1], kernel[1], dilation[1], padding[1], stride[1]);
    let window = kernel[0].saturating_mul(kernel[1]);
    if columns % window != 0 || across.saturating_mul(along) != blocks {
        return Err(ShapeError::runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, and dimension 2 to \
             match the calculated number of sliding blocks {across} * {along} = {}, but got input {:?}",
            across.saturating_mul(along),
            x.sizes()
        )));
    }
    let sizes: Dims = lead.into_iter().chain([columns / window, out[0], out[1]]).collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `glu(self, dim)`: half the size, laid out like the halves.
///
/// # Errors
/// Fails for a tensor without dimensions, for a dimension that there is not, and for one of odd size.
pub fn glu(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    if x.rank() == 0 {
        return Err(ShapeError {
            class: ErrorClass::Runtime,
            message: "glu does not support 0-dimensional tensors".into(),
        });
    }
    let d = super::wrap_dim(call.int(1, -1), x.rank())?;
    if x.sizes()[d] % 2 != 0 {
        return Err(ShapeError::runtime(format!(
            "Halving dimension must be even, but dimension {d} is size {}",
            x.sizes()[d]
        )));
    }
    let mut sizes: Dims = x.sizes().into();
    sizes[d] /= 2;
    let half = Layout::strided(x.dtype(), &sizes, x.strides());
    one(Layout::strided(x.dtype(), &sizes, &super::iterator::strides_over(&[&half, &half], &sizes)))
}

/// `glu_backward(grad, self, dim)`: the input's sizes, row-major.
///
/// # Errors
/// As [`glu`]; also for a gradient of another dtype, or that does not broadcast to the halves.
pub fn glu_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(1)?;
    let half = glu(&call.part("aten::glu", 1..3))?;
    if let Some(Some(half)) = half.first() {
        super::checks::expands(call.need(0)?, half.sizes())?;
        super::checks::one_dtype(call, &[1, 0])?;
    }
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// `glu_jvp(glu, x, dx, dim)`.
///
/// # Errors
/// Fails for a dimension that there is not, for halves that do not broadcast to the result, and where dtypes differ.
pub fn glu_jvp(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (g, x, dx) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let d = super::wrap_dim(call.int(3, -1), x.rank())? as i64;
    let n = g.sizes().get(super::wrap_dim(d, g.rank())?).copied().unwrap_or(1);
    for (l, start) in [(x, n), (dx, 0), (dx, n)] {
        let half = OwnedView::of(l).narrow(d, start, n)?;
        super::checks::expands(&Layout::contiguous(l.dtype(), &half.sizes), g.sizes())?;
    }
    super::checks::one_dtype(call, &[0, 1, 2])?;
    super::like_first(call)
}
