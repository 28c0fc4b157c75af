//! The canonical graph: what is compiled, hashed and compared.
//!
//! Dense, ordered and free of data: parameters by layout, nodes with operands by [`ValueId`], runtime numbers by
//! position. Two steps of a training loop record different traces but the same graph. What varies from step to step
//! (buffers, numbers) stands beside it in [`crate::canonicalize::Canonical`].

use std::fmt;

use smallvec::SmallVec;

use crate::{
    args::{ArgReader, EncodedArgs},
    hash::{Domain, Hash128, Hasher},
    layout::LayoutRef,
    op::Op,
    signature::{Results, Signature, SignatureRef},
    trace::SiteId,
};

/// A value of a graph: a parameter (`%p0`) or a node result (`%0`, numbered through the graph).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

const PARAM: u32 = 1 << 31;

impl ValueId {
    /// The `i`-th parameter.
    pub fn param(i: usize) -> Self {
        ValueId(i as u32 | PARAM)
    }

    /// The `i`-th node result.
    pub fn result(i: usize) -> Self {
        ValueId(i as u32)
    }

    /// Which parameter this is.
    pub fn as_param(self) -> Option<usize> {
        (self.0 & PARAM != 0).then_some((self.0 & !PARAM) as usize)
    }

    /// Which node result this is.
    pub fn as_result(self) -> Option<usize> {
        (self.0 & PARAM == 0).then_some(self.0 as usize)
    }

    /// All bits, for hashing.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_param() {
            Some(i) => write!(f, "%p{i}"),
            None => write!(f, "%{}", self.0),
        }
    }
}

impl fmt::Debug for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One operation of a graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Operator, structural arguments and result layouts.
    pub signature: SignatureRef,
    /// Operands, in order of appearance in the arguments.
    pub operands: SmallVec<[ValueId; 4]>,
    /// Position of the first runtime number.
    pub first_number: u32,
    /// How many number words the arguments consume.
    pub number_count: u32,
    /// Number of the first result.
    pub first_result: u32,
    /// Where it was first recorded; no part of equality.
    pub site: SiteId,
}

impl GraphNode {
    /// Ids of the results.
    pub fn result_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (self.first_result..self.first_result + self.results().len() as u32).map(ValueId)
    }

    /// Operator.
    pub fn op(&self) -> Op {
        self.signature.op()
    }

    /// Structural arguments.
    pub fn words(&self) -> &[u64] {
        self.signature.words()
    }

    /// Decodes the arguments.
    pub fn args(&self) -> ArgReader<'_> {
        self.signature.args()
    }

    /// Layouts of the results: written arguments first, in argument order, then new results, then generator states.
    pub fn results(&self) -> &[LayoutRef] {
        self.signature.results()
    }
}

/// A canonical graph. Immutable once built; see [`GraphBuilder`].
#[derive(Clone, Debug, Default)]
pub struct Graph {
    params: Vec<LayoutRef>,
    nodes: Vec<GraphNode>,
    /// Node that defines each result.
    result_nodes: Vec<u32>,
    outputs: Vec<ValueId>,
    number_count: u32,
    hash: Hash128,
}

impl Graph {
    /// Layouts of the parameters.
    pub fn params(&self) -> &[LayoutRef] {
        &self.params
    }

    /// Nodes, in execution order.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// Values the graph yields, in order.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// How many words of runtime numbers an execution takes.
    pub fn number_count(&self) -> usize {
        self.number_count as usize
    }

    /// How many node results there are.
    pub fn result_count(&self) -> usize {
        self.result_nodes.len()
    }

    /// The node that defines a value; `None` for parameters.
    pub fn definition(&self, v: ValueId) -> Option<&GraphNode> {
        v.as_result().map(|r| &self.nodes[self.result_nodes[r] as usize])
    }

    /// Position of the node that defines a value; `None` for parameters.
    pub fn definition_index(&self, v: ValueId) -> Option<usize> {
        v.as_result().and_then(|r| self.result_nodes.get(r)).map(|&n| n as usize)
    }

    /// Layout of a value.
    pub fn layout(&self, v: ValueId) -> &LayoutRef {
        match v.as_param() {
            Some(p) => &self.params[p],
            None => {
                let node = &self.nodes[self.result_nodes[v.0 as usize] as usize];
                &node.results()[(v.0 - node.first_result) as usize]
            }
        }
    }

    /// Position of a value among parameters then results, for dense tables of [`Graph::value_count`] entries.
    pub fn slot(&self, v: ValueId) -> usize {
        match v.as_param() {
            Some(p) => p,
            None => self.params.len() + v.0 as usize,
        }
    }

    /// Parameters plus results.
    pub fn value_count(&self) -> usize {
        self.params.len() + self.result_nodes.len()
    }

    /// Structural hash; equal for equal graphs, across processes.
    pub fn hash(&self) -> Hash128 {
        self.hash
    }

    /// The graph with some nodes replaced by several that together yield the same results in the same order, and per
    /// node of the new graph the position of the node it stands for. `parts` gives a node's replacement, or `None` to
    /// keep it; first results are numbered here. Values keep their ids.
    pub fn expanded(&self, mut parts: impl FnMut(&GraphNode) -> Option<Vec<GraphNode>>) -> (Graph, Vec<u32>) {
        let mut graph = Graph { nodes: Vec::with_capacity(self.nodes.len()), result_nodes: Vec::new(), ..self.clone() };
        let mut origin = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let replacement = parts(node).unwrap_or_else(|| vec![node.clone()]);
            for mut part in replacement {
                part.first_result = graph.result_nodes.len() as u32;
                let defined = std::iter::repeat_n(graph.nodes.len() as u32, part.results().len());
                graph.result_nodes.extend(defined);
                graph.nodes.push(part);
                origin.push(index as u32);
            }
        }
        debug_assert_eq!(graph.result_nodes.len(), self.result_nodes.len(), "parts yield what the node yields");
        let mut hasher = GraphHasher::new();
        graph.nodes.iter().for_each(|n| hasher.node(n.signature.hash(), &n.operands));
        graph.hash = hasher.finish(graph.params.iter().map(|p| p.hash()), &graph.outputs);
        (graph, origin)
    }

    /// Which nodes these values need.
    pub fn needs(&self, values: impl IntoIterator<Item = ValueId>) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        for node in values.into_iter().filter_map(|v| self.definition_index(v)) {
            needed[node] = true;
        }
        for node in (0..needed.len()).rev() {
            if needed[node] {
                let operands = self.nodes[node].operands.iter();
                operands.filter_map(|&o| self.definition_index(o)).for_each(|n| needed[n] = true);
            }
        }
        needed
    }

    /// What these values need as a graph of its own, which takes the same numbers; and which parameters it takes.
    pub fn part(&self, values: &[ValueId]) -> (Graph, Vec<usize>) {
        let needed = self.needs(values.iter().copied());
        let (mut b, mut params) = (GraphBuilder::new(), Vec::new());
        let nodes = || self.nodes.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(node, _)| node);
        let mut ids = vec![ValueId(0); self.value_count()];
        for v in nodes().flat_map(|n| n.operands.iter()).chain(values).filter(|v| v.as_param().is_some()) {
            let param = self.slot(*v);
            if !params.contains(&param) {
                params.push(param);
                ids[param] = b.param(self.params[param].clone());
            }
        }
        for node in nodes() {
            let operands: SmallVec<[ValueId; 4]> = node.operands.iter().map(|&o| ids[self.slot(o)]).collect();
            let numbers = node.first_number..node.first_number + node.number_count;
            let first = b.push_at(node.signature.clone(), &operands, numbers, node.site);
            for (i, id) in node.result_ids().enumerate() {
                ids[self.slot(id)] = ValueId(first.0 + i as u32);
            }
        }
        b.count_numbers(self.number_count);
        (b.finish(values.iter().map(|&v| ids[self.slot(v)]).collect()), params)
    }

    /// Rough size in memory, for the cache's bound, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Graph>()
            + self.nodes.len() * size_of::<GraphNode>()
            + self.nodes.iter().map(|n| n.signature.heap_bytes()).sum::<usize>()
            + (self.params.len() + self.result_nodes.len() + self.outputs.len()) * 8
    }
}

/// Structure only: sites do not count.
impl PartialEq for Graph {
    fn eq(&self, o: &Graph) -> bool {
        self.hash == o.hash
            && self.params == o.params
            && self.outputs == o.outputs
            && self.nodes.len() == o.nodes.len()
            && self.nodes.iter().zip(&o.nodes).all(|(a, b)| a.operands == b.operands && a.signature == b.signature)
    }
}

impl Eq for Graph {}

/// Builds a graph node by node.
#[derive(Default, Debug)]
pub struct GraphBuilder {
    params: Vec<LayoutRef>,
    nodes: Vec<GraphNode>,
    result_nodes: Vec<u32>,
    numbers: u32,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter.
    pub fn param(&mut self, layout: LayoutRef) -> ValueId {
        self.params.push(layout);
        ValueId::param(self.params.len() - 1)
    }

    /// Adds a node; returns the id of its first result. `number_count` is how many number words `words` consumes.
    pub fn node(
        &mut self,
        op: Op,
        words: EncodedArgs,
        operands: &[ValueId],
        number_count: usize,
        results: Results,
        site: SiteId,
    ) -> ValueId {
        self.push(Signature::new(op, words, results), operands, number_count, site)
    }

    /// Adds a node of this signature.
    pub fn push(
        &mut self,
        signature: SignatureRef,
        operands: &[ValueId],
        number_count: usize,
        site: SiteId,
    ) -> ValueId {
        let first_result = self.result_nodes.len() as u32;
        self.result_nodes.extend(std::iter::repeat_n(self.nodes.len() as u32, signature.results().len()));
        self.nodes.push(GraphNode {
            signature,
            operands: operands.into(),
            first_number: self.numbers,
            number_count: number_count as u32,
            first_result,
            site,
        });
        self.numbers += number_count as u32;
        ValueId(first_result)
    }

    /// Adds a node that reads numbers counted already, or to be counted by [`GraphBuilder::count_numbers`].
    pub(crate) fn push_at(
        &mut self,
        signature: SignatureRef,
        operands: &[ValueId],
        numbers: std::ops::Range<u32>,
        site: SiteId,
    ) -> ValueId {
        let counted = self.numbers;
        let first = self.push(signature, operands, numbers.len(), site);
        self.numbers = counted;
        if let Some(node) = self.nodes.last_mut() {
            node.first_number = numbers.start;
        }
        first
    }

    /// Says how many words of runtime numbers the graph takes.
    pub(crate) fn count_numbers(&mut self, words: u32) {
        self.numbers = words;
    }

    /// Layout of a value so far.
    pub(crate) fn layout(&self, v: ValueId) -> &LayoutRef {
        match v.as_param() {
            Some(p) => &self.params[p],
            None => {
                let node = &self.nodes[self.result_nodes[v.0 as usize] as usize];
                &node.results()[(v.0 - node.first_result) as usize]
            }
        }
    }

    /// The nodes so far.
    pub(crate) fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// The graph with these outputs.
    pub fn finish(self, outputs: Vec<ValueId>) -> Graph {
        let mut h = GraphHasher::new();
        for node in &self.nodes {
            h.node(node.signature.hash(), &node.operands);
        }
        let hash = h.finish(self.params.iter().map(|p| p.hash()), &outputs);
        Graph {
            params: self.params,
            nodes: self.nodes,
            result_nodes: self.result_nodes,
            outputs,
            number_count: self.numbers,
            hash,
        }
    }
}

/// The one definition of a graph's hash, shared by [`GraphBuilder`] and the trace's canonical form.
pub(crate) struct GraphHasher(Hasher);

impl GraphHasher {
    pub(crate) fn new() -> Self {
        GraphHasher(Hasher::new(Domain::Graph))
    }

    pub(crate) fn node(&mut self, local: Hash128, operands: &[ValueId]) {
        self.0.hash(local);
        self.0.word(operands.len() as u64);
        for pair in operands.chunks(2) {
            self.0.word(pair[0].bits() as u64 | (pair.get(1).map_or(0, |v| v.bits()) as u64) << 32);
        }
    }

    pub(crate) fn finish(mut self, params: impl Iterator<Item = Hash128>, outputs: &[ValueId]) -> Hash128 {
        let mut count = 0;
        for p in params {
            self.0.hash(p);
            count += 1;
        }
        self.0.word(count);
        for o in outputs {
            self.0.word(o.bits() as u64);
        }
        self.0.word(outputs.len() as u64);
        self.0.finish()
    }
}
