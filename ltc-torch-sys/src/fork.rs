//! Forks: the child has a copy of all memory, the thread that forked, and no other.

use std::{panic::catch_unwind, sync::OnceLock};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
};

/// What is done around every fork of this process that runs the system's handlers (`fork`, not `vfork` or
/// `posix_spawn`), on the thread that forks.
#[derive(Clone, Copy, Debug)]
pub struct AtFork {
    /// Before.
    pub prepare: fn(),
    /// After, in the parent.
    pub parent: fn(),
    /// After, in the child.
    pub child: fn(),
}

static HANDLERS: OnceLock<AtFork> = OnceLock::new();

fn call(which: fn(&AtFork) -> fn()) {
    // A panic must not unwind into C; a fork cannot be refused.
    let _ = catch_unwind(|| HANDLERS.get().map(|handlers| which(handlers)()));
}

extern "C" fn prepare() {
    call(|h| h.prepare);
}

extern "C" fn parent() {
    call(|h| h.parent);
}

extern "C" fn child() {
    call(|h| h.child);
}

/// Installs the handlers; once per process.
///
/// # Errors
/// Fails where there is no memory for the handlers.
pub fn at_fork(handlers: AtFork) -> Result<(), TorchError> {
    if HANDLERS.set(handlers).is_err() {
        return Ok(());
    }
    let err = ErrorSlot::new();
    // SAFETY: the functions live for ever and do not unwind.
    unsafe { err.check(ffi::ltc_at_fork(prepare, parent, child, err.as_ptr())) }
}

/// Whether this thread came along into a forked child. OpenMP's team of such a thread did not, and waits for it would
/// never end: what this thread calls may use no other threads ([`crate::on_one_thread`]). Threads started since may.
pub fn came_along() -> bool {
    // SAFETY: reads a flag of this thread's.
    unsafe { ffi::ltc_came_along() != 0 }
}
