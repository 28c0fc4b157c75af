//! Fusion: which operators become one kernel, and what the kernel computes.
//!
//! | file | what |
//! |---|---|
//! | `foreach.rs` | operators over lists, taken apart |
//! | `rows.rs` | the pointwise operators, each with its formula |
//! | `formula.rs` | formulas: parsed once, written into a kernel's body |
//! | `pointwise.rs` | a graph node as a formula over its operands |
//! | `partition.rs` | groups of nodes that may run as one: pure graph code |
//! | `kernel.rs` | a group as a kernel |

mod foreach;
mod formula;
mod kernel;
mod partition;
mod pointwise;
mod rows;

pub(crate) use kernel::{Draft, Fused};
use std::borrow::Cow;

use ltc_ir::{Graph, Op, ValueId, symbolic};
pub use rows::fusable_operators;
use smallvec::SmallVec;

use crate::{backend::Fusion, lower::Program};
use pointwise::Pointwise;

/// Larger single operators are libtorch's, if their elements do not lie one after the other: it knows blocked copies.
const SMALL: i64 = 4096;

/// Per node its formula, where it has one; empty if formulas are asked for as they are needed.
#[derive(Debug)]
pub(crate) struct Points(Vec<Option<Pointwise>>);

impl Points {
    fn of(&self, graph: &Graph, node: u32) -> Option<Cow<'_, Pointwise>> {
        match self.0.get(node as usize) {
            Some(known) => known.as_ref().map(Cow::Borrowed),
            None => Pointwise::of(graph, &graph.nodes()[node as usize]).map(Cow::Owned),
        }
    }
}

/// One step to be.
#[derive(Debug)]
pub(crate) enum Step {
    /// A call of this node.
    Node(u32),
    /// A kernel.
    Fused(Draft),
}

impl Step {
    pub(crate) fn operands<'a>(&'a self, graph: &'a Graph) -> &'a [ValueId] {
        match self {
            Step::Node(n) => &graph.nodes()[*n as usize].operands,
            Step::Fused(draft) => &draft.operands,
        }
    }
}

/// The steps of a graph, in order of execution.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph the steps speak of, if it is not the one given: one in which operators over lists are taken apart.
    pub(crate) graph: Option<Graph>,
    /// Per node of that graph the node it comes from.
    pub(crate) origin: Vec<u32>,
    pub(crate) drafts: Vec<Step>,
    pub(crate) points: Points,
}

impl Plan {
    /// Every node on its own.
    fn unfused(graph: &Graph) -> Plan {
        let drafts = (0..graph.nodes().len() as u32).map(Step::Node).collect();
        Plan { graph: None, origin: Vec::new(), drafts, points: Points(Vec::new()) }
    }
}

/// Finds what can be fused, and leaves out views that only kernels read: they read through them.
pub(crate) fn plan(source: &Graph, fusion: Fusion) -> Plan {
    if fusion == Fusion::Off {
        return Plan::unfused(source);
    }
    let allowed = |p: &Pointwise| fusion == Fusion::Full || p.is_exact();
    let (apart, origin) = foreach::take_apart(source, allowed).unzip();
    let (graph, origin) = (apart.as_ref().unwrap_or(source), origin.unwrap_or_default());
    let points: Vec<_> = graph.nodes().iter().map(|node| Pointwise::of(graph, node).filter(allowed)).collect();
    let fusable: Vec<bool> = points.iter().map(Option::is_some).collect();
    if !fusable.contains(&true) {
        return Plan::unfused(source);
    }
    let mut drafts = drafts(graph, &fusable, |node| foreach::is_part(graph, source, &origin, node));
    let needed = needed(graph, &drafts);
    let mut needed = needed.into_iter();
    drafts.retain(|_| needed.next().unwrap_or(true));
    Plan { graph: apart, origin, drafts, points: Points(points) }
}

/// The steps of a graph that differs from `like` in sizes only: groups are those of the steps of `like`, given by their
/// first node and their kernel. A group of equal sizes that are equal no more falls apart. `None` if that cannot be.
pub(crate) fn plan_like<'a>(
    source: &Graph,
    like: &Program,
    steps: impl Iterator<Item = (u32, Option<&'a Fused>)>,
) -> Option<Plan> {
    let (apart, origin) = foreach::take_apart_like(source, &like.graph, &like.lowered, &like.origin).unzip();
    let graph = apart.as_ref().unwrap_or(source);
    if !symbolic::has_same_skeleton(graph, &like.lowered) {
        return None;
    }
    let mut drafts = Vec::with_capacity(like.steps.len());
    for (node, fused) in steps {
        match fused {
            None => drafts.push(Step::Node(node)),
            Some(fused) => drafts.extend(drafts_like(graph, fused)?.into_iter().map(Step::Fused)),
        }
    }
    Some(Plan { graph: apart, origin: origin.unwrap_or_default(), drafts, points: Points(Vec::new()) })
}

/// A group at other sizes.
fn drafts_like(graph: &Graph, fused: &Fused) -> Option<SmallVec<[Draft; 1]>> {
    let layout = |n: u32| &graph.nodes()[n as usize].results()[0];
    let mut groups: SmallVec<[(&[i64], Vec<u32>); 1]> = SmallVec::new();
    for &n in &fused.nodes {
        if !layout(n).is_dense() {
            return None;
        }
        let sizes = layout(n).sizes();
        match groups.iter_mut().find(|g| g.0 == sizes) {
            Some(group) => group.1.push(n),
            None => groups.push((sizes, vec![n])),
        }
    }
    // What feeds another has its sizes, so groups that come of one do not depend on each other, and values they read
    // through views were made readable before.
    let draft = |(_, nodes): &(&[i64], Vec<u32>)| {
        let draft = Draft::new(graph, nodes, |v| fused.results.contains(&v))?;
        draft.operands.iter().all(|o| fused.operands.contains(o)).then_some(draft)
    };
    groups.iter().map(draft).collect()
}

/// Groups as kernels, the rest as calls; `must` says which nodes have no call.
fn drafts(graph: &Graph, fusable: &[bool], must: impl Fn(usize) -> bool) -> Vec<Step> {
    let units = partition::partition(graph, fusable);
    let mut unit_of = vec![0u32; graph.nodes().len()];
    for (u, unit) in units.iter().enumerate() {
        unit.nodes.iter().for_each(|&n| unit_of[n as usize] = u as u32);
    }
    // A value is kept if an output shows it or another unit reads it.
    let mut kept = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|&o| kept[graph.slot(o)] = true);
    for (index, node) in graph.nodes().iter().enumerate() {
        for &operand in &node.operands {
            let here = graph.definition_index(operand).is_some_and(|d| unit_of[d] == unit_of[index]);
            kept[graph.slot(operand)] |= !here;
        }
    }
    let mut drafts: Vec<Step> = Vec::with_capacity(units.len());
    for unit in units {
        let first = unit.nodes[0];
        let draft = fusable[first as usize].then(|| Draft::new(graph, &unit.nodes, |v| kept[graph.slot(v)])).flatten();
        let elements = graph.nodes()[first as usize].results().first().map_or(0, |l| l.numel());
        let small = elements <= SMALL || unit.nodes.len() > 1 || must(first as usize);
        match draft {
            Some(draft) if small || draft.is_flat(graph) => drafts.push(Step::Fused(draft)),
            _ => drafts.extend(unit.nodes.into_iter().map(Step::Node)),
        }
    }
    drafts
}

/// Per step whether it is needed: a view nobody reads is not. Backwards, as it may leave its own operand unread.
fn needed(graph: &Graph, drafts: &[Step]) -> Vec<bool> {
    let mut read = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|&o| read[graph.slot(o)] = true);
    let mut needed = vec![true; drafts.len()];
    for (i, step) in drafts.iter().enumerate().rev() {
        if let Step::Node(n) = step
            && let node = &graph.nodes()[*n as usize]
            && node.op() == Op::read_view()
        {
            needed[i] = node.result_ids().any(|r| read[graph.slot(r)]);
        }
        if needed[i] {
            step.operands(graph).iter().for_each(|&o| read[graph.slot(o)] = true);
        }
    }
    needed
}
