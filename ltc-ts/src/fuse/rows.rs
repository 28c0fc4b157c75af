//! The pointwise operators, each with its formula.
//!
//! Arguments are `a`, `b`, `c`, ... in schema order. A formula computes in the dtype its operands promote to (for
//! [`Compute::Float`], integers count as the default float), and its result is converted to what was recorded. In-place
//! and `out=` forms follow from the functional one. Formulas keep the order of operations of libtorch's CPU kernels
//! (`aten/src/ATen/native/cpu/{BinaryOps,UnaryOps,PointwiseOps,Activation,Lerp}Kernel.cpp`), so that plain arithmetic is
//! equal in every bit.

/// What a formula computes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compute {
    /// The promoted dtype of all operands, numbers included.
    Promoted,
    /// The promoted dtype of the tensors.
    Tensors,
    /// The same, but a float.
    Float,
    /// Each operand as it is: the formula only moves values.
    Moved,
    /// The promoted dtype of the tensors, where that is a float; otherwise the operator is not fused.
    FloatOnly,
}
use Compute::{Float, FloatOnly, Moved, Promoted, Tensors};

/// One operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Name with overload, as of the functional form.
    pub(super) name: &'static str,
    pub(super) compute: Compute,
    pub(super) formula: &'static str,
}

const fn row(name: &'static str, compute: Compute, formula: &'static str) -> Row {
    Row { name, compute, formula }
}

/// All rows, sorted by name.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("_to_copy", Moved, "a"),
    row("abs", Promoted, "abs(a)"),
    row("add.Scalar", Promoted, "fma(b, one(c), a)"),
    row("add.Tensor", Promoted, "fma(b, one(c), a)"),
    row("addcdiv", FloatOnly, "a + one(d) * b / c"),
    row("addcmul", FloatOnly, "fma(one(d) * b, c, a)"),
    row("bitwise_and.Scalar", Promoted, "and(a, b)"),
    row("bitwise_and.Tensor", Promoted, "and(a, b)"),
    row("bitwise_not", Promoted, "not(a)"),
    row("bitwise_or.Scalar", Promoted, "or(a, b)"),
    row("bitwise_or.Tensor", Promoted, "or(a, b)"),
    row("bitwise_xor.Scalar", Promoted, "xor(a, b)"),
    row("bitwise_xor.Tensor", Promoted, "xor(a, b)"),
    row("ceil", FloatOnly, "ceil(a)"),
    row("clamp", Promoted, "min(c, max(b, a))"),
    row("clamp.Tensor", Promoted, "min(max(a, b), c)"),
    row("clamp_max", Promoted, "min(b, a)"),
    row("clamp_max.Tensor", Promoted, "min(a, b)"),
    row("clamp_min", Promoted, "max(b, a)"),
    row("clamp_min.Tensor", Promoted, "max(a, b)"),
    row("clone", Moved, "a"),
    row("copy", Moved, "b"),
    row("div.Scalar", Float, "a / b"),
    row("div.Tensor", Float, "a / b"),
    row("eq.Scalar", Promoted, "a == b"),
    row("eq.Tensor", Promoted, "a == b"),
    row("erf", Float, "erf(a)"),
    row("exp", Float, "exp(a)"),
    row("fill.Scalar", Moved, "b"),
    row("fill.Tensor", Moved, "b"),
    row("floor", FloatOnly, "floor(a)"),
    row("ge.Scalar", Promoted, "a >= b"),
    row("ge.Tensor", Promoted, "a >= b"),
    row("gt.Scalar", Promoted, "a > b"),
    row("gt.Tensor", Promoted, "a > b"),
    row("hardtanh", FloatOnly, "min(c, max(b, a))"),
    row("le.Scalar", Promoted, "a <= b"),
    row("le.Tensor", Promoted, "a <= b"),
    row("leaky_relu", FloatOnly, "select(a > 0, a, a * b)"),
    row("leaky_relu_backward", FloatOnly, "select(b > 0, a, a * c)"),
    row("lerp.Scalar", FloatOnly, "fma(select(abs(c) < 0.5, c, c - 1), b - a, select(abs(c) < 0.5, a, b))"),
    row("lerp.Tensor", FloatOnly, "fma(select(abs(c) < 0.5, c, c - 1), b - a, select(abs(c) < 0.5, a, b))"),
    row("log", Float, "log(a)"),
    row("logical_and", Promoted, "and(a != 0, b != 0)"),
    row("logical_not", Promoted, "a == 0"),
    row("logical_or", Promoted, "or(a != 0, b != 0)"),
    row("logical_xor", Promoted, "xor(a != 0, b != 0)"),
    row("lt.Scalar", Promoted, "a < b"),
    row("lt.Tensor", Promoted, "a < b"),
    row("masked_fill.Scalar", Moved, "select(b, c, a)"),
    row("masked_fill.Tensor", Moved, "select(b, c, a)"),
    row("maximum", Promoted, "max(a, b)"),
    row("minimum", Promoted, "min(a, b)"),
    row("mul.Scalar", Promoted, "a * b"),
    row("mul.Tensor", Promoted, "a * b"),
    row("ne.Scalar", Promoted, "a != b"),
    row("ne.Tensor", Promoted, "a != b"),
    row("neg", Promoted, "-a"),
    row("pow.Tensor_Scalar", FloatOnly, "pow(a, b)"),
    row("reciprocal", Float, "1 / a"),
    row("relu", Tensors, "max(0, a)"),
    row("round", FloatOnly, "round(a)"),
    row("rsqrt", Float, "1 / sqrt(a)"),
    row("rsub.Scalar", Promoted, "fma(a, -one(c), b)"),
    row("sigmoid", Float, "1 / (1 + exp(-a))"),
    row("sigmoid_backward", FloatOnly, "a * (1 - b) * b"),
    row("silu", FloatOnly, "a / (1 + exp(-a))"),
    row("silu_backward", FloatOnly, "a * (1 / (1 + exp(-b))) * (1 + b * (1 - 1 / (1 + exp(-b))))"),
    row("sqrt", Float, "sqrt(a)"),
    row("sub.Scalar", Promoted, "fma(b, -one(c), a)"),
    row("sub.Tensor", Promoted, "fma(b, -one(c), a)"),
    row("tanh", Float, "tanh(a)"),
    row("tanh_backward", FloatOnly, "a * fma(-b, b, 1)"),
    row("threshold", Tensors, "select(a <= b, c, a)"),
    row("threshold_backward", Tensors, "select(b <= c, 0, a)"),
    row("trunc", FloatOnly, "trunc(a)"),
    row("where.self", Moved, "select(a, b, c)"),
    row("zero", Moved, "0"),
];

/// The rows whose formula depends on a string argument: name, the string, the rest.
#[rustfmt::skip]
pub(super) const VARIANTS: &[(&str, Row)] = &[
    ("none", row("gelu", FloatOnly, "a * 0.5 * (1 + erf(a * 0.7071067811865476))")),
    ("tanh", row("gelu", FloatOnly, "0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * (a * a * a))))")),
    ("none", row("gelu_backward", FloatOnly,
        "a * fma(b, exp(b * b * -0.5) * 0.3989422804014327, 0.5 * (1 + erf(b * 0.7071067811865476)))")),
    ("tanh", row("gelu_backward", FloatOnly,
        "a * fma(0.5 * b * (1 - tanh(0.7978845608028654 * (b + 0.044715 * (b * b * b))) * tanh(0.7978845608028654 * (b + 0.044715 * (b * b * b)))), \
         0.7978845608028654 * (1 + 0.134145 * (b * b)), 0.5 * (1 + tanh(0.7978845608028654 * (b + 0.044715 * (b * b * b)))))")),
];

/// The operators that can run in fused kernels, by the names of their functional forms (`add.Tensor`), each with its
/// formula over its arguments `a`, `b`, ... in schema order.
pub fn fusable_operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().chain(VARIANTS.iter().map(|(_, row)| row)).map(|row| (row.name, row.formula))
}

/// The row of an operator, by its short name (without `aten::`), functional or in place.
pub(super) fn find(short_name: &str, text: Option<&str>) -> Option<Row> {
    let (base, overload) = short_name.split_once('.').unwrap_or((short_name, ""));
    // `__iand__` and the like have rows of their own names only.
    let base = if base.ends_with("__") { base } else { base.strip_suffix('_').unwrap_or(base) };
    if let Some(text) = text {
        return VARIANTS.iter().find(|(t, row)| *t == text && row.name == base).map(|(_, row)| *row);
    }
    let name: std::borrow::Cow<'_, str> =
        if overload.is_empty() { base.into() } else { format!("{base}.{overload}").into() };
    ROWS.binary_search_by(|row| row.name.cmp(&name)).ok().map(|i| ROWS[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_parse() {
        assert!(ROWS.is_sorted_by(|x, y| x.name < y.name));
        for row in ROWS.iter().chain(VARIANTS.iter().map(|(_, row)| row)) {
            super::super::formula::parse(row.formula).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        }
        assert_eq!(find("add_.Tensor", None).map(|r| r.name), Some("add.Tensor"));
        assert_eq!(find("gelu", Some("tanh")).map(|r| r.name), Some("gelu"));
        assert!(find("gelu", None).is_none() && find("__ior__.Scalar", None).is_none());
    }
}
