//! From text to graph.

mod symbolic;

use std::fmt;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::{
    args::{ArgFlags, ArgWriter, EncodedArgs},
    dtype::DType,
    graph::{Graph, GraphBuilder, ValueId},
    hash::Hash128,
    layout::{Dims, Layout, LayoutRef},
    op::Op,
    props::Props,
    signature::Results,
    symbolic::{Dim, int_positions},
    text::print::{QUIET_NAN, is_op_char},
    trace::SiteId,
};

/// Text that is no graph: where, what would have fitted, what stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What would have fitted.
    pub expected: String,
    /// What stands there, shortened.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found {}", self.line, self.column, self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

impl Graph {
    /// Reads the text form (see [`crate::text`]). Values are used after their definition and layouts have a stride per
    /// dimension; whether the graph makes sense beyond that, [`crate::verify()`] says.
    ///
    /// An operator never seen before is interned with no properties: text does not carry its schema. Interned names
    /// stay in memory, so this is not for text of unbounded origin.
    ///
    /// ```
    /// use ltc_ir::{Graph, verify};
    ///
    /// let text = "graph(%p0: f32[2, 3]) { %0: f32[2, 3] = aten::relu(%p0) return %0 }";
    /// let graph = Graph::parse(text)?;
    /// verify(&graph)?;
    /// assert_eq!(Graph::parse(&graph.to_string())?, graph);
    /// let error = Graph::parse("graph(%p0: f99[]) { return }").unwrap_err();
    /// assert_eq!(error.to_string(), "1:12: expected a dtype, found `f99`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails where the text is no graph; says where, and what was expected.
    pub fn parse(text: &str) -> Result<Graph, ParseError> {
        let mut p = Parser::new(text);
        p.graph().map_err(|Unexpected { at, expected }| p.error(at, expected))
    }
}

impl std::str::FromStr for Graph {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Graph, ParseError> {
        Graph::parse(text)
    }
}

/// An error before its position is turned into line and column.
struct Unexpected {
    at: usize,
    expected: String,
}

type Parsed<T> = Result<T, Unexpected>;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    params: usize,
    results: usize,
    numbers: usize,
    /// Equal layouts are shared, as recording shares them.
    layouts: FxHashMap<Hash128, LayoutRef>,
    /// Values of the symbols that integers may name.
    symbols: Vec<i64>,
    /// How many integers there were, and which of them are expressions.
    ints: u32,
    places: Vec<(u32, Dim)>,
}

fn is_value_char(c: u8) -> bool {
    c == b'%' || c.is_ascii_alphanumeric()
}

/// How many values of a kind there can be: the top bit tells the kinds apart.
const MAX_VALUES: usize = 1 << 31;

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Parser {
            text,
            at: 0,
            params: 0,
            results: 0,
            numbers: 0,
            layouts: FxHashMap::default(),
            symbols: Vec::new(),
            ints: 0,
            places: Vec::new(),
        }
    }

    fn error(&self, at: usize, expected: String) -> ParseError {
        let (before, after) = self.text.split_at(at);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let is_part = if after.starts_with('%') { is_value_char } else { is_op_char };
        let word = after.bytes().take_while(|&b| is_part(b)).count();
        let found = match (word, after.chars().next()) {
            (_, None) => "the end".into(),
            (0, Some(c)) => format!("{c:?}"),
            (n, _) => format!("`{}`", &after[..n.min(40)]),
        };
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected,
            found,
        }
    }

    fn fail<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        Err(Unexpected { at: self.at, expected: expected.into() })
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips white space and comments. A comment that does not end is left for the next token to complain about.
    fn skip(&mut self) {
        loop {
            let rest = self.rest().trim_ascii_start();
            self.at = self.text.len() - rest.len();
            let comment = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => end + 2,
                    None => return,
                }
            } else {
                return;
            };
            self.at += comment;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip();
        self.rest().bytes().next()
    }

    fn eat(&mut self, punctuation: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(punctuation);
        self.at += if found { punctuation.len() } else { 0 };
        found
    }

    fn expect(&mut self, punctuation: &str) -> Parsed<()> {
        if self.eat(punctuation) { Ok(()) } else { self.fail(format!("`{punctuation}`")) }
    }

    /// The longest run of characters of a kind.
    fn run(&mut self, mut is: impl FnMut(u8) -> bool) -> &'t str {
        let rest = self.rest();
        let n = rest.bytes().take_while(|&b| is(b)).count();
        self.at += n;
        &rest[..n]
    }

    /// A word made of operator characters, without moving past it.
    fn word(&mut self) -> &'t str {
        self.skip();
        let start = self.at;
        let word = self.run(is_op_char);
        self.at = start;
        word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(format!("`{word}`")) }
    }

    /// `item { "," item }` up to `close`, which is eaten.
    fn list(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        if self.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(",") {
                return self.fail(format!("`,` or `{close}`"));
            }
        }
    }

    /// A token turned into a value; the error stands at its start.
    fn token<T>(&mut self, what: &str, is: fn(u8) -> bool, read: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        self.skip();
        let start = self.at;
        match read(self.run(is)) {
            Some(value) => Ok(value),
            None => {
                self.at = start;
                self.fail(what)
            }
        }
    }

    fn plain_int(&mut self) -> Parsed<i64> {
        self.token("a 64-bit integer", |b| b == b'-' || is_op_char(b), |t| t.parse().ok())
    }

    fn hex(&mut self) -> Parsed<u64> {
        self.token("a 64-bit hexadecimal number", is_op_char, |t| {
            let digits = t.strip_prefix("0x")?;
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        })
    }

    fn bool(&mut self) -> Parsed<bool> {
        self.token("`true` or `false`", is_op_char, |t| t.parse().ok())
    }

    fn float(&mut self) -> Parsed<f64> {
        if self.eat_word("nan") {
            if !self.eat("(") {
                return Ok(f64::from_bits(QUIET_NAN));
            }
            self.skip();
            let at = self.at;
            let x = f64::from_bits(self.hex()?);
            self.expect(")")?;
            return if x.is_nan() { Ok(x) } else { Err(Unexpected { at, expected: "bits of a NaN".into() }) };
        }
        let is = |b: u8| is_op_char(b) || b == b'-' || b == b'+';
        self.token("a 64-bit float", is, |t| match t {
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => t.parse().ok().filter(|x: &f64| x.is_finite()),
        })
    }

    fn dtype(&mut self) -> Parsed<DType> {
        self.token("a dtype", is_op_char, DType::from_name)
    }

    fn number_dtype(&mut self) -> Parsed<DType> {
        let read = |t: &str| DType::from_name(t).filter(|&d| d != DType::RngState);
        self.token("the dtype of a number", is_op_char, read)
    }

    /// A dtype that a schema `Scalar` can have, as a number of it.
    fn scalar(&mut self) -> Parsed<crate::scalar::Scalar> {
        use crate::scalar::Scalar;
        self.token("`i64`, `f64`, `bool` or `c128`", is_op_char, |t| match t {
            "i64" => Some(Scalar::Int(0)),
            "f64" => Some(Scalar::Float(0.0)),
            "bool" => Some(Scalar::Bool(false)),
            "c128" => Some(Scalar::Complex(0.0, 0.0)),
            _ => None,
        })
    }

    fn dims(&mut self, close: &str) -> Parsed<Dims> {
        let mut dims = Dims::new();
        self.list(close, |p| p.int().map(|d| dims.push(d)))?;
        Ok(dims)
    }

    fn layout(&mut self) -> Parsed<LayoutRef> {
        let dtype = self.dtype()?;
        self.expect("[")?;
        let first = self.places.len();
        let from = self.ints;
        let sizes = self.dims("]")?;
        let strides = if self.eat("{") {
            let start = self.at;
            let strides = self.dims("}")?;
            if strides.len() != sizes.len() {
                let expected = format!("{} strides, one per dimension", sizes.len());
                return Err(Unexpected { at: start, expected });
            }
            strides
        } else {
            self.contiguous(first, from, &sizes)?
        };
        let layout: LayoutRef = Layout::strided(dtype, &sizes, &strides).into();
        let known = self.layouts.entry(layout.hash()).or_insert_with(|| layout.clone());
        Ok(if *known == layout { known.clone() } else { layout })
    }

    /// A value that is defined.
    fn value(&mut self) -> Parsed<ValueId> {
        self.skip();
        let start = self.at;
        let value = self.value_token("a value")?;
        let defined = match (value.as_param(), value.as_result()) {
            (Some(p), _) => p < self.params,
            (_, r) => r.is_some_and(|r| r < self.results),
        };
        if defined { Ok(value) } else { Err(Unexpected { at: start, expected: "a value defined above".into() }) }
    }

    fn value_token(&mut self, what: &str) -> Parsed<ValueId> {
        self.token(what, is_value_char, |t| {
            let t = t.strip_prefix('%')?;
            let (digits, make): (_, fn(usize) -> ValueId) = match t.strip_prefix('p') {
                Some(digits) => (digits, ValueId::param),
                None => (t, ValueId::result),
            };
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok().filter(|&i| i < MAX_VALUES).map(make)).flatten()
        })
    }

    /// `%0: f32[2]`, where the number must be the next one.
    fn defined(&mut self, id: ValueId) -> Parsed<LayoutRef> {
        self.skip();
        let start = self.at;
        let what = id.to_string();
        if self.value_token(&what)? != id {
            return Err(Unexpected { at: start, expected: what });
        }
        self.expect(":")?;
        self.layout()
    }

    fn graph(&mut self) -> Parsed<Graph> {
        let mut b = GraphBuilder::new();
        self.expect_word("graph")?;
        self.expect("(")?;
        self.list(")", |p| {
            let layout = p.defined(ValueId::param(p.params))?;
            b.param(layout);
            p.params += 1;
            Ok(())
        })?;
        self.expect("{")?;
        while !self.eat_word("return") {
            self.node(&mut b)?;
        }
        let mut outputs = Vec::new();
        self.list("}", |p| p.value().map(|v| outputs.push(v)))?;
        match self.peek() {
            None => Ok(b.finish(outputs)),
            Some(_) => self.fail("the end"),
        }
    }

    fn node(&mut self, b: &mut GraphBuilder) -> Parsed<()> {
        let mut results = Results::new();
        if self.peek() == Some(b'%') {
            let first = self.results;
            self.list("=", |p| {
                let layout = p.defined(ValueId::result(first + results.len()))?;
                results.push(layout);
                Ok(())
            })?;
        }
        let op = self.op()?;
        let mut node = Arguments::default();
        if self.eat_word("raw") {
            self.raw(&mut node)?;
        } else {
            if !self.eat("(") {
                return self.fail("`(` or `raw`");
            }
            self.list(")", |p| p.arg(&mut node))?;
            let (words, numbers) = node.writer.finish();
            (node.words, node.number_count) = (words, numbers.len());
        }
        self.results += results.len();
        self.numbers += node.number_count;
        if self.numbers > u32::MAX as usize {
            return self.fail("fewer runtime numbers");
        }
        b.node(op, node.words, &node.operands, node.number_count, results, SiteId::default());
        Ok(())
    }

    fn op(&mut self) -> Parsed<Op> {
        const WHAT: &str = "an operator, a result or `return`";
        if self.peek() == Some(b'"') {
            let start = self.at;
            let name = String::from_utf8(self.string()?);
            let name = name.map_err(|_| Unexpected { at: start, expected: "an operator name in UTF-8".into() })?;
            return Ok(Op::intern(&name, Props::NONE));
        }
        match self.word() {
            name if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                self.at += name.len();
                Ok(Op::intern(name, Props::NONE))
            }
            _ => self.fail(WHAT),
        }
    }

    fn raw(&mut self, node: &mut Arguments) -> Parsed<()> {
        self.expect("[")?;
        self.list("]", |p| p.hex().map(|w| node.words.push(w)))?;
        int_positions(&node.words, |_, _| self.ints += 1);
        self.expect("(")?;
        self.list(")", |p| p.value().map(|v| node.operands.push(v)))?;
        let count = self.token("a count of number words", is_op_char, |t| t.parse::<u16>().ok())?;
        node.number_count = count as usize;
        Ok(())
    }

    fn arg(&mut self, node: &mut Arguments) -> Parsed<()> {
        match self.peek() {
            Some(b'%') => {
                let value = self.value()?;
                node.operands.push(value);
                node.writer.tensor();
                return Ok(());
            }
            Some(b'"') => {
                let bytes = self.string()?;
                node.writer.bytes(&bytes);
                return Ok(());
            }
            _ => {}
        }
        let start = self.at;
        let word = self.word();
        self.at += word.len();
        let w = &mut node.writer;
        match word {
            "none" => w.none(),
            "device" => w.device(),
            "float" => w.float(0.0),
            "wrapped" => w.host_scalar(self.number_dtype()?, [0; 2], ArgFlags::WRAPPED),
            "host" => w.host_scalar(self.number_dtype()?, [0; 2], ArgFlags::NONE),
            "number" => w.number(self.scalar()?),
            "int" => w.int(self.int()?),
            "bool" => w.bool(self.bool()?),
            "generator" => {
                node.operands.push(self.value()?);
                w.generator()
            }
            "mut" if self.eat_word("tensors") => return self.tensors(node, ArgFlags::MUT),
            "mut" => {
                node.operands.push(self.value()?);
                w.tensor_with(ArgFlags::MUT)
            }
            "fresh" if self.eat_word("tensors") => return self.tensors(node, ArgFlags::MUT.and(ArgFlags::FRESH)),
            "fresh" => w.tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH)),
            "tensors" => return self.tensors(node, ArgFlags::NONE),
            "ints" => w.ints(&self.items(Self::int)?),
            "floats" => w.floats(&self.items(Self::float)?),
            "bools" => w.bools(&self.items(Self::bool)?),
            "numbers" => w.number_list(&self.items(Self::scalar)?),
            _ => {
                self.at = start;
                return self.fail("an argument");
            }
        };
        Ok(())
    }

    fn items<T>(&mut self, item: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        self.expect("[")?;
        self.list("]", |p| item(p).map(|i| items.push(i)))?;
        Ok(items)
    }

    fn tensors(&mut self, node: &mut Arguments, flags: ArgFlags) -> Parsed<()> {
        let mut present = Vec::new();
        self.expect("[")?;
        self.list("]", |p| {
            let is_there = !p.eat_word("none");
            if is_there && flags.has(ArgFlags::FRESH) {
                p.expect_word("fresh")?;
            } else if is_there {
                node.operands.push(p.value()?);
            }
            present.push(is_there);
            Ok(())
        })?;
        node.writer.tensors(&present, flags);
        Ok(())
    }

    /// The bytes of a quoted string.
    fn string(&mut self) -> Parsed<Vec<u8>> {
        self.expect("\"")?;
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(self.run(|b| b != b'"' && b != b'\\').as_bytes());
            let escape = self.rest().as_bytes();
            match *escape {
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(bytes);
                }
                [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    let digit = |b: u8| (b as char).to_digit(16).unwrap_or_default() as u8;
                    bytes.push(digit(high) << 4 | digit(low));
                    self.at += 4;
                }
                [b'\\', b'n', ..] => self.escaped(&mut bytes, b'\n'),
                [b'\\', b'r', ..] => self.escaped(&mut bytes, b'\r'),
                [b'\\', b't', ..] => self.escaped(&mut bytes, b'\t'),
                [b'\\', c @ (b'"' | b'\\'), ..] => self.escaped(&mut bytes, c),
                [b'\\', ..] => {
                    return self.fail("an escape: `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` or `\\x` and two digits");
                }
                _ => return self.fail("`\"`"),
            }
        }
    }

    fn escaped(&mut self, bytes: &mut Vec<u8>, byte: u8) {
        bytes.push(byte);
        self.at += 2;
    }
}

/// A node's arguments as they are read.
#[derive(Default)]
struct Arguments {
    writer: ArgWriter,
    words: EncodedArgs,
    operands: SmallVec<[ValueId; 4]>,
    number_count: usize,
}
