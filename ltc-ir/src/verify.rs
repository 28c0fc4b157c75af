//! Whether a graph makes sense.
//!
//! Everyone downstream trusts what is checked here: lowering indexes operands by argument, kernels read layouts. Run it
//! after each pass in tests and on every graph that comes from text.
//!
//! What holds for a verified graph:
//! - argument words are well formed ([`args::check`]) and consume exactly the node's operands and numbers;
//! - operands and outputs are defined, operands before their use;
//! - sizes and strides are not negative and byte counts fit `i64`; generator states have rank 0;
//! - generator states stand where arguments say `generator`, and nowhere else;
//! - the first results are the written arguments' new values, in argument order, with their layouts; the last results
//!   are the generators' next states; what stands between is new and no state;
//! - `ltc::` operators have their fixed signatures, views stay inside their base, and trace-only ones do not occur.
//! - an operator of the table gets arguments its shape rule takes, and its new results have the layouts the rule
//!   answers, but for strides that no element depends on. What a rule says only of certain runtime numbers, which a
//!   graph does not have, is not asked for.
//!
//! Not checked: other operators' arguments and layouts.

use std::{fmt, ops::Range};

use smallvec::SmallVec;

use crate::{
    args::{self, Arg, ArgFlags, Malformed},
    dtype::DType,
    graph::{Graph, GraphNode, ValueId},
    layout::{Layout, LayoutRef},
    op::Op,
    rules::{Call, NewResults, ShapeError},
};

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{location}: {fault}")]
pub struct VerifyError {
    /// Where.
    pub location: Location,
    /// What.
    pub fault: Fault,
}

/// Part of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Parameter by position.
    Param(usize),
    /// Node by position, and its operator.
    Node(usize, Op),
    /// Output by position.
    Output(usize),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Param(i) => write!(f, "parameter {i}"),
            Location::Node(i, op) => write!(f, "node {i} ({op})"),
            Location::Output(i) => write!(f, "output {i}"),
        }
    }
}

/// A rule that is broken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The argument words are not well formed.
    #[error(transparent)]
    Arguments(#[from] Malformed),
    /// The arguments consume another number of operands.
    #[error("arguments take {wanted} operands, there are {found}")]
    OperandCount {
        /// What the arguments consume.
        wanted: usize,
        /// What the node has.
        found: usize,
    },
    /// The arguments consume another number of number words.
    #[error("arguments take {wanted} number words, there are {found}")]
    NumberCount {
        /// What the arguments consume.
        wanted: usize,
        /// What the node says.
        found: usize,
    },
    /// A value that is not defined, or not yet.
    #[error("{0} is not defined here")]
    Undefined(ValueId),
    /// A size below zero.
    #[error("{0} has a negative size")]
    NegativeSize(LayoutRef),
    /// A stride below zero.
    #[error("{0} has a negative stride")]
    NegativeStride(LayoutRef),
    /// Elements or bytes that `i64` cannot count.
    #[error("{0} is too large")]
    TooLarge(LayoutRef),
    /// A generator state with dimensions.
    #[error("{0} is a generator state with dimensions")]
    StateRank(LayoutRef),
    /// A tensor where a generator state belongs, or the reverse.
    #[error("operand {operand} is {found}, which does not fit its argument")]
    OperandKind {
        /// Position among the operands.
        operand: usize,
        /// Its layout.
        found: LayoutRef,
    },
    /// Fewer results than written arguments and generators.
    #[error("{written} written arguments and {states} generators, but {found} results")]
    ResultCount {
        /// Written arguments.
        written: usize,
        /// Generators.
        states: usize,
        /// Results.
        found: usize,
    },
    /// A written argument's new value with a layout other than its old one's.
    #[error("result {result} is {found}, but the argument it is written to is {wanted}")]
    WrittenLayout {
        /// Position among the results.
        result: usize,
        /// The argument's layout.
        wanted: LayoutRef,
        /// The result's.
        found: LayoutRef,
    },
    /// A generator state among the other results, or another result among the states at the end.
    #[error("result {result} is {found}: the last {states} results, and no others, are generator states")]
    ResultKind {
        /// Position among the results.
        result: usize,
        /// Its layout.
        found: LayoutRef,
        /// How many states there must be.
        states: usize,
    },
    /// Arguments that the operator's shape rule refuses.
    #[error("{0}")]
    Refused(String),
    /// Another number of new results than the operator's shape rule answers.
    #[error("the operator has {wanted} new results, there are {found}")]
    NewResultCount {
        /// What the rule answers, without results that are not there.
        wanted: usize,
        /// What the node has.
        found: usize,
    },
    /// A new result of a layout other than the operator's shape rule answers.
    #[error("result {result} is {found}, but the operator makes {wanted}")]
    ResultLayout {
        /// Position among the results.
        result: usize,
        /// The rule's answer.
        wanted: LayoutRef,
        /// The node's.
        found: LayoutRef,
    },
    /// An `ltc::` operator with other arguments or results than it has.
    #[error("wants {0}")]
    Signature(&'static str),
    /// An operator that only traces have.
    #[error("exists in traces only")]
    TraceOnly,
    /// An `ltc::` operator that does not exist.
    #[error("there is no such operator")]
    UnknownPseudoOp,
    /// A view that does not fit into its base.
    #[error("the view ends at byte {end} of a base of {bytes}")]
    ViewBounds {
        /// Where the view ends.
        end: i64,
        /// Size of the base.
        bytes: i64,
    },
}

/// Checks the whole graph; the first mistake, parameters before nodes before outputs.
///
/// # Errors
/// Fails with the first fault, and where it is.
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    for (i, layout) in graph.params().iter().enumerate() {
        at(Location::Param(i), check_layout(layout))?;
    }
    for (i, node) in graph.nodes().iter().enumerate() {
        at(Location::Node(i, node.op()), check_node(graph, node))?;
    }
    for (i, &output) in graph.outputs().iter().enumerate() {
        at(Location::Output(i), check_defined(graph, output, graph.result_count()))?;
    }
    Ok(())
}

fn at(location: Location, checked: Result<(), Fault>) -> Result<(), VerifyError> {
    checked.map_err(|fault| VerifyError { location, fault })
}

fn check_defined(graph: &Graph, value: ValueId, results: usize) -> Result<(), Fault> {
    let defined = match (value.as_param(), value.as_result()) {
        (Some(p), _) => p < graph.params().len(),
        (_, r) => r.is_some_and(|r| r < results),
    };
    if defined { Ok(()) } else { Err(Fault::Undefined(value)) }
}

fn is_state(layout: &Layout) -> bool {
    layout.dtype() == DType::RngState
}

fn check_layout(layout: &LayoutRef) -> Result<(), Fault> {
    if layout.sizes().iter().any(|&s| s < 0) {
        return Err(Fault::NegativeSize(layout.clone()));
    }
    if layout.strides().iter().any(|&s| s < 0) {
        return Err(Fault::NegativeStride(layout.clone()));
    }
    if is_state(layout) && layout.rank() > 0 {
        return Err(Fault::StateRank(layout.clone()));
    }
    let count = layout.sizes().iter().try_fold(1i64, |n, &s| n.checked_mul(s));
    let bytes = count.and_then(|_| end_byte(layout.dtype(), layout.sizes(), layout.strides(), 0));
    bytes.map(drop).ok_or_else(|| Fault::TooLarge(layout.clone()))
}

/// First byte after the last that a view touches; 0 if it touches none, `None` if `i64` cannot say.
fn end_byte(dtype: DType, sizes: &[i64], strides: &[i64], offset: i64) -> Option<i64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    let dims = sizes.iter().zip(strides);
    let last =
        dims.map(|(&size, &stride)| (size - 1).checked_mul(stride)).try_fold(offset, |n, d| n.checked_add(d?))?;
    last.checked_add(1)?.checked_mul(dtype.size_of() as i64)
}

fn check_node(graph: &Graph, node: &GraphNode) -> Result<(), Fault> {
    let consumed = args::check(node.words())?;
    if consumed.operands != node.operands.len() {
        return Err(Fault::OperandCount { wanted: consumed.operands, found: node.operands.len() });
    }
    if consumed.numbers != node.number_count as usize {
        return Err(Fault::NumberCount { wanted: consumed.numbers, found: node.number_count as usize });
    }
    for &operand in &node.operands {
        check_defined(graph, operand, node.first_result as usize)?;
    }
    node.results().iter().try_for_each(check_layout)?;
    let new = check_results(graph, node)?;
    if node.op().name().starts_with("ltc::") { check_pseudo(graph, node) } else { check_rule(graph, node, new) }
}

/// What the operator's shape rule answers whatever the numbers are; `None` where it depends on them, or where there is
/// no rule.
fn answer(graph: &Graph, node: &GraphNode) -> Option<Result<NewResults, ShapeError>> {
    let rule = node.op().row()?.rule;
    let operands: SmallVec<[&Layout; 8]> = node.operands.iter().map(|&o| &**graph.layout(o)).collect();
    let ask = |number: u64| {
        let numbers: SmallVec<[u64; 8]> = SmallVec::from_elem(number, node.number_count as usize);
        Call::decode(node.op().name(), node.words(), &operands, &numbers).map(|call| rule(&call))
    };
    let first = ask(0)?;
    if node.number_count == 0 {
        return Some(first);
    }
    // As integers, and as floats.
    let others = [1, 2, 1f64.to_bits(), 2.5f64.to_bits()];
    let same = |o: u64| matches!((ask(o), &first), (Some(Ok(other)), Ok(first)) if other == *first);
    others.into_iter().all(same).then_some(first)
}

/// Whether two layouts differ in nothing but strides of dimensions of one element or fewer, or of no elements at all.
fn is_same(a: &Layout, b: &Layout) -> bool {
    let strides_matter = !a.sizes().contains(&0);
    let same_stride = |d: usize| !strides_matter || a.sizes()[d] <= 1 || a.strides()[d] == b.strides()[d];
    a.dtype() == b.dtype() && a.sizes() == b.sizes() && (0..a.rank()).all(same_stride)
}

/// The new results, which stand at this range, against the operator's shape rule.
fn check_rule(graph: &Graph, node: &GraphNode, new: Range<usize>) -> Result<(), Fault> {
    let Some(answer) = answer(graph, node) else { return Ok(()) };
    let answer = answer.map_err(|e| Fault::Refused(e.message))?;
    let (found, wanted) = (new.len(), answer.iter().flatten().count());
    // Some of what a list of outputs is written to may be new.
    if node
        .args()
        .any(|a| matches!(a, Arg::Tensors { flags, .. } | Arg::Tensor { flags, .. } if flags.has(ArgFlags::FRESH)))
    {
        return Ok(());
    }
    if found != wanted {
        return Err(Fault::NewResultCount { wanted, found });
    }
    for (result, wanted) in new.zip(answer.into_iter().flatten()) {
        let found = &node.results()[result];
        if !is_same(found, &wanted) {
            return Err(Fault::ResultLayout { result, wanted: wanted.into(), found: found.clone() });
        }
    }
    Ok(())
}

/// Operand kinds, and results: written arguments first, generator states last. Where the new ones stand between.
fn check_results(graph: &Graph, node: &GraphNode) -> Result<Range<usize>, Fault> {
    // The operand whose layout each written result keeps; none where the old contents do not matter.
    let mut written: SmallVec<[Option<usize>; 4]> = SmallVec::new();
    let mut generators: SmallVec<[usize; 2]> = SmallVec::new();
    for arg in node.args() {
        match arg {
            Arg::Tensor { operand, flags } if flags.has(ArgFlags::MUT) => written.push(operand),
            Arg::Tensors { mask, first_operand, flags, .. } if flags.has(ArgFlags::MUT) => {
                let present = mask.iter().map(|m| m.count_ones() as usize).sum::<usize>();
                let is_read = !flags.has(ArgFlags::FRESH);
                written.extend((first_operand..first_operand + present).map(|o| is_read.then_some(o)));
            }
            Arg::Generator { operand } => generators.push(operand),
            _ => {}
        }
    }
    for (operand, &value) in node.operands.iter().enumerate() {
        let found = graph.layout(value);
        if is_state(found) != generators.contains(&operand) {
            return Err(Fault::OperandKind { operand, found: found.clone() });
        }
    }
    let states = if node.op() == Op::seed() { 1 } else { generators.len() };
    let found = node.results().len();
    let Some(tensors) = found.checked_sub(states).filter(|&t| t >= written.len()) else {
        return Err(Fault::ResultCount { written: written.len(), states, found });
    };
    for (result, layout) in node.results().iter().enumerate() {
        if is_state(layout) != (result >= tensors) {
            return Err(Fault::ResultKind { result, found: layout.clone(), states });
        }
    }
    for (result, (operand, found)) in written.iter().zip(node.results()).enumerate() {
        if let Some(wanted) = operand.map(|o| graph.layout(node.operands[o]))
            && wanted != found
        {
            return Err(Fault::WrittenLayout { result, wanted: wanted.clone(), found: found.clone() });
        }
    }
    Ok(written.len()..tensors)
}

/// The operators of our own; see [`Op::read_view`] and its neighbours.
fn check_pseudo(graph: &Graph, node: &GraphNode) -> Result<(), Fault> {
    const READ: ArgFlags = ArgFlags::NONE;
    const WRITTEN: ArgFlags = ArgFlags::MUT;
    let arguments: Vec<Arg<'_>> = node.args().collect();
    let operand = |i: usize| graph.layout(node.operands[i]);
    match node.op() {
        op if op == Op::read_view() => match (&arguments[..], node.results()) {
            ([Arg::Tensor { flags: READ, .. }, Arg::Int(offset)], [view]) if *offset >= 0 => {
                check_view(operand(0), view.dtype(), view.sizes(), view.strides(), *offset)
            }
            _ => Err(Fault::Signature("(value, int offset of at least 0) and one result")),
        },
        op if op == Op::write_view() => match (&arguments[..], node.results()) {
            (
                [
                    Arg::Tensor { flags: WRITTEN, .. },
                    Arg::Tensor { flags: READ, .. },
                    Arg::Ints(sizes),
                    Arg::Ints(strides),
                    Arg::Int(offset),
                ],
                [_],
            ) if *offset >= 0 && sizes.len() == strides.len() => {
                let ints = |words: &[u64]| words.iter().map(|&w| w as i64).collect::<Vec<_>>();
                let (sizes, strides, value) = (ints(sizes), ints(strides), operand(1));
                if value.sizes() != sizes || strides.iter().any(|&s| s < 0) {
                    return Err(Fault::Signature("the value's sizes, and strides of at least 0"));
                }
                check_view(operand(0), value.dtype(), &sizes, &strides, *offset)
            }
            _ => Err(Fault::Signature(
                "(mut base, value, ints sizes, ints strides, int offset of at least 0) and one result",
            )),
        },
        op if op == Op::empty() => match (&arguments[..], node.results().len()) {
            ([], 1) => Ok(()),
            _ => Err(Fault::Signature("no arguments and one result")),
        },
        op if op == Op::seed() => match (&arguments[..], node.results().len()) {
            ([Arg::Number { dtype: DType::I64, .. }], 1) => Ok(()),
            _ => Err(Fault::Signature("(number i64) and one result, a generator state")),
        },
        op if op == Op::result() || op == Op::data() => Err(Fault::TraceOnly),
        _ => Err(Fault::UnknownPseudoOp),
    }
}

fn check_view(base: &Layout, dtype: DType, sizes: &[i64], strides: &[i64], offset: i64) -> Result<(), Fault> {
    // The base's layout was checked where it is defined.
    let bytes = base.storage_bytes() as i64;
    match end_byte(dtype, sizes, strides, offset) {
        Some(end) if end <= bytes => Ok(()),
        end => Err(Fault::ViewBounds { end: end.unwrap_or(i64::MAX), bytes }),
    }
}
