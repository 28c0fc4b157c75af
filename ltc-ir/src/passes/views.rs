//! Views of views become one view; a view that shows all of its base is its base, and so is a copy of the same layout:
//! values never change, so one buffer serves both until somebody writes.

use crate::{
    args::{Arg, ArgFlags, ArgWriter, view_offset},
    graph::{Graph, GraphNode, ValueId},
    layout::Layout,
    op::Op,
    rewrite::{Rewriting, Rewritten},
    signature::Signature,
};

pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let mut rewriting = Rewriting::new(graph);
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        let done = match node.op() {
            op if op == Op::read_view() => view(&mut rewriting, index, node),
            op if op.name() == "aten::copy_" => copy(&mut rewriting, node),
            _ => None,
        };
        times += usize::from(done.is_some());
        if done.is_none() {
            rewriting.keep(index);
        }
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

fn view(rewriting: &mut Rewriting<'_>, index: usize, node: &GraphNode) -> Option<()> {
    let (result, layout) = (node.result_ids().next()?, node.results().first()?);
    let mut base = rewriting.value(*node.operands.first()?);
    let mut skip = view_offset(node.words())?;
    if layout.dtype() != rewriting.layout(base).dtype() {
        return None;
    }
    let mut shorter = false;
    while let Some(inner) = rewriting.definition(base) {
        if inner.op() == Op::read_view() {
            let below = *inner.operands.first()?;
            if rewriting.layout(below).dtype() != layout.dtype() {
                break;
            }
            (base, skip) = (below, skip + view_offset(inner.words())?);
        } else if let Some(value) = written(rewriting, inner, layout, skip) {
            (base, skip) = (value, 0);
        } else {
            break;
        }
        shorter = true;
    }
    if skip == 0 && rewriting.layout(base) == layout {
        rewriting.stand_in(result, base);
        return Some(());
    }
    if !shorter {
        return None;
    }
    let (words, _) = ArgWriter::new().tensor().int(skip).finish();
    let signature = Signature::new(Op::read_view(), words, [layout.clone()].into_iter().collect());
    let view = rewriting.push(index, signature, &[base], 0..0);
    rewriting.stand_in(result, view);
    Some(())
}

/// The value a node wrote to exactly this region, as it is.
fn written(rewriting: &Rewriting<'_>, node: &GraphNode, region: &Layout, skip: i64) -> Option<ValueId> {
    if node.op() != Op::write_view() {
        return None;
    }
    let mut ints = node.args().filter_map(|a| match a {
        Arg::Ints(words) => Some(words),
        _ => None,
    });
    let same = |words: Option<&[u64]>, dims: &[i64]| {
        words.is_some_and(|w| w.iter().map(|&x| x as i64).eq(dims.iter().copied()))
    };
    let value = *node.operands.get(1)?;
    let there = same(ints.next(), region.sizes())
        && same(ints.next(), region.strides())
        && view_offset(node.words()) == Some(skip);
    // A dense region has each element once, so what was written last is what was written.
    (there && region.is_dense() && **rewriting.layout(value) == *region).then_some(value)
}

/// `copy_` into new memory.
fn copy(rewriting: &mut Rewriting<'_>, node: &GraphNode) -> Option<()> {
    let fresh = matches!(node.args().next(), Some(Arg::Tensor { flags, .. }) if flags.has(ArgFlags::FRESH));
    let (&[source], [layout]) = (&node.operands[..], node.results()) else { return None };
    let source = rewriting.value(source);
    if !fresh || rewriting.layout(source) != layout || !layout.is_dense() {
        return None;
    }
    rewriting.stand_in(node.result_ids().next()?, source);
    Some(())
}
