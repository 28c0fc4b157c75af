//! Lowering: a canonical graph becomes a straight list of steps.
//!
//! Values live in numbered slots, as [`Graph::slot`] numbers them. Everything the run loop would have to ask the graph is
//! decided here once: which slots a step reads, which it may write in place, which it frees, where its results go, which
//! outputs they are.

use std::{ops::Range, sync::Arc};

use ltc_backend::BackendError;
use ltc_ir::{ArgFlags, ArgWriter, DType, Graph, GraphNode, LayoutRef, Op, Props, ValueId};
use ltc_torch_sys::Plan;
use smallvec::SmallVec;

use crate::{
    backend::Fusion,
    fuse::{self, Draft, Fused},
    kernels::{Jit, MaxPool},
    schedule::{self, OperandUse, Schedule},
};

/// A lowered graph.
#[derive(Debug)]
pub struct Program {
    /// As given.
    pub(crate) graph: Arc<Graph>,
    /// As it runs: operators over lists may be taken apart.
    pub(crate) lowered: Arc<Graph>,
    /// Per node the node of the given graph it comes from; empty if that is the same.
    pub(crate) origin: Vec<u32>,
    pub(crate) steps: Vec<Step>,
    /// Operands of all steps, one after the other.
    pub(crate) operands: Vec<OperandUse>,
    /// Results of all steps.
    pub(crate) results: Vec<StepResult>,
    /// Written operands of all steps: the operand and the result that replaces it, both numbered within the step.
    pub(crate) writes: Vec<(u32, u32)>,
    /// Output numbers, grouped by value.
    pub(crate) publications: Vec<u32>,
    /// What becomes of each parameter at the start.
    pub(crate) params: Vec<Fate>,
    /// How many slots there are: values of the graph, then temporaries of the lowering.
    pub(crate) slots: usize,
}

/// One step: operands in, results out.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Position of the graph node; of the first one of a fused step.
    pub(crate) node: u32,
    pub(crate) operands: Range<u32>,
    pub(crate) results: Range<u32>,
    pub(crate) writes: Range<u32>,
    pub(crate) numbers: Range<u32>,
}

/// How a step is carried out.
#[derive(Debug)]
pub(crate) enum StepKind {
    /// The node's operator, as a boxed call through libtorch's dispatcher.
    Boxed(Arc<Plan>),
    /// A copy of the operand with memory of its own (see [`Lowering::owned_view`]).
    Own(Arc<Plan>),
    /// `bernoulli_` of single-precision numbers, by a kernel of ours where the probability is one.
    Bernoulli(Arc<Plan>),
    /// A max pooling by a kernel of ours.
    MaxPool(MaxPool),
    /// Several nodes as one kernel.
    Fused(Box<Fused>),
}

/// Where a result of a step goes.
#[derive(Debug)]
pub(crate) struct StepResult {
    pub(crate) slot: u32,
    pub(crate) layout: LayoutRef,
    /// Bytes of its own; 0 when it aliases an operand.
    pub(crate) bytes: usize,
    pub(crate) fate: Fate,
}

/// Who wants a value.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    /// A later step.
    pub(crate) used: bool,
    /// Outputs it is, in [`Program::publications`].
    pub(crate) outputs: Range<u32>,
}

impl Program {
    /// Lowers a graph. With `reuse` off no step writes in place, with fusion off every node is a step of its own;
    /// `jit` says whether kernels may become machine code.
    ///
    /// Fails with [`BackendError::CannotLower`] when libtorch does not know an operator or its arguments do not fit.
    pub fn lower(graph: &Arc<Graph>, reuse: bool, fusion: Fusion, jit: Jit) -> Result<Program, BackendError> {
        Program::lower_plan(graph, (reuse, fusion, jit), fuse::plan(graph, fusion), None)
    }

    /// Lowers a graph that differs from this one's in sizes only, into the same steps: prepared calls and the code of
    /// kernels are taken over where sizes do not matter to them. `None` if the steps do not hold at these sizes.
    pub(crate) fn resized(
        &self,
        graph: &Arc<Graph>,
        reuse: bool,
        fusion: Fusion,
        jit: Jit,
    ) -> Option<Result<Program, BackendError>> {
        let calls = self.steps.iter().filter(|s| !matches!(s.kind, StepKind::Own(_)));
        let units = calls.map(|s| match &s.kind {
            StepKind::Fused(fused) => (s.node, Some(&**fused)),
            _ => (s.node, None),
        });
        let plan = fuse::plan_like(graph, self, units)?;
        Some(Program::lower_plan(graph, (reuse, fusion, jit), plan, Some(self)))
    }

    fn lower_plan(
        graph: &Arc<Graph>,
        (reuse, fusion, jit): (bool, Fusion, Jit),
        mut steps: fuse::Plan,
        like: Option<&Program>,
    ) -> Result<Program, BackendError> {
        let source = graph;
        let graph = &steps.graph.take().map_or_else(|| source.clone(), Arc::new);
        let mut lowering = Lowering {
            graph,
            schedule: Schedule::over(graph, steps.drafts.iter().map(|d| d.operands(graph))),
            reuse,
            fusion,
            jit,
            by_slot: outputs_by_slot(graph),
            like: like.map(Lender::new),
            program: Program {
                graph: source.clone(),
                lowered: graph.clone(),
                origin: steps.origin,
                steps: Vec::with_capacity(steps.drafts.len()),
                operands: Vec::new(),
                results: Vec::with_capacity(graph.result_count()),
                writes: Vec::new(),
                publications: Vec::with_capacity(graph.outputs().len()),
                params: Vec::with_capacity(graph.params().len()),
                slots: graph.value_count(),
            },
        };
        for slot in 0..graph.params().len() {
            let fate = lowering.fate(slot);
            lowering.program.params.push(fate);
        }
        for (index, step) in steps.drafts.into_iter().enumerate() {
            match step {
                fuse::Step::Node(n) => lowering.node(index, n as usize, &graph.nodes()[n as usize])?,
                fuse::Step::Fused(draft) => lowering.fused(index, draft, &steps.recipes)?,
            }
        }
        Ok(lowering.program)
    }

    /// The graph this was lowered from.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// How many operators run as part of a kernel with others, or as a kernel of their own.
    pub fn fused_nodes(&self) -> usize {
        let count = |s: &Step| if let StepKind::Fused(fused) = &s.kind { fused.nodes.len() } else { 0 };
        self.steps.iter().map(count).sum()
    }

    /// How many steps there are.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn step_operands(&self, step: &Step) -> &[OperandUse] {
        &self.operands[as_usize(&step.operands)]
    }

    pub(crate) fn step_results(&self, step: &Step) -> &[StepResult] {
        &self.results[as_usize(&step.results)]
    }

    pub(crate) fn step_writes(&self, step: &Step) -> &[(u32, u32)] {
        &self.writes[as_usize(&step.writes)]
    }

    /// Output numbers of a value.
    pub(crate) fn outputs(&self, fate: &Fate) -> &[u32] {
        &self.publications[as_usize(&fate.outputs)]
    }

    /// Rough size in memory, in bytes. A prepared call is about half a kilobyte of C++.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.graph.heap_bytes()
            + self.steps.len() * (size_of::<Step>() + 512)
            + self.operands.len() * size_of::<OperandUse>()
            + self.results.len() * size_of::<StepResult>()
            + (self.writes.len() * 2 + self.publications.len()) * 4
    }
}

/// The position of a range of a flat table.
pub(crate) fn as_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
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
    reuse: bool,
    fusion: Fusion,
    jit: Jit,
    by_slot: Vec<(usize, u32)>,
    /// A program for other sizes that lends what it can.
    like: Option<Lender<'a>>,
    program: Program,
}

/// A program for other sizes, and per node of its graph its step.
struct Lender<'a> {
    program: &'a Program,
    step_of: Vec<u32>,
}

impl<'a> Lender<'a> {
    fn new(program: &'a Program) -> Self {
        let mut step_of = vec![u32::MAX; program.lowered.nodes().len()];
        for (i, step) in program.steps.iter().enumerate().rev() {
            step_of[step.node as usize] = i as u32;
        }
        Lender { program, step_of }
    }

    fn step(&self, node: usize) -> Option<&'a Step> {
        self.program.steps.get(self.step_of[node] as usize)
    }

    fn kernel(&self, node: usize) -> Option<&'a Fused> {
        match &self.step(node)?.kind {
            StepKind::Fused(fused) => Some(fused),
            _ => None,
        }
    }

    /// The prepared call of a node with this signature.
    fn call(&self, at: usize, node: &GraphNode) -> Option<Arc<Plan>> {
        let same = self.program.lowered.nodes()[at].signature == node.signature;
        match &self.step(at).filter(|_| same)?.kind {
            StepKind::Boxed(plan) | StepKind::Bernoulli(plan) => Some(plan.clone()),
            _ => None,
        }
    }
}

impl Lowering<'_> {
    fn fate(&mut self, slot: usize) -> Fate {
        let start = self.program.publications.len() as u32;
        let first = self.by_slot.partition_point(|&(s, _)| s < slot);
        let outputs = self.by_slot[first..].iter().take_while(|&&(s, _)| s == slot).map(|&(_, i)| i);
        self.program.publications.extend(outputs);
        Fate { used: self.schedule.is_used(slot), outputs: start..self.program.publications.len() as u32 }
    }

    /// Step `index`, a kernel.
    fn fused(&mut self, index: usize, draft: Draft, recipes: &fuse::Recipes) -> Result<(), BackendError> {
        let first = draft.nodes[0];
        let mut operands = self.schedule.uses(self.graph, &draft.operands, index);
        let results = draft.results.clone();
        let slot_of = |i: usize| operands[i].slot as usize;
        let dies = |i: usize| self.reuse && self.schedule.dies(slot_of(i), index, i);
        let like = self.like.as_ref().and_then(|l| l.kernel(first as usize));
        let mut fused = draft.finish(self.graph, recipes, like, dies).ok_or_else(|| BackendError::CannotLower {
            op: self.graph.nodes()[first as usize].op().name().into(),
            reason: "no kernel for a group of operators".into(),
        })?;
        fused.kernel.set_jit(self.jit);
        let taken = fused.reuse.iter().enumerate().filter_map(|(r, operand)| Some(((*operand)?, r as u32)));
        let writes: SmallVec<[_; 2]> = taken.collect();
        writes.iter().for_each(|&(operand, _)| operands[operand as usize].reusable = true);
        let mut steps: SmallVec<[StepResult; 2]> = SmallVec::with_capacity(results.len());
        for &result in &results {
            let (slot, layout) = (self.graph.slot(result), self.graph.layout(result).clone());
            let fate = self.fate(slot);
            steps.push(StepResult { slot: slot as u32, bytes: layout.storage_bytes(), layout, fate });
        }
        let kind = StepKind::Fused(Box::new(fused));
        self.step(first as usize, 0..self.graph.number_count() as u32, kind, &operands, steps, &writes);
        Ok(())
    }

    /// Step `index`, a call of node `at`.
    fn node(&mut self, index: usize, at: usize, node: &GraphNode) -> Result<(), BackendError> {
        check_node(self.graph, node)
            .map_err(|reason| BackendError::CannotLower { op: node.op().name().into(), reason: reason.into() })?;
        let mut operands = self.schedule.operands(self.graph, node, index);
        if !self.reuse {
            operands.iter_mut().for_each(|o| o.reusable = false);
        }
        let kind = match self.pool(node) {
            Some(pool) => StepKind::MaxPool(pool),
            None => {
                let lent = self.like.as_ref().and_then(|l| l.call(at, node));
                let plan = lent.map_or_else(|| plan(node.op(), node.words(), node.results()), Ok)?;
                if self.draws(node) { StepKind::Bernoulli(plan) } else { StepKind::Boxed(plan) }
            }
        };
        let is_view = node.op() == Op::read_view();
        let first_slot = self.graph.params().len() + node.first_result as usize;
        if is_view && self.pins_more_than_it_shows(node, first_slot) {
            return self.owned_view(at, node, kind, &operands, first_slot);
        }
        let writes: SmallVec<[_; 2]> =
            schedule::writes(node).iter().enumerate().filter_map(|(r, w)| Some(((*w)?, r as u32))).collect();
        let mut results: SmallVec<[StepResult; 2]> = SmallVec::with_capacity(node.results().len());
        for (i, layout) in node.results().iter().enumerate() {
            let fate = self.fate(first_slot + i);
            // A view that leaves the program is counted as if it had memory of its own: its base may be gone by then.
            let aliases = is_view && fate.outputs.is_empty();
            let bytes = if aliases { 0 } else { layout.storage_bytes() };
            results.push(StepResult { slot: (first_slot + i) as u32, layout: layout.clone(), bytes, fate });
        }
        self.step(at, numbers(node), kind, &operands, results, &writes);
        Ok(())
    }

    /// Whether this is a `bernoulli_` that writes all of a new tensor in memory order.
    fn draws(&self, node: &GraphNode) -> bool {
        let [numbers, _] = node.results() else { return false };
        self.fusion != Fusion::Off
            && node.op().name() == "aten::bernoulli_.float"
            && (node.operands.len(), node.number_count) == (1, 1)
            && numbers.dtype() == DType::F32
            && numbers.is_contiguous()
    }

    /// The kernel of ours for this node, if it is a pooling.
    fn pool(&self, node: &GraphNode) -> Option<MaxPool> {
        let input = node.operands.first().filter(|_| self.fusion != Fusion::Off)?;
        MaxPool::of(node, self.graph.layout(*input))
    }

    fn step(
        &mut self,
        node: usize,
        numbers: Range<u32>,
        kind: StepKind,
        operands: &[OperandUse],
        results: impl IntoIterator<Item = StepResult>,
        writes: &[(u32, u32)],
    ) {
        let p = &mut self.program;
        let start = (p.operands.len() as u32, p.results.len() as u32, p.writes.len() as u32);
        p.operands.extend_from_slice(operands);
        p.results.extend(results);
        p.writes.extend_from_slice(writes);
        p.steps.push(Step {
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
    fn owned_view(
        &mut self,
        at: usize,
        node: &GraphNode,
        view: StepKind,
        operands: &[OperandUse],
        slot: usize,
    ) -> Result<(), BackendError> {
        let layout = &node.results()[0];
        let temporary = self.program.slots as u32;
        self.program.slots += 1;
        let viewed =
            StepResult { slot: temporary, layout: layout.clone(), bytes: 0, fate: Fate { used: true, outputs: 0..0 } };
        self.step(at, numbers(node), view, operands, [viewed], &[]);

        let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
        let (words, _) = ArgWriter::new().tensor_with(fresh).tensor().bool(false).finish();
        let copy = StepKind::Own(plan(Op::intern("aten::copy_", Props::MUTATES), &words, node.results())?);
        let fate = self.fate(slot);
        let owned = StepResult { slot: slot as u32, layout: layout.clone(), bytes: layout.storage_bytes(), fate };
        self.step(
            at,
            numbers(node),
            copy,
            &[OperandUse { slot: temporary, last: true, reusable: false }],
            [owned],
            &[],
        );
        Ok(())
    }
}

fn plan(op: Op, words: &[u64], results: &[LayoutRef]) -> Result<Arc<Plan>, BackendError> {
    Plan::new(op.name(), words, results)
        .map(Arc::new)
        .map_err(|e| BackendError::CannotLower { op: op.name().into(), reason: e.message })
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
    let generators = schedule::generators(node);
    let states = if node.op() == Op::seed() { 1 } else { generators.len() };
    let tensors = node.results().len().checked_sub(states).ok_or("too few results")?;
    if node.results()[..tensors].iter().any(is_state) || !node.results()[tensors..].iter().all(is_state) {
        return Err("generator states must be the last results, one per generator");
    }
    if tensors < schedule::writes(node).len() {
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
