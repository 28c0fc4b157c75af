//! Graphs rewritten into better ones.
//!
//! A [`Rewriting`] goes through the nodes of a graph in order and keeps each, puts others in its place, or says what
//! stands for its results. Parameters, outputs and runtime numbers keep their meaning, so the new graph runs on what
//! the old one was recorded with. What nobody needs any more is left out.
//!
//! Runtime numbers are unknown to a rewrite. It may *assume* some to have certain values, as that the `alpha` of an
//! addition is one, or to be equal; whoever runs the graph checks the assumptions first, and runs the old graph when
//! one is wrong. Numbers of calls that were not recorded are constants, which whoever runs the graph appends to those
//! of the run.

use std::ops::Range;

use crate::{
    args::{Arg, ArgWriter, scalar_words},
    graph::{Graph, GraphBuilder, GraphNode, ValueId},
    layout::LayoutRef,
    op::Op,
    props::Props,
    scalar::Scalar,
    signature::{Signature, SignatureRef},
    table::ArgKind,
};

/// What a rewrite assumes of the words of the runtime numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Assumption {
    /// The word at this position is this one.
    Is(u32, u64),
    /// The words at these positions are equal.
    Equal(u32, u32),
}

impl Assumption {
    /// Whether these runtime numbers are as assumed.
    pub fn holds(self, numbers: &[u64]) -> bool {
        let word = |i: u32| numbers.get(i as usize);
        match self {
            Assumption::Is(i, expected) => word(i) == Some(&expected),
            Assumption::Equal(i, j) => word(i).is_some() && word(i) == word(j),
        }
    }
}

/// A graph made from another.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The new graph.
    pub graph: Graph,
    /// Per node of the new graph the node of the old one it comes from.
    pub origin: Vec<u32>,
    /// What the old graph's runtime numbers must be.
    pub assumed: Vec<Assumption>,
    /// Words that follow the old graph's runtime numbers, the same in each run.
    pub constants: Vec<u64>,
}

/// A rewriting under way.
#[derive(Debug)]
pub struct Rewriting<'a> {
    source: &'a Graph,
    builder: GraphBuilder,
    /// Per slot of the source what stands for the value.
    values: Vec<Option<ValueId>>,
    origin: Vec<u32>,
    assumed: Vec<Assumption>,
    constants: Vec<u64>,
}

impl<'a> Rewriting<'a> {
    /// Starts with the graph's parameters and no nodes.
    pub fn new(source: &'a Graph) -> Self {
        let mut builder = GraphBuilder::new();
        let mut values = vec![None; source.value_count()];
        for (layout, value) in source.params().iter().zip(&mut values) {
            *value = Some(builder.param(layout.clone()));
        }
        Rewriting { source, builder, values, origin: Vec::new(), assumed: Vec::new(), constants: Vec::new() }
    }

    /// The graph that is rewritten.
    pub fn source(&self) -> &'a Graph {
        self.source
    }

    /// What stands for a value of the source, whose node must have been dealt with.
    pub fn value(&self, v: ValueId) -> ValueId {
        self.values[self.source.slot(v)].expect("invariant: nodes are rewritten in order")
    }

    /// Says what stands for a value of the source.
    pub fn stand_in(&mut self, v: ValueId, by: ValueId) {
        debug_assert_eq!(self.source.layout(v).sizes(), self.builder.layout(by).sizes());
        self.values[self.source.slot(v)] = Some(by);
    }

    /// Layout of a value of the new graph.
    pub fn layout(&self, v: ValueId) -> &LayoutRef {
        self.builder.layout(v)
    }

    /// The node of the new graph that makes a value; `None` for parameters.
    pub fn definition(&self, v: ValueId) -> Option<&GraphNode> {
        let result = v.as_result()?;
        let nodes = self.builder.nodes();
        let after = nodes.partition_point(|n| n.first_result as usize <= result);
        nodes.get(after.checked_sub(1)?)
    }

    /// Takes node `index` over, on what stands for its operands.
    pub fn keep(&mut self, index: usize) {
        let node = &self.source.nodes()[index];
        self.put(index, node.signature.clone());
    }

    /// Puts a node of this signature, with the operands and numbers of node `index` and as many results, in its place.
    pub fn put(&mut self, index: usize, signature: SignatureRef) {
        let node = &self.source.nodes()[index];
        let operands: Vec<ValueId> = node.operands.iter().map(|&o| self.value(o)).collect();
        let first = self.push(index, signature, &operands, numbers_of(node));
        for (old, new) in node.result_ids().zip(results_from(first)) {
            self.values[self.source.slot(old)] = Some(new);
        }
    }

    /// Adds a node over values of the new graph; its errors are those of node `index`. Returns its first result.
    pub fn push(
        &mut self,
        index: usize,
        signature: SignatureRef,
        operands: &[ValueId],
        numbers: Range<u32>,
    ) -> ValueId {
        self.origin.push(index as u32);
        self.builder.push_at(signature, operands, numbers, self.source.nodes()[index].site)
    }

    /// Adds a call that was not recorded, as [`Rewriting::push`] does; its numbers are those written with its
    /// arguments.
    pub fn call(
        &mut self,
        index: usize,
        name: &str,
        args: &mut ArgWriter,
        operands: &[ValueId],
        results: &[LayoutRef],
    ) -> ValueId {
        let (words, numbers) = args.finish();
        let first = (self.source.number_count() + self.constants.len()) as u32;
        self.constants.extend(&numbers);
        let signature = Signature::new(Op::intern(name, Props::NONE), words, results.iter().cloned().collect());
        self.push(index, signature, operands, first..first + numbers.len() as u32)
    }

    /// Assumes a word of the runtime numbers.
    pub fn assume(&mut self, number: u32, word: u64) {
        self.assumed.push(Assumption::Is(number, word));
    }

    /// Assumes two words of the runtime numbers to be equal.
    pub fn assume_equal(&mut self, one: u32, other: u32) {
        self.assumed.push(Assumption::Equal(one, other));
    }

    /// The new graph, without nodes nobody needs.
    pub fn finish(self) -> Rewritten {
        let outputs: Vec<ValueId> = self.source.outputs().iter().map(|&o| self.value(o)).collect();
        let mut needed = vec![false; self.builder.nodes().len()];
        let of = |builder: &GraphBuilder, v: ValueId| {
            let result = v.as_result()?;
            Some(builder.nodes().partition_point(|n| n.first_result as usize <= result) - 1)
        };
        outputs.iter().filter_map(|&o| of(&self.builder, o)).for_each(|n| needed[n] = true);
        for n in (0..needed.len()).rev() {
            if needed[n] {
                let operands = self.builder.nodes()[n].operands.iter();
                operands.filter_map(|&o| of(&self.builder, o)).for_each(|d| needed[d] = true);
            }
        }
        let mut builder = GraphBuilder::new();
        for layout in self.source.params() {
            builder.param(layout.clone());
        }
        let mut first = vec![0usize; needed.len()];
        let mut origin = Vec::with_capacity(needed.len());
        for (n, node) in self.builder.nodes().iter().enumerate().filter(|(n, _)| needed[*n]) {
            let operands: Vec<ValueId> =
                node.operands.iter().map(|&o| renumbered(&self.builder, &first, o, of(&self.builder, o))).collect();
            let at = builder.push_at(node.signature.clone(), &operands, numbers_of(node), node.site);
            first[n] = at.as_result().unwrap_or_default();
            origin.push(self.origin[n]);
        }
        let outputs = outputs.iter().map(|&o| renumbered(&self.builder, &first, o, of(&self.builder, o))).collect();
        builder.count_numbers((self.source.number_count() + self.constants.len()) as u32);
        Rewritten { graph: builder.finish(outputs), origin, assumed: self.assumed, constants: self.constants }
    }
}

/// A value after nodes before it were left out; `first` has the new first results.
fn renumbered(old: &GraphBuilder, first: &[usize], v: ValueId, definition: Option<usize>) -> ValueId {
    match (v.as_result(), definition) {
        (Some(result), Some(n)) => ValueId::result(first[n] + result - old.nodes()[n].first_result as usize),
        _ => v,
    }
}

/// The runtime numbers of a node.
pub fn numbers_of(node: &GraphNode) -> Range<u32> {
    node.first_number..node.first_number + node.number_count
}

/// The results of a node, given the first.
pub fn results_from(first: ValueId) -> impl Iterator<Item = ValueId> {
    let first = first.as_result().unwrap_or_default();
    (first..).map(ValueId::result)
}

/// The runtime numbers of a node and the words they have where the schema's defaults were not changed, as the `alpha`
/// of an addition; `None` if one of them has no default.
pub fn default_numbers(node: &GraphNode) -> Option<Vec<(u32, u64)>> {
    let mut words = Vec::new();
    if node.number_count == 0 {
        return Some(words);
    }
    let specs = node.op().row()?.arguments;
    for (arg, spec) in node.args().zip(specs) {
        let (number, dtype) = match arg {
            Arg::Number { number, dtype } => (number, dtype),
            Arg::Float { .. } | Arg::HostScalar { .. } | Arg::Numbers { .. } => return None,
            _ => continue,
        };
        let default: i64 = spec.default.filter(|_| spec.kind == ArgKind::Scalar)?.parse().ok()?;
        let scalar = if dtype.is_floating() { Scalar::Float(default as f64) } else { Scalar::Int(default) };
        if scalar_words(dtype) != 1 || dtype.is_complex() {
            return None;
        }
        let mut word = crate::args::RuntimeScalars::new();
        scalar.push_words(&mut word);
        words.push((node.first_number + number as u32, *word.first()?));
    }
    Some(words)
}
