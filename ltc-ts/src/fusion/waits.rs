//! Waits for other processes, put off.
//!
//! A collective begins where it was recorded, and an engine works on it (`ltc-torch-sys/csrc/collectives.cpp`). Its
//! [`Op::wait`] was recorded right behind it, but only steps that read the result have to come after the wait. So the
//! wait moves back, and steps that do not need the result, such as the rest of a backward pass, run meanwhile.

use ltc_ir::{Graph, Op};

use super::PlanItem;

/// Moves each wait to just before the first step that reads its result, or to the end. Returns how many waits now come
/// after steps that they used to precede.
pub(super) fn put_off(graph: &Graph, items: &mut Vec<PlanItem>) -> usize {
    let is_wait = |item: &PlanItem| matches!(item, PlanItem::Node(n) if graph.nodes()[*n as usize].op() == Op::wait());
    if !items.iter().any(is_wait) {
        return 0;
    }
    let mut order =
        Order { graph, missing: vec![false; graph.value_count()], waits: Vec::new(), items: Vec::new(), moved: 0 };
    for item in items.drain(..) {
        if is_wait(&item) {
            order.hold(item);
        } else {
            order.push(item);
        }
    }
    while !order.waits.is_empty() {
        order.release(0);
    }
    *items = order.items;
    order.moved
}

struct Order<'a> {
    graph: &'a Graph,
    /// Per slot whether a wait that is held back makes its value.
    missing: Vec<bool>,
    /// Waits that are held back, each with the number of steps that stood before it.
    waits: Vec<(PlanItem, usize)>,
    items: Vec<PlanItem>,
    moved: usize,
}

impl Order<'_> {
    fn hold(&mut self, wait: PlanItem) {
        wait.results(self.graph).iter().for_each(|&r| self.missing[self.graph.slot(r)] = true);
        self.waits.push((wait, self.items.len()));
    }

    /// The next step, after the waits whose results it reads.
    fn push(&mut self, item: PlanItem) {
        let graph = self.graph;
        for &operand in item.operands(graph) {
            if self.missing[graph.slot(operand)] {
                let makes = |(wait, _): &(PlanItem, usize)| wait.results(graph).contains(&operand);
                if let Some(wait) = self.waits.iter().position(makes) {
                    self.release(wait);
                }
            }
        }
        self.items.push(item);
    }

    fn release(&mut self, wait: usize) {
        let (wait, stood) = self.waits.remove(wait);
        wait.results(self.graph).iter().for_each(|&r| self.missing[self.graph.slot(r)] = false);
        self.moved += usize::from(stood < self.items.len());
        self.push(wait);
    }
}
