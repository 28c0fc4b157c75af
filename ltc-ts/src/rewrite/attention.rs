//! Attention written by hand, `softmax(q @ kᵀ * c + mask) @ v`, as libtorch's fused kernel, which never has all scores in
//! memory.
//!
//! The scale moves to `q`, which is smaller. A mask of `-inf` for a whole row makes it NaN by hand, and zero in the
//! fused kernel: so the mask's highest number of each row, less itself, is added to the result, which is zero or NaN. Where
//! the weights are needed for anything else, as for gradients, everything stays as it is.

use ltc_ir::{
    Arg, ArgWriter, DType, Graph, GraphNode, Layout, LayoutRef, Op, Rewriting, Rewritten, Signature, ValueId,
    rewrite::numbers_of,
};

/// With fewer keys or queries, the fused kernel is no faster (measured: `docs/performance.md`). How many heads there are does
/// not count, so that one program serves batches of any size.
const KEYS: i64 = 128;
const QUERIES: i64 = 32;

/// The pass's application.
pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    if !graph.nodes().iter().any(|n| n.op().name() == "aten::_softmax") {
        return None;
    }
    let mut uses = vec![0usize; graph.value_count()];
    let read = graph.nodes().iter().flat_map(|n| &n.operands).chain(graph.outputs());
    read.for_each(|&v| uses[graph.slot(v)] += 1);
    let mut rewriting = Rewriting::new(graph);
    let mut times = 0;
    for index in 0..graph.nodes().len() {
        match (Finder { graph, uses: &uses }).attention(index).filter(Attention::pays) {
            Some(attention) => {
                attention.put(&mut rewriting, index);
                times += 1;
            }
            None => rewriting.keep(index),
        }
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

/// What is done to the scores before the softmax.
enum Mask {
    /// This is added, so many times as this number says.
    Added(ValueId, u32),
    /// Where this is true, they become this number.
    Filled(ValueId, u32),
}

/// One attention: `n` heads of `l` queries and `s` keys, `e` numbers each.
struct Attention<'a> {
    graph: &'a Graph,
    q: ValueId,
    /// Transposed, as the product takes it.
    kt: ValueId,
    v: ValueId,
    /// The product or quotient of the scores and a number.
    scale: Option<&'a GraphNode>,
    mask: Option<Mask>,
    sizes: [i64; 4],
}

struct Finder<'a, 'u> {
    graph: &'a Graph,
    uses: &'u [usize],
}

impl<'a> Finder<'a, '_> {
    /// The node that makes a value nobody else reads, seen through views that keep all elements in their order.
    fn made(&self, mut v: ValueId) -> Option<&'a GraphNode> {
        loop {
            let node = self.graph.definition(v)?;
            let layout = self.graph.layout(v);
            if self.uses[self.graph.slot(v)] != 1 || !layout.is_contiguous() || layout.dtype() != DType::F32 {
                return None;
            }
            if node.op() != Op::read_view() {
                return Some(node);
            }
            let base = self.graph.layout(node.operands[0]);
            if !base.is_contiguous() || base.numel() != layout.numel() || base.dtype() != layout.dtype() {
                return None;
            }
            v = node.operands[0];
        }
    }

    fn attention(&self, index: usize) -> Option<Attention<'a>> {
        let graph = self.graph;
        let is = |node: &GraphNode, name: &str| node.op().name() == name;
        let last = &graph.nodes()[index];
        let &[weights, v] = &last.operands[..] else { return None };
        let softmax = is(last, "aten::bmm").then(|| self.made(weights)).flatten()?;
        let rank = softmax.results()[0].rank() as i64;
        let mut args = softmax.args().skip(1);
        let over_keys = matches!(args.next(), Some(Arg::Int(d)) if d == -1 || d == rank - 1);
        if !is(softmax, "aten::_softmax") || !over_keys || args.next() != Some(Arg::Bool(false)) {
            return None;
        }
        let mut scores = self.made(softmax.operands[0])?;
        let mask = self.mask(scores);
        if let Some((_, unmasked)) = &mask {
            scores = self.made(*unmasked)?;
        }
        let scale = (scores.operands.len() == 1 && scales(scores)).then_some(scores);
        if let Some(scale) = scale {
            scores = self.made(scale.operands[0])?;
        }
        let &[q, kt] = &scores.operands[..] else { return None };
        let (lq, lk, lv) = (graph.layout(q), graph.layout(kt), graph.layout(v));
        let (&[n, l, e], &[_, _, s]) = (lq.sizes(), lk.sizes()) else { return None };
        let close = |layout: &Layout, d: usize| layout.strides()[d] == 1 && layout.dtype() == DType::F32;
        let fits = is(scores, "aten::bmm") && lv.sizes() == [n, s, e] && graph.layout(weights).sizes() == [n, l, s];
        if !fits || !close(lq, 2) || !close(lk, 1) || !close(lv, 2) || last.results()[0].dtype() != DType::F32 {
            return None;
        }
        let mask = mask.map(|(mask, _)| mask);
        if let Some(Mask::Added(mask, _) | Mask::Filled(mask, _)) = &mask {
            let layout = graph.layout(*mask);
            let [outer @ .., rows, columns] = layout.sizes() else { return None };
            if outer.iter().any(|&d| d != 1) || [*rows, *columns] != [l, s] || layout.strides()[layout.rank() - 1] != 1
            {
                return None;
            }
        }
        Some(Attention { graph, q, kt, v, scale, mask, sizes: [n, l, s, e] })
    }

    /// The mask, if this node applies one, and what it is applied to.
    fn mask(&self, node: &GraphNode) -> Option<(Mask, ValueId)> {
        let number = node.args().find_map(|a| match a {
            Arg::Number { number, dtype } => Some((node.first_number + number as u32, dtype)),
            _ => None,
        });
        let &[scores, mask] = &node.operands[..] else { return None };
        let (number, dtype) = number?;
        let mask_dtype = self.graph.layout(mask).dtype();
        match (node.op().name(), mask_dtype, dtype) {
            ("aten::add.Tensor" | "aten::add_.Tensor", DType::F32, DType::I64) => {
                Some((Mask::Added(mask, number), scores))
            }
            ("aten::masked_fill.Scalar" | "aten::masked_fill_.Scalar", DType::Bool, DType::F64) => {
                Some((Mask::Filled(mask, number), scores))
            }
            _ => None,
        }
    }
}

/// Whether a node multiplies or divides its operand by a number.
fn scales(node: &GraphNode) -> bool {
    let name = node.op().name();
    ["aten::mul.Tensor", "aten::mul.Scalar", "aten::div.Tensor", "aten::div.Scalar"].contains(&name)
        && matches!(node.args().nth(1), Some(Arg::Number { .. } | Arg::HostScalar { .. }))
}

impl Attention<'_> {
    fn pays(&self) -> bool {
        let [_, l, s, _] = self.sizes;
        s >= KEYS && l >= QUERIES
    }

    /// Puts the fused kernel in the place of node `index`, the last product.
    fn put(&self, r: &mut Rewriting<'_>, index: usize) {
        let [n, l, s, e] = self.sizes;
        let one_head = |r: &mut Rewriting<'_>, v: ValueId, sizes: [i64; 2], strides: [i64; 3]| {
            let layout = Layout::strided(
                DType::F32,
                &[n, 1, sizes[0], sizes[1]],
                &[strides[0], strides[0], strides[1], strides[2]],
            );
            view(r, index, v, layout)
        };
        let strides = |r: &Rewriting<'_>, v: ValueId| [0, 1, 2].map(|d| r.layout(v).strides()[d]);
        let mut q = r.value(self.q);
        if let Some(scale) = self.scale {
            let signature = Signature::new(scale.op(), scale.words().into(), [f32s(&[n, l, e])].into_iter().collect());
            q = r.push(index, signature, &[q], numbers_of(scale));
        }
        let (kt, v) = (r.value(self.kt), r.value(self.v));
        let (sq, [outer, inner, row], sv) = (strides(r, q), strides(r, kt), strides(r, v));
        let q = one_head(r, q, [l, e], sq);
        let k = one_head(r, kt, [s, e], [outer, row, inner]);
        let v = one_head(r, v, [s, e], sv);
        let mut operands = vec![q, k, v];
        let mask = self.mask(r, index);
        operands.extend(mask);

        let mut args = ArgWriter::new();
        args.tensor().tensor().tensor().float(0.0).bool(false);
        if mask.is_some() { args.tensor() } else { args.none() }.float(1.0);
        let out = Layout::strided(DType::F32, &[n, 1, l, e], &[l * e, e, e, 1]).into();
        let sums = Layout::strided(DType::F32, &[n, 1, l], &[l, 1, 1]).into();
        let out =
            r.call(index, "aten::_scaled_dot_product_flash_attention_for_cpu", &mut args, &operands, &[out, sums]);
        let mut out = view(r, index, out, Layout::contiguous(DType::F32, &[n, l, e]));
        if let Some(mask) = mask {
            let tops = f32s(&[l, 1]);
            let top = r.call(
                index,
                "aten::amax",
                ArgWriter::new().tensor().ints(&[-1]).bool(true),
                &[mask],
                std::slice::from_ref(&tops),
            );
            let mut sum = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
            let nothing = r.call(index, "aten::sub.Tensor", &mut sum.clone(), &[top, top], &[tops]);
            out = r.call(index, "aten::add.Tensor", &mut sum, &[out, nothing], &[f32s(&[n, l, e])]);
        }
        let result = self.graph.nodes()[index].result_ids().next();
        result.into_iter().for_each(|result| r.stand_in(result, out));
    }

    /// What is added to the scores of all heads, `[l, s]`.
    fn mask(&self, r: &mut Rewriting<'_>, index: usize) -> Option<ValueId> {
        let [_, l, s, _] = self.sizes;
        match *self.mask.as_ref()? {
            Mask::Added(mask, alpha) => {
                r.assume(alpha, 1);
                let mask = r.value(mask);
                let strides = r.layout(mask).strides().to_vec();
                let layout = Layout::strided(DType::F32, &[l, s], &strides[strides.len() - 2..]);
                Some(view(r, index, mask, layout))
            }
            Mask::Filled(mask, number) => {
                // The logarithm of what is not masked: of one or zero.
                r.assume(number, f64::NEG_INFINITY.to_bits());
                let mask = r.value(mask);
                let strides = r.layout(mask).strides().to_vec();
                let layout = Layout::strided(DType::Bool, &[l, s], &strides[strides.len() - 2..]);
                let mask = view(r, index, mask, layout);
                let (shown, lowest) = (Layout::contiguous(DType::Bool, &[l, s]).into(), f32s(&[l, s]));
                let shown = r.call(index, "aten::logical_not", ArgWriter::new().tensor(), &[mask], &[shown]);
                Some(r.call(index, "aten::log", ArgWriter::new().tensor(), &[shown], &[lowest]))
            }
        }
    }
}

fn f32s(sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(DType::F32, sizes).into()
}

/// The value as it lies, seen so.
fn view(r: &mut Rewriting<'_>, index: usize, v: ValueId, layout: Layout) -> ValueId {
    r.call(index, "ltc::read_view", ArgWriter::new().tensor().int(0), &[v], &[layout.into()])
}
