//! A graph node as kernel expressions over its operands.

use std::sync::LazyLock;

use ltc_ir::promote::{Category, result_type};
use ltc_ir::{
    Arg, ArgFlags, DType, Expr, Func, Graph, GraphNode, Layout, Op,
    table::{self, ArgKind, Compute, Row},
};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::{
    emit::{KernelExpr, Operand},
    expression,
    iteration_space::IterationSpace,
    reductions::{self, Alone},
    rows,
};
use ltc_kernels::{Builder, ComputeType, KernelOp, Val, has_loop};

/// With more elements than this, libtorch's vectorised double-precision functions are faster than ours, which are
/// scalar.
const SCALAR_MATH: i64 = 4096;

/// libtorch's loops compute fewer halves than this (two vectors) one by one.
const VECTORS: i64 = 32;

/// What an argument of the expression stands for in this node.
#[derive(Clone, Copy, Debug)]
enum ArgSource {
    Absent,
    /// Position among the node's operands.
    Operand(usize),
    /// Runtime number: position among the node's numbers, dtype, whether libtorch takes it in the tensors' dtype.
    Number(u32, DType, bool),
}

impl ArgSource {
    fn operand(&self) -> Option<usize> {
        if let ArgSource::Operand(i) = self { Some(*i) } else { None }
    }
}

/// A node that a kernel can compute.
#[derive(Clone, Debug)]
pub(super) struct NodeCompute {
    /// Per result its expression and dtype.
    exprs: SmallVec<[(&'static KernelExpr, DType); 1]>,
    /// Per argument of the expressions.
    sources: SmallVec<[ArgSource; 4]>,
    ty: ComputeType,
    /// How runtime numbers are rounded that libtorch takes in the tensors' dtype.
    rounding: Option<KernelOp>,
    /// How products with `alpha` are rounded. libtorch computes vectors of halves in single precision and rounds once,
    /// but rounds after each operation where it computes halves one by one.
    products: Option<KernelOp>,
    /// The elements it goes through, and which dimensions it reduces.
    pub(super) space: IterationSpace,
    /// Whether it is worth a kernel of its own.
    pub(super) alone: Alone,
    /// Whether libtorch's bits are those of its expressions.
    exact: bool,
}

/// How values of a dtype are rounded that is computed in a wider one.
fn rounding(dtype: DType) -> Option<KernelOp> {
    match dtype {
        DType::BF16 => Some(KernelOp::RoundBf16),
        DType::F16 => Some(KernelOp::RoundF16),
        _ => None,
    }
}

/// Whether a kernel may read operands without rounding them first. If the operator computes in a half, libtorch rounds
/// an operand of another dtype to it in some kernels and not in others, so only operands that fit the half are safe.
fn reads_as_libtorch(mut operands: impl Iterator<Item = DType>, computed: DType) -> bool {
    rounding(computed).is_none() || operands.all(|dtype| fits_half(dtype, computed))
}

/// Whether a kernel may convert a result computed in one dtype directly to the dtype of a given `out=` tensor. libtorch
/// first rounds or wraps it to the computed dtype, which changes nothing for single or double precision.
fn writes_as_libtorch(computed: DType, given: DType) -> bool {
    given == computed || matches!(computed, DType::F32 | DType::F64) && given.is_floating()
}

/// Whether a tensor of this dtype has the same values in this half.
fn fits_half(dtype: DType, half: DType) -> bool {
    dtype == half || matches!(dtype, DType::Bool | DType::U8 | DType::I8)
}

/// Whether an operator gives the larger or the smaller of two tensors' numbers.
fn is_tie(row: &'static Row) -> bool {
    static TIES: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| {
        let ties = |row: &&Row| {
            let names: Vec<&str> = row.arguments.iter().map(|a| a.name).collect();
            row.expr.and_then(|text| Expr::parse(text, &names).ok()).is_some_and(|e| ties(row, &e))
        };
        table::rows().iter().filter(ties).map(|row| row.name).collect()
    });
    TIES.contains(row.name)
}

fn ties(row: &Row, e: &Expr) -> bool {
    let is_tensor = |e: &Expr| matches!(e, Expr::Input(i) if row.arguments[*i].kind == ArgKind::Tensor);
    match e {
        Expr::Call(Func::Where, x) => x[1..].iter().any(|e| ties(row, e)),
        Expr::Call(Func::Max | Func::Min | Func::FMax | Func::FMin, x) => {
            x.iter().all(is_tensor) || x.iter().any(|e| ties(row, e))
        }
        _ => false,
    }
}

impl NodeCompute {
    /// The node as expressions; `None` where it has none, or where no kernel computes it as libtorch does.
    pub(super) fn of(graph: &Graph, node: &GraphNode) -> Option<NodeCompute> {
        NodeCompute::pointwise(graph, node).or_else(|| NodeCompute::reducing(graph, node))
    }

    /// A pointwise node.
    pub(super) fn pointwise(graph: &Graph, node: &GraphNode) -> Option<NodeCompute> {
        let [layout] = node.results() else { return None };
        if !node.op().name().starts_with("aten::") || !layout.is_dense() || node.op() == Op::read_view() {
            return None;
        }
        let (row, compute) = rows::find(node.op().name().strip_prefix("aten::")?)?;
        let (mut sources, written) = sources(node)?;
        // The tensor that an `out=` form writes to is its last argument; nothing is computed from it.
        let is_out = sources.len() > row.arguments.len();
        sources.truncate(row.arguments.len());
        for (source, spec) in sources.iter_mut().zip(row.arguments) {
            if let ArgSource::Number(_, _, tensor) = source {
                *tensor |=
                    spec.name == "other" || spec.name == "alpha" && row.arguments.iter().any(|a| a.name == "other");
            }
        }
        let dtype_of = |i: usize| graph.layout(node.operands[i]).dtype();
        if sources.iter().filter_map(ArgSource::operand).any(|i| ComputeType::of(dtype_of(i)).is_none()) {
            return None;
        }
        let numbers_promote = matches!(compute, Compute::Promoted | Compute::Float);
        let [expr] = expression::exprs(row, node)? else { return None };
        let promoted_by = |default: DType| {
            let operands = sources.iter().enumerate().filter_map(|(at, source)| match *source {
                ArgSource::Operand(i) => Some((dtype_of(i), Category::of_rank(graph.layout(node.operands[i]).rank()))),
                ArgSource::Number(_, dtype, _) if numbers_promote && !expr.takes_one(at) => {
                    Some((dtype, Category::Wrapped))
                }
                _ => None,
            });
            result_type(operands, default)
        };
        let promoted = promoted_by(DType::F32);
        // Integers beside a float number are compared in the default dtype, which the result does not tell.
        if layout.dtype() == DType::Bool && numbers_promote && promoted != promoted_by(DType::F64) {
            return None;
        }
        let computed = match compute {
            Compute::Moved => layout.dtype(),
            Compute::Promoted | Compute::Tensors => promoted?,
            Compute::Float => promoted.map(|d| if d.is_floating() { d } else { DType::F32 })?,
            Compute::FloatOnly => promoted.filter(|d| d.is_floating())?,
            Compute::WideFloat => promoted.filter(|d| matches!(d, DType::F32 | DType::F64))?,
        };
        // A functional operator's result has the dtype that the operator computes in, unless it compares. If the
        // recorded dtype is another one, the program runs under rules that are not known here, such as another default
        // dtype.
        if !written && layout.dtype() != computed && layout.dtype() != DType::Bool {
            return None;
        }
        // Two equal numbers may differ in the sign of zero. libtorch takes the first or the second depending on their
        // position in memory, which a kernel cannot imitate.
        if is_tie(row) && computed.is_floating() {
            return None;
        }
        let operands = sources.iter().filter_map(ArgSource::operand).map(dtype_of);
        let read = compute == Compute::Moved || reads_as_libtorch(operands, computed);
        if !read || is_out && !writes_as_libtorch(computed, layout.dtype()) {
            return None;
        }
        // Kernels have short cuts for some exponents. libtorch has none for halves, and results differ at infinity.
        if row.name.starts_with("aten::pow.") && rounding(computed).is_some() {
            return None;
        }
        // libtorch multiplies and divides tensors of halves by a number in single precision if the number comes second;
        // then it is not rounded.
        let second = !matches!(sources.first(), Some(ArgSource::Number(..)));
        let exact = second && (row.name.starts_with("aten::mul.") || row.name.starts_with("aten::div."));
        let rounding = rounding(computed).filter(|_| !exact);
        let exprs = SmallVec::from_iter([(expr, layout.dtype())]);
        let space = IterationSpace::pointwise(layout.sizes());
        let products = rounding.filter(|_| layout.numel() < VECTORS);
        let ty = ComputeType::of(computed)?;
        let exact = row.inexact.is_none();
        let this = NodeCompute { exprs, sources, ty, rounding, products, space, alone: Alone::Always, exact };
        this.is_computable(graph, node, layout.numel()).then_some(this)
    }

    /// A node that reduces dimensions.
    fn reducing(graph: &Graph, node: &GraphNode) -> Option<NodeCompute> {
        let row = table::find(node.op().name())?;
        let name = row.name.strip_prefix("aten::")?;
        let reduce = row.reduce?;
        let (sources, _) = sources(node)?;
        let first = sources.iter().find_map(|l| if let ArgSource::Operand(i) = l { Some(*i) } else { None })?;
        let layout = graph.layout(node.operands[first]);
        let dtype = layout.dtype();
        let reduced = reductions::dims(reduce.over, node, layout.rank())?;
        let space = IterationSpace::reducing(layout.sizes(), reduced);
        // All operands must have the same floating dtype.
        let dtype_of = |i: usize| graph.layout(node.operands[i]).dtype();
        let fits = |l: &ArgSource| !matches!(l, ArgSource::Operand(i) if dtype_of(*i) != dtype);
        if !dtype.is_floating() || !sources.iter().all(fits) || space.each() == 0 {
            return None;
        }
        let exprs = expression::exprs(row, node)?;
        if exprs.len() != node.results().len() || node.results().iter().any(|r| r.dtype() != dtype || !r.is_dense()) {
            return None;
        }
        let exprs = exprs.iter().zip(node.results()).map(|(f, layout)| (f, layout.dtype())).collect();
        let (ty, rounding) = (ComputeType::of(dtype)?, rounding(dtype));
        let exact = row.inexact.is_none();
        let this = NodeCompute { exprs, sources, ty, rounding, products: None, space, alone: Alone::of(name), exact };
        let reads = |l: &ArgSource| match l {
            ArgSource::Operand(i) => this.operand_strides(&this.space, graph.layout(node.operands[*i])).is_some(),
            _ => true,
        };
        let placed = node.results().iter().all(|r| this.result_strides(&this.space, r).is_some());
        (placed && this.sources.iter().all(reads) && this.is_computable(graph, node, layout.numel())).then_some(this)
    }

    /// How an operand's elements lie in a group's iteration space, as [`IterationSpace::broadcast`] says.
    pub(super) fn operand_strides(&self, space: &IterationSpace, layout: &Layout) -> Option<SmallVec<[i64; 6]>> {
        let of = if self.space.reduced.is_some() { IterationSpace::of_operand } else { IterationSpace::broadcast };
        of(space, layout.sizes(), layout.strides())
    }

    /// How a result's elements lie in a group's iteration space.
    pub(super) fn result_strides(&self, space: &IterationSpace, layout: &Layout) -> Option<SmallVec<[i64; 6]>> {
        let of = if self.space.reduced.is_some() { IterationSpace::of_result } else { IterationSpace::broadcast };
        of(space, layout.sizes(), layout.strides())
    }

    /// Whether some result has as many elements as the input although dimensions are reduced. Then a kernel goes
    /// through the elements twice.
    pub(super) fn is_deep(&self, node: &GraphNode) -> bool {
        self.space.reduced.is_some() && node.results().iter().any(|r| r.sizes() == &self.space.sizes[..])
    }

    /// Whether the result equals libtorch's in every bit. Kernels round to half once, at the end; where an expression
    /// has several operations, some of libtorch's kernels round after each of them.
    pub(super) fn is_exact(&self) -> bool {
        let exact =
            |(f, result): &(&KernelExpr, DType)| f.is_exact() && (f.operations() <= 1 || rounding(*result).is_none());
        self.exact && self.exprs.iter().all(exact)
    }

    /// Whether every computation has a loop, and none is much slower than libtorch's.
    fn is_computable(&self, graph: &Graph, node: &GraphNode, elements: i64) -> bool {
        let mut b = Builder::new(false);
        let mut next = 0;
        let operand = |b: &mut Builder, i: usize| {
            next += 1;
            ComputeType::of(graph.layout(node.operands[i]).dtype()).map(|ty| b.input(next - 1, ty))
        };
        let Some(values) = self.build(&mut b, 0, operand) else { return false };
        let ir = b.finish(&values);
        has_loop(&ir) && (elements <= SCALAR_MATH || !ir.has_scalar_math())
    }

    /// Writes the node's results into an IR. `operand` gives the values of its operands, by position; numbers start at
    /// word `first_number`.
    pub(super) fn build(
        &self,
        b: &mut Builder,
        first_number: u32,
        mut operand: impl FnMut(&mut Builder, usize) -> Option<Val>,
    ) -> Option<SmallVec<[Val; 1]>> {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for source in &self.sources {
            operands.push(match *source {
                ArgSource::Absent => Operand::Absent,
                ArgSource::Operand(i) => Operand::Value(operand(b, i)?),
                ArgSource::Number(word, dtype, tensor) => {
                    Operand::Number(first_number + word, dtype, self.rounding.filter(|_| tensor))
                }
            });
        }
        (b.count, b.products) = (self.space.each(), self.products);
        let result = |&(expr, dtype): &(&KernelExpr, DType)| {
            let value = expr.build(b, &operands, self.ty)?;
            let value = b.cast(value, ComputeType::of(dtype)?);
            // Halves are computed in single precision and rounded once per operator, at the end.
            Some(rounding(dtype).map_or(value, |op| b.op(op, &[value])))
        };
        self.exprs.iter().map(result).collect()
    }
}

/// The node's arguments, and whether it writes one of them.
fn sources(node: &GraphNode) -> Option<(SmallVec<[ArgSource; 4]>, bool)> {
    let (mut sources, mut written): (SmallVec<[ArgSource; 4]>, _) = (SmallVec::new(), false);
    for arg in node.args() {
        sources.push(match arg {
            Arg::Tensor { operand, flags } => {
                written |= flags.has(ArgFlags::MUT);
                operand.map_or(ArgSource::Absent, ArgSource::Operand)
            }
            Arg::HostScalar { number, dtype, .. } | Arg::Number { number, dtype } => {
                let tensor = matches!(arg, Arg::HostScalar { .. });
                // Kernels cannot read numbers of other dtypes.
                let known = dtype.is_floating() || matches!(dtype, DType::I64 | DType::I32 | DType::U8 | DType::Bool);
                known.then_some(ArgSource::Number(number as u32, dtype, tensor))?
            }
            Arg::Float { number } => ArgSource::Number(number as u32, DType::F64, false),
            Arg::None | Arg::Int(_) | Arg::Bool(_) | Arg::Str { .. } | Arg::Ints(_) | Arg::Bools(_) | Arg::Device => {
                ArgSource::Absent
            }
            _ => return None,
        });
    }
    Some((sources, written))
}
