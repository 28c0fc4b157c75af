//! Memory for machine code: written while nobody can run it, then run while nobody can write it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use memmap2::{Mmap, MmapMut};

/// Most bytes of code in a process; past them kernels stay with tier 0.
const LIMIT: usize = 64 << 20;
const PAGE: usize = 4096;

static USED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of machine code in this process: that of kernels there still are.
pub fn code_bytes() -> usize {
    USED.load(Relaxed)
}

/// A part of the limit, given back when dropped.
#[derive(Debug)]
struct Share(usize);

impl Share {
    fn of(bytes: usize) -> Option<Share> {
        let bytes = bytes.next_multiple_of(PAGE);
        let add = |used: usize| Some(used + bytes).filter(|&sum| sum <= LIMIT);
        USED.fetch_update(Relaxed, Relaxed, add).ok().map(|_| Share(bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        USED.fetch_sub(self.0, Relaxed);
    }
}

/// Code that can be run and read, and never be written again.
#[derive(Debug)]
pub(super) struct Executable {
    map: Mmap,
    _share: Share,
}

impl Executable {
    /// `None` if the system gives no memory for code, or there is too much of it.
    pub(super) fn new(bytes: &[u8]) -> Option<Executable> {
        let share = Share::of(bytes.len())?;
        let mut map = MmapMut::map_anon(bytes.len()).ok()?;
        map.copy_from_slice(bytes);
        Some(Executable { map: map.make_exec().ok()?, _share: share })
    }

    /// The byte at this offset.
    pub(super) fn at(&self, offset: usize) -> *const u8 {
        self.map[offset..].as_ptr()
    }
}
