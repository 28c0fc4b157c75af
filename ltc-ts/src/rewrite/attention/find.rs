//! What attention written by hand looks like, and its gradient as autograd records it.

use ltc_ir::{Arg, DType, Graph, GraphNode, Op, ValueId};

use super::strided_view::StridedView;

/// What is done to the scores before the softmax.
pub(super) enum Mask {
    /// This is added, so many times as this number says.
    Added(ValueId, u32),
    /// Where this is true, they become this number.
    Filled(ValueId, u32),
}

impl Mask {
    fn value(&self) -> ValueId {
        let (Mask::Added(mask, _) | Mask::Filled(mask, _)) = *self;
        mask
    }
}

/// One attention of `b` times `h` heads of `l` queries and `s` keys, `e` numbers each. Queries, keys and values lie as
/// `[b, h, rows, e]`.
pub(super) struct Attention<'a> {
    pub(super) q: StridedView,
    pub(super) k: StridedView,
    pub(super) v: StridedView,
    /// The product or quotient of the scores and a number.
    pub(super) scale: Option<&'a GraphNode>,
    /// The mask, and how it lies over `[b, h, l, s]`, with size one where it does not change.
    pub(super) mask: Option<(Mask, StridedView)>,
    /// `[b, h, l, s, e]`.
    pub(super) sizes: [i64; 5],
    /// The node that makes the result.
    pub(super) last: usize,
    pub(super) gradient: Option<Gradient>,
}

/// The nodes that make the gradients, and of what.
pub(super) struct Gradient {
    /// The gradient of the result, as `[b, h, l, e]`.
    pub(super) out: StridedView,
    pub(super) q: usize,
    /// Of the transposed keys.
    pub(super) kt: usize,
    pub(super) v: usize,
    /// The number by which the gradient of the scores is scaled.
    pub(super) scale: Option<u32>,
    /// The number with which it is filled.
    pub(super) filled: Option<u32>,
}

/// A node that reads a value, and the position of the operand.
type Use = (usize, usize);

/// Finds attention in a graph.
pub(super) struct Finder<'a> {
    graph: &'a Graph,
    /// Per slot who reads it; `None` for outputs.
    uses: Vec<Option<Vec<Use>>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let mut uses = vec![Some(Vec::new()); graph.value_count()];
        graph.outputs().iter().for_each(|&o| uses[graph.slot(o)] = None);
        for (n, node) in graph.nodes().iter().enumerate() {
            for (i, &operand) in node.operands.iter().enumerate() {
                if let Some(uses) = &mut uses[graph.slot(operand)] {
                    uses.push((n, i));
                }
            }
        }
        Finder { graph, uses }
    }

    fn node(&self, index: usize) -> &'a GraphNode {
        &self.graph.nodes()[index]
    }

    fn result(&self, index: usize) -> Option<ValueId> {
        self.node(index).result_ids().next().filter(|_| self.node(index).results().len() == 1)
    }

    fn is(&self, index: usize, name: &str) -> bool {
        self.node(index).op().name() == name
    }

    /// Whether a view shows all elements of what it reads in their order.
    fn keeps_order(&self, node: &GraphNode) -> bool {
        let (from, to) = (self.graph.layout(node.operands[0]), &node.results()[0]);
        from.is_contiguous() && to.is_contiguous() && from.numel() == to.numel() && from.dtype() == to.dtype()
    }

    /// Who reads a value, through views that keep all elements in their order; `None` if an output does.
    fn reads(&self, v: ValueId) -> Option<Vec<Use>> {
        let mut all = Vec::new();
        for &(n, i) in self.uses[self.graph.slot(v)].as_ref()? {
            match self.node(n).op() == Op::read_view() && self.keeps_order(self.node(n)) {
                true => all.extend(self.reads(self.result(n)?)?),
                false => all.push((n, i)),
            }
        }
        Some(all)
    }

    /// The only one who reads a value.
    fn read_once(&self, v: ValueId) -> Option<Use> {
        self.reads(v).filter(|uses| uses.len() == 1).map(|uses| uses[0])
    }

    /// The node that makes a value, seen through views that keep all elements in their order.
    fn made(&self, mut v: ValueId) -> Option<usize> {
        loop {
            let index = self.graph.definition_index(v)?;
            let layout = self.graph.layout(v);
            if !layout.is_contiguous() || layout.dtype() != DType::F32 {
                return None;
            }
            let node = self.node(index);
            if node.op() != Op::read_view() {
                return Some(index);
            }
            if !self.keeps_order(node) {
                return None;
            }
            v = node.operands[0];
        }
    }

    /// The node that makes a value nobody else reads.
    fn made_once(&self, v: ValueId) -> Option<usize> {
        let index = self.made(v)?;
        self.read_once(self.result(index)?).map(|_| index)
    }

    /// The attention whose last product is node `last`.
    pub(super) fn attention(&self, last: usize) -> Option<Attention<'a>> {
        let graph = self.graph;
        let &[seen, v] = &self.node(last).operands[..] else { return None };
        let softmax = self.is(last, "aten::bmm").then(|| self.made(seen)).flatten()?;
        let node = self.node(softmax);
        let rank = node.results()[0].rank() as i64;
        let mut args = node.args().skip(1);
        let over_keys = matches!(args.next(), Some(Arg::Int(d)) if d == -1 || d == rank - 1);
        if !self.is(softmax, "aten::_softmax") || !over_keys || args.next() != Some(Arg::Bool(false)) {
            return None;
        }
        let mut scores = self.made_once(node.operands[0])?;
        let mask = self.mask(scores);
        // Four dimensions tell what is a head of what.
        let dims = self.node(if mask.is_some() { scores } else { softmax }).results()[0].sizes();
        if let Some((_, unmasked)) = &mask {
            scores = self.made_once(*unmasked)?;
        }
        let scale = scale_number(self.node(scores)).map(|_| scores);
        if let Some(scale) = scale {
            scores = self.made_once(self.node(scale).operands[0])?;
        }
        let &[q, kt] = &self.node(scores).operands[..] else { return None };
        let (&[n, l, e], &[_, _, s]) = (graph.layout(q).sizes(), graph.layout(kt).sizes()) else { return None };
        let single = [q, kt, v].iter().all(|&v| graph.layout(v).dtype() == DType::F32);
        let fits = self.is(scores, "aten::bmm")
            && graph.layout(v).sizes() == [n, s, e]
            && graph.layout(seen).sizes() == [n, l, s]
            && l.min(s).min(e) > 1;
        if !fits || !single || self.node(last).results()[0].dtype() != DType::F32 {
            return None;
        }
        let (b, h) = match dims {
            &[b, h, _, _] if b * h == n => (b, h),
            _ => (n, 1),
        };
        let (mask, view) = match mask {
            Some((mask, _)) => {
                let view = broadcast(graph, mask.value(), dims.len(), [b, h, l, s])?;
                (Some(mask), Some(view))
            }
            None => (None, None),
        };
        let weights = self.result(softmax)?;
        let others: Vec<Use> = self.reads(weights)?.into_iter().filter(|&u| u != (last, 0)).collect();
        let gradient = match others[..] {
            [] => None,
            _ => Some(self.gradient(&others, [n, b, h], [q, kt, v], mask.as_ref(), scale)?),
        };
        let (scale, heads) = (scale.map(|s| self.node(s)), |v| self.heads(v, [b, h], false));
        let (q, k, v) = (heads(q)?, self.heads(kt, [b, h], true)?, heads(v)?);
        let mask = mask.zip(view);
        Some(Attention { q, k, v, scale, mask, sizes: [b, h, l, s, e], last, gradient })
    }

    /// The mask, if this node applies one, and what it is applied to.
    fn mask(&self, index: usize) -> Option<(Mask, ValueId)> {
        let node = self.node(index);
        let (number, dtype) = number(node)?;
        let &[scores, mask] = &node.operands[..] else { return None };
        match (node.op().name(), self.graph.layout(mask).dtype(), dtype) {
            ("aten::add.Tensor" | "aten::add_.Tensor", DType::F32, DType::I64) => {
                Some((Mask::Added(mask, number), scores))
            }
            ("aten::masked_fill.Scalar" | "aten::masked_fill_.Scalar", DType::Bool, DType::F64) => {
                Some((Mask::Filled(mask, number), scores))
            }
            _ => None,
        }
    }

    /// The gradient, if these are all other uses of the weights, and what it makes has no others either.
    fn gradient(
        &self,
        uses: &[Use],
        [n, b, h]: [i64; 3],
        [q, kt, v]: [ValueId; 3],
        mask: Option<&Mask>,
        scale: Option<usize>,
    ) -> Option<Gradient> {
        let graph = self.graph;
        // Weights, turned, times the gradient: that of the values.
        let (mut back, mut turned) = (None, None);
        for &(node, operand) in uses {
            match (self.node(node).op().name(), operand) {
                ("aten::_softmax_backward_data", 1) => back = Some(node),
                ("ltc::read_view", 0) => turned = Some(node),
                _ => return None,
            }
        }
        let (back, turned) = (back.filter(|_| uses.len() == 2)?, self.result(turned?)?);
        let (to_v, 0) = self.read_once(turned)? else { return None };
        let &[_, out] = &self.node(to_v).operands[..] else { return None };
        let is_turned = |v: ValueId, of: ValueId| {
            let (mut a, b) = (StridedView::of(graph, v), StridedView::of(graph, of));
            let swapped = |dims: &[i64]| [dims[0], dims[2], dims[1]];
            a.layout.rank() == 3 && b.layout.rank() == 3 && {
                let (sizes, strides) = (swapped(a.layout.sizes()), swapped(a.layout.strides()));
                a = a.seen(&sizes, &strides);
                a == b
            }
        };
        let weights = self.node(back).operands[1];
        let (l, s) = (graph.layout(q).sizes()[1], graph.layout(v).sizes()[1]);
        let turned_weights = StridedView::of(graph, turned);
        if !self.is(to_v, "aten::bmm")
            || turned_weights.layout != ltc_ir::Layout::strided(DType::F32, &[n, s, l], &[l * s, 1, s])
            || (turned_weights.base, turned_weights.offset) != (StridedView::of(graph, weights).base, 0)
        {
            return None;
        }
        // The gradient of the weights, then that of the scores.
        let of_weights = self.made_once(self.node(back).operands[0])?;
        let &[out_again, vt] = &self.node(of_weights).operands[..] else { return None };
        let same_out = StridedView::of(graph, out_again) == StridedView::of(graph, out);
        if !self.is(of_weights, "aten::bmm") || !same_out || !is_turned(vt, v) {
            return None;
        }
        let rank = self.node(back).results()[0].rank() as i64;
        let over_keys = matches!(self.node(back).args().nth(2), Some(Arg::Int(d)) if d == -1 || d == rank - 1);
        let mut scores = self.result(back).filter(|_| over_keys)?;
        let mut filled = None;
        if let Some(Mask::Filled(mask, _)) = mask {
            let (number, rest) = self.filled(scores, *mask)?;
            (filled, scores) = (Some(number), rest);
        }
        let mut scaled = None;
        if let Some(scale) = scale {
            let (again, 0) = self.read_once(scores)? else { return None };
            let same =
                self.node(again).op() == self.node(scale).op() && self.node(again).words() == self.node(scale).words();
            scaled = Some(scale_number(self.node(again)).filter(|_| same)?);
            scores = self.result(again)?;
        }
        let (mut to_q, mut to_kt) = (None, None);
        let uses = self.reads(scores)?;
        for &(node, operand) in &uses {
            let other = *self.node(node).operands.get(1 - operand.min(1))?;
            match (self.is(node, "aten::bmm"), operand) {
                (true, 0) if is_turned(other, kt) => to_q = Some(node),
                (true, 1) if is_turned(other, q) => to_kt = Some(node),
                _ => return None,
            }
        }
        let out = self.heads(out, [b, h], false)?;
        let (q, kt) = (to_q.filter(|_| uses.len() == 2)?, to_kt?);
        Some(Gradient { out, q, kt, v: to_v, scale: scaled, filled })
    }

    /// The number with which a gradient of scores is filled where the mask is, and what comes of that.
    fn filled(&self, scores: ValueId, mask: ValueId) -> Option<(u32, ValueId)> {
        let (fill, 0) = self.read_once(scores)? else { return None };
        let (number, _) = number(self.node(fill)).filter(|(_, dtype)| matches!(dtype, DType::I64 | DType::F64))?;
        let fills = ["aten::masked_fill.Scalar", "aten::masked_fill_.Scalar"].iter().any(|n| self.is(fill, n));
        let rest = self.result(fill)?;
        (fills && self.node(fill).operands[1] == mask).then_some((number, rest))
    }

    /// A value `[b * h, rows, e]` as `[b, h, rows, e]`, in what it was copied from if it can be; with the last two
    /// dimensions exchanged first, if asked for. Numbers of a row must lie one after the other.
    fn heads(&self, v: ValueId, [b, h]: [i64; 2], turned: bool) -> Option<StridedView> {
        let view = StridedView::of(self.graph, v);
        let (&[_, x, y], &[outer, dx, dy]) = (view.layout.sizes(), view.layout.strides()) else { return None };
        let (sizes, strides) = if turned { ([y, x], [dy, dx]) } else { ([x, y], [dx, dy]) };
        let view = view.seen(&[b, h, sizes[0], sizes[1]], &[h * outer, outer, strides[0], strides[1]]);
        let close = |view: &StridedView| view.layout.strides()[3] == 1;
        view.through_copy(self.graph).filter(close).or_else(|| Some(view).filter(close))
    }
}

/// The only number a node takes.
fn number(node: &GraphNode) -> Option<(u32, DType)> {
    let number = node.args().find_map(|a| match a {
        Arg::Number { number, dtype } | Arg::HostScalar { number, dtype, .. } => Some((number as u32, dtype)),
        _ => None,
    });
    number.filter(|_| node.number_count == 1).map(|(number, dtype)| (node.first_number + number, dtype))
}

/// The number by which a node multiplies or divides its only operand.
fn scale_number(node: &GraphNode) -> Option<u32> {
    let name = node.op().name();
    let scales = ["aten::mul.Tensor", "aten::mul.Scalar", "aten::div.Tensor", "aten::div.Scalar"].contains(&name)
        && node.operands.len() == 1
        && matches!(node.args().nth(1), Some(Arg::Number { .. } | Arg::HostScalar { .. }));
    number(node).filter(|_| scales).map(|(number, _)| number)
}

/// How a mask applied to scores of this rank lies over `[b, h, l, s]`.
fn broadcast(graph: &Graph, mask: ValueId, rank: usize, [b, h, l, s]: [i64; 4]) -> Option<StridedView> {
    let view = StridedView::at(mask, (**graph.layout(mask)).clone());
    let (mut sizes, mut strides) = ([1; 4], [0; 4]);
    let own = view.layout.sizes().iter().zip(view.layout.strides()).rev();
    for (d, (&size, &stride)) in own.enumerate().filter(|(_, (size, stride))| **size != 1 && **stride != 0) {
        // Of three dimensions, the first is all heads.
        let at = if rank == 3 && d == 2 { 0 } else { 3usize.checked_sub(d)? };
        (sizes[at], strides[at]) = (size, stride);
    }
    // As a new value of these sizes has them.
    for d in (0..3).rev() {
        if sizes[d] == 1 {
            strides[d] = sizes[d + 1] * strides[d + 1];
        }
    }
    let all_keys = sizes[3] == s;
    let fits = sizes.iter().zip([b, h, l, s]).all(|(&size, full)| size == 1 || size == full);
    (fits && all_keys).then(|| view.seen(&sizes, &strides))
}
