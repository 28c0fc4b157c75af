//! Dead gradients: operators that say by an `output_mask` which gradients to compute are not asked for those nobody
//! reads.

use crate::{
    args::{Arg, ArgWriter},
    graph::{Graph, GraphNode},
    props::OpClass,
    rewrite::{Rewriting, Rewritten, numbers_of, results_from},
    signature::{Results, Signature, SignatureRef},
    table::ArgKind,
};

pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let mut used = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|&o| used[graph.slot(o)] = true);
    // Backwards: what feeds only unused values is unused itself.
    for node in graph.nodes().iter().rev() {
        if node.result_ids().any(|r| used[graph.slot(r)]) {
            node.operands.iter().for_each(|&o| used[graph.slot(o)] = true);
        }
    }
    let mut rewriting = Rewriting::new(graph);
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        let mut wanted: Vec<bool> = node.result_ids().map(|r| used[graph.slot(r)]).collect();
        if !wanted.contains(&true) {
            continue;
        }
        match smaller(node, &mut wanted) {
            Some(signature) => {
                times += 1;
                let operands: Vec<_> = node.operands.iter().map(|&o| rewriting.value(o)).collect();
                let first = rewriting.push(index, signature, &operands, numbers_of(node));
                let kept = node.result_ids().zip(&wanted).filter(|(_, wanted)| **wanted).map(|(r, _)| r);
                for (old, new) in kept.zip(results_from(first)) {
                    rewriting.stand_in(old, new);
                }
            }
            None => rewriting.keep(index),
        }
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

/// The signature with fewer results, and which these are; `None` if it takes no mask, or all are wanted.
fn smaller(node: &GraphNode, wanted: &mut [bool]) -> Option<SignatureRef> {
    let specs = node.op().row()?.arguments;
    let at = specs.iter().position(|a| a.name == "output_mask" && a.kind == ArgKind::Bools)?;
    // Without a bias there may be no gradient though the mask asks for it: then positions tell nothing.
    let Arg::Bools(asked) = node.args().nth(at)? else { return None };
    let asked: Vec<usize> = (0..asked.len()).filter(|&i| asked[i] != 0).collect();
    if asked.len() != wanted.len() {
        return None;
    }
    // A convolution's kernels make the bias's gradient along with the weight's.
    if node.op().spec().class == OpClass::Convolution
        && let (Ok(weight), Ok(bias)) = (asked.binary_search(&1), asked.binary_search(&2))
    {
        wanted[weight] |= wanted[bias];
    }
    if !wanted.contains(&false) {
        return None;
    }
    let mut words = ArgWriter::new();
    for (i, arg) in node.args().enumerate() {
        match arg {
            Arg::Bools(mask) if i == at => {
                let mask: Vec<bool> =
                    (0..mask.len()).map(|m| asked.binary_search(&m).is_ok_and(|at| wanted[at])).collect();
                words.bools(&mask);
            }
            _ => drop(words.again(&arg)),
        }
    }
    let results: Results = node.results().iter().zip(&*wanted).filter(|(_, w)| **w).map(|(l, _)| l.clone()).collect();
    Some(Signature::new(node.op(), words.finish().0, results))
}
