//! Which of two ways to run the same program is faster: by its own measured times, so only for ways that give the same
//! bits.

use std::{
    mem::take,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;

/// Runs of one way in a row.
const BLOCK: u32 = 8;
/// Blocks, of either way in turn.
const BLOCKS: u32 = 4;
/// Times kept of each kind: those of all runs of one way.
const TIMES: usize = (BLOCK * BLOCKS / 2) as usize;

/// Both ways of one program, tried in turn and timed; of each way, `KINDS` kinds of times. The usual way is `false`,
/// the other `true`.
#[derive(Debug, Default)]
pub struct AbTrial<const KINDS: usize> {
    measured: Mutex<Measured<KINDS>>,
    /// Times are wanted.
    open: AtomicBool,
}

#[derive(Debug)]
struct Measured<const KINDS: usize> {
    runs: u32,
    /// Both were tried before.
    again: bool,
    times: [[Vec<Duration>; KINDS]; 2],
    /// What came of it.
    better: bool,
}

impl<const KINDS: usize> Default for Measured<KINDS> {
    fn default() -> Self {
        let times = std::array::from_fn(|_| std::array::from_fn(|_| Vec::new()));
        Measured { runs: 0, again: false, times, better: false }
    }
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}

impl<const KINDS: usize> AbTrial<KINDS> {
    /// Runs of a trial, half of them either way.
    pub const RUNS: u32 = BLOCK * BLOCKS;
    /// Runs after which both are tried again: soon, when kernels have become machine code, then now and then.
    pub const AGAIN: [u32; 2] = [128, 8192];

    /// The way of the next run. `is_faster` says of the medians of each kind, of the usual way and of the other,
    /// whether the other is faster; it is asked once per trial, if there are times of all kinds.
    pub fn next(&self, is_faster: impl FnOnce([[Duration; KINDS]; 2]) -> bool) -> bool {
        let measured = &mut *self.measured.lock();
        if measured.runs >= Self::AGAIN[usize::from(measured.again)] {
            *measured = Measured { again: true, ..Measured::default() };
        }
        let block = measured.runs / BLOCK;
        measured.runs += 1;
        if block < BLOCKS {
            self.open.store(true, Relaxed);
            return block % 2 == 1;
        }
        if self.open.swap(false, Relaxed) {
            let medians = measured.times.each_mut().map(|kinds| kinds.each_mut().map(|times| median(take(times))));
            let known = medians.iter().flatten().all(Option::is_some);
            measured.better = known && is_faster(medians.map(|kinds| kinds.map(Option::unwrap_or_default)));
        }
        measured.better
    }

    /// A run of this way took so long, by the clock of this kind.
    pub fn note(&self, way: bool, kind: usize, time: Duration) {
        if self.open.load(Relaxed) {
            let times = &mut self.measured.lock().times[usize::from(way)][kind];
            // A program may run on with its trial interrupted.
            if times.len() < TIMES {
                times.push(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of so many runs of a program that takes these times, in microseconds.
    fn ways(trial: &AbTrial<1>, runs: u32, times: [u64; 2]) -> Vec<bool> {
        let run = |_| {
            let way = trial.next(|[[usual], [other]]| other < usual);
            trial.note(way, 0, Duration::from_micros(times[usize::from(way)]));
            way
        };
        (0..runs).map(run).collect()
    }

    #[test]
    fn the_faster_way_is_kept() {
        for (times, better) in [([100, 60], true), ([60, 100], false), ([100, 100], false)] {
            let trial = AbTrial::default();
            let tried = ways(&trial, AbTrial::<1>::RUNS, times);
            assert_eq!(tried.iter().filter(|&&way| way).count() as u32, AbTrial::<1>::RUNS / 2, "both are tried");
            let kept = ways(&trial, AbTrial::<1>::AGAIN[0] - AbTrial::<1>::RUNS, times);
            assert!(kept.iter().all(|&way| way == better), "{times:?}");
        }
    }

    #[test]
    fn an_interrupted_trial_keeps_no_more_times() {
        let trial = AbTrial::<1>::default();
        ways(&trial, BLOCK, [100, 150]);
        (0..10 * TIMES).for_each(|_| trial.note(false, 0, Duration::from_micros(100)));
        assert_eq!(trial.measured.lock().times[0][0].len(), TIMES);
    }

    #[test]
    fn a_way_that_was_never_timed_is_not_taken() {
        let trial = AbTrial::<1>::default();
        for _ in 0..AbTrial::<1>::RUNS {
            trial.next(|_| true);
        }
        assert!(!trial.next(|_| true), "nothing is known of it");
    }

    #[test]
    fn both_are_tried_again() {
        let trial = AbTrial::default();
        let [soon, later] = AbTrial::<1>::AGAIN;
        ways(&trial, soon, [100, 150]);
        // Kernels became machine code.
        let tried = ways(&trial, AbTrial::<1>::RUNS, [100, 60]);
        assert!(tried.contains(&true) && tried.contains(&false));
        assert!(ways(&trial, later - AbTrial::<1>::RUNS, [100, 60]).iter().all(|&way| way));
        let tried = ways(&trial, AbTrial::<1>::RUNS, [100, 150]);
        assert!(tried.contains(&true) && tried.contains(&false));
        assert!(ways(&trial, 100, [100, 150]).iter().all(|&way| !way));
    }
}
