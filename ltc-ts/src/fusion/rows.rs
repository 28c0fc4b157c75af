//! The pointwise operators that kernels compute as libtorch does: rows of the operator table with an expression whose
//! functions are operations of kernels.
//!
//! A kernel computes the expression, argument by argument in the dtype that the row says ([`Compute`]), and converts
//! the result to what was recorded. In-place and `out=` forms follow from the functional one.

use ltc_ir::{
    Expr,
    table::{self, Compute, Row},
};

use super::expression;

/// The rows that fused kernels may compute, with their expressions.
fn fusable(row: &Row) -> Option<(&'static str, Compute)> {
    Some((row.expr?, row.compute.filter(|_| row.no_fuse.is_none())?))
}

/// The operators that can run in fused kernels, by the names of their functional forms (`add.Tensor`), each with its
/// expression over its arguments' names: all whose functions kernels have, but for those whose rows say why not.
pub fn fusable_operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    table::rows().iter().filter_map(|row| {
        let (text, _) = fusable(row)?;
        let names: Vec<&str> = row.arguments.iter().map(|a| a.name).collect();
        let expr = Expr::parse(text, &names).ok()?;
        let is_unknown = |e: &Expr| matches!(e, Expr::Call(f, _) if !expression::is_known(*f));
        (!expr.any(&is_unknown)).then_some((row.name.strip_prefix("aten::")?, text))
    })
}

/// The table's row of an operator, by its short name (without `aten::`), functional, in place or `out=`, and what it
/// computes in.
pub(super) fn find(short_name: &str) -> Option<(&'static Row, Compute)> {
    let (base, overload) = short_name.split_once('.').unwrap_or((short_name, ""));
    // `__iand__` and the like have rows of their own names only.
    let base = if base.ends_with("__") { base } else { base.strip_suffix('_').unwrap_or(base) };
    let dot = if overload.is_empty() { "" } else { "." };
    let row = match overload.ends_with("out") {
        true => table::functional(&format!("aten::{short_name}"))?.row(),
        false => table::find(&format!("aten::{base}{dot}{overload}"))?,
    };
    Some((row, fusable(row)?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_all_their_forms() {
        assert_eq!(find("add_.Tensor").map(|r| r.0.name), Some("aten::add.Tensor"));
        assert_eq!(find("mul.out").map(|r| r.0.name), Some("aten::mul.Tensor"));
        assert_eq!(find("pow.Tensor_Scalar_out").map(|r| r.0.name), Some("aten::pow.Tensor_Scalar"));
        assert!(find("gelu").is_some() && find("__ior__.Scalar").is_none() && find("mm").is_none());
        let all: Vec<&str> = fusable_operators().map(|(name, _)| name).collect();
        assert!(all.contains(&"sin") && all.contains(&"add.Tensor") && !all.contains(&"lgamma"), "{all:?}");
        assert!(all.len() > 130, "{}", all.len());
    }
}
