//! Operators over lists of tensors, taken apart.
//!
//! `_foreach_add_.List` of seven tensors means seven times `add_.Tensor`. On its own each can be fused with what else
//! happens to its tensor: an optimiser's step over lists becomes one pass over each parameter and its state.

use ltc_ir::{Arg, ArgFlags, ArgWriter, DType, Graph, GraphNode, Op, Props, Signature, args::scalar_words, table};
use smallvec::SmallVec;

use super::{node_compute::NodeCompute, rows};

/// The graph without operators over lists, as far as their single forms are `allowed` to be fused, and per node where
/// it comes from. `None` if there are none.
pub(super) fn take_apart(graph: &Graph, allowed: impl Fn(&NodeCompute) -> bool) -> Option<(Graph, Vec<u32>)> {
    let is_list = |n: &GraphNode| n.op().name().starts_with("aten::_foreach_");
    let fusable = |part: &GraphNode| NodeCompute::pointwise(graph, part).is_some_and(|p| allowed(&p));
    let expands = |node: &GraphNode| parts(node).filter(|parts| parts.iter().all(fusable));
    graph.nodes().iter().any(is_list).then(|| graph.expanded(|node| is_list(node).then(|| expands(node)).flatten()))
}

/// The graph with those operators over lists taken apart that were in a graph of other sizes.
pub(super) fn take_apart_as_in(
    graph: &Graph,
    template: &Graph,
    lowered: &Graph,
    provenance: &[u32],
) -> Option<(Graph, Vec<u32>)> {
    let mut expands = vec![false; template.nodes().len()];
    for (part, &o) in lowered.nodes().iter().zip(provenance) {
        expands[o as usize] |= part.op() != template.nodes()[o as usize].op();
    }
    let mut expands = expands.into_iter();
    let parts_of = |node: &GraphNode| expands.next().unwrap_or(false).then(|| parts(node)).flatten();
    (!provenance.is_empty()).then(|| graph.expanded(parts_of))
}

/// Whether a node is a part of an operator over lists. It may lack arguments that libtorch's own kernel would want.
pub(super) fn is_part(graph: &Graph, source: &Graph, provenance: &[u32], node: usize) -> bool {
    provenance.get(node).is_some_and(|&o| source.nodes()[o as usize].op() != graph.nodes()[node].op())
}

/// Name of the single form of `_foreach_` operators, if kernels compute it.
fn single(name: &str) -> Option<String> {
    table::single_form(name).filter(|single| single.strip_prefix("aten::").and_then(rows::find).is_some())
}

/// One node per tensor of the lists.
fn parts(node: &GraphNode) -> Option<Vec<GraphNode>> {
    let op = Op::intern(&single(node.op().name())?, Props::NONE);
    let count = node.args().find_map(|arg| if let Arg::Tensors { len, .. } = arg { Some(len) } else { None })?;
    if count == 0 || count != node.results().len() {
        return None;
    }
    (0..count).map(|i| part(node, op, i)).collect()
}

/// The call for tensor `i` of the lists.
fn part(node: &GraphNode, op: Op, i: usize) -> Option<GraphNode> {
    let mut args = ArgWriter::new();
    let mut operands: SmallVec<[_; 4]> = SmallVec::new();
    // The words of a call's numbers lie one after the other; at most one argument may bring some.
    let mut numbers: Option<(usize, usize)> = None;
    let mut take = |at: usize, dtype: DType| numbers.replace((at, scalar_words(dtype))).is_none().then_some(());
    for arg in node.args() {
        match arg {
            Arg::Tensors { len, mask, first_operand, flags } if i < len => {
                if (0..len).any(|j| mask[j / 64] >> (j % 64) & 1 == 0) {
                    return None;
                }
                operands.push(*node.operands.get(first_operand + i)?);
                args.tensor_with(flags);
            }
            Arg::Tensor { operand: Some(operand), flags } if !flags.has(ArgFlags::MUT) => {
                operands.push(node.operands[operand]);
                args.tensor_with(flags);
            }
            Arg::Number { number, dtype } => {
                take(number, dtype)?;
                args.number(ltc_ir::Scalar::from_words(dtype, &[0, 0])?);
            }
            Arg::Numbers { dtypes, first_number } => {
                let dtype = |j: usize| DType::from_code(*dtypes.get(j)? as u8);
                let before = (0..i).map(|j| dtype(j).map(scalar_words)).sum::<Option<usize>>()?;
                take(first_number + before, dtype(i)?)?;
                args.number(ltc_ir::Scalar::from_words(dtype(i)?, &[0, 0])?);
            }
            Arg::Bool(v) => {
                args.bool(v);
            }
            _ => return None,
        }
    }
    let (words, _) = args.finish();
    let results = std::iter::once(node.results()[i].clone()).collect();
    let (at, count) = numbers.unwrap_or((0, 0));
    Some(GraphNode {
        signature: Signature::new(op, words, results),
        operands,
        first_number: node.first_number + at as u32,
        number_count: count as u32,
        first_result: 0,
        site: node.site,
    })
}
