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

static RULES: LazyLock<FxHashMap<OpCode, Rule>> = LazyLock::new(|| FAMILIES.into_iter().flatten().copied().collect());

/// Whether there is a rule for this operator.
pub(super) fn has(code: OpCode) -> bool {
    RULES.contains_key(&code)
}

/// Gradients of a call's operands, by the rule of its operator.
pub(super) fn gradients(s: &Saved<'_>) -> Result<Gradients, Error> {
    RULES.get(&s.code()).map_or_else(|| none(s), |rule| rule(s))
}

fn none(s: &Saved<'_>) -> Result<Gradients, Error> {
    Err(Error::NoGradient(format!(
        "the derivative for '{}' is not implemented: add `grad` to its row of ltc-ir/ops.toml, or a rule to \
         ltc-core/src/autodiff/rules",
        s.code().row().name
    )))
}

/// Why a call has no gradient, although its operator has.
fn refused(s: &Saved<'_>, when: &str) -> Error {
    Error::NoGradient(format!("{}: the derivative is not implemented {when}", s.code().row().name))
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

    const SOURCES: [&str; 7] = [
        include_str!("loss.rs"),
        include_str!("movement.rs"),
        include_str!("norm.rs"),
        include_str!("pool.rs"),
        include_str!("product.rs"),
        include_str!("reduce.rs"),
        include_str!("view.rs"),
    ];

    /// The text of a rule as its table has it, with those of the functions that it calls.
    fn whole(rule: &str, functions: &[(&str, &str)]) -> String {
        let mut text = rule.to_owned();
        let mut left: Vec<_> = functions.to_vec();
        // Methods of tensors have the names of operators, too.
        let is_called = |text: &str, name: &str| {
            let call = format!("{name}(s");
            let mut calls = text.match_indices(&call);
            text.trim() == name || calls.any(|(at, _)| text[..at].ends_with([' ', '(', '{', '\n']))
        };
        while let Some(at) = left.iter().position(|(name, _)| is_called(&text, name)) {
            let (_, body) = left.remove(at);
            text = format!("{text} {body}");
        }
        text
    }

    /// Strings of a text that are one word.
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split('"').skip(1).step_by(2).filter(|word| !word.contains(' '))
    }

    /// A name that no argument has would be a panic where somebody wants the gradient.
    #[test]
    fn rules_name_arguments_of_their_operators() {
        let (mut rules, mut names) = (0, 0);
        for source in SOURCES {
            let (table, code) = source.split_once("] = &[").and_then(|(_, s)| s.split_once("\n];")).expect("a table");
            let functions: Vec<_> = code.split("\nfn ").skip(1).filter_map(|f| f.split_once('(')).collect();
            for entry in table.split("(O::").skip(1) {
                let (operator, rule) = entry.split_once(", ").expect("an operator and its rule");
                let rule = rule.trim_end().trim_end_matches("),");
                let row = ltc_ir::table::rows().iter().find(|row| format!("{:?}", row.code) == operator);
                let arguments = row.expect(operator).arguments;
                let text = whole(rule, &functions);
                for name in words(&text) {
                    assert!(arguments.iter().any(|a| a.name == name), "{operator} has no argument `{name}`");
                    names += 1;
                }
                rules += 1;
            }
        }
        assert_eq!(rules, RULES.len());
        assert!(names > 2 * rules, "{names} names of {rules} rules: they are no longer found");
    }
}
