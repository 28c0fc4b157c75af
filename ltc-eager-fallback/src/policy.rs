//! Which operators run eagerly by choice, and what to do about those that must.
//!
//! An operator *must* run eagerly when it cannot be recorded; the recording kernel knows, and
//! [`ltc_ir::FallbackReason`] says why. It *may* run eagerly when the user forces it: to compare results, or to
//! get around an operator that misbehaves.

/// Operators the user forces out of the recording. The default forces none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Forced(Vec<Pattern>);

/// An operator to force, as the user wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    /// `aten::add.Tensor`: this overload.
    Overload(String),
    /// `aten::add`: all overloads.
    Operator(String),
    /// `add`: all overloads, in any namespace.
    Short(String),
}

/// A word in a list of operators that cannot name one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` names no operator: write `add`, `aten::add` (all overloads) or `aten::add.Tensor` (one)")]
pub struct BadPattern(pub String);

impl Forced {
    /// Operators by name; empty words are ignored.
    ///
    /// # Errors
    /// Fails for a word that names no operator.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Forced, BadPattern> {
        let words = words.into_iter().map(str::trim).filter(|w| !w.is_empty());
        words.map(pattern).collect::<Result<_, _>>().map(Forced)
    }

    /// The list as the user wrote it.
    pub fn words(&self) -> Vec<String> {
        let word = |p: &Pattern| match p {
            Pattern::Overload(name) | Pattern::Operator(name) | Pattern::Short(name) => name.clone(),
        };
        self.0.iter().map(word).collect()
    }

    /// Whether this operator (`aten::add.Tensor`) is never to be recorded.
    pub fn contains(&self, op: &str) -> bool {
        let operator = op.split('.').next().unwrap_or(op);
        let short = operator.rsplit("::").next().unwrap_or(operator);
        self.0.iter().any(|p| match p {
            Pattern::Overload(name) => name == op,
            Pattern::Operator(name) => name == operator,
            Pattern::Short(name) => name == short,
        })
    }
}

fn pattern(word: &str) -> Result<Pattern, BadPattern> {
    let is_name = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let (path, overload) = match word.split_once('.') {
        Some((path, overload)) => (path, Some(overload)),
        None => (word, None),
    };
    let ok = match path.split_once("::") {
        Some((namespace, name)) => is_name(namespace) && is_name(name) && overload.is_none_or(is_name),
        None => is_name(path) && overload.is_none(),
    };
    match (ok, path.contains("::"), overload.is_some()) {
        (false, ..) => Err(BadPattern(word.into())),
        (true, true, true) => Ok(Pattern::Overload(word.into())),
        (true, true, false) => Ok(Pattern::Operator(word.into())),
        (true, false, _) => Ok(Pattern::Short(word.into())),
    }
}

/// What each operator that must run eagerly depends on, and what a program can do to need none of it.
const ADVICE: &[(&str, &str)] = &[
    (
        "_local_scalar_dense",
        "A host value is asked for (`item`, `double_value`, `int64_value`): read values less often",
    ),
    (
        "_to_sparse",
        "The result has as many values as there are nonzero elements: make a sparse tensor once, outside of the step",
    ),
    ("_unique2", "The result has as many elements as there are distinct values"),
    ("bincount", "The result is as long as the largest value: `scatter_add` into a length of your own is recorded"),
    ("equal", "A host bool is asked for: compare with `eq` and reduce with `all` to stay on the device"),
    (
        "index",
        "A mask selects as many elements as it has true ones: `where` with the mask, or integer indices, is recorded",
    ),
    ("is_nonzero", "A host bool is asked for: `where` selects by value on the device"),
    ("masked_select", "The result has as many elements as the mask has true ones: `where` with the mask is recorded"),
    ("nonzero", "The result has as many rows as there are nonzero elements: `where` with the condition is recorded"),
    ("repeat_interleave", "The result is as long as the sum of the repeats: give equal repeats as a number"),
    ("unique_consecutive", "The result has as many elements as there are runs of values"),
    ("unique_dim", "The result has as many slices as there are distinct ones"),
];

/// What a program can do to need an operator's eager call less, or why it cannot be recorded; one sentence.
pub fn advice(op: &str) -> Option<&'static str> {
    let operator = op.split('.').next().unwrap_or(op);
    let short = operator.strip_prefix("aten::")?;
    ADVICE.iter().find(|(name, _)| *name == short).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_forced_by_overload_name_or_short_name() {
        let list = Forced::new(["aten::add.Tensor", " aten::mul", "relu"]).unwrap();
        let forced = |op| list.contains(op);
        assert!(forced("aten::add.Tensor") && !forced("aten::add.Scalar") && !forced("aten::add_.Tensor"));
        assert!(forced("aten::mul.Tensor") && forced("aten::mul.out") && !forced("aten::mul_.Tensor"));
        assert!(forced("aten::relu") && forced("custom::relu.out") && !forced("aten::relu6"));
    }

    #[test]
    fn empty_words_force_nothing() {
        assert_eq!(Forced::new(["", " "]).unwrap(), Forced::default());
        assert!(!Forced::default().contains("aten::add.Tensor"));
    }

    #[test]
    fn words_that_name_no_operator_are_errors() {
        for bad in ["add.Tensor", "aten::", "::add", "aten::add.", "aten add", "a::b::c"] {
            assert_eq!(Forced::new(["aten::mul", bad]), Err(BadPattern(bad.into())), "{bad}");
        }
    }

    #[test]
    fn advice_is_sorted_unique_and_covers_overloads() {
        assert!(ADVICE.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(advice("aten::index.Tensor"), advice("aten::index.Tensor_out"));
        assert!(advice("aten::nonzero").is_some_and(|a| a.contains("nonzero")));
        assert_eq!(advice("aten::add.Tensor"), None);
    }
}
