//! A repeated step is matched against the last one: it happens, it can be switched off, and nothing else can be seen of it.

use std::sync::Arc;

use ltc_backend::{ReferenceBackend, testing::RecordingBackend};
use ltc_core::{Config, Device, Error, Event, LazyTensor, Session};
use proptest::prelude::*;

fn config(trace_reuse: bool) -> Config {
    let mut config = Config::default();
    config.trace_reuse = trace_reuse;
    config
}

fn ramp(dev: &Device, sizes: &[i64]) -> LazyTensor {
    let n: i64 = sizes.iter().product();
    LazyTensor::from_slice(dev, &(0..n).map(|i| i as f32).collect::<Vec<_>>(), sizes).expect("a tensor")
}

/// Calls matched, calls looked up, traces matched, over three equal steps and one that is longer.
fn counts(trace_reuse: bool) -> (u64, u64, u64) {
    let session = Session::new(Arc::new(RecordingBackend::default()), config(trace_reuse)).expect("a session");
    let dev = session.device(0).expect("a device");
    let x = ramp(dev, &[4]);
    for length in [10, 10, 10, 11] {
        let y = (0..length).fold(x.clone(), |y, i| if i % 2 == 0 { y * f64::from(length) } else { &y + &x });
        dev.sync().expect("the step is sent");
        drop(y);
    }
    let m = session.metrics();
    assert_eq!((m.recorded, m.compiles), (41, 2));
    (m.reused_calls, m.other_calls, m.reused_traces)
}

#[test]
fn a_repeated_step_is_matched_call_by_call_and_as_a_whole() {
    // A thread of its own: what it remembers is not what another test left.
    let on = std::thread::spawn(|| counts(true)).join().expect("no panic");
    // Calls alternate: what comes after `*` and after `+` is known after three of them. Of the traces, the second shows what
    // comes after the first one's program, the third is as expected, and the fourth is longer.
    assert_eq!(on, (38, 3, 1));
    let off = std::thread::spawn(|| counts(false)).join().expect("no panic");
    assert_eq!(off, (0, 41, 0));
}

#[test]
fn a_matched_trace_is_confirmed_and_forgotten_programs_are_compiled_again() -> Result<(), Error> {
    let session = Session::new(Arc::new(RecordingBackend::default()), config(true))?;
    let dev = session.device(0)?;
    let (x, z) = (ramp(dev, &[4]), ramp(dev, &[4]));
    let step = |other: &LazyTensor| -> Result<(), Error> {
        let _y = (&x + other) * 2.0;
        dev.sync()
    };
    // The same calls with other operands: signatures are equal, graphs are not.
    for other in [&x, &x, &x, &z, &x, &z] {
        step(other)?;
    }
    let m = session.metrics();
    assert_eq!((m.compiles, m.cache_hits), (2, 4));
    session.clear_cache();
    step(&x)?;
    assert_eq!(session.metrics().compiles, 3);
    Ok(())
}

/// A loop over batches of two sizes: the program of one size is made from the other's, and both are matched from then on.
#[test]
fn programs_made_for_other_sizes_are_matched_too() -> Result<(), Error> {
    for (trace_reuse, matched) in [(true, 5), (false, 0)] {
        let mut config = config(trace_reuse);
        config.check_cache = true;
        let session = Session::new(Arc::new(ReferenceBackend), config)?;
        let dev = session.device(0)?;
        for n in [4, 6, 4, 6, 4, 6, 4, 6] {
            let sums = (ramp(dev, &[n, 2]) * 2.0).sum_dim(Some(&[1]))?;
            assert_eq!(sums.to_vec::<f32>()?, (0..n).map(|i| (8 * i + 2) as f32).collect::<Vec<_>>());
        }
        let m = session.metrics();
        // Hits count the resize; the second and the third step show what comes after either program.
        assert_eq!((m.compiles, m.resizes, m.cache_hits, m.reused_traces), (1, 1, 7, matched));
    }
    Ok(())
}

/// What a wrong guess looked at is not kept for that: the cache forgets what was used least recently, as without guesses.
#[test]
fn guesses_do_not_change_what_the_cache_forgets() -> Result<(), Error> {
    let compiles = |trace_reuse: bool| -> Result<(u64, u64), Error> {
        let mut config = config(trace_reuse);
        (config.cache_entries, config.symbolic) = (3, false);
        let session = Session::new(Arc::new(RecordingBackend::default()), config)?;
        let dev = session.device(0)?;
        let x = ramp(dev, &[4]);
        let step = |length: i64| -> Result<(), Error> {
            let _y = (0..length).fold(x.clone(), |y, _| y * 2.0);
            dev.sync()
        };
        // At the second 1, 2 is expected; 3 comes, so 2 is the oldest when 4 needs room, and has to be compiled again.
        for length in [1, 2, 3, 1, 3, 4, 3, 1, 2] {
            step(length)?;
        }
        let m = session.metrics();
        Ok((m.compiles, m.cache_hits))
    };
    assert_eq!(compiles(true)?, (5, 4));
    assert_eq!(compiles(false)?, (5, 4));
    Ok(())
}

/// A call that draws may be matched as any other, and draws on.
#[test]
fn matched_calls_draw_new_numbers() -> Result<(), Error> {
    let session = Session::new(Arc::new(RecordingBackend::default()), config(true))?;
    let dev = session.device(0)?;
    let x = ramp(dev, &[4]);
    let mut states: Vec<LazyTensor> = Vec::new();
    for _ in 0..4 {
        states.push(x.bernoulli_p(0.5)?);
        // A failing call in between lets the generator go.
        assert!(x.matmul(&ramp(dev, &[3])).is_err());
    }
    dev.sync()?;
    let m = session.metrics();
    assert_eq!(m.recorded, 5, "a seed, and a draw from the state of the draw before");
    assert!(m.reused_calls > 0, "{}", m.reused_calls);
    Ok(())
}

/// One call of a program: which operator, on which of the tensors there are.
type Step = Vec<(u8, prop::sample::Index, prop::sample::Index)>;

fn program() -> impl Strategy<Value = Step> {
    prop::collection::vec((0..9u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..12)
}

/// What a user sees of the program that runs these steps on batches of these sizes: values, errors, and hashes of graphs.
fn observed(steps: &[(&Step, i64)], trace_reuse: bool) -> (Vec<String>, Vec<Event>) {
    let mut config = config(trace_reuse);
    // A small cache that checks itself; programs run at once, so that none is held longer than the cache holds it.
    (config.cache_entries, config.check_cache, config.async_execution) = (3, true, false);
    let session = Session::new(Arc::new(ReferenceBackend), config).expect("a session");
    session.record_events(true);
    let dev = session.device(0).expect("a device");
    let mut seen = Vec::new();
    for (number, &(step, batch)) in steps.iter().enumerate() {
        let kept = [ramp(dev, &[batch, 3]), ramp(dev, &[3]), ramp(dev, &[batch, 1])];
        let mut all = kept.to_vec();
        for (op, a, b) in step.iter() {
            let (a, b) = (a.get(&all).clone(), b.get(&all).clone());
            let new = match op {
                0 => a.add(&b),
                1 => a.mul(&b),
                2 => a.relu(),
                3 => a.mul(number as f64 + 0.5),
                4 => a.sum(),
                // A view: what is written through it shows in its base.
                5 => a.i(0),
                6 => a.add_(&b).map(|()| a.clone()),
                7 => a.matmul(&b),
                _ => a.mul_(0.5).map(|()| a.clone()),
            };
            match new {
                Ok(t) => all.push(t),
                Err(e) => seen.push(e.to_string()),
            }
        }
        if number % 3 == 1 {
            all.truncate(kept.len() + 1);
        }
        dev.sync().expect("a step is sent");
        seen.extend(all.iter().map(|t| format!("{:?} {:?}", t.layout(), t.to_vec::<f32>())));
    }
    (seen, session.take_events())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two programs in turns, as a loop with a branch runs them, on batches of some sizes.
    #[test]
    fn nothing_can_be_seen_of_it(
        a in program(),
        b in program(),
        turns in prop::collection::vec((any::<bool>(), 1..4i64), 1..8),
    ) {
        let steps: Vec<_> = turns.iter().map(|&(first, batch)| (if first { &a } else { &b }, batch)).collect();
        prop_assert_eq!(observed(&steps, true), observed(&steps, false));
    }
}
