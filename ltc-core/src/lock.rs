//! Locks that are held while the process forks.
#![cfg_attr(
    not(any(feature = "interleave", feature = "races")),
    expect(clippy::disallowed_types, reason = "see `Lock`")
)]

#[cfg(not(feature = "races"))]
use std::sync::PoisonError;

#[cfg(feature = "races")]
use parking_lot::{Mutex, MutexGuard};

#[cfg(not(feature = "races"))]
use crate::sync::plain::{Mutex, MutexGuard};

/// A mutex that a forked child can unlock even if threads of the parent, which do not exist in the child, were waiting
/// for it. It is the standard library's, which keeps no list of waiting threads; `parking_lot`'s would hand the lock
/// over to one of them.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Holds it.
pub(crate) type Locked<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        let guard = self.0.lock();
        // Poisoning is ignored, as `parking_lot` does: a panic of another thread is no reason for a panic here.
        #[cfg(not(feature = "races"))]
        let guard = guard.unwrap_or_else(PoisonError::into_inner);
        guard
    }
}
