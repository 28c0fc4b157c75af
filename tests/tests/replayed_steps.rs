//! Compiled steps are what recording them each time is, also in which tensors share memory afterwards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ltc_tests::{alone, cases, seed, steps::agree_as_a_step, strategy, subject::Lazy};
use ltc_torch::{to_cpu, to_lazy};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

static REPLAYED: AtomicU64 = AtomicU64::new(0);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(100),
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 2000,
        ..Default::default()
    })]

    fn over_operators(program in strategy::programs(12)) {
        let _alone = alone();
        let replayed = agree_as_a_step(&program, 6).map_err(|d| TestCaseError::fail(format!("{d}\n{program:?}")))?;
        REPLAYED.fetch_add(replayed, Relaxed);
    }

    fn over_views_and_writes(program in strategy::aliasing(12)) {
        let _alone = alone();
        let replayed = agree_as_a_step(&program, 6).map_err(|d| TestCaseError::fail(format!("{d}\n{program:?}")))?;
        REPLAYED.fetch_add(replayed, Relaxed);
    }
}

#[test]
fn random_steps_agree_with_eager() {
    over_operators();
    over_views_and_writes();
    let replayed = REPLAYED.load(Relaxed);
    assert!(replayed > u64::from(cases(100)), "only {replayed} calls were replayed");
}

fn ones(n: i64) -> Tensor {
    // As the random steps have it, which are compared bit by bit: one process has one device.
    let _ = Lazy::new();
    to_lazy(&Tensor::ones([n], (Kind::Float, Device::Cpu))).expect("to the device")
}

fn first(t: &Tensor) -> f64 {
    to_cpu(t).expect("a value").double_value(&[0])
}

#[test]
fn results_share_the_memory_that_recorded_ones_share() {
    let _alone = alone();
    let (w, x) = (ones(4), ones(4));
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let mut w = w.shallow_clone();
        let _ = w.g_add_(&x[0]);
        let y = &w * &x[0];
        vec![w.view([2, 2]), y.view([2, 2]), y, x[0].slice(0, 1, None, 1)]
    });
    for call in 0..8 {
        let mut r = step.call(&[x.shallow_clone()], &[]).expect("a step");
        assert_eq!(first(&w), f64::from(call) + 2.0);
        let _ = r[1].fill_(7.0);
        assert_eq!(first(&r[2]), 7.0, "two results of one memory");
        let _ = r[0].fill_(f64::from(call) + 2.0);
        let _ = r[0].g_add_scalar_(1.0);
        assert_eq!(first(&w), f64::from(call) + 3.0, "a result that is what the step keeps");
        let _ = w.shallow_clone().g_sub_scalar_(1.0);
        let _ = r[3].fill_(1.0);
    }
    assert_eq!(step.counts(), (5, 3), "{:?}", step.refusal());
    let mut r = step.call(&[x.shallow_clone()], &[]).expect("a step");
    let _ = r[3].fill_(5.0);
    assert_eq!(to_cpu(&x).expect("a value").double_value(&[3]), 5.0, "a result that is an input");
}

#[test]
fn what_a_capture_assumed_is_looked_at_in_each_call() {
    let _alone = alone();
    let w = ones(4);
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| vec![&x[0] * 2.0 + &w, x[1].shallow_clone() + 1.0]);
    let (memory, other, b) = (ones(8), ones(8), ones(4));
    let (a, at) = (memory.slice(0, 0, 4, 1), |from: i64| memory.slice(0, from, from + 4, 1));
    let mut call = |a: &Tensor, b: &Tensor| {
        let r = step.call(&[a.shallow_clone(), b.shallow_clone()], &[]).expect("a step");
        assert_eq!((first(&r[0]), first(&r[1])), (3.0, 2.0));
        step.counts()
    };
    for _ in 0..3 {
        let _ = call(&a, &b);
    }
    assert_eq!(call(&a, &b), (1, 3));
    assert_eq!(call(&other.slice(0, 0, 4, 1), &b), (2, 3), "another tensor like it");
    assert_eq!(call(&ones(4), &b), (2, 4), "all of its memory: another kind of input");
    assert_eq!(call(&ones(4), &b), (2, 5));
    assert_eq!(call(&ones(4), &b), (3, 5), "captured as that");
    assert_eq!(call(&a, &b), (4, 5), "and what was captured before is still there");
    assert_eq!(call(&at(2), &b), (4, 6), "further on in its memory, where no capture has seen it yet");
    assert_eq!(call(&at(4), &b), (5, 6), "the step was the same there: it may begin anywhere");
    assert_eq!(call(&ones(6).slice(0, 1, 5, 1), &b), (6, 6), "in memory of any size");
    assert_eq!(call(&at(2), &at(2)), (6, 7), "inputs share memory");
    assert_eq!(call(&w, &b).0, 6, "an input the step keeps");
}

#[test]
fn batches_that_are_slices_are_replayed() {
    let _alone = alone();
    let range = |n: i64| Tensor::arange(n, (Kind::Float, Device::Cpu));
    let w = ones(3);
    let data = to_lazy(&range(60).view([20, 3])).expect("to the device");
    // As the tokens of a language model: what follows is what comes one later, in the same memory.
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let mut w = w.shallow_clone();
        let _ = w.g_add_(&x[0].sum_dim_intlist(0i64, false, Kind::Float));
        vec![(&x[0] * &x[1]).sum(Kind::Float), x[1].select(0, 0)]
    });
    let programs = || ltc_torch::metrics().map(|m| m.compiles + m.respecialised).expect("metrics");
    for batch in 0..9 {
        let x = [data.narrow(0, batch * 2, 2), data.narrow(0, batch * 2 + 1, 2)];
        ltc_torch::sync().expect("a sync");
        let before = programs();
        let mut r = step.call(&x, &[]).expect("a step");
        // Recorded, and from the second capture on replayed: one program for all batches each.
        assert!([0, 2].contains(&batch) || programs() == before, "a program for batch {batch}");
        let host = |from: i64| range(60).view([20, 3]).narrow(0, batch * 2 + from, 2);
        let expected = (host(0) * host(1)).sum(Kind::Float).double_value(&[]);
        assert_eq!(first(&r[0].view([1])), expected);
        assert_eq!(first(&r[1]), 6.0 * batch as f64 + 3.0);
        // A result that is part of an input, wherever that begins.
        let _ = r[1].fill_(0.0);
        assert_eq!(to_cpu(&data).expect("a value").double_value(&[batch * 2 + 1, 1]), 0.0);
        r[1].copy_(&to_lazy(&host(1).select(0, 0)).expect("to the device"));
    }
    let total: f64 = (0..18).map(|row| 3.0 * f64::from(row)).sum();
    assert_eq!(first(&w), 1.0 + total);
    assert_eq!(step.counts(), (6, 3), "{:?}", step.refusal());
    // The distance of two inputs in one memory was captured too.
    let r = step.call(&[data.narrow(0, 0, 2), data.narrow(0, 4, 2)], &[]).expect("a step");
    assert_eq!(first(&r[1]), 12.0);
    assert_eq!(step.counts(), (6, 4));
}

/// What a step cuts out of the tensors it keeps is not told by its inputs.
#[test]
fn a_step_that_takes_other_parts_by_itself_is_not_replayed() {
    let _alone = alone();
    let x = ones(4);
    let data = to_lazy(&Tensor::arange(40, (Kind::Float, Device::Cpu))).expect("to the device");
    let at = std::cell::Cell::new(0);
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        at.set(at.get() + 4);
        vec![data.narrow(0, at.get(), 4) + &x[0]]
    });
    for call in 1..9 {
        let r = step.call(&[x.shallow_clone()], &[]).expect("a step");
        assert_eq!(first(&r[0]), 4.0 * f64::from(call) + 1.0);
    }
    assert_eq!(step.counts().0, 0);
    assert!(step.refusal().expect("a reason").0.contains("other parts"), "{:?}", step.refusal());
}

#[test]
fn a_step_within_a_step_is_part_of_it() {
    let _alone = alone();
    let w = ones(4);
    let mut inner = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let mut w = w.shallow_clone();
        let _ = w.g_add_(&x[0]);
        vec![&w * 2.0]
    });
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let y = inner.call(x, &[]).expect("a step").remove(0);
        vec![y + 1.0]
    });
    let x = ones(4);
    for call in 0..8 {
        let y = step.call(&[x.shallow_clone()], &[]).expect("a step").remove(0);
        assert_eq!(first(&y), 2.0 * (f64::from(call) + 2.0) + 1.0);
    }
    assert_eq!(step.counts(), (5, 3), "{:?}", step.refusal());
}

/// Calls replayed and recorded of nine, when another thread does this in the middle of the first three; it is given a
/// tensor of the step.
fn counts_beside(meanwhile: impl Fn(Tensor) + Sync) -> (u64, u64) {
    let calls = AtomicU64::new(0);
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let y = &x[0] * 2.0;
        if calls.fetch_add(1, Relaxed) < 3 {
            let given = y.shallow_clone();
            std::thread::scope(|s| s.spawn(|| meanwhile(given)).join().expect("a thread"));
        }
        vec![&y + 1.0, y]
    });
    for call in 0..9 {
        let x = ones(4) * f64::from(call);
        let r = step.call(&[x], &[]).expect("a step");
        assert_eq!((first(&r[0]), first(&r[1])), (f64::from(call) * 2.0 + 1.0, f64::from(call) * 2.0));
    }
    step.counts()
}

#[test]
fn a_capture_that_another_thread_cuts_short_is_void() {
    let _alone = alone();
    let waits = |_: Tensor| {
        ltc_torch::sync().expect("a barrier");
        ltc_torch::wait().expect("nothing fails");
    };
    // What is pending becomes data, as if it had been there before.
    assert_eq!(counts_beside(waits), (4, 5));
    assert_eq!(counts_beside(|y| assert_eq!(first(&y) % 2.0, 0.0)), (4, 5), "it reads what the step computes");
}

#[test]
fn what_other_threads_do_for_themselves_leaves_a_capture_alone() {
    let _alone = alone();
    assert_eq!(counts_beside(|_| ltc_torch::sync().expect("a barrier")), (6, 3), "it is put off");
    assert_eq!(counts_beside(|_| assert_eq!(first(&(ones(4) + 2.0)), 3.0)), (6, 3), "a value of its own");
    // A step of its own, which is recorded here, and finds its tensors pending.
    let state = parking_lot::Mutex::new((ones(4), 1.0, Vec::new()));
    let steps = |_: Tensor| {
        let (w, value, counts) = &mut *state.lock();
        let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| vec![w.shallow_clone().g_add_(&x[0]) * 1.0]);
        for _ in 0..5 {
            *value += 1.0;
            assert_eq!(first(&step.call(&[ones(4)], &[]).expect("a step")[0]), *value);
        }
        counts.push(step.counts());
    };
    assert_eq!(counts_beside(steps), (6, 3));
    let counts = &state.lock().2;
    assert_eq!(counts[..], [(2, 3), (0, 5), (0, 5)], "beside a call that warms up, and two that are captured");
}

#[test]
fn steps_of_several_threads_all_come_to_be_replayed() {
    let _alone = alone();
    let train = |seed: i64| {
        let w = ones(4);
        let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
            let grad = (&w * &x[0] - seed as f64) * &x[0];
            let _ = w.shallow_clone().g_sub_(&(grad * 0.25));
            vec![&w * 1.0]
        });
        // How soon a thread has its turn to capture is the system's affair; that it has one is ours.
        let mut call = 0;
        while step.counts().0 < 100 && call < 20_000 {
            let r = step.call(&[ones(4)], &[]).expect("a step");
            if call % 3 == 0 {
                let expected = seed as f64 + (1.0 - seed as f64) * 0.75_f64.powi(call + 1);
                assert!((first(&r[0]) - expected).abs() < 1e-5 * expected.abs());
            }
            call += 1;
        }
        step.counts()
    };
    let counts: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (2..5).map(|seed| s.spawn(move || train(seed))).collect();
        threads.into_iter().map(|t| t.join().expect("a thread")).collect()
    });
    assert!(counts.iter().all(|&(replayed, _)| replayed == 100), "{counts:?}");
}

#[test]
fn draws_from_the_cpus_generator_are_not_frozen() {
    let _alone = alone();
    let x = ones(3);
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let drawn = Tensor::rand([1], (Kind::Float, Device::Cpu)).double_value(&[0]);
        vec![&x[0] * drawn]
    });
    for seed in 0..6 {
        tch::manual_seed(seed);
        let drawn = Tensor::rand([1], (Kind::Float, Device::Cpu)).double_value(&[0]);
        tch::manual_seed(seed);
        let found = step.call(&[x.shallow_clone()], &[]).expect("a step");
        assert_eq!(first(&found[0]), f64::from(drawn as f32));
    }
    let why = step.refusal().expect("it is recorded").to_string();
    assert!(step.counts().0 == 0 && why.contains("draws numbers"), "{:?}: {why}", step.counts());
}
