//! Several devices and several threads: each program agrees with eager whatever the others do.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ltc_core::{Config, LazyTensor, Session};
use ltc_ir::DType;
use ltc_tests::{alone, cases, run::agree, seed, strategy, subject::Lazy};
use ltc_ts::{TsBackend, TsConfig};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

fn put(values: &[f32], device: u16) -> Tensor {
    let device = Lazy::at(device).device;
    ltc_torch::to_device(&Tensor::from_slice(values), device).expect("to the device")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(30),
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 500,
        ..Default::default()
    })]

    /// No draws: the CPU's default generator is one per process.
    #[test]
    fn programs_side_by_side(programs in prop::collection::vec(strategy::aliasing(25), 4)) {
        let results: Vec<_> = std::thread::scope(|s| {
            let threads: Vec<_> = programs
                .iter()
                .enumerate()
                .map(|(i, program)| s.spawn(move || agree(program, &Lazy::at(i as u16 % 2))))
                .collect();
            threads.into_iter().map(|t| t.join()).collect()
        });
        for (program, result) in programs.iter().zip(results) {
            match result {
                Ok(r) => r.map_err(|d| TestCaseError::fail(format!("{d}\n{program:?}")))?,
                Err(_) => return Err(TestCaseError::fail(format!("a thread panicked\n{program:?}"))),
            }
        }
    }
}

/// Programs draw from states of their own: the CPU's default generator, which is one per process, does not notice.
#[test]
fn eager_draws_are_those_of_the_seed_while_programs_draw() {
    let _alone = alone();
    let draws = || {
        tch::manual_seed(3);
        (0..100).map(|_| Tensor::rand([1], (Kind::Float, Device::Cpu)).double_value(&[0])).collect::<Vec<_>>()
    };
    let (expected, done) = (draws(), AtomicBool::new(false));
    let disturbed = std::thread::scope(|s| {
        s.spawn(|| {
            let backend = TsBackend::with_config(TsConfig::default());
            let session = Session::new(Arc::new(backend), Config::default()).expect("a session");
            let dev = session.device(0).expect("a device");
            for _ in 0..300 {
                let drawn = LazyTensor::rand(dev, &[64], DType::F32).expect("a tensor");
                let _with = drawn.add(LazyTensor::randn(dev, &[64], DType::F32).expect("a tensor")).expect("a tensor");
                dev.sync().and_then(|()| dev.wait()).expect("the program runs");
            }
            done.store(true, Ordering::Relaxed);
        });
        std::iter::repeat_with(|| draws() != expected)
            .take_while(|_| !done.load(Ordering::Relaxed))
            .filter(|&d| d)
            .count()
    });
    assert_eq!(disturbed, 0, "seeded draws that were others");
}

#[test]
fn a_tensor_moves_between_devices_and_keeps_its_value() {
    let a = put(&[1.0, 2.0], 0);
    let b = ltc_torch::to_device(&(&a * 3.0), 1).expect("across");
    assert_eq!((ltc_torch::device_of(&a), ltc_torch::device_of(&b)), (Some(0), Some(1)));
    let back = ltc_torch::to_device(&(&b + 1.0), 0).expect("back") + &a;
    assert_eq!(Vec::<f32>::try_from(ltc_torch::to_cpu(&back).expect("a value")).expect("floats"), [5.0, 9.0]);
}

#[test]
fn tensors_of_two_devices_do_not_mix() {
    let error = put(&[1.0], 0).f_add(&put(&[2.0], 1)).expect_err("two devices").to_string();
    let first = error.lines().next().unwrap_or_default();
    assert!(first.contains("Expected all tensors to be on the same device") && first.contains("ltc:1"), "{first}");
    assert_eq!(ltc_torch::to_cpu(&(put(&[1.0], 1) + 1.0)).expect("a value").double_value(&[0]), 2.0);
}

#[test]
fn a_device_that_does_not_exist_is_an_error_that_says_how_many_there_are() {
    let error = ltc_torch::to_device(&put(&[1.0], 0), 7).expect_err("no such device").to_string();
    assert!(error.contains('7') && error.contains('2'), "{error}");
}

/// One thread syncs all the time while others record on a shared tensor and its views.
#[test]
fn a_sync_may_come_at_any_moment() {
    let a = put(&[1.0, 2.0, 3.0, 4.0], 0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let stop = &stop;
    std::thread::scope(|s| {
        s.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                ltc_torch::sync().expect("a sync");
            }
        });
        let record = |k: i64| {
            let a = a.shallow_clone();
            move || {
                for round in 0..50 {
                    let mut y = a.g_mul_scalar(1.0);
                    for i in 0..40 {
                        let mut part = y.narrow(0, i % 4, 1);
                        let _ = part.g_add_scalar_(k as f64);
                        y = y.flip([0]);
                    }
                    let sum = ltc_torch::to_cpu(&y.sum(tch::Kind::Float)).expect("a value").double_value(&[]);
                    assert_eq!(sum, 10.0 + 40.0 * k as f64, "thread {k}, round {round}");
                }
            }
        };
        let threads: Vec<_> = (0..3).map(|k| s.spawn(record(k))).collect();
        let panicked = threads.into_iter().filter_map(|t| t.join().err()).count();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(panicked, 0);
    });
}
