//! Which kernels are compiled, when, and by whom.
//!
//! A kernel starts with tier 0. Runs make it warm, large ones sooner; a warm one is queued to the one thread that
//! compiles, and runs go on with tier 0 until the code is there.
//!
//! The queue's lock and conditions are the standard library's, which keep no list of who waits: in a forked child
//! `parking_lot`'s would hand the lock over to the compiling thread, which did not come along.
#![expect(clippy::disallowed_types, reason = "they are held while the process forks")]

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{Compiled, JitInput, RowInput};

/// Whether fused kernels become machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Jit {
    /// Never.
    Off,
    /// In the background, those that are worth it.
    #[default]
    On,
    /// All, before their first run.
    Now,
}

impl std::str::FromStr for Jit {
    type Err = ();

    /// `0` (or `off`), `1` (or `on`), `now`.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "0" | "off" | "false" => Ok(Jit::Off),
            "1" | "on" | "true" => Ok(Jit::On),
            "now" => Ok(Jit::Now),
            _ => Err(()),
        }
    }
}

/// Work, in additions of one element, after which a kernel is worth compiling; and what a run counts for at least.
const WARM: u64 = 1 << 22;
const RUN: u64 = WARM / 16;
/// Most kernels in the queue.
const QUEUE: usize = 1024;

/// What becomes machine code.
#[derive(Debug)]
pub(crate) enum Uncompiled {
    Elements(JitInput),
    Rows(RowInput),
}

impl Uncompiled {
    /// The code, made for these numbers. `None` if loops are better.
    fn compile(&self, uniforms: &[u64]) -> Option<Compiled> {
        match self {
            Uncompiled::Elements(input) => input.compile(uniforms),
            Uncompiled::Rows(input) => input.compile(uniforms),
        }
    }
}

/// A kernel's way to machine code.
#[derive(Debug)]
pub(crate) struct Tier {
    jit: Jit,
    /// Until it is compiled.
    input: parking_lot::Mutex<Option<Box<Uncompiled>>>,
    heat: AtomicU64,
    /// The code; inside `None` where tier 0 is to stay.
    code: OnceLock<Option<Compiled>>,
}

impl Tier {
    pub(crate) fn new(jit: Jit, input: Uncompiled) -> Arc<Tier> {
        let input = parking_lot::Mutex::new(Some(Box::new(input)));
        Arc::new(Tier { jit, input, heat: AtomicU64::new(0), code: OnceLock::new() })
    }

    /// When to compile.
    pub(crate) fn set(&mut self, jit: Jit) {
        self.jit = jit;
    }

    /// The code for these uniform values, if it is there. `work`: additions of one element this run is worth.
    pub(crate) fn code(self: &Arc<Tier>, uniforms: &[u64], work: usize) -> Option<&Compiled> {
        if self.code.get().is_some() {
            return self.ready(uniforms);
        }
        if self.jit == Jit::Now {
            self.compile(uniforms);
            return self.ready(uniforms);
        }
        let work = RUN.max(work as u64);
        let before = self.heat.fetch_add(work, Relaxed);
        // Once only, but for a full queue.
        if before < WARM && before + work >= WARM && !queue(self, uniforms) {
            self.heat.store(0, Relaxed);
        }
        None
    }

    /// The code for these uniform values, if it is there by now.
    pub(crate) fn ready(&self, uniforms: &[u64]) -> Option<&Compiled> {
        self.code.get()?.as_ref().filter(|c| c.guards_hold(uniforms))
    }

    /// Whether the kernel runs as machine code.
    pub(crate) fn is_compiled(&self) -> bool {
        matches!(self.code.get(), Some(Some(_)))
    }

    /// Whether loops are found to be better.
    pub(crate) fn is_declined(&self) -> bool {
        matches!(self.code.get(), Some(None))
    }

    fn compile(&self, uniforms: &[u64]) {
        if let Some(input) = self.input.lock().take() {
            let code = catch_unwind(AssertUnwindSafe(|| input.compile(uniforms)));
            let _ = self.code.set(code.unwrap_or(None));
        }
    }
}

/// What is to be compiled.
#[derive(Default)]
pub(crate) struct Queue {
    jobs: VecDeque<(Weak<Tier>, Box<[u64]>)>,
    /// Whether the thread works on one.
    busy: bool,
    started: bool,
    /// Forks that wait for it to be idle.
    forks: u32,
}

static COMPILER: (Mutex<Queue>, Condvar, Condvar) = (
    Mutex::new(Queue { jobs: VecDeque::new(), busy: false, started: false, forks: 0 }),
    Condvar::new(),
    Condvar::new(),
);

fn lock() -> MutexGuard<'static, Queue> {
    // A panic elsewhere is no reason for one here.
    COMPILER.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `waits` says so.
fn wait_while(
    condition: &Condvar,
    q: MutexGuard<'static, Queue>,
    mut waits: impl FnMut(&Queue) -> bool,
) -> MutexGuard<'static, Queue> {
    condition.wait_while(q, |q| waits(q)).unwrap_or_else(PoisonError::into_inner)
}

/// Queues a kernel; its uniform values say which powers to expect.
fn queue(tier: &Arc<Tier>, uniforms: &[u64]) -> bool {
    let mut q = lock();
    if !q.started {
        q.started = std::thread::Builder::new().name("ltc-compiler".into()).spawn(work).is_ok();
    }
    if !q.started || q.jobs.len() >= QUEUE {
        return false;
    }
    q.jobs.push_back((Arc::downgrade(tier), uniforms.into()));
    COMPILER.1.notify_all();
    true
}

/// The thread that compiles.
fn work() {
    let (_, more, done) = &COMPILER;
    let mut q = lock();
    loop {
        let next = if q.forks == 0 { q.jobs.pop_front() } else { None };
        let Some((tier, uniforms)) = next else {
            q.busy = false;
            done.notify_all();
            q = wait_while(more, q, |q| q.forks > 0 || q.jobs.is_empty());
            continue;
        };
        q.busy = true;
        drop(q);
        // A kernel that is gone needs no code.
        if let Some(tier) = tier.upgrade() {
            tier.compile(&uniforms);
        }
        q = lock();
    }
}

/// The compiler, idle, with its thread kept from going on.
pub struct Paused(MutexGuard<'static, Queue>);

impl Paused {
    /// Waits for the kernel being compiled, not for those in the queue.
    pub fn take() -> Self {
        let mut q = lock();
        q.forks += 1;
        q = wait_while(&COMPILER.2, q, |q| q.busy);
        q.forks -= 1;
        Paused(q)
    }

    /// In a forked child: the thread did not come along, and is started for the next kernel.
    pub fn begin_anew(&mut self) {
        (self.0.busy, self.0.started) = (false, false);
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // All, as one that waits may be a thread that did not come along into a forked child.
        COMPILER.1.notify_all();
    }
}

/// Waits until every kernel queued so far is compiled, or found to be better off without. For tests and timings; a step
/// never waits.
pub fn finish_compiling() {
    drop(wait_while(&COMPILER.2, lock(), |q| q.busy || !q.jobs.is_empty()));
}
