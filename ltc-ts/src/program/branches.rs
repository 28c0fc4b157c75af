//! Parts of a program that do not depend on each other, for two threads.
//!
//! Where libtorch's kernels use one thread each, a second one is idle. A [`ParallelRegion`] is a run of steps that
//! falls into two sides, neither of which needs what the other makes. Pure: a program in, parallel regions out.
//! Programs with a kernel that uses several threads are left alone, as its threads would be in the way; whether a
//! parallel region pays is measured ([`crate::exec`]).

use std::ops::Range;

use ltc_ir::{DType, LayoutRef, OpClass};
use rustc_hash::FxHashMap;

use super::{Instr, InstrKind, ParallelRegion, Program, cost};

/// Estimated nanoseconds one side must take off the other: handing over takes some ten thousand (measured:
/// `docs/performance.md`).
const GAIN: u64 = 60_000;
/// Steps of a parallel region at most, which bounds the time to find one.
const STEPS: usize = 512;

/// The parallel regions of a program, in order.
pub(crate) fn plan(program: &Program) -> Vec<ParallelRegion> {
    let costs: Vec<cost::Of> = program.instrs.iter().map(|s| cost::instr(program, s)).collect();
    let total: u64 = costs.iter().map(|c| c.nanoseconds).sum();
    if total < 2 * GAIN
        || costs.iter().any(|c| c.multi_threaded)
        || program.instrs.iter().any(|s| reads_much(program, s))
    {
        return Vec::new();
    }
    let mut parallel_regions = Vec::new();
    let mut start = 0;
    while start + 1 < program.instrs.len() {
        let region = longest(program, &costs, start).and_then(|range| ParallelRegion::new(program, &costs, range));
        start = region.as_ref().map_or(start + 1, |f| f.instrs.end);
        parallel_regions.extend(region);
    }
    parallel_regions
}

/// Whether a step may use several threads because its operands are large. Products are judged by their results instead.
fn reads_much(program: &Program, instr: &Instr) -> bool {
    let node = &program.lowered.nodes()[instr.node as usize];
    let fused = matches!(instr.kind, InstrKind::Fused(_));
    let much = |slot: u32| program.slot_layout(slot).is_some_and(|l| l.numel() > cost::ELEMENTS);
    (fused || !matches!(node.op().spec().class, OpClass::View | OpClass::Matmul))
        && program.instr_operands(instr).iter().any(|o| much(o.slot))
}

/// Which steps depend on each other.
struct Parts {
    start: usize,
    parent: Vec<usize>,
    cost: Vec<u64>,
    /// Per slot the step that made it here.
    made: FxHashMap<u32, usize>,
    /// Per slot filled before who reads it.
    read: FxHashMap<u32, Vec<usize>>,
}

impl Parts {
    fn root(&mut self, instr: usize) -> usize {
        let mut at = instr - self.start;
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parent[b] = a;
            self.cost[a] += std::mem::take(&mut self.cost[b]);
        }
    }

    /// Adds the next step.
    fn add(&mut self, program: &Program, index: usize, nanoseconds: u64) {
        self.parent.push(index - self.start);
        self.cost.push(nanoseconds);
        let instr = &program.instrs[index];
        for operand in program.instr_operands(instr) {
            if let Some(&maker) = self.made.get(&operand.slot) {
                self.join(maker, index);
                continue;
            }
            let readers = self.read.entry(operand.slot).or_default();
            readers.push(index);
            // Who writes a value, or draws from a state, has it alone.
            if operand.reusable || is_state(program, operand.slot) {
                self.alone(operand.slot, index);
            }
        }
        for result in program.instr_results(instr) {
            self.alone(result.slot, index);
            self.made.insert(result.slot, index);
        }
    }

    fn alone(&mut self, slot: u32, instr: usize) {
        let others = self.read.get(&slot).cloned().unwrap_or_default();
        others.into_iter().chain(self.made.get(&slot).copied()).for_each(|other| self.join(other, instr));
    }

    /// The nanoseconds gained if the most expensive part runs beside all others; at best both sides take half.
    fn gain(&self) -> u64 {
        let (all, most) = (self.cost.iter().sum::<u64>(), self.cost.iter().max().copied().unwrap_or(0));
        (all - most).min(all / 2)
    }
}

fn parts(start: usize) -> Parts {
    Parts { start, parent: Vec::new(), cost: Vec::new(), made: FxHashMap::default(), read: FxHashMap::default() }
}

/// The steps from `start` on with the most to gain.
fn longest(program: &Program, costs: &[cost::Of], start: usize) -> Option<Range<usize>> {
    let mut found = parts(start);
    let mut best = (GAIN - 1, None);
    for (index, cost) in costs.iter().enumerate().skip(start).take(STEPS) {
        found.add(program, index, cost.nanoseconds);
        let gain = found.gain();
        if gain > best.0 {
            best = (gain, Some(start..index + 1));
        }
    }
    best.1
}

fn is_state(program: &Program, slot: u32) -> bool {
    program.slot_layout(slot).is_none_or(|l| l.dtype() == DType::RngState)
}

impl ParallelRegion {
    fn new(program: &Program, costs: &[cost::Of], instrs: Range<usize>) -> Option<ParallelRegion> {
        let mut found = parts(instrs.start);
        instrs.clone().for_each(|i| found.add(program, i, costs[i].nanoseconds));
        let roots: Vec<usize> = instrs.clone().map(|i| found.root(i)).collect();
        // The largest parts first, each to the side that has less to do.
        let mut order: Vec<usize> = (0..roots.len()).filter(|&r| found.parent[r] == r).collect();
        order.sort_by_key(|&r| std::cmp::Reverse((found.cost[r], std::cmp::Reverse(r))));
        let mut sides = [0u64; 2];
        let mut is_there = vec![false; roots.len()];
        for root in order {
            let there = sides[1] < sides[0];
            sides[usize::from(there)] += found.cost[root];
            is_there[root] = there;
        }
        let (worker, main): (Vec<usize>, Vec<usize>) = instrs.clone().partition(|&i| is_there[roots[i - instrs.start]]);
        let touched = |list: &[usize]| {
            let of = |&i: &usize| {
                let instr = &program.instrs[i];
                let results = program.instr_results(instr).iter().map(|r| r.slot);
                program.instr_operands(instr).iter().map(|o| o.slot).chain(results)
            };
            let mut slots: Vec<u32> = list.iter().flat_map(of).collect();
            slots.sort_unstable();
            slots.dedup();
            slots
        };
        let main_too = touched(&main);
        let (shared, moved): (Vec<u32>, Vec<u32>) =
            touched(&worker).into_iter().partition(|s| main_too.binary_search(s).is_ok());
        let last = |slot: &u32| {
            let reads = program.instrs[instrs.clone()].iter().flat_map(|s| program.instr_operands(s));
            reads.filter(|o| o.last).any(|o| o.slot == *slot)
        };
        let released = shared.iter().copied().filter(last).collect();
        let shared: Option<Vec<(u32, LayoutRef)>> =
            shared.into_iter().map(|s| program.slot_layout(s).map(|l| (s, l.clone()))).collect();
        Some(ParallelRegion { instrs, worker, main, moved, shared: shared?, released }).filter(|f| !f.worker.is_empty())
    }
}
