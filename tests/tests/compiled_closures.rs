//! What a program does around a compiled closure, and what the closure may do: calls that a replay would get wrong are
//! recorded, and a step that panics leaves the session as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ltc_tests::{alone, subject::Lazy};
use ltc_torch::{to_cpu, to_lazy};
use tch::{
    Device, Kind, Tensor,
    nn::{self, OptimizerConfig},
};

const CALLS: usize = 14;

type Step = Box<dyn FnMut(&[Tensor], &[f64]) -> Vec<Tensor>>;

/// 0.1, 0.2, ... in this shape.
fn rising(device: Device, shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    let t = (Tensor::arange(count, (Kind::Float, Device::Cpu)) + 1.0).view(shape) / 10.0;
    if device == Device::Cpu { t } else { to_lazy(&t).expect("to the device") }
}

fn values(t: &Tensor) -> Vec<f64> {
    let host = to_cpu(&t.detach()).expect("a value").to_kind(Kind::Double).flatten(0, -1);
    Vec::try_from(host).expect("numbers")
}

fn near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4 * a.abs().max(1e-2))
}

/// Calls the closure on the CPU, and compiled on the device, with the same numbers; returns how many calls were
/// replayed, and the refusal.
fn agree(make: impl Fn(Device) -> Step, numbers: impl Fn(usize) -> Vec<f64>) -> (u64, String) {
    let _alone = alone();
    let _ = Lazy::new();
    let (mut plain, mut lazy) = (make(Device::Cpu), ltc_torch::compile(make(ltc_torch::DEVICE)));
    for k in 0..CALLS {
        let given = numbers(k);
        let expected = plain(&[rising(Device::Cpu, &[4, 3])], &given);
        let found = lazy.call(&[rising(ltc_torch::DEVICE, &[4, 3])], &given).expect("a step");
        for (a, b) in expected.iter().zip(&found) {
            let (a, b) = (values(a), values(b));
            assert!(near(&a, &b), "call {k}, given {given:?}: {b:?}, on the CPU {a:?}; {:?}", lazy.counts());
        }
    }
    (lazy.counts().0, lazy.refusal().map(ToString::to_string).unwrap_or_default())
}

/// A step of SGD on one variable, which `set` is called on before.
fn sgd(device: Device, config: nn::Sgd, set: fn(&mut nn::Optimizer, &[f64])) -> Step {
    let store = nn::VarStore::new(device);
    let w = store.root().var_copy("w", &rising(device, &[3, 2]));
    let mut optimizer = config.build(&store, 0.1).expect("an optimizer");
    Box::new(move |x, numbers| {
        set(&mut optimizer, numbers);
        optimizer.backward_step(&x[0].matmul(&w).square().mean(Kind::Float));
        vec![w.detach().copy()]
    })
}

#[test]
fn an_optimizer_does_something_else_for_a_number_that_becomes_zero() {
    let momentum = |k: usize| vec![if k == 5 { 0.0 } else { 0.9 - 0.05 * k as f64 }];
    let config = nn::sgd(0.9, 0.0, 0.0, false);
    let (replayed, why) = agree(|d| sgd(d, config, |o, n| o.set_momentum(n[0])), momentum);
    assert!(replayed >= 6, "{replayed}: {why}");
    let decay = |k: usize| vec![if k % 6 == 5 { 0.0 } else { 0.01 * k as f64 }];
    agree(|d| sgd(d, nn::sgd(0.0, 0.0, 0.1, false), |o, n| o.set_weight_decay(n[0])), decay);
}

#[test]
fn a_step_that_decides_by_a_number_is_recorded() {
    let count = |k: usize| vec![k as f64];
    let by_count =
        |_| -> Step { Box::new(|x, n| vec![if n[0] as usize % 5 == 4 { &x[0] * 100.0 } else { &x[0] * 1.0 }]) };
    let by_rate = |d| sgd(d, nn::Sgd::default(), |o, n| o.set_lr(if n[0] < 8.0 { 0.1 } else { 0.01 }));
    let (replayed, why) = agree(by_rate, count);
    assert!(replayed == 0 && why.contains("no operator takes"), "{replayed}: {why}");
    assert_eq!(agree(by_count, count).0, 0);
}

#[test]
fn a_step_that_accumulates_gradients_over_counted_calls_is_recorded() {
    let accumulates = |device| -> Step {
        let store = nn::VarStore::new(device);
        let w = store.root().var_copy("w", &rising(device, &[3, 2]));
        let mut optimizer = nn::Sgd::default().build(&store, 0.1).expect("an optimizer");
        Box::new(move |x, numbers| {
            x[0].matmul(&w).square().mean(Kind::Float).backward();
            if numbers[0] as usize % 4 == 3 {
                optimizer.step();
                optimizer.zero_grad();
            }
            vec![w.detach().copy()]
        })
    };
    agree(accumulates, |k| vec![k as f64]);
}

/// Trains `w` and `b` on a device, with `between` called on the store and `w` before each call; what both are then.
fn trained(device: Device, compiled: bool, between: fn(usize, &mut nn::VarStore, &Tensor)) -> (Vec<f64>, u64) {
    let mut store = nn::VarStore::new(device);
    let (w, b) =
        (store.root().var_copy("w", &rising(device, &[3, 2])), store.root().var_copy("b", &rising(device, &[2])));
    let mut optimizer = nn::Sgd::default().build(&store, 0.1).expect("an optimizer");
    let (ours, other) = (w.shallow_clone(), b.shallow_clone());
    let mut body = move |x: &[Tensor]| {
        optimizer.backward_step(&(x[0].matmul(&ours) + &other).square().mean(Kind::Float));
        Vec::new()
    };
    let x = rising(device, &[4, 3]);
    let mut replayed = 0;
    if compiled {
        let mut step = ltc_torch::compile_frozen(body);
        for k in 0..CALLS {
            between(k, &mut store, &w);
            step.call(&[x.shallow_clone()], &[]).expect("a step");
        }
        replayed = step.counts().0;
    } else {
        for k in 0..CALLS {
            between(k, &mut store, &w);
            body(&[x.shallow_clone()]);
        }
    }
    ([values(&w), values(&b)].concat(), replayed)
}

fn nothing(_: usize, _: &mut nn::VarStore, _: &Tensor) {}

fn freezes(k: usize, _: &mut nn::VarStore, w: &Tensor) {
    if k == 6 || k == 10 {
        let _ = w.set_requires_grad(k == 10);
    }
}

fn goes_to_the_cpu_and_back(k: usize, store: &mut nn::VarStore, _: &Tensor) {
    if k == 6 {
        let device = store.device();
        store.set_device(Device::Cpu);
        store.set_device(device);
    }
}

#[test]
fn what_is_done_to_variables_between_calls_is_seen() {
    let _alone = alone();
    let _ = Lazy::new();
    for between in [nothing, freezes, goes_to_the_cpu_and_back] {
        let (expected, _) = trained(Device::Cpu, false, between);
        let (found, replayed) = trained(ltc_torch::DEVICE, true, between);
        assert!(near(&expected, &found), "{found:?}, on the CPU {expected:?}; {replayed} replayed");
        assert!(replayed >= 4, "{replayed} replayed");
    }
}

#[test]
fn a_scalar_of_the_cpu_is_read_at_each_call() {
    let _alone = alone();
    let _ = Lazy::new();
    let scale = Tensor::from(1.0f32);
    let held = scale.shallow_clone();
    let mut step = ltc_torch::compile_frozen(move |x: &[Tensor]| vec![&x[0] * &held]);
    for k in 0..CALLS {
        if k == 6 || k == 9 {
            let _ = scale.shallow_clone().fill_(k as f64);
        }
        let found = step.call(&[rising(ltc_torch::DEVICE, &[3])], &[]).expect("a step");
        assert!(near(&values(&(rising(Device::Cpu, &[3]) * &scale)), &values(&found[0])), "call {k}");
    }
    assert!(step.counts().0 >= 4, "{:?} {:?}", step.counts(), step.refusal());
}

#[test]
fn results_that_are_undefined_or_on_the_cpu_are_returned_as_they_are() {
    let _alone = alone();
    let _ = Lazy::new();
    let (w, unused) = (rising(ltc_torch::DEVICE, &[3]), rising(ltc_torch::DEVICE, &[3]));
    let (w, unused) = (w.set_requires_grad(true), unused.set_requires_grad(true));
    let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| {
        let mut grad = w.grad();
        if grad.defined() {
            let _ = grad.zero_();
        }
        (&w * &x[0]).sum(Kind::Float).backward();
        vec![w.grad(), unused.grad(), Tensor::from(2.0f32)]
    });
    for _ in 0..6 {
        let found = step.call(&[rising(ltc_torch::DEVICE, &[3])], &[]).expect("a step");
        assert!(near(&values(&found[0]), &[0.1, 0.2, 0.3]) && !found[1].defined() && found[2].device() == Device::Cpu);
    }
    let why = step.refusal().map(ToString::to_string).unwrap_or_default();
    assert!(step.counts().0 == 0 && why.contains("undefined"), "{:?} {why}", step.counts());
}

/// A step that panics at its second call, which is captured.
fn panics() -> impl FnMut(&[Tensor]) -> Vec<Tensor> {
    let mut calls = 0;
    move |x: &[Tensor]| {
        calls += 1;
        assert!(calls != 2, "the step's own");
        vec![&x[0] * 2.0]
    }
}

/// Whether another step is replayed, and a barrier sends what is pending.
fn goes_on() {
    let mut other = ltc_torch::compile_frozen(|x: &[Tensor]| vec![&x[0] + 1.0]);
    for _ in 0..12 {
        other.call(&[rising(ltc_torch::DEVICE, &[3])], &[]).expect("a step");
    }
    assert!(!ltc_torch::is_capturing());
    assert_eq!(other.counts(), (9, 3), "{:?}", other.refusal());
    let pending = rising(ltc_torch::DEVICE, &[3]) * 2.0;
    ltc_torch::sync().expect("it is sent");
    assert_eq!(ltc_torch::pending_count().expect("a device"), 0);
    drop(pending);
}

#[test]
fn a_panic_in_a_step_ends_its_capture() {
    let _alone = alone();
    let _ = Lazy::new();
    let mut step = ltc_torch::compile_frozen(panics());
    let mut call = || catch_unwind(AssertUnwindSafe(|| step.call(&[rising(ltc_torch::DEVICE, &[3])], &[]))).is_err();
    assert_eq!([call(), call(), call()], [false, true, false]);
    goes_on();
    for _ in 0..40 {
        call();
        assert!(ltc_torch::pending_count().expect("a device") < 20);
    }
}

#[test]
fn a_panic_in_a_step_that_threads_share_ends_its_capture() {
    let _alone = alone();
    let _ = Lazy::new();
    let step = parking_lot::Mutex::new(ltc_torch::compile_frozen(panics()));
    let ended = std::thread::scope(|s| {
        let calls = || {
            (0..2).for_each(|_| {
                let mut step = step.lock();
                step.call(&[rising(ltc_torch::DEVICE, &[3])], &[]).expect("a step");
            })
        };
        s.spawn(calls).join()
    });
    assert!(ended.is_err());
    goes_on();
}
