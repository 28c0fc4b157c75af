//! Respecialisation: makes a program for other sizes from an existing program.

use std::sync::Arc;

use ltc_backend::BackendError;
use ltc_ir::Graph;
use rustc_hash::FxHashMap;

use super::{Instr, InstrKind, MemoryPlan, Program, lower::RewrittenGraph, memory_budget as budget};
use crate::{
    fusion::{self, Template},
    target::Target,
};

impl Program {
    /// Lowers a graph that differs from this program's graph only in sizes into the same steps. Prepared calls and
    /// kernel code are reused where they do not depend on sizes. `None` if the steps are not valid at these sizes.
    pub(crate) fn respecialised(&self, graph: &Arc<Graph>, target: &Target) -> Option<Result<Program, BackendError>> {
        // A value that several steps write piece by piece (`cat`, `stack`) is one node of the graph. The new plan needs
        // that node once, at the place of the last step that writes to the value's slot: all pieces exist by then.
        let slot_of = |s: &Instr| self.instr_results(s).last().map(|r| r.slot);
        let joins: FxHashMap<Option<u32>, u32> = self
            .instrs
            .iter()
            .filter(|s| matches!(s.kind, InstrKind::Alloc(_)))
            .map(|s| (slot_of(s), s.node))
            .collect();
        let mut last: FxHashMap<u32, usize> = FxHashMap::default();
        for (i, instr) in self.instrs.iter().enumerate() {
            let results = self.instr_results(instr).iter().filter_map(|r| joins.get(&Some(r.slot)));
            results.for_each(|&node| _ = last.insert(node, i));
        }
        let items = self.instrs.iter().enumerate().flat_map(|(i, s)| {
            let call = match &s.kind {
                InstrKind::Materialize(_) | InstrKind::Alloc(_) | InstrKind::CopySlice(_) => None,
                InstrKind::Fused(fused) => Some((s.node, Some(&**fused))),
                _ => Some((s.node, None)),
            };
            let joined = last.iter().filter(move |(_, at)| **at == i).map(|(&node, _)| (node, None));
            call.into_iter().chain(joined)
        });
        let template = Template { rewritten: &self.rewritten, lowered: &self.lowered, provenance: &self.lowered_from };
        let rewritten = RewrittenGraph::of(graph, target);
        let mut fusion_plan = fusion::plan_from_template(&rewritten.graph, &template, items)?;
        let lowered = fusion_plan.graph.as_ref().unwrap_or(&rewritten.graph);
        let memory = self.memory.map(|m| MemoryPlan { peak: budget::peak(lowered, &fusion_plan.items), ..m });
        // In the order of the old steps the program exceeds the memory budget; a fresh plan may find an order that
        // fits.
        if memory.is_some_and(|m| m.peak > m.budget) {
            return None;
        }
        if !joins.is_empty() {
            fusion_plan.join_in_place(&rewritten.graph);
        }
        Some(Program::lower_plan(graph, target, rewritten, fusion_plan, memory, Some(self)))
    }
}
