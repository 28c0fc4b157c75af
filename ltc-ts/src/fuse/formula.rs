//! Formulas: what kernels compute of a node. Those of pointwise operators are read from the operator table
//! (`expression.rs`), those that fold are written so: `sum(exp(a - amax(a))) / count`.
//!
//! Letters are arguments in schema order, numbers are written as such. Besides `+ - * /`, comparisons and parentheses
//! there are the functions of [`FUNCTIONS`], with `select(c, x, y)`. An argument left out (`None`) drops out of the sum or
//! product it stands in. `sum`, `amax` and `amin` go over all elements of a row, of which there are `count`.
//! `name = formula;` before the formula gives a part of it a name.

use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::kernels::{Builder, Code, Lane, Val};

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    /// The argument.
    Argument(usize),
    /// The argument, a number that is nearly always one.
    One(usize),
    /// The number.
    Number(f64),
    /// How many elements a row has.
    Count,
    /// An operation.
    Apply(Code, Vec<Formula>),
}

/// Functions by name.
const FUNCTIONS: &[(&str, Code)] = &[
    ("abs", Code::Abs),
    ("amax", Code::AMax),
    ("amin", Code::AMin),
    ("and", Code::And),
    ("ceil", Code::Ceil),
    ("erf", Code::Erf),
    ("exp", Code::Exp),
    ("floor", Code::Floor),
    ("fma", Code::Fma),
    ("log", Code::Log),
    ("max", Code::Max),
    ("min", Code::Min),
    ("not", Code::Not),
    ("or", Code::Or),
    ("pow", Code::Pow),
    ("round", Code::Round),
    ("select", Code::Select),
    ("sqrt", Code::Sqrt),
    ("sum", Code::Sum),
    ("tanh", Code::Tanh),
    ("trunc", Code::Trunc),
    ("xor", Code::Xor),
];

/// The formula of this text, parsed once.
pub(super) fn parsed(text: &'static str) -> Option<&'static Formula> {
    static KNOWN: LazyLock<RwLock<FxHashMap<&'static str, Option<&'static Formula>>>> = LazyLock::new(RwLock::default);
    if let Some(known) = KNOWN.read().get(text) {
        return *known;
    }
    let formula = parse(text).ok().map(|f| &*Box::leak(Box::new(f)));
    *KNOWN.write().entry(text).or_insert(formula)
}

/// Parses a formula; the error says where.
pub(super) fn parse(text: &str) -> Result<Formula, String> {
    let mut parser = Parser { rest: text, names: Vec::new() };
    while let Some((name, rest)) = named(parser.rest) {
        parser.rest = rest;
        let formula = parser.comparison()?;
        parser.expect(";")?;
        parser.names.push((name, formula));
    }
    let formula = parser.comparison()?;
    if parser.rest.is_empty() { Ok(formula) } else { Err(format!("unexpected `{}`", parser.rest)) }
}

/// The name that is given to what follows, if one is.
fn named(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    let is_name = name.len() > 1 && name.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_name && !rest.starts_with('=')).then_some((name, rest.trim_start()))
}

struct Parser<'a> {
    rest: &'a str,
    names: Vec<(&'a str, Formula)>,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let taken = rest.strip_prefix(token);
        self.rest = taken.unwrap_or(rest).trim_start();
        taken.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("expected `{token}` before `{}`", self.rest)) }
    }

    fn comparison(&mut self) -> Result<Formula, String> {
        let left = self.sum()?;
        for (token, code, swapped) in [
            ("==", Code::Eq, false),
            ("!=", Code::Ne, false),
            ("<=", Code::Le, false),
            (">=", Code::Le, true),
            ("<", Code::Lt, false),
            (">", Code::Lt, true),
        ] {
            if self.take(token) {
                let right = self.sum()?;
                let operands = if swapped { vec![right, left] } else { vec![left, right] };
                return Ok(Formula::Apply(code, operands));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Formula, String> {
        let mut left = self.product()?;
        loop {
            let code = match () {
                () if self.take("+") => Code::Add,
                () if self.take("-") => Code::Sub,
                () => return Ok(left),
            };
            left = Formula::Apply(code, vec![left, self.product()?]);
        }
    }

    fn product(&mut self) -> Result<Formula, String> {
        let mut left = self.factor()?;
        loop {
            let code = match () {
                () if self.take("*") => Code::Mul,
                () if self.take("/") => Code::Div,
                () => return Ok(left),
            };
            left = Formula::Apply(code, vec![left, self.factor()?]);
        }
    }

    fn factor(&mut self) -> Result<Formula, String> {
        if self.take("-") {
            return Ok(match self.factor()? {
                Formula::Number(n) => Formula::Number(-n),
                other => Formula::Apply(Code::Neg, vec![other]),
            });
        }
        if self.take("(") {
            let inner = self.comparison()?;
            return self.expect(")").map(|()| inner);
        }
        let word = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let end = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if let Ok(number) = name.parse::<f64>() {
            return Ok(Formula::Number(number));
        }
        if let [letter @ b'a'..=b'z'] = name.as_bytes() {
            return Ok(Formula::Argument(usize::from(letter - b'a')));
        }
        if name == "count" {
            return Ok(Formula::Count);
        }
        if let Some((_, formula)) = self.names.iter().find(|(n, _)| *n == name) {
            return Ok(formula.clone());
        }
        self.expect("(")?;
        let mut arguments = vec![self.comparison()?];
        while self.take(",") {
            arguments.push(self.comparison()?);
        }
        self.expect(")")?;
        let code = FUNCTIONS.iter().find(|(n, _)| *n == name).ok_or(format!("no function `{name}`"))?.1;
        if code.arity() != arguments.len() {
            return Err(format!("`{name}` takes {} operands", code.arity()));
        }
        Ok(Formula::Apply(code, arguments))
    }
}

/// What a letter stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// Left out.
    Absent,
    /// A value, in its own lane.
    Value(Val),
    /// A runtime number: word and dtype, and how it is rounded before use.
    Number(u32, ltc_ir::DType, Option<Code>),
}

impl Formula {
    /// Whether this argument is a number that is nearly always one.
    pub(super) fn takes_one(&self, argument: usize) -> bool {
        match self {
            Formula::One(i) => *i == argument,
            Formula::Apply(_, arguments) => arguments.iter().any(|f| f.takes_one(argument)),
            Formula::Argument(_) | Formula::Number(_) | Formula::Count => false,
        }
    }

    /// Whether it is a number that is nearly always one, or its opposite.
    fn is_usually_one(&self) -> bool {
        match self {
            Formula::One(_) => true,
            Formula::Apply(Code::Neg, x) => x[0].is_usually_one(),
            _ => false,
        }
    }

    /// How many operations it has; a product and a sum are two, though they may be rounded as one.
    pub(super) fn operations(&self) -> usize {
        match self {
            Formula::Apply(Code::Fma, arguments) => 2 + arguments.iter().map(Formula::operations).sum::<usize>(),
            Formula::Apply(_, arguments) => 1 + arguments.iter().map(Formula::operations).sum::<usize>(),
            _ => 0,
        }
    }

    /// Whether all operations are what IEEE 754 says, here and in libtorch. Its square roots come from a vector library.
    pub(super) fn is_exact(&self) -> bool {
        let inexact = |code: &Code| match code {
            Code::FMod => false,
            Code::Pow | Code::Sqrt | Code::Sum => true,
            code => code.is_function(),
        };
        match self {
            Formula::Apply(code, arguments) => !inexact(code) && arguments.iter().all(Formula::is_exact),
            _ => true,
        }
    }

    /// Writes the formula into a body, computing in `lane`. `None` if it has no meaning for these operands.
    pub(super) fn build(&self, b: &mut Builder, operands: &[Operand], lane: Lane) -> Option<Val> {
        match self {
            Formula::Number(n) => Some(b.constant(*n, lane)),
            Formula::Count => Some(b.constant(b.count as f64, lane)),
            Formula::Argument(i) => match *operands.get(*i)? {
                Operand::Absent => None,
                Operand::Value(v) => Some(b.cast(v, lane)),
                Operand::Number(word, dtype, round) => {
                    let number = b.number(word, dtype, lane);
                    Some(round.map_or(number, |code| b.op(code, &[number])))
                }
            },
            // A list form may leave it out.
            Formula::One(i) if operands.get(*i).is_none() => Some(b.constant(1.0, lane)),
            Formula::One(i) => match *operands.get(*i)? {
                Operand::Number(word, dtype, round) => {
                    let number = b.usually_one(word, dtype, lane);
                    Some(round.map_or(number, |code| b.op(code, &[number])))
                }
                _ => None,
            },
            Formula::Apply(code, arguments) => {
                let absent = |f: &Formula| matches!(f, Formula::Argument(i) if matches!(operands.get(*i), Some(Operand::Absent)));
                if let (Code::Add | Code::Mul, [x, y]) = (code, &arguments[..])
                    && (absent(x) || absent(y))
                {
                    return if absent(x) { y } else { x }.build(b, operands, lane);
                }
                let mut values = [Val(0); 3];
                for (i, argument) in arguments.iter().enumerate() {
                    let condition = *code == Code::Select && i == 0;
                    values[i] =
                        argument.build(b, operands, if condition { argument.condition_lane(lane) } else { lane })?;
                    // A condition may be a comparison, which is a Bool already, or an argument, which is made one.
                    if condition {
                        values[i] = b.cast(values[i], Lane::Bool);
                    }
                }
                let values = &mut values[..arguments.len()];
                if let (Code::Fma, Some(round)) = (code, b.products)
                    && arguments[..2].iter().any(Formula::is_usually_one)
                {
                    let product = b.op(Code::Mul, &values[..2]);
                    let product = b.op(round, &[product]);
                    return Some(b.op(Code::Add, &[values[2], product]));
                }
                match code {
                    Code::Select => {}
                    _ if code.folds() => values[0] = b.cast(values[0], lane),
                    // Bits and comparisons of comparisons.
                    _ => {
                        let last = b.lane(values[values.len() - 1]);
                        values.iter_mut().for_each(|v| *v = b.cast(*v, last));
                    }
                }
                Some(b.op(*code, values))
            }
        }
    }

    /// The lane a condition is written in.
    fn condition_lane(&self, lane: Lane) -> Lane {
        if matches!(self, Formula::Argument(_)) { Lane::Bool } else { lane }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_and_errors() {
        use Formula::*;
        let (a, b, c) = (Argument(0), Argument(1), Argument(2));
        let product = Apply(Code::Div, vec![Apply(Code::Mul, vec![Argument(3), b.clone()]), c.clone()]);
        assert_eq!(parse("a + d * b / c"), Ok(Apply(Code::Add, vec![a.clone(), product])));
        assert_eq!(parse("a > -2"), Ok(Apply(Code::Lt, vec![Number(-2.0), a.clone()])));
        assert_eq!(parse("a - b - c"), Ok(Apply(Code::Sub, vec![Apply(Code::Sub, vec![a, b]), c])));
        assert_eq!(parse("two = a + b; two * two"), parse("(a + b) * (a + b)"));
        assert_eq!(parse("sum(a) / count"), Ok(Apply(Code::Div, vec![Apply(Code::Sum, vec![Argument(0)]), Count])));
        for wrong in ["two = a", "two * a", "a +", "a b", "max(a)", "frob(a)", "(a", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
