//! Scalar expressions: what a pointwise operator computes for one element, as data.
//!
//! A row of the operator table says `self + alpha * other`, and everyone who needs to know reads it from there: fused
//! kernels, the reference backend, differentiation (a gradient is such an expression too). Operations stand in the
//! order in which libtorch's CPU kernels do them
//! (`aten/src/ATen/native/cpu/{BinaryOps,UnaryOps,PointwiseOps,Activation,Lerp}Kernel.cpp`), so that what is computed
//! by them has libtorch's bits. Names are the arguments of the operator's schema, besides those the reader adds, such
//! as `grad` and `result`.
//!
//! ```text
//! text    = { name "=" or ";" } or
//! or      = and { "||" and }              and  = compare { "&&" compare }
//! compare = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/") unary }
//! unary   = ("-" | "!") unary | number | name | name "(" [ or { "," or } ] ")" | "(" or ")"
//! ```
//!
//! `name = ... ;` gives a part a name, which stands for it in what follows.
//!
//! Arguments that are strings read as numbers: 0 for `none` or nothing, 1 for `trunc` and `tanh`, 2 for `floor`
//! (`mode`). Absent arguments are only read by `absent(x)`, and where it says that they are there.
//!
//! This file stands alone: `cargo xtask codegen` checks the table with the same parser.

use std::fmt;

macro_rules! functions {
    ($($variant:ident $name:literal $arity:literal $doc:literal;)*) => {
        /// What a node of an expression does with its operands.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Func {
            $(#[doc = $doc] $variant,)*
        }

        impl Func {
            /// All functions.
            pub const ALL: &[Func] = &[$(Func::$variant,)*];

            /// Name in the text form; operators have one too.
            pub const fn name(self) -> &'static str {
                match self { $(Func::$variant => $name,)* }
            }

            /// Number of operands.
            pub const fn arity(self) -> usize {
                match self { $(Func::$variant => $arity,)* }
            }
        }
    };
}

functions! {
    Add "add" 2 "`a + b`";
    Sub "sub" 2 "`a - b`";
    Mul "mul" 2 "`a * b`";
    Div "div" 2 "`a / b`, of floats.";
    Neg "neg" 1 "`-a`";
    Fma "fma" 3 "`a * b + c`, rounded once.";
    Lt "lt" 2 "`a < b`";
    Le "le" 2 "`a <= b`";
    Gt "gt" 2 "`a > b`";
    Ge "ge" 2 "`a >= b`";
    Eq "eq" 2 "`a == b`";
    Ne "ne" 2 "`a != b`";
    And "and" 2 "Both are not zero: `a && b`";
    Or "or" 2 "One is not zero: `a || b`";
    Not "not" 1 "Zero: `!a`";
    Where "where" 3 "The second where the first is not zero, the third elsewhere.";
    Max "max" 2 "The larger; NaN if one is.";
    Min "min" 2 "The smaller; NaN if one is.";
    FMax "fmax" 2 "The larger; the other if one is NaN.";
    FMin "fmin" 2 "The smaller; the other if one is NaN.";
    Pow "pow" 2 "Power.";
    Remainder "remainder" 2 "Remainder with the divisor's sign.";
    FMod "fmod" 2 "Remainder with the dividend's sign.";
    FloorDiv "floor_div" 2 "Quotient rounded down.";
    TruncDiv "trunc_div" 2 "Quotient rounded to zero.";
    BitAnd "bit_and" 2 "Bits of both.";
    BitOr "bit_or" 2 "Bits of either.";
    BitXor "bit_xor" 2 "Bits of one.";
    BitNot "bit_not" 1 "Bits turned; of a boolean its negation.";
    Shl "shl" 2 "Shift left.";
    Shr "shr" 2 "Arithmetic shift right.";
    Gcd "gcd" 2 "Greatest common divisor.";
    Lcm "lcm" 2 "Least common multiple.";
    Abs "abs" 1 "Magnitude.";
    Sign "sign" 1 "-1, 0 or 1; a complex number over its magnitude.";
    SignBit "signbit" 1 "Whether the sign bit is set.";
    CopySign "copysign" 2 "The first's magnitude with the second's sign.";
    NextAfter "nextafter" 2 "The next float towards the second.";
    Ceil "ceil" 1 "Rounded up.";
    Floor "floor" 1 "Rounded down.";
    Round "round" 1 "Rounded to nearest, ties to even.";
    Trunc "trunc" 1 "Rounded to zero.";
    Absent "absent" 1 "Whether an optional argument is absent; known when a call is compiled.";
    IsNan "isnan" 1 "Not a number.";
    IsInf "isinf" 1 "An infinity.";
    Sqrt "sqrt" 1 "Square root.";
    Rsqrt "rsqrt" 1 "One over the square root.";
    Reciprocal "reciprocal" 1 "One over it.";
    Exp "exp" 1 "e to the power.";
    Exp2 "exp2" 1 "2 to the power.";
    Expm1 "expm1" 1 "`exp(a) - 1`, exact near 0.";
    Log "log" 1 "Natural logarithm.";
    Log2 "log2" 1 "Logarithm to base 2.";
    Log10 "log10" 1 "Logarithm to base 10.";
    Log1p "log1p" 1 "`log(1 + a)`, exact near 0.";
    Sin "sin" 1 "Sine.";
    Cos "cos" 1 "Cosine.";
    Tan "tan" 1 "Tangent.";
    Asin "asin" 1 "Inverse sine.";
    Acos "acos" 1 "Inverse cosine.";
    Atan "atan" 1 "Inverse tangent.";
    Atan2 "atan2" 2 "Angle of the point (second, first).";
    Sinh "sinh" 1 "Hyperbolic sine.";
    Cosh "cosh" 1 "Hyperbolic cosine.";
    Tanh "tanh" 1 "Hyperbolic tangent.";
    Asinh "asinh" 1 "Inverse hyperbolic sine.";
    Acosh "acosh" 1 "Inverse hyperbolic cosine.";
    Atanh "atanh" 1 "Inverse hyperbolic tangent.";
    Hypot "hypot" 2 "Length of the vector of both.";
    Sigmoid "sigmoid" 1 "`1 / (1 + exp(-a))`";
    Erf "erf" 1 "Error function.";
    Erfc "erfc" 1 "Complement of the error function.";
    Erfinv "erfinv" 1 "Inverse error function.";
    Lgamma "lgamma" 1 "Logarithm of the gamma function's magnitude.";
    Digamma "digamma" 1 "Derivative of `lgamma`.";
    I0 "i0" 1 "Modified Bessel function of order 0.";
    Sum "sum" 1 "Sum over all elements that are reduced to one.";
    AMax "amax" 1 "The largest of them; NaN if one is.";
    AMin "amin" 1 "The smallest of them; NaN if one is.";
    Count "count" 0 "How many these are.";
}

/// An expression over named inputs, which are numbered by the list given to [`Expr::parse`].
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A literal; `true` when it was written without point or exponent and takes the inputs' dtype.
    Number(f64, bool),
    /// An input by number.
    Input(usize),
    /// A function of expressions.
    Call(Func, Vec<Expr>),
}

/// Why a text is no expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExprError {
    /// Where, in bytes.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at, self.message)
    }
}

impl std::error::Error for ExprError {}

impl Func {
    /// Whether it says something of all elements that are reduced to one.
    pub const fn reduces(self) -> bool {
        matches!(self, Func::Sum | Func::AMax | Func::AMin | Func::Count)
    }
}

impl Expr {
    /// The expression of a text over these names.
    ///
    /// # Errors
    /// Fails where the text is no expression, or names what is neither an argument nor a function.
    pub fn parse(text: &str, names: &[&str]) -> Result<Expr, ExprError> {
        let mut p = Parser { text, at: 0, names, parts: Vec::new(), depth: 0 };
        while let Some(name) = p.named() {
            let part = p.or()?;
            if !p.eat(";") {
                return Err(p.error("expected `;` behind what has a name"));
            }
            p.parts.push((name, part));
        }
        let e = p.or()?;
        p.space();
        if p.at < text.len() { Err(p.error("expected an operator or the end")) } else { Ok(e) }
    }

    /// Computes the expression: `input` and `number` make values, `apply` combines them. Stops at the first error.
    ///
    /// # Errors
    /// Fails with what the arithmetic given fails with.
    pub fn evaluate<V, E>(
        &self,
        input: &mut impl FnMut(usize) -> Result<V, E>,
        number: &mut impl FnMut(f64, bool) -> Result<V, E>,
        apply: &mut impl FnMut(Func, Vec<V>) -> Result<V, E>,
    ) -> Result<V, E> {
        match self {
            Expr::Number(x, integer) => number(*x, *integer),
            Expr::Input(i) => input(*i),
            Expr::Call(f, operands) => {
                let operands = operands.iter().map(|o| o.evaluate(input, number, apply)).collect::<Result<_, E>>()?;
                apply(*f, operands)
            }
        }
    }

    /// Whether this holds for it or some part of it.
    pub fn any(&self, holds: &impl Fn(&Expr) -> bool) -> bool {
        holds(self) || matches!(self, Expr::Call(_, operands) if operands.iter().any(|o| o.any(holds)))
    }

    /// Whether the expression reads this input.
    pub fn reads(&self, input: usize) -> bool {
        self.any(&|e| *e == Expr::Input(input))
    }
}

/// The number a string argument reads as.
pub fn mode(text: &str) -> Option<u8> {
    match text {
        "" | "none" => Some(0),
        "trunc" | "tanh" => Some(1),
        "floor" => Some(2),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a [&'a str],
    /// Parts that were given names.
    parts: Vec<(&'a str, Expr)>,
    depth: usize,
}

/// Nesting at which a text is refused instead of overflowing the stack.
const MAX_DEPTH: usize = 64;

impl<'a> Parser<'a> {
    fn error(&self, message: impl Into<String>) -> ExprError {
        ExprError { at: self.at, message: message.into() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// The name that is given to what follows, if one is.
    fn named(&mut self) -> Option<&'a str> {
        self.space();
        let (name, rest) = self.rest().split_once('=')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = name.trim_end();
        if rest.starts_with('=') || name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        self.at = self.text.len() - rest.len();
        Some(name)
    }

    fn chain(
        &mut self,
        operators: &[(&str, Func)],
        next: fn(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        let mut left = next(self)?;
        while let Some(&(_, f)) = operators.iter().find(|(token, _)| self.eat(token)) {
            left = Expr::Call(f, vec![left, next(self)?]);
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        let e = self.chain(&[("||", Func::Or)], |p| p.chain(&[("&&", Func::And)], Self::compare));
        self.depth -= 1;
        e
    }

    fn compare(&mut self) -> Result<Expr, ExprError> {
        const OPERATORS: [(&str, Func); 6] =
            [("<=", Func::Le), (">=", Func::Ge), ("==", Func::Eq), ("!=", Func::Ne), ("<", Func::Lt), (">", Func::Gt)];
        self.chain(&OPERATORS, |p| {
            p.chain(&[("+", Func::Add), ("-", Func::Sub)], |p| {
                p.chain(&[("*", Func::Mul), ("/", Func::Div)], Self::unary)
            })
        })
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        let e = if self.eat("-") {
            Expr::Call(Func::Neg, vec![self.unary()?])
        } else if self.eat("!") {
            Expr::Call(Func::Not, vec![self.unary()?])
        } else if self.eat("(") {
            let inner = self.or()?;
            self.close()?;
            inner
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(e)
    }

    fn close(&mut self) -> Result<(), ExprError> {
        if self.eat(")") { Ok(()) } else { Err(self.error("expected `)`")) }
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        self.space();
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        if word.is_empty() {
            return Err(self.error("expected a number, a name or `(`"));
        }
        let at = self.at;
        self.at += end;
        if !self.eat("(") {
            if let Some((_, part)) = self.parts.iter().find(|(name, _)| *name == word) {
                return Ok(part.clone());
            }
            let input = self.names.iter().position(|n| *n == word);
            let unknown = || format!("`{word}` is none of {}", self.names.join(", "));
            return input.map(Expr::Input).ok_or_else(|| ExprError { at, message: unknown() });
        }
        let Some(&f) = Func::ALL.iter().find(|f| f.name() == word) else {
            return Err(ExprError { at, message: format!("there is no function `{word}`") });
        };
        let mut operands = Vec::new();
        if !self.eat(")") {
            operands.push(self.or()?);
            while self.eat(",") {
                operands.push(self.or()?);
            }
            self.close()?;
        }
        if operands.len() != f.arity() {
            let message = format!("`{word}` takes {} operands, not {}", f.arity(), operands.len());
            return Err(ExprError { at, message });
        }
        Ok(Expr::Call(f, operands))
    }

    fn number(&mut self) -> Result<Expr, ExprError> {
        let rest = self.rest();
        let mut end = 0;
        let mut last = ' ';
        for c in rest.chars() {
            let exponent_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || exponent_sign) {
                break;
            }
            end += 1;
            last = c;
        }
        let text = &rest[..end];
        let value = text.parse().map_err(|_| self.error(format!("`{text}` is not a number")))?;
        let integer = text.chars().all(|c| c.is_ascii_digit());
        self.at += end;
        Ok(Expr::Number(value, integer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(text: &str, inputs: &[f64]) -> f64 {
        let names = &["self", "other", "alpha"][..inputs.len()];
        let e = Expr::parse(text, names).expect(text);
        let apply = |f: Func, v: Vec<f64>| {
            Ok::<f64, ()>(match f {
                Func::Add => v[0] + v[1],
                Func::Sub => v[0] - v[1],
                Func::Mul => v[0] * v[1],
                Func::Div => v[0] / v[1],
                Func::Neg => -v[0],
                Func::Lt => f64::from(v[0] < v[1]),
                Func::And => f64::from(v[0] != 0.0 && v[1] != 0.0),
                Func::Or => f64::from(v[0] != 0.0 || v[1] != 0.0),
                Func::Where => v[if v[0] != 0.0 { 1 } else { 2 }],
                Func::Exp => v[0].exp(),
                _ => f64::NAN,
            })
        };
        e.evaluate(&mut |i| Ok(inputs[i]), &mut |x, _| Ok(x), &mut { apply }).expect("a value")
    }

    #[test]
    fn operators_bind_as_they_should() {
        assert_eq!(compute("self + alpha * other", &[1.0, 2.0, 3.0]), 7.0);
        assert_eq!(compute("(self + alpha) * other", &[1.0, 2.0, 3.0]), 8.0);
        assert_eq!(compute("1 - 2 - 3", &[]), -4.0);
        assert_eq!(compute("-self * -2.5e-1", &[4.0]), 1.0);
        assert_eq!(compute("where(self < 0, exp(self) - 1, self)", &[2.0]), 2.0);
        assert_eq!(compute("self < 1 && 1 < 2 || 0", &[0.0]), 1.0);
    }

    #[test]
    fn parts_have_names() {
        assert_eq!(compute("twice = self + self; less = twice - other; less * twice", &[3.0, 1.0]), 30.0);
        let (short, long) = ("m = exp(self); where(m < 1, m, 1)", "where(exp(self) < 1, exp(self), 1)");
        assert_eq!(Expr::parse(short, &["self"]), Expr::parse(long, &["self"]));
    }

    #[test]
    fn mistakes_say_where_and_what() {
        for (text, message) in [
            ("self +", "at 6: expected a number"),
            ("self other", "expected an operator"),
            ("beta", "`beta` is none of self"),
            ("pow(self)", "takes 2 operands, not 1"),
            ("frobnicate(self)", "no function"),
            ("(self", "expected `)`"),
            ("1.2.3", "not a number"),
            ("m = self", "expected `;`"),
            ("m = self; n", "`n` is none of self"),
        ] {
            let e = Expr::parse(text, &["self"]).expect_err(text).to_string();
            assert!(e.contains(message), "{text}: {e}");
        }
        assert!(Expr::parse(&"(".repeat(100_000), &[]).is_err());
    }

    #[test]
    fn literals_know_whether_they_are_integers() {
        assert_eq!(Expr::parse("2", &[]), Ok(Expr::Number(2.0, true)));
        assert_eq!(Expr::parse("2.0", &[]), Ok(Expr::Number(2.0, false)));
        assert!(Expr::parse("self * 2", &["grad", "self"]).is_ok_and(|e| e.reads(1) && !e.reads(0)));
    }
}
