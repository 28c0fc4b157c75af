//! Runs programs of one device, one at a time, in program order, off the recording threads.

use std::{
    collections::VecDeque,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, Input, Inputs};
use ltc_ir::{ErrorClass, LayoutRef, SiteId};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::{
    cache::Program,
    cell::DataCell,
    event::{Event, EventLog},
    extract::{Argument, Arguments},
    handover::Handover,
    metrics::{self, Counters},
    outcome::Sink,
    undo::Undo,
};

/// One program with everything it runs on.
pub(crate) struct Job {
    pub(crate) program: Arc<Program>,
    pub(crate) params: Arguments,
    pub(crate) numbers: SmallVec<[u64; 8]>,
    pub(crate) outputs: SmallVec<[Arc<DataCell>; 4]>,
    pub(crate) sites: SmallVec<[SiteId; 8]>,
    /// It is to use one thread.
    pub(crate) narrow: bool,
    /// What to give back if it fails.
    pub(crate) undo: Option<Arc<Undo>>,
}

/// Errors nobody was told of that are kept to be told.
const UNREPORTED: usize = 64;

/// A job, and the [`Backend::thread_state`] of who hands it over.
type Handed = (Job, u64);

/// What the executor shares with its device.
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) device: DeviceIndex,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Arc<EventLog>,
    progress: Mutex<Progress>,
    idle: Condvar,
    /// One program at a time, wherever it runs.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Progress {
    in_flight: usize,
    /// How many programs were sent.
    sent: u64,
    /// Execution errors nobody was told of, with the numbers of their programs; in order.
    unreported: VecDeque<(u64, Arc<ExecError>)>,
}

/// Handle of the executor; the thread starts with the first job and ends when the handle is dropped.
pub(crate) struct Executor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handover: Handover,
    queue_depth: usize,
    thread: Mutex<Option<(SyncSender<Handed>, JoinHandle<()>)>>,
}

impl Executor {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        device: DeviceIndex,
        counters: Arc<Counters>,
        events: Arc<EventLog>,
        queue_depth: usize,
    ) -> Self {
        let shared = Shared {
            backend,
            device,
            counters,
            events,
            progress: Mutex::default(),
            idle: Condvar::new(),
            turn: Mutex::new(()),
        };
        Executor { shared: Arc::new(shared), handover: Handover::default(), queue_depth, thread: Mutex::new(None) }
    }

    /// Queues a job; waits while the queue is full. Tells when.
    pub(crate) fn submit(&self, job: Job) -> Range<Instant> {
        let sleeps = self.shared.sent(&job) == 1;
        let mut thread = self.thread.lock();
        let started = thread.is_some();
        let (queue, _) = thread.get_or_insert_with(|| {
            let (send, receive) = sync_channel(self.queue_depth);
            let shared = self.shared.clone();
            let name = format!("ltc-executor-{}", shared.device.0);
            let handle = thread::Builder::new().name(name).spawn(move || shared.work(receive));
            (send, handle.expect("the system can start a thread"))
        });
        let start = Instant::now();
        // Jobs are queued in submission order: the lock is held until the job is in.
        if let Err(refused) = queue.send((job, self.shared.backend.thread_state())) {
            self.shared.run(refused.0.0);
        }
        let end = Instant::now();
        if sleeps && started {
            self.handover.wake.note(end - start);
        }
        start..end
    }

    /// The thread did not come along into a forked child.
    pub(crate) fn after_fork(&self) {
        // Dropping the handle of a thread that does not exist would join it.
        std::mem::forget(self.thread.lock().take());
        *self.shared.progress.lock() = Progress::default();
    }

    /// Whether everything sent so far is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.progress.lock().in_flight == 0
    }

    /// Runs a job here and now. Tells when.
    pub(crate) fn run_inline(&self, job: Job) -> Range<Instant> {
        self.shared.sent(&job);
        self.shared.run(job)
    }

    /// Waits until nothing is in flight.
    pub(crate) fn finish(&self) {
        self.shared.idle.wait_while(&mut self.shared.progress.lock(), |p| p.in_flight > 0);
    }

    /// Waits until nothing is in flight; the first execution error nobody was told of.
    pub(crate) fn wait_idle(&self) -> Result<(), Arc<ExecError>> {
        let start = Instant::now();
        self.handover.needed(start);
        let mut progress = self.shared.progress.lock();
        let waits = progress.in_flight > 0;
        self.shared.idle.wait_while(&mut progress, |p| p.in_flight > 0);
        self.shared.counters.wait.add(if waits { start.elapsed() } else { Duration::ZERO });
        progress.unreported.pop_front().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The first execution error nobody was told of, of the programs up to the one that made this; they have run.
    pub(crate) fn unreported(&self, cell: &DataCell) -> Option<Arc<ExecError>> {
        let mut progress = self.shared.progress.lock();
        let known = progress.unreported.front().is_some_and(|(number, _)| *number <= cell.made_by());
        known.then(|| progress.unreported.pop_front()).flatten().map(|(_, error)| error)
    }

    /// The program was told of this error.
    pub(crate) fn reported(&self, error: &Arc<ExecError>) {
        let mut progress = self.shared.progress.lock();
        progress.unreported.retain(|(_, e)| !Arc::ptr_eq(e, error));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some((queue, handle)) = self.thread.lock().take() {
            drop(queue);
            // The last handle may be dropped by the executor's own thread, through a value it held.
            if handle.thread().id() != thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

impl Shared {
    /// A job is on its way; how many are.
    fn sent(&self, job: &Job) -> usize {
        let mut progress = self.progress.lock();
        progress.sent += 1;
        job.outputs.iter().for_each(|cell| cell.set_made_by(progress.sent));
        progress.in_flight += 1;
        progress.in_flight
    }

    fn work(&self, queue: Receiver<Handed>) {
        let mut last = None;
        for (job, state) in queue {
            if last.replace(state) != Some(state) {
                self.backend.attach_executor_thread(self.device, state);
            }
            self.run(job);
        }
    }

    fn run(&self, job: Job) -> Range<Instant> {
        let Job { program, params, numbers, outputs, sites, narrow, undo } = job;
        // Not in its turn: what it waits for may be another program's that is yet to come.
        let layouts = program.graph.params();
        let input = |(argument, layout)| self.input(argument, layout);
        let params: SmallVec<[Input; 4]> = params.into_iter().zip(layouts).map(input).collect();
        let _turn = self.turn.lock();
        let start = Instant::now();
        let number = outputs.first().map_or(0, |cell| cell.made_by());
        let mut sink = Sink::new(self, &program.graph, (&outputs, &sites), number, undo, &params);
        let again = if sink.wants_numbers() { numbers.clone() } else { SmallVec::new() };
        let run = AssertUnwindSafe(|| program.executable.execute(Inputs { params, numbers, narrow }, &mut sink));
        if catch_unwind(run).is_err() {
            sink.panicked();
        }
        sink.finish(&again);
        let end = Instant::now();
        let time = end - start;
        self.counters.execute.add(time);
        if !narrow {
            program.pace.run.note(time);
        }
        program.pace.overlap.ran(narrow, time);
        // Whatever the job still holds is let go before anyone is told that the device is idle.
        drop((program, outputs, sites));
        let mut progress = self.progress.lock();
        progress.in_flight -= 1;
        if progress.in_flight == 0 {
            self.idle.notify_all();
        }
        start..end
    }

    fn input(&self, argument: Argument, layout: &LayoutRef) -> Input {
        let Argument { data, donated, part_at } = argument;
        let buffer = if donated { data.take() } else { data.wait() };
        let part = |offset, buffer: Buffer| {
            self.backend.part(self.device, &buffer, layout, offset).map_err(|e| {
                let (op, class, message) = ("part".into(), ErrorClass::Runtime, e.to_string());
                Arc::new(ExecError { op, class, message, node: ExecError::ELSEWHERE, site: SiteId::default() })
            })
        };
        let buffer = match part_at {
            Some(offset) => buffer.and_then(|whole| part(offset, whole)),
            None => buffer,
        };
        Input { buffer, donated }
    }

    /// Keeps an error of a program to be told.
    pub(crate) fn note(&self, program: u64, error: Arc<ExecError>) {
        let mut progress = self.progress.lock();
        if progress.unreported.len() < UNREPORTED && !progress.unreported.iter().any(|(_, e)| Arc::ptr_eq(e, &error)) {
            progress.unreported.push_back((program, error.clone()));
        }
        drop(progress);
        metrics::add(&self.counters.failures, 1);
        self.events.push(|| Event::Failed { op: error.op.clone() });
    }
}
