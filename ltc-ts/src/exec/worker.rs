//! A second thread for one side of a parallel region.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use ltc_kernels::Paused;
use parking_lot::{Mutex, MutexGuard};

/// Work for the other thread.
type Job = Box<dyn FnOnce() + Send>;

/// The thread, and the process it lives in: a forked child has none.
static WORKER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

/// The right to use the other thread.
pub(crate) struct WorkerThread(MutexGuard<'static, Option<(u32, Sender<Job>)>>);

impl WorkerThread {
    /// The other thread, if nobody else has it; it is started for the first one.
    pub(crate) fn take() -> Option<WorkerThread> {
        let mut worker = WORKER.try_lock()?;
        let process = std::process::id();
        if worker.as_ref().is_none_or(|(of, _)| *of != process) {
            let (sender, jobs) = channel::<Job>();
            let work = move || {
                ltc_torch_sys::set_num_threads(1);
                jobs.into_iter().for_each(|job| job());
            };
            thread::Builder::new().name("ltc-branches".into()).spawn(work).ok()?;
            *worker = Some((process, sender));
        }
        Some(WorkerThread(worker))
    }

    /// Waits until nobody uses it, and keeps it so: for the time of a fork.
    pub(crate) fn hold() -> WorkerThread {
        WorkerThread(WORKER.lock())
    }

    /// Starts work there; its result comes through the channel, or nothing does if it panics.
    pub(crate) fn start<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
        let (sender, result) = channel();
        let job: Job = Box::new(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // Whoever asked may have given up.
            let _ = done.map(|done| sender.send(done));
        });
        if let Some((_, jobs)) = self.0.as_ref() {
            // A thread that is gone drops the job, which closes the channel.
            let _ = jobs.send(job);
        }
        result
    }
}

/// The threads of this crate, idle, and kept so: for the time of a fork.
pub struct HeldThreads {
    compiler: Paused,
    _branches: WorkerThread,
}

impl HeldThreads {
    /// Waits for what they are doing.
    pub fn take() -> Self {
        // The branches' first: a program holds it and may queue kernels.
        let _branches = WorkerThread::hold();
        HeldThreads { compiler: Paused::take(), _branches }
    }

    /// In a forked child, where they do not exist: new ones are started when they are wanted.
    pub fn begin_anew(&mut self) {
        self.compiler.begin_anew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_the_other_thread_and_a_panic_closes_its_channel() {
        let mut worker = loop {
            // Another test may have it.
            if let Some(worker) = WorkerThread::take() {
                break worker;
            }
        };
        let here = thread::current().id();
        assert_ne!(worker.start(|| thread::current().id()).recv(), Ok(here));
        assert!(worker.start::<()>(|| panic!("planned")).recv().is_err());
        assert_eq!(worker.start(|| 7).recv(), Ok(7), "the thread lives on");
        assert!(WorkerThread::take().is_none(), "one at a time");
    }
}
