//! Whether a program that could take every processor makes steps faster on one, beside its caller: by the clock, so
//! only for programs whose results are the same in every bit.
//!
//! What several threads take off the program against what the caller does meanwhile: neither is known before, so both
//! ways are tried, and both times taken. Not those of whole steps: a caller that stops now and then to do something
//! else would count against the way it stops in.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use crate::sync::Mutex;

/// Runs of one way in a row.
const BLOCK: u32 = 8;
/// Blocks, of either way in turn.
const BLOCKS: u32 = 4;
/// Runs after which both are tried again: soon, when kernels have become machine code, then now and then.
const AGAIN: [u32; 2] = [128, 8192];
/// Times kept of each kind: those of all runs of one way.
const TIMES: usize = (BLOCK * BLOCKS / 2) as usize;

/// Both ways of one program, timed.
#[derive(Debug, Default)]
pub(crate) struct AbTrial {
    measured: Mutex<Measured>,
    /// Times are wanted.
    open: AtomicBool,
}

#[derive(Debug, Default)]
struct Measured {
    runs: u32,
    /// Both were tried before.
    again: bool,
    /// Without and with overlap.
    ways: [Way; 2],
    /// What came of it.
    overlaps: bool,
}

#[derive(Debug, Default)]
struct Way {
    /// How long the program ran.
    runs: Vec<Duration>,
    /// How long its caller went on before somebody waited, or the next program came.
    until_needed: Vec<Duration>,
}

fn median(times: &mut [Duration]) -> Option<Duration> {
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}

impl AbTrial {
    /// Whether the next run should be on one thread.
    pub(crate) fn next(&self) -> bool {
        let measured = &mut *self.measured.lock();
        if measured.runs >= AGAIN[usize::from(measured.again)] {
            *measured = Measured { again: true, ..Measured::default() };
        }
        let block = measured.runs / BLOCK;
        measured.runs += 1;
        if block >= BLOCKS {
            if self.open.swap(false, Relaxed) {
                measured.overlaps = is_faster(std::mem::take(&mut measured.ways));
            }
            return measured.overlaps;
        }
        self.open.store(true, Relaxed);
        block % 2 == 1
    }

    /// The program ran for so long, on one thread or not.
    pub(crate) fn ran(&self, single_threaded: bool, time: Duration) {
        self.note(single_threaded, |way| &mut way.runs, time);
    }

    /// So long was there something to do beside it, or after it.
    pub(crate) fn had(&self, single_threaded: bool, until_needed: Duration) {
        self.note(single_threaded, |way| &mut way.until_needed, until_needed);
    }

    fn note(&self, single_threaded: bool, kind: impl FnOnce(&mut Way) -> &mut Vec<Duration>, time: Duration) {
        if self.open.load(Relaxed) {
            let measured = &mut *self.measured.lock();
            let times = kind(&mut measured.ways[usize::from(single_threaded)]);
            // The program may run on with its trial interrupted, for as long as its caller has nothing else to do.
            if times.len() < TIMES {
                times.push(time);
            }
        }
    }
}

/// Whether the part of a step that may overlap is shorter with it: as long as the longer of both, not as both together.
fn is_faster(ways: [Way; 2]) -> bool {
    let [alone, beside] = ways.map(|mut way| median(&mut way.runs).zip(median(&mut way.until_needed)));
    alone.zip(beside).is_some_and(|((alone, after), (run, until_needed))| run.max(until_needed) < alone + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of so many runs of a program that takes these times, on all threads and on one, microseconds, and whose
    /// caller is then busy for as long.
    fn ways(trial: &AbTrial, runs: u32, times: [u64; 2], busy: impl Fn(u32) -> u64) -> Vec<bool> {
        let step = |i| {
            let single_threaded = trial.next();
            trial.ran(single_threaded, Duration::from_micros(times[usize::from(single_threaded)]));
            trial.had(single_threaded, Duration::from_micros(busy(i)));
            single_threaded
        };
        (0..runs).map(step).collect()
    }

    #[test]
    fn the_faster_way_is_kept() {
        for (times, busy, beside) in [([100, 150], 60, true), ([100, 170], 60, false), ([100, 120], 160, true)] {
            let trial = AbTrial::default();
            let tried = ways(&trial, BLOCK * BLOCKS, times, |_| busy);
            assert_eq!(tried.iter().filter(|&&o| o).count() as u32, BLOCK * BLOCKS / 2, "both are tried");
            let kept = ways(&trial, AGAIN[0] - BLOCK * BLOCKS, times, |_| busy);
            assert!(kept.iter().all(|&overlaps| overlaps == beside), "{times:?} {busy}");
        }
    }

    #[test]
    fn a_caller_who_stops_now_and_then_counts_against_neither() {
        for often in 3..12 {
            for (times, beside) in [([100, 150], true), ([100, 170], false)] {
                let trial = AbTrial::default();
                // Every so many steps it does something else, or waits.
                let busy = |i| if i % often == 0 { [50_000, 0][i as usize % 2] } else { 60 };
                ways(&trial, BLOCK * BLOCKS, times, busy);
                assert!(ways(&trial, 50, times, busy).iter().all(|&overlaps| overlaps == beside), "{often} {times:?}");
            }
        }
    }

    #[test]
    fn an_interrupted_trial_keeps_no_more_times() {
        let trial = AbTrial::default();
        ways(&trial, BLOCK, [100, 150], |_| 60);
        for _ in 0..10 * TIMES {
            trial.ran(false, Duration::from_micros(100));
            trial.had(false, Duration::ZERO);
        }
        let measured = trial.measured.lock();
        assert_eq!([measured.ways[0].runs.len(), measured.ways[0].until_needed.len()], [TIMES; 2]);
    }

    #[test]
    fn both_are_tried_again() {
        let trial = AbTrial::default();
        ways(&trial, AGAIN[0], [100, 150], |_| 60);
        // Kernels became machine code.
        ways(&trial, BLOCK * BLOCKS, [40, 120], |_| 60);
        let rest = ways(&trial, AGAIN[1] - BLOCK * BLOCKS, [40, 120], |_| 60);
        assert!(rest.iter().all(|&overlaps| !overlaps));
        let tried = ways(&trial, BLOCK * BLOCKS, [40, 80], |_| 60);
        assert!(tried.contains(&true) && tried.contains(&false));
        assert!(ways(&trial, 100, [40, 80], |_| 60).iter().all(|&overlaps| overlaps));
    }
}
