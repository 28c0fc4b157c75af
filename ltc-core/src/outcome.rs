//! What becomes of a program's outputs: they are told as they come, and what a failure undoes is given back
//! ([`crate::undo`]).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, Executable, Input, Inputs, OutputSink};
use ltc_ir::{ErrorClass, Graph, GraphBuilder, LayoutRef, Op, Props, Signature, SiteId, ValueId};
use smallvec::SmallVec;

use crate::{
    cell::{DataCell, Past},
    undo::{self, Chain, Undo, Version},
};

type Told = Result<Buffer, Arc<ExecError>>;

/// Parameters that came in as failures, with what was there before them.
pub(crate) type FailedParams = SmallVec<[(u32, Past); 4]>;

/// What an output's storage held before.
enum Before {
    There(Source, LayoutRef),
    Not(Past),
}

/// A program that could not be compiled: it fails where that became clear, as if it had run so far.
pub(crate) struct Refused {
    graph: Arc<Graph>,
    error: Arc<ExecError>,
}

impl Refused {
    pub(crate) fn new(graph: Arc<Graph>, error: ExecError) -> Self {
        Refused { graph, error: Arc::new(error) }
    }
}

impl Executable for Refused {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        drop(inputs);
        (0..self.graph.outputs().len()).for_each(|i| sink.output(i, Err(self.error.clone())));
    }

    fn text(&self) -> String {
        self.error.to_string()
    }
}

/// Receives the outputs of one run.
pub(crate) struct Sink<'a> {
    backend: &'a dyn Backend,
    device: DeviceIndex,
    /// Keeps a failure to be told to whoever waits next.
    keep: &'a dyn Fn(&Arc<ExecError>),
    graph: &'a Graph,
    outputs: &'a [Arc<DataCell>],
    sites: &'a [SiteId],
    undo: Option<Arc<Undo>>,
    /// What is kept of the parameters.
    kept: Vec<(u32, Buffer)>,
    /// Parameters that came in as failures.
    failed_params: FailedParams,
    /// First operator of the program that failed, with its failure.
    first: Option<(usize, Arc<ExecError>)>,
    /// Outputs that are not there: with their failure, or told although something before them had failed.
    lost: Vec<(usize, Option<Arc<ExecError>>)>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        (backend, device): (&'a dyn Backend, DeviceIndex),
        keep: &'a dyn Fn(&Arc<ExecError>),
        graph: &'a Graph,
        (outputs, sites): (&'a [Arc<DataCell>], &'a [SiteId]),
        undo: Option<Arc<Undo>>,
        (inputs, failed_params): (&[Input], FailedParams),
    ) -> Self {
        let kept = undo.iter().flat_map(|u| &u.params).filter_map(|&p| {
            let buffer = inputs.get(p as usize)?.buffer.as_ref().ok()?;
            Some((p, buffer.clone()))
        });
        Sink {
            backend,
            device,
            keep,
            graph,
            outputs,
            sites,
            kept: kept.collect(),
            undo,
            failed_params,
            first: None,
            lost: Vec::new(),
        }
    }

    /// Whether numbers have to be there if something fails.
    pub(crate) fn wants_numbers(&self) -> bool {
        self.undo.is_some()
    }

    /// Where an output is made.
    fn made_at(&self, output: usize) -> usize {
        self.graph.definition_index(self.graph.outputs()[output]).unwrap_or(0)
    }

    /// The run is over: outputs that are not there get what a failure leaves.
    pub(crate) fn finish(mut self, numbers: &[u64]) {
        if self.lost.is_empty() && self.first.is_none() {
            return;
        }
        if let Some((node, error)) = &mut self.first {
            // A failure of this program gets the site of this very step's recording.
            let site = self.sites.get(*node).copied().unwrap_or_default();
            let mut told = ExecError { site, node: ExecError::ELSEWHERE, ..(**error).clone() };
            told.largest.iter_mut().for_each(|v| v.site = self.sites.get(v.node).copied().unwrap_or_default());
            *error = Arc::new(told);
            (self.keep)(error);
        }
        let (lost, first) = (std::mem::take(&mut self.lost), self.first.clone());
        let failed_at = first.as_ref().map_or(usize::MAX, |(node, _)| *node);
        let (tainted, mut again) = (self.tainted(), Again::default());
        let mut plans = Vec::with_capacity(lost.len());
        for (output, error) in lost {
            let id = self.graph.outputs()[output];
            let came_in = error.filter(|e| e.node >= self.sites.len());
            let (error, before) = match (&first, came_in) {
                // Uninitialised memory (`empty`) is there whatever failed, since a tensor from before the failing call
                // may show it; only its value was recorded later.
                (Some((_, first)), _) if self.graph.definition(id).is_some_and(|n| n.op() == Op::empty()) => {
                    (first.clone(), again.before(id, self.graph))
                }
                (Some((_, first)), _) if self.made_at(output) >= failed_at => {
                    let untainted = self.failed_params.is_empty();
                    (first.clone(), self.before(output, (failed_at, untainted), &tainted, &mut again))
                }
                (_, Some(error)) => {
                    let before = self.before(output, (failed_at, false), &tainted, &mut again);
                    if matches!(before, Before::There(..)) {
                        // The storage gets its earlier contents back, so reading it would not report the failure that
                        // came in from another program. The error is kept for the next wait to report.
                        (self.keep)(&error);
                    }
                    (error, before)
                }
                // The output comes before the operator that failed, but the run gave no value for it (the program was
                // refused, or the backend panicked), so the value is computed again.
                (Some((_, first)), None) => (first.clone(), again.before(id, self.graph)),
                (None, None) => continue,
            };
            plans.push((output, error, before));
        }
        let computed = self.compute(&again.values, numbers);
        for (output, error, before) in plans {
            let (source, past) = match before {
                Before::There(source, is) => (Some((source, is)), Past::Lost),
                Before::Not(past) => (None, past),
            };
            let given = source.and_then(|(source, is)| {
                let buffer = match source {
                    Source::Ready(buffer) => buffer,
                    Source::Again(i) => computed.get(i)?.clone()?,
                    Source::Memory => self.memory(&is)?,
                };
                let wanted = self.graph.layout(self.graph.outputs()[output]);
                undo::same_bytes(self.backend, self.device, buffer, (&is, wanted))
            });
            self.outputs[output].set(given.ok_or((error, past)));
        }
    }

    /// What the storage of an output held when the operator at `failed_at` failed. `untainted`: no failure came in from
    /// an earlier program. If one did, the answer is what the storage held before the first write of this program.
    fn before(
        &self,
        output: usize,
        (failed_at, untainted): (usize, bool),
        tainted: &[bool],
        again: &mut Again,
    ) -> Before {
        let mut there = |version: &Version| match version {
            Version::Data(cell, layout) => match cell.data() {
                Some(buffer) => Before::There(Source::Ready(buffer), layout.clone()),
                None => Before::Not(cell.past().unwrap_or(Past::Lost)),
            },
            Version::Value(id) => match id.as_param() {
                Some(p) => match self.kept(p) {
                    Some(buffer) => Before::There(Source::Ready(buffer.clone()), self.graph.layout(*id).clone()),
                    None => Before::Not(self.past(p)),
                },
                None => again.before(*id, self.graph),
            },
            Version::LetGo => Before::Not(Past::Lost),
            Version::Unwritten(_) => {
                Before::There(Source::Memory, self.graph.layout(self.graph.outputs()[output]).clone())
            }
        };
        let Some(chain) = self.undo.as_ref().and_then(|undo| undo.chain(output)) else {
            return Before::Not(Past::Nothing);
        };
        if !untainted {
            // The failing operator belongs to an earlier program, so eager execution would have reached none of these
            // writes.
            let start = chain.versions.first().filter(|v| chain.from_start && !self.is_made_here(v));
            if let Some(start) = start {
                return there(start);
            }
            if !chain.whole {
                // Versions are missing, so the contents are lost, unless the oldest version is itself a failure: then
                // what was in its place is known.
                let past = match chain.versions.first() {
                    Some(Version::Value(id)) => id.as_param().map(|p| self.past(p)),
                    Some(Version::Data(cell, _)) => cell.past(),
                    _ => None,
                };
                return Before::Not(past.unwrap_or(Past::Lost));
            }
        }
        if !chain.whole && !self.is_noted(failed_at, chain) {
            return Before::Not(Past::Lost);
        }
        // The newest version that existed then is the answer even if its data is lost: an older one would be wrong.
        let of_now = |v: &&Version| match v {
            Version::Value(id) => {
                self.graph.definition_index(*id).is_none_or(|n| n < failed_at) && !tainted[self.graph.slot(*id)]
            }
            Version::Data(..) | Version::LetGo => true,
            Version::Unwritten(from) => *from <= failed_at,
        };
        chain.versions.iter().rev().find(of_now).map_or(Before::Not(Past::Nothing), &mut there)
    }

    fn is_made_here(&self, version: &Version) -> bool {
        matches!(version, Version::Value(id) if id.as_param().is_none())
    }

    /// Whether the versions of a chain include what the storage held when the operator at `failed_at` failed. Values
    /// that were replaced without an operator that can fail in between are not noted. But an operator that cannot fail
    /// by its values may still find no memory, and then the failure may lie between two such writes.
    fn is_noted(&self, failed_at: usize, chain: &Chain) -> bool {
        let can_fail = |at: usize| self.graph.nodes().get(at).is_none_or(|node| !node.op().has(Props::TOTAL));
        let first = chain.first.and_then(|value| self.graph.definition_index(value));
        can_fail(failed_at) || first.is_some_and(|first| failed_at <= first)
    }

    /// What was in the place of a parameter before it failed; lost for a parameter that did not fail and is not kept.
    fn past(&self, param: usize) -> Past {
        let failed = self.failed_params.iter().find(|(p, _)| *p as usize == param);
        failed.map_or(Past::Lost, |(_, past)| *past)
    }

    fn kept(&self, param: usize) -> Option<&Buffer> {
        self.kept.iter().find(|(p, _)| *p as usize == param).map(|(_, buffer)| buffer)
    }

    /// By slot: what depends on parameters that came in as failures.
    fn tainted(&self) -> Vec<bool> {
        let graph = self.graph;
        let mut tainted = vec![false; graph.value_count()];
        self.failed_params.iter().for_each(|(p, _)| tainted[*p as usize] = true);
        for node in graph.nodes() {
            if node.operands.iter().any(|&o| tainted[graph.slot(o)]) {
                node.result_ids().for_each(|r| tainted[graph.slot(r)] = true);
            }
        }
        tainted
    }

    /// Computes values of the program again, from the parameters that are kept. Values that need a collective are
    /// `None`, because the other processes would not take part in it once more.
    fn compute(&self, values: &[ValueId], numbers: &[u64]) -> Vec<Option<Buffer>> {
        let is_alone = |value: &ValueId| {
            let needed = self.graph.nodes().iter().zip(self.graph.needs([*value]));
            !needed.into_iter().any(|(node, needed)| needed && node.op().has(Props::COLLECTIVE))
        };
        let alone: Vec<ValueId> = values.iter().copied().filter(is_alone).collect();
        let mut computed = self.compute_alone(&alone, numbers).into_iter();
        let had = |value| if alone.contains(value) { computed.next()? } else { None };
        values.iter().map(had).collect()
    }

    fn compute_alone(&self, values: &[ValueId], numbers: &[u64]) -> Vec<Option<Buffer>> {
        // The runtime numbers were kept only if there is an undo plan.
        if values.is_empty() || numbers.len() != self.graph.number_count() {
            return vec![None; values.len()];
        }
        let (graph, params) = self.graph.part(values);
        let kept = params.iter().map(|&p| self.kept(p).cloned());
        let inputs = kept.map(|b| Some(Input { buffer: Ok(b?), donated: false })).collect::<Option<SmallVec<_>>>();
        match inputs {
            Some(params) => {
                self.run(graph, Inputs { params, numbers: SmallVec::from_slice(numbers), single_threaded: false })
            }
            None => vec![None; values.len()],
        }
    }

    /// Memory of this layout.
    fn memory(&self, layout: &LayoutRef) -> Option<Buffer> {
        let mut b = GraphBuilder::new();
        let signature = Signature::new(Op::empty(), SmallVec::new(), SmallVec::from_iter([layout.clone()]));
        let value = b.push(signature, &[], 0, SiteId::default());
        self.run(b.finish(vec![value]), Inputs::new([], [])).pop()?
    }

    /// Compiles and runs a graph; `None` for each output that it did not give.
    fn run(&self, graph: Graph, inputs: Inputs) -> Vec<Option<Buffer>> {
        let mut found = Found(vec![None; graph.outputs().len()]);
        let executable = self.backend.compile(self.device, &Arc::new(graph));
        if let Ok(executable) = executable {
            let run = AssertUnwindSafe(|| executable.execute(inputs, &mut found));
            // Outputs that were given before a panic are valid, so the panic itself is ignored.
            let _ = catch_unwind(run);
        }
        found.0
    }

    /// The backend panicked: outputs that it has not given yet are lost.
    pub(crate) fn panicked(&mut self) {
        let error = ExecError::new("program", ErrorClass::Runtime, "the backend panicked; see stderr");
        let error = Arc::new(error.at(0));
        self.first = Some((0, error.clone()));
        for (output, cell) in self.outputs.iter().enumerate() {
            if !cell.is_ready() && !self.lost.iter().any(|(o, _)| *o == output) {
                self.lost.push((output, Some(error.clone())));
            }
        }
    }
}

impl OutputSink for Sink<'_> {
    fn output(&mut self, index: usize, result: Told) {
        match result {
            Ok(buffer) if self.first.as_ref().is_none_or(|(node, _)| self.made_at(index) < *node) => {
                self.outputs[index].set(Ok(buffer));
            }
            Ok(_) => self.lost.push((index, None)),
            Err(error) => {
                self.failed(&error);
                self.lost.push((index, Some(error)));
            }
        }
    }

    fn failed(&mut self, error: &Arc<ExecError>) {
        if error.node < self.sites.len() && self.first.as_ref().is_none_or(|(node, _)| error.node < *node) {
            self.first = Some((error.node, error.clone()));
        }
    }

    fn safe(&mut self) {
        if self.lost.is_empty() && self.first.is_none() && self.failed_params.is_empty() {
            self.undo.iter_mut().for_each(Undo::let_go);
            self.kept = Vec::new();
        }
    }

    fn still_there(&mut self, input: usize, buffer: &Buffer) {
        let needed = self.undo.iter().any(|undo| undo.params.contains(&(input as u32)));
        if needed && self.kept(input).is_none() {
            self.kept.push((input as u32, buffer.clone()));
        }
    }
}

/// Where an output's data is to come from.
enum Source {
    Ready(Buffer),
    /// A value that is computed again.
    Again(usize),
    /// Memory that nobody wrote to.
    Memory,
}

/// Values to compute again, each once.
#[derive(Default)]
struct Again {
    values: Vec<ValueId>,
}

impl Again {
    fn before(&mut self, value: ValueId, graph: &Graph) -> Before {
        let at = self.values.iter().position(|&v| v == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        Before::There(Source::Again(at), graph.layout(value).clone())
    }
}

struct Found(Vec<Option<Buffer>>);

impl OutputSink for Found {
    fn output(&mut self, index: usize, result: Told) {
        self.0[index] = result.ok();
    }
}
