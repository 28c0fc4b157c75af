//! One device of a session: recording and syncing.
//!
//! # Why a sync is exact under threads
//! `sync` runs under the device's sync lock. It takes the pending operations, and those that are alive are the set
//! to run. Another thread may record meanwhile: its nodes are pending for the next sync and may use nodes of the set,
//! but to do so it holds them, so canonicalisation sees a holder outside the set and makes them outputs; they turn into
//! placeholders in place, and the new node finds data where a pending operand was. A node with no holder outside the
//! set cannot gain one. No lock is held while the backend compiles except the sync lock, which recording never takes.

mod liveness;
mod wait;

use std::{fmt, sync::Arc, time::Instant};

use ltc_backend::{BackendError, Buffer, DeviceIndex};
use ltc_ir::{
    ArgWriter, Canonical, FallbackReason, Graph, LayoutRef, Op, Operands, Props, RuntimeScalars, Scalar, Signature,
    SignatureRef, SiteId,
};
use smallvec::SmallVec;

use crate::{
    TraceValue,
    argument::Argument,
    cache::Program,
    cell::DataCell,
    compile,
    error::Error,
    event::{Event, SyncReason},
    executor::{self, Executor, Job, Reached},
    handover::{Hold, RunOn},
    lock::{Lock, Locked},
    metrics,
    moment::Moment,
    pending_ops::{PendingOps, SyncSet},
    runtime::Runtime,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    undo::{Chain, Drawn, Journal, Log, Raises, Undo},
    wait::NEVER,
};
use liveness::{HeldLiveness, Liveness};

/// A device of a session. Cheap to clone; recording and syncing may happen on any thread.
#[derive(Clone)]
pub struct Device(Arc<State>);

pub(crate) struct State {
    runtime: Arc<Runtime>,
    index: DeviceIndex,
    pending_ops: Lock<PendingOps>,
    syncing: Lock<SyncState>,
    epoch: AtomicU32,
    /// Syncs so far of all that was pending.
    syncs: AtomicU64,
    executor: Executor,
    liveness: Liveness,
    /// State of the generator native tensors draw from; seeded with 0 on first use.
    generator: Mutex<Drawn>,
    /// What storages held before they were written, since the last sync.
    journal: Mutex<Journal>,
    /// Operations that can fail. Changed with the pending operations locked.
    raises: Raises,
}

/// What syncs need, kept from one to the next for its memory.
#[derive(Default)]
struct SyncState {
    set: SyncSet,
    trace: Canonical<Arc<DataCell>>,
    /// Marks that the executor reaches once all that is pending now has run.
    marks: Vec<Arc<Reached>>,
}

impl Device {
    pub(crate) fn new(runtime: Arc<Runtime>, index: DeviceIndex) -> Self {
        let c = &runtime.config;
        let executor = Executor::new(
            runtime.backend.clone(),
            index,
            runtime.counters.clone(),
            runtime.events.clone(),
            c.queue_depth,
        );
        let pending_ops = Lock::new(PendingOps::new(c));
        Device(Arc::new(State {
            runtime,
            index,
            pending_ops,
            syncing: Lock::default(),
            epoch: AtomicU32::new(0),
            syncs: AtomicU64::new(0),
            executor,
            liveness: Liveness::default(),
            generator: Mutex::default(),
            journal: Mutex::default(),
            raises: Raises::default(),
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
        numbers: RuntimeScalars,
        site: SiteId,
    ) -> TraceValue {
        let mut pending = self.0.pending_ops.lock();
        let value = pending.record(signature, operands, numbers, site);
        value.set_age(self.count_raises(signature));
        self.pushed(pending);
        value
    }

    /// How many operations that can fail were recorded, with one of this signature.
    #[inline]
    fn count_raises(&self, signature: &SignatureRef) -> u32 {
        self.0.raises.count(!signature.op().has(Props::TOTAL) || self.0.runtime.config.assume_faults)
    }

    /// How many operations that can fail were recorded since the last sync.
    #[inline]
    pub(crate) fn raises(&self) -> u32 {
        self.0.raises.now()
    }

    /// How many operations that can fail were ever recorded. Two equal counts mean that none came between them.
    pub(crate) fn ever_raised(&self) -> u32 {
        self.0.raises.ever()
    }

    /// Notes that `new` is the first value written to memory that has existed since [`Device::ever_raised`] was
    /// `since`.
    pub(crate) fn note_first(&self, log: &mut Log, since: u32, new: &TraceValue) {
        log.note_first(&self.0.journal, &self.0.raises, since, new);
    }

    /// Notes that a value took another's place in a storage; gives that back where nobody needs it.
    pub(crate) fn note(&self, log: &mut Log, old: TraceValue, new: &TraceValue) -> Option<TraceValue> {
        log.note(&self.0.journal, self.raises(), old, new)
    }

    /// Records an operation with any number of results; returns a value for each.
    pub fn record_results(
        &self,
        signature: &SignatureRef,
        operands: Operands<Arc<DataCell>>,
        numbers: RuntimeScalars,
        site: SiteId,
    ) -> SmallVec<[TraceValue; 2]> {
        let count = signature.results().len();
        // In one go: a sync sees the node with all its results or not at all.
        let mut pending = self.0.pending_ops.lock();
        let node = pending.record(signature, operands, numbers, site);
        let age = self.count_raises(signature);
        node.set_age(age);
        let values: SmallVec<[TraceValue; 2]> = match count {
            1 => SmallVec::from_iter([node]),
            _ => (0..count)
                .map(|i| pending.record(&signature.part(i), Operands::from_iter([node.clone()]), SmallVec::new(), site))
                .collect(),
        };
        values.iter().for_each(|v| v.set_age(age));
        self.pushed(pending);
        values
    }

    #[inline]
    fn pushed(&self, pending: Locked<'_, PendingOps>) {
        let due = pending.is_due();
        drop(pending);
        if due {
            self.check_node_limit();
        }
    }

    #[cold]
    fn check_node_limit(&self) {
        if self.0.pending_ops.lock().over_node_limit() {
            metrics::add(&self.0.runtime.counters.auto_syncs, 1);
            self.sync_reporting_later(SyncReason::NodeLimit);
        }
    }

    /// Syncs where no caller can take an error: outputs carry it.
    fn sync_reporting_later(&self, reason: SyncReason) {
        self.sync_now(reason);
        self.await_room_whatever_happens();
    }

    pub(crate) fn await_room_whatever_happens(&self) {
        self.0.executor.await_room(NEVER);
    }

    /// A leaf for a buffer that is on the device already.
    pub fn import(&self, layout: LayoutRef, buffer: Buffer) -> TraceValue {
        let bytes = layout.storage_bytes();
        let runtime = &self.0.runtime;
        metrics::add(&runtime.counters.uploads, 1);
        metrics::add(&runtime.counters.upload_bytes, bytes as u64);
        runtime.events.push(|| Event::Upload { bytes });
        let value = TraceValue::data(layout, DataCell::ready(buffer));
        if self.0.pending_ops.lock().arrived(bytes) {
            self.check_byte_limit();
        }
        value
    }

    #[cold]
    fn check_byte_limit(&self) {
        let over = {
            let _syncing = self.0.syncing.lock();
            self.0.pending_ops.lock().over_byte_limit(self.next_epoch())
        };
        if over {
            metrics::add(&self.0.runtime.counters.auto_syncs, 1);
            self.sync_reporting_later(SyncReason::ByteLimit);
            // The memory that pending work retains must be freed before the caller uploads as much again.
            self.0.executor.finish(NEVER);
        }
    }

    /// Sends everything pending to the device (LTC: `mark_step`). Does not wait for it.
    ///
    /// # Errors
    /// Fails where the program does not compile, or a wait for room in the queue is interrupted.
    pub fn sync(&self) -> Result<(), Error> {
        self.sync_for(SyncReason::Explicit)
    }

    /// Sends what these values need to the device, and nothing else. Does not wait for it.
    ///
    /// # Errors
    /// As [`Device::sync`].
    pub fn sync_values(&self, values: &[TraceValue]) -> Result<(), Error> {
        self.sync_some(values, SyncReason::Explicit)
    }

    /// A site in words, where that is known.
    pub fn describe_site(&self, site: SiteId) -> Option<String> {
        self.0.runtime.describe_site(site)
    }

    /// Counts an operator that ran eagerly.
    pub fn note_fallback(&self, op: &str, reason: FallbackReason) {
        let runtime = &self.0.runtime;
        runtime.counters.note_fallback(op, reason);
        runtime.events.push(|| Event::Fallback { op: op.to_owned(), reason });
        tracing::debug!(op, reason = reason.as_str(), "eager fallback");
    }

    pub(crate) fn seeded(&self, seed: u64, site: SiteId) -> TraceValue {
        let (words, numbers) = ArgWriter::new().number(Scalar::Int(seed as i64)).finish();
        let state = ltc_ir::Layout::contiguous(ltc_ir::DType::RngState, &[]).into();
        let signature = Signature::new(Op::seed(), words, SmallVec::from_iter([state]));
        self.record(&signature, Operands::new(), numbers, site)
    }

    /// Seeds the generator that native tensors of this device draw from.
    pub fn manual_seed(&self, seed: u64) {
        let state = self.seeded(seed, SiteId::default());
        self.draw_on(&mut self.generator(), state);
    }

    /// What native tensors draw from; whoever holds it draws alone.
    pub(crate) fn generator(&self) -> MutexGuard<'_, Drawn> {
        self.0.generator.lock()
    }

    /// The state to draw from next.
    pub(crate) fn drawn_state<'g>(&self, generator: &'g mut Drawn) -> &'g TraceValue {
        generator.state(|| self.seeded(0, SiteId::default()))
    }

    /// The state after a draw.
    pub(crate) fn draw_on(&self, generator: &mut Drawn, next: TraceValue) {
        let new = next.clone();
        if let Some((log, old)) = generator.go_on(next) {
            drop(self.note(log, old, &new));
        }
    }

    fn next_epoch(&self) -> u32 {
        // 0 marks nothing.
        match self.0.epoch.fetch_add(1, Ordering::Relaxed).wrapping_add(1) {
            0 => self.next_epoch(),
            e => e,
        }
    }

    fn sync_for(&self, reason: SyncReason) -> Result<(), Error> {
        self.sync_now(reason);
        self.await_room()
    }

    /// Waits while too many programs are queued. No lock is held here: an interrupted wait asks the language binding,
    /// which may want a lock of its own.
    fn await_room(&self) -> Result<(), Error> {
        let has_room = self.0.executor.await_room(&|| self.0.runtime.is_interrupted());
        if has_room { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// A sync that does not wait for room in the queue.
    pub(crate) fn sync_now(&self, reason: SyncReason) {
        let SyncState { set, trace, marks } = &mut *self.0.syncing.lock();
        self.send_pending(set, trace, reason);
        marks.drain(..).for_each(|mark| self.0.executor.mark(mark));
    }

    fn send_pending(&self, set: &mut SyncSet, trace: &mut Canonical<Arc<DataCell>>, reason: SyncReason) {
        self.0.liveness.sending();
        let gone = self.0.journal.lock().sweep();
        drop(gone);
        let journal = {
            let mut pending = self.0.pending_ops.lock();
            pending.take_into(set);
            self.0.raises.synced();
            self.0.journal.lock().take()
        };
        if set.is_empty() {
            return;
        }
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        let job = self.job(trace, std::mem::take(&mut set.nodes), reason, journal, false);
        set.nodes = trace.release();
        let runtime = &self.0.runtime;
        metrics::add(&runtime.counters.reused_nodes, set.reused);
        if !runtime.reuse_nodes.load(Ordering::Relaxed) {
            set.nodes.clear();
        }
        set.recycle_into(&self.0.pending_ops);
        self.send(job, reason);
    }

    fn sync_some(&self, values: &[TraceValue], reason: SyncReason) -> Result<(), Error> {
        if self.raises() > 0 {
            // Other pending operations may fail, or may come after one that fails. They are sent, too: once a wait has
            // reported a failure, no operation recorded after the failing one may stay pending and run later.
            return self.sync_for(reason);
        }
        self.sync_some_now(values, reason)?;
        self.await_room()
    }

    fn sync_some_now(&self, values: &[TraceValue], reason: SyncReason) -> Result<(), Error> {
        let mut syncing = self.0.syncing.lock();
        let epoch = self.next_epoch();
        let reached = ltc_ir::reachable(values, epoch);
        if reached.is_empty() {
            return Ok(());
        }
        drop(reached);
        // All results of a reached operation come along: they exist once it ran.
        let mut set = self.0.pending_ops.lock().live();
        set.retain(|v| v.is_reached(epoch));
        let journal = self.0.journal.lock().look();
        let job = self.job(&mut syncing.trace, set, reason, journal, true);
        drop(syncing.trace.release());
        self.0.pending_ops.lock().forget_resolved();
        self.send(job, reason);
        Ok(())
    }

    /// Makes the job that computes the nodes of `set` that somebody still holds; `None` if nobody holds any. From here
    /// on these nodes are no longer pending: they refer to the job's placeholders. `trace` keeps the canonical form,
    /// for the caller to release. `journal`: what storages held before they were written. `keepers`: whether values
    /// that only the journal keeps count as held, because the journal goes on keeping them while other operations
    /// remain pending.
    fn job(
        &self,
        trace: &mut Canonical<Arc<DataCell>>,
        set: Vec<TraceValue>,
        reason: SyncReason,
        journal: Journal,
        keepers: bool,
    ) -> Option<Job> {
        if set.is_empty() {
            return None;
        }
        let runtime = &self.0.runtime;
        let start = Instant::now();
        trace.fill(set, self.next_epoch(), self.takes_slices(), keepers);
        if !runtime.config.donation {
            trace.params.iter_mut().for_each(|p| p.donated = false);
        }
        runtime.counters.canonicalize.add(start.elapsed());
        if trace.outputs.is_empty() {
            return None;
        }
        let donated = trace.params.iter().filter(|p| p.donated).count();
        metrics::add(&runtime.counters.syncs, 1);
        metrics::add(&runtime.counters.recorded, trace.node_count() as u64);
        let slices = trace.params.iter().filter(|p| p.slice_at.is_some()).count();
        metrics::add(&runtime.counters.sliced_inputs, slices as u64);
        runtime.events.push(|| Event::Sync {
            reason,
            nodes: trace.node_count(),
            params: trace.params.len(),
            donated,
            outputs: trace.outputs.len(),
        });
        let (program, undo) = match compile::program(runtime, self.0.index, trace) {
            Ok(program) => {
                let undo = Undo::of(&journal, trace, &program.graph);
                (program, undo)
            }
            Err(error) => {
                let undo = Undo::all(journal.chains(trace), trace.params.len());
                (self.refused(&Arc::new(trace.to_graph()), &error), Some(undo))
            }
        };
        // Values that only the journal keeps are let go, so that the job may write over their memory.
        journal.let_go();
        let mut job = self.bind(trace, program);
        job.undo = undo.map(Arc::new);
        Some(job)
    }

    /// Sends a job. The caller must have let go of the values that the job may write over: a holder would prevent it.
    fn send(&self, job: Option<Job>, reason: SyncReason) {
        if let Some(job) = job {
            self.submit(job, matches!(reason, SyncReason::Read | SyncReason::Fallback));
        }
    }

    /// A program of this graph, which may be one for other sizes, respecialised.
    pub(crate) fn compile(&self, graph: &Arc<Graph>) -> Result<Arc<Program>, BackendError> {
        compile::compile(&self.0.runtime, self.0.index, graph)
    }

    /// A program that fails at the operator that cannot be compiled.
    pub(crate) fn refused(&self, graph: &Arc<Graph>, error: &BackendError) -> Arc<Program> {
        compile::refused(&*self.0.runtime.backend, self.0.index, graph, error)
    }

    /// Runs a job here if that is faster than handing it over, or if the caller is going to wait for it anyway.
    pub(crate) fn submit(&self, mut job: Job, awaited: bool) {
        let runtime = &self.0.runtime;
        let config = &runtime.config;
        metrics::add(&runtime.counters.executions, 1);
        let hash = job.program.graph.hash();
        let event = |inline| runtime.events.push(|| Event::Execute { hash, inline });
        let program = job.program.clone();
        let handover = &self.0.executor.handover;
        let mut single_threaded = false;
        let interrupts = runtime.interrupts();
        let mut here = || match handover.place(&program, awaited, config, interrupts) {
            RunOn::Worker => false,
            RunOn::WorkerOneThread => {
                single_threaded = true;
                metrics::add(&runtime.counters.overlapped_executions, 1);
                false
            }
            RunOn::CallerIfIdle => self.0.executor.is_idle(),
            RunOn::Caller => self.0.executor.finish(if interrupts { &|| true } else { NEVER }),
        };
        let time = if !config.async_execution {
            event(true);
            self.0.executor.run_inline(job)
        } else if config.inline_execution && here() {
            event(true);
            metrics::add(&runtime.counters.inline_executions, 1);
            self.0.executor.run_inline(job)
        } else {
            event(false);
            job.single_threaded = single_threaded;
            self.0.executor.submit(job)
        };
        handover.sent(&program, single_threaded, time, self.recorded());
    }

    /// How many operations were recorded so far.
    fn recorded(&self) -> u64 {
        self.0.pending_ops.lock().recorded()
    }

    /// Now, in the order of what is sent to run.
    pub fn moment(&self) -> Moment {
        let _syncing = self.0.syncing.lock();
        Moment::new(self.0.syncs.load(Ordering::Relaxed), self.0.executor.sent())
    }

    /// The canonical form of what these pending values need, with exactly them as outputs; and what their storages held
    /// before. `None`: not all are pending, some of it ran since then, or all that was pending was sent.
    pub(crate) fn canonical_for(
        &self,
        values: &[TraceValue],
        slices: bool,
        since: Option<Moment>,
    ) -> Option<(Canonical<Arc<DataCell>>, Vec<Chain>)> {
        let _syncing = self.0.syncing.lock();
        let syncs = self.0.syncs.load(Ordering::Relaxed);
        // Other threads send what is pending whenever they like, but not from here on.
        if since.is_some_and(|then| then.syncs() != syncs) || !values.iter().all(TraceValue::is_pending) {
            return None;
        }
        let reached = self.next_epoch();
        drop(ltc_ir::reachable(values, reached));
        let mut set = self.0.pending_ops.lock().live();
        set.retain(|v| v.is_reached(reached));
        let trace = ltc_ir::canonicalize_for(set, values, self.next_epoch(), slices);
        let journal = self.0.journal.lock().look();
        let chains = journal.chains(&trace);
        (!since.is_some_and(|then| then.precedes_part_of(&trace, &chains))).then_some((trace, chains))
    }

    /// Whether parameters of programs may be slices of data.
    pub(crate) fn takes_slices(&self) -> bool {
        self.0.runtime.config.slice_params && self.0.runtime.backend.has_slices()
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
        Job { program, params, numbers, outputs, sites, number: 0, single_threaded: false, undo: None }
    }

    /// Sends everything pending and waits until it has run, without asking how that went: before a fork.
    pub fn quiesce(&self) {
        self.sync_reporting_later(SyncReason::Explicit);
        self.0.executor.finish(NEVER);
    }

    /// Takes what other threads could hold of it.
    pub(crate) fn hold(&self) -> HeldDevice<'_> {
        let syncing = self.0.syncing.lock();
        let executor = self.0.executor.hold();
        let handover = self.0.executor.handover.hold();
        let liveness = self.0.liveness.hold();
        HeldDevice { executor, liveness, _rest: (syncing, handover, self.0.pending_ops.lock()) }
    }

    /// How many operations are pending and alive.
    pub fn pending_count(&self) -> usize {
        self.0.pending_ops.lock().live().iter().filter(|v| v.result_index().is_none()).count()
    }

    /// Values that are pending and alive, in recording order.
    pub fn pending(&self) -> Vec<TraceValue> {
        self.0.pending_ops.lock().live()
    }
}

type Rest<'a> = (Locked<'a, SyncState>, Hold<'a>, Locked<'a, PendingOps>);

/// A device that only this thread can use, with nothing in flight.
pub(crate) struct HeldDevice<'a> {
    executor: executor::HeldExecutor<'a>,
    liveness: HeldLiveness<'a>,
    _rest: Rest<'a>,
}

impl HeldDevice<'_> {
    /// In a forked child: the next program starts a thread.
    pub(crate) fn begin_anew(&mut self) {
        self.executor.begin_anew();
        self.liveness.begin_anew();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}:{})", self.0.runtime.backend.name(), self.0.index.0)
    }
}
