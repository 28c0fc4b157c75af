//! The layout of images, chosen for the whole graph: convolutions, batch norms, poolings and what is pointwise between
//! them run channels-last, with copies where other operators or the program need the layout that was recorded.
//!
//! libtorch's convolutions reorder rows of pixels into blocks of channels and back at every call, unless channels come
//! last already. So the values that may change their layout together are found (they are joined by operators with the
//! property `channels-last`, or pointwise ones), and changed if the reordering saved is more than the copies cost
//! ([`Balance`]).

use ltc_ir::{
    Arg, ArgFlags, ArgWriter, DType, Graph, GraphNode, Layout, LayoutRef, Op, OpClass, Props, Rewriting, Rewritten,
    Signature, ValueId,
};
use smallvec::SmallVec;

/// Fewer channels are not blocked, so there is no reordering to save.
const CHANNELS: i64 = 8;

pub(super) fn apply(graph: &Graph) -> Option<(Rewritten, usize)> {
    if !graph.nodes().iter().any(|n| n.op().spec().class == OpClass::Convolution) {
        return None;
    }
    let mut choice = Choice::new(graph);
    let times = choice.decide();
    (times > 0).then(|| (Relayout::new(graph, &choice).run(), times))
}

/// A picture whose layout may change: four dimensions, row by row, with channels and pixels to tell apart.
fn is_image(layout: &Layout) -> bool {
    let sizes = layout.sizes();
    layout.rank() == 4 && layout.is_contiguous() && layout.numel() > 0 && sizes[1] > 1 && sizes[2] * sizes[3] > 1
}

fn channels_last(layout: &Layout) -> LayoutRef {
    let sizes = layout.sizes();
    let (c, h, w) = (sizes[1], sizes[2], sizes[3]);
    Layout::strided(layout.dtype(), sizes, &[h * w * c, 1, w * c, c]).into()
}

/// The operands and results of a node whose layouts change together; empty if it needs the recorded ones.
fn tied(graph: &Graph, node: &GraphNode) -> SmallVec<[ValueId; 4]> {
    let image = |v: &ValueId| is_image(graph.layout(*v));
    let results = node.result_ids().filter(image);
    match node.op().spec().class {
        OpClass::Pointwise => {
            let [result] = node.results() else { return SmallVec::new() };
            let whole = |v: &&ValueId| graph.layout(**v).sizes() == result.sizes();
            // An operand of the same sizes in another layout would be read crosswise, unless it repeats elements.
            let crosswise = |v: &ValueId| !image(v) && !graph.layout(*v).strides().contains(&0);
            let mut operands = node.operands.iter().filter(whole).peekable();
            if !is_image(result) || operands.peek().is_none() || operands.clone().any(crosswise) {
                return SmallVec::new();
            }
            operands.copied().filter(image).chain(results).collect()
        }
        class if node.op().has(Props::CHANNELS_LAST) => {
            let convolution = class == OpClass::Convolution;
            if convolution && !is_plain_convolution(graph, node) {
                return SmallVec::new();
            }
            // A weight and its gradient have four dimensions, but are no images, so their layouts stay.
            let weight = convolution.then(|| if is_backward(node) { 2 } else { 1 });
            let sizes_of = |v: &ValueId| graph.layout(*v).sizes();
            let kernel = weight.and_then(|w| node.operands.get(w)).map(sizes_of);
            let gradient = |at: usize, v: &ValueId| {
                is_backward(node) && convolution && (at > 0 || !wants_input(node)) && Some(sizes_of(v)) == kernel
            };
            let operands = node.operands.iter().enumerate().filter(|(i, _)| Some(*i) != weight).map(|(_, &o)| o);
            let results = node.result_ids().enumerate().filter(|(i, v)| !gradient(*i, v)).map(|(_, v)| v);
            operands.chain(results).filter(image).collect()
        }
        _ => SmallVec::new(),
    }
}

/// Whether the node reads images of any layout equally fast.
fn is_tolerant(node: &GraphNode) -> bool {
    node.op().spec().class == OpClass::Reduction && !node.op().has(Props::MUTATES)
}

/// Whether this is a gradient's operator.
fn is_backward(node: &GraphNode) -> bool {
    node.op().name().ends_with("_backward")
}

/// Whether a convolution's gradient includes that of its input.
fn wants_input(node: &GraphNode) -> bool {
    node.args().any(|a| matches!(a, Arg::Bools(mask) if mask.first() == Some(&1)))
}

/// Whether a convolution is of the kind that was measured: two dimensions, single precision, not transposed, one group.
fn is_plain_convolution(graph: &Graph, node: &GraphNode) -> bool {
    let weight = node.operands.get(if is_backward(node) { 2 } else { 1 });
    let plain = weight.is_some_and(|w| graph.layout(*w).rank() == 4 && graph.layout(*w).dtype() == DType::F32);
    let transposed = node.args().any(|a| matches!(a, Arg::Bool(true)));
    let groups = node.args().filter_map(|a| if let Arg::Int(g) = a { Some(g) } else { None }).last();
    plain && !transposed && groups == Some(1)
}

/// Time saved, in tenths of what it takes to copy one element to another layout (measured: `docs/performance.md`).
#[derive(Clone, Copy, Default)]
struct Balance(i64);

impl Balance {
    /// A copy, and the step it takes.
    const COPY: i64 = 10;
    const STEP: i64 = 40_000;

    fn of(graph: &Graph, node: &GraphNode, values: &[ValueId]) -> Balance {
        let elements = |v: &ValueId| graph.layout(*v).numel();
        let blocked = |v: &&ValueId| graph.layout(**v).sizes()[1] >= CHANNELS;
        let all = values.iter().filter(blocked).map(elements).sum::<i64>();
        Balance(match (node.op().spec().class, is_backward(node)) {
            (OpClass::Convolution, false) => 16 * all,
            (OpClass::Convolution, true) => 7 * all,
            // Statistics read along channels: faster forwards, slower backwards.
            (OpClass::Normalization, false) => 10 * all,
            (OpClass::Normalization, true) => -4 * all,
            // The pooling kernel is equally fast in both layouts.
            _ => 0,
        })
    }
}

/// Which values change their layout.
struct Choice<'a> {
    graph: &'a Graph,
    /// Per node what is tied by it.
    tied: Vec<SmallVec<[ValueId; 4]>>,
    /// Per slot another slot of the same set of values; itself for the set's name.
    parent: Vec<u32>,
    /// Per slot that names a set: what it is worth, and whether it changes.
    worth: Vec<i64>,
    changes: Vec<bool>,
}

impl<'a> Choice<'a> {
    fn new(graph: &'a Graph) -> Self {
        let tied: Vec<_> = graph.nodes().iter().map(|n| tied(graph, n)).collect();
        let mut choice = Choice {
            graph,
            tied: Vec::new(),
            parent: (0..graph.value_count() as u32).collect(),
            worth: vec![0; graph.value_count()],
            changes: vec![false; graph.value_count()],
        };
        for values in &tied {
            for pair in values.windows(2) {
                let (a, b) = (choice.set(pair[0]), choice.set(pair[1]));
                choice.parent[a.max(b)] = a.min(b) as u32;
            }
        }
        choice.tied = tied;
        choice
    }

    /// The set a value belongs to.
    fn set(&self, v: ValueId) -> usize {
        let mut slot = self.graph.slot(v);
        while self.parent[slot] as usize != slot {
            slot = self.parent[slot] as usize;
        }
        slot
    }

    fn is_tied(&self, node: usize, v: ValueId) -> bool {
        self.tied[node].contains(&v)
    }

    /// Whether the value has the new layout where it is made.
    fn is_made_anew(&self, v: ValueId) -> bool {
        self.graph.definition_index(v).is_some_and(|d| self.is_tied(d, v) && self.changes[self.set(v)])
    }

    /// Adds up what each set is worth; how many values change.
    fn decide(&mut self) -> usize {
        let graph = self.graph;
        let (mut enters, mut leaves) = (vec![false; graph.value_count()], vec![false; graph.value_count()]);
        for (index, node) in graph.nodes().iter().enumerate() {
            if let Some(&first) = self.tied[index].first() {
                let set = self.set(first);
                self.worth[set] += Balance::of(graph, node, &self.tied[index]).0;
            }
            for &operand in &node.operands {
                let inside = |d: usize| self.is_tied(d, operand);
                let made_inside = graph.definition_index(operand).is_some_and(inside);
                match (made_inside, self.is_tied(index, operand)) {
                    (false, true) => enters[graph.slot(operand)] = true,
                    (true, false) => leaves[graph.slot(operand)] |= !is_tolerant(node),
                    _ => {}
                }
            }
        }
        for &output in graph.outputs() {
            let inside = |d: usize| self.is_tied(d, output);
            leaves[graph.slot(output)] |= graph.definition_index(output).is_some_and(inside);
        }
        let values =
            (0..graph.params().len()).map(ValueId::param).chain((0..graph.result_count()).map(ValueId::result));
        for value in values.clone() {
            let copies = i64::from(enters[graph.slot(value)]) + i64::from(leaves[graph.slot(value)]);
            if copies > 0 {
                let set = self.set(value);
                self.worth[set] -= copies * (Balance::COPY * graph.layout(value).numel() + Balance::STEP);
            }
        }
        self.changes = self.worth.iter().map(|&w| w > 0).collect();
        values.filter(|&v| self.is_made_anew(v)).count()
    }
}

/// The graph in its new layouts.
struct Relayout<'a, 'c> {
    choice: &'c Choice<'a>,
    rewriting: Rewriting<'a>,
    /// Per slot the value as recorded, and channels-last, as far as there is one by now.
    plain: Vec<Option<ValueId>>,
    last: Vec<Option<ValueId>>,
}

impl<'a, 'c> Relayout<'a, 'c> {
    fn new(graph: &'a Graph, choice: &'c Choice<'a>) -> Self {
        let plain = (0..graph.value_count()).map(|s| (s < graph.params().len()).then(|| ValueId::param(s))).collect();
        Relayout { choice, rewriting: Rewriting::new(graph), plain, last: vec![None; graph.value_count()] }
    }

    fn run(mut self) -> Rewritten {
        let graph = self.choice.graph;
        for (index, node) in graph.nodes().iter().enumerate() {
            let tied = &self.choice.tied[index];
            let changes = tied.first().is_some_and(|&v| self.choice.changes[self.choice.set(v)]);
            let anew = |v: ValueId| changes && tied.contains(&v);
            let operand = |&o: &ValueId| match self.last[graph.slot(o)] {
                Some(last) if is_tolerant(node) => last,
                _ if anew(o) => self.channels_last(index, o),
                _ => self.plain(index, o),
            };
            let operands: SmallVec<[ValueId; 4]> = node.operands.iter().map(operand).collect();
            let layout = |(v, l): (ValueId, &LayoutRef)| if anew(v) { channels_last(l) } else { l.clone() };
            let results = node.result_ids().zip(node.results()).map(layout).collect();
            let signature = match changes {
                true => Signature::new(node.op(), node.words().into(), results),
                false => node.signature.clone(),
            };
            let numbers = ltc_ir::rewrite::numbers_of(node);
            let first = self.rewriting.push(index, signature, &operands, numbers);
            for (old, new) in node.result_ids().zip(ltc_ir::rewrite::results_from(first)) {
                let table = if anew(old) { &mut self.last } else { &mut self.plain };
                table[graph.slot(old)] = Some(new);
            }
        }
        let end = graph.nodes().len() - 1;
        for &output in graph.outputs() {
            let value = self.plain(end, output);
            self.rewriting.stand_in(output, value);
        }
        self.rewriting.finish()
    }

    fn plain(&mut self, index: usize, v: ValueId) -> ValueId {
        let graph = self.choice.graph;
        let slot = graph.slot(v);
        if let Some(plain) = self.plain[slot] {
            return plain;
        }
        let last = self.last[slot].expect("invariant: operands come first");
        let value = self.copied(index, last, graph.layout(v).clone());
        self.plain[slot] = Some(value);
        value
    }

    fn channels_last(&mut self, index: usize, v: ValueId) -> ValueId {
        let graph = self.choice.graph;
        let slot = graph.slot(v);
        if let Some(last) = self.last[slot] {
            return last;
        }
        let plain = self.plain[slot].expect("invariant: operands come first");
        let value = self.copied(index, plain, channels_last(graph.layout(v)));
        self.last[slot] = Some(value);
        value
    }

    /// A copy in another layout.
    fn copied(&mut self, index: usize, v: ValueId, layout: LayoutRef) -> ValueId {
        let (words, _) = ArgWriter::new().tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH)).tensor().bool(false).finish();
        let op = Op::intern("aten::copy_", Props::MUTATES);
        self.rewriting.push(index, Signature::new(op, words, [layout].into_iter().collect()), &[v], 0..0)
    }
}
