//! Gradients of operators that are more than pointwise: a table for each family of operators, of a rule per operator.

mod loss;
mod movement;
mod norm;
mod pool;
mod product;
mod reduce;
mod view;

use std::sync::LazyLock;

use ltc_ir::OpCode;
use rustc_hash::FxHashMap;

use super::saved::{Gradients, Saved};
use crate::{Error, LazyTensor};

/// Gradients of a call's operands.
type Rule = fn(&Saved<'_>) -> Result<Gradients, Error>;

const FAMILIES: [&[(OpCode, Rule)]; 7] =
    [reduce::RULES, product::RULES, pool::RULES, norm::RULES, loss::RULES, movement::RULES, view::RULES];

/// Gradients of a call's operands, by the rule of its operator.
pub(super) fn gradients(s: &Saved<'_>) -> Result<Gradients, Error> {
    static RULES: LazyLock<FxHashMap<OpCode, Rule>> =
        LazyLock::new(|| FAMILIES.into_iter().flatten().copied().collect());
    RULES.get(&s.code()).map_or_else(|| none(s), |rule| rule(s))
}

fn none(s: &Saved<'_>) -> Result<Gradients, Error> {
    Err(Error::NoGradient(format!(
        "the derivative for '{}' is not implemented: add `grad` to its row of ltc-ir/ops.toml, or a rule to \
         ltc-core/src/autodiff/rules",
        s.code().row().name
    )))
}

/// Zeros of the argument's sizes with the gradient added where indices say.
fn scattered(x: &LazyTensor, dim: i64, index: &LazyTensor, g: &LazyTensor) -> Result<LazyTensor, Error> {
    LazyTensor::zeros(x.device(), x.sizes(), g.dtype())?.scatter_add(dim, index, g)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_one_rule_or_expressions_in_its_row() {
        let mut codes: Vec<OpCode> = FAMILIES.into_iter().flatten().map(|(code, _)| *code).collect();
        codes.sort_unstable();
        let twice: Vec<_> = codes.windows(2).filter(|two| two[0] == two[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        let besides: Vec<_> = codes.iter().filter(|code| !code.row().gradients.is_empty()).collect();
        assert!(besides.is_empty(), "the rules of these are never asked, their rows have expressions: {besides:?}");
    }
}
