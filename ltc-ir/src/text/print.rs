//! From graph to text.

use std::fmt::{self, Write};

use crate::{
    args::{self, Arg, ArgFlags, scalar_words},
    dtype::DType,
    graph::{Graph, GraphNode, ValueId},
    layout::LayoutRef,
    scalar::Scalar,
    symbolic::{self, Dim, Symbolic, int_positions},
};

/// Which integers are printed as expressions: those of a symbolic graph, counted as they come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    symbolic: Option<&'a Symbolic>,
    at: u32,
}

impl Names<'_> {
    /// The next integer.
    fn next(&mut self, value: i64) -> Dim {
        self.at += 1;
        let dim = self.symbolic.and_then(|s| s.at(self.at - 1));
        dim.cloned().unwrap_or_else(|| Dim::constant(value))
    }
}

/// The graph with the values of its runtime numbers as comments in their holes. Still parses to the same graph.
/// `numbers` are those of the whole graph; where they are too few, holes stay bare.
pub fn print_with<'a>(graph: &'a Graph, numbers: &'a [u64]) -> impl fmt::Display + 'a {
    WithNumbers { graph, numbers }
}

/// A graph that prints with the values of its runtime numbers.
struct WithNumbers<'a> {
    graph: &'a Graph,
    numbers: &'a [u64],
}

impl fmt::Display for WithNumbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(f, self.graph, self.numbers, Names::default())
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(f, self, &[], Names::default())
    }
}

/// `symbols(s0 = 8) where s0 > 1`, and the graph with expressions for its integers.
impl fmt::Display for Symbolic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("symbols(")?;
        for (i, value) in self.first_values().into_iter().enumerate() {
            write!(f, "{}s{i} = {value}", comma(i))?;
        }
        f.write_str(")")?;
        for (i, dim) in self.above_one().enumerate() {
            write!(f, "{}{dim} > 1", if i == 0 { " where " } else { ", " })?;
        }
        f.write_str("\n")?;
        write_graph(f, self.graph(), &[], Names { symbolic: Some(self), at: 0 })
    }
}

fn write_graph(f: &mut impl Write, graph: &Graph, numbers: &[u64], mut names: Names<'_>) -> fmt::Result {
    let names = &mut names;
    f.write_str("graph(")?;
    write_defined(f, (0..graph.params().len()).map(ValueId::param), graph.params(), names)?;
    f.write_str(") {\n")?;
    for node in graph.nodes() {
        f.write_str("  ")?;
        write_defined(f, node.result_ids(), node.results(), names)?;
        if !node.results().is_empty() {
            f.write_str(" = ")?;
        }
        write_op(f, node.op().name())?;
        // Raw words are printed as they are, but counted.
        let mut end = names.at;
        int_positions(node.words(), |_, _| end += 1);
        write_args(f, node, numbers.get(node.first_number as usize..).unwrap_or_default(), names)?;
        names.at = end;
        f.write_char('\n')?;
    }
    f.write_str("  return")?;
    for (i, output) in graph.outputs().iter().enumerate() {
        write!(f, "{} {output}", comma(i).trim_end())?;
    }
    f.write_str("\n}\n")
}

fn comma(i: usize) -> &'static str {
    if i == 0 { "" } else { ", " }
}

/// `%0: f32[2], %1: f32[]`.
fn write_defined(
    f: &mut impl Write,
    ids: impl Iterator<Item = ValueId>,
    layouts: &[LayoutRef],
    names: &mut Names<'_>,
) -> fmt::Result {
    for (i, (id, layout)) in ids.zip(layouts).enumerate() {
        write!(f, "{}{id}: ", comma(i))?;
        write_layout(f, layout, names)?;
    }
    Ok(())
}

/// As [`crate::Layout`] is displayed, with expressions.
fn write_layout(f: &mut impl Write, layout: &LayoutRef, names: &mut Names<'_>) -> fmt::Result {
    if names.symbolic.is_none() {
        return write!(f, "{layout}");
    }
    let sizes: Vec<Dim> = layout.sizes().iter().map(|&s| names.next(s)).collect();
    let strides: Vec<Dim> = layout.strides().iter().map(|&s| names.next(s)).collect();
    write!(f, "{}[{}]", layout.dtype(), sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))?;
    if symbolic::contiguous(&sizes).as_ref() != Some(&strides) {
        write!(f, "{{{}}}", strides.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// Whether an operator name needs no quotes.
pub(super) fn is_op_char(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b':')
}

fn write_op(f: &mut impl Write, name: &str) -> fmt::Result {
    let word = name.bytes().all(is_op_char) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // `return` would end the graph.
    let bare = word && name != "return";
    if bare { f.write_str(name) } else { write_string(f, name.as_bytes()) }
}

/// `(args)` of a node, or its raw form. `numbers` begin at the node's first.
pub(crate) fn write_args(f: &mut impl Write, node: &GraphNode, numbers: &[u64], names: &mut Names<'_>) -> fmt::Result {
    let fits = args::check(node.words())
        .is_ok_and(|c| c.operands == node.operands.len() && c.numbers == node.number_count as usize);
    if !fits {
        f.write_str(" raw [")?;
        for (i, word) in node.words().iter().enumerate() {
            write!(f, "{}{word:#x}", comma(i))?;
        }
        f.write_str("](")?;
        for (i, operand) in node.operands.iter().enumerate() {
            write!(f, "{}{operand}", comma(i))?;
        }
        return write!(f, ") {}", node.number_count);
    }
    f.write_char('(')?;
    for (i, arg) in node.args().enumerate() {
        f.write_str(comma(i))?;
        write_arg(f, &arg, &node.operands, numbers, names)?;
    }
    f.write_char(')')
}

fn write_arg(
    f: &mut impl Write,
    arg: &Arg<'_>,
    operands: &[ValueId],
    numbers: &[u64],
    names: &mut Names<'_>,
) -> fmt::Result {
    match *arg {
        Arg::None => f.write_str("none"),
        Arg::Tensor { operand: None, .. } => f.write_str("fresh"),
        Arg::Tensor { operand: Some(o), flags } => {
            let mark = if flags.has(ArgFlags::MUT) { "mut " } else { "" };
            write!(f, "{mark}{}", operands[o])
        }
        Arg::HostScalar { number, dtype, wrapped } => {
            write!(f, "{} {dtype}", if wrapped { "wrapped" } else { "host" })?;
            write_number(f, dtype, number, numbers)
        }
        Arg::Int(v) => write!(f, "int {}", names.next(v)),
        Arg::Bool(v) => write!(f, "bool {v}"),
        Arg::Float { number } => {
            f.write_str("float")?;
            write_number(f, DType::F64, number, numbers)
        }
        Arg::Number { number, dtype } => {
            write!(f, "number {dtype}")?;
            write_number(f, dtype, number, numbers)
        }
        Arg::Str { words, len } => {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
            write_string(f, &bytes)
        }
        Arg::Ints(v) => write_list(f, "ints", v, |f, &w| write!(f, "{}", names.next(w as i64))),
        Arg::Floats(v) => write_list(f, "floats", v, |f, &w| write_float(f, w)),
        Arg::Bools(v) => write_list(f, "bools", v, |f, &w| write!(f, "{}", w != 0)),
        Arg::Tensors { len, mask, first_operand, flags } => {
            let fresh = flags.has(ArgFlags::FRESH);
            f.write_str(match (fresh, flags.has(ArgFlags::MUT)) {
                (true, _) => "fresh ",
                (false, true) => "mut ",
                (false, false) => "",
            })?;
            let mut next = operands[first_operand..].iter();
            write_list(f, "tensors", 0..len, |f, i| match (mask[i / 64] >> (i % 64) & 1 == 1, fresh) {
                (false, _) => f.write_str("none"),
                (true, true) => f.write_str("fresh"),
                (true, false) => next.next().map_or(Ok(()), |o| write!(f, "{o}")),
            })
        }
        Arg::Numbers { dtypes, first_number } => {
            let mut at = first_number;
            write_list(f, "numbers", dtypes, |f, &code| {
                let dtype = DType::from_code(code as u8).ok_or(fmt::Error)?;
                write!(f, "{dtype}")?;
                write_number(f, dtype, at, numbers)?;
                at += scalar_words(dtype);
                Ok(())
            })
        }
        Arg::Generator { operand } => write!(f, "generator {}", operands[operand]),
        Arg::Device => f.write_str("device"),
    }
}

fn write_list<T, W: Write>(
    f: &mut W,
    name: &str,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{name} [")?;
    for (i, item) in items.into_iter().enumerate() {
        f.write_str(comma(i))?;
        write(f, item)?;
    }
    f.write_char(']')
}

/// The value of a runtime number as a comment, if it is known.
fn write_number(f: &mut impl Write, dtype: DType, at: usize, numbers: &[u64]) -> fmt::Result {
    match numbers.get(at..).and_then(|words| Scalar::from_words(dtype, words)) {
        Some(value) => write!(f, " /* {value} */"),
        None => Ok(()),
    }
}

/// Bits of the NaN that prints as `nan`.
pub(super) const QUIET_NAN: u64 = 0x7ff8_0000_0000_0000;

fn write_float(f: &mut impl Write, bits: u64) -> fmt::Result {
    let x = f64::from_bits(bits);
    match bits {
        QUIET_NAN => f.write_str("nan"),
        _ if x.is_nan() => write!(f, "nan({bits:#x})"),
        // The shortest decimal that reads back as the same bits; `inf`, `-0.0`.
        _ => write!(f, "{x:?}"),
    }
}

fn write_string(f: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => {
                    for b in c.encode_utf8(&mut [0; 4]).bytes() {
                        write!(f, "\\x{b:02x}")?;
                    }
                }
                c => f.write_char(c)?,
            }
        }
        for b in chunk.invalid() {
            write!(f, "\\x{b:02x}")?;
        }
    }
    f.write_char('"')
}
