//! Where a program's time goes, step by step.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// How often steps of a kind ran, and for how long in all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepTime {
    /// The operator, or the operators of a fused kernel, with the sizes of the first result.
    pub name: String,
    /// Runs.
    pub count: u64,
    /// Time of all runs.
    pub total: Duration,
}

/// Times of steps while switched on.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    on: AtomicBool,
    times: Mutex<FxHashMap<String, (u64, Duration)>>,
}

impl Profile {
    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    pub(crate) fn add(&self, name: String, time: Duration) {
        let mut times = self.times.lock();
        let entry = times.entry(name).or_default();
        entry.0 += 1;
        entry.1 += time;
    }

    /// What was collected, longest first; collecting begins anew.
    pub(crate) fn take(&self) -> Vec<StepTime> {
        let times = std::mem::take(&mut *self.times.lock());
        let mut times: Vec<StepTime> =
            times.into_iter().map(|(name, (count, total))| StepTime { name, count, total }).collect();
        times.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
        times
    }
}
