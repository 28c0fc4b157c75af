//! Common subexpressions: what is computed twice is computed once.
//!
//! Two nodes are equal if their signatures and operands are, and their runtime numbers are those of the schema's
//! defaults (which is assumed, and checked before each run). Nothing is gained where somebody writes over the value,
//! which then has to be copied, nor where a large value would have to be kept for long: programs recompute to save
//! memory on purpose.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::writes;
use crate::{
    args::{Arg, ArgFlags},
    graph::{Graph, GraphNode, ValueId},
    hash::Hash128,
    props::{OpClass, Props},
    rewrite::{Rewriting, Rewritten, default_numbers},
};

/// Values of at most this many bytes are kept for as long as they are useful.
const SMALL: usize = 64 << 10;
/// Larger ones are kept for this many nodes longer than they would be.
const SOON: usize = 16;

pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let (mut last_use, mut written) = (vec![0usize; graph.value_count()], vec![false; graph.value_count()]);
    for (index, node) in graph.nodes().iter().enumerate() {
        for &operand in &node.operands {
            last_use[graph.slot(operand)] = index;
            written[graph.slot(operand)] |= writes(node, operand);
        }
    }
    graph.outputs().iter().for_each(|&o| last_use[graph.slot(o)] = usize::MAX);

    let mut rewriting = Rewriting::new(graph);
    let mut known: FxHashMap<(Hash128, SmallVec<[ValueId; 4]>), usize> = FxHashMap::default();
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        let slot = |v: ValueId| graph.slot(v);
        let numbers = default_numbers(node).filter(|_| is_pure(node));
        let (Some(numbers), false) = (numbers, node.result_ids().any(|r| written[slot(r)])) else {
            rewriting.keep(index);
            continue;
        };
        let operands: SmallVec<[ValueId; 4]> = node.operands.iter().map(|&o| rewriting.value(o)).collect();
        let key = (node.signature.hash(), operands);
        let same = known.get(&key).copied().filter(|&first| {
            let first = &graph.nodes()[first];
            let lives = |(r, layout): (ValueId, &crate::LayoutRef)| {
                layout.storage_bytes() <= SMALL || last_use[slot(r)].saturating_add(SOON) >= index
            };
            first.signature == node.signature && first.result_ids().zip(first.results()).all(lives)
        });
        let Some(first) = same else {
            known.insert(key, index);
            rewriting.keep(index);
            continue;
        };
        let first = &graph.nodes()[first];
        for (old, new) in node.result_ids().zip(first.result_ids()) {
            let by = rewriting.value(new);
            rewriting.stand_in(old, by);
            last_use[slot(new)] = last_use[slot(new)].max(last_use[slot(old)]);
        }
        for (number, word) in default_numbers(first).into_iter().flatten().chain(numbers) {
            rewriting.assume(number, word);
        }
        times += 1;
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

/// Whether equal calls of what is known to the table give equal results.
fn is_pure(node: &GraphNode) -> bool {
    let op = node.op();
    let changes = |arg: Arg<'_>| match arg {
        Arg::Tensor { flags, .. } | Arg::Tensors { flags, .. } => flags.has(ArgFlags::MUT),
        Arg::Generator { .. } => true,
        _ => false,
    };
    !matches!(op.spec().class, OpClass::Generic | OpClass::Random | OpClass::Factory)
        && !op.has(Props::RANDOM)
        && !op.has(Props::MUTATES)
        && !node.operands.is_empty()
        && !node.args().any(changes)
}
