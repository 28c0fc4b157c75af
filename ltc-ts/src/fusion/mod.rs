//! Fusion: which operators become one kernel, and what the kernel computes.
//!
//! | file | what |
//! |---|---|
//! | `iteration_space.rs` | the elements a node or a group goes through |
//! | `rows.rs`, `reductions.rs` | the operators: pointwise ones, computed by the operator table, and reducing ones |
//! | `expression.rs` | kernel expressions, from the table's |
//! | `emit.rs` | kernel expressions, written into a kernel IR |
//! | `node_compute.rs` | a graph node as kernel expressions over its operands |
//! | `foreach.rs` | operators over lists, taken apart |
//! | `partition.rs` | groups of nodes that may run as one: pure graph code |
//! | `group.rs`, `gpu_kernel.rs` | a group as a kernel, and that as a GPU runs it |
//! | `concat.rs` | results written to where they will be joined with others |
//! | `waits.rs` | waits for other processes, put off |
//! | `liveness.rs` | last uses |

mod concat;
mod emit;
mod expression;
mod foreach;
mod gpu_kernel;
mod group;
mod iteration_space;
pub(crate) mod liveness;
mod node_compute;
mod partition;
mod reductions;
mod rows;
mod waits;

use std::borrow::Cow;

pub(crate) use gpu_kernel::GpuKernel;
pub(crate) use group::{ConcatSlice, FusedKernelStep, KernelPlan, Slice};
use ltc_ir::{DType, Graph, Layout, Op, ValueId, symbolic};
use ltc_kernels::FusedKernel;
pub use rows::fusable_operators;
use smallvec::SmallVec;

use crate::config::Fusion;
use iteration_space::IterationSpace;
use node_compute::NodeCompute;
use partition::FusionGroup;
use reductions::Alone;

/// A single operator of more elements whose elements do not lie one after the other is left to libtorch, which has
/// blocked copies for it.
const SMALL: i64 = 4096;

/// With fewer rows than `FEW_ROWS` and more elements than `MANY_ELEMENTS`, a kernel that goes through each row twice
/// has too few rows to keep all threads busy.
const FEW_ROWS: usize = 8;
const MANY_ELEMENTS: usize = 1 << 16;

/// A kernel of more than `FEW_ELEMENTS` elements, in strips ([`IterationSpace::strip`]) shorter than `LONG_STRIP`,
/// reads at most `MOST_STREAMS` operands, since processors prefetch no more. Measured by `cargo run --release -p
/// ltc-torch --example kernels -- strips`.
const FEW_ELEMENTS: usize = 1 << 14;
const LONG_STRIP: usize = 512;
const MOST_STREAMS: usize = 2;

/// Per node its kernel expressions, if kernels can compute it. An empty table means that they are made on demand.
#[derive(Debug)]
pub(crate) struct NodeComputes(Vec<Option<NodeCompute>>);

impl NodeComputes {
    fn of(&self, graph: &Graph, node: u32) -> Option<Cow<'_, NodeCompute>> {
        match self.0.get(node as usize) {
            Some(known) => known.as_ref().map(Cow::Borrowed),
            None => NodeCompute::of(graph, &graph.nodes()[node as usize]).map(Cow::Owned),
        }
    }

    /// How a node's operand lies in a group's iteration space.
    fn operand_strides(
        &self,
        graph: &Graph,
        node: u32,
        space: &IterationSpace,
        layout: &Layout,
    ) -> Option<SmallVec<[i64; 6]>> {
        match space.reduced {
            None => space.broadcast(layout.sizes(), layout.strides()),
            Some(_) => self.of(graph, node)?.operand_strides(space, layout),
        }
    }

    /// How a node's result lies in a group's iteration space.
    fn result_strides(
        &self,
        graph: &Graph,
        node: u32,
        space: &IterationSpace,
        layout: &Layout,
    ) -> Option<SmallVec<[i64; 6]>> {
        match space.reduced {
            None => space.broadcast(layout.sizes(), layout.strides()),
            Some(_) => self.of(graph, node)?.result_strides(space, layout),
        }
    }

    /// Whether a node is worth a kernel with nothing else in it.
    fn is_worth_a_kernel(&self, graph: &Graph, node: u32) -> bool {
        self.of(graph, node).is_some_and(|compute| match compute.alone {
            Alone::Always => true,
            Alone::Small => compute.space.elements() as i64 <= SMALL,
            Alone::Never => false,
        })
    }

    /// Whether these nodes can be one group of an iteration space that reduces: values must lie where those who read
    /// them look, and if elements follow from what was reduced, there must be rows for several threads, or little to
    /// do.
    fn agree(&self, graph: &Graph, space: &IterationSpace, nodes: &[u32]) -> bool {
        if self.is_scattered(graph, space, nodes) {
            return false;
        }
        let rows = space.elements() / space.each().max(1);
        let one_pass = rows < FEW_ROWS && space.elements() > MANY_ELEMENTS;
        let fits = |&n: &u32| -> Option<bool> {
            let (node, reader) = (&graph.nodes()[n as usize], self.of(graph, n)?);
            let mut all = !(one_pass && reader.is_deep(node));
            for &operand in &node.operands {
                let Some(producer) = graph.definition_index(operand).map(|d| d as u32) else { continue };
                if nodes.binary_search(&producer).is_err() {
                    continue;
                }
                // The same elements, whatever the strides in memory.
                let dense = Layout::contiguous(DType::U8, graph.layout(operand).sizes());
                let read = reader.operand_strides(space, &dense)?;
                all &= read == self.of(graph, producer)?.result_strides(space, &dense)?;
                let of_rows =
                    space.reduced.as_ref().is_some_and(|f| read.iter().zip(&f.dims).all(|(s, f)| !f || *s == 0));
                let elements = node.results()[0].sizes() == &space.sizes[..];
                all &= !(one_pass && of_rows && elements && space.each() > 1);
            }
            Some(all)
        };
        nodes.iter().all(|n| fits(n).unwrap_or(false))
    }

    /// Whether a kernel would read more operands at a time than a processor prefetches: a kernel of short strips jumps
    /// from strip to strip in each of its operands.
    fn is_scattered(&self, graph: &Graph, space: &IterationSpace, nodes: &[u32]) -> bool {
        if space.elements() <= FEW_ELEMENTS || space.strip().is_none_or(|strip| strip >= LONG_STRIP) {
            return false;
        }
        let operands = nodes.iter().flat_map(|&n| &graph.nodes()[n as usize].operands);
        let from_outside = |o: &ValueId| {
            let inside = |d| nodes.binary_search(&(d as u32)).is_ok();
            !graph.definition_index(*o).is_some_and(inside) && graph.layout(*o).numel() as usize == space.elements()
        };
        let mut streams: SmallVec<[ValueId; 8]> = operands.copied().filter(from_outside).collect();
        streams.sort_unstable();
        streams.dedup();
        streams.len() > MOST_STREAMS
    }
}

/// One step to be.
#[derive(Debug)]
pub(crate) enum PlanItem {
    /// A call of this node.
    Node(u32),
    /// A kernel.
    Fused(Box<KernelPlan>),
    /// Memory for the result of this node, which joins its operands.
    Alloc(u32),
    /// A copy of one of a node's operands to its slice of what the node joins.
    CopySlice {
        /// The node.
        node: u32,
        /// What is joined so far, then the operand.
        operands: [ValueId; 2],
        /// Where it goes.
        slice: Slice,
    },
}

impl PlanItem {
    pub(crate) fn operands<'a>(&'a self, graph: &'a Graph) -> &'a [ValueId] {
        match self {
            PlanItem::Node(n) => &graph.nodes()[*n as usize].operands,
            PlanItem::Fused(kernel) => &kernel.operands,
            PlanItem::Alloc(_) => &[],
            PlanItem::CopySlice { operands, .. } => operands,
        }
    }

    pub(crate) fn results(&self, graph: &Graph) -> SmallVec<[ValueId; 2]> {
        match self {
            PlanItem::Node(n) | PlanItem::Alloc(n) | PlanItem::CopySlice { node: n, .. } => {
                graph.nodes()[*n as usize].result_ids().collect()
            }
            PlanItem::Fused(kernel) => kernel.stored(),
        }
    }
}

/// The steps of a graph, in order of execution.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph the steps speak of, if it is not the one given: one in which operators over lists are taken apart.
    pub(crate) graph: Option<Graph>,
    /// Per node of that graph the node it comes from.
    pub(crate) provenance: Vec<u32>,
    pub(crate) items: Vec<PlanItem>,
    pub(crate) computes: NodeComputes,
}

impl Plan {
    /// Has kernels write to where their results will be joined with others.
    pub(crate) fn join_in_place(&mut self, source: &Graph) {
        let graph = self.graph.as_ref().unwrap_or(source);
        concat::join_in_place(graph, &mut self.items);
    }

    /// Has steps run while other processes are waited for. Returns how many waits that moved.
    pub(crate) fn put_off_waits(&mut self, source: &Graph) -> usize {
        waits::put_off(self.graph.as_ref().unwrap_or(source), &mut self.items)
    }

    /// Every node on its own.
    fn unfused(graph: &Graph) -> Plan {
        let items = (0..graph.nodes().len() as u32).map(PlanItem::Node).collect();
        Plan { graph: None, provenance: Vec::new(), items, computes: NodeComputes(Vec::new()) }
    }
}

/// Finds what can be fused, and leaves out views that only kernels read: they read through them.
pub(crate) fn plan(source: &Graph, fusion: Fusion) -> Plan {
    if fusion == Fusion::Off {
        return Plan::unfused(source);
    }
    let allowed = |p: &NodeCompute| fusion == Fusion::Full || p.is_exact();
    let (expanded, provenance) = foreach::take_apart(source, allowed).unzip();
    let (graph, provenance) = (expanded.as_ref().unwrap_or(source), provenance.unwrap_or_default());
    let computes: Vec<_> = graph.nodes().iter().map(|node| NodeCompute::of(graph, node).filter(allowed)).collect();
    if computes.iter().all(Option::is_none) {
        return Plan::unfused(source);
    }
    let computes = NodeComputes(computes);
    let mut items = items(graph, &computes, |node| foreach::is_part(graph, source, &provenance, node));
    let mut needed = needed(graph, &items).into_iter();
    items.retain(|_| needed.next().unwrap_or(true));
    Plan { graph: expanded, provenance, items, computes }
}

/// The graphs of a program for other sizes.
pub(crate) struct Template<'a> {
    /// Its graph as rewritten.
    pub(crate) rewritten: &'a Graph,
    /// Its graph as it runs.
    pub(crate) lowered: &'a Graph,
    /// Per node of the graph that runs the node of the rewritten one it comes from.
    pub(crate) provenance: &'a [u32],
}

/// The steps of a graph that differs from the graph of `template` in sizes only. `groups` are the steps of the
/// template: the first node, and the kernel if the step is one. A group whose nodes no longer have equal sizes falls
/// apart. `None` if that is impossible, or if a kernel is not worth it at these sizes: libtorch cannot take its place,
/// because views that only the kernel read through were left out.
pub(crate) fn plan_from_template<'a>(
    source: &Graph,
    template: &Template<'_>,
    groups: impl Iterator<Item = (u32, Option<&'a FusedKernelStep>)>,
) -> Option<Plan> {
    let (expanded, provenance) =
        foreach::take_apart_as_in(source, template.rewritten, template.lowered, template.provenance).unzip();
    let graph = expanded.as_ref().unwrap_or(source);
    if !symbolic::has_same_skeleton(graph, template.lowered) {
        return None;
    }
    let mut items = Vec::with_capacity(groups.size_hint().0);
    for (node, fused) in groups {
        match fused {
            None => items.push(PlanItem::Node(node)),
            Some(fused) => {
                items.extend(kernels_from_template(graph, fused)?.into_iter().map(|d| PlanItem::Fused(Box::new(d))))
            }
        }
    }
    Some(Plan {
        graph: expanded,
        provenance: provenance.unwrap_or_default(),
        items,
        computes: NodeComputes(Vec::new()),
    })
}

/// The kernels of a template's group at other sizes: one, or several where sizes that were equal are so no longer.
fn kernels_from_template(graph: &Graph, fused: &FusedKernelStep) -> Option<SmallVec<[KernelPlan; 1]>> {
    let layout = |n: u32| &graph.nodes()[n as usize].results()[0];
    if fused.nodes.iter().any(|&n| !layout(n).is_dense()) {
        return None;
    }
    // A node that feeds another node of a pointwise group has the same sizes as that node. So the groups that one group
    // falls apart into do not read each other's results and may run in any order. A kernel that still needs a value
    // which is not among the template's operands is refused, because no step may have made that value readable.
    let computes = NodeComputes(Vec::new());
    let kernel = |group: &FusionGroup| {
        let kernel = KernelPlan::new(graph, &computes, group, |v| fused.results.contains(&v))?;
        kernel.operands.iter().all(|o| fused.operands.contains(o)).then_some(kernel)
    };
    if let FusedKernel::Rows(_) = fused.kernel {
        if let [alone] = fused.nodes[..]
            && !computes.is_worth_a_kernel(graph, alone)
        {
            return None;
        }
        return kernel(&reducing_group(graph, &computes, &fused.nodes)?).map(|d| SmallVec::from_iter([d]));
    }
    let mut groups: SmallVec<[FusionGroup; 1]> = SmallVec::new();
    for &n in &fused.nodes {
        let space = Some(IterationSpace::pointwise(layout(n).sizes()));
        match groups.iter_mut().find(|group| group.space == space) {
            Some(group) => group.nodes.push(n),
            None => groups.push(FusionGroup { nodes: vec![n], space }),
        }
    }
    groups.iter().map(kernel).collect()
}

/// These nodes as a group that reduces, if they can be one.
fn reducing_group(graph: &Graph, computes: &NodeComputes, nodes: &[u32]) -> Option<FusionGroup> {
    let spaces: Vec<IterationSpace> =
        nodes.iter().map(|&n| computes.of(graph, n).map(|r| r.space.clone())).collect::<Option<_>>()?;
    let reducing = spaces.iter().find(|d| d.reduced.is_some())?.clone();
    let space = spaces.iter().try_fold(reducing, |all, d| all.with(d))?;
    computes.agree(graph, &space, nodes).then(|| FusionGroup { nodes: nodes.to_vec(), space: Some(space) })
}

/// Groups as kernels, the rest as calls; `must` says which nodes have no call.
fn items(graph: &Graph, computes: &NodeComputes, must: impl Fn(usize) -> bool) -> Vec<PlanItem> {
    let alone = |(n, compute): (usize, &Option<NodeCompute>)| {
        let space = compute.as_ref().map(|r| r.space.clone());
        // A node that reduces may not suit a kernel even on its own.
        space.filter(|d| d.reduced.is_none() || computes.agree(graph, d, &[n as u32]))
    };
    let spaces: Vec<_> = computes.0.iter().enumerate().map(alone).collect();
    let groups = partition::partition(graph, spaces, &|space, nodes| computes.agree(graph, space, nodes));
    let mut group_of = vec![0u32; graph.nodes().len()];
    for (u, group) in groups.iter().enumerate() {
        group.nodes.iter().for_each(|&n| group_of[n as usize] = u as u32);
    }
    // A value is kept if an output shows it or another group reads it.
    let mut kept = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|&o| kept[graph.slot(o)] = true);
    for (index, node) in graph.nodes().iter().enumerate() {
        for &operand in &node.operands {
            let here = graph.definition_index(operand).is_some_and(|d| group_of[d] == group_of[index]);
            kept[graph.slot(operand)] |= !here;
        }
    }
    let mut items: Vec<PlanItem> = Vec::with_capacity(groups.len());
    for group in groups {
        let first = group.nodes[0];
        let lonely = group.nodes.len() == 1 && !computes.is_worth_a_kernel(graph, first);
        let kernel = if lonely { None } else { KernelPlan::new(graph, computes, &group, |v| kept[graph.slot(v)]) };
        let elements = graph.nodes()[first as usize].results().first().map_or(0, |l| l.numel());
        let small = elements <= SMALL || group.nodes.len() > 1 || must(first as usize);
        match kernel {
            Some(kernel) if small || kernel.is_flat(graph) => items.push(PlanItem::Fused(Box::new(kernel))),
            _ => items.extend(group.nodes.into_iter().map(PlanItem::Node)),
        }
    }
    items
}

/// Per step whether it is needed: a view that nobody reads is not. The walk goes backwards, because a view that is left
/// out may leave the view that it reads unread, too.
fn needed(graph: &Graph, items: &[PlanItem]) -> Vec<bool> {
    let mut read = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|&o| read[graph.slot(o)] = true);
    let mut needed = vec![true; items.len()];
    for (i, item) in items.iter().enumerate().rev() {
        if let PlanItem::Node(n) = item
            && let node = &graph.nodes()[*n as usize]
            && node.op() == Op::read_view()
        {
            needed[i] = node.result_ids().any(|r| read[graph.slot(r)]);
        }
        if needed[i] {
            item.operands(graph).iter().for_each(|&o| read[graph.slot(o)] = true);
        }
    }
    needed
}
