//! What `parking_lot` offers, over `shuttle`: every call is a place where another thread may go on.

use std::{
    ops::{Deref, DerefMut},
    sync::PoisonError,
    time::Duration,
};

use shuttle::rand::Rng;
pub(crate) use shuttle::{
    sync::{self as plain, atomic},
    thread,
};

/// What a test can make of waits and of those who end them, in the runs on its thread.
pub mod faults {
    use std::cell::Cell;

    thread_local! {
        static LOST: Cell<Option<usize>> = const { Cell::new(None) };
        static NOTIFIED: Cell<usize> = const { Cell::new(0) };
        static TIMES_OUT: Cell<bool> = const { Cell::new(false) };
    }

    /// Counts notifications from 0 on, and plants a mistake: the one with this number wakes nobody.
    pub fn lose_notification(number: Option<usize>) {
        NOTIFIED.set(0);
        LOST.set(number);
    }

    /// How many notifications there were since.
    pub fn notifications() -> usize {
        NOTIFIED.get()
    }

    pub(super) fn is_heard() -> bool {
        LOST.get() != Some(NOTIFIED.replace(NOTIFIED.get() + 1))
    }

    /// Whether waits of limited time may end for that. Otherwise they do not, so that a wait nobody ends is found.
    pub fn let_waits_time_out(may: bool) {
        TIMES_OUT.set(may);
    }

    pub(super) fn times_out() -> bool {
        TIMES_OUT.get()
    }
}

pub(crate) fn unpark(thread: &thread::Thread) {
    if faults::is_heard() {
        thread.unpark();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(plain::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    of: &'a Mutex<T>,
    /// There but while the lock is let go.
    guard: Option<plain::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(plain::Mutex::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { of: self, guard: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)) }
    }
}

impl<T> MutexGuard<'_, T> {
    pub(crate) fn unlocked<R>(this: &mut Self, f: impl FnOnce() -> R) -> R {
        this.guard = None;
        let result = f();
        this.guard = this.of.lock().guard;
        result
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("invariant: the lock is held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("invariant: the lock is held")
    }
}

#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(plain::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        RwLock(plain::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> plain::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> plain::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(plain::Condvar);

/// Whether a wait ended by time.
pub(crate) struct Ended(bool);

impl Ended {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Condvar(plain::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.guard.take().expect("invariant: the lock is held");
        guard.guard = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        _: Duration,
    ) -> Ended {
        while condition(guard) {
            if faults::times_out() && shuttle::rand::thread_rng().gen_ratio(1, 4) {
                MutexGuard::unlocked(guard, thread::yield_now);
                return Ended(true);
            }
            self.wait(guard);
        }
        Ended(false)
    }

    pub(crate) fn notify_all(&self) {
        if faults::is_heard() {
            self.0.notify_all();
        }
    }
}
