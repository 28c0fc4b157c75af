//! What is known of how long a program runs, and of what its caller does meanwhile.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::overlap::Overlap;

/// A running mean of times, in which the last few weigh most; there is none before the first time. A time far above the
/// mean (the thread had to wait for a processor) counts as twice the mean.
#[derive(Debug, Default)]
pub(crate) struct Mean(AtomicU64);

impl Mean {
    pub(crate) fn note(&self, time: Duration) {
        let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let old = self.0.load(Relaxed);
        // A lost update loses one sample.
        self.0.store(if old == 0 { new } else { (3 * old + new.min(2 * old)).div_ceil(4) }, Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        Some(self.0.load(Relaxed)).filter(|&n| n > 0).map(Duration::from_nanos)
    }
}

/// What is known of a program.
#[derive(Debug, Default)]
pub(crate) struct RunTimes {
    /// How long it runs, on as many threads as it takes.
    pub(crate) run: Mean,
    /// How long its caller goes on before somebody waits, or the next program comes.
    pub(crate) until_needed: Mean,
    /// How many operations its caller recorded meanwhile, the last time and the time before.
    recorded: [AtomicU64; 2],
    pub(crate) overlap: Overlap,
}

impl RunTimes {
    /// Whether the caller has so much to do beside the program that running the program on one thread may pay. A
    /// quarter of the ideal is enough, because several threads seldom make a program as much faster as they could.
    pub(crate) fn has_company(&self, processors: usize) -> bool {
        let several = u32::try_from(processors.saturating_sub(1)).unwrap_or(u32::MAX);
        let enough = |run: Duration, until_needed: Duration| until_needed >= (run / 4).saturating_mul(several);
        several > 0
            && self.run.get().zip(self.until_needed.get()).is_some_and(|(run, until_needed)| enough(run, until_needed))
    }

    pub(crate) fn note_recorded(&self, operations: u64) {
        let [last, before] = &self.recorded;
        before.store(last.swap(operations, Relaxed), Relaxed);
    }

    /// Whether the caller records for longer than `saves`, the time that several threads take off the program. The time
    /// is estimated from counted operations, not measured. The larger of the last two counts is taken, so that a caller
    /// who pauses now and then is judged by what it does otherwise.
    pub(crate) fn records_longer_than(&self, saves: Duration, each: Duration) -> bool {
        let operations = self.recorded.iter().map(|n| n.load(Relaxed)).max().unwrap_or(0);
        each.saturating_mul(u32::try_from(operations).unwrap_or(u32::MAX)) > saves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_follows_its_samples_and_is_never_nothing_again() {
        let mean = Mean::default();
        assert_eq!(mean.get(), None);
        mean.note(Duration::ZERO);
        assert!(mean.get().is_some());
        (0..100).for_each(|_| mean.note(Duration::from_micros(40)));
        let near = mean.get().expect("noted");
        assert!(near > Duration::from_micros(39) && near <= Duration::from_micros(40), "{near:?}");
        mean.note(Duration::MAX);
        assert!(mean.get().expect("noted") <= Duration::from_micros(50), "one outlier counts little");
    }
}
