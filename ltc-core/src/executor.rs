//! Runs programs of one device, one at a time, in program order, off the recording threads.

use std::{
    collections::VecDeque,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, Fence, Input, Inputs};
use ltc_ir::{LayoutRef, SiteId};
use smallvec::SmallVec;

use crate::{
    argument::{Argument, Arguments},
    cache::Program,
    cell::{DataCell, Past},
    event::{Event, EventLog},
    handover::Handover,
    lock::{Lock, Locked},
    metrics::{self, Counters},
    outcome::{FailedParams, Sink},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
        thread::{self, JoinHandle, Thread},
        unpark,
    },
    undo::Undo,
    wait::{GiveUp, NEVER, wait_while},
};

/// One program with everything it runs on.
pub(crate) struct Job {
    pub(crate) program: Arc<Program>,
    pub(crate) params: Arguments,
    pub(crate) numbers: SmallVec<[u64; 8]>,
    pub(crate) outputs: SmallVec<[Arc<DataCell>; 4]>,
    pub(crate) sites: SmallVec<[SiteId; 8]>,
    /// Its number among the programs that were sent, once it was.
    pub(crate) number: u64,
    /// It is to use one thread.
    pub(crate) single_threaded: bool,
    /// What to give back if it fails.
    pub(crate) undo: Option<Arc<Undo>>,
}

/// Errors nobody was told of that are kept to be told.
const UNREPORTED: usize = 64;

/// A job, and the [`Backend::thread_state`] of who hands it over.
type Handed = (Job, u64);

/// A mark in the work of a device, and when the device reached it.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    at: OnceLock<Instant>,
    /// Of a device that computes asynchronously: the fence behind the work before the mark. It may still have to be
    /// passed when the executor has reached the mark.
    fence: OnceLock<Arc<dyn Fence>>,
    /// Whether the executor has the mark, and with it all work that was recorded before the mark.
    sent: AtomicBool,
}

impl Reached {
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at.get().copied()
    }

    /// The fence, once the executor has reached the mark.
    pub(crate) fn fence(&self) -> Option<&Arc<dyn Fence>> {
        self.fence.get()
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.at().is_some() && self.fence().is_none_or(|fence| fence.is_passed())
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    fn set(&self, at: Instant, fence: Option<Arc<dyn Fence>>) {
        // The fence is set before the time, so that a thread that sees the mark reached also sees its fence.
        fence.into_iter().for_each(|fence| _ = self.fence.set(fence));
        let _ = self.at.set(at);
    }
}

/// What the executor's thread shares with its handle.
struct Shared {
    backend: Arc<dyn Backend>,
    device: DeviceIndex,
    counters: Arc<Counters>,
    events: Arc<EventLog>,
    progress: Mutex<Progress>,
    /// The executor's thread, once it runs. It sleeps by `thread::park` and not on a condition variable of
    /// `parking_lot`: a forked child would inherit the thread's entry in the list of waiting threads, without the
    /// thread, and the next thread would be given the memory of that entry.
    worker: OnceLock<Thread>,
    /// Whoever waits for jobs to be taken, or done.
    less: Condvar,
    /// One program at a time, wherever it runs.
    turn: Mutex<()>,
    /// Fences behind the last programs that an asynchronous device was given, oldest first.
    ahead: Mutex<VecDeque<Arc<dyn Fence>>>,
    /// How many of these programs the device may still have to do when it is given another one.
    run_ahead: usize,
}

#[derive(Default)]
struct Progress {
    /// Handed over and not begun.
    queue: VecDeque<Handed>,
    /// Numbers of the programs that were sent and are not done, in order.
    in_flight: VecDeque<u64>,
    /// How many programs were sent.
    sent: u64,
    /// Marks that were not reached yet, each behind the program of this number; in order.
    marks: VecDeque<(u64, Arc<Reached>)>,
    /// The fence behind the last program that ran, on a device that computes asynchronously.
    fence: Option<Arc<dyn Fence>>,
    /// Execution errors nobody was told of, with the numbers of their programs; in order.
    unreported: VecDeque<(u64, Arc<ExecError>)>,
    /// Programs in flight of whose errors nobody is to be told.
    forgotten: Vec<u64>,
    /// The handle is gone: the thread ends after what is queued.
    closed: bool,
}

impl Progress {
    /// Sets the marks before which nothing is in flight any more; says whether there were any.
    fn reach_marks(&mut self, now: Instant) -> bool {
        let first = self.in_flight.front().copied().unwrap_or(u64::MAX);
        let count = self.marks.iter().take_while(|(number, _)| *number < first).count();
        self.marks.drain(..count).for_each(|(_, mark)| mark.set(now, self.fence.clone()));
        count > 0
    }
}

/// Handle of the executor; the thread starts with the first job and ends when the handle is dropped.
pub(crate) struct Executor {
    /// Made anew in a forked child: the thread of the old one is gone, and with it whatever lock it held.
    shared: Lock<Arc<Shared>>,
    pub(crate) handover: Handover,
    queue_depth: usize,
    thread: Lock<Option<JoinHandle<()>>>,
}

impl Executor {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        device: DeviceIndex,
        counters: Arc<Counters>,
        events: Arc<EventLog>,
        queue_depth: usize,
    ) -> Self {
        Executor {
            shared: Lock::new(Arc::new(Shared::new(backend, device, counters, events, queue_depth))),
            handover: Handover::default(),
            queue_depth,
            thread: Lock::new(None),
        }
    }

    fn shared(&self) -> Arc<Shared> {
        self.shared.lock().clone()
    }

    /// Queues a job, however many there are ([`Executor::await_room`]). Tells when.
    pub(crate) fn submit(&self, mut job: Job) -> Range<Instant> {
        let shared = self.shared();
        let started = match self.start(&shared) {
            Some(started) => started,
            // The system has no thread for us.
            None => return self.run_inline(job),
        };
        let start = Instant::now();
        let state = shared.backend.thread_state();
        let mut progress = shared.progress.lock();
        Shared::count(&mut progress, &mut job);
        let sleeps = progress.in_flight.len() == 1;
        progress.queue.push_back((job, state));
        drop(progress);
        shared.wake();
        let end = Instant::now();
        if sleeps && started {
            self.handover.woke(end - start);
        }
        start..end
    }

    /// Starts the thread; whether it ran before.
    fn start(&self, shared: &Arc<Shared>) -> Option<bool> {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return Some(true);
        }
        let shared = shared.clone();
        let name = format!("ltc-executor-{}", shared.device.0);
        *thread = Some(thread::Builder::new().name(name).spawn(move || shared.work()).ok()?);
        Some(false)
    }

    /// Waits while more jobs are queued than may be; false if the wait was given up, which changes nothing.
    pub(crate) fn await_room(&self, give_up: GiveUp<'_>) -> bool {
        let shared = self.shared();
        let depth = self.queue_depth;
        wait_while(&shared.less, &mut shared.progress.lock(), |p| p.queue.len() > depth, give_up)
    }

    /// All that another thread could hold while this one forks; taken once nothing is in flight.
    pub(crate) fn hold(&self) -> HeldExecutor<'_> {
        let thread = self.thread.lock();
        let shared = self.shared.lock();
        wait_while(&shared.less, &mut shared.progress.lock(), |p| !p.in_flight.is_empty(), NEVER);
        let sent = shared.progress.lock().sent;
        HeldExecutor { shared, thread, sent }
    }

    /// How many programs were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.shared().progress.lock().sent
    }

    /// Whether everything sent so far is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared().progress.lock().in_flight.is_empty()
    }

    /// Runs a job here and now. Tells when.
    pub(crate) fn run_inline(&self, mut job: Job) -> Range<Instant> {
        let shared = self.shared();
        shared.sent(&mut job);
        shared.run(job)
    }

    /// Waits until nothing is in flight; false if the wait was given up.
    pub(crate) fn finish(&self, give_up: GiveUp<'_>) -> bool {
        let shared = self.shared();
        wait_while(&shared.less, &mut shared.progress.lock(), |p| !p.in_flight.is_empty(), give_up)
    }

    /// Waits until nothing is in flight, and takes the first unreported execution error. `None` if the wait was given
    /// up. `recorded`: how many operations the device has recorded so far.
    pub(crate) fn wait_idle(&self, recorded: u64, give_up: GiveUp<'_>) -> Option<Result<(), Arc<ExecError>>> {
        let start = Instant::now();
        self.handover.needed(start, recorded);
        let shared = self.shared();
        let mut progress = shared.progress.lock();
        let waits = !progress.in_flight.is_empty();
        let done = wait_while(&shared.less, &mut progress, |p| !p.in_flight.is_empty(), give_up);
        shared.counters.wait.add(if waits { start.elapsed() } else { Duration::ZERO });
        if !done {
            return None;
        }
        Some(progress.unreported.pop_front().map_or(Ok(()), |(_, error)| Err(error)))
    }

    /// The mark is reached when all that was sent so far is done.
    pub(crate) fn mark(&self, mark: Arc<Reached>) {
        let shared = self.shared();
        let mut progress = shared.progress.lock();
        let sent = progress.sent;
        mark.sent.store(true, Ordering::Release);
        progress.marks.push_back((sent, mark));
        if progress.in_flight.is_empty() {
            // The mark stands behind the device's work of now. The device may have passed the fence of the last program
            // long ago, which would give the mark a time that is too early.
            progress.fence = shared.backend.fence(shared.device);
        }
        progress.reach_marks(Instant::now());
    }

    /// Waits until a mark is reached; false if the wait was given up.
    pub(crate) fn await_mark(&self, mark: &Reached, give_up: GiveUp<'_>) -> bool {
        let shared = self.shared();
        wait_while(&shared.less, &mut shared.progress.lock(), |_| mark.at().is_none(), give_up)
    }

    /// Takes the first unreported execution error of the programs up to this one, which have run.
    pub(crate) fn unreported(&self, program: u64) -> Option<Arc<ExecError>> {
        let shared = self.shared();
        let mut progress = shared.progress.lock();
        let known = progress.unreported.front().is_some_and(|(number, _)| *number <= program);
        if known { progress.unreported.pop_front().map(|(_, error)| error) } else { None }
    }

    /// Drops the error of this program, also if it is still to run, so that it is not reported to anybody.
    pub(crate) fn forget(&self, program: u64) {
        let shared = self.shared();
        let mut progress = shared.progress.lock();
        progress.unreported.retain(|(number, _)| *number != program);
        if progress.in_flight.contains(&program) {
            progress.forgotten.push(program);
        }
    }

    /// Notes that the user's program was told of this error, so that no wait reports it again.
    pub(crate) fn reported(&self, error: &Arc<ExecError>) {
        let shared = self.shared();
        let mut progress = shared.progress.lock();
        progress.unreported.retain(|(_, e)| !Arc::ptr_eq(e, error));
    }
}

/// An executor with nothing in flight, which nobody else can use.
pub(crate) struct HeldExecutor<'a> {
    shared: Locked<'a, Arc<Shared>>,
    thread: Locked<'a, Option<JoinHandle<()>>>,
    sent: u64,
}

impl HeldExecutor<'_> {
    /// In a forked child: the thread did not come along.
    pub(crate) fn begin_anew(&mut self) {
        // Dropping the handle of a thread that does not exist would detach it.
        std::mem::forget(self.thread.take());
        let Shared { backend, device, counters, events, run_ahead, .. } = &**self.shared;
        let new = Shared::new(backend.clone(), *device, counters.clone(), events.clone(), *run_ahead);
        // Data knows its program by number.
        new.progress.lock().sent = self.sent;
        // The old one may have locks that nobody is left to unlock, and waiters that do not exist.
        std::mem::forget(std::mem::replace(&mut *self.shared, Arc::new(new)));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(handle) = self.thread.lock().take() {
            let shared = self.shared();
            shared.progress.lock().closed = true;
            shared.wake();
            // The last handle may be dropped by the executor's own thread, through a value it held.
            if handle.thread().id() != thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

impl Shared {
    fn new(
        backend: Arc<dyn Backend>,
        device: DeviceIndex,
        counters: Arc<Counters>,
        events: Arc<EventLog>,
        run_ahead: usize,
    ) -> Self {
        Shared {
            backend,
            device,
            counters,
            events,
            progress: Mutex::default(),
            worker: OnceLock::new(),
            less: Condvar::new(),
            turn: Mutex::new(()),
            ahead: Mutex::default(),
            run_ahead,
        }
    }

    /// The next job; `None` when there will be none.
    fn next(&self) -> Option<Handed> {
        loop {
            let mut progress = self.progress.lock();
            if !progress.queue.is_empty() || progress.closed {
                let next = progress.queue.pop_front();
                self.less.notify_all();
                return next;
            }
            drop(progress);
            // Returns at once if it was woken since the queue was seen empty.
            thread::park();
        }
    }

    /// Wakes the thread; one that does not run yet looks at the queue first.
    fn wake(&self) {
        if let Some(worker) = self.worker.get() {
            unpark(worker);
        }
    }

    /// A job is on its way.
    fn count(progress: &mut Progress, job: &mut Job) {
        progress.sent += 1;
        job.number = progress.sent;
        job.outputs.iter().for_each(|cell| cell.set_made_by(job.number));
        progress.in_flight.push_back(job.number);
    }

    fn sent(&self, job: &mut Job) {
        Self::count(&mut self.progress.lock(), job);
    }

    fn work(&self) {
        let _ = self.worker.set(thread::current());
        let mut last = None;
        while let Some((job, state)) = self.next() {
            if last.replace(state) != Some(state) {
                self.backend.attach_executor_thread(self.device, state);
            }
            self.run(job);
        }
    }

    fn run(&self, job: Job) -> Range<Instant> {
        let Job { program, params, numbers, outputs, sites, number, single_threaded, undo } = job;
        // The program waits for its inputs before it takes the turn: another program that makes them may need the turn.
        params.iter().for_each(|argument| argument.data.settle());
        // It takes its inputs within the turn: the program that made an input holds it until its own turn ends, and a
        // second holder would keep the input from being donated.
        let _turn = self.turn.lock();
        let layouts = program.graph.params();
        let mut failed = FailedParams::new();
        let input = |(p, (argument, layout))| self.input(argument, layout, |past| failed.push((p, past)));
        let params: SmallVec<[Input; 4]> = (0..).zip(params.into_iter().zip(layouts)).map(input).collect();
        let start = Instant::now();
        let keeps = |error: &Arc<ExecError>| self.note(number, error.clone());
        let backend = (&*self.backend, self.device);
        let mut sink = Sink::new(backend, &keeps, &program.graph, (&outputs, &sites), undo, (&params, failed));
        let again = if sink.wants_numbers() { numbers.clone() } else { SmallVec::new() };
        let run =
            AssertUnwindSafe(|| program.executable.execute(Inputs { params, numbers, single_threaded }, &mut sink));
        if catch_unwind(run).is_err() {
            sink.panicked();
        }
        sink.finish(&again);
        let end = Instant::now();
        let time = end - start;
        self.counters.execute.add(time);
        if !single_threaded {
            program.times.run.note(time);
        }
        program.times.overlap.ran(single_threaded, time);
        // Whatever the job still holds is let go before anyone is told that the device is idle.
        drop((program, outputs, sites));
        let fence = self.backend.fence(self.device);
        fence.iter().for_each(|fence| self.keep_close(fence));
        let mut progress = self.progress.lock();
        progress.fence = fence;
        progress.in_flight.retain(|n| *n != number);
        progress.forgotten.retain(|n| *n != number);
        let reached = progress.reach_marks(end);
        if progress.in_flight.is_empty() || reached {
            self.less.notify_all();
        }
        start..end
    }

    /// Waits until an asynchronous device has at most `run_ahead` programs to do, because the memory of all of them is
    /// in use.
    fn keep_close(&self, fence: &Arc<dyn Fence>) {
        let mut ahead = self.ahead.lock();
        ahead.push_back(fence.clone());
        let far = if ahead.len() > self.run_ahead { ahead.pop_front() } else { None };
        drop(ahead);
        // The error of a lost device is ignored here: whoever reads from the device is told.
        far.into_iter().for_each(|fence| drop(fence.wait()));
    }

    /// Makes an input of an argument. If its data has failed, `fail` is called with what was in its place before.
    fn input(&self, argument: Argument, layout: &LayoutRef, fail: impl FnOnce(Past)) -> Input {
        let Argument { data, donated, slice_at } = argument;
        let (buffer, donated) = if donated { DataCell::take(data) } else { (data.read(), false) };
        if donated {
            metrics::add(&self.counters.donated, 1);
        }
        let slice = |offset, buffer: Buffer| {
            let slice = self.backend.slice(self.device, &buffer, layout, offset);
            slice.map_err(|e| (Arc::new(ExecError::new("slice", e.class(), e.to_string())), Past::Lost))
        };
        let buffer = match slice_at {
            Some(offset) => buffer.and_then(|whole| slice(offset, whole)),
            None => buffer,
        };
        let buffer = buffer.map_err(|(error, past)| {
            fail(past);
            error
        });
        Input { buffer, donated }
    }

    /// Keeps an error of a program to be told.
    fn note(&self, program: u64, error: Arc<ExecError>) {
        let mut progress = self.progress.lock();
        let is_settled = progress.forgotten.contains(&program)
            || progress.unreported.iter().any(|(_, known)| Arc::ptr_eq(known, &error));
        if !is_settled && progress.unreported.len() < UNREPORTED {
            progress.unreported.push_back((program, error.clone()));
        }
        drop(progress);
        metrics::add(&self.counters.failures, 1);
        self.events.push(|| Event::Failed { op: error.op.clone() });
    }
}
