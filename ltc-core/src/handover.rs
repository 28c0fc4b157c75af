//! Whether handing a program to the executor thread pays.
//!
//! A hand-over wakes a sleeping thread, and often that one wakes the caller again; on some machines either takes as
//! long as a small program. What is gained is the time both threads work: as long as the program runs, but no longer
//! than until somebody waits for it. All three times are measured as programs run.
//!
//! A program whose kernels take every processor leaves none for its caller, who then runs it: work beside it would take
//! from the kernels what it gains. Besides, libtorch keeps a team of threads for every thread that runs kernels, and
//! two teams that together have more threads than there are processors sleep between kernels instead of spinning, which
//! costs more than most kernels. Programs that use more than half of the processors but not all are always handed over:
//! one team, the executor's.
//!
//! On one thread such a program leaves processors to its caller, and libtorch starts no team. If that changes no bit of
//! its results, both ways are timed where the caller has enough to do meanwhile to make it worth a trial
//! ([`crate::overlap`]). If it does, clocks have no say, so that bits are the same in each run of the user's program:
//! what several threads would take off is estimated from the program, and what the caller does meanwhile from how many
//! operations it records.

use std::{
    num::NonZero,
    ops::Range,
    sync::{Arc, OnceLock, Weak},
    thread,
    time::{Duration, Instant},
};

use ltc_backend::{RunCost, SingleThread};

use crate::{
    Config,
    cache::Program,
    lock::{Lock, Locked},
    run_times::Mean,
};

/// What is known of one device's hand-overs.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// How long it takes to wake the executor thread.
    wake: Mean,
    last: Lock<Option<Sent>>,
}

/// What a thread holds while another program is noted.
pub(crate) type Hold<'a> = Locked<'a, Option<Sent>>;

/// The last program sent.
#[derive(Debug)]
pub(crate) struct Sent {
    program: Weak<Program>,
    /// It is to use one thread.
    single_threaded: bool,
    /// When its caller went on, and how much it had recorded by then.
    at: Instant,
    recorded: u64,
}

/// Where a program is better run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunOn {
    /// On the executor thread.
    Worker,
    /// On the executor thread, whose kernels use no other thread.
    WorkerOneThread,
    /// On the caller's thread, if the executor has nothing to do.
    CallerIfIdle,
    /// On the caller's thread, once the executor has nothing to do.
    Caller,
}

/// Processors this process may use.
fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// What waking a thread is taken to cost before it was measured.
const WAKE: Duration = Duration::from_micros(10);

/// A program that takes this long is not run by a caller that may be interrupted, because nothing can stop a running
/// program. The limit is not lower, because with a second team of kernel threads, the executor's beside the caller's,
/// kernels of both sleep where they would spin.
const PATIENCE: Duration = Duration::from_millis(300);

/// Whether handing over saves time. Both threads work at once while the program runs and nobody waits for it; against
/// that, the executor has to be woken, and a caller who waits has to be woken, too.
fn is_gain(run: Duration, wake: Duration, until_needed: Option<Duration>) -> bool {
    match until_needed {
        Some(until_needed) if until_needed < run + wake => until_needed > 2 * wake,
        _ => run > wake,
    }
}

fn place(cost: Option<RunCost>, processors: usize, gains: impl FnOnce(Duration) -> bool) -> RunOn {
    match cost {
        Some(cost) if cost.threads >= processors.max(2) => RunOn::Caller,
        // There are enough processors for a team of threads of the caller's beside that of the executor.
        Some(cost) if 2 * cost.threads <= processors + 1 && !gains(cost.time) => RunOn::CallerIfIdle,
        _ => RunOn::Worker,
    }
}

impl Handover {
    /// Where a program is to run; `awaited`: somebody is waiting for it already; `interrupts`: whoever waits for the
    /// program may stop waiting.
    pub(crate) fn place(&self, program: &Program, awaited: bool, config: &Config, interrupts: bool) -> RunOn {
        let (cost, times) = (program.executable.cost(), &program.times);
        let place = place(cost, processors(), |estimate| {
            let run = times.run.get().unwrap_or(estimate);
            !awaited && is_gain(run, self.wake(), times.until_needed.get())
        });
        let may = place == RunOn::Caller && config.overlap && !awaited && processors() > 1;
        let single_threaded = match cost.map(|cost| cost.single_thread).filter(|_| may) {
            None | Some(SingleThread::Never) => false,
            Some(SingleThread::SameBits) => times.has_company(processors()) && times.overlap.next(),
            Some(SingleThread::OtherBits { saves }) => times.records_longer_than(saves, config.recording),
        };
        // Measured times decide only here, where both places use as many threads, so that they change no bit of a
        // result.
        let is_long = || interrupts && cost.is_some_and(|cost| times.run.get().unwrap_or(cost.time) >= PATIENCE);
        match place {
            _ if single_threaded => RunOn::WorkerOneThread,
            _ if is_long() => RunOn::Worker,
            place => place,
        }
    }

    fn wake(&self) -> Duration {
        self.wake.get().unwrap_or(WAKE)
    }

    /// Notes how long it took to wake the executor thread. The time is capped, because a first time that is slow and
    /// counts in full could stop all hand-overs, and with them all later measurements.
    pub(crate) fn woke(&self, time: Duration) {
        self.wake.note(time.min(2 * self.wake()));
    }

    /// Notes that a program was sent or run in this time and its caller goes on. `recorded`: how many operations the
    /// device has recorded so far.
    pub(crate) fn sent(&self, program: &Arc<Program>, single_threaded: bool, time: Range<Instant>, recorded: u64) {
        let sent = Sent { program: Arc::downgrade(program), single_threaded, at: time.end, recorded };
        self.needed_then(Some(sent), time.start, recorded);
    }

    /// Takes what other threads could hold of it.
    pub(crate) fn hold(&self) -> Hold<'_> {
        self.last.lock()
    }

    /// Somebody waits.
    pub(crate) fn needed(&self, now: Instant, recorded: u64) {
        self.needed_then(None, now, recorded);
    }

    fn needed_then(&self, next: Option<Sent>, now: Instant, recorded: u64) {
        let last = std::mem::replace(&mut *self.last.lock(), next);
        if let Some((sent, program)) = last.and_then(|sent| sent.program.upgrade().map(|program| (sent, program))) {
            let until_needed = now.saturating_duration_since(sent.at);
            program.times.until_needed.note(until_needed);
            program.times.note_recorded(recorded.saturating_sub(sent.recorded));
            program.times.overlap.had(sent.single_threaded, until_needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_handed_over_where_it_overlaps_for_longer_than_waking_takes() {
        let us = Duration::from_micros;
        assert!(is_gain(us(500), us(50), None), "nobody waits");
        assert!(!is_gain(us(40), us(50), None), "done before the other thread wakes");
        assert!(!is_gain(us(500), us(50), Some(us(60))), "needed at once");
        assert!(is_gain(us(500), us(50), Some(us(300))), "needed later");
        assert!(is_gain(us(500), us(50), Some(us(5000))), "needed long after");
        assert!(!is_gain(us(40), us(50), Some(us(5000))));
    }

    #[test]
    fn programs_that_take_every_processor_are_not_handed_over() {
        let of =
            |threads| Some(RunCost { time: Duration::from_millis(1), threads, single_thread: SingleThread::Never });
        assert_eq!(place(of(4), 4, |_| true), RunOn::Caller);
        assert_eq!(place(of(4), 8, |_| true), RunOn::Worker, "others are left");
        assert_eq!(place(of(4), 8, |_| false), RunOn::CallerIfIdle, "as many for a second team");
        assert_eq!(place(of(4), 6, |_| false), RunOn::Worker, "one team, the executor's");
        assert_eq!(place(of(2), 1, |_| true), RunOn::Caller);
        assert_eq!(place(of(1), 1, |_| true), RunOn::Worker, "it starts none, and there is other work");
        assert_eq!(place(of(1), 1, |_| false), RunOn::CallerIfIdle);
        assert_eq!(place(None, 1, |_| false), RunOn::Worker, "another device's work");
    }

    /// A program of one thread that is taken to run half a millisecond.
    #[derive(Debug)]
    struct Half;

    impl ltc_backend::Executable for Half {
        fn execute(&self, _: ltc_backend::Inputs, _: &mut dyn ltc_backend::OutputSink) {}

        fn cost(&self) -> Option<RunCost> {
            Some(RunCost { time: Duration::from_micros(500), threads: 1, single_thread: SingleThread::Never })
        }

        fn text(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_program_goes_to_the_worker_where_its_caller_has_other_work() {
        let graph = ltc_ir::Graph::parse("graph() { return }").expect("a graph");
        let program = Arc::new(Program::new(Arc::new(graph), Arc::new(Half), false));
        let (handover, config, begin) = (Handover::default(), Config::default(), Instant::now());
        let on = |awaited| handover.place(&program, awaited, &config, false);
        let mut steps = 0..;
        for (other_work, expected) in [
            (Duration::from_micros(5), RunOn::CallerIfIdle),
            (Duration::from_millis(20), RunOn::Worker),
            (Duration::from_micros(5), RunOn::CallerIfIdle),
        ] {
            for step in steps.by_ref().take(60) {
                let sent = begin + Duration::from_secs(step);
                handover.sent(&program, false, sent..sent, 0);
                handover.needed(sent + other_work, 0);
            }
            assert_eq!(on(false), expected, "{other_work:?} of other work");
            assert_eq!(on(true), RunOn::CallerIfIdle, "somebody waits already");
        }
    }

    #[test]
    fn one_slow_wake_does_not_end_hand_overs() {
        let handover = Handover::default();
        handover.woke(Duration::from_millis(5));
        let (run, until_needed) = (Duration::from_micros(300), Duration::from_micros(600));
        assert!(is_gain(run, handover.wake(), Some(until_needed)), "{:?}", handover.wake());
    }
}
