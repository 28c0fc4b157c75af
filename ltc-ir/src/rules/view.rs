//! Views: which part of their argument's memory they show, and the operators that copy or fill that part.
//!
//! The methods of [`OwnedView`] are used twice: native tensors make their views with them, and the rules of `*_copy`
//! and `*_scatter` operators read sizes from their results.

use smallvec::SmallVec;

use super::{Call, ErrorClass, NewResults, ShapeError, empty_like, one, wrap_dim};
use crate::{
    layout::{Dims, Layout},
    view::OwnedView,
};

type Viewed = Result<OwnedView, ShapeError>;

/// What view operators make of a view; offsets count from the same memory's beginning.
impl OwnedView {
    fn rank(&self) -> usize {
        self.sizes.len()
    }

    fn dim(&self, dim: i64, what: &str) -> Result<usize, ShapeError> {
        if self.sizes.is_empty() {
            return Err(ShapeError::index(format!("{what}() cannot be applied to a 0-dim tensor.")));
        }
        wrap_dim(dim, self.rank())
    }

    /// `view(size)`: one size may be -1.
    ///
    /// # Errors
    /// Fails where sizes do not fit the number of elements, or strides do not allow it.
    pub fn view(&self, sizes: &[i64]) -> Viewed {
        let sizes = infer_size(sizes, self.sizes.iter().product())?;
        let strides = view_strides(&self.sizes, &self.strides, &sizes).ok_or_else(|| {
            ShapeError::runtime(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
                 two contiguous subspaces). Use .reshape(...) instead.",
            )
        })?;
        Ok(OwnedView { sizes, strides, ..*self })
    }

    /// `expand(size)`: -1 keeps a size.
    ///
    /// # Errors
    /// Fails for too few or negative sizes, for -1 where there is none to keep, and where one other than 1 changes.
    pub fn expand(&self, sizes: &[i64]) -> Viewed {
        let (n, rank) = (sizes.len(), self.rank());
        if n < rank {
            return Err(ShapeError::runtime(format!(
                "expand(..., size={sizes:?}): the number of sizes provided ({n}) must be greater or equal to the \
                 number of dimensions in the tensor ({rank})"
            )));
        }
        let mut out = OwnedView { sizes: sizes.into(), strides: Dims::from_elem(0, n), ..*self };
        for i in (0..n).rev() {
            let own = (i + rank).checked_sub(n);
            let (mut size, mut stride) = match own {
                Some(d) => (self.sizes[d], self.strides[d]),
                // A new dimension outside of all others, as if it were row-major.
                None => (1, out.sizes.get(i + 1).map_or(1, |s| s.saturating_mul(out.strides[i + 1]))),
            };
            let mut wanted = sizes[i];
            if wanted == -1 {
                if own.is_none() {
                    return Err(ShapeError::runtime(format!(
                        "The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension \
                         {i}"
                    )));
                }
                wanted = size;
            }
            if wanted < 0 {
                return Err(ShapeError::runtime(format!("expand: invalid size {wanted}")));
            }
            if size != wanted {
                if size != 1 {
                    return Err(ShapeError::runtime(format!(
                        "The expanded size of the tensor ({wanted}) must match the existing size ({size}) at \
                         non-singleton dimension {i}.  Target sizes: {sizes:?}.  Tensor sizes: {:?}",
                        &self.sizes[..]
                    )));
                }
                (size, stride) = (wanted, 0);
            }
            (out.sizes[i], out.strides[i]) = (size, stride);
        }
        Ok(out)
    }

    /// `permute(dims)`
    ///
    /// # Errors
    /// Fails where not each dimension is listed once.
    pub fn permute(&self, dims: &[i64]) -> Viewed {
        if dims.len() != self.rank() {
            return Err(ShapeError::runtime(format!(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the \
                 desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                self.rank(),
                dims.len()
            )));
        }
        let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, dims.len());
        let mut out = OwnedView { sizes: Dims::new(), strides: Dims::new(), ..*self };
        for &d in dims {
            let d = wrap_dim(d, self.rank())?;
            if std::mem::replace(&mut seen[d], true) {
                return Err(ShapeError::runtime("permute(): duplicate dims are not allowed."));
            }
            out.sizes.push(self.sizes[d]);
            out.strides.push(self.strides[d]);
        }
        Ok(out)
    }

    /// `transpose(dim0, dim1)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not.
    pub fn transpose(&self, dim0: i64, dim1: i64) -> Viewed {
        let (a, b) = (wrap_dim(dim0, self.rank())?, wrap_dim(dim1, self.rank())?);
        let mut out = self.clone();
        if !out.sizes.is_empty() {
            out.sizes.swap(a, b);
            out.strides.swap(a, b);
        }
        Ok(out)
    }

    /// `t()`
    ///
    /// # Errors
    /// Fails for more than two dimensions.
    pub fn t(&self) -> Viewed {
        match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            n => Err(ShapeError::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
    }

    fn keep(&self, keep: impl Fn(usize) -> bool) -> OwnedView {
        let dims = (0..self.rank()).filter(|&d| keep(d));
        let (sizes, strides) = dims.map(|d| (self.sizes[d], self.strides[d])).unzip();
        OwnedView { sizes, strides, ..*self }
    }

    /// `squeeze()`
    pub fn squeeze(&self) -> OwnedView {
        self.keep(|d| self.sizes[d] != 1)
    }

    /// `squeeze(dims)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not, or that is listed twice.
    pub fn squeeze_dims(&self, dims: &[i64]) -> Viewed {
        let mut gone: SmallVec<[usize; 6]> = SmallVec::new();
        for &d in dims {
            let d = wrap_dim(d, self.rank())?;
            if gone.contains(&d) {
                return Err(ShapeError::runtime(format!("dim {d} appears multiple times in the list of dims")));
            }
            gone.push(d);
        }
        Ok(self.keep(|d| self.sizes[d] != 1 || !gone.contains(&d)))
    }

    /// `unsqueeze(dim)`
    ///
    /// # Errors
    /// Fails for a dimension that the result has not.
    pub fn unsqueeze(&self, dim: i64) -> Viewed {
        let d = wrap_dim(dim, self.rank() + 1)?;
        let mut out = self.clone();
        let stride = if d < self.rank() { self.sizes[d].wrapping_mul(self.strides[d]) } else { 1 };
        out.sizes.insert(d, 1);
        out.strides.insert(d, stride);
        Ok(out)
    }

    /// `select(dim, index)`
    ///
    /// # Errors
    /// Fails for no dimensions, for one that there is not, and for an index out of range.
    pub fn select(&self, dim: i64, index: i64) -> Viewed {
        let d = self.dim(dim, "select")?;
        let size = self.sizes[d];
        if index < -size || index >= size {
            return Err(ShapeError::index(format!(
                "select(): index {index} out of range for tensor of size {:?} at dimension {d}",
                &self.sizes[..]
            )));
        }
        let mut out = self.keep(|k| k != d);
        out.advance(if index < 0 { index + size } else { index }, self.strides[d]);
        Ok(out)
    }

    /// `slice(dim, start, end, step)`
    ///
    /// # Errors
    /// Fails for no dimensions, for one that there is not, and for a step that is not positive.
    pub fn slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Viewed {
        if self.sizes.is_empty() {
            return Err(ShapeError::index("slice() cannot be applied to a 0-dim tensor."));
        }
        let d = wrap_dim(dim, self.rank())?;
        if step <= 0 {
            return Err(ShapeError::runtime("slice step must be positive"));
        }
        let size = self.sizes[d];
        let place = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let start = place(start.unwrap_or(0)).clamp(0, size);
        let end = place(end.unwrap_or(i64::MAX)).clamp(start, size);
        let mut out = self.clone();
        out.advance(start, self.strides[d]);
        out.sizes[d] = (end - start).saturating_add(step - 1) / step;
        out.strides[d] = self.strides[d].wrapping_mul(step);
        Ok(out)
    }

    /// `narrow(dim, start, length)`
    ///
    /// # Errors
    /// Fails for no dimensions, for one that there is not, for a negative length, and for what lies outside.
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Viewed {
        if self.sizes.is_empty() {
            return Err(ShapeError::runtime("narrow() cannot be applied to a 0-dim tensor."));
        }
        let d = wrap_dim(dim, self.rank())?;
        let size = self.sizes[d];
        if length < 0 {
            return Err(ShapeError::runtime("narrow(): length must be non-negative."));
        }
        if start < -size || start > size {
            return Err(ShapeError::index(format!(
                "start out of range (expected to be in range of [{}, {size}], but got {start})",
                -size
            )));
        }
        let start = if start < 0 { start + size } else { start };
        if start > size - length {
            return Err(ShapeError::runtime(format!(
                "start ({start}) + length ({length}) exceeds dimension size ({size})."
            )));
        }
        self.slice(dim, Some(start), Some(start + length), 1)
    }

    /// `diagonal(offset, dim1, dim2)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not, and where both are the same.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Viewed {
        let (a, b) = (wrap_dim(dim1, self.rank())?, wrap_dim(dim2, self.rank())?);
        if a == b {
            return Err(ShapeError::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
        }
        let (below, right) = if offset >= 0 { (0, offset) } else { (offset.saturating_neg(), 0) };
        let length = (self.sizes[a].saturating_sub(below)).min(self.sizes[b].saturating_sub(right)).max(0);
        let mut out = self.keep(|d| d != a && d != b);
        if length > 0 {
            out.advance(below.max(right), self.strides[if right > 0 { b } else { a }]);
        }
        out.sizes.push(length);
        out.strides.push(self.strides[a].saturating_add(self.strides[b]));
        Ok(out)
    }

    /// `unfold(dimension, size, step)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not, for a size that it has not, and for a step that is not positive.
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Viewed {
        let d = wrap_dim(dim, self.rank())?;
        if step <= 0 {
            return Err(ShapeError::runtime(format!("step is {step} but must be > 0")));
        }
        let (whole, stride) = if self.sizes.is_empty() { (1, 1) } else { (self.sizes[d], self.strides[d]) };
        if size < 0 {
            return Err(ShapeError::runtime(format!("size is {size} but must be >= 0")));
        }
        if size > whole {
            return Err(ShapeError::runtime(format!(
                "maximum size for tensor at dimension {d} is {whole} but size is {size}"
            )));
        }
        let mut out = self.clone();
        if let Some(s) = out.sizes.get_mut(d) {
            *s = (whole - size) / step + 1;
            out.strides[d] = step.wrapping_mul(stride);
        }
        out.sizes.push(size);
        out.strides.push(stride);
        Ok(out)
    }

    /// `split(sizes, dim)`, one view each.
    ///
    /// # Errors
    /// Fails for no dimensions, for one that there is not, and for sizes that are negative or not its sum.
    pub fn split(&self, sizes: &[i64], dim: i64) -> Result<Vec<OwnedView>, ShapeError> {
        let d = self.dim(dim, "split")?;
        let whole = self.sizes[d];
        if sizes.iter().any(|&s| s < 0) || sizes.iter().fold(0i64, |sum, &s| sum.saturating_add(s)) != whole {
            return Err(ShapeError::runtime(format!(
                "split_with_sizes expects split_sizes to sum exactly to {whole} (input tensor's size at dimension \
                 {d}), but got split_sizes={sizes:?}"
            )));
        }
        let mut start = 0;
        let part = |&length: &i64| {
            start += length;
            self.narrow(dim, start - length, length)
        };
        sizes.iter().map(part).collect()
    }

    /// `as_strided(size, stride, offset)`
    ///
    /// # Errors
    /// Fails for negative sizes or strides, and where there are not as many of one as of the other.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Viewed {
        if sizes.len() != strides.len() {
            return Err(ShapeError::runtime("mismatch in length of strides and shape"));
        }
        if strides.iter().chain(sizes).any(|&s| s < 0) {
            return Err(ShapeError::runtime(format!(
                "as_strided: Negative strides are not supported at the moment, got strides: {strides:?}"
            )));
        }
        Ok(OwnedView { dtype: self.dtype, sizes: sizes.into(), strides: strides.into(), offset })
    }
}

/// Sizes with one -1 resolved for this many elements.
///
/// # Errors
/// Fails for sizes that do not fit `numel` or are negative, for several -1, and for one that could be anything.
pub fn infer_size(sizes: &[i64], numel: i64) -> Result<Dims, ShapeError> {
    let mut out: Dims = sizes.into();
    let mut unknown = None;
    let mut product = 1i64;
    for (i, &s) in sizes.iter().enumerate() {
        match s {
            -1 if unknown.is_some() => return Err(ShapeError::runtime("only one dimension can be inferred")),
            -1 => unknown = Some(i),
            s if s < 0 => return Err(ShapeError::runtime(format!("invalid shape dimension {s}"))),
            s => product = product.saturating_mul(s),
        }
    }
    if let Some(i) = unknown
        && product > 0
        && numel % product == 0
    {
        out[i] = numel / product;
    } else if unknown.is_some() && product == 0 && numel == 0 {
        return Err(ShapeError::runtime(format!(
            "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 can be \
             any value and is ambiguous"
        )));
    } else if unknown.is_some() || product != numel {
        return Err(ShapeError::runtime(format!("shape '{sizes:?}' is invalid for input of size {numel}")));
    }
    Ok(out)
}

/// Strides that show the same elements in the same order under other sizes, if there are any.
pub fn view_strides(old: &[i64], strides: &[i64], new: &[i64]) -> Option<Dims> {
    if old.contains(&0) {
        return Some(if old == new { strides.into() } else { crate::layout::contiguous_strides(new) });
    }
    if old.is_empty() {
        return Some(Dims::from_elem(1, new.len()));
    }
    let mut out = Dims::from_elem(0, new.len());
    let mut at = new.len();
    let mut base = *strides.last()?;
    let (mut chunk, mut filled) = (1i64, 1i64);
    for d in (0..old.len()).rev() {
        chunk = chunk.saturating_mul(old[d]);
        let ends = d == 0 || (old[d - 1] != 1 && strides[d - 1] != chunk.saturating_mul(base));
        if !ends {
            continue;
        }
        while at > 0 && (filled < chunk || new[at - 1] == 1) {
            at -= 1;
            out[at] = filled.saturating_mul(base);
            filled = filled.saturating_mul(new[at]);
        }
        if filled != chunk {
            return None;
        }
        if d > 0 {
            base = strides[d - 1];
            (chunk, filled) = (1, 1);
        }
    }
    (at == 0).then_some(out)
}

fn all_of_self(call: &Call<'_>) -> Viewed {
    Ok(OwnedView::of(call.need(0)?))
}

/// The view of a view operator's first argument that the rest of its arguments, from `from` on, say.
fn viewed(call: &Call<'_>, base: &str, from: usize) -> Viewed {
    viewed_of(call, all_of_self(call)?, base, from)
}

/// As [`viewed`], of a tensor that shows this.
fn viewed_of(call: &Call<'_>, whole: OwnedView, base: &str, from: usize) -> Viewed {
    let ints = || call.ints(from).unwrap_or_default();
    let optional = |i: usize| call.ints(i).and_then(|v| v.first().copied());
    match base {
        "alias" | "detach" | "lift" | "lift_fresh" | "positive" => Ok(whole),
        "view" | "_unsafe_view" => whole.view(&ints()),
        "_reshape_alias" | "as_strided" => whole.as_strided(&ints(), &call.ints(from + 1).unwrap_or_default(), 0),
        "expand" => whole.expand(&ints()),
        "permute" => whole.permute(&ints()),
        "transpose" => whole.transpose(call.int(from, 0), call.int(from + 1, 1)),
        "t" => whole.t(),
        "squeeze" => match call.ints(from) {
            Some(dims) => whole.squeeze_dims(&dims),
            None => Ok(whole.squeeze()),
        },
        "unsqueeze" => whole.unsqueeze(call.int(from, 0)),
        "select" => whole.select(call.int(from, 0), call.int(from + 1, 0)),
        "slice" => whole.slice(call.int(from, 0), optional(from + 1), optional(from + 2), call.int(from + 3, 1)),
        "narrow" => whole.narrow(call.int(from, 0), call.int(from + 1, 0), call.int(from + 2, 0)),
        "diagonal" => whole.diagonal(call.int(from, 0), call.int(from + 1, 0), call.int(from + 2, 1)),
        "unfold" => whole.unfold(call.int(from, 0), call.int(from + 1, 0), call.int(from + 2, 0)),
        other => Err(ShapeError::runtime(format!("{other} is no view"))),
    }
}

/// A view, by the operator's name; its offset does not show in its layout.
///
/// # Errors
/// Fails where the operator is no view, the first argument no tensor, and as the [`OwnedView`]'s method does.
pub fn view(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    one(viewed(call, call.short_op(), 1)?.layout())
}

/// `positive(self)`: booleans have no sign.
///
/// # Errors
/// As [`view`]; also for booleans.
pub fn positive(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    if call.need(0)?.dtype() == crate::dtype::DType::Bool {
        return Err(ShapeError::runtime("The `+` operator, on a bool tensor is not supported."));
    }
    view(call)
}

/// A row-major copy of a view: `view_copy`, `slice_copy` and their like.
///
/// # Errors
/// As [`view`]; also for a dimension of `narrow_copy` that there is not.
pub fn copy(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let op = call.short_op();
    if op == "narrow_copy" && call.int(1, 0) >= call.need(0)?.rank() as i64 {
        return Err(ShapeError::runtime(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.",
        ));
    }
    let shown = viewed(call, op.strip_suffix("_copy").unwrap_or(op), 1)?;
    one(Layout::contiguous(shown.dtype, &shown.sizes))
}

/// `slice_scatter(self, src, ...)` and its like: `self` with the view replaced by `src`, which has the view's sizes.
///
/// # Errors
/// As [`view`]; also where `src` is not of the view's sizes, and for a negative offset of `as_strided_scatter`.
pub fn scatter(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let op = call.short_op();
    let shown = viewed(call, op.strip_suffix("_scatter").unwrap_or(op), 2)?;
    if op == "as_strided_scatter" && call.int(4, 0) < 0 {
        return Err(ShapeError::runtime("as_strided_scatter: storage_offset must be non-negative"));
    }
    let (x, src) = (call.need(0)?, call.need(1)?);
    if src.sizes() != &shown.sizes[..] {
        return Err(ShapeError::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
            src.sizes(),
            &shown.sizes[..]
        )));
    }
    one(if x.strides().contains(&0) { empty_like(x, None) } else { Layout::strided(x.dtype(), x.sizes(), x.strides()) })
}

/// `select_backward(grad, input_sizes, ...)` and its like: row-major zeros with the view replaced.
///
/// # Errors
/// As [`view`], of these sizes; also for a negative one, and where the gradient does not broadcast to the view.
pub fn backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let sizes = call.ints(1).unwrap_or_default();
    if sizes.iter().any(|&s| s < 0) {
        return Err(ShapeError::runtime(format!(
            "Trying to create tensor with negative dimension {}: {:?}",
            sizes.iter().min().copied().unwrap_or_default(),
            &sizes[..]
        )));
    }
    let grad = call.need(0)?;
    let op = call.short_op();
    if op == "unfold_backward" && call.int(4, 1) <= 0 {
        let message = format!("step is {} but must be > 0", call.int(4, 1));
        return Err(ShapeError { class: super::ErrorClass::Value, message });
    }
    let input = Layout::contiguous(grad.dtype(), &sizes);
    let shown = viewed_of(call, OwnedView::of(&input), op.strip_suffix("_backward").unwrap_or(op), 2)?;
    if op == "unfold_backward" {
        super::checks::sizes_are("grad", grad, &shown.sizes)?;
    }
    super::checks::expands(grad, &shown.sizes)?;
    one(input)
}

fn parts(parts: Vec<OwnedView>, copied: bool) -> NewResults {
    let layout = |part: OwnedView| if copied { Layout::contiguous(part.dtype, &part.sizes) } else { part.layout() };
    parts.into_iter().map(|part| Some(layout(part))).collect()
}

/// `split(self, split_size, dim)`, also `_copy`.
///
/// # Errors
/// As [`OwnedView::split`]; also for a `split_size` that is negative, or 0 where there is something to split.
pub fn split(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let whole = all_of_self(call)?;
    let dim = call.int(2, 0);
    let (size, length) = (call.int(1, 1), whole.sizes.get(whole.dim(dim, "split")?).copied().unwrap_or(1));
    if size < 0 || (size == 0 && length != 0) {
        return Err(ShapeError::runtime(format!(
            "split expects split_size be non-negative, but got split_size={size}"
        )));
    }
    let count = if size == 0 { 1 } else { length.saturating_add(size - 1).div_euclid(size).max(1) };
    let sizes: Vec<i64> = (0..count).map(|i| if size == 0 { 0 } else { size.min(length - i * size) }).collect();
    Ok(parts(whole.split(&sizes, dim)?, call.short_op().ends_with("_copy")))
}

/// `split_with_sizes(self, split_sizes, dim)`, also `_copy`.
///
/// # Errors
/// As [`OwnedView::split`].
pub fn split_with_sizes(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let whole = all_of_self(call)?;
    let sizes = call.ints(1).unwrap_or_default();
    Ok(parts(whole.split(&sizes, call.int(2, 0))?, call.short_op().ends_with("_copy")))
}

/// `unbind(self, dim)`, also `_copy`.
///
/// # Errors
/// Fails for no dimensions, and for one that there is not.
pub fn unbind(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let whole = all_of_self(call)?;
    if whole.sizes.is_empty() {
        return Err(ShapeError {
            class: ErrorClass::Index,
            message: "Dimension specified as 0 but tensor has no dimensions".into(),
        });
    }
    let dim = call.int(1, 0);
    let count = whole.sizes[wrap_dim(dim, whole.sizes.len())?];
    let selected = (0..count).map(|i| whole.select(dim, i)).collect::<Result<_, _>>()?;
    Ok(parts(selected, call.short_op().ends_with("_copy")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_exist_where_strides_do() {
        assert_eq!(view_strides(&[2, 3], &[3, 1], &[6]).as_deref(), Some(&[1][..]));
        assert_eq!(view_strides(&[2, 3], &[1, 2], &[6]), None);
        assert_eq!(view_strides(&[2, 3, 4], &[24, 4, 1], &[2, 12]).as_deref(), Some(&[24, 1][..]));
        assert_eq!(view_strides(&[4], &[2], &[2, 1, 2]).as_deref(), Some(&[4, 4, 2][..]));
        assert_eq!(infer_size(&[2, -1], 6).expect("sizes")[..], [2, 3]);
        assert!(infer_size(&[-1, -1], 6).is_err() && infer_size(&[4], 6).is_err() && infer_size(&[0, -1], 0).is_err());
    }

    #[test]
    fn slices_clamp_as_in_python() {
        let whole = OwnedView::of(&Layout::contiguous(crate::dtype::DType::F32, &[5, 2]));
        let s = whole.slice(0, Some(-3), None, 2).expect("a slice");
        assert_eq!((&s.sizes[..], &s.strides[..], s.offset), (&[2, 2][..], &[4, 1][..], 4));
        assert_eq!(whole.slice(0, Some(9), Some(2), 1).expect("a slice").sizes[0], 0);
        assert!(whole.slice(0, None, None, 0).is_err() && whole.select(0, 5).is_err());
    }
}
