//! From a canonical graph to a linear program.

use std::fmt::Write;

use ltc_backend::BackendError;
use ltc_ir::{Graph, Op, ValueId};
use ltc_torch_sys::Plan;
use smallvec::SmallVec;

/// One operation of a program.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) plan: Plan,
    pub(crate) op: Op,
    /// Slots of the operands, in order of appearance.
    pub(crate) operands: SmallVec<[u32; 4]>,
    /// This operand is used here for the last time and only once: its memory may be reused.
    pub(crate) reusable: SmallVec<[bool; 4]>,
    pub(crate) first_result: u32,
    pub(crate) results: u32,
    pub(crate) numbers: std::ops::Range<usize>,
    /// Slots to let go after this step: operands used for the last time, results nobody uses.
    pub(crate) frees: SmallVec<[u32; 4]>,
}

/// A lowered graph: steps over slots, parameters first, then results.
#[derive(Debug)]
pub struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) params: usize,
    pub(crate) slots: usize,
    /// Parameters no step uses are let go at once; others at their last use.
    pub(crate) unused_params: Vec<u32>,
    /// Output index of each slot, if it is one, and whether steps still use the slot after it is produced.
    pub(crate) outputs: Vec<Option<(u32, bool)>>,
    pub(crate) output_count: usize,
}

impl Program {
    /// Lowers a graph. Fails for operators this libtorch does not have.
    pub fn lower(graph: &Graph) -> Result<Program, BackendError> {
        let slots = graph.value_count();
        let slot = |v: ValueId| graph.slot(v) as u32;
        let mut last_use: Vec<Option<usize>> = vec![None; slots];
        for (i, node) in graph.nodes().iter().enumerate() {
            for &operand in &node.operands {
                last_use[graph.slot(operand)] = Some(i);
            }
        }
        let mut outputs = vec![None; slots];
        for (i, &output) in graph.outputs().iter().enumerate() {
            outputs[graph.slot(output)] = Some((i as u32, last_use[graph.slot(output)].is_some()));
        }
        let mut steps = Vec::with_capacity(graph.nodes().len());
        for (i, node) in graph.nodes().iter().enumerate() {
            let plan = Plan::new(node.op.name(), &node.words, &node.results)
                .map_err(|e| BackendError::CannotLower { op: node.op.name().into(), reason: e.message })?;
            let operands: SmallVec<[u32; 4]> = node.operands.iter().map(|&v| slot(v)).collect();
            let ends_here = |s: u32| last_use[s as usize] == Some(i);
            let once = |s: u32| operands.iter().filter(|&&o| o == s).count() == 1;
            let reusable = operands.iter().map(|&s| ends_here(s) && once(s)).collect();
            let first_result = (graph.params().len() + node.first_result as usize) as u32;
            let results = node.results.len() as u32;
            let mut frees: SmallVec<[u32; 4]> = operands.iter().copied().filter(|&s| ends_here(s)).collect();
            frees.extend((first_result..first_result + results).filter(|&s| last_use[s as usize].is_none()));
            frees.sort_unstable();
            frees.dedup();
            let first = node.first_number as usize;
            let numbers = first..first + node.number_count as usize;
            steps.push(Step { plan, op: node.op, operands, reusable, first_result, results, numbers, frees });
        }
        let params = graph.params().len();
        let unused_params = (0..params as u32).filter(|&p| last_use[p as usize].is_none()).collect();
        Ok(Program { steps, params, slots, unused_params, outputs, output_count: graph.outputs().len() })
    }

    /// Steps, slots, reuse and frees, one line per step; deterministic.
    pub fn text(&self) -> String {
        let name = |s: u32| {
            let s = s as usize;
            if s < self.params { format!("p{s}") } else { format!("v{}", s - self.params) }
        };
        let mut text =
            format!("program {} params, {} steps, {} outputs\n", self.params, self.steps.len(), self.output_count);
        for step in &self.steps {
            let results: Vec<_> = (step.first_result..step.first_result + step.results).map(name).collect();
            let operands: Vec<_> = step
                .operands
                .iter()
                .zip(&step.reusable)
                .map(|(&s, &reuse)| format!("{}{}", name(s), if reuse { "~" } else { "" }))
                .collect();
            let _ = write!(text, "  {} = {}({})", results.join(", "), step.op, operands.join(", "));
            if !step.frees.is_empty() {
                let frees: Vec<_> = step.frees.iter().map(|&s| name(s)).collect();
                let _ = write!(text, " free {}", frees.join(", "));
            }
            text.push('\n');
        }
        text
    }
}
