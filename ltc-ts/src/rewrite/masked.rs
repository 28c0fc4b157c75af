//! `a[mask] = s` is recorded as `index_put_` of one mask; it means `where(mask, s, a)`, which becomes part of a kernel.
//!
//! libtorch's kernel for it is `masked_fill_`, one pass over `a`; the fused one is at most that, so it never loses.

use ltc_ir::{Arg, ArgFlags, ArgWriter, DType, Graph, GraphNode, Op, Props, Rewriting, Rewritten, Signature, ValueId};

/// The pass's application.
pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let mut rewriting = Rewriting::new(graph);
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        let Some([target, mask, value]) = masked(graph, node) else {
            rewriting.keep(index);
            continue;
        };
        let (words, _) = ArgWriter::new().tensor().tensor().tensor().finish();
        let op = Op::intern("aten::where.self", Props::NONE);
        let signature = Signature::new(op, words, node.results().iter().cloned().collect());
        let operands = [mask, value, target].map(|v| rewriting.value(v));
        let first = rewriting.push(index, signature, &operands, 0..0);
        node.result_ids().for_each(|r| rewriting.stand_in(r, first));
        times += 1;
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

/// Target, mask and value of such a write.
fn masked(graph: &Graph, node: &GraphNode) -> Option<[ValueId; 3]> {
    let name = node.op().name();
    if name != "aten::index_put_" && name != "aten::index_put" {
        return None;
    }
    let mut args = node.args();
    let (Some(Arg::Tensor { operand: Some(0), .. }), Some(Arg::Tensors { len: 1, first_operand: 1, flags, .. })) =
        (args.next(), args.next())
    else {
        return None;
    };
    let (Some(Arg::Tensor { operand: Some(2), .. }), Some(Arg::Bool(false))) = (args.next(), args.next()) else {
        return None;
    };
    let (&[target, mask, value], [result]) = (&node.operands[..], node.results()) else { return None };
    let (t, m, v) = (graph.layout(target), graph.layout(mask), graph.layout(value));
    let fits = flags == ArgFlags::NONE
        && m.dtype() == DType::Bool
        && m.sizes() == t.sizes()
        // A 0-dim value takes no part in promotion here: it has the target's dtype.
        && v.rank() == 0
        && v.dtype() == t.dtype()
        && result == t
        && t.is_dense();
    fits.then_some([target, mask, value])
}
