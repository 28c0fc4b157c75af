//! The bias of a product joins the kernel that comes after it.
//!
//! libtorch's `addmm` first copies the bias to every row of the result, and then has the product added to it. Here the
//! product comes first, and the bias is added by the kernel that reads it, in the product's memory: one pass less.

use ltc_ir::{ArgWriter, DType, Graph, GraphNode, Rewriting, Rewritten, rewrite::default_numbers};

/// With more terms in each sum, the copy is little beside the product (measured: `docs/performance.md`).
const TERMS: i64 = 128;

/// The pass's application.
pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    let mut rewriting = Rewriting::new(graph);
    let mut times = 0;
    for (index, node) in graph.nodes().iter().enumerate() {
        let Some(ones) = with_bias(graph, node) else {
            rewriting.keep(index);
            continue;
        };
        ones.into_iter().for_each(|(number, word)| rewriting.assume(number, word));
        let [bias, x, y] = [0, 1, 2].map(|i| rewriting.value(node.operands[i]));
        let product = rewriting.call(index, "aten::mm", ArgWriter::new().tensor().tensor(), &[x, y], node.results());
        let mut args = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
        let sum = rewriting.call(index, "aten::add.Tensor", &mut args, &[product, bias], node.results());
        node.result_ids().for_each(|r| rewriting.stand_in(r, sum));
        times += 1;
    }
    (times > 0).then(|| (rewriting.finish(), times))
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
