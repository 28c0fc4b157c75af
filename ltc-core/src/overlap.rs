//! Whether steps are faster if a program that could use every processor runs on one thread, beside its caller. Measured
//! times decide this, so it is done only for programs whose results are the same in every bit either way.
//!
//! The gain depends on the time that several threads take off the program and on the time for which the caller has
//! something else to do. Neither is known beforehand, so both ways are tried and both times measured. The times of
//! whole steps would be misleading: a caller that pauses now and then would count against the way in which it happens
//! to pause.

use std::time::Duration;

use ltc_backend::AbTrial;

/// How long the program ran.
const RAN: usize = 0;
/// How long its caller went on before somebody waited, or the next program came.
const UNTIL_NEEDED: usize = 1;

/// Both ways of one program, timed.
#[derive(Debug, Default)]
pub(crate) struct Overlap(AbTrial<2>);

impl Overlap {
    /// Whether the next run should be on one thread.
    pub(crate) fn next(&self) -> bool {
        self.0.next(is_faster)
    }

    /// The program ran for so long, on one thread or not.
    pub(crate) fn ran(&self, single_threaded: bool, time: Duration) {
        self.0.note(single_threaded, RAN, time);
    }

    /// Notes for how long the caller had something to do beside the program, or after it.
    pub(crate) fn had(&self, single_threaded: bool, until_needed: Duration) {
        self.0.note(single_threaded, UNTIL_NEEDED, until_needed);
    }
}

/// Whether a step is shorter if program and caller overlap. Overlapping, they take as long as the longer of both; one
/// after the other (the first pair of times, on all threads), they take as long as both together.
fn is_faster([[alone, after], [run, until_needed]]: [[Duration; 2]; 2]) -> bool {
    run.max(until_needed) < alone + after
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u32 = AbTrial::<2>::RUNS;

    /// The ways of so many runs of a program that takes these times, on all threads and on one, microseconds, and whose
    /// caller is then busy for as long.
    fn ways(trial: &Overlap, runs: u32, times: [u64; 2], busy: impl Fn(u32) -> u64) -> Vec<bool> {
        let step = |i| {
            let single_threaded = trial.next();
            trial.ran(single_threaded, Duration::from_micros(times[usize::from(single_threaded)]));
            trial.had(single_threaded, Duration::from_micros(busy(i)));
            single_threaded
        };
        (0..runs).map(step).collect()
    }

    #[test]
    fn a_program_overlaps_its_caller_where_the_longer_of_both_takes_less_than_one_after_the_other() {
        for (times, busy, beside) in [([100, 150], 60, true), ([100, 170], 60, false), ([100, 120], 160, true)] {
            let trial = Overlap::default();
            ways(&trial, RUNS, times, |_| busy);
            assert!(ways(&trial, 50, times, |_| busy).iter().all(|&overlaps| overlaps == beside), "{times:?} {busy}");
        }
    }

    #[test]
    fn a_caller_who_stops_now_and_then_counts_against_neither() {
        for often in 3..12 {
            for (times, beside) in [([100, 150], true), ([100, 170], false)] {
                let trial = Overlap::default();
                // Every so many steps it does something else, or waits.
                let busy = |i| if i % often == 0 { [50_000, 0][i as usize % 2] } else { 60 };
                ways(&trial, RUNS, times, busy);
                assert!(ways(&trial, 50, times, busy).iter().all(|&overlaps| overlaps == beside), "{often} {times:?}");
            }
        }
    }
}
