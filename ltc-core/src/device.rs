//! One device of a session: recording and cutting.
//!
//! # Why a cut is exact under threads
//! `sync` runs under the device's cut lock. It takes the tape, and what is alive and pending on it is the set to run.
//! Another thread may record meanwhile: its nodes go onto the fresh tape and may use nodes of the set, but to do so it
//! holds them, so canonicalisation sees a holder outside the set and makes them outputs; they turn into placeholders in
//! place, and the new node finds data where a pending operand was. A node with no holder outside the set cannot gain one.
//! No lock is held while the backend compiles except the cut lock, which recording never takes.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use ltc_backend::{BackendError, Buffer, DeviceIndex, ExecError, FallbackReason, HostTensor};
use ltc_ir::{
    ArgWriter, Canonical, Graph, LayoutRef, NumberWords, Op, Operands, Scalar, Signature, SignatureRef, SiteId,
};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::{
    Argument, DataCell, TraceValue,
    cache::Program,
    error::Error,
    event::{Event, SyncReason},
    executor::{self, Executor, Job},
    family::{self, Sizes},
    handover::{Hold, Place},
    lock::{Lock, Locked},
    metrics,
    session::Inner,
    storage::Storage,
    tape::{Taken, Tape},
};

/// A device of a session. Cheap to clone; recording and cutting may happen on any thread.
#[derive(Clone)]
pub struct Device(Arc<State>);

pub(crate) struct State {
    session: Arc<Inner>,
    index: DeviceIndex,
    tape: Lock<Tape>,
    cut: Lock<Cut>,
    epoch: AtomicU32,
    executor: Executor,
    /// State of the generator native tensors draw from; seeded with 0 on first use.
    generator: Mutex<Option<TraceValue>>,
}

/// What cuts need, kept from one to the next for its memory.
#[derive(Default)]
struct Cut {
    taken: Taken,
    trace: Canonical<Arc<DataCell>>,
}

impl Device {
    pub(crate) fn new(session: Arc<Inner>, index: DeviceIndex) -> Self {
        let c = &session.config;
        let executor = Executor::new(
            session.backend.clone(),
            index,
            session.counters.clone(),
            session.events.clone(),
            c.queue_depth,
        );
        let tape = Lock::new(Tape::new(c));
        Device(Arc::new(State {
            session,
            index,
            tape,
            cut: Lock::default(),
            epoch: AtomicU32::new(0),
            executor,
            generator: Mutex::new(None),
        }))
    }

    /// Index among the session's devices.
    pub fn index(&self) -> u16 {
        self.0.index.0
    }

    /// Records an operation with one result; `operands` and `numbers` in the order its arguments name them.
    #[inline]
    pub fn record(
        &self,
        signature: &SignatureRef,
        operands: Operands<Arc<DataCell>>,
        numbers: NumberWords,
        site: SiteId,
    ) -> TraceValue {
        let mut tape = self.0.tape.lock();
        let value = tape.record(signature, operands, numbers, site);
        self.pushed(tape);
        value
    }

    /// Records an operation with any number of results; returns a value for each.
    pub fn record_results(
        &self,
        signature: &SignatureRef,
        operands: Operands<Arc<DataCell>>,
        numbers: NumberWords,
        site: SiteId,
    ) -> SmallVec<[TraceValue; 2]> {
        let count = signature.results().len();
        // In one go: a cut sees the node with all its results or not at all.
        let mut tape = self.0.tape.lock();
        let node = tape.record(signature, operands, numbers, site);
        let values = match count {
            1 => SmallVec::from_iter([node]),
            _ => (0..count)
                .map(|i| tape.record(&signature.part(i), Operands::from_iter([node.clone()]), SmallVec::new(), site))
                .collect(),
        };
        self.pushed(tape);
        values
    }

    #[inline]
    fn pushed(&self, tape: Locked<'_, Tape>) {
        let due = tape.is_due();
        drop(tape);
        if due {
            self.check_node_limit();
        }
    }

    #[cold]
    fn check_node_limit(&self) {
        if self.0.tape.lock().over_node_limit() {
            metrics::add(&self.0.session.counters.auto_cuts, 1);
            self.cut_reporting_later(SyncReason::NodeLimit);
        }
    }

    /// Cuts where no caller can take an error: outputs carry it.
    fn cut_reporting_later(&self, reason: SyncReason) {
        if let Err(e) = self.cut_now(reason) {
            tracing::error!("a cut by a limit failed: {e}");
        }
        self.await_room_whatever_happens();
    }

    pub(crate) fn await_room_whatever_happens(&self) {
        self.0.executor.await_room(executor::NEVER);
    }

    /// A leaf for a buffer that is on the device already.
    pub fn import(&self, layout: LayoutRef, buffer: Buffer) -> TraceValue {
        let bytes = layout.storage_bytes();
        let session = &self.0.session;
        metrics::add(&session.counters.uploads, 1);
        metrics::add(&session.counters.upload_bytes, bytes as u64);
        session.events.push(|| Event::Upload { bytes });
        let value = TraceValue::data(layout, DataCell::ready(buffer));
        if self.0.tape.lock().arrived(bytes) {
            self.check_byte_limit();
        }
        value
    }

    #[cold]
    fn check_byte_limit(&self) {
        let over = {
            let _cut = self.0.cut.lock();
            self.0.tape.lock().over_byte_limit(self.next_epoch())
        };
        if over {
            metrics::add(&self.0.session.counters.auto_cuts, 1);
            self.cut_reporting_later(SyncReason::ByteLimit);
            // What it holds shall be gone before as much comes again.
            self.0.executor.finish(executor::NEVER);
        }
    }

    /// Copies a host tensor to the device.
    pub fn upload(&self, host: &HostTensor) -> Result<TraceValue, Error> {
        let buffer = self.0.session.backend.upload(self.0.index, host)?;
        Ok(self.import(host.layout.clone(), buffer))
    }

    /// Sends everything pending to the device (LTC: `mark_step`). Does not wait for it.
    pub fn sync(&self) -> Result<(), Error> {
        self.cut(SyncReason::Explicit)
    }

    /// Sends what these values need to the device, and nothing else. Does not wait for it.
    pub fn sync_values(&self, values: &[TraceValue]) -> Result<(), Error> {
        self.cut_some(values, SyncReason::Explicit)
    }

    /// The data of a value: a cut point for everything pending, so that a loop that reads its loss each step runs one
    /// program per step, and a wait for just this value.
    pub fn value(&self, value: &TraceValue) -> Result<Buffer, Error> {
        if value.is_pending() {
            if let Some(part) = self.part_of_data(value) {
                return part;
            }
            self.cut(SyncReason::Read)?;
        }
        self.wait_for(value)
    }

    /// A value that is a dense part of data: there is nothing to compute, so nothing is cut.
    fn part_of_data(&self, value: &TraceValue) -> Option<Result<Buffer, Error>> {
        let base = value.inspect(|operands, _| operands.first().cloned(), |_| None).filter(|b| !b.is_pending())?;
        let offset = ltc_ir::part_offset(value, &base).filter(|_| self.takes_parts())?;
        let part = |whole| Ok(self.0.session.backend.part(self.0.index, &whole, value.layout(), offset)?);
        Some(self.wait_for(&base).and_then(part))
    }

    /// The data of values: sends what they need and nothing else, and waits for them.
    pub fn values_alone(&self, values: &[TraceValue]) -> Result<Vec<Buffer>, Error> {
        if values.iter().any(TraceValue::is_pending) {
            self.cut_some(values, SyncReason::Fallback)?;
        }
        values.iter().map(|v| self.wait_for(v)).collect()
    }

    fn wait_for(&self, value: &TraceValue) -> Result<Buffer, Error> {
        let cell = value.inspect(|_, _| None, |cell| Some(cell.clone()));
        let cell = cell.expect("invariant: a cut leaves no value pending that somebody holds");
        let session = &self.0.session;
        metrics::add(&session.counters.downloads, 1);
        session.events.push(|| Event::Download);
        let start = Instant::now();
        self.0.executor.handover.needed(start);
        if cell.is_ready() {
            return cell.wait().map_err(|e| self.exec_error(e));
        }
        let result = cell.wait_unless(&|| session.is_interrupted());
        session.counters.wait.add(start.elapsed());
        result.ok_or(Error::Interrupted)?.map_err(|e| self.exec_error(e))
    }

    /// Copies a value to the host.
    pub fn download(&self, value: &TraceValue) -> Result<HostTensor, Error> {
        let buffer = self.value(value)?;
        Ok(self.0.session.backend.download(self.0.index, &buffer, value.layout())?)
    }

    /// Waits until the device has done everything sent to it. Returns the first execution error that no read has
    /// reported yet.
    pub fn wait(&self) -> Result<(), Error> {
        let done = self.0.executor.wait_idle(&|| self.0.session.is_interrupted());
        done.ok_or(Error::Interrupted)?.map_err(|e| self.exec_error(e))?;
        Ok(self.0.session.backend.synchronize(self.0.index)?)
    }

    fn exec_error(&self, error: Arc<ExecError>) -> Error {
        self.0.executor.reported(&error);
        let site = self.0.session.describe_site(error.site);
        Error::Exec { error, site }
    }

    pub(crate) fn describe_site(&self, site: SiteId) -> Option<String> {
        self.0.session.describe_site(site)
    }

    /// Counts an operator that ran eagerly.
    pub fn note_fallback(&self, op: &str, reason: FallbackReason) {
        let session = &self.0.session;
        session.counters.note_fallback(op, reason);
        session.events.push(|| Event::Fallback { op: op.to_owned(), reason });
        tracing::debug!(op, reason = reason.as_str(), "eager fallback");
    }

    /// Sets a generator's state by seed: recorded, so draws before and after keep their order.
    pub fn seed(&self, generator: &Storage, seed: u64, site: SiteId) {
        generator.set(self.seeded(seed, site));
    }

    fn seeded(&self, seed: u64, site: SiteId) -> TraceValue {
        let (words, numbers) = ArgWriter::new().number(Scalar::Int(seed as i64)).finish();
        let state = ltc_ir::Layout::contiguous(ltc_ir::DType::RngState, &[]).into();
        let signature = Signature::new(Op::seed(), words, SmallVec::from_iter([state]));
        self.record(&signature, Operands::new(), numbers, site)
    }

    /// Seeds the generator that native tensors of this device draw from.
    pub fn manual_seed(&self, seed: u64) {
        *self.0.generator.lock() = Some(self.seeded(seed, SiteId::default()));
    }

    /// The state native tensors draw from next; whoever holds it draws alone.
    pub(crate) fn generator(&self) -> MappedMutexGuard<'_, TraceValue> {
        MutexGuard::map(self.0.generator.lock(), |s| s.get_or_insert_with(|| self.seeded(0, SiteId::default())))
    }

    fn next_epoch(&self) -> u32 {
        // 0 marks nothing.
        match self.0.epoch.fetch_add(1, Ordering::Relaxed).wrapping_add(1) {
            0 => self.next_epoch(),
            e => e,
        }
    }

    fn cut(&self, reason: SyncReason) -> Result<(), Error> {
        self.cut_now(reason)?;
        self.await_room()
    }

    /// Waits while too many programs are queued. No lock is held here: an interrupted wait asks the language binding, which
    /// may want a lock of its own.
    fn await_room(&self) -> Result<(), Error> {
        let has_room = self.0.executor.await_room(&|| self.0.session.is_interrupted());
        if has_room { Ok(()) } else { Err(Error::Interrupted) }
    }

    fn cut_now(&self, reason: SyncReason) -> Result<(), Error> {
        let Cut { taken, trace } = &mut *self.0.cut.lock();
        self.0.tape.lock().take(taken);
        if taken.is_empty() {
            return Ok(());
        }
        let sent = self.send(trace, std::mem::take(&mut taken.set), reason);
        taken.set = trace.release();
        let session = &self.0.session;
        metrics::add(&session.counters.reused_nodes, taken.reused);
        if !session.reuse_nodes.load(Ordering::Relaxed) {
            taken.set.clear();
        }
        taken.leave(&self.0.tape);
        sent
    }

    fn cut_some(&self, values: &[TraceValue], reason: SyncReason) -> Result<(), Error> {
        self.cut_some_now(values, reason)?;
        self.await_room()
    }

    fn cut_some_now(&self, values: &[TraceValue], reason: SyncReason) -> Result<(), Error> {
        let Cut { trace, .. } = &mut *self.0.cut.lock();
        let epoch = self.next_epoch();
        let reached = ltc_ir::reachable(values, epoch);
        if reached.is_empty() {
            return Ok(());
        }
        drop(reached);
        // All results of a reached operation come along: they exist once it ran.
        let set = self.0.tape.lock().pending();
        let set = set.into_iter().filter(|v| v.is_reached(epoch)).collect();
        let sent = self.send(trace, set, reason);
        drop(trace.release());
        self.0.tape.lock().forget_resolved();
        sent
    }

    /// Computes what of these nodes somebody holds. They are left in `trace`.
    fn send(
        &self,
        trace: &mut Canonical<Arc<DataCell>>,
        set: Vec<TraceValue>,
        reason: SyncReason,
    ) -> Result<(), Error> {
        if set.is_empty() {
            return Ok(());
        }
        let session = &self.0.session;
        let start = Instant::now();
        trace.fill(set, self.next_epoch(), self.takes_parts());
        if !session.config.donation {
            trace.params.iter_mut().for_each(|p| p.donated = false);
        }
        session.counters.canonicalize.add(start.elapsed());
        if trace.outputs.is_empty() {
            return Ok(());
        }
        let donated = trace.params.iter().filter(|p| p.donated).count();
        metrics::add(&session.counters.syncs, 1);
        metrics::add(&session.counters.recorded, trace.node_count() as u64);
        let parts = trace.params.iter().filter(|p| p.part_at.is_some()).count();
        metrics::add(&session.counters.donated, donated as u64);
        metrics::add(&session.counters.parts, parts as u64);
        session.events.push(|| Event::Sync {
            reason,
            nodes: trace.node_count(),
            params: trace.params.len(),
            donated,
            outputs: trace.outputs.len(),
        });
        let program = match self.program(trace) {
            Ok(program) => program,
            Err(error) => {
                self.poison(trace, &error);
                return Err(error.into());
            }
        };
        let job = self.bind(trace, program);
        self.submit(job, matches!(reason, SyncReason::Read | SyncReason::Fallback));
        Ok(())
    }

    /// Runs a job here if that is faster than handing it over, or if the caller is going to wait for it anyway.
    pub(crate) fn submit(&self, mut job: Job, awaited: bool) {
        let session = &self.0.session;
        let config = &session.config;
        metrics::add(&session.counters.executions, 1);
        let hash = job.program.graph.hash();
        let event = |inline| session.events.push(|| Event::Execute { hash, inline });
        let program = job.program.clone();
        let handover = &self.0.executor.handover;
        let mut narrow = false;
        let interrupts = session.interrupts();
        let mut here = || match handover.place(&program, awaited, config.overlap, interrupts) {
            Place::Executor => false,
            Place::Narrow => {
                narrow = true;
                metrics::add(&session.counters.overlapped_executions, 1);
                false
            }
            Place::HereIfIdle => self.0.executor.is_idle(),
            Place::Here => self.0.executor.finish(if interrupts { &|| true } else { executor::NEVER }),
        };
        let time = if !config.async_execution {
            event(true);
            self.0.executor.run_inline(job)
        } else if config.inline_execution && here() {
            event(true);
            metrics::add(&session.counters.inline_executions, 1);
            self.0.executor.run_inline(job)
        } else {
            event(false);
            job.narrow = narrow;
            self.0.executor.submit(job)
        };
        handover.sent(&program, narrow, time);
    }

    /// The canonical form of what these pending values need, with exactly them as outputs.
    pub(crate) fn canonical_for(&self, values: &[TraceValue], parts: bool) -> Canonical<Arc<DataCell>> {
        let _cut = self.0.cut.lock();
        let reached = self.next_epoch();
        drop(ltc_ir::reachable(values, reached));
        let mut set = self.0.tape.lock().pending();
        set.retain(|v| v.is_reached(reached));
        ltc_ir::canonicalize_for(set, values, self.next_epoch(), parts)
    }

    /// Whether parameters of programs may be parts of data.
    pub(crate) fn takes_parts(&self) -> bool {
        self.0.session.config.parts && self.0.session.backend.has_parts()
    }

    /// The one place where a cache miss can happen.
    fn program(&self, trace: &Canonical<Arc<DataCell>>) -> Result<Arc<Program>, BackendError> {
        let session = &self.0.session;
        let found = session.cache.lock().get(self.0.index, trace);
        if let Some(program) = found {
            metrics::add(&session.counters.cache_hits, 1);
            session.events.push(|| Event::CacheHit { hash: trace.hash() });
            // A resized program keeps decisions of the sizes it was compiled for: its text may differ.
            if session.config.check_cache && !program.resized {
                let again = session.backend.compile(self.0.index, &Arc::new(trace.to_graph()))?;
                if again.text() != program.executable.text() {
                    return Err(BackendError::Device("cache check: a hit compiles to another program".into()));
                }
            }
            return Ok(program);
        }
        let program = self.compile(&Arc::new(trace.to_graph()))?;
        session.cache.lock().insert(self.0.index, program.clone());
        Ok(program)
    }

    /// A program of this graph: one for other sizes, resized, or a new one.
    pub(crate) fn compile(&self, graph: &Arc<Graph>) -> Result<Arc<Program>, BackendError> {
        let session = &self.0.session;
        let Some(sizes) = session.config.symbolic.then(|| Sizes::of(self.0.index, graph)) else {
            return self.compile_anew(graph);
        };
        if let Some(program) = family::resize(session, &sizes) {
            return Ok(program);
        }
        let program = self.compile_anew(graph)?;
        session.families.lock().insert(&sizes, &program);
        Ok(program)
    }

    fn compile_anew(&self, graph: &Arc<Graph>) -> Result<Arc<Program>, BackendError> {
        let session = &self.0.session;
        let start = Instant::now();
        let executable = session.backend.compile(self.0.index, graph)?;
        session.counters.compile.add(start.elapsed());
        metrics::add(&session.counters.compiles, 1);
        session.events.push(|| Event::Compile { hash: graph.hash(), nodes: graph.nodes().len() });
        tracing::debug!(hash = %graph.hash(), nodes = graph.nodes().len(), "compiled");
        Ok(Arc::new(Program::new(graph.clone(), executable, false)))
    }

    /// Turns outputs into placeholders and gathers what the program runs on.
    fn bind(&self, trace: &mut Canonical<Arc<DataCell>>, program: Arc<Program>) -> Job {
        let sites = trace.sites().collect();
        let outputs: SmallVec<[_; 4]> = trace.outputs.iter().map(|_| DataCell::in_flight()).collect();
        for (value, cell) in trace.outputs.iter().zip(&outputs) {
            value.resolve(cell.clone());
        }
        let params = trace.params.drain(..).map(Argument::from).collect();
        let numbers = trace.numbers.as_slice().into();
        Job { program, params, numbers, outputs, sites, narrow: false }
    }

    /// Nothing of this cut can be computed: its outputs say why.
    fn poison(&self, trace: &Canonical<Arc<DataCell>>, error: &BackendError) {
        let error = Arc::new(ExecError {
            op: "compile".into(),
            class: ltc_ir::ErrorClass::Runtime,
            message: error.to_string(),
            node: ExecError::ELSEWHERE,
            site: SiteId::default(),
        });
        for value in &trace.outputs {
            let cell = DataCell::in_flight();
            cell.set(Err(error.clone()));
            value.resolve(cell);
        }
    }

    /// Sends everything pending and waits until it has run, without asking how that went: before a fork.
    pub fn quiesce(&self) {
        self.cut_reporting_later(SyncReason::Explicit);
        self.0.executor.finish(executor::NEVER);
    }

    /// Takes what other threads could hold of it.
    pub(crate) fn hold(&self) -> Held<'_> {
        let cut = self.0.cut.lock();
        let executor = self.0.executor.hold();
        let handover = self.0.executor.handover.hold();
        Held { executor, _rest: (cut, handover, self.0.tape.lock()) }
    }

    /// How many operations are pending and alive.
    pub fn pending_count(&self) -> usize {
        self.0.tape.lock().pending().iter().filter(|v| v.result_index().is_none()).count()
    }

    /// Values that are pending and alive, in recording order.
    pub fn pending(&self) -> Vec<TraceValue> {
        self.0.tape.lock().pending()
    }
}

type Rest<'a> = (Locked<'a, Cut>, Hold<'a>, Locked<'a, Tape>);

/// A device that only this thread can use, with nothing in flight.
pub(crate) struct Held<'a> {
    executor: executor::Held<'a>,
    _rest: Rest<'a>,
}

impl Held<'_> {
    /// In a forked child: the next program starts a thread.
    pub(crate) fn begin_anew(&mut self) {
        self.executor.begin_anew();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}:{})", self.0.session.backend.name(), self.0.index.0)
    }
}
