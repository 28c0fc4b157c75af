//! The operator table: one row per operator the system knows.
//!
//! The rows are data (`ltc-ir/ops.toml`), checked and turned into constants by `cargo xtask codegen`. Operators without
//! a row are recorded all the same, from their dispatcher schema, with shapes from libtorch's own meta functions.

mod defaults;
mod generated;

pub use defaults::shown;
pub use generated::OpCode;

use crate::{
    props::{OpClass, Props},
    rules::{Rule, numbers::NumberRule},
};

/// What kind of value an argument takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// `Tensor`
    Tensor,
    /// `Tensor[]`
    Tensors,
    /// `Tensor?[]`
    OptionalTensors,
    /// `Scalar`
    Scalar,
    /// `Scalar[]`
    Scalars,
    /// `int`, `SymInt`
    Int,
    /// `int[]`
    Ints,
    /// `bool`
    Bool,
    /// `bool[]`
    Bools,
    /// `float`
    Float,
    /// `float[]`
    Floats,
    /// `str`
    Str,
    /// `ScalarType`
    DType,
    /// `Layout`
    Layout,
    /// `Device`
    Device,
    /// `MemoryFormat`
    MemoryFormat,
    /// `Generator`
    Generator,
    /// What no operator of the table has: storages, streams, dimension names.
    Other,
}

/// One argument of a schema.
#[derive(Clone, Copy, Debug)]
pub struct ArgSpec {
    /// Name.
    pub name: &'static str,
    /// Kind of value.
    pub kind: ArgKind,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether the operator writes it.
    pub written: bool,
    /// Default, in the schema's words.
    pub default: Option<&'static str>,
}

const fn arg(
    name: &'static str,
    kind: ArgKind,
    optional: bool,
    written: bool,
    default: Option<&'static str>,
) -> ArgSpec {
    ArgSpec { name, kind, optional, written, default }
}

/// What a pointwise operator's expression is computed in, on its way to the recorded result. Most rules of shapes say
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compute {
    /// The promoted dtype of all operands, numbers included.
    Promoted,
    /// The promoted dtype of the tensors.
    Tensors,
    /// The promoted dtype of all operands, or the default float where that is an integer.
    Float,
    /// The promoted dtype of the tensors, which must be a float.
    FloatOnly,
    /// The same, but no half: libtorch rounds in between.
    WideFloat,
    /// Each operand is taken as it is: the expression only moves values.
    Moved,
}

/// Which dimensions of its first tensor an operator reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// All.
    All,
    /// The one this argument names.
    Dim(usize),
    /// Those this argument lists; all if it lists none.
    Dims(usize),
    /// As many of the last ones as this argument lists.
    Last(usize),
    /// All but dimension 1, the channels.
    Channels,
}

/// What an operator computes that reduces dimensions: expressions with [`sum`](crate::expr::Func::Sum) and the like,
/// over the arguments' names.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    /// The dimensions.
    pub over: Over,
    /// What must hold of integers and booleans of the call for this to be what it computes.
    pub when: Option<&'static str>,
    /// Arguments that are written, by position, and what to.
    pub writes: &'static [(usize, &'static str)],
    /// One expression for each new result.
    pub results: &'static [&'static str],
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Qualified name with overload: `aten::add.Tensor`.
    pub name: &'static str,
    /// The row's number.
    pub code: OpCode,
    /// Class.
    pub class: OpClass,
    /// Properties beyond the schema's.
    pub props: Props,
    /// Layouts of the new results.
    pub rule: Rule,
    /// Which numbers of a call it refuses, if any.
    pub numbers: Option<NumberRule>,
    /// Whether the rule's answer, not libtorch's meta function's, is the CPU's.
    pub overrides: bool,
    /// What one element of a pointwise operator's result is, over the arguments' names (see [`crate::expr`]).
    pub expr: Option<&'static str>,
    /// What that is computed in.
    pub compute: Option<Compute>,
    /// Why fused kernels leave the operator out although they could compute its expression.
    pub no_fuse: Option<&'static str>,
    /// Why fused kernels do not give libtorch's bits although each of their operations does: `LTC_FUSION=exact` leaves
    /// it out.
    pub inexact: Option<&'static str>,
    /// What the operator computes, if it reduces dimensions and that is an expression.
    pub reduce: Option<Reduce>,
    /// Gradients by argument, over the arguments' names, `grad` and `result`.
    pub gradients: &'static [(&'static str, &'static str)],
    /// Arguments that these do not depend on although they do not name them, with the reason.
    pub gradients_without: &'static [(&'static str, &'static str)],
    /// The schema's arguments.
    pub arguments: &'static [ArgSpec],
    /// How many results the schema has.
    pub results: usize,
    /// The schema, as libtorch writes it.
    pub schema: &'static str,
}

/// All rows, sorted by name.
#[inline]
pub fn rows() -> &'static [Row] {
    generated::ROWS
}

/// The row of an operator.
pub fn find(name: &str) -> Option<&'static Row> {
    rows().binary_search_by(|r| r.name.cmp(name)).ok().map(|i| &rows()[i])
}

/// The functional operator whose in-place or out variant this is.
pub fn functional(name: &str) -> Option<OpCode> {
    let variants = generated::VARIANTS;
    variants.binary_search_by(|v| v.0.cmp(name)).ok().map(|i| variants[i].1)
}

/// The operator of the table that does with one tensor what a `_foreach_` operator does with each of a list:
/// `aten::add_.Tensor` for `aten::_foreach_add_.List`.
pub fn single_form(name: &str) -> Option<String> {
    let name = name.strip_prefix("aten::_foreach_")?;
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    let plain = base.trim_end_matches('_');
    let known = |overload: &str| find(&format!("aten::{plain}{overload}")).is_some();
    let overload = match overload {
        "List" | "Tensor" if known(".Tensor") => ".Tensor",
        "Scalar" | "ScalarList" if known(".Scalar") => ".Scalar",
        // Such as `addcmul`, whose only form takes a number.
        _ => "",
    };
    known(overload).then(|| format!("aten::{base}{overload}"))
}

/// Whether an operator says how elements compare, in the dtype that theirs promote to.
pub fn compares(name: &str) -> bool {
    let row = find(name).or_else(|| functional(name).map(OpCode::row));
    let expr = row.and_then(|row| row.expr?.strip_prefix("self ")?.strip_suffix(" other"));
    expr.is_some_and(|sign| ["==", "!=", "<", "<=", ">", ">="].contains(&sign))
}

/// Class and properties of an operator that the table knows, itself or by its functional variant.
pub(crate) fn describe(name: &str) -> Option<(OpClass, Props)> {
    let of = |name: &str| {
        let row = find(name).map(|row| (row.class, row.props));
        // A variant fails where its functional operator does.
        row.or_else(|| functional(name).map(|code| (code.row().class, code.row().props.only(Props::TOTAL))))
    };
    // So does an operator over lists, of which nothing else is known.
    of(name).or_else(|| {
        let (_, props) = of(&single_form(name)?)?;
        Some((OpClass::Generic, props.only(Props::TOTAL)))
    })
}

impl OpCode {
    /// The row.
    #[inline]
    pub fn row(self) -> &'static Row {
        &rows()[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;

    #[test]
    fn rows_are_sorted_and_their_codes_are_their_places() {
        assert!(rows().windows(2).all(|w| w[0].name < w[1].name));
        for (i, row) in rows().iter().enumerate() {
            assert_eq!(row.code as usize, i, "{}", row.name);
            assert!(find(row.name).is_some_and(|f| f.name == row.name));
        }
        assert!(generated::VARIANTS.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(functional("aten::mul_.Tensor"), Some(OpCode::MulTensor));
        assert_eq!(describe("aten::add.out").map(|d| d.0), Some(OpClass::Pointwise));
    }

    #[test]
    fn comparisons_are_told_from_other_operators() {
        let all = rows().iter().filter(|row| compares(row.name)).count();
        assert_eq!(all, 12, "six, with tensors and with numbers");
        assert!(compares("aten::gt_.Scalar") && compares("aten::eq.Tensor_out"));
        assert!(!compares("aten::masked_fill.Scalar") && !compares("aten::logical_and"));
    }

    #[test]
    fn operators_over_lists_have_single_forms() {
        for (list, single) in [
            ("aten::_foreach_add_.List", Some("aten::add_.Tensor")),
            ("aten::_foreach_mul.ScalarList", Some("aten::mul.Scalar")),
            ("aten::_foreach_addcdiv_.Tensor", Some("aten::addcdiv_")),
            ("aten::_foreach_sqrt", Some("aten::sqrt")),
            ("aten::_foreach_frobnicate", None),
            ("aten::add.Tensor", None),
        ] {
            assert_eq!(single_form(list).as_deref(), single, "{list}");
        }
    }

    #[test]
    fn expressions_and_gradients_parse_over_the_arguments() {
        for row in rows() {
            let names: Vec<&str> = row.arguments.iter().map(|a| a.name).collect();
            if let Some(e) = row.expr {
                Expr::parse(e, &names).unwrap_or_else(|e| panic!("{}: {e}", row.name));
            }
            if let Some(reduce) = row.reduce {
                let texts = reduce.writes.iter().map(|w| w.1).chain(reduce.results.iter().copied()).chain(reduce.when);
                for text in texts {
                    Expr::parse(text, &names).unwrap_or_else(|e| panic!("{}: {e}", row.name));
                }
                assert_eq!(reduce.results.len(), row.results, "{}", row.name);
            }
            let names: Vec<&str> = names.into_iter().chain(["grad", "result"]).collect();
            for (_, text) in row.gradients {
                Expr::parse(text, &names).unwrap_or_else(|e| panic!("{}: {e}", row.name));
            }
        }
    }
}
