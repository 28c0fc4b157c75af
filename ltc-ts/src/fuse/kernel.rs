//! A group of nodes as a kernel.

use ltc_ir::{Graph, Op, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Points;
use crate::kernels::{Access, Builder, Kernel, Lane, Space, Val};

/// A unit as one kernel: what it reads and what it yields.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Values read from memory, each once.
    pub(crate) operands: Vec<ValueId>,
    /// Values kept, in order of the nodes.
    pub(crate) results: Vec<ValueId>,
    /// Inputs of the kernel: which operand, how many bytes into it, and the strides of each dimension, in elements.
    inputs: Vec<(u32, usize, SmallVec<[i64; 6]>)>,
    /// The input read for each operand of a node that is not made here.
    uses: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
}

/// A fused kernel and where its inputs lie in its operands.
#[derive(Debug)]
pub(crate) struct Fused {
    pub(crate) kernel: Kernel,
    /// The nodes it stands for, in order.
    pub(crate) nodes: Vec<u32>,
    pub(crate) operands: Vec<ValueId>,
    /// Per input the operand and the bytes to skip.
    pub(crate) inputs: Vec<(u32, usize)>,
    /// As in its [`Draft`].
    uses: Vec<u32>,
    pub(super) results: Vec<ValueId>,
    /// Per result the operand whose memory it may take.
    pub(crate) reuse: Vec<Option<u32>>,
}

/// Where an operand's elements lie: the value in whose memory, the bytes to skip, the strides. Reads of views are seen
/// through.
fn source(graph: &Graph, value: ValueId) -> (ValueId, usize, &[i64]) {
    let layout = graph.layout(value);
    let (mut base, mut skip) = (value, 0);
    while let Some(node) = graph.definition(base).filter(|n| n.op() == Op::read_view()) {
        let offset = node.args().find_map(|a| if let ltc_ir::Arg::Int(offset) = a { Some(offset) } else { None });
        let inner = node.operands[0];
        let Some(offset) = offset.and_then(|o| usize::try_from(o).ok()) else { break };
        if graph.layout(inner).dtype() != layout.dtype() {
            break;
        }
        skip += offset * layout.dtype().size_of();
        base = inner;
    }
    (base, skip, layout.strides())
}

/// Strides that show an operand at the sizes of the result: 0 where it is repeated. `None` if it does not fit.
fn broadcast(sizes: &[i64], strides: &[i64], to: &[i64]) -> Option<SmallVec<[i64; 6]>> {
    let missing = to.len().checked_sub(sizes.len())?;
    let mut out = SmallVec::from_elem(0, to.len());
    for (d, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
        match size {
            _ if size == to[missing + d] => out[missing + d] = stride,
            1 => {}
            _ => return None,
        }
    }
    Some(out)
}

impl Fused {
    /// Whether a result depends on an operand for which `found` holds. For the rare run in which an operand has failed.
    pub(crate) fn depends(&self, graph: &Graph, result: ValueId, found: impl Fn(u32) -> bool) -> bool {
        let mut wanted = vec![result];
        for &n in self.nodes.iter().rev() {
            let node = &graph.nodes()[n as usize];
            if node.result_ids().any(|r| wanted.contains(&r)) {
                wanted.extend(&node.operands);
            }
        }
        let bases: Vec<ValueId> = wanted.into_iter().map(|v| source(graph, v).0).collect();
        (0..self.operands.len() as u32).any(|i| found(i) && bases.contains(&self.operands[i as usize]))
    }
}

impl Draft {
    /// The unit's operands and results; `kept` says whether a value is needed outside. `None` if some operand cannot be
    /// read by a kernel.
    pub(crate) fn new(graph: &Graph, nodes: &[u32], kept: impl Fn(ValueId) -> bool) -> Option<Draft> {
        let (operands, results, inputs, uses) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut draft = Draft { operands, results, inputs, uses, nodes: nodes.to_vec() };
        let sizes = graph.nodes()[nodes[0] as usize].results()[0].sizes();
        for &n in nodes {
            let node = &graph.nodes()[n as usize];
            for &operand in &node.operands {
                if graph.definition_index(operand).is_none_or(|d| nodes.binary_search(&(d as u32)).is_err()) {
                    let (base, skip, strides) = source(graph, operand);
                    let strides = broadcast(graph.layout(operand).sizes(), strides, sizes)?;
                    let at = draft.operands.iter().position(|&o| o == base).unwrap_or_else(|| {
                        draft.operands.push(base);
                        draft.operands.len() - 1
                    });
                    let input = (at as u32, skip, strides);
                    let at = draft.inputs.iter().position(|i| *i == input).unwrap_or_else(|| {
                        draft.inputs.push(input);
                        draft.inputs.len() - 1
                    });
                    draft.uses.push(at as u32);
                }
            }
            draft.results.extend(node.result_ids().filter(|&r| kept(r)));
        }
        Some(draft)
    }

    /// Whether every operand is read, and every result written, from one element to the next.
    pub(crate) fn is_flat(&self, graph: &Graph) -> bool {
        let Some(&first) = self.results.first() else { return false };
        let strides: Vec<&[i64]> =
            std::iter::once(graph.layout(first).strides()).chain(self.inputs.iter().map(|(_, _, s)| &s[..])).collect();
        let space = Space::new(graph.layout(first).sizes(), &strides);
        (0..strides.len()).all(|i| space.access(i) != Access::Strided)
    }

    /// The kernel; that of the same unit for other sizes, `like`, lends its code where it can. `dies` says whether an
    /// operand's memory may become a result's.
    pub(crate) fn finish(
        self,
        graph: &Graph,
        points: &Points,
        like: Option<&Fused>,
        dies: impl Fn(usize) -> bool,
    ) -> Option<Fused> {
        let sizes = graph.nodes()[self.nodes[0] as usize].results()[0].sizes();
        // A result may take an operand's memory if all the kernel reads of that operand is its elements as they lie.
        let mut reuse: Vec<Option<u32>> = Vec::with_capacity(self.results.len());
        for &result in &self.results {
            let layout = graph.layout(result);
            let fits = |&i: &u32| {
                let whole = |(_, skip, strides): &(u32, usize, SmallVec<[i64; 6]>)| {
                    *skip == 0 && strides[..] == *layout.strides()
                };
                graph.layout(self.operands[i as usize]) == layout
                    && dies(i as usize)
                    && !reuse.contains(&Some(i))
                    && self.inputs.iter().filter(|input| input.0 == i).all(whole)
            };
            let found = (0..self.operands.len() as u32).find(fits);
            reuse.push(found);
        }
        let result_strides = self.results.iter().map(|r| graph.layout(*r).strides());
        let strides: Vec<&[i64]> = result_strides.chain(self.inputs.iter().map(|(_, _, s)| &s[..])).collect();
        let space = Space::new(sizes, &strides);
        // What is computed depends on which values are read, not on how many there are.
        let same = |f: &&Fused| {
            let reads =
                |f: &Fused| f.inputs.iter().map(|i| i.0).eq(self.inputs.iter().map(|i| i.0)) && f.uses == self.uses;
            (&f.nodes, &f.operands, &f.results, &f.reuse) == (&self.nodes, &self.operands, &self.results, &reuse)
                && reads(f)
        };
        let inputs = self.inputs.iter().map(|(o, skip, _)| (*o, *skip)).collect();
        let lent = like.filter(same).and_then(|f| f.kernel.over(space.clone()));
        let kernel = match lent {
            Some(kernel) => kernel,
            None => self.kernel(graph, points, space, &reuse)?,
        };
        let Draft { operands, results, uses, nodes, .. } = self;
        Some(Fused { kernel, nodes, operands, inputs, uses, results, reuse })
    }

    fn kernel(&self, graph: &Graph, points: &Points, space: Space, reuse: &[Option<u32>]) -> Option<Kernel> {
        let usual = self.body(graph, points, true)?;
        let general = self.body(graph, points, false)?;
        let staged = reuse.iter().map(Option::is_some).collect();
        let of = |v: &ValueId| graph.layout(*v);
        let outputs: Vec<_> = self.results.iter().map(|r| of(r).dtype()).collect();
        let inputs: Vec<_> = self.inputs.iter().map(|(o, ..)| of(&self.operands[*o as usize]).dtype()).collect();
        Kernel::new(space, &outputs, &inputs, &usual, general, staged)
    }

    fn body(&self, graph: &Graph, points: &Points, assume_ones: bool) -> Option<crate::kernels::Body> {
        let sizes = graph.nodes()[self.nodes[0] as usize].results()[0].sizes();
        let mut b = Builder::new(assume_ones);
        let mut values: FxHashMap<ValueId, Val> = FxHashMap::default();
        for &n in &self.nodes {
            let node = &graph.nodes()[n as usize];
            let value = points.of(graph, n)?.build(&mut b, node.first_number, |b, i| {
                let operand = node.operands[i];
                if let Some(&v) = values.get(&operand) {
                    return Some(v);
                }
                let (base, skip, strides) = source(graph, operand);
                let strides = broadcast(graph.layout(operand).sizes(), strides, sizes)?;
                let at = self.operands.iter().position(|&o| o == base)? as u32;
                let input = self.inputs.iter().position(|i| *i == (at, skip, strides.clone()))?;
                Some(b.input(input as u32, Lane::of(graph.layout(operand).dtype())?))
            })?;
            values.insert(node.result_ids().next()?, value);
        }
        let outputs: Vec<Val> = self.results.iter().map(|r| values.get(r).copied()).collect::<Option<_>>()?;
        Some(b.finish(&outputs))
    }
}
