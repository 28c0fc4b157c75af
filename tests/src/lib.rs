//! What the tests share: random tensor programs, the subjects that run them, the comparison with eager libtorch.
//!
//! A [`program::Program`] is data. [`run::agree`] runs it on eager CPU tensors and on a [`subject::Subject`] side by
//! side and says where they differ: value, shape, dtype, strides, or that one raised an error and the other did not.

pub mod compare;
pub mod faults;
pub mod matrix;
pub mod program;
pub mod run;
pub mod steps;
pub mod strategy;
pub mod subject;
pub mod training;

use parking_lot::{Mutex, MutexGuard};

/// Tests of one binary share the process's one device: those that look at its events or counters take this first.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock()
}

/// How many cases a property runs: `LTC_TEST_CASES` or the default given.
pub fn cases(default: u32) -> u32 {
    std::env::var("LTC_TEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The seed of a property's random programs: fixed, so that a test run is reproducible; `LTC_TEST_SEED` gives others.
pub fn seed() -> proptest::test_runner::RngSeed {
    let n = std::env::var("LTC_TEST_SEED").ok().and_then(|v| v.parse().ok()).unwrap_or(20);
    proptest::test_runner::RngSeed::Fixed(n)
}
