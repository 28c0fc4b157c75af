//! Gradients of views.

use ltc_ir::OpCode as O;

use super::Rule;
use crate::{
    Error,
    autodiff::saved::{Gradients, Saved, sum_to},
};

/// A rule for each.
pub(super) const RULES: &[(O, Rule)] = &[
    (O::View, |s| reshaped(s, &["size"])),
    (O::Squeeze, |s| reshaped(s, &[])),
    (O::SqueezeDims, |s| reshaped(s, &["dim"])),
    (O::Unsqueeze, |s| reshaped(s, &["dim"])),
    (O::Expand, expand),
    (O::TransposeInt, |s| s.only(s.grad(0)?.transpose(s.int("dim0")?, s.int("dim1")?))),
    (O::T, |s| s.only(s.grad(0)?.t())),
    (O::Permute, permute),
    (O::SelectInt, |s| s.only(s.grad(0)?.select_backward(s.need("self")?.sizes(), s.int("dim")?, s.int("index")?))),
    (O::SliceTensor, slice),
    (O::Diagonal, diagonal),
    (O::Unfold, unfold),
    (O::SelectBackward, select_backward),
    (O::SliceBackward, slice_backward),
];

/// Of a view that has its operand's elements in order, however these arguments lay them out.
fn reshaped(s: &Saved<'_>, arguments: &[&str]) -> Result<Gradients, Error> {
    s.does_not_depend_on(arguments);
    s.only(s.grad(0)?.reshape(s.need("self")?.sizes()))
}

/// The sizes are the gradient's.
fn expand(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["size", "implicit"]);
    s.only(sum_to(&s.grad(0)?, s.need("self")?.sizes()))
}

fn permute(s: &Saved<'_>) -> Result<Gradients, Error> {
    let x = s.need("self")?;
    let mut inverse = vec![0; x.dim()];
    for (i, &d) in s.ints("dims").unwrap_or_default().iter().enumerate() {
        inverse[ltc_ir::rules::wrap_dim(d, x.dim())?] = i as i64;
    }
    s.only(s.grad(0)?.permute(&inverse))
}

fn slice(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (sizes, dim) = (s.need("self")?.sizes(), s.int("dim")?);
    s.only(s.grad(0)?.slice_backward(sizes, dim, s.int("start")?, s.int("end")?, s.int("step")?))
}

fn diagonal(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (sizes, offset) = (s.need("self")?.sizes(), s.int("offset")?);
    s.only(s.grad(0)?.diagonal_backward(sizes, offset, s.int("dim1")?, s.int("dim2")?))
}

fn unfold(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (sizes, dim) = (s.need("self")?.sizes(), s.int("dimension")?);
    s.only(s.grad(0)?.unfold_backward(sizes, dim, s.int("size")?, s.int("step")?))
}

/// The sizes are the gradient's.
fn select_backward(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["input_sizes"]);
    s.only(s.grad(0)?.select(s.int("dim")?, s.int("index")?))
}

/// The sizes are the gradient's.
fn slice_backward(s: &Saved<'_>) -> Result<Gradients, Error> {
    s.does_not_depend_on(&["input_sizes"]);
    let (start, end) = (s.int("start")?, s.int("end")?);
    s.only(s.grad(0)?.slice(s.int("dim")?, Some(start), Some(end), s.int("step")?))
}
