//! Eager calls, counted by operator and reason.

use std::{collections::BTreeMap, fmt::Write};

use ltc_backend::FallbackReason;
use parking_lot::Mutex;

use crate::policy::advice;

/// Counts of eager calls of one session. Shared between threads; counting a known operator allocates nothing.
#[derive(Debug, Default)]
pub struct Stats {
    counts: Mutex<BTreeMap<Box<str>, BTreeMap<FallbackReason, u64>>>,
}

/// How often one operator ran eagerly for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Count {
    /// Operator, with overload.
    pub op: String,
    /// Why.
    pub reason: FallbackReason,
    /// How often.
    pub calls: u64,
}

impl Stats {
    /// Counts one call.
    pub fn count(&self, op: &str, reason: FallbackReason) {
        let mut counts = self.counts.lock();
        if let Some(of_op) = counts.get_mut(op) {
            *of_op.entry(reason).or_default() += 1;
        } else {
            counts.insert(op.into(), BTreeMap::from([(reason, 1)]));
        }
    }

    /// All counts: most calls first, then by operator and reason.
    pub fn counts(&self) -> Vec<Count> {
        let mut all: Vec<Count> = self
            .counts
            .lock()
            .iter()
            .flat_map(|(op, of_op)| of_op.iter().map(|(&reason, &calls)| Count { op: op.to_string(), reason, calls }))
            .collect();
        // Stable: equal counts stay in the order of operator and reason.
        all.sort_by_key(|c| std::cmp::Reverse(c.calls));
        all
    }

    /// How many calls there were.
    pub fn total(&self) -> u64 {
        self.counts.lock().values().flat_map(BTreeMap::values).sum()
    }

    /// Forgets all counts.
    pub fn reset(&self) {
        self.counts.lock().clear();
    }

    /// A table for people: calls, operator, reason, and what to do about it. Deterministic.
    pub fn report(&self) -> String {
        let counts = self.counts();
        if counts.is_empty() {
            return "no eager calls\n".into();
        }
        let total: u64 = counts.iter().map(|c| c.calls).sum();
        let mut out = format!("{total} eager calls\n");
        for Count { op, reason, calls } in counts {
            // Infallible: a String takes all that is written to it. So below.
            let _ = write!(out, "{calls:>8}  {op}: {}", reason.as_str());
            let _ = match advice(&op).filter(|_| reason == FallbackReason::DataDependent) {
                Some(advice) => writeln!(out, ". {advice}."),
                None => writeln!(out),
            };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_ordered_by_calls_then_name() {
        let stats = Stats::default();
        for op in ["aten::nonzero", "aten::b", "aten::a", "aten::nonzero"] {
            stats.count(op, FallbackReason::DataDependent);
        }
        stats.count("aten::a", FallbackReason::Forced);
        assert_eq!(stats.total(), 5);
        let report = stats.report();
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(lines[0], "5 eager calls");
        assert!(lines[1].starts_with("       2  aten::nonzero: result depends on data. The result has as many rows"));
        assert_eq!(
            lines[2..],
            [
                "       1  aten::a: result depends on data",
                "       1  aten::a: forced by configuration",
                "       1  aten::b: result depends on data",
            ]
        );
    }

    #[test]
    fn reset_forgets() {
        let stats = Stats::default();
        stats.count("aten::item", FallbackReason::NoShapeFunction);
        stats.reset();
        assert_eq!((stats.total(), stats.counts(), stats.report().as_str()), (0, vec![], "no eager calls\n"));
    }

    #[test]
    fn counts_from_many_threads_add_up() {
        let stats = Stats::default();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..100).for_each(|_| stats.count("aten::equal", FallbackReason::DataDependent)));
            }
        });
        assert_eq!(stats.counts(), [Count { op: "aten::equal".into(), reason: FallbackReason::DataDependent, calls: 400 }]);
    }
}
