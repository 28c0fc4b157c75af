//! Waits that can be given up.

use std::time::Duration;

use crate::sync::{Condvar, MutexGuard};

/// How long a wait sleeps before it asks whether it is still wanted.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Asked now and then by a wait: whether to give up.
pub(crate) type GiveUp<'a> = &'a dyn Fn() -> bool;

/// Waits while a condition holds; false if the wait was given up. No lock is held while it asks.
pub(crate) fn wait_while<T>(
    changed: &Condvar,
    state: &mut MutexGuard<'_, T>,
    mut condition: impl FnMut(&mut T) -> bool,
    give_up: GiveUp<'_>,
) -> bool {
    while changed.wait_while_for(state, &mut condition, TICK).timed_out() && condition(state) {
        if MutexGuard::unlocked(state, give_up) {
            return false;
        }
    }
    true
}

/// Nothing interrupts this wait.
pub(crate) const NEVER: GiveUp<'static> = &|| false;
