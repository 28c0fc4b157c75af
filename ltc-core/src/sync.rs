//! Locks, condition variables, atomics and threads of this crate: the system's, or those of the crate `shuttle`, under
//! which a test decides who runs when (feature `interleave`, `tests/interleave`). Counters and measured times, which no
//! order depends on, are the system's either way.

#[cfg(not(feature = "interleave"))]
mod real {
    pub(crate) use std::{sync::atomic, thread};

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

    pub(crate) fn unpark(thread: &thread::Thread) {
        thread.unpark();
    }

    /// The standard library's mutex, for [`crate::lock::Lock`].
    #[cfg(not(feature = "races"))]
    #[expect(clippy::disallowed_types, reason = "see `Lock`")]
    pub(crate) mod plain {
        pub(crate) use std::sync::{Mutex, MutexGuard};
    }
}

#[cfg(feature = "interleave")]
mod explored;

#[cfg(feature = "interleave")]
pub use explored::faults;
#[cfg(feature = "interleave")]
pub(crate) use explored::*;
#[cfg(not(feature = "interleave"))]
pub(crate) use real::*;
