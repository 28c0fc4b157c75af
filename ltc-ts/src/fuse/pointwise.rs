//! A graph node as a formula over its operands.

use ltc_ir::promote::{Category, result_type};
use ltc_ir::{Arg, ArgFlags, DType, Graph, GraphNode, Op};
use smallvec::SmallVec;

use super::{
    formula::{self, Formula, Operand},
    rows::{self, Compute},
};
use crate::kernels::{Builder, Code, Lane, Val, has_loop};

/// More elements than this, and libtorch's vectorised double-precision functions win over ours, which are scalar.
const SCALAR_MATH: i64 = 4096;

/// What a letter of the formula stands for in this node.
#[derive(Clone, Copy, Debug)]
enum Letter {
    Absent,
    /// Position among the node's operands.
    Operand(usize),
    /// Runtime number: position among the node's numbers, dtype, whether it stands for a tensor.
    Number(u32, DType, bool),
}

/// A node that a kernel can compute.
#[derive(Clone, Debug)]
pub(super) struct Pointwise {
    formula: &'static Formula,
    letters: SmallVec<[Letter; 4]>,
    lane: Lane,
    /// What happens to numbers that stand for tensors.
    rounding: Option<Code>,
    result: DType,
}

/// How values of a dtype are rounded that is computed in a wider one.
fn rounding(dtype: DType) -> Option<Code> {
    match dtype {
        DType::BF16 => Some(Code::RoundBf16),
        DType::F16 => Some(Code::RoundF16),
        _ => None,
    }
}

impl Pointwise {
    /// The node as a formula; `None` where it is none, or where no kernel computes it as libtorch does.
    pub(super) fn of(graph: &Graph, node: &GraphNode) -> Option<Pointwise> {
        let [layout] = node.results() else { return None };
        if !node.op().name().starts_with("aten::") || !layout.is_dense() || node.op() == Op::read_view() {
            return None;
        }
        let (letters, text, written) = letters(node)?;
        let row = rows::find(node.op().name().strip_prefix("aten::")?, text.as_deref())?;
        let dtype_of = |i: usize| graph.layout(node.operands[i]).dtype();
        let used = |l: &&Letter| matches!(l, Letter::Operand(_));
        if letters.iter().filter(used).any(|l| matches!(l, Letter::Operand(i) if Lane::of(dtype_of(*i)).is_none())) {
            return None;
        }
        let numbers_promote = matches!(row.compute, Compute::Promoted | Compute::Float);
        let formula = formula::parsed(row.formula)?;
        let promoted = result_type(
            letters.iter().enumerate().filter_map(|(at, letter)| match *letter {
                Letter::Operand(i) => Some((dtype_of(i), Category::of_rank(graph.layout(node.operands[i]).rank()))),
                Letter::Number(_, dtype, _) if numbers_promote && !formula.takes_one(at) => {
                    Some((dtype, Category::Wrapped))
                }
                _ => None,
            }),
            DType::F32,
        );
        let computed = match row.compute {
            Compute::Moved => layout.dtype(),
            Compute::Promoted | Compute::Tensors => promoted?,
            Compute::Float => promoted.map(|d| if d.is_floating() { d } else { DType::F32 })?,
            Compute::FloatOnly => promoted.filter(|d| d.is_floating())?,
        };
        // A functional operator's result has the dtype it computes in, unless it compares. Where it has not, the program
        // runs under rules we do not know, such as another default dtype.
        if !written && layout.dtype() != computed && layout.dtype() != DType::Bool {
            return None;
        }
        // For halves libtorch has no short cuts, which differ at infinity.
        if row.name.starts_with("pow.") && rounding(computed).is_some() {
            return None;
        }
        // Where libtorch's kernels take the number in single precision, for tensors of halves.
        let exact = row.name.starts_with("mul.") || row.name.starts_with("div.");
        let rounding = rounding(computed).filter(|_| !exact);
        let this = Pointwise { formula, letters, lane: Lane::of(computed)?, rounding, result: layout.dtype() };
        this.is_computable(graph, node, layout.numel()).then_some(this)
    }

    /// Whether the result equals libtorch's in every bit. Of several roundings to half, libtorch does some per operation
    /// and some at the end, kernel by kernel; ours are at the end.
    pub(super) fn is_exact(&self) -> bool {
        self.formula.is_exact() && (self.formula.operations() <= 1 || rounding(self.result).is_none())
    }

    /// Whether every computation has a loop, and none is much slower than libtorch's.
    fn is_computable(&self, graph: &Graph, node: &GraphNode, elements: i64) -> bool {
        let mut b = Builder::new(false);
        let mut next = 0;
        let operand = |b: &mut Builder, i: usize| {
            next += 1;
            Lane::of(graph.layout(node.operands[i]).dtype()).map(|lane| b.input(next - 1, lane))
        };
        let Some(value) = self.build(&mut b, 0, operand) else { return false };
        let body = b.finish(&[value]);
        has_loop(&body) && (elements <= SCALAR_MATH || !body.has_scalar_math())
    }

    /// Writes the node's result into a body. `operand` gives the values of its operands, by position; numbers start at word
    /// `first_number`.
    pub(super) fn build(
        &self,
        b: &mut Builder,
        first_number: u32,
        mut operand: impl FnMut(&mut Builder, usize) -> Option<Val>,
    ) -> Option<Val> {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for letter in &self.letters {
            operands.push(match *letter {
                Letter::Absent => Operand::Absent,
                Letter::Operand(i) => Operand::Value(operand(b, i)?),
                Letter::Number(word, dtype, tensor) => {
                    Operand::Number(first_number + word, dtype, self.rounding.filter(|_| tensor))
                }
            });
        }
        let value = self.formula.build(b, &operands, self.lane)?;
        let value = b.cast(value, Lane::of(self.result)?);
        // Halves are computed in single precision and rounded once per operator. What was half already is left alone.
        Some(rounding(self.result).map_or(value, |code| b.op(code, &[value])))
    }
}

/// The node's arguments as letters, its string argument, and whether it writes one of them.
fn letters(node: &GraphNode) -> Option<(SmallVec<[Letter; 4]>, Option<String>, bool)> {
    let (mut letters, mut text, mut written): (SmallVec<[Letter; 4]>, _, _) = (SmallVec::new(), None, false);
    for arg in node.args() {
        letters.push(match arg {
            Arg::Tensor { operand, flags } => {
                written |= flags.has(ArgFlags::MUT);
                operand.map_or(Letter::Absent, Letter::Operand)
            }
            Arg::HostScalar { number, dtype, .. } | Arg::Number { number, dtype } => {
                let tensor = matches!(arg, Arg::HostScalar { .. });
                // Words of other dtypes are not ours to read.
                let known = dtype.is_floating() || matches!(dtype, DType::I64 | DType::I32 | DType::U8 | DType::Bool);
                known.then_some(Letter::Number(number as u32, dtype, tensor))?
            }
            Arg::Float { number } => Letter::Number(number as u32, DType::F64, false),
            Arg::Str { words, len } => {
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
                text = Some(String::from_utf8(bytes).ok()?);
                Letter::Absent
            }
            Arg::None | Arg::Int(_) | Arg::Bool(_) | Arg::Ints(_) | Arg::Device => Letter::Absent,
            _ => return None,
        });
    }
    Some((letters, text, written))
}
