//! Attention written by hand, `softmax(q @ kᵀ * c + mask) @ v`, as libtorch's fused kernel, which never has all scores
//! in memory; and its gradient, as autograd records it, as that kernel's.
//!
//! The scale moves to `q`, which is smaller. A mask of `-inf` for a whole row makes it NaN by hand, and zero in the
//! fused kernel: so the mask's highest number of each row, less itself, is added to the result, which is zero or NaN,
//! and to those gradients that are NaN by hand. Copies of queries, keys and values in another order of heads and rows
//! are not made, as the kernels read any order, nor are copies that only undo the kernels' own. Where the weights are
//! needed for anything else, everything stays as it is.
//!
//! | file | what |
//! |---|---|
//! | `find.rs` | what it looks like |
//! | `strided_view.rs` | where values lie, seen through views and copies |
//! | `build.rs` | the fused kernels in its place |

mod build;
mod find;
mod strided_view;

use build::{Forward, Moved, Writer};
use find::{Attention, Finder};
use ltc_ir::{Graph, Rewriting, Rewritten};
use rustc_hash::FxHashMap;

/// With fewer keys or queries, the fused kernel is no faster (measured: `docs/performance.md`): alone, with its
/// gradient, and with that of heads of few numbers. How many heads there are does not count, so that one program serves
/// batches of any size.
const KEYS: i64 = 64;
const KEYS_WITH_GRADIENT: i64 = 128;
const KEYS_OF_SMALL_HEADS: i64 = 32;
const SMALL_HEAD: i64 = 16;
const QUERIES: i64 = 32;

/// The pass's application.
pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    if !graph.nodes().iter().any(|n| n.op().name() == "aten::_softmax") {
        return None;
    }
    let finder = Finder::new(graph);
    let found: Vec<Attention<'_>> =
        (0..graph.nodes().len()).filter_map(|n| finder.attention(n)).filter(Attention::pays).collect();
    if found.is_empty() {
        return None;
    }
    // The rewritten nodes: the last node of an attention becomes the fused kernel, the first node of its gradient
    // becomes the kernel's gradient, and other nodes of the gradient are gone.
    let mut positions = FxHashMap::default();
    for (i, attention) in found.iter().enumerate() {
        positions.insert(attention.last, Position::Forward(i));
        if let Some(gradient) = &attention.gradient {
            let nodes = [gradient.q, gradient.kt, gradient.v];
            nodes.iter().for_each(|&n| _ = positions.insert(n, Position::Done));
            nodes.iter().min().into_iter().for_each(|&n| _ = positions.insert(n, Position::Backward(i)));
        }
    }
    let (mut rewriting, mut moved) = (Rewriting::new(graph), Moved::default());
    let mut forwards: FxHashMap<usize, Forward> = FxHashMap::default();
    for (index, node) in graph.nodes().iter().enumerate() {
        let mut writer = Writer { r: &mut rewriting, moved: &mut moved, index };
        match positions.get(&index) {
            Some(&Position::Forward(i)) => _ = forwards.insert(i, writer.forward(&found[i])),
            Some(Position::Backward(i)) => {
                forwards.get(i).into_iter().for_each(|forward| writer.backward(&found[*i], forward));
            }
            Some(Position::Done) => {}
            None if writer.reads_moved(node) => {}
            None => rewriting.keep(index),
        }
    }
    Some((rewriting.finish(), found.len()))
}

/// What stands in the place of a node, of the attention of this number.
enum Position {
    Forward(usize),
    Backward(usize),
    Done,
}

impl Attention<'_> {
    fn pays(&self) -> bool {
        let [_, _, l, s, e] = self.sizes;
        let keys = match &self.gradient {
            None => KEYS,
            Some(_) if e <= SMALL_HEAD => KEYS_OF_SMALL_HEADS,
            Some(_) => KEYS_WITH_GRADIENT,
        };
        s >= keys && l >= QUERIES
    }
}
