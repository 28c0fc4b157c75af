//! Symbolic graphs from text: symbols, and expressions where an integer may stand.

use super::{ParseError, Parsed, Parser, Unexpected};
use crate::{
    layout::{Dims, contiguous_strides},
    symbolic::{Dim, Symbolic, contiguous},
    text::print::is_op_char,
};

impl Symbolic {
    /// Reads the text form of a symbolic graph; whether its assumptions make sense, [`Symbolic::verify`] says.
    ///
    /// ```
    /// use ltc_ir::Symbolic;
    ///
    /// let text = "symbols(s0 = 8) where s0 > 1 \
    ///     graph(%p0: f32[s0, 3]) { %0: f32[s0, 3] = aten::relu(%p0) return %0 }";
    /// let symbolic = Symbolic::parse(text)?;
    /// symbolic.verify()?;
    /// assert_eq!(Symbolic::parse(&symbolic.to_string())?, symbolic);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails where the text is no symbolic graph; says where, and what was expected.
    pub fn parse(text: &str) -> Result<Symbolic, ParseError> {
        let mut p = Parser::new(text);
        p.symbolic().map_err(|Unexpected { at, expected }| p.error(at, expected))
    }
}

impl Parser<'_> {
    /// A size, a stride or an integer argument.
    pub(super) fn int(&mut self) -> Parsed<i64> {
        if self.symbols.is_empty() { self.plain_int() } else { Ok(self.dim()?.1) }
    }

    /// An integer that may be an expression, and its value.
    fn dim(&mut self) -> Parsed<(Dim, i64)> {
        self.skip();
        let start = self.at;
        let dim = self.expression()?;
        let value = self.place(start, &dim)?;
        Ok((dim, value))
    }

    /// Notes the next integer; its value.
    fn place(&mut self, at: usize, dim: &Dim) -> Parsed<i64> {
        self.ints += 1;
        if dim.as_constant().is_none() {
            self.places.push((self.ints - 1, dim.clone()));
        }
        dim.value(&self.symbols).ok_or_else(|| Unexpected { at, expected: "an integer at these symbols".into() })
    }

    /// `[ "-" ] term { ( "+" | "-" ) term } | "(" the same ")" "/" digits`, the division also without brackets.
    fn expression(&mut self) -> Parsed<Dim> {
        let start = self.at;
        let overflow = || Unexpected { at: start, expected: "an expression of 64-bit integers".into() };
        let brackets = self.eat("(");
        let mut negative = self.eat("-");
        let mut sum = Dim::constant(0);
        loop {
            let sign = Dim::constant(if negative { -1 } else { 1 });
            let term = self.product(&sign)?;
            sum = sum.add(&term).ok_or_else(overflow)?;
            negative = match (self.eat("+"), self.peek() == Some(b'-') && self.eat("-")) {
                (true, _) => false,
                (_, true) => true,
                _ => break,
            };
        }
        if brackets {
            self.expect(")")?;
        }
        if self.eat("/") {
            let by = self.plain_int()?;
            sum = sum.div(by).ok_or_else(overflow)?;
        }
        Ok(sum)
    }

    /// `784`, `s0`, `784*s0*s1`, times `sign`.
    fn product(&mut self, sign: &Dim) -> Parsed<Dim> {
        let mut product = sign.clone();
        loop {
            let known = self.symbols.len();
            let factor = self.token("an integer or a symbol", is_op_char, |t| match t.strip_prefix('s') {
                Some(digits) => digits.parse::<u8>().ok().filter(|&s| usize::from(s) < known).map(Dim::symbol),
                None => t.parse().ok().map(Dim::constant),
            })?;
            let fits = |d: Option<Dim>| d.ok_or(Unexpected { at: self.at, expected: "a smaller product".into() });
            product = fits(product.mul(&factor))?;
            if !self.eat("*") {
                return Ok(product);
            }
        }
    }

    /// `symbols(s0 = 8) where s0 > 1` and the graph.
    fn symbolic(&mut self) -> Parsed<Symbolic> {
        self.expect_word("symbols")?;
        self.expect("(")?;
        self.list(")", |p| {
            p.expect_word(&format!("s{}", p.symbols.len()))?;
            p.expect("=")?;
            let value = p.plain_int()?;
            p.symbols.push(value);
            if p.symbols.len() > 255 { p.fail("fewer symbols") } else { Ok(()) }
        })?;
        let mut above_one = Vec::new();
        if self.eat_word("where") {
            loop {
                above_one.push(self.expression()?);
                self.expect(">")?;
                if self.plain_int()? != 1 {
                    return self.fail("`> 1`");
                }
                if !self.eat(",") {
                    break;
                }
            }
        }
        let graph = self.graph()?;
        let places = std::mem::take(&mut self.places);
        match Symbolic::assemble(graph.into(), places, above_one) {
            Some(symbolic) => Ok(symbolic),
            None => self.fail("an integer that is just the symbol, for every symbol"),
        }
    }

    /// Row-major strides, noted as expressions where the sizes are: those since `places[first]`, integer `from`.
    pub(super) fn contiguous(&mut self, first: usize, from: u32, sizes: &[i64]) -> Parsed<Dims> {
        if !self.symbols.is_empty() {
            let mut dims: Vec<Dim> = sizes.iter().map(|&s| Dim::constant(s)).collect();
            for (at, dim) in &self.places[first..] {
                dims[(at - from) as usize] = dim.clone();
            }
            let strides = contiguous(&dims);
            let strides = strides.ok_or(Unexpected { at: self.at, expected: "a smaller layout".into() })?;
            for dim in &strides {
                self.place(self.at, dim)?;
            }
        }
        Ok(contiguous_strides(sizes))
    }
}
