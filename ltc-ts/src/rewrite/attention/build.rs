//! The fused kernels, built in the place of what was recorded.

use ltc_ir::{
    ArgFlags, ArgWriter, DType, GraphNode, Layout, LayoutRef, Rewriting, Signature, ValueId, rewrite::numbers_of,
};
use rustc_hash::FxHashMap;

use super::{
    find::{Attention, Mask},
    strided_view::{StridedView, is_copy, moved},
};

const FORWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu";
const BACKWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";

/// Operands and results of the fused kernel, which are operands of its gradient.
pub(super) struct Forward {
    q: ValueId,
    k: ValueId,
    v: ValueId,
    mask: Option<ValueId>,
    /// For each query zero, or NaN if the mask hides all keys from it: `[b, h, l, 1]`, with size one in dimensions
    /// along which the mask does not change.
    blind: Option<ValueId>,
    out: ValueId,
    sums: ValueId,
}

/// Values of the source graph whose elements lie in another order in the rewritten graph: by slot, the new value and
/// its layout. In the source they were contiguous, with the same sizes (apart from views).
#[derive(Default)]
pub(super) struct Moved(FxHashMap<usize, (ValueId, Layout)>);

/// Adds nodes in the place of one of the source's.
pub(super) struct Writer<'r, 'a> {
    pub(super) r: &'r mut Rewriting<'a>,
    pub(super) moved: &'r mut Moved,
    pub(super) index: usize,
}

impl Writer<'_, '_> {
    fn call(&mut self, name: &str, args: &mut ArgWriter, operands: &[ValueId], results: &[LayoutRef]) -> ValueId {
        self.r.call(self.index, name, args, operands, results)
    }

    fn view(&mut self, v: ValueId, offset: i64, layout: Layout) -> ValueId {
        match offset == 0 && **self.r.layout(v) == layout {
            true => v,
            false => self.call("ltc::read_view", ArgWriter::new().tensor().int(offset), &[v], &[layout.into()]),
        }
    }

    fn strided_view(&mut self, view: &StridedView) -> ValueId {
        let base = self.r.value(view.base);
        self.view(base, view.offset, view.layout.clone())
    }

    /// Contiguous.
    fn dense(&mut self, v: ValueId) -> ValueId {
        let layout = self.r.layout(v);
        if layout.is_contiguous() {
            return v;
        }
        let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
        let dense = Layout::contiguous(layout.dtype(), layout.sizes()).into();
        self.call("aten::copy_", ArgWriter::new().tensor_with(fresh).tensor().bool(false), &[v], &[dense])
    }

    /// An operator of two tensors and an `alpha` of one.
    fn sum(&mut self, name: &str, x: ValueId, y: ValueId) -> ValueId {
        let layout = self.r.layout(x).clone();
        self.call(name, &mut ArgWriter::new().tensor().tensor().number(1i64.into()).clone(), &[x, y], &[layout])
    }

    /// A node that computes number by number, of another value.
    fn again(&mut self, node: &GraphNode, v: ValueId) -> ValueId {
        let layout = self.r.layout(v).clone();
        let signature = Signature::new(node.op(), node.words().into(), [layout].into_iter().collect());
        self.r.push(self.index, signature, &[v], numbers_of(node))
    }

    /// Says that node `index` made this value, which has sizes `[b, h, rows, e]`, or with `turned` `[b, h, e, rows]`,
    /// in any order.
    fn stand_in(&mut self, index: usize, v: ValueId, turned: bool) {
        let graph = self.r.source();
        let Some(result) = graph.nodes()[index].result_ids().next() else { return };
        let layout = (**self.r.layout(v)).clone();
        let v = if turned {
            let swapped = |dims: &[i64]| [dims[0], dims[1], dims[3], dims[2]];
            let layout = Layout::strided(layout.dtype(), &swapped(layout.sizes()), &swapped(layout.strides()));
            self.view(v, 0, layout)
        } else {
            v
        };
        let view = (**self.r.layout(v)).clone();
        self.moved.0.insert(graph.slot(result), (v, view));
        // Nodes that need the recorded order read a copy.
        let dense = self.dense(v);
        let recorded = self.view(dense, 0, (**graph.layout(result)).clone());
        self.r.stand_in(result, recorded);
    }

    /// The fused kernel.
    pub(super) fn forward(&mut self, a: &Attention<'_>) -> Forward {
        let [b, h, l, _, e] = a.sizes;
        let mut q = self.strided_view(&a.q);
        if let Some(scale) = a.scale {
            q = self.dense(q);
            q = self.again(scale, q);
        }
        let (k, v) = (self.strided_view(&a.k), self.strided_view(&a.v));
        let mask = a.mask.as_ref().map(|(mask, view)| self.mask(mask, view));
        let operands: Vec<ValueId> = [q, k, v].into_iter().chain(mask).collect();
        let mut args = ArgWriter::new();
        args.tensor().tensor().tensor().float(0.0).bool(false);
        if mask.is_some() { args.tensor() } else { args.none() }.float(1.0);
        let sums: LayoutRef = Layout::strided(DType::F32, &[b, h, l], &[l * h, 1, h]).into();
        let out = self.call(FORWARD, &mut args, &operands, &[heads_last([b, h, l, e]), sums]);
        let sums = ltc_ir::rewrite::results_from(out).nth(1).unwrap_or(out);
        let blind = mask.map(|mask| self.blind(mask));
        let mut shown = self.contiguous_if_it_is(out);
        if let Some(blind) = blind {
            shown = self.sum("aten::add.Tensor", shown, blind);
        }
        self.stand_in(a.last, shown, false);
        Forward { q, k, v, mask, blind, out, sums }
    }

    /// The fused kernel's gradient, if it was recorded.
    pub(super) fn backward(&mut self, a: &Attention<'_>, f: &Forward) {
        let ([b, h, l, s, e], Some(gradient)) = (a.sizes, &a.gradient) else { return };
        let grad = self.strided_view(&gradient.out);
        let operands: Vec<ValueId> = [grad, f.q, f.k, f.v, f.out, f.sums].into_iter().chain(f.mask).collect();
        let mut args = ArgWriter::new();
        args.tensor().tensor().tensor().tensor().tensor().tensor().float(0.0).bool(false);
        if f.mask.is_some() { args.tensor() } else { args.none() }.float(1.0);
        let layouts = [l, s, s].map(|rows| heads_last([b, h, rows, e]));
        let first = self.call(BACKWARD, &mut args, &operands, &layouts);
        let grads: Vec<ValueId> = ltc_ir::rewrite::results_from(first).take(3).collect();
        let &[q, k, v] = &grads[..] else { return };
        let [mut q, mut k, mut v] = [q, k, v].map(|g| self.contiguous_if_it_is(g));
        // By hand, a query that sees no key has weights of NaN, and they spread to the gradients of all values.
        if let Some(blind) = f.blind {
            let any = self.any_blind(blind);
            v = self.sum("aten::add.Tensor", v, any);
            if let Some((Mask::Added(..), _)) = a.mask {
                q = self.sum("aten::add.Tensor", q, blind);
                k = self.sum("aten::add.Tensor", k, any);
            }
        }
        if let (Some(scale), Some(number)) = (a.scale, gradient.scale) {
            self.r.assume_equal(scale.first_number, number);
            q = self.again(scale, q);
        }
        if let Some(number) = gradient.filled {
            self.r.assume(number, 0);
        }
        self.stand_in(gradient.q, q, false);
        self.stand_in(gradient.kt, k, true);
        self.stand_in(gradient.v, v, false);
    }

    /// What is added to the scores.
    fn mask(&mut self, mask: &Mask, view: &StridedView) -> ValueId {
        let seen = self.strided_view(view);
        let in_order = view.layout.strides().is_sorted_by(|a, b| a >= b) && view.layout.strides()[3] == 1;
        let seen = if in_order { seen } else { self.dense(seen) };
        let sizes = view.layout.sizes();
        match *mask {
            Mask::Added(_, alpha) => {
                self.r.assume(alpha, 1);
                seen
            }
            Mask::Filled(_, number) => {
                // The added mask is the logarithm of one (zero) where a key is seen, and of zero (`-inf`) where not.
                self.r.assume(number, f64::NEG_INFINITY.to_bits());
                let (shown, lowest) = (Layout::contiguous(DType::Bool, sizes).into(), f32s(sizes));
                let shown = self.call("aten::logical_not", ArgWriter::new().tensor(), &[seen], &[shown]);
                self.call("aten::log", ArgWriter::new().tensor(), &[shown], &[lowest])
            }
        }
    }

    /// The highest number of each row of the mask, minus itself: zero, or NaN for a row that is all `-inf`.
    fn blind(&mut self, mask: ValueId) -> ValueId {
        let sizes = self.r.layout(mask).sizes().to_vec();
        let tops = f32s(&[sizes[0], sizes[1], sizes[2], 1]);
        let top = self.call("aten::amax", ArgWriter::new().tensor().ints(&[-1]).bool(true), &[mask], &[tops]);
        self.sum("aten::sub.Tensor", top, top)
    }

    /// The sum of these over the queries of a head.
    fn any_blind(&mut self, blind: ValueId) -> ValueId {
        let sizes = self.r.layout(blind).sizes().to_vec();
        let mut args = ArgWriter::new().tensor().ints(&[-2]).bool(true).none().clone();
        self.call("aten::sum.dim_IntList", &mut args, &[blind], &[f32s(&[sizes[0], sizes[1], 1, 1])])
    }

    /// A value that is contiguous (with one head, the kernels' order is the usual one) gets strides that say so.
    fn contiguous_if_it_is(&mut self, v: ValueId) -> ValueId {
        let layout = self.r.layout(v).clone();
        match layout.is_contiguous() {
            true => self.view(v, 0, Layout::contiguous(layout.dtype(), layout.sizes())),
            false => v,
        }
    }

    /// Lets a node that copies or joins, for which the order of its operands in memory does not matter, read moved
    /// values directly. Returns whether it did.
    pub(super) fn reads_moved(&mut self, node: &GraphNode) -> bool {
        // With four dimensions, libtorch might take the new order for channels-last and give the result that layout.
        let joins = node.op().name() == "aten::cat" && node.results()[0].rank() < 4;
        let (true, Some(result)) = (joins || is_copy(node), node.result_ids().next()) else { return false };
        let operands: Vec<Option<ValueId>> = node.operands.iter().map(|&o| self.read_moved(o)).collect();
        match operands[..] {
            [Some(v)] if is_copy(node) && self.r.layout(v) == &node.results()[0] => self.r.stand_in(result, v),
            _ if operands.iter().all(Option::is_none) => return false,
            _ => {
                let new = |(new, &old): (Option<ValueId>, &ValueId)| new.unwrap_or_else(|| self.r.value(old));
                let operands: Vec<ValueId> = operands.into_iter().zip(&node.operands).map(new).collect();
                let made = self.r.push(self.index, node.signature.clone(), &operands, numbers_of(node));
                self.r.stand_in(result, made);
            }
        }
        true
    }

    /// The value as a view of a moved value, if it is one.
    fn read_moved(&mut self, v: ValueId) -> Option<ValueId> {
        let graph = self.r.source();
        let view = StridedView::of(graph, v);
        let (moved_to, to) = self.moved.0.get(&graph.slot(view.base)).filter(|_| view.offset == 0)?;
        let layout = moved(&Layout::contiguous(to.dtype(), to.sizes()), &view.layout, to)?;
        let moved_to = *moved_to;
        Some(self.view(moved_to, 0, layout))
    }
}

/// As the kernels give their results.
fn heads_last([b, h, rows, e]: [i64; 4]) -> LayoutRef {
    Layout::strided(DType::F32, &[b, h, rows, e], &[rows * h * e, e, h * e, 1]).into()
}

fn f32s(sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(DType::F32, sizes).into()
}
