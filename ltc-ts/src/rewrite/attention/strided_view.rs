//! Where values lie in memory: seen through views, and through copies that only change their order.

use ltc_ir::{Arg, ArgFlags, Graph, GraphNode, Layout, Op, ValueId};

/// A value as a view of another.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct StridedView {
    pub(super) base: ValueId,
    /// In elements.
    pub(super) offset: i64,
    pub(super) layout: Layout,
}

impl StridedView {
    /// The value itself.
    pub(super) fn at(base: ValueId, layout: Layout) -> StridedView {
        StridedView { base, offset: 0, layout }
    }

    /// Where a value lies, through all views.
    pub(super) fn of(graph: &Graph, v: ValueId) -> StridedView {
        let mut view = StridedView::at(v, (**graph.layout(v)).clone());
        view.through_views(graph);
        view
    }

    fn through_views(&mut self, graph: &Graph) {
        while let Some(node) = graph.definition(self.base).filter(|n| n.op() == Op::read_view())
            && let Some(Arg::Int(more)) = node.args().nth(1)
            && graph.layout(node.operands[0]).dtype() == self.layout.dtype()
        {
            (self.base, self.offset) = (node.operands[0], self.offset + more);
        }
    }

    /// The same elements in what was copied, if the base is a copy.
    pub(super) fn through_copy(&self, graph: &Graph) -> Option<StridedView> {
        let copy = graph.definition(self.base).filter(|n| is_copy(n) && self.offset == 0)?;
        let source = graph.layout(copy.operands[0]);
        if source.dtype() != self.layout.dtype() || source.sizes() != copy.results()[0].sizes() {
            return None;
        }
        let layout = moved(&copy.results()[0], &self.layout, source)?;
        let mut view = StridedView::at(copy.operands[0], layout);
        view.through_views(graph);
        Some(view)
    }

    /// The same elements with these sizes and strides.
    pub(super) fn seen(self, sizes: &[i64], strides: &[i64]) -> StridedView {
        StridedView { layout: Layout::strided(self.layout.dtype(), sizes, strides), ..self }
    }
}

/// Whether a node copies its operand to memory of its own.
pub(super) fn is_copy(node: &GraphNode) -> bool {
    node.op().name() == "aten::copy_"
        && node.operands.len() == 1
        && matches!(node.args().next(), Some(Arg::Tensor { flags, .. }) if flags.has(ArgFlags::FRESH))
}

/// The elements that `view` shows of a value of layout `from`, where the value has the layout `to`: both have the same
/// sizes, and `from` is contiguous. `None` if no strides say it.
pub(super) fn moved(from: &Layout, view: &Layout, to: &Layout) -> Option<Layout> {
    if !from.is_contiguous() || view.numel() != from.numel() || view.numel() == 0 {
        return None;
    }
    let (sizes, olds, news) = (from.sizes(), from.strides(), to.strides());
    let mut free = vec![true; sizes.len()];
    let mut moved = |(&size, &stride): (&i64, &i64)| {
        if size == 1 {
            return Some(1);
        }
        // The dimensions this one is made of, the innermost first.
        let (mut left, mut old, mut new) = (size, stride, None);
        while left > 1 {
            let d = (0..sizes.len()).find(|&d| sizes[d] > 1 && olds[d] == old && std::mem::take(&mut free[d]))?;
            let step = *new.get_or_insert(news[d]);
            // Those it merges must lie one after the other there too.
            if left % sizes[d] != 0 || news[d] != step * (size / left) {
                return None;
            }
            (left, old) = (left / sizes[d], old * sizes[d]);
        }
        new
    };
    let strides: Option<Vec<i64>> = view.sizes().iter().zip(view.strides()).map(&mut moved).collect();
    Some(Layout::strided(view.dtype(), view.sizes(), &strides?))
}

#[cfg(test)]
mod tests {
    use ltc_ir::DType;

    use super::*;

    /// Offsets of all elements, in order.
    fn offsets(sizes: &[i64], strides: &[i64]) -> Vec<i64> {
        sizes.iter().zip(strides).fold(vec![0], |all, (&size, &stride)| {
            all.iter().flat_map(|o| (0..size).map(move |i| o + i * stride)).collect()
        })
    }

    #[test]
    fn what_a_view_of_a_copy_shows_is_found_in_what_was_copied() {
        let f32s = |sizes: &[i64], strides: &[i64]| Layout::strided(DType::F32, sizes, strides);
        let from = Layout::contiguous(DType::F32, &[2, 3, 5, 7]);
        // As heads are turned; in rows of a larger table; as it was; as keys are turned.
        let sources = [[105, 7, 21, 1], [630, 7, 42, 1], [105, 35, 7, 1], [105, 5, 1, 15]];
        let views: [(&[i64], &[i64]); 7] = [
            (&[2, 5, 3, 7], &[105, 7, 35, 1]),
            (&[6, 5, 7], &[35, 7, 1]),
            (&[2, 5, 21], &[105, 7, 1]),
            (&[2, 3, 7, 5], &[105, 35, 1, 7]),
            (&[2, 15, 7], &[105, 7, 1]),
            (&[2, 7, 15], &[105, 1, 7]),
            (&[1, 2, 105], &[9, 105, 1]),
        ];
        let mut found = 0;
        for source in sources {
            let to = f32s(from.sizes(), &source);
            let (there, here) = (offsets(to.sizes(), to.strides()), offsets(from.sizes(), from.strides()));
            for (sizes, strides) in views {
                let view = f32s(sizes, strides);
                let Some(moved) = moved(&from, &view, &to) else { continue };
                found += 1;
                let expected: Vec<i64> = offsets(sizes, strides)
                    .iter()
                    .map(|o| there[here.iter().position(|h| h == o).expect("an element")])
                    .collect();
                assert_eq!(offsets(moved.sizes(), moved.strides()), expected, "{view} of {to}");
            }
        }
        assert_eq!(found, 14);
    }
}
