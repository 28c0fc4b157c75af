//! A recorded computation as an object: taken out of the trace without running it, run any number of times.
//!
//! What PyTorch's LTC spreads over `get_graph_hash`, `get_tensors_ts_device_data_node` and `run_cached_graph`, and the
//! base of step replay: no recording, no canonicalisation, no cache look-up.

use std::sync::{Arc, OnceLock};

use ltc_backend::{BackendError, Buffer};
use ltc_ir::{Graph, GraphNode, Hash128, LayoutRef, Signature, SignatureRef, SiteId};
use smallvec::SmallVec;

use crate::{
    TraceValue,
    argument::{Argument, Arguments},
    cache::Program,
    cell::DataCell,
    device::Device,
    error::Error,
    executor::Job,
    moment::Moment,
    undo::{Before, Repeated},
};

/// A computation over data leaves. Cheap to share; running it does not change it.
#[derive(Debug)]
pub struct Extracted {
    device: Device,
    graph: Arc<Graph>,
    numbers: Vec<u64>,
    sites: Vec<SiteId>,
    /// Of leaves for the outputs.
    outputs: Vec<SignatureRef>,
    program: OnceLock<Arc<Program>>,
    undo: Repeated,
}

impl Device {
    /// The computation of these pending values, in this order, and the data its parameters stand for; nothing runs.
    /// `None`: not all are pending, since another thread has sent some.
    pub fn extract(&self, values: &[TraceValue]) -> Option<(Extracted, Vec<Arc<DataCell>>)> {
        let (extracted, arguments) = self.extract_from(values, false, None)?;
        Some((extracted, arguments.into_iter().map(|a| a.data).collect()))
    }

    /// The data of a value, computed on the side: what is pending stays so, and is computed again when it is sent.
    /// `None` where others would notice that ([`Extracted::noticed`]).
    ///
    /// # Errors
    /// Fails where what the value needs does not compile.
    pub fn computed_aside(&self, value: &TraceValue) -> Result<Option<TraceValue>, Error> {
        let Some((extracted, data)) = self.extract(std::slice::from_ref(value)) else {
            return Ok(Some(value.clone()));
        };
        if extracted.noticed().is_some() {
            return Ok(None);
        }
        let mut results = extracted.placeholders();
        extracted.run(data.into_iter().map(Argument::whole).collect(), &results)?;
        Ok(Some(results.remove(0)))
    }

    /// As [`Device::extract`], if nothing of it ran since then, and no barrier came between. `slices`: parameters may
    /// be slices of data of which the computation reads nothing else.
    pub fn extract_bound(&self, values: &[TraceValue], slices: bool, since: Moment) -> Option<(Extracted, Arguments)> {
        self.extract_from(values, slices, Some(since))
    }

    fn extract_from(
        &self,
        values: &[TraceValue],
        slices: bool,
        since: Option<Moment>,
    ) -> Option<(Extracted, Arguments)> {
        let (trace, chains) = self.canonical_for(values, slices && self.takes_slices(), since)?;
        let graph = Arc::new(trace.to_graph());
        let extracted = Extracted {
            device: self.clone(),
            outputs: graph.outputs().iter().map(|id| Signature::data(graph.layout(*id).clone())).collect(),
            undo: Repeated::new(chains, &graph),
            graph,
            sites: trace.sites().collect(),
            numbers: trace.numbers,
            program: OnceLock::new(),
        };
        Some((extracted, trace.params.into_iter().map(Argument::from).collect()))
    }
}

impl Extracted {
    /// The name of an operator that others notice, if there is one: it cannot be run once more, or taken back. A
    /// collective of several processes is one, and whatever other packages define may be.
    pub fn noticed(&self) -> Option<&str> {
        self.graph().nodes().iter().map(|node| node.op()).find(|op| op.is_noticed()).map(|op| op.name())
    }

    /// The canonical graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Structural hash of the graph.
    pub fn hash(&self) -> Hash128 {
        self.graph.hash()
    }

    /// Runtime numbers it was recorded with.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Layouts of its parameters.
    pub fn params(&self) -> &[LayoutRef] {
        self.graph.params()
    }

    /// Where the user's program recorded each operation, in the order of the graph; `None` where that is not known.
    pub fn sites(&self) -> Vec<Option<String>> {
        self.sites.iter().map(|site| self.device.describe_site(*site)).collect()
    }

    /// Where the user's program recorded the operation that an output comes of; `None` where that is not known.
    pub fn site_of_output(&self, output: usize) -> Option<String> {
        self.site_at(self.graph.definition_index(self.graph.outputs()[output])?)
    }

    /// Where the user's program recorded the first operation that takes a parameter; `None` where that is not known.
    pub fn site_of_param(&self, param: usize) -> Option<String> {
        let takes = |node: &GraphNode| node.operands.iter().any(|v| v.as_param() == Some(param));
        self.site_at(self.graph.nodes().iter().position(takes)?)
    }

    fn site_at(&self, node: usize) -> Option<String> {
        self.sites.get(node).and_then(|site| self.device.describe_site(*site))
    }

    /// The backend's text of the compiled program; compiles it when it was not yet.
    ///
    /// # Errors
    /// Fails where the program does not compile.
    pub fn backend_text(&self) -> Result<String, Error> {
        Ok(self.program()?.executable.text())
    }

    fn program(&self) -> Result<&Arc<Program>, Error> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = self.device.compile(&self.graph)?;
        Ok(self.program.get_or_init(|| program))
    }

    /// Data leaves for the results of one run, in flight.
    pub fn placeholders(&self) -> SmallVec<[TraceValue; 4]> {
        self.outputs.iter().map(|leaf| TraceValue::leaf(leaf.clone(), DataCell::in_flight())).collect()
    }

    /// Runs it on other data, without waiting. `inputs`: of the parameters' layouts, or slices that are. `results`:
    /// from [`Extracted::placeholders`], one run each.
    ///
    /// # Errors
    /// Fails where inputs are not as many as the parameters. What does not compile, or fails while it runs, is told by
    /// the results.
    pub fn run(&self, inputs: Arguments, results: &[TraceValue]) -> Result<(), Error> {
        self.run_with(inputs, SmallVec::from_slice(&self.numbers), results, None)
    }

    /// Runs it on these buffers, one per parameter, after what was sent before, and waits for the results: on the
    /// calling thread, where programs may run on one.
    ///
    /// # Errors
    /// Fails where inputs are not as many as the parameters, with the first failure of the program, or where the wait
    /// is interrupted.
    pub fn run_here(&self, inputs: impl IntoIterator<Item = Buffer>) -> Result<Vec<Buffer>, Error> {
        let inputs = inputs.into_iter().map(|buffer| Argument::whole(DataCell::ready(buffer))).collect();
        let results = self.placeholders();
        self.submit(inputs, SmallVec::from_slice(&self.numbers), &results, None, true)?;
        results.iter().map(|value| self.device.value(value)).collect()
    }

    /// Whether what the storage held that this output goes to has to be told at each run ([`Before`]).
    pub fn asks_for(&self, output: usize) -> bool {
        self.undo.asks_for(output)
    }

    /// Runs it with other runtime numbers, as many as it was recorded with; otherwise as [`Extracted::run`]. `before`:
    /// results take the place of values in the storages they took it of when it was recorded, and get what was there if
    /// the run fails; this is what was there where it is asked for ([`Extracted::asks_for`]).
    ///
    /// # Errors
    /// As [`Extracted::run`].
    pub fn run_with(
        &self,
        inputs: Arguments,
        numbers: SmallVec<[u64; 8]>,
        results: &[TraceValue],
        before: Option<SmallVec<[Before; 2]>>,
    ) -> Result<(), Error> {
        self.submit(inputs, numbers, results, before, false)
    }

    fn submit(
        &self,
        inputs: Arguments,
        numbers: SmallVec<[u64; 8]>,
        results: &[TraceValue],
        before: Option<SmallVec<[Before; 2]>>,
        awaited: bool,
    ) -> Result<(), Error> {
        assert_eq!(numbers.len(), self.numbers.len(), "numbers of {}", self.hash());
        let wanted = self.graph.params().len();
        if inputs.len() != wanted {
            return Err(Error::InputCount { given: inputs.len(), wanted });
        }
        let cell = |v: &TraceValue| v.inspect(|_, _| unreachable!("invariant: placeholders are data"), Arc::clone);
        let outputs = results.iter().map(cell).collect();
        let sites = SmallVec::from_slice(&self.sites);
        let undo = before.and_then(|before| self.undo.plan(&inputs, &before));
        // Results are handed out already: what cannot be compiled fails as what cannot run.
        let program = match self.program() {
            Ok(program) => program.clone(),
            Err(error) => self.device.refused(&self.graph, &BackendError::Device(error.to_string())),
        };
        let job = Job { program, params: inputs, numbers, outputs, sites, number: 0, single_threaded: false, undo };
        self.device.submit(job, awaited);
        // Callers may hold locks that a language binding's threads want: this wait, for one program, is not given up.
        self.device.await_room_whatever_happens();
        Ok(())
    }

    /// Compiles the program if that was not done yet.
    ///
    /// # Errors
    /// Fails where the program does not compile.
    pub fn compile(&self) -> Result<(), Error> {
        self.program().map(drop)
    }
}
