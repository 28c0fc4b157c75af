//! Whether a program that could take every processor makes steps faster on one, beside its caller.
//!
//! What several threads take off the program against what the caller does meanwhile: neither is known before, so both ways
//! are tried and steps are timed, from program to program.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Runs of one way in a row.
const BLOCK: u32 = 8;
/// Those of them that are not timed: programs of the other way may still wait in the queue.
const SETTLE: u32 = 3;
/// Blocks, of either way in turn, of which the fastest decides.
const BLOCKS: u32 = 4;
/// Runs after which both are tried again: soon, when kernels have become machine code, then now and then.
const AGAIN: [u32; 2] = [128, 8192];

/// Steps of one program, timed.
#[derive(Debug, Default)]
pub(crate) struct Trial(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    runs: u32,
    /// Both were tried before.
    again: bool,
    /// When the timed part of this block began.
    began: Option<Instant>,
    /// Shortest mean time of a step, without and with overlap.
    best: [Option<Duration>; 2],
}

impl Trial {
    /// Whether the next run, of which the caller is about to dispose, should be on one thread.
    pub(crate) fn next(&self, now: impl FnOnce() -> Instant) -> bool {
        let measured = &mut *self.0.lock();
        if measured.runs >= AGAIN[usize::from(measured.again)] {
            *measured = Measured { again: true, ..Measured::default() };
        }
        let (block, run) = (measured.runs / BLOCK, measured.runs % BLOCK);
        measured.runs += 1;
        let overlaps = block % 2 == 1;
        if block >= BLOCKS {
            return matches!(measured.best, [Some(alone), Some(beside)] if beside < alone);
        }
        if run == SETTLE {
            measured.began = Some(now());
        } else if let Some(began) = measured.began.take_if(|_| run == BLOCK - 1) {
            let step = (now() - began) / (BLOCK - 1 - SETTLE);
            let best = &mut measured.best[usize::from(overlaps)];
            *best = Some(best.map_or(step, |b| b.min(step)));
        }
        overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of so many runs where steps take these times.
    fn ways(trial: &Trial, runs: u32, alone: u64, beside: u64) -> Vec<bool> {
        let mut clock = Instant::now();
        let step = |_| {
            let overlaps = trial.next(|| clock);
            clock += Duration::from_micros(if overlaps { beside } else { alone });
            overlaps
        };
        (0..runs).map(step).collect()
    }

    #[test]
    fn the_faster_way_is_kept() {
        for (alone, beside) in [(100, 60), (60, 100)] {
            let trial = Trial::default();
            let tried = ways(&trial, BLOCK * BLOCKS, alone, beside);
            assert_eq!(tried.iter().filter(|&&o| o).count() as u32, BLOCK * BLOCKS / 2, "both are tried");
            let kept = ways(&trial, AGAIN[0] - BLOCK * BLOCKS, alone, beside);
            assert!(kept.iter().all(|&overlaps| overlaps == (beside < alone)), "{alone} {beside}");
        }
    }

    #[test]
    fn both_are_tried_again() {
        let trial = Trial::default();
        ways(&trial, AGAIN[0], 100, 60);
        // Kernels became machine code.
        ways(&trial, BLOCK * BLOCKS, 40, 60);
        assert!(ways(&trial, AGAIN[1] - BLOCK * BLOCKS, 40, 60).iter().all(|&overlaps| !overlaps));
        let tried = ways(&trial, BLOCK * BLOCKS, 40, 30);
        assert!(tried.contains(&true) && tried.contains(&false));
        assert!(ways(&trial, 100, 40, 30).iter().all(|&overlaps| overlaps));
    }
}
