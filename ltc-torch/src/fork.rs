//! A forked child can use the devices: before a fork everything sent is waited for and all locks are taken, after it
//! they are given back, and the child begins with new executors.

use std::cell::RefCell;

use ltc_torch_sys::{AtFork, TorchError};
use ltc_ts::HeldThreads;

use crate::{RUNTIME, Runtime};

struct Held {
    session: ltc_core::HeldSession<'static>,
    threads: HeldThreads,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn prepare() {
    let Some(runtime) = RUNTIME.get() else { return };
    let held = Held { session: runtime.session.hold(), threads: HeldThreads::take() };
    // A thread that is ending has nothing to keep it in: then the locks are taken and given back, which is most of it.
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

fn parent() {
    let _ = HELD.try_with(RefCell::take);
}

fn child() {
    let held = HELD.try_with(RefCell::take);
    if let Ok(Some(mut held)) = held {
        held.session.begin_anew();
        crate::capture_log::begin_anew();
        held.threads.begin_anew();
    }
}

pub(crate) fn install() -> Result<(), TorchError> {
    ltc_torch_sys::at_fork(AtFork { prepare, parent, child })
}

impl Runtime {
    /// Sends what is pending, and waits for it without asking how it went.
    pub(crate) fn quiesce(&self) {
        for device in self.session.devices() {
            // What failed says so when it is read.
            device.quiesce();
        }
    }
}
