//! Groups of nodes that may run as one.
//!
//! Pure: a graph and the iteration spaces of the nodes that can be fused go in, groups in an order of execution come
//! out. At first every node is a group at its own place. Two groups of one iteration space are joined when one feeds
//! the other, or both read the same value, and one of them can be moved to the place of the other: the later one up, if
//! all it reads is there by then, or the earlier one down, if nobody needs it sooner. So the places are an order of
//! execution at any time.

use ltc_ir::{Graph, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::iteration_space::IterationSpace;

/// Most nodes in a group.
const MAX_NODES: usize = 1024;
/// The same of a group that reduces.
const MAX_REDUCING: usize = 48;
/// Most consumers looked at to see whether a group can be moved down; one with more stays.
const MAX_CONSUMERS: usize = 4096;
/// Groups of at most this many elements are joined even if all they share is their sizes: what counts is their number.
const SMALL: i64 = 4096;

/// Nodes that run as one step, in graph order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FusionGroup {
    pub(super) nodes: Vec<u32>,
    /// What it goes through, if it can be a kernel.
    pub(super) space: Option<IterationSpace>,
}

/// Cuts a graph into groups. `spaces` has the nodes that may share one, `agrees` says whether these nodes, in order,
/// may be one group of an iteration space that reduces.
pub(super) fn partition(
    graph: &Graph,
    spaces: Vec<Option<IterationSpace>>,
    agrees: &dyn Fn(&IterationSpace, &[u32]) -> bool,
) -> Vec<FusionGroup> {
    let mut p = Partition {
        graph,
        group_of: (0..graph.nodes().len() as u32).collect(),
        members: (0..graph.nodes().len() as u32).map(|n| vec![n]).collect(),
        place: (0..graph.nodes().len() as u32).collect(),
        consumers: Consumers::new(graph),
        spaces,
        agrees,
    };
    // Who last read a value, and which group of some sizes came last.
    let mut readers: FxHashMap<ValueId, u32> = FxHashMap::default();
    let mut last_of_size: FxHashMap<&[i64], u32> = FxHashMap::default();
    for index in 0..graph.nodes().len() as u32 {
        let Some(reduces) = p.spaces[index as usize].as_ref().map(|d| d.reduced.is_some()) else { continue };
        let node = &graph.nodes()[index as usize];
        let sizes = node.results()[0].sizes();
        let producers = node.operands.iter().filter_map(|&o| graph.definition_index(o)).map(|i| i as u32);
        let siblings = node.operands.iter().filter_map(|o| readers.get(o).copied());
        let mut others: SmallVec<[u32; 8]> = producers.chain(siblings).collect();
        if !reduces && node.results()[0].numel() <= SMALL {
            others.extend(last_of_size.get(sizes).copied());
        }
        for other in others {
            p.join(other, index);
        }
        for &operand in &node.operands {
            readers.insert(operand, index);
        }
        if !reduces {
            last_of_size.insert(sizes, index);
        }
    }
    p.in_order()
}

/// Per node those that read one of its results.
struct Consumers {
    first: Vec<u32>,
    nodes: Vec<u32>,
}

impl Consumers {
    fn new(graph: &Graph) -> Self {
        let edges = || {
            let producers = |(i, node): (usize, &'_ ltc_ir::GraphNode)| {
                let found = node.operands.iter().filter_map(|&o| graph.definition_index(o));
                found.map(move |producer| (producer, i as u32)).collect::<SmallVec<[_; 4]>>()
            };
            graph.nodes().iter().enumerate().flat_map(producers)
        };
        let mut first = vec![0u32; graph.nodes().len() + 1];
        edges().for_each(|(producer, _)| first[producer + 1] += 1);
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut next = first.clone();
        let mut nodes = vec![0; first[first.len() - 1] as usize];
        for (producer, consumer) in edges() {
            nodes[next[producer] as usize] = consumer;
            next[producer] += 1;
        }
        Consumers { first, nodes }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.nodes[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

struct Partition<'a> {
    graph: &'a Graph,
    /// Per node its group.
    group_of: Vec<u32>,
    /// Per group its nodes, in order; empty once joined to another.
    members: Vec<Vec<u32>>,
    /// Per group when it runs.
    place: Vec<u32>,
    consumers: Consumers,
    /// Per group what it goes through.
    spaces: Vec<Option<IterationSpace>>,
    agrees: &'a dyn Fn(&IterationSpace, &[u32]) -> bool,
}

impl Partition<'_> {
    /// Makes the groups of two nodes one, if that is allowed.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.group_of[a as usize], self.group_of[b as usize]);
        let size = self.members[a as usize].len() + self.members[b as usize].len();
        if a == b || size > MAX_NODES {
            return;
        }
        let (Some(mine), Some(other)) = (&self.spaces[a as usize], &self.spaces[b as usize]) else { return };
        let Some(space) = mine.with(other) else { return };
        if space.reduced.is_some() {
            let mut nodes = [&self.members[a as usize][..], &self.members[b as usize]].concat();
            nodes.sort_unstable();
            if size > MAX_REDUCING || !(self.agrees)(&space, &nodes) {
                return;
            }
        }
        let (early, late) = if self.place[a as usize] < self.place[b as usize] { (a, b) } else { (b, a) };
        let place = match () {
            () if self.can_move_up(late, early) => self.place[early as usize],
            () if self.can_move_down(early, late) => self.place[late as usize],
            () => return,
        };
        let (large, small) =
            if self.members[a as usize].len() >= self.members[b as usize].len() { (a, b) } else { (b, a) };
        let moved = std::mem::take(&mut self.members[small as usize]);
        moved.iter().for_each(|&n| self.group_of[n as usize] = large);
        let members = &mut self.members[large as usize];
        let sorted = members.last() < moved.first();
        members.extend(moved);
        if !sorted {
            members.sort_unstable();
        }
        self.place[large as usize] = place;
        self.spaces[large as usize] = Some(space);
    }

    /// Whether all that a group reads is made by then.
    fn can_move_up(&self, group: u32, to: u32) -> bool {
        let operands = self.members[group as usize].iter().flat_map(|&n| &self.graph.nodes()[n as usize].operands);
        operands.filter_map(|&o| self.graph.definition_index(o)).map(|d| self.group_of[d]).all(|producer| {
            producer == group || producer == to || self.place[producer as usize] < self.place[to as usize]
        })
    }

    /// Whether nobody reads what a group makes before then.
    fn can_move_down(&self, group: u32, to: u32) -> bool {
        let consumers = self.members[group as usize].iter().flat_map(|&n| self.consumers.of(n));
        consumers.enumerate().all(|(i, &n)| {
            let consumer = self.group_of[n as usize];
            let late = consumer == group || consumer == to || self.place[consumer as usize] > self.place[to as usize];
            late && i < MAX_CONSUMERS
        })
    }

    /// The groups by place.
    fn in_order(self) -> Vec<FusionGroup> {
        let mut groups: Vec<u32> =
            (0..self.members.len() as u32).filter(|&g| !self.members[g as usize].is_empty()).collect();
        groups.sort_unstable_by_key(|&g| self.place[g as usize]);
        let (mut members, mut spaces) = (self.members, self.spaces);
        let group =
            |g: u32| FusionGroup { nodes: std::mem::take(&mut members[g as usize]), space: spaces[g as usize].take() };
        groups.into_iter().map(group).collect()
    }
}

#[cfg(test)]
mod tests {
    use ltc_ir::{ArgWriter, DType, GraphBuilder, Layout, LayoutRef, Op, Props, SiteId};
    use proptest::prelude::*;

    use super::*;

    fn layout(n: i64) -> LayoutRef {
        Layout::contiguous(DType::F32, &[n]).into()
    }

    fn node(b: &mut GraphBuilder, n: i64, operands: &[ValueId]) -> ValueId {
        let mut args = ArgWriter::new();
        for _ in operands {
            args.tensor();
        }
        let (words, _) = args.finish();
        b.node(
            Op::intern("test::f", Props::NONE),
            words,
            operands,
            0,
            [layout(n)].into_iter().collect(),
            SiteId::default(),
        )
    }

    fn groups(graph: &Graph, fusable: &[bool]) -> Vec<Vec<u32>> {
        let space = |(node, fusable): (&ltc_ir::GraphNode, &bool)| {
            fusable.then(|| IterationSpace::pointwise(node.results()[0].sizes()))
        };
        let spaces = graph.nodes().iter().zip(fusable).map(space).collect();
        partition(graph, spaces, &|_, _| true).into_iter().map(|u| u.nodes).collect()
    }

    #[test]
    fn a_chain_is_one_unit() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let y = node(&mut b, 8, &[x]);
        let z = node(&mut b, 8, &[y, x]);
        assert_eq!(groups(&b.finish(vec![z]), &[true; 3]), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_path_through_an_outsider_keeps_groups_apart() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let outside = node(&mut b, 8, &[x]);
        let y = node(&mut b, 8, &[x, outside]);
        assert_eq!(groups(&b.finish(vec![y]), &[true, false, true]), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn groups_held_from_both_sides_stay_apart() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let reads_x = node(&mut b, 8, &[x]);
        let feeds_y = node(&mut b, 8, &[p]);
        let y = node(&mut b, 8, &[x, feeds_y]);
        let g = b.finish(vec![y, reads_x]);
        // Neither can be moved: one is read before, the other reads something made between.
        assert_eq!(groups(&g, &[true, false, false, true]), [vec![0], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn a_group_moves_up_or_down() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let outside = node(&mut b, 8, &[x]);
        let y = node(&mut b, 8, &[x, p]);
        let graph = b.finish(vec![outside, y]);
        assert_eq!(groups(&graph, &[true, false, true]), [vec![0, 2], vec![1]]);
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let outside = node(&mut b, 8, &[p]);
        let y = node(&mut b, 8, &[x, outside]);
        assert_eq!(groups(&b.finish(vec![y]), &[true, false, true]), [vec![1], vec![0, 2]]);
    }

    #[test]
    fn other_sizes_stay_apart() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout(8));
        let x = node(&mut b, 8, &[p]);
        let y = node(&mut b, 1, &[x]);
        assert_eq!(groups(&b.finish(vec![y]), &[true; 2]), [vec![0], vec![1]]);
    }

    proptest! {
        /// Any graph: every node once, and every group after those that feed it.
        #[test]
        fn units_are_an_order_of_execution(
            shape in prop::collection::vec((any::<bool>(), 0..2i64, prop::collection::vec(0usize..40, 1..4)), 1..40),
        ) {
            let mut b = GraphBuilder::new();
            let mut values = vec![b.param(layout(8))];
            for (_, size, operands) in &shape {
                let operands: Vec<ValueId> = operands.iter().map(|o| values[o % values.len()]).collect();
                values.push(node(&mut b, 8 + size, &operands));
            }
            let graph = b.finish(vec![*values.last().expect("not empty")]);
            let fusable: Vec<bool> = shape.iter().map(|s| s.0).collect();
            let groups = groups(&graph, &fusable);
            let mut done = vec![false; graph.nodes().len()];
            for group in &groups {
                for &n in group {
                    prop_assert!(group.len() == 1 || fusable[n as usize]);
                    let operands = graph.nodes()[n as usize].operands.iter();
                    for producer in operands.filter_map(|&o| graph.definition_index(o)) {
                        prop_assert!(done[producer] || group.contains(&(producer as u32)));
                    }
                }
                group.iter().for_each(|&n| assert!(!std::mem::replace(&mut done[n as usize], true), "twice"));
            }
            prop_assert!(done.iter().all(|&d| d));
        }
    }
}
