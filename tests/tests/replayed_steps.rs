//! Compiled steps are what recording them each time is, also in which tensors share memory afterwards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ltc_tests::{alone, cases, seed, steps::agree_as_a_step, strategy, subject::Lazy};
use ltc_torch::{to_cpu, to_lazy};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

static REPLAYED: AtomicU64 = AtomicU64::new(0);

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100), failure_persistence: None, rng_seed: seed(), max_shrink_iters: 2000, ..Default::default() })]

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
    let mut step = ltc_torch::compile(|x: &[Tensor]| {
        let mut w = w.shallow_clone();
        let _ = w.g_add_(&x[0]);
        let y = &w * &x[0];
        vec![w.view([2, 2]), y.view([2, 2]), y, x[0].slice(0, 1, None, 1)]
    });
    for call in 0..8 {
        let mut r = step.call(&[x.shallow_clone()]).expect("a step");
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
    let mut r = step.call(&[x.shallow_clone()]).expect("a step");
    let _ = r[3].fill_(5.0);
    assert_eq!(to_cpu(&x).expect("a value").double_value(&[3]), 5.0, "a result that is an input");
}

#[test]
fn what_a_capture_assumed_is_looked_at_in_each_call() {
    let _alone = alone();
    let w = ones(4);
    let mut step = ltc_torch::compile(|x: &[Tensor]| vec![&x[0] * 2.0 + &w, x[1].shallow_clone() + 1.0]);
    let (memory, other, b) = (ones(8), ones(8), ones(4));
    let (a, at) = (memory.slice(0, 0, 4, 1), |from: i64| memory.slice(0, from, from + 4, 1));
    let mut call = |a: &Tensor, b: &Tensor| {
        let r = step.call(&[a.shallow_clone(), b.shallow_clone()]).expect("a step");
        assert_eq!((first(&r[0]), first(&r[1])), (3.0, 2.0));
        step.counts()
    };
    for _ in 0..3 {
        let _ = call(&a, &b);
    }
    assert_eq!(call(&a, &b), (1, 3));
    assert_eq!(call(&other.slice(0, 0, 4, 1), &b), (2, 3), "another tensor like it");
    assert_eq!(call(&ones(4), &b), (2, 4), "of memory of another size");
    for _ in 0..2 {
        let _ = call(&a, &b);
    }
    assert_eq!(call(&a, &b), (3, 6), "captured again");
    assert_eq!(call(&at(2), &b), (3, 7), "further on in its memory");
    let _ = call(&at(2), &b);
    assert_eq!(call(&at(2), &b), (4, 8), "captured there");
    assert_eq!(call(&at(2), &at(2)), (4, 9), "inputs share memory");
    assert_eq!(call(&w, &b).0, 4, "an input the step keeps");
}

#[test]
fn a_step_within_a_step_is_part_of_it() {
    let _alone = alone();
    let w = ones(4);
    let mut inner = ltc_torch::compile(|x: &[Tensor]| {
        let mut w = w.shallow_clone();
        let _ = w.g_add_(&x[0]);
        vec![&w * 2.0]
    });
    let mut step = ltc_torch::compile(|x: &[Tensor]| {
        let y = inner.call(x).expect("a step").remove(0);
        vec![y + 1.0]
    });
    let x = ones(4);
    for call in 0..8 {
        let y = step.call(&[x.shallow_clone()]).expect("a step").remove(0);
        assert_eq!(first(&y), 2.0 * (f64::from(call) + 2.0) + 1.0);
    }
    assert_eq!(step.counts(), (5, 3), "{:?}", step.refusal());
}
