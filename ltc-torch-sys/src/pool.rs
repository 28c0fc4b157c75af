//! Memory of programs, kept from run to run.
//!
//! libtorch's CPU kernels ask one allocator for memory, and it asks the system: a large block comes as pages to be
//! zeroed at first touch, every time. While a thread holds a [`Pooled`], large blocks come from a pool instead. Other
//! threads, and this one at other times, get theirs as ever.

use std::marker::PhantomData;

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
};

unsafe extern "C" {
    fn ltc_pool_stats(out: *mut PoolStats);
}

/// What the pool holds and did.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStats {
    /// Bytes kept for later.
    pub cached: usize,
    /// Bytes handed out, in whole blocks.
    pub live: usize,
    /// Blocks handed out that had been kept.
    pub reused: u64,
    /// Blocks that had to be asked of the system.
    pub fresh: u64,
    /// Large blocks that have been handed out so often that the system was told to use huge pages for them.
    pub settled: u64,
}

/// Blocks a thread asked for, and what was left then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolUse {
    /// That had been kept.
    pub reused: u64,
    /// That had to be asked of the system.
    pub fresh: u64,
    /// Bytes of the pool that were kept for later at the end; 0 where the thread still holds another [`Pooled`].
    pub cached: usize,
}

/// While it lives, large blocks this thread asks for come from the pool.
#[derive(Debug)]
pub struct Pooled(PhantomData<*const ()>);

impl Pooled {
    /// From here on. Does nothing until [`set_pool_limit`] made a pool.
    pub fn enter() -> Self {
        // SAFETY: counts on this thread only; `Drop` counts back, on the same thread, as this is not `Send`.
        unsafe { ffi::ltc_pool_enter() };
        Pooled(PhantomData)
    }

    /// To here: what was asked for in between.
    pub fn leave(self) -> PoolUse {
        let usage = leave();
        std::mem::forget(self);
        usage
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() -> PoolUse {
    let mut usage = PoolUse::default();
    // SAFETY: all three numbers are written.
    unsafe { ffi::ltc_pool_leave(&mut usage.reused, &mut usage.fresh, &mut usage.cached) };
    usage
}

/// Keeps at most so many bytes of free blocks. The first call with more than 0 puts the pool in front of libtorch's
/// allocator, for good; 0 then keeps nothing.
///
/// # Errors
/// Fails where libtorch does not take the pool for its allocator.
pub fn set_pool_limit(bytes: usize) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: no arguments to get wrong.
    unsafe { err.check(ffi::ltc_pool_limit(bytes, err.as_ptr())) }
}

/// Gives all free blocks back to the system.
pub fn empty_pool() {
    // SAFETY: no arguments to get wrong.
    unsafe { ffi::ltc_pool_empty() }
}

/// What the pool holds and did.
pub fn pool_stats() -> PoolStats {
    let mut stats = PoolStats::default();
    // SAFETY: the struct is C's own, and is filled in.
    unsafe { ltc_pool_stats(&mut stats) };
    stats
}
