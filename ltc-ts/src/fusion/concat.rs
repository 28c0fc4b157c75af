//! Values that are joined by `cat` or `stack`, written where they will lie.
//!
//! A kernel whose result is only joined with others writes it into its slice of the joined value; what remains is
//! copied there piece by piece. So the joined value is made by several steps: one that asks for its memory
//! ([`PlanItem::Alloc`]), then kernels and copies, each of which takes the value over from the one before.

use ltc_ir::{Arg, Graph, GraphNode, Layout, ValueId};
use smallvec::SmallVec;

use super::{PlanItem, group::Slice};

/// Joined values of fewer bytes are copied as fast as steps are started (measured: `docs/performance.md`).
const BYTES: usize = 32 << 10;
/// Shorter rows with others between them are written slower than they are copied.
const ROW: i64 = 512;
/// Steps between the first piece and the join for each piece, beyond which memory would be asked for too early.
const SOON: usize = 4;

/// The slices of a node that joins its operands; `None` for others.
pub(crate) fn slices(graph: &Graph, node: &GraphNode) -> Option<Vec<Slice>> {
    let [joined] = node.results() else { return None };
    let stacked = match node.op().name() {
        "aten::cat" => false,
        "aten::stack" => true,
        _ => return None,
    };
    let Some(Arg::Int(dim)) = node.args().nth(1) else { return None };
    let dim = usize::try_from(if dim < 0 { dim + joined.rank() as i64 } else { dim }).ok()?;
    let mut at = 0;
    let slice = |&operand: &ValueId| {
        let layout = graph.layout(operand);
        let (sizes, mut strides) = (layout.sizes(), joined.strides().to_vec());
        let step = *strides.get(dim)?;
        let rank = if stacked { joined.rank() - 1 } else { joined.rank() };
        if sizes.len() != rank || layout.dtype() != joined.dtype() || layout.numel() == 0 {
            return None;
        }
        if stacked {
            strides.remove(dim);
        }
        let offset = at * step;
        at += if stacked { 1 } else { sizes[dim] };
        Some(Slice { layout: Layout::strided(layout.dtype(), sizes, &strides).into(), offset })
    };
    node.operands.iter().map(slice).collect()
}

/// Has kernels write to where values will be joined.
pub(super) fn join_in_place(graph: &Graph, items: &mut Vec<PlanItem>) {
    if !items.iter().any(|d| matches!(d, PlanItem::Node(n) if slices(graph, &graph.nodes()[*n as usize]).is_some())) {
        return;
    }
    // Per slot how many steps read it (an output is read), and the step that makes it.
    let (mut reads, mut maker) = (vec![0usize; graph.value_count()], vec![usize::MAX; graph.value_count()]);
    graph.outputs().iter().for_each(|&o| reads[graph.slot(o)] += 1);
    for (i, item) in items.iter().enumerate() {
        item.operands(graph).iter().for_each(|&o| reads[graph.slot(o)] += 1);
        item.results(graph).iter().for_each(|&r| maker[graph.slot(r)] = i);
    }
    // New steps, by the step before which they come.
    let mut allocs: Vec<(usize, u32)> = Vec::new();
    let mut joins: Vec<(usize, SmallVec<[PlanItem; 4]>)> = Vec::new();
    for at in 0..items.len() {
        let PlanItem::Node(n) = items[at] else { continue };
        let node = &graph.nodes()[n as usize];
        let Some(slices) = slices(graph, node) else { continue };
        let can = |(&operand, slice): (&ValueId, &Slice)| {
            let slot = graph.slot(operand);
            let row = slice.layout.sizes().last().copied().unwrap_or(1);
            let by = items.get(maker[slot]).filter(|_| reads[slot] == 1 && (row >= ROW || slice.layout.is_dense()));
            matches!(by, Some(PlanItem::Fused(kernel)) if kernel.can_write_into(operand)).then(|| maker[slot])
        };
        let makers: Vec<Option<usize>> = node.operands.iter().zip(&slices).map(can).collect();
        let bytes = |placed: bool| {
            let of = makers.iter().zip(&slices).filter(|(m, _)| !placed || m.is_some());
            of.map(|(_, s)| s.layout.numel() as usize * s.layout.dtype().size_of()).sum::<usize>()
        };
        let Some(first) = makers.iter().flatten().min().copied() else { continue };
        if bytes(true) * 2 < bytes(false) || bytes(false) < BYTES || at - first > SOON * makers.len() {
            continue;
        }
        let joined = node.result_ids().next().unwrap_or(ValueId::result(0));
        let mut copies = SmallVec::new();
        for (i, (maker, slice)) in makers.into_iter().zip(slices).enumerate() {
            match maker.map(|m| &mut items[m]) {
                Some(PlanItem::Fused(kernel)) => kernel.write_into(node.operands[i], joined, &slice),
                _ => copies.push(PlanItem::CopySlice { node: n, operands: [joined, node.operands[i]], slice }),
            }
        }
        allocs.push((first, n));
        joins.push((at, copies));
    }
    allocs.sort_unstable();
    let (mut allocs, mut joins) = (allocs.into_iter().peekable(), joins.into_iter().peekable());
    for (i, item) in std::mem::take(items).into_iter().enumerate() {
        while let Some((_, n)) = allocs.next_if(|r| r.0 == i) {
            items.push(PlanItem::Alloc(n));
        }
        match joins.next_if(|j| j.0 == i) {
            Some((_, copies)) => items.extend(copies),
            None => items.push(item),
        }
    }
}
