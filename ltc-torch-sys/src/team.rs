//! Work on libtorch's own threads.

use std::{
    ffi::c_void,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
};

/// What starts no threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OneThread {
    /// Matrix products, if this libtorch computes them by oneMKL.
    Products,
    /// Those, and all other kernels.
    Kernels,
}

/// How many threads libtorch's kernels use that this thread calls.
pub fn num_threads() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { ffi::ltc_num_threads() }).unwrap_or(1).max(1)
}

/// Sets what [`num_threads`] tells, of this thread and of those that have not asked yet; 0 counts as 1.
pub fn set_num_threads(threads: usize) {
    let threads = i32::try_from(threads.max(1)).unwrap_or(i32::MAX);
    // SAFETY: no preconditions; a number above none is never refused.
    unsafe { ffi::ltc_set_num_threads(threads) }
}

/// Runs `f`, in which what this thread calls uses no other threads.
pub fn on_one_thread<R>(what: OneThread, f: impl FnOnce() -> R) -> R {
    struct Restore(ffi::LtcThreads);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: sets numbers of this thread's.
            unsafe { ffi::ltc_threads(self.0) };
        }
    }
    let kernels = if what == OneThread::Kernels { 1 } else { -1 };
    // SAFETY: sets numbers of this thread's, and returns what they were.
    let _restore = Restore(unsafe { ffi::ltc_threads(ffi::LtcThreads { kernels, products: 1 }) });
    f()
}

/// Calls `body` with ranges that together cover `0..n` once, on the threads libtorch's kernels would use here, each
/// range of at least about `grain`.
///
/// # Errors
/// Fails if libtorch does, or if `body` panics.
pub fn parallel_for(n: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) -> Result<(), TorchError> {
    const PANICKED: &str = "a kernel panicked";
    if n <= grain {
        // What libtorch would do, too.
        let run = catch_unwind(AssertUnwindSafe(|| (n > 0).then(|| body(0..n))));
        return run.map(drop).map_err(|_| TorchError::runtime(PANICKED));
    }
    struct Call<'a> {
        body: &'a (dyn Fn(Range<usize>) + Sync),
        panicked: AtomicBool,
    }
    extern "C" fn run(ctx: *mut c_void, begin: i64, end: i64) {
        // SAFETY: `ctx` is the `Call` below, which outlives the call and is only shared.
        let call = unsafe { &*ctx.cast::<Call<'_>>() };
        // A panic must not unwind into C++.
        if catch_unwind(AssertUnwindSafe(|| (call.body)(begin as usize..end as usize))).is_err() {
            call.panicked.store(true, Relaxed);
        }
    }
    let (err, mut call) = (ErrorSlot::new(), Call { body, panicked: AtomicBool::new(false) });
    // SAFETY: `call` outlives the call; `run` may be called from several threads at once, as `body` is `Sync`.
    unsafe {
        err.check(ffi::ltc_parallel_for(n as i64, grain as i64, (&raw mut call).cast(), run, err.as_ptr()))?;
    }
    if call.panicked.load(Relaxed) { Err(TorchError::runtime(PANICKED)) } else { Ok(()) }
}
