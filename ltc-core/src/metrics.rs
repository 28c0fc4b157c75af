//! Counters and timings of a session (`metrics.h` of LTC, typed).

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use ltc_ir::FallbackReason;

use crate::{lock::Lock, sync::Mutex};

/// The live counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) recorded: AtomicU64,
    pub(crate) reused_nodes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) auto_syncs: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) respecialised: AtomicU64,
    pub(crate) guard_failures: AtomicU64,
    pub(crate) compiles: AtomicU64,
    pub(crate) executions: AtomicU64,
    pub(crate) inline_executions: AtomicU64,
    pub(crate) overlapped_executions: AtomicU64,
    pub(crate) uploads: AtomicU64,
    pub(crate) upload_bytes: AtomicU64,
    pub(crate) downloads: AtomicU64,
    pub(crate) donated: AtomicU64,
    pub(crate) sliced_inputs: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) canonicalize: Timing,
    pub(crate) respecialise: Timing,
    pub(crate) compile: Timing,
    pub(crate) execute: Timing,
    pub(crate) wait: Timing,
    pub(crate) fallbacks: Lock<BTreeMap<(String, FallbackReason), u64>>,
}

/// Bumps a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

const SAMPLES: usize = 1024;

/// Durations: count, total, and a ring of the last samples for percentiles.
#[derive(Debug, Default)]
pub(crate) struct Timing(Mutex<TimingState>);

#[derive(Debug, Default)]
struct TimingState {
    count: u64,
    total: Duration,
    samples: Vec<Duration>,
}

impl Timing {
    pub(crate) fn add(&self, d: Duration) {
        let mut t = self.0.lock();
        let at = t.count as usize % SAMPLES;
        if t.samples.len() < SAMPLES {
            t.samples.push(d)
        } else {
            t.samples[at] = d
        }
        t.count += 1;
        t.total += d;
    }

    fn summary(&self) -> TimingSummary {
        let t = self.0.lock();
        let mut sorted = t.samples.clone();
        sorted.sort_unstable();
        let at = |q: f64| sorted.get(((sorted.len() as f64 - 1.0) * q).round() as usize).copied().unwrap_or_default();
        TimingSummary { count: t.count, total: t.total, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }

    fn reset(&self) {
        *self.0.lock() = TimingState::default();
    }
}

/// Durations of one kind; percentiles are of the last 1,024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingSummary {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// Median.
    pub p50: Duration,
    /// 90th percentile.
    pub p90: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

/// A snapshot of a session's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Operations recorded.
    pub recorded: u64,
    /// Nodes of a step that were recorded again in the next one.
    pub reused_nodes: u64,
    /// Syncs that sent something to the device.
    pub syncs: u64,
    /// Syncs made by a limit.
    pub auto_syncs: u64,
    /// Programs found in the cache, those for other sizes included.
    pub cache_hits: u64,
    /// Programs found that were respecialised.
    pub respecialised: u64,
    /// Assumptions of programs for other sizes that did not hold, so that a graph was compiled.
    pub guard_failures: u64,
    /// Programs compiled.
    pub compiles: u64,
    /// Programs executed.
    pub executions: u64,
    /// Those of them that ran on the caller's thread because they are short.
    pub inline_executions: u64,
    /// Those that could have used every processor and ran on one, beside their caller.
    pub overlapped_executions: u64,
    /// Host tensors taken to the device.
    pub uploads: u64,
    /// Their bytes.
    pub upload_bytes: u64,
    /// Values read by the host.
    pub downloads: u64,
    /// Inputs that nobody else held when their programs ran: their memory was theirs to reuse.
    pub donated: u64,
    /// Inputs that were slices of values, at offsets of their own.
    pub sliced_inputs: u64,
    /// Operations that failed while running.
    pub failures: u64,
    /// Time from trace to canonical form.
    pub canonicalize: TimingSummary,
    /// Time to find and respecialise programs for other sizes.
    pub respecialise: TimingSummary,
    /// Time in the backend's compiler.
    pub compile: TimingSummary,
    /// Time programs ran.
    pub execute: TimingSummary,
    /// Time the program waited for values.
    pub wait: TimingSummary,
    /// Operators that ran eagerly, with reason and count.
    pub fallbacks: Vec<(String, FallbackReason, u64)>,
}

impl Metrics {
    /// Counters by name, those of PyTorch's LTC where it has them: eager runs under the operator's name.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let named = [
            ("MarkStep", self.syncs),
            ("RecordedOperations", self.recorded),
            ("IrNodeReused", self.reused_nodes),
            ("CachedCompile", self.cache_hits),
            ("RespecialisedCompile", self.respecialised),
            ("FailedGuards", self.guard_failures),
            ("UncachedCompile", self.compiles),
            ("ExecuteComputation", self.executions),
            ("OverlappedComputation", self.overlapped_executions),
            ("TransferToDevice", self.uploads),
            ("TransferFromDevice", self.downloads),
            ("DonatedInputs", self.donated),
            ("SlicedInputs", self.sliced_inputs),
            ("AutoSync", self.auto_syncs),
            ("FailedOperations", self.failures),
        ];
        let mut all: Vec<(String, u64)> =
            named.iter().filter(|(_, n)| *n > 0).map(|(k, n)| ((*k).into(), *n)).collect();
        for (op, _, n) in &self.fallbacks {
            let name = op.split('.').next().unwrap_or(op);
            match all.iter_mut().find(|(k, _)| k == name) {
                Some((_, total)) => *total += n,
                None => all.push((name.to_owned(), *n)),
            }
        }
        all
    }

    /// Eager runs of all operators.
    pub fn fallback_count(&self) -> u64 {
        self.fallbacks.iter().map(|(_, _, n)| n).sum()
    }
}

impl Counters {
    pub(crate) fn note_fallback(&self, op: &str, reason: FallbackReason) {
        *self.fallbacks.lock().entry((op.to_owned(), reason)).or_default() += 1;
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let get = |c: &AtomicU64| c.load(Relaxed);
        Metrics {
            recorded: get(&self.recorded),
            reused_nodes: get(&self.reused_nodes),
            syncs: get(&self.syncs),
            auto_syncs: get(&self.auto_syncs),
            cache_hits: get(&self.cache_hits),
            respecialised: get(&self.respecialised),
            guard_failures: get(&self.guard_failures),
            compiles: get(&self.compiles),
            executions: get(&self.executions),
            inline_executions: get(&self.inline_executions),
            overlapped_executions: get(&self.overlapped_executions),
            uploads: get(&self.uploads),
            upload_bytes: get(&self.upload_bytes),
            downloads: get(&self.downloads),
            donated: get(&self.donated),
            sliced_inputs: get(&self.sliced_inputs),
            failures: get(&self.failures),
            canonicalize: self.canonicalize.summary(),
            respecialise: self.respecialise.summary(),
            compile: self.compile.summary(),
            execute: self.execute.summary(),
            wait: self.wait.summary(),
            fallbacks: self.fallbacks.lock().iter().map(|((op, why), n)| (op.clone(), *why, *n)).collect(),
        }
    }

    pub(crate) fn reset(&self) {
        for c in [
            &self.recorded,
            &self.reused_nodes,
            &self.syncs,
            &self.auto_syncs,
            &self.cache_hits,
            &self.respecialised,
            &self.guard_failures,
            &self.compiles,
            &self.executions,
            &self.inline_executions,
            &self.overlapped_executions,
            &self.uploads,
            &self.upload_bytes,
            &self.downloads,
            &self.donated,
            &self.sliced_inputs,
            &self.failures,
        ] {
            c.store(0, Relaxed);
        }
        for t in [&self.canonicalize, &self.respecialise, &self.compile, &self.execute, &self.wait] {
            t.reset();
        }
        self.fallbacks.lock().clear();
    }
}

/// A report for people: one line per counter that is not zero, then timings, then fallbacks.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            ("operations recorded", self.recorded),
            ("nodes reused", self.reused_nodes),
            ("syncs", self.syncs),
            ("syncs by a limit", self.auto_syncs),
            ("cache hits", self.cache_hits),
            ("programs respecialised", self.respecialised),
            ("guards failed", self.guard_failures),
            ("compiles", self.compiles),
            ("executions", self.executions),
            ("executions inline", self.inline_executions),
            ("executions overlapped", self.overlapped_executions),
            ("uploads", self.uploads),
            ("upload bytes", self.upload_bytes),
            ("values read", self.downloads),
            ("inputs reused", self.donated),
            ("failures", self.failures),
        ];
        for (name, n) in counters.into_iter().filter(|(_, n)| *n > 0) {
            writeln!(f, "{name:<20} {n}")?;
        }
        let timings = [
            ("canonicalize", self.canonicalize),
            ("respecialise", self.respecialise),
            ("compile", self.compile),
            ("execute", self.execute),
            ("wait", self.wait),
        ];
        for (name, t) in timings.into_iter().filter(|(_, t)| t.count > 0) {
            writeln!(
                f,
                "{name:<20} {}x, total {:?}, p50 {:?}, p90 {:?}, p99 {:?}",
                t.count, t.total, t.p50, t.p90, t.p99
            )?;
        }
        for (op, why, n) in &self.fallbacks {
            writeln!(f, "fallback             {op}: {n}x, {}", why.as_str())?;
        }
        Ok(())
    }
}
