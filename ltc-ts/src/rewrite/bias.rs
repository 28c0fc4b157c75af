//! The bias of a product joins the kernel that comes after it.
//!
//! libtorch's `addmm` first copies the bias to every row of the result and then adds the product to it. Here the
//! product comes first, and a kernel adds the bias together with the operators that follow, in the product's memory:
//! one pass less. A layer over more than two dimensions views the product's result in the sizes of its own input. Then
//! the bias is added to that view, so that the addition and the operators that follow have the same sizes and can be
//! one kernel.

use ltc_ir::{
    ArgWriter, DType, Graph, GraphNode, LayoutRef, Op, Rewriting, Rewritten, Signature, ValueId,
    rewrite::default_numbers, view_offset,
};
use rustc_hash::FxHashMap;

/// With more terms in each sum, the copy is little beside the product (measured: `docs/performance.md`).
const TERMS: i64 = 128;

/// The pass's application.
pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let mut rewriting = Rewriting::new(graph);
    let mut seen_as = views(graph);
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        if let Some(sum) = node.operands.first().and_then(|&o| seen_as.get(&o)?.sum) {
            node.result_ids().for_each(|r| rewriting.stand_in(r, sum));
            continue;
        }
        let Some(ones) = with_bias(graph, node) else {
            rewriting.keep(index);
            continue;
        };
        ones.into_iter().for_each(|(number, word)| rewriting.assume(number, word));
        let [bias, x, y] = [0, 1, 2].map(|i| rewriting.value(node.operands[i]));
        let mut product =
            rewriting.call(index, "aten::mm", ArgWriter::new().tensor().tensor(), &[x, y], node.results());
        let seen = node.result_ids().next().and_then(|result| seen_as.get_mut(&result));
        let layouts = match &seen {
            Some(view) => {
                let (words, _) = ArgWriter::new().tensor().int(0).finish();
                let view = Signature::new(Op::read_view(), words, [view.layout.clone()].into_iter().collect());
                let layouts = view.results().to_vec();
                product = rewriting.push(index, view, &[product], 0..0);
                layouts
            }
            None => node.results().to_vec(),
        };
        let mut args = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
        let sum = rewriting.call(index, "aten::add.Tensor", &mut args, &[product, bias], &layouts);
        match seen {
            Some(view) => view.sum = Some(sum),
            None => node.result_ids().for_each(|r| rewriting.stand_in(r, sum)),
        }
        times += 1;
    }
    (times > 0).then(|| (rewriting.finish(), times))
}

/// The view through which all users of a product's result read it: the same elements in other sizes.
struct View {
    layout: LayoutRef,
    /// The sum of product and bias that replaces the view, once it is made.
    sum: Option<ValueId>,
}

/// Results of products that all their users read through views of the same sizes, with as many columns as the result.
fn views(graph: &Graph) -> FxHashMap<ValueId, View> {
    let products = graph.nodes().iter().filter(|node| node.op().name() == "aten::addmm");
    let mut seen: FxHashMap<ValueId, Option<LayoutRef>> =
        products.flat_map(|node| node.result_ids()).map(|result| (result, None)).collect();
    let mut other: Vec<ValueId> = graph.outputs().to_vec();
    for node in graph.nodes() {
        for operand in &node.operands {
            let Some(view) = seen.get_mut(operand) else { continue };
            match whole_view(graph, node) {
                Some(layout) if view.as_ref().is_none_or(|v| v == layout) => *view = Some(layout.clone()),
                _ => other.push(*operand),
            }
        }
    }
    other.iter().for_each(|value| drop(seen.remove(value)));
    seen.into_iter().filter_map(|(value, layout)| Some((value, View { layout: layout?, sum: None }))).collect()
}

/// The sizes in which a node shows all elements of its operand, in their order and with as many columns.
fn whole_view<'g>(graph: &Graph, node: &'g GraphNode) -> Option<&'g LayoutRef> {
    let (&[base], [view]) = (&node.operands[..], node.results()) else { return None };
    let base = graph.layout(base);
    let whole = node.op() == Op::read_view()
        && view_offset(node.words()) == Some(0)
        && view.is_contiguous()
        && view.dtype() == base.dtype()
        && view.numel() == base.numel()
        && view.sizes().last() == base.sizes().last();
    whole.then_some(view)
}

/// The factors of a product with a bias, all to be one; `None` for other nodes.
fn with_bias(graph: &Graph, node: &GraphNode) -> Option<Vec<(u32, u64)>> {
    let (&[bias, x, _], [result]) = (&node.operands[..], node.results()) else { return None };
    let bias = graph.layout(bias);
    let single = bias.dtype() == DType::F32 && result.dtype() == DType::F32 && result.is_contiguous();
    // One number per column; a whole matrix is copied as fast as it is added.
    let row = bias.rank() == 1 && bias.is_contiguous();
    let short = graph.layout(x).sizes().last().is_some_and(|&k| k <= TERMS);
    (node.op().name() == "aten::addmm" && single && row && short).then(|| default_numbers(node))?
}
