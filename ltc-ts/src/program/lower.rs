//! Lowering: a canonical graph becomes a straight list of steps ([`Program`]), with everything decided that can be.

use std::{ops::Range, sync::Arc};

use ltc_backend::BackendError;
use ltc_ir::{ArgFlags, ArgWriter, Assumption, DType, Graph, GraphNode, LayoutRef, Op, Props, Rewritten, ValueId};
use ltc_kernels::{MaxPool, cuda::Unsupported};
use ltc_torch_sys::{Place, Plan};
use smallvec::SmallVec;

use super::{
    Instr, InstrKind, InstrResult, MemoryPlan, Program, ValueUse, branches, cost, memory_budget as budget, pooling,
};
use crate::{
    config::{Fusion, TsConfig},
    fusion::{
        self, FusedKernelStep, GpuKernel, KernelPlan,
        liveness::{self, Liveness, OperandUse, Schedule},
    },
    rewrite,
    target::Target,
};

/// A graph after the rewrites.
pub(super) struct RewrittenGraph {
    pub(super) graph: Arc<Graph>,
    provenance: Vec<u32>,
    applied: Vec<(&'static str, usize)>,
    guards: Vec<Assumption>,
    constants: Vec<u64>,
}

impl RewrittenGraph {
    pub(super) fn of(graph: &Arc<Graph>, target: &Target) -> RewrittenGraph {
        match rewrite::rewrite(graph, target) {
            Some((rewritten, report)) => {
                let Rewritten { graph, origin: provenance, assumed: guards, constants } = rewritten;
                RewrittenGraph { graph: Arc::new(graph), provenance, applied: report.applied, guards, constants }
            }
            None => {
                let (provenance, applied, guards, constants) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
                RewrittenGraph { graph: graph.clone(), provenance, applied, guards, constants }
            }
        }
    }
}

impl Program {
    /// Lowers a graph for the CPU, as the configuration says.
    ///
    /// # Errors
    /// Fails with [`BackendError::CannotLower`] when libtorch does not know an operator or its arguments do not fit.
    pub fn lower(graph: &Arc<Graph>, config: &TsConfig) -> Result<Program, BackendError> {
        Program::lower_for(graph, &Target::new(config, Place::Cpu))
    }

    /// As [`Program::lower`], for a target.
    pub(crate) fn lower_for(graph: &Arc<Graph>, target: &Target) -> Result<Program, BackendError> {
        let config = &target.config;
        let mut rewritten = RewrittenGraph::of(graph, target);
        let mut fusion_plan = fusion::plan(&rewritten.graph, config.fusion);
        let memory =
            (config.budget_bytes > 0).then(|| budget::fit(&rewritten.graph, &mut fusion_plan, config.budget_bytes));
        // Joining in place asks for the memory of a joined value early, which may exceed a budget.
        if config.reuse && memory.is_none() && config.rewrites.has("join") {
            fusion_plan.join_in_place(&rewritten.graph);
        }
        if memory.is_none() && config.rewrites.has("waits") {
            let moved = fusion_plan.put_off_waits(&rewritten.graph);
            if moved > 0 {
                rewritten.applied.push(("waits", moved));
            }
        }
        Program::lower_plan(graph, target, rewritten, fusion_plan, memory, None)
    }

    pub(super) fn lower_plan(
        source: &Arc<Graph>,
        target: &Target,
        rewritten: RewrittenGraph,
        mut fusion_plan: fusion::Plan,
        memory: Option<MemoryPlan>,
        template: Option<&Program>,
    ) -> Result<Program, BackendError> {
        let graph = &fusion_plan.graph.take().map_or_else(|| rewritten.graph.clone(), Arc::new);
        let provenance = match (rewritten.provenance.is_empty(), fusion_plan.provenance.is_empty()) {
            (true, _) => fusion_plan.provenance.clone(),
            (_, true) => rewritten.provenance,
            _ => fusion_plan.provenance.iter().map(|&n| rewritten.provenance[n as usize]).collect(),
        };
        let mut lowering = Lowering {
            graph,
            schedule: Schedule::over(graph, fusion_plan.items.iter().map(|d| (d.operands(graph), d.results(graph)))),
            config: &target.config,
            place: target.place,
            by_slot: outputs_by_slot(graph),
            template: template.map(ReuseFrom::new),
            program: Program {
                graph: source.clone(),
                place: target.place,
                sync_steps: target.config.sync_steps && !target.place.is_cpu(),
                lowered: graph.clone(),
                provenance,
                instrs: Vec::with_capacity(fusion_plan.items.len()),
                operands: Vec::new(),
                results: Vec::with_capacity(graph.result_count()),
                writes: Vec::new(),
                publications: Vec::with_capacity(graph.outputs().len()),
                params: Vec::with_capacity(graph.params().len()),
                rewritten: rewritten.graph,
                lowered_from: fusion_plan.provenance,
                rewrites: rewritten.applied,
                guards: rewritten.guards,
                constants: rewritten.constants,
                memory,
                parallel_regions: Vec::new(),
                settled: Vec::new(),
                made_at: Vec::new(),
                slots: graph.value_count(),
            },
        };
        for slot in 0..graph.params().len() {
            let value_use = lowering.value_use(slot, lowering.schedule.param(slot));
            lowering.program.params.push(value_use);
        }
        for (index, item) in fusion_plan.items.into_iter().enumerate() {
            match item {
                fusion::PlanItem::Node(n) => lowering.node(index, n as usize, &graph.nodes()[n as usize])?,
                fusion::PlanItem::Fused(kernel) => lowering.fused(index, *kernel, &fusion_plan.computes)?,
                fusion::PlanItem::Alloc(n) => lowering.alloc(index, n as usize)?,
                fusion::PlanItem::CopySlice { node, operands, slice } => {
                    lowering.copy_slice(index, node as usize, operands, &slice)?
                }
            }
        }
        let mut program = lowering.program;
        // Two sides that run at the same time hold more memory, which may exceed a budget.
        if program.memory.is_none() && target.has_branches() && rewrite::is_wanted("branches", &target.config.rewrites)
        {
            program.parallel_regions = branches::plan(&program);
        }
        program.settle();
        Ok(program)
    }
}

/// Output numbers sorted by the slot they show, then by number.
fn outputs_by_slot(graph: &Graph) -> Vec<(usize, u32)> {
    let mut pairs: Vec<_> = graph.outputs().iter().enumerate().map(|(i, &o)| (graph.slot(o), i as u32)).collect();
    pairs.sort_unstable();
    pairs
}

struct Lowering<'a> {
    graph: &'a Graph,
    schedule: Schedule,
    config: &'a TsConfig,
    place: Place,
    by_slot: Vec<(usize, u32)>,
    /// A program for other sizes that lends what it can.
    template: Option<ReuseFrom<'a>>,
    program: Program,
}

/// A program for other sizes whose calls and kernels may be reused, and per node of its graph the step of that node.
struct ReuseFrom<'a> {
    program: &'a Program,
    instr_of: Vec<u32>,
}

impl<'a> ReuseFrom<'a> {
    fn new(program: &'a Program) -> Self {
        let mut instr_of = vec![u32::MAX; program.lowered.nodes().len()];
        for (i, instr) in program.instrs.iter().enumerate().rev() {
            instr_of[instr.node as usize] = i as u32;
        }
        ReuseFrom { program, instr_of }
    }

    fn instr(&self, node: usize) -> Option<&'a Instr> {
        self.program.instrs.get(self.instr_of[node] as usize)
    }

    fn kernel(&self, node: usize) -> Option<&'a FusedKernelStep> {
        match &self.instr(node)?.kind {
            InstrKind::Fused(fused) => Some(fused),
            _ => None,
        }
    }

    /// The prepared call of a node with this signature.
    fn call(&self, at: usize, node: &GraphNode) -> Option<Arc<Plan>> {
        let same = self.program.lowered.nodes()[at].signature == node.signature;
        match &self.instr(at).filter(|_| same)?.kind {
            InstrKind::Boxed(plan) | InstrKind::Product(plan) | InstrKind::Bernoulli(plan) => Some(plan.clone()),
            _ => None,
        }
    }
}

impl Lowering<'_> {
    fn plan(&self, op: Op, words: &[u64], results: &[LayoutRef]) -> Result<Arc<Plan>, BackendError> {
        Plan::new(op.name(), words, results, self.place)
            .map(Arc::new)
            .map_err(|e| BackendError::CannotLower { op: op.name().into(), reason: e.message })
    }

    fn value_use(&mut self, slot: usize, liveness: Liveness) -> ValueUse {
        let start = self.program.publications.len() as u32;
        if liveness.as_output {
            let first = self.by_slot.partition_point(|&(s, _)| s < slot);
            let outputs = self.by_slot[first..].iter().take_while(|&&(s, _)| s == slot).map(|&(_, i)| i);
            self.program.publications.extend(outputs);
        }
        ValueUse { used: liveness.by_step, outputs: start..self.program.publications.len() as u32 }
    }

    /// Step `index`, a kernel.
    fn fused(&mut self, index: usize, kernel: KernelPlan, computes: &fusion::NodeComputes) -> Result<(), BackendError> {
        let first = kernel.nodes[0];
        let mut operands = self.schedule.uses(self.graph, &kernel.operands, index);
        let results = kernel.stored();
        let dies = |i: usize| self.config.reuse && self.schedule.dies(index, i);
        let template = self.template.as_ref().and_then(|l| l.kernel(first as usize));
        let mut fused =
            kernel.finish(self.graph, computes, template, dies).ok_or_else(|| BackendError::CannotLower {
                op: self.graph.nodes()[first as usize].op().name().into(),
                reason: "no kernel for a group of operators".into(),
            })?;
        if self.place.is_cpu() {
            fused.kernel.set_jit(self.config.jit);
        } else {
            let no_text = |e: Unsupported| BackendError::CannotLower {
                op: self.graph.nodes()[first as usize].op().name().into(),
                reason: format!("no kernel for a GPU: {e}"),
            };
            fused.gpu = Some(GpuKernel::of(&fused.kernel).map_err(no_text)?);
        }
        let taken = fused.taken().enumerate().filter_map(|(r, operand)| Some((operand?, r as u32)));
        let writes: SmallVec<[_; 2]> = taken.collect();
        writes.iter().for_each(|&(operand, _)| operands[operand as usize].reusable = dies(operand as usize));
        let mut stored: SmallVec<[InstrResult; 2]> = SmallVec::with_capacity(results.len());
        for (r, &result) in results.iter().enumerate() {
            let (slot, layout) = (self.graph.slot(result), self.graph.layout(result).clone());
            // A kernel that writes several pieces of one value lists it several times; the last one counts as the
            // result.
            let again = results[r + 1..].contains(&result);
            let liveness = if again { Liveness::default() } else { self.schedule.made(index, r) };
            let value_use = self.value_use(slot, liveness);
            stored.push(InstrResult { slot: slot as u32, bytes: layout.storage_bytes(), layout, value_use });
        }
        let kind = InstrKind::Fused(Box::new(fused));
        self.push(first as usize, 0..self.graph.number_count() as u32, kind, &operands, stored, &writes);
        Ok(())
    }

    /// Step `index`, a call of node `at`.
    fn node(&mut self, index: usize, at: usize, node: &GraphNode) -> Result<(), BackendError> {
        check_node(self.graph, node)
            .map_err(|reason| BackendError::CannotLower { op: node.op().name().into(), reason: reason.into() })?;
        let mut operands = self.schedule.operands(self.graph, node, index);
        if !self.config.reuse {
            operands.iter_mut().for_each(|o| o.reusable = false);
        }
        let kind = match self.pool(node) {
            Some(pool) => InstrKind::MaxPool(pool),
            None => {
                let reused = self.template.as_ref().and_then(|l| l.call(at, node));
                let plan = reused.map_or_else(|| self.plan(node.op(), node.words(), node.results()), Ok)?;
                match () {
                    () if self.draws(node) => InstrKind::Bernoulli(plan),
                    () if self.config.may_use_one_thread() && cost::is_small_product(self.graph, node) => {
                        InstrKind::Product(plan)
                    }
                    () => InstrKind::Boxed(plan),
                }
            }
        };
        let is_view = node.op() == Op::read_view();
        let first_slot = self.graph.params().len() + node.first_result as usize;
        if is_view && self.pins_more_than_it_shows(node, first_slot) {
            return self.materialized_view(at, node, kind, &operands, (first_slot, self.schedule.made(index, 0)));
        }
        let writes: SmallVec<[_; 2]> =
            liveness::writes(node).iter().enumerate().filter_map(|(r, w)| Some(((*w)?, r as u32))).collect();
        let mut results: SmallVec<[InstrResult; 2]> = SmallVec::with_capacity(node.results().len());
        for (i, layout) in node.results().iter().enumerate() {
            let value_use = self.value_use(first_slot + i, self.schedule.made(index, i));
            // A view that leaves the program is counted as if it had memory of its own: its base may be gone by then.
            let aliases = is_view && value_use.outputs.is_empty();
            let bytes = if aliases { 0 } else { layout.storage_bytes() };
            results.push(InstrResult { slot: (first_slot + i) as u32, layout: layout.clone(), bytes, value_use });
        }
        self.push(at, numbers(node), kind, &operands, results, &writes);
        Ok(())
    }

    /// Step `index`, which asks for the memory of node `at`'s result.
    fn alloc(&mut self, index: usize, at: usize) -> Result<(), BackendError> {
        let node = &self.graph.nodes()[at];
        let plan = self.plan(Op::empty(), &[], node.results())?;
        self.joined(index, at, InstrKind::Alloc(plan), &[], &[]);
        Ok(())
    }

    /// Step `index`, which copies a value to its slice of node `at`'s result.
    fn copy_slice(
        &mut self,
        index: usize,
        at: usize,
        operands: [ValueId; 2],
        slice: &fusion::Slice,
    ) -> Result<(), BackendError> {
        let layout = &slice.layout;
        let mut args = ArgWriter::new();
        args.tensor_with(ArgFlags::MUT).tensor().ints(layout.sizes()).ints(layout.strides()).int(slice.offset);
        let plan = self.plan(Op::write_view(), &args.finish().0, self.graph.nodes()[at].results())?;
        let mut operands = self.schedule.uses(self.graph, &operands, index);
        operands[0].reusable = self.config.reuse && self.schedule.dies(index, 0);
        self.joined(index, at, InstrKind::CopySlice(plan), &operands, &[(0, 0)]);
        Ok(())
    }

    /// Step `index`, which makes part of node `at`'s only result.
    fn joined(&mut self, index: usize, at: usize, kind: InstrKind, operands: &[OperandUse], writes: &[(u32, u32)]) {
        let node = &self.graph.nodes()[at];
        let (slot, layout) = (self.graph.params().len() + node.first_result as usize, node.results()[0].clone());
        let value_use = self.value_use(slot, self.schedule.made(index, 0));
        let result = InstrResult { slot: slot as u32, bytes: layout.storage_bytes(), layout, value_use };
        self.push(at, 0..0, kind, operands, [result], writes);
    }

    /// Whether this is a `bernoulli_` that writes all of a new tensor in memory order.
    fn draws(&self, node: &GraphNode) -> bool {
        let [numbers, _] = node.results() else { return false };
        self.place.is_cpu()
            && self.config.fusion != Fusion::Off
            && node.op().name() == "aten::bernoulli_.float"
            && (node.operands.len(), node.number_count) == (1, 1)
            && numbers.dtype() == DType::F32
            && numbers.is_contiguous()
    }

    /// The kernel of ours for this node, if it is a pooling.
    fn pool(&self, node: &GraphNode) -> Option<MaxPool> {
        let input = node.operands.first().filter(|_| self.place.is_cpu() && self.config.fusion != Fusion::Off)?;
        pooling::max_pool(node, self.graph.layout(*input))
    }

    fn push(
        &mut self,
        node: usize,
        numbers: Range<u32>,
        kind: InstrKind,
        operands: &[OperandUse],
        results: impl IntoIterator<Item = InstrResult>,
        writes: &[(u32, u32)],
    ) {
        let p = &mut self.program;
        let start = (p.operands.len() as u32, p.results.len() as u32, p.writes.len() as u32);
        p.operands.extend_from_slice(operands);
        p.results.extend(results);
        // A result that takes over an operand's slot leaves no old value there that could be let go.
        for operand in &mut p.operands[start.0 as usize..] {
            operand.last &= p.results[start.1 as usize..].iter().all(|r| r.slot != operand.slot);
        }
        p.writes.extend_from_slice(writes);
        p.instrs.push(Instr {
            kind,
            node: node as u32,
            operands: start.0..p.operands.len() as u32,
            results: start.1..p.results.len() as u32,
            writes: start.2..p.writes.len() as u32,
            numbers,
        });
    }

    /// Whether a view is an output that would keep a larger value alive than itself: one row of a large table must not
    /// hold the table.
    fn pins_more_than_it_shows(&self, node: &GraphNode, slot: usize) -> bool {
        let mut base = node.operands[0];
        while let Some(definition) = self.graph.definition(base).filter(|d| d.op() == Op::read_view()) {
            base = definition.operands[0];
        }
        let view = &node.results()[0];
        self.schedule.is_output(slot)
            && view.is_dense()
            && view.storage_bytes() < self.graph.layout(base).storage_bytes()
    }

    /// A view that becomes an output with memory of its own: the view into a temporary slot, then a copy of it.
    fn materialized_view(
        &mut self,
        at: usize,
        node: &GraphNode,
        view: InstrKind,
        operands: &[OperandUse],
        (slot, liveness): (usize, Liveness),
    ) -> Result<(), BackendError> {
        let layout = &node.results()[0];
        let temporary = self.program.slots as u32;
        self.program.slots += 1;
        let viewed = InstrResult {
            slot: temporary,
            layout: layout.clone(),
            bytes: 0,
            value_use: ValueUse { used: true, outputs: 0..0 },
        };
        self.push(at, numbers(node), view, operands, [viewed], &[]);

        let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
        let (words, _) = ArgWriter::new().tensor_with(fresh).tensor().bool(false).finish();
        let copy =
            InstrKind::Materialize(self.plan(Op::intern("aten::copy_", Props::MUTATES), &words, node.results())?);
        let value_use = self.value_use(slot, liveness);
        let materialized =
            InstrResult { slot: slot as u32, layout: layout.clone(), bytes: layout.storage_bytes(), value_use };
        self.push(
            at,
            numbers(node),
            copy,
            &[OperandUse { slot: temporary, last: true, reusable: false }],
            [materialized],
            &[],
        );
        Ok(())
    }
}

/// The runtime numbers of a node.
fn numbers(node: &GraphNode) -> Range<u32> {
    node.first_number..node.first_number + node.number_count
}

/// Whether a node's operands, numbers and results are those its arguments speak of. The kernels behind a plan trust
/// this.
fn check_node(graph: &Graph, node: &GraphNode) -> Result<(), &'static str> {
    let mut args = node.args();
    args.by_ref().for_each(drop);
    if args.error() {
        return Err("malformed arguments");
    }
    if args.operands() != node.operands.len() || args.numbers() != node.number_count as usize {
        return Err("arguments and operands do not agree");
    }
    let is_state = |layout: &LayoutRef| layout.dtype() == DType::RngState;
    let generators = liveness::generators(node);
    let states = if node.op() == Op::seed() { 1 } else { generators.len() };
    let tensors = node.results().len().checked_sub(states).ok_or("too few results")?;
    if node.results()[..tensors].iter().any(is_state) || !node.results()[tensors..].iter().all(is_state) {
        return Err("generator states must be the last results, one per generator");
    }
    if tensors < liveness::writes(node).len() {
        return Err("too few results");
    }
    let kinds_agree = |(i, &v): (usize, &ValueId)| is_state(graph.layout(v)) == generators.contains(&(i as u32));
    if !node.operands.iter().enumerate().all(kinds_agree) {
        return Err("a generator state stands where a tensor belongs, or the reverse");
    }
    match (node.op().name(), node.operands.len(), node.results().len()) {
        ("ltc::read_view", 1, 1) | ("ltc::write_view", 2, 1) | ("ltc::empty", 0, 1) => Ok(()),
        ("ltc::seed", 0, 1) if node.number_count > 0 => Ok(()),
        (name, ..) if name.starts_with("ltc::") => Err("wrong number of operands or results"),
        _ => Ok(()),
    }
}
