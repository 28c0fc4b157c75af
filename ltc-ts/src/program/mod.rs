//! A lowered graph: steps over numbered slots, and what is known of each.
//!
//! Values live in slots, as [`Graph::slot`] numbers them. Everything the run loop would have to ask the graph is said
//! here: which slots a step reads, which it may write in place, which it frees, where its results go, which outputs
//! they are.

mod branches;
pub(crate) mod cost;
mod lower;
mod memory_budget;
mod pooling;
mod print;
mod respecialise;
mod torchscript;

use std::{ops::Range, sync::Arc};

use ltc_ir::{Assumption, Graph, LayoutRef, Props, ValueId};
use ltc_kernels::MaxPool;
use ltc_torch_sys::{Place, Plan};

use crate::fusion::{FusedKernelStep, liveness::OperandUse};

pub use memory_budget::MemoryPlan;

/// A lowered graph.
#[derive(Debug)]
pub struct Program {
    /// As given.
    pub(crate) graph: Arc<Graph>,
    /// Where it runs.
    pub(crate) place: Place,
    /// Wait after each step.
    pub(crate) sync_steps: bool,
    /// As rewritten, if that is another one.
    pub(crate) rewritten: Arc<Graph>,
    /// Per node of the graph that runs the node of the rewritten one it comes from; empty if that is the same.
    pub(crate) lowered_from: Vec<u32>,
    /// As it runs: rewritten, and operators over lists may be taken apart.
    pub(crate) lowered: Arc<Graph>,
    /// Per node the node of the given graph it comes from; empty if that is the same.
    pub(crate) provenance: Vec<u32>,
    pub(crate) instrs: Vec<Instr>,
    /// Operands of all steps, one after the other.
    pub(crate) operands: Vec<OperandUse>,
    /// Results of all steps.
    pub(crate) results: Vec<InstrResult>,
    /// Written operands of all steps: the operand and the result that replaces it, both numbered within the step.
    pub(crate) writes: Vec<(u32, u32)>,
    /// Output numbers, grouped by value.
    pub(crate) publications: Vec<u32>,
    /// What becomes of each parameter at the start.
    pub(crate) params: Vec<ValueUse>,
    /// Whole-graph rewrites that applied, and how often.
    pub(crate) rewrites: Vec<(&'static str, usize)>,
    /// What the runtime numbers were when this program was made: it does not run on others.
    pub(crate) guards: Vec<Assumption>,
    /// Words that follow the runtime numbers.
    pub(crate) constants: Vec<u64>,
    /// Memory as planned, if there is a budget.
    pub(crate) memory: Option<MemoryPlan>,
    /// Where steps may run on two threads.
    pub(crate) parallel_regions: Vec<ParallelRegion>,
    /// Before each step, and after the last: position, in the given graph, of the first node that can still fail. What
    /// stands before it will not be undone.
    pub(crate) settled: Vec<u32>,
    /// Per output the position of its node.
    pub(crate) made_at: Vec<u32>,
    /// How many slots there are: values of the graph, then temporaries of the lowering.
    pub(crate) slots: usize,
}

/// One step: operands in, results out.
#[derive(Debug)]
pub(crate) struct Instr {
    pub(crate) kind: InstrKind,
    /// Position of the graph node; of the first one of a fused step.
    pub(crate) node: u32,
    pub(crate) operands: Range<u32>,
    pub(crate) results: Range<u32>,
    pub(crate) writes: Range<u32>,
    pub(crate) numbers: Range<u32>,
}

/// How a step is carried out.
#[derive(Debug)]
pub(crate) enum InstrKind {
    /// The node's operator, as a boxed call through libtorch's dispatcher.
    Boxed(Arc<Plan>),
    /// The same for a matrix product that is too small for several threads; libtorch would use them.
    Product(Arc<Plan>),
    /// A copy of the operand with memory of its own, so that it does not hold a larger one.
    Materialize(Arc<Plan>),
    /// `bernoulli_` of single-precision numbers, by a kernel of ours where the probability is one.
    Bernoulli(Arc<Plan>),
    /// A max pooling by a kernel of ours.
    MaxPool(MaxPool),
    /// Memory for a value that later steps write piece by piece.
    Alloc(Arc<Plan>),
    /// A piece of such a value, copied.
    CopySlice(Arc<Plan>),
    /// Several nodes as one kernel.
    Fused(Box<FusedKernelStep>),
}

/// Where a result of a step goes.
#[derive(Debug)]
pub(crate) struct InstrResult {
    pub(crate) slot: u32,
    pub(crate) layout: LayoutRef,
    /// Bytes of its own; 0 when it aliases an operand.
    pub(crate) bytes: usize,
    pub(crate) value_use: ValueUse,
}

/// Who wants a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueUse {
    /// A later step.
    pub(crate) used: bool,
    /// Outputs it is, in [`Program::publications`].
    pub(crate) outputs: Range<u32>,
}

/// Steps that run on two threads.
#[derive(Debug)]
pub(crate) struct ParallelRegion {
    /// All of them, in order.
    pub(crate) instrs: Range<usize>,
    /// Those for the other thread.
    pub(crate) worker: Vec<usize>,
    /// Those for this one.
    pub(crate) main: Vec<usize>,
    /// Slots only the other thread touches.
    pub(crate) moved: Vec<u32>,
    /// Slots both read, and the layouts of their values; nobody writes them.
    pub(crate) shared: Vec<(u32, LayoutRef)>,
    /// Of these, those nobody reads later.
    pub(crate) released: Vec<u32>,
}

impl Program {
    /// The graph this was lowered from.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// How many operators run as part of a kernel with others, or as a kernel of their own.
    pub fn fused_nodes(&self) -> usize {
        let count = |s: &Instr| if let InstrKind::Fused(fused) = &s.kind { fused.nodes.len() } else { 0 };
        self.instrs.iter().map(count).sum()
    }

    /// Whole-graph rewrites that applied, and how often each.
    pub fn rewrites(&self) -> &[(&'static str, usize)] {
        &self.rewrites
    }

    /// Its memory as planned, if there is a budget.
    pub fn memory_plan(&self) -> Option<MemoryPlan> {
        self.memory
    }

    /// How often steps that do not depend on each other may run on two threads.
    pub fn parallel_regions(&self) -> usize {
        self.parallel_regions.len()
    }

    /// Position, in the given graph, of a node of the graph that runs.
    pub(crate) fn provenance_of(&self, node: u32) -> u32 {
        self.provenance.get(node as usize).copied().unwrap_or(node)
    }

    /// Notes when what can no longer fail, once all steps are there.
    pub(crate) fn settle(&mut self) {
        let mut first = u32::MAX;
        let mut settled = vec![first];
        for instr in self.instrs.iter().rev() {
            if self.can_fail(instr) {
                first = first.min(self.provenance_of(instr.node));
            }
            settled.push(first);
        }
        settled.reverse();
        let made_at = |&o| self.graph.definition_index(o).map_or(0, |n| n as u32);
        (self.settled, self.made_at) = (settled, self.graph.outputs().iter().map(made_at).collect());
    }

    fn can_fail(&self, instr: &Instr) -> bool {
        match &instr.kind {
            InstrKind::Fused(_)
            | InstrKind::MaxPool(_)
            | InstrKind::Materialize(_)
            | InstrKind::Alloc(_)
            | InstrKind::CopySlice(_) => false,
            InstrKind::Boxed(_) | InstrKind::Product(_) | InstrKind::Bernoulli(_) => {
                !self.lowered.nodes()[instr.node as usize].op().has(Props::TOTAL)
            }
        }
    }

    /// Whether the program may run on these runtime numbers.
    pub(crate) fn guards_hold(&self, numbers: &[u64]) -> bool {
        self.guards.iter().all(|a| a.holds(numbers))
    }

    /// How many steps there are.
    pub fn step_count(&self) -> usize {
        self.instrs.len()
    }

    pub(crate) fn instr_operands(&self, instr: &Instr) -> &[OperandUse] {
        &self.operands[as_usize(&instr.operands)]
    }

    pub(crate) fn instr_results(&self, instr: &Instr) -> &[InstrResult] {
        &self.results[as_usize(&instr.results)]
    }

    /// What a slot holds; `None` for scratch.
    pub(crate) fn slot_layout(&self, slot: u32) -> Option<&LayoutRef> {
        let (graph, slot) = (&self.lowered, slot as usize);
        match slot.checked_sub(graph.params().len()) {
            None => graph.params().get(slot),
            Some(result) => (result < graph.result_count()).then(|| graph.layout(ValueId::result(result))),
        }
    }

    pub(crate) fn instr_writes(&self, instr: &Instr) -> &[(u32, u32)] {
        &self.writes[as_usize(&instr.writes)]
    }

    /// Output numbers of a value.
    pub(crate) fn outputs(&self, value_use: &ValueUse) -> &[u32] {
        &self.publications[as_usize(&value_use.outputs)]
    }

    /// Rough size in memory, in bytes. A prepared call is about half a kilobyte of C++.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.graph.heap_bytes()
            + if Arc::ptr_eq(&self.graph, &self.lowered) { 0 } else { self.lowered.heap_bytes() }
            + self.instrs.len() * (size_of::<Instr>() + 512)
            + self.operands.len() * size_of::<OperandUse>()
            + self.results.len() * size_of::<InstrResult>()
            + (self.writes.len() * 2 + self.publications.len()) * 4
    }
}

/// The position of a range of a flat table.
pub(crate) fn as_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
