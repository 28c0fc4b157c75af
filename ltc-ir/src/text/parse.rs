//! Text to graph.

use std::{fmt, sync::Arc};

use crate::{
    args::{ArgFlags, ArgReader, ArgWriter},
    dtype::DType,
    graph::{Graph, GraphBuilder, ValueId},
    layout::{Dims, Layout, LayoutRef, contiguous_strides},
    op::{Op, Props},
    scalar::Scalar,
    signature::Results,
    trace::SiteId,
};

/// Where and why a text is no graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What was expected or is wrong.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

type Parsed<T> = Result<T, ParseError>;

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    params: usize,
    results: usize,
}

/// Reads the text form (see [`crate::text`]). Never panics; memory is linear in the text.
///
/// Operators without a table row are interned without properties if nobody named them before.
pub fn parse(text: &str) -> Parsed<Graph> {
    let mut p = Parser { text: text.as_bytes(), at: 0, params: 0, results: 0 };
    let mut b = GraphBuilder::new();
    p.word("graph")?;
    p.token("(")?;
    while !p.eat(")") {
        if p.params > 0 {
            p.token(",")?;
        }
        let id = p.value()?;
        if id != ValueId::param(p.params) {
            return p.fail(format!("expected {}", ValueId::param(p.params)));
        }
        p.token(":")?;
        b.param(p.layout()?);
        p.params += 1;
    }
    p.token("{")?;
    loop {
        if p.eat_word("return") {
            break;
        }
        p.node(&mut b)?;
    }
    let mut outputs = Vec::new();
    while !p.eat("}") {
        if !outputs.is_empty() {
            p.token(",")?;
        }
        outputs.push(p.defined()?);
    }
    p.space();
    if p.at < p.text.len() {
        return p.fail("expected the end of the text".into());
    }
    Ok(b.finish(outputs))
}

impl Parser<'_> {
    fn fail<T>(&self, message: String) -> Parsed<T> {
        let before = &self.text[..self.at.min(self.text.len())];
        let line_start = before.iter().rposition(|&c| c == b'\n').map_or(0, |i| i + 1);
        let line = before.iter().filter(|&&c| c == b'\n').count() + 1;
        Err(ParseError { line, column: before.len() - line_start + 1, message })
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn token(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.fail(format!("expected `{token}`")) }
    }

    fn run(&mut self, accept: impl Fn(u8) -> bool) -> &str {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|&c| accept(c)) {
            self.at += 1;
        }
        // Accepted bytes are ASCII.
        std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default()
    }

    fn peek_word(&self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|c| !c.is_ascii_alphanumeric() && *c != b'_').unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    fn eat_word(&mut self, word: &str) -> bool {
        self.space();
        let found = self.peek_word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(format!("expected `{word}`")) }
    }

    fn value(&mut self) -> Parsed<ValueId> {
        self.token("%")?;
        let is_param = self.text.get(self.at) == Some(&b'p');
        self.at += usize::from(is_param);
        let digits = self.run(|c| c.is_ascii_digit()).to_owned();
        match digits.parse::<u32>() {
            Ok(i) if i < 1 << 31 => Ok(if is_param { ValueId::param(i as usize) } else { ValueId::result(i as usize) }),
            _ => self.fail("expected a value: `%0` or `%p0`".into()),
        }
    }

    fn defined(&mut self) -> Parsed<ValueId> {
        let id = self.value()?;
        let known = id.as_param().is_some_and(|i| i < self.params) || id.as_result().is_some_and(|i| i < self.results);
        if known { Ok(id) } else { self.fail(format!("{id} is not defined here")) }
    }

    fn int(&mut self) -> Parsed<i64> {
        self.space();
        let digits = self.run(|c| c.is_ascii_digit() || c == b'-').to_owned();
        digits.parse().or_else(|_| self.fail("expected an integer".into()))
    }

    fn bool(&mut self) -> Parsed<bool> {
        if self.eat_word("true") {
            return Ok(true);
        }
        if self.eat_word("false") { Ok(false) } else { self.fail("expected `true` or `false`".into()) }
    }

    fn float(&mut self) -> Parsed<f64> {
        if self.eat_word("nan") {
            self.token("(")?;
            let digits = self.run(|c| c.is_ascii_hexdigit()).to_owned();
            let bits = u64::from_str_radix(&digits, 16).ok().map(f64::from_bits).filter(|x| x.is_nan());
            self.token(")")?;
            return bits.map_or_else(|| self.fail("expected the bits of a NaN".into()), Ok);
        }
        let text = self.run(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c)).to_owned();
        match text.parse::<f64>() {
            Ok(x) if !x.is_nan() => Ok(x),
            _ => self.fail("expected a float".into()),
        }
    }

    fn dtype(&mut self) -> Parsed<DType> {
        self.space();
        let name = self.run(|c| c.is_ascii_alphanumeric()).to_owned();
        DType::from_name(&name).map_or_else(|| self.fail(format!("`{name}` is no dtype")), Ok)
    }

    /// Items up to `end`, with commas between them.
    fn list<T>(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(end) {
            if !items.is_empty() {
                self.token(",")?;
                self.space();
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn layout(&mut self) -> Parsed<LayoutRef> {
        let dtype = self.dtype()?;
        self.token("[")?;
        let sizes = self.list("]", |p| {
            let n = p.int()?;
            if n < 0 { p.fail("a size is not negative".into()) } else { Ok(n) }
        })?;
        // The brace of a graph's body is on another token after `)`, never right behind a layout.
        let strides: Dims = if self.text.get(self.at) == Some(&b'{') {
            self.at += 1;
            self.list("}", Self::int)?.into()
        } else {
            contiguous_strides(&sizes)
        };
        if strides.len() != sizes.len() {
            return self.fail(format!("{} strides for {} sizes", strides.len(), sizes.len()));
        }
        Ok(Arc::new(Layout::strided(dtype, &sizes, &strides)))
    }

    fn string(&mut self) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let Some(&c) = self.text.get(self.at) else { return self.fail("the string does not end".into()) };
            self.at += 1;
            match c {
                b'"' => return Ok(bytes),
                b'\\' => {
                    let escaped = self.text.get(self.at).copied();
                    self.at += 1;
                    match escaped {
                        Some(b'n') => bytes.push(b'\n'),
                        Some(c @ (b'"' | b'\\')) => bytes.push(c),
                        Some(b'x') => {
                            let digits = self.text.get(self.at..self.at + 2).and_then(|d| std::str::from_utf8(d).ok());
                            let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
                            let Some(byte) = byte else { return self.fail("expected two hexadecimal digits".into()) };
                            self.at += 2;
                            bytes.push(byte);
                        }
                        _ => return self.fail("unknown escape".into()),
                    }
                }
                _ => bytes.push(c),
            }
        }
    }

    fn number(&mut self) -> Parsed<DType> {
        self.token("(")?;
        let dtype = self.dtype()?;
        self.token(")")?;
        Ok(dtype)
    }

    fn tensors(&mut self, with: ArgFlags, args: &mut ArgWriter, operands: &mut Vec<ValueId>) -> Parsed<()> {
        self.token("[")?;
        let fresh = with.has(ArgFlags::FRESH);
        let present = self.list("]", |p| {
            if p.eat_word("none") {
                return Ok(false);
            }
            if fresh {
                p.word("fresh")?;
            } else {
                operands.push(p.defined()?);
            }
            Ok(true)
        })?;
        args.tensors(&present, with);
        Ok(())
    }

    fn argument(&mut self, args: &mut ArgWriter, operands: &mut Vec<ValueId>) -> Parsed<()> {
        self.space();
        let mut with = if self.eat_word("mut") { ArgFlags::MUT } else { ArgFlags::NONE };
        if self.eat_word("fresh") {
            with = with.and(ArgFlags::FRESH);
            if !self.eat_word("tensors") {
                args.tensor_with(with);
                return Ok(());
            }
            return self.tensors(with, args, operands);
        }
        self.space();
        match self.text.get(self.at) {
            Some(b'%') => {
                operands.push(self.defined()?);
                args.tensor_with(with);
                return Ok(());
            }
            _ if self.eat_word("tensors") => return self.tensors(with, args, operands),
            _ if with != ArgFlags::NONE => return self.fail("expected a tensor".into()),
            Some(b'"') => {
                self.at += 1;
                let bytes = self.string()?;
                args.bytes(&bytes);
                return Ok(());
            }
            Some(b'[') => {
                self.at += 1;
                let ints = self.list("]", Self::int)?;
                args.ints(&ints);
                return Ok(());
            }
            Some(b'-' | b'0'..=b'9') => {
                let i = self.int()?;
                args.int(i);
                return Ok(());
            }
            _ => {}
        }
        let word = self.peek_word().to_owned();
        self.at += word.len();
        match word.as_str() {
            "none" => args.none(),
            "true" => args.bool(true),
            "false" => args.bool(false),
            "float" => args.float(0.0),
            "device" => args.device(),
            "number" => {
                let dtype = self.number()?;
                args.number_of(dtype)
            }
            "host" | "wrapped" => {
                let dtype = self.number()?;
                args.host_scalar(dtype, word == "wrapped")
            }
            "floats" => {
                self.token("[")?;
                let floats = self.list("]", Self::float)?;
                args.floats(&floats)
            }
            "bools" => {
                self.token("[")?;
                let bools = self.list("]", Self::bool)?;
                args.bools(&bools)
            }
            "numbers" => {
                self.token("[")?;
                let dtypes = self.list("]", Self::dtype)?;
                let zero = |d: DType| match d {
                    d if d.is_complex() => Ok(Scalar::Complex(0.0, 0.0)),
                    DType::F64 => Ok(Scalar::Float(0.0)),
                    DType::I64 => Ok(Scalar::Int(0)),
                    DType::Bool => Ok(Scalar::Bool(false)),
                    d => self.fail(format!("a number is i64, f64, c128 or bool, not {d}")),
                };
                let zeros = dtypes.into_iter().map(zero).collect::<Parsed<Vec<_>>>()?;
                args.number_list(&zeros)
            }
            "generator" => {
                operands.push(self.defined()?);
                args.generator()
            }
            _ => {
                self.at -= word.len();
                return self.fail("expected an argument".into());
            }
        };
        Ok(())
    }

    fn node(&mut self, b: &mut GraphBuilder) -> Parsed<()> {
        self.space();
        let mut results = Results::new();
        if self.text.get(self.at) == Some(&b'%') {
            loop {
                let id = self.value()?;
                let next = ValueId::result(self.results + results.len());
                if id != next {
                    return self.fail(format!("expected {next}"));
                }
                self.token(":")?;
                results.push(self.layout()?);
                if self.eat("=") {
                    break;
                }
                self.token(",")?;
            }
        }
        self.space();
        let name = self.run(|c| c.is_ascii_alphanumeric() || b"_:.".contains(&c)).to_owned();
        if !name.contains("::") {
            return self.fail("expected an operator: `aten::add.Tensor`".into());
        }
        self.token("(")?;
        let (mut args, mut operands, mut count) = (ArgWriter::new(), Vec::new(), 0);
        while !self.eat(")") {
            if count > 0 {
                self.token(",")?;
            }
            self.argument(&mut args, &mut operands)?;
            count += 1;
        }
        let (words, _) = args.finish();
        let numbers = ArgReader::consumed(&words).1;
        self.results += results.len();
        b.node(Op::intern(&name, Props::NONE), words, &operands, numbers, results, SiteId::default());
        Ok(())
    }
}
