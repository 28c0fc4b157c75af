//! What every graph must satisfy, whoever built it.

use crate::{
    args::{Arg, ArgFlags, ArgReader},
    dtype::DType,
    graph::{Graph, GraphNode, ValueId},
    layout::LayoutRef,
    op::Op,
};

/// A rule that a graph breaks, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("node {node} ({op}): {what}")]
pub struct VerifyError {
    /// Position of the node; the number of nodes for the outputs.
    pub node: usize,
    /// Its operator.
    pub op: String,
    /// The rule.
    pub what: Violation,
}

/// Rules.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// Argument words that do not decode.
    #[error("malformed arguments")]
    MalformedArguments,
    /// The arguments consume another number of operands.
    #[error("{given} operands, its arguments take {taken}")]
    OperandCount {
        /// Operands of the node.
        given: usize,
        /// Operands its arguments consume.
        taken: usize,
    },
    /// The arguments consume another number of number words.
    #[error("{given} number words, its arguments take {taken}")]
    NumberCount {
        /// Number words of the node.
        given: usize,
        /// Words its arguments consume.
        taken: usize,
    },
    /// Numbers are not laid out one node after the other.
    #[error("its numbers begin at {given}, expected {expected}")]
    NumberOrder {
        /// Where they begin.
        given: usize,
        /// Where the node before ends.
        expected: usize,
    },
    /// A value is used before (or without) its definition.
    #[error("{0} is used before it is defined")]
    Undefined(ValueId),
    /// A written argument has no result, or one of another element type or shape.
    #[error("the written argument {argument} has no matching result")]
    WrittenResult {
        /// Argument position.
        argument: usize,
    },
    /// A generator argument that is no generator state, or has no next state among the results.
    #[error("its generator state is missing")]
    GeneratorState,
    /// A size is negative, or a stride of a dimension with more than one element is.
    #[error("impossible layout {0}")]
    Layout(String),
    /// One of our own operators with other arguments than it has.
    #[error("expected {0}")]
    Signature(&'static str),
}

fn sane(layout: &LayoutRef) -> bool {
    let dims = layout.sizes().iter().zip(layout.strides());
    dims.into_iter().all(|(&n, &s)| n >= 0 && (s >= 0 || n < 2))
}

/// Whether written argument and result hold the same elements (strides may change).
fn same_elements(a: &LayoutRef, b: &LayoutRef) -> bool {
    a.dtype() == b.dtype() && a.sizes() == b.sizes()
}

fn own_operator(graph: &Graph, node: &GraphNode) -> Result<(), Violation> {
    let args: Vec<Arg<'_>> = node.args().collect();
    let op = node.op();
    let fits = if op == Op::read_view() {
        matches!(args[..], [Arg::Tensor { .. }, Arg::Int(offset)] if offset >= 0) && node.results().len() == 1
    } else if op == Op::write_view() {
        matches!(args[..], [Arg::Tensor { .. }, Arg::Tensor { .. }, Arg::Ints(n), Arg::Ints(s), Arg::Int(offset)]
            if n.len() == s.len() && offset >= 0)
            && matches!(node.results(), [result] if result == graph.layout(node.operands[0]))
    } else if op == Op::empty() {
        args.is_empty() && node.results().len() == 1
    } else if op == Op::seed() {
        matches!(args[..], [Arg::Number { dtype: DType::I64, .. }])
            && matches!(node.results(), [state] if state.dtype() == DType::RngState)
    } else {
        op != Op::result() && op != Op::data()
    };
    if fits { Ok(()) } else { Err(Violation::Signature("the arguments and results documented in op.rs")) }
}

fn check_node(graph: &Graph, node: &GraphNode, next_number: usize, defined: usize) -> Result<(), Violation> {
    let mut reader = ArgReader::new(node.words());
    reader.by_ref().for_each(drop);
    if reader.error() {
        return Err(Violation::MalformedArguments);
    }
    let (given, taken) = (node.operands.len(), reader.operands());
    if given != taken {
        return Err(Violation::OperandCount { given, taken });
    }
    let (given, taken) = (node.number_count as usize, reader.numbers());
    if given != taken {
        return Err(Violation::NumberCount { given, taken });
    }
    if node.first_number as usize != next_number {
        return Err(Violation::NumberOrder { given: node.first_number as usize, expected: next_number });
    }
    for &v in &node.operands {
        let known =
            v.as_param().is_some_and(|p| p < graph.params().len()) || v.as_result().is_some_and(|r| r < defined);
        if !known {
            return Err(Violation::Undefined(v));
        }
    }
    if let Some(bad) = node.results().iter().find(|l| !sane(l)) {
        return Err(Violation::Layout(bad.to_string()));
    }
    let (mut results, mut states) = (node.results().iter(), 0);
    for (argument, arg) in node.args().enumerate() {
        let wrong = Err(Violation::WrittenResult { argument });
        match arg {
            Arg::Tensor { operand, flags } if flags.has(ArgFlags::MUT) => match (operand, results.next()) {
                (_, None) => return wrong,
                // `out=` arguments may change shape.
                (Some(i), Some(result)) if graph.layout(node.operands[i]).dtype() != result.dtype() => return wrong,
                _ => {}
            },
            Arg::Tensors { mask, first_operand, flags, .. } if flags.has(ArgFlags::MUT) => {
                let count: usize = mask.iter().map(|m| m.count_ones() as usize).sum();
                for i in 0..count {
                    let Some(result) = results.next() else { return wrong };
                    let fresh = flags.has(ArgFlags::FRESH);
                    if !fresh && !same_elements(graph.layout(node.operands[first_operand + i]), result) {
                        return wrong;
                    }
                }
            }
            Arg::Generator { operand } => {
                states += 1;
                if graph.layout(node.operands[operand]).dtype() != DType::RngState {
                    return Err(Violation::GeneratorState);
                }
            }
            _ => {}
        }
    }
    let produced = node.results().iter().rev().take_while(|l| l.dtype() == DType::RngState).count();
    if produced < states {
        return Err(Violation::GeneratorState);
    }
    if node.op().name().starts_with("ltc::") { own_operator(graph, node) } else { Ok(()) }
}

/// Checks all rules; the first violation in execution order.
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    let outside = |what| VerifyError { node: graph.nodes().len(), op: "graph".into(), what };
    if let Some(bad) = graph.params().iter().find(|l| !sane(l)) {
        return Err(outside(Violation::Layout(bad.to_string())));
    }
    let (mut numbers, mut defined) = (0, 0);
    for (i, node) in graph.nodes().iter().enumerate() {
        let error = |what| VerifyError { node: i, op: node.op().name().into(), what };
        check_node(graph, node, numbers, defined).map_err(error)?;
        numbers += node.number_count as usize;
        defined += node.results().len();
    }
    for &v in graph.outputs() {
        let known =
            v.as_param().is_some_and(|p| p < graph.params().len()) || v.as_result().is_some_and(|r| r < defined);
        if !known {
            return Err(outside(Violation::Undefined(v)));
        }
    }
    Ok(())
}
