//! A program for other sizes, from one there is.

use std::sync::Arc;

use ltc_backend::BackendError;
use ltc_ir::Graph;
use rustc_hash::FxHashMap;

use super::{MemoryPlan, Program, Step, StepKind, lower::Better, memory_budget as budget};
use crate::{
    config::TsConfig,
    fusion::{self, Like},
};

impl Program {
    /// Lowers a graph that differs from this one's in sizes only, into the same steps: prepared calls and the code of
    /// kernels are taken over where sizes do not matter to them. `None` if the steps do not hold at these sizes.
    pub(crate) fn resized(&self, graph: &Arc<Graph>, config: &TsConfig) -> Option<Result<Program, BackendError>> {
        // What is made in pieces was one node, which stood where the last of them is.
        let slot_of = |s: &Step| self.step_results(s).last().map(|r| r.slot);
        let joins: FxHashMap<Option<u32>, u32> =
            self.steps.iter().filter(|s| matches!(s.kind, StepKind::Room(_))).map(|s| (slot_of(s), s.node)).collect();
        let mut last: FxHashMap<u32, usize> = FxHashMap::default();
        for (i, step) in self.steps.iter().enumerate() {
            let results = self.step_results(step).iter().filter_map(|r| joins.get(&Some(r.slot)));
            results.for_each(|&node| _ = last.insert(node, i));
        }
        let items = self.steps.iter().enumerate().flat_map(|(i, s)| {
            let call = match &s.kind {
                StepKind::Own(_) | StepKind::Room(_) | StepKind::Piece(_) => None,
                StepKind::Fused(fused) => Some((s.node, Some(&**fused))),
                _ => Some((s.node, None)),
            };
            let joined = last.iter().filter(move |(_, at)| **at == i).map(|(&node, _)| (node, None));
            call.into_iter().chain(joined)
        });
        let like = Like { rewritten: &self.rewritten, lowered: &self.lowered, apart: &self.apart };
        let better = Better::of(graph, config);
        let mut steps = fusion::plan_like(&better.graph, &like, items)?;
        let lowered = steps.graph.as_ref().unwrap_or(&better.graph);
        let memory = self.memory.map(|m| MemoryPlan { peak: budget::peak(lowered, &steps.items), ..m });
        // Another order may fit.
        if memory.is_some_and(|m| m.peak > m.budget) {
            return None;
        }
        if !joins.is_empty() {
            steps.join_in_place(&better.graph);
        }
        Some(Program::lower_plan(graph, config, better, steps, memory, Some(self)))
    }
}
