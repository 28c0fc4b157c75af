//! What recording native operators costs.
//!
//! `cargo run --release -p ltc-core --example recording`: nanoseconds per operator of a step of 100, least of many
//! steps (for machines that do other things too); the backend does nothing. `LTC_REUSE_NODES=0`: without the nodes of
//! the last step.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::{sync::Arc, time::Instant};

use ltc_backend::testing::RecordingBackend;
use ltc_core::{Config, Error, LazyTensor, Session};

const OPS: usize = 100;

type Step<'a> = &'a dyn Fn(&LazyTensor, usize) -> Result<LazyTensor, Error>;

fn main() -> Result<(), Error> {
    let mut config = Config::from_env()?;
    config.async_execution = false;
    let backend = RecordingBackend::default();
    let session = Session::new(Arc::new(backend.clone()), config)?;
    let dev = session.device(0)?;
    let a = LazyTensor::from_slice(dev, &[0f32; 16], &[16])?;
    let mixed = |y: &LazyTensor, i: usize| match i % 3 {
        0 => y.add(&a),
        1 => y.mul(1.5),
        _ => y.relu(),
    };
    let programs: [(&str, Step<'_>); 4] =
        [("mixed", &mixed), ("a + b", &|y, _| y.add(&a)), ("a * 1.5", &|y, _| y.mul(1.5)), ("relu", &|y, _| y.relu())];
    println!("{:<10}{:>10}{:>10}{:>22}", "", "record", "sync", "record, drop, no sync");
    for (name, operator) in programs {
        let step = || (0..OPS).try_fold(a.clone(), |y, i| operator(&y, i));
        let (mut record, mut sync, mut dropped) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..3000 {
            let start = Instant::now();
            let y = step()?;
            let recorded = start.elapsed();
            dev.sync()?;
            let both = start.elapsed();
            drop(y);
            backend.take_log();
            let start = Instant::now();
            drop(step()?);
            let per_operator = |d: std::time::Duration| d.as_secs_f64() * 1e9 / OPS as f64;
            dropped = dropped.min(per_operator(start.elapsed()));
            record = record.min(per_operator(recorded));
            sync = sync.min(per_operator(both - recorded));
            dev.sync()?;
        }
        println!("{name:<10}{record:>10.0}{sync:>10.0}{dropped:>22.0}");
    }
    Ok(())
}
