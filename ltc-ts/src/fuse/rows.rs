//! The pointwise operators that kernels compute as libtorch does.
//!
//! A kernel computes the expression of the operator's row in the operator table, argument by argument in the dtype that is
//! said here (for [`Compute::Float`], integers count as the default float), and converts the result to what was recorded.
//! In-place and `out=` forms follow from the functional one.

use ltc_ir::table;

/// What an expression computes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compute {
    /// The promoted dtype of all operands, numbers included.
    Promoted,
    /// The promoted dtype of the tensors.
    Tensors,
    /// The same, but a float.
    Float,
    /// Each operand as it is: the expression only moves values.
    Moved,
    /// The promoted dtype of the tensors, where that is a float; otherwise the operator is not fused.
    FloatOnly,
}
use Compute::{Float, FloatOnly, Moved, Promoted, Tensors};

/// All operators, by the names of their functional forms, sorted.
const ROWS: &[(&str, Compute)] = &[
    ("_to_copy", Moved),
    ("abs", Promoted),
    ("add.Scalar", Promoted),
    ("add.Tensor", Promoted),
    ("addcdiv", FloatOnly),
    ("addcmul", FloatOnly),
    ("bitwise_and.Scalar", Promoted),
    ("bitwise_and.Tensor", Promoted),
    ("bitwise_not", Promoted),
    ("bitwise_or.Scalar", Promoted),
    ("bitwise_or.Tensor", Promoted),
    ("bitwise_xor.Scalar", Promoted),
    ("bitwise_xor.Tensor", Promoted),
    ("ceil", FloatOnly),
    ("clamp", Promoted),
    ("clamp.Tensor", Promoted),
    ("clamp_max", Promoted),
    ("clamp_max.Tensor", Promoted),
    ("clamp_min", Promoted),
    ("clamp_min.Tensor", Promoted),
    ("clone", Moved),
    ("copy", Moved),
    ("div.Scalar", Float),
    ("div.Tensor", Float),
    ("eq.Scalar", Promoted),
    ("eq.Tensor", Promoted),
    ("erf", Float),
    ("exp", Float),
    ("fill.Scalar", Moved),
    ("fill.Tensor", Moved),
    ("floor", FloatOnly),
    ("ge.Scalar", Promoted),
    ("ge.Tensor", Promoted),
    ("gelu", FloatOnly),
    ("gelu_backward", FloatOnly),
    ("gt.Scalar", Promoted),
    ("gt.Tensor", Promoted),
    ("hardtanh", FloatOnly),
    ("le.Scalar", Promoted),
    ("le.Tensor", Promoted),
    ("leaky_relu", FloatOnly),
    ("leaky_relu_backward", FloatOnly),
    ("lerp.Scalar", FloatOnly),
    ("lerp.Tensor", FloatOnly),
    ("log", Float),
    ("logical_and", Promoted),
    ("logical_not", Promoted),
    ("logical_or", Promoted),
    ("logical_xor", Promoted),
    ("lt.Scalar", Promoted),
    ("lt.Tensor", Promoted),
    ("masked_fill.Scalar", Moved),
    ("masked_fill.Tensor", Moved),
    ("maximum", Promoted),
    ("minimum", Promoted),
    ("mul.Scalar", Promoted),
    ("mul.Tensor", Promoted),
    ("ne.Scalar", Promoted),
    ("ne.Tensor", Promoted),
    ("neg", Promoted),
    ("pow.Tensor_Scalar", FloatOnly),
    ("reciprocal", Float),
    ("relu", Tensors),
    ("round", FloatOnly),
    ("rsqrt", Float),
    ("rsub.Scalar", Promoted),
    ("sigmoid", Float),
    ("sigmoid_backward", FloatOnly),
    ("silu", FloatOnly),
    ("silu_backward", FloatOnly),
    ("sqrt", Float),
    ("sub.Scalar", Promoted),
    ("sub.Tensor", Promoted),
    ("tanh", Float),
    ("tanh_backward", FloatOnly),
    ("threshold", Tensors),
    ("threshold_backward", Tensors),
    ("trunc", FloatOnly),
    ("where.self", Moved),
    ("zero", Moved),
];

/// The operators that can run in fused kernels, by the names of their functional forms (`add.Tensor`), each with its
/// expression over its arguments' names.
pub fn fusable_operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    let expression = |name: &str| table::find(&format!("aten::{name}")).and_then(|row| row.expr);
    ROWS.iter().filter_map(move |(name, _)| Some((*name, expression(name)?)))
}

/// The table's row of an operator, by its short name (without `aten::`), functional or in place, and what it computes in.
pub(super) fn find(short_name: &str) -> Option<(&'static table::Row, Compute)> {
    let (base, overload) = short_name.split_once('.').unwrap_or((short_name, ""));
    // `__iand__` and the like have rows of their own names only.
    let base = if base.ends_with("__") { base } else { base.strip_suffix('_').unwrap_or(base) };
    let name: std::borrow::Cow<'_, str> =
        if overload.is_empty() { base.into() } else { format!("{base}.{overload}").into() };
    let at = ROWS.binary_search_by(|row| row.0.cmp(&name)).ok()?;
    Some((table::find(&format!("aten::{name}"))?, ROWS[at].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_have_expressions() {
        assert!(ROWS.is_sorted_by(|x, y| x.0 < y.0));
        assert_eq!(fusable_operators().count(), ROWS.len());
        assert_eq!(find("add_.Tensor").map(|r| r.0.name), Some("aten::add.Tensor"));
        assert!(find("gelu").is_some() && find("__ior__.Scalar").is_none());
    }
}
