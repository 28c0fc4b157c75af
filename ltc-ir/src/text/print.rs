//! Graph to text.

use std::fmt::{self, Display, Formatter};

use crate::{
    args::{Arg, ArgFlags},
    dtype::DType,
    graph::{Graph, GraphNode, ValueId},
};

/// Items with commas between them.
fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, x) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item(f, x)?;
    }
    Ok(())
}

fn flags(f: &mut Formatter<'_>, flags: ArgFlags) -> fmt::Result {
    f.write_str(if flags.has(ArgFlags::MUT) { "mut " } else { "" })
}

fn float(f: &mut Formatter<'_>, bits: u64) -> fmt::Result {
    let x = f64::from_bits(bits);
    if x.is_nan() { write!(f, "nan({bits:016x})") } else { write!(f, "{x:?}") }
}

fn string(f: &mut Formatter<'_>, words: &[u64], len: usize) -> fmt::Result {
    f.write_str("\"")?;
    for byte in words.iter().flat_map(|w| w.to_le_bytes()).take(len) {
        match byte {
            b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
            b'\n' => f.write_str("\\n")?,
            b' '..=b'~' => write!(f, "{}", byte as char)?,
            _ => write!(f, "\\x{byte:02x}")?,
        }
    }
    f.write_str("\"")
}

fn operand(f: &mut Formatter<'_>, node: &GraphNode, i: usize) -> fmt::Result {
    match node.operands.get(i) {
        Some(v) => v.fmt(f),
        None => f.write_str("%?"),
    }
}

fn argument(f: &mut Formatter<'_>, node: &GraphNode, arg: Arg<'_>) -> fmt::Result {
    match arg {
        Arg::None => f.write_str("none"),
        Arg::Tensor { operand: at, flags: with } => {
            flags(f, with)?;
            match at {
                Some(i) => operand(f, node, i),
                None => f.write_str("fresh"),
            }
        }
        Arg::HostScalar { dtype, wrapped, .. } => write!(f, "{}({dtype})", if wrapped { "wrapped" } else { "host" }),
        Arg::Int(i) => i.fmt(f),
        Arg::Bool(b) => b.fmt(f),
        Arg::Float { .. } => f.write_str("float"),
        Arg::Number { dtype, .. } => write!(f, "number({dtype})"),
        Arg::Str { words, len } => string(f, words, len),
        Arg::Ints(v) => {
            f.write_str("[")?;
            list(f, v, |f, &x| (x as i64).fmt(f))?;
            f.write_str("]")
        }
        Arg::Floats(v) => {
            f.write_str("floats[")?;
            list(f, v, |f, &x| float(f, x))?;
            f.write_str("]")
        }
        Arg::Bools(v) => {
            f.write_str("bools[")?;
            list(f, v, |f, &x| (x != 0).fmt(f))?;
            f.write_str("]")
        }
        Arg::Tensors { len, mask, first_operand, flags: with } => {
            flags(f, with)?;
            let fresh = with.has(ArgFlags::FRESH);
            f.write_str(if fresh { "fresh tensors[" } else { "tensors[" })?;
            let mut next = first_operand;
            list(f, 0..len, |f, i| {
                if mask[i / 64] >> (i % 64) & 1 == 0 {
                    f.write_str("none")
                } else if fresh {
                    f.write_str("fresh")
                } else {
                    next += 1;
                    operand(f, node, next - 1)
                }
            })?;
            f.write_str("]")
        }
        Arg::Numbers { dtypes, .. } => {
            f.write_str("numbers[")?;
            list(f, dtypes, |f, &d| f.write_str(DType::from_code(d as u8).map_or("?", DType::name)))?;
            f.write_str("]")
        }
        Arg::Generator { operand: at } => {
            f.write_str("generator ")?;
            operand(f, node, at)
        }
        Arg::Device => f.write_str("device"),
    }
}

impl Display for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("graph(")?;
        list(f, self.params().iter().enumerate(), |f, (i, layout)| write!(f, "{}: {layout}", ValueId::param(i)))?;
        f.write_str(") {\n")?;
        for node in self.nodes() {
            f.write_str("  ")?;
            list(f, node.result_ids().zip(node.results()), |f, (id, layout)| write!(f, "{id}: {layout}"))?;
            f.write_str(if node.results().is_empty() { "" } else { " = " })?;
            write!(f, "{}(", node.op())?;
            list(f, node.args(), |f, arg| argument(f, node, arg))?;
            f.write_str(")\n")?;
        }
        f.write_str("  return")?;
        f.write_str(if self.outputs().is_empty() { "" } else { " " })?;
        list(f, self.outputs(), |f, id| id.fmt(f))?;
        f.write_str("\n}\n")
    }
}
