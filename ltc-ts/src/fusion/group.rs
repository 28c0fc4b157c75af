//! A group of nodes as a kernel.

use ltc_ir::{DType, Graph, LayoutRef, Op, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::iteration_space::IterationSpace;
use super::{NodeComputes, gpu_kernel::GpuKernel, partition::FusionGroup};
use ltc_kernels::{self as kernels, Access, Builder, ComputeType, FusedKernel, Kernel, ReductionSpace, RowKernel, Val};

/// A group as one kernel: what it reads and what it yields.
#[derive(Debug)]
pub(crate) struct KernelPlan {
    /// Values read from memory, each once.
    pub(crate) operands: Vec<ValueId>,
    /// Values kept, in order of the nodes.
    pub(crate) results: Vec<ValueId>,
    /// Inputs of the kernel: which operand, how many bytes into it, and the strides of each dimension, in elements.
    inputs: Vec<(u32, usize, SmallVec<[i64; 6]>)>,
    /// The input read for each operand of a node that is not made here.
    uses: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
    pub(super) space: IterationSpace,
    /// Per result, where it is written if it is part of another value; empty if none is.
    pub(super) concat_slices: Vec<Option<ConcatSlice>>,
}

/// Where a result is written that is part of another value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConcatSlice {
    pub(super) joined: ValueId,
    /// Operand of the kernel with that value, as far as it is made.
    pub(crate) operand: u32,
    /// Bytes to skip.
    pub(crate) skip: usize,
    pub(super) strides: SmallVec<[i64; 6]>,
}

/// A slice of a joined value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slice {
    pub(crate) layout: LayoutRef,
    /// In elements.
    pub(crate) offset: i64,
}

/// A fused kernel and where its inputs lie in its operands.
#[derive(Debug)]
pub(crate) struct FusedKernelStep {
    pub(crate) kernel: FusedKernel,
    /// The nodes it stands for, in order.
    pub(crate) nodes: Vec<u32>,
    pub(crate) operands: Vec<ValueId>,
    /// Per input the operand and the bytes to skip.
    pub(crate) inputs: Vec<(u32, usize)>,
    /// As in its [`KernelPlan`].
    uses: Vec<u32>,
    pub(crate) results: Vec<ValueId>,
    /// Per result the operand whose memory it may take.
    pub(crate) reuse: Vec<Option<u32>>,
    /// As in its [`KernelPlan`].
    pub(crate) concat_slices: Vec<Option<ConcatSlice>>,
    /// The kernel as a GPU runs it, in programs that run there.
    pub(crate) gpu: Option<GpuKernel>,
}

/// Where an operand's elements lie: the value in whose memory, and the bytes to skip. Reads of views are seen through;
/// the strides are the operand's own.
fn source(graph: &Graph, value: ValueId) -> (ValueId, usize) {
    let layout = graph.layout(value);
    let (mut base, mut skip) = (value, 0);
    while let Some(node) = graph.definition(base).filter(|n| n.op() == Op::read_view()) {
        let offset = ltc_ir::view_offset(node.words());
        let inner = node.operands[0];
        let Some(offset) = offset.and_then(|o| usize::try_from(o).ok()) else { break };
        if graph.layout(inner).dtype() != layout.dtype() {
            break;
        }
        skip += offset * layout.dtype().size_of();
        base = inner;
    }
    (base, skip)
}

impl FusedKernelStep {
    /// Per result the operand in whose memory it lies, or may lie.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Option<u32>> {
        let slice = |r: usize| self.concat_slices.get(r).and_then(|p| p.as_ref()).map(|p| p.operand);
        self.reuse.iter().enumerate().map(move |(r, reuse)| slice(r).or(*reuse))
    }

    /// Whether a result depends on an operand for which `found` holds. For the rare run in which an operand has failed.
    pub(crate) fn depends(&self, graph: &Graph, result: usize, found: impl Fn(u32) -> bool) -> bool {
        if self.concat_slices.get(result).and_then(|p| p.as_ref()).is_some_and(|p| found(p.operand)) {
            return true;
        }
        let mut wanted = vec![self.results[result]];
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

impl KernelPlan {
    /// The group's operands and results; `kept` says whether a value is needed outside. `None` if some operand cannot
    /// be read by a kernel.
    pub(super) fn new(
        graph: &Graph,
        computes: &NodeComputes,
        group: &FusionGroup,
        kept: impl Fn(ValueId) -> bool,
    ) -> Option<KernelPlan> {
        let (nodes, space) = (&group.nodes, group.space.clone()?);
        let (operands, results, inputs, uses) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut kernel =
            KernelPlan { operands, results, inputs, uses, nodes: nodes.clone(), space, concat_slices: Vec::new() };
        for &n in nodes {
            let node = &graph.nodes()[n as usize];
            for &operand in &node.operands {
                if graph.definition_index(operand).is_none_or(|d| nodes.binary_search(&(d as u32)).is_err()) {
                    let (base, skip) = source(graph, operand);
                    let strides = computes.operand_strides(graph, n, &kernel.space, graph.layout(operand))?;
                    let at = kernel.operands.iter().position(|&o| o == base).unwrap_or_else(|| {
                        kernel.operands.push(base);
                        kernel.operands.len() - 1
                    });
                    let input = (at as u32, skip, strides);
                    let at = kernel.inputs.iter().position(|i| *i == input).unwrap_or_else(|| {
                        kernel.inputs.push(input);
                        kernel.inputs.len() - 1
                    });
                    kernel.uses.push(at as u32);
                }
            }
            kernel.results.extend(node.result_ids().filter(|&r| kept(r)));
        }
        Some(kernel)
    }

    /// A kernel for just one of the results; `None` if sums of it might be taken in another order.
    pub(crate) fn only(&self, graph: &Graph, computes: &NodeComputes, result: ValueId) -> Option<KernelPlan> {
        let mut wanted: Vec<ValueId> = vec![result];
        let mut nodes = Vec::new();
        for &n in self.nodes.iter().rev() {
            let node = &graph.nodes()[n as usize];
            if node.result_ids().any(|r| wanted.contains(&r)) {
                wanted.extend(&node.operands);
                nodes.push(n);
            }
        }
        nodes.reverse();
        let group = FusionGroup { nodes, space: Some(self.space.clone()).filter(|d| d.reduced.is_none()) };
        KernelPlan::new(graph, computes, &group, |v| v == result)
    }

    /// How the results lie in the iteration space.
    fn result_strides(&self, graph: &Graph, computes: &NodeComputes) -> Option<Vec<SmallVec<[i64; 6]>>> {
        let strides = |(i, &r): (usize, &ValueId)| match self.concat_slice(i) {
            Some(slice) => Some(slice.strides.clone()),
            None => {
                let node = graph.definition_index(r)? as u32;
                computes.result_strides(graph, node, &self.space, graph.layout(r))
            }
        };
        self.results.iter().enumerate().map(strides).collect()
    }

    /// Whether every operand is read, and every result written, from one element to the next.
    pub(super) fn is_flat(&self, graph: &Graph) -> bool {
        let Some(&first) = self.results.first() else { return false };
        if self.space.reduced.is_some() {
            return true;
        }
        let strides: Vec<&[i64]> =
            std::iter::once(graph.layout(first).strides()).chain(self.inputs.iter().map(|(_, _, s)| &s[..])).collect();
        let space = kernels::IterationSpace::new(graph.layout(first).sizes(), &strides);
        (0..strides.len()).all(|i| space.access(i) != Access::Strided)
    }

    /// The kernel; that of the same group for other sizes, `template`, lends its code where it can. `dies` says whether
    /// an operand's memory may become a result's.
    pub(crate) fn finish(
        self,
        graph: &Graph,
        computes: &NodeComputes,
        template: Option<&FusedKernelStep>,
        dies: impl Fn(usize) -> bool,
    ) -> Option<FusedKernelStep> {
        let result_strides = self.result_strides(graph, computes)?;
        let strides: Vec<&[i64]> =
            result_strides.iter().map(|s| &s[..]).chain(self.inputs.iter().map(|(_, _, s)| &s[..])).collect();
        let sizes = &self.space.sizes;
        let (kernel, reuse) = match &self.space.reduced {
            Some(reduced) => {
                let space = ReductionSpace::new(sizes, &reduced.dims, &strides);
                let (outputs, inputs) = self.dtypes(graph);
                let (usual, general) = (self.ir(graph, computes, true)?, self.ir(graph, computes, false)?);
                let kernel = RowKernel::new(space, &outputs, &inputs, &usual, general)?;
                (FusedKernel::Rows(Box::new(kernel)), self.reuse(graph, dies))
            }
            None => {
                let (space, reuse) = (kernels::IterationSpace::new(sizes, &strides), self.reuse(graph, dies));
                let reused = template.filter(|f| self.computes_as(f, &reuse)).and_then(|f| match &f.kernel {
                    FusedKernel::Flat(kernel) => kernel.over(space.clone()),
                    FusedKernel::Rows(_) => None,
                });
                let kernel = match reused {
                    Some(kernel) => kernel,
                    None => self.flat(graph, computes, space, &reuse)?,
                };
                (FusedKernel::Flat(Box::new(kernel)), reuse)
            }
        };
        let inputs = self.inputs.iter().map(|(o, skip, _)| (*o, *skip)).collect();
        let KernelPlan { operands, results, uses, nodes, concat_slices, .. } = self;
        Some(FusedKernelStep { kernel, nodes, operands, inputs, uses, results, reuse, concat_slices, gpu: None })
    }

    /// Dtypes of results and inputs.
    fn dtypes(&self, graph: &Graph) -> (Vec<DType>, Vec<DType>) {
        let of = |v: &ValueId| graph.layout(*v).dtype();
        let inputs = self.inputs.iter().map(|(o, ..)| of(&self.operands[*o as usize]));
        (self.results.iter().map(of).collect(), inputs.collect())
    }

    fn flat(
        &self,
        graph: &Graph,
        computes: &NodeComputes,
        space: kernels::IterationSpace,
        reuse: &[Option<u32>],
    ) -> Option<Kernel> {
        let (usual, general) = (self.ir(graph, computes, true)?, self.ir(graph, computes, false)?);
        let staged = reuse.iter().map(Option::is_some).collect();
        let (outputs, inputs) = self.dtypes(graph);
        Kernel::new(space, &outputs, &inputs, &usual, general, staged)
    }

    /// Whether a kernel made for other sizes computes the same: that depends on which values are read, not on how many
    /// there are.
    fn computes_as(&self, other: &FusedKernelStep, reuse: &[Option<u32>]) -> bool {
        let reads = other.inputs.iter().map(|i| i.0).eq(self.inputs.iter().map(|i| i.0)) && other.uses == self.uses;
        reads
            && (&other.nodes, &other.operands, &other.results) == (&self.nodes, &self.operands, &self.results)
            && other.reuse == reuse
            && self.concat_slices.iter().map(Option::is_some).eq(other.concat_slices.iter().map(Option::is_some))
    }

    /// Per result the operand whose memory it may take: one of which the kernel reads nothing but its elements as they
    /// lie.
    pub(crate) fn reuse(&self, graph: &Graph, dies: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        if self.space.reduced.is_some() {
            return vec![None; self.results.len()];
        }
        let mut reuse: Vec<Option<u32>> = Vec::with_capacity(self.results.len());
        for (r, &result) in self.results.iter().enumerate() {
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
            let found = (0..self.operands.len() as u32).find(fits).filter(|_| self.concat_slice(r).is_none());
            reuse.push(found);
        }
        reuse
    }

    fn ir(&self, graph: &Graph, computes: &NodeComputes, assume_ones: bool) -> Option<ltc_kernels::KernelIr> {
        let mut b = Builder::new(assume_ones);
        let mut values: FxHashMap<ValueId, Val> = FxHashMap::default();
        for &n in &self.nodes {
            let (node, compute) = (&graph.nodes()[n as usize], computes.of(graph, n)?);
            let made = compute.build(&mut b, node.first_number, |b, i| {
                let operand = node.operands[i];
                if let Some(&v) = values.get(&operand) {
                    return Some(v);
                }
                let (base, skip) = source(graph, operand);
                let strides = compute.operand_strides(&self.space, graph.layout(operand))?;
                let at = self.operands.iter().position(|&o| o == base)? as u32;
                let input = self.inputs.iter().position(|i| *i == (at, skip, strides.clone()))?;
                Some(b.input(input as u32, ComputeType::of(graph.layout(operand).dtype())?))
            })?;
            values.extend(node.result_ids().zip(made));
        }
        let outputs: Vec<Val> = self.results.iter().map(|r| values.get(r).copied()).collect::<Option<_>>()?;
        Some(b.finish(&outputs))
    }
}

impl KernelPlan {
    /// Whether a result may be written elsewhere.
    pub(super) fn can_write_into(&self, value: ValueId) -> bool {
        self.space.reduced.is_none() && self.results.contains(&value)
    }

    /// Has a result written into a slice of another value.
    pub(super) fn write_into(&mut self, value: ValueId, joined: ValueId, slice: &Slice) {
        let Some(at) = self.results.iter().position(|&r| r == value) else { return };
        let operand = self.operands.iter().position(|&o| o == joined).unwrap_or_else(|| {
            self.operands.push(joined);
            self.operands.len() - 1
        });
        let skip = slice.offset as usize * slice.layout.dtype().size_of();
        self.concat_slices.resize(self.results.len(), None);
        self.concat_slices[at] =
            Some(ConcatSlice { joined, operand: operand as u32, skip, strides: slice.layout.strides().into() });
    }

    pub(super) fn concat_slice(&self, result: usize) -> Option<&ConcatSlice> {
        self.concat_slices.get(result)?.as_ref()
    }

    /// The values results become, or become part of.
    pub(crate) fn stored(&self) -> SmallVec<[ValueId; 2]> {
        let stored = |(i, &r): (usize, &ValueId)| self.concat_slice(i).map_or(r, |p| p.joined);
        self.results.iter().enumerate().map(stored).collect()
    }
}
