//! Sends what others wait for.
//!
//! Once a collective is recorded, other processes may wait for it, whatever this one does next: read one of its own
//! values, wait for them by other means, or load data. So a thread watches a device on which one is pending, and sends
//! what is pending when nothing was recorded for a while. A device that goes on recording is left alone, so that equal
//! steps stay equal programs.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Device, State};
use crate::{
    event::SyncReason,
    lock::{Lock, Locked},
    sync::{Condvar, Mutex, thread},
};

/// A device on which nothing was recorded for so long is not recording.
const PAUSE: Duration = Duration::from_millis(20);

/// Whether what is pending may be sent now.
pub(crate) type MaySend = fn() -> bool;

#[derive(Debug, Default)]
struct Watch {
    /// Others wait for something that is pending.
    waiting: Option<MaySend>,
    /// The device is gone.
    closed: bool,
}

/// What the thread shares with the device.
#[derive(Debug, Default)]
struct Shared {
    watch: Mutex<Watch>,
    changed: Condvar,
}

/// The thread that watches one device; there is none until the first collective.
#[derive(Debug, Default)]
pub(crate) struct Liveness(Lock<Option<Arc<Shared>>>);

impl Device {
    /// Other processes wait for something that is pending. It is sent at the next sync, or, once `may_send` says so,
    /// when nothing more is recorded for 20 milliseconds.
    pub fn others_wait(&self, may_send: MaySend) {
        let shared = {
            let mut shared = self.0.liveness.0.lock();
            if shared.is_none() {
                let (new, device) = (Arc::new(Shared::default()), Arc::downgrade(&self.0));
                let name = format!("ltc-liveness-{}", self.index());
                let watched = new.clone();
                // If the system refuses the thread, other processes wait until the next sync of this one.
                let _ = thread::Builder::new().name(name).spawn(move || watch(&watched, &device));
                *shared = Some(new);
            }
            shared.clone()
        };
        let Some(shared) = shared else { return };
        if shared.watch.lock().waiting.replace(may_send).is_none() {
            shared.changed.notify_all();
        }
    }
}

impl Liveness {
    /// Notes that a sync is about to take all that is pending, so that other processes need not wait for it any more.
    pub(super) fn sending(&self) {
        if let Some(shared) = &*self.0.lock() {
            shared.watch.lock().waiting = None;
        }
    }

    /// What another thread could hold while this one forks.
    pub(super) fn hold(&self) -> HeldLiveness<'_> {
        HeldLiveness(self.0.lock())
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        if let Some(shared) = &*self.0.lock() {
            shared.watch.lock().closed = true;
            shared.changed.notify_all();
        }
    }
}

/// Keeps other threads from starting a watching thread, for the time of a fork.
pub(super) struct HeldLiveness<'a>(Locked<'a, Option<Arc<Shared>>>);

impl HeldLiveness<'_> {
    /// Forgets the watching thread in a forked child, where it does not exist.
    pub(super) fn begin_anew(&mut self) {
        *self.0 = None;
    }
}

fn watch(shared: &Shared, device: &Weak<State>) {
    loop {
        let mut watch = shared.watch.lock();
        while watch.waiting.is_none() && !watch.closed {
            shared.changed.wait(&mut watch);
        }
        if watch.closed {
            return;
        }
        drop(watch);
        let Some(recorded) = device.upgrade().map(|state| Device(state).recorded()) else { return };
        let may_send = {
            let mut watch = shared.watch.lock();
            shared.changed.wait_while_for(&mut watch, |w| w.waiting.is_some() && !w.closed, PAUSE);
            watch.waiting
        };
        if may_send.is_some_and(|may_send| may_send())
            && let Some(device) = device.upgrade().map(Device)
            && device.recorded() == recorded
        {
            device.sync_now(SyncReason::OthersWait);
        }
    }
}
