//! What runs when, told by events and counters, never by time.

use ltc_tests::alone;
use ltc_torch::{Event, to_cpu, to_lazy};
use tch::{Device, Kind, Tensor};

fn lazy(values: &[f32]) -> Tensor {
    ltc_torch::init().expect("the device registers");
    to_lazy(&Tensor::from_slice(values)).expect("to the device")
}

fn log(f: impl FnOnce()) -> Vec<String> {
    ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing pending");
    ltc_torch::record_events(true).expect("events");
    f();
    let events = ltc_torch::take_events().expect("events");
    ltc_torch::record_events(false).expect("events");
    events.iter().map(Event::to_string).collect()
}

#[test]
fn recording_runs_nothing_and_a_read_runs_one_program() {
    let _alone = alone();
    let a = lazy(&[1.0, 2.0]);
    let mut y = a.shallow_clone();
    assert_eq!(log(|| y = (&a * 2.0 + 1.0).sin()), [""; 0]);
    let events = log(|| assert_eq!(to_cpu(&y).expect("a value").size(), [2]));
    assert!(events.len() <= 4, "{events:?}");
    let again = log(|| drop(to_cpu(&y)));
    assert_eq!(again, ["download"], "nothing runs twice");
}

#[test]
fn numbers_are_parameters_of_the_program() {
    let _alone = alone();
    let a = lazy(&[1.0, 2.0]);
    let step = |x: f64| to_cpu(&(&a * x + 0.5)).expect("a value");
    drop(step(0.1));
    // Through zero, one and the other constant of the program.
    for x in [0.2, 0.0, 1.0, 0.5, -3.0, 1e-8] {
        let events = log(|| assert_eq!(step(x).double_value(&[0]) as f32, (x as f32) + 0.5));
        assert!(events.iter().all(|e| !e.starts_with("compile")), "{x}: {events:?}");
    }
}

#[test]
fn dropping_a_tensor_drops_the_work_only_it_needed() {
    let _alone = alone();
    let a = lazy(&[1.0]);
    ltc_torch::sync().expect("a sync");
    let base = ltc_torch::pending_count().expect("a count");
    let y = (&a + 1.0).exp();
    let z = &y * 2.0;
    assert_eq!(ltc_torch::pending_count().expect("a count") - base, 3);
    drop(z);
    assert_eq!(ltc_torch::pending_count().expect("a count") - base, 2);
    drop(y);
    assert_eq!(ltc_torch::pending_count().expect("a count") - base, 0);
    assert_eq!(log(|| ltc_torch::sync().expect("a sync")), [""; 0]);
}

#[test]
fn inputs_nobody_holds_are_donated_and_the_others_are_not() {
    let _alone = alone();
    let (mut a, b) = (lazy(&[1.0; 64]), lazy(&[2.0; 64]));
    let snapshot = b.shallow_clone();
    let events = log(|| {
        let _ = a.g_add_(&b);
        ltc_torch::sync().expect("a sync");
    });
    assert!(events[0].contains("2 params, 1 donated, 1 outputs"), "{events:?}");
    assert_eq!(to_cpu(&a).expect("a value").double_value(&[0]), 3.0);
    assert_eq!(to_cpu(&snapshot).expect("a value").double_value(&[0]), 2.0);
}

#[test]
fn a_loop_without_reads_or_marks_stays_bounded() {
    let _alone = alone();
    let mut a = lazy(&[0.0]);
    ltc_torch::reset_metrics().expect("metrics");
    let before = ltc_torch::memory(0).expect("memory").used;
    for _ in 0..250_000 {
        let _ = a.g_add_scalar_(1.0);
    }
    assert!(ltc_torch::metrics().expect("metrics").auto_syncs >= 2);
    assert!(ltc_torch::pending_count().expect("a count") <= 100_000);
    assert_eq!(to_cpu(&a).expect("a value").double_value(&[0]), 250_000.0);
    assert!(ltc_torch::memory(0).expect("memory").used <= before + 4096);
}

/// Resident memory of this process, in bytes; `None` where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

#[test]
fn ten_thousand_equal_steps_leave_nothing_behind() {
    let _alone = alone();
    let (x, mut w, mut v) = (lazy(&[0.5; 32]), lazy(&[0.1; 32]), lazy(&[0.0; 32]));
    let mut step = |k: usize| {
        let (wd, vd) = (w.detach(), v.detach());
        let w1 = wd.set_requires_grad(true);
        let loss = (&x * &w1 - 1.0).square().sum(Kind::Float);
        loss.backward();
        let (grad, _no_grad) = (w1.grad(), tch::no_grad_guard());
        v = vd * 0.9 + grad;
        w = w1.detach() - &v * (0.01 / (1.0 + k as f64));
        drop(to_cpu(&loss));
    };
    let used = || {
        ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("all is done");
        ltc_torch::memory(0).expect("memory").used
    };
    (0..1000).for_each(&mut step);
    let (bytes, before) = (used(), resident());
    (1000..10_000).for_each(&mut step);
    assert_eq!(used(), bytes);
    if let (Some(before), Some(after)) = (before, resident()) {
        // A leak of one word per recorded operation would be 2 MiB.
        assert!(after < before + (1 << 20), "{} KiB grew", (after - before) >> 10);
    } else {
        eprintln!("resident memory is not compared: this system does not tell it");
    }
    assert_eq!(ltc_torch::pending_count().expect("a count"), 0);
}

#[test]
fn a_million_operations_record_run_and_drop() {
    let _alone = alone();
    let a = lazy(&[1.0]);
    let mut y = a.shallow_clone();
    for _ in 0..1_000_000 {
        y = y.neg();
    }
    assert_eq!(to_cpu(&y).expect("a value").double_value(&[0]), 1.0);
    let mut dropped = a.shallow_clone();
    for _ in 0..90_000 {
        dropped = dropped.neg();
    }
    drop(dropped);
}

#[test]
fn a_short_program_that_is_awaited_runs_where_it_is_recorded() {
    let _alone = alone();
    let a = lazy(&[1.0, 2.0]);
    let executions = |n: i64| {
        let a = a.repeat([n]);
        ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("all is done");
        let events = log(|| drop(to_cpu(&(&a + 1.0).sin())));
        events.into_iter().filter(|e| e.starts_with("execute")).collect::<Vec<_>>()
    };
    assert_eq!(executions(1), ["execute inline"]);
    // Large ones take all of libtorch's threads.
    let processors = std::thread::available_parallelism().expect("a number").get();
    let elsewhere = (processors.div_ceil(2) + 1..processors).contains(&(tch::get_num_threads() as usize));
    assert_eq!(executions(50_000), [if elsewhere { "execute" } else { "execute inline" }]);
}

#[test]
fn threads_record_side_by_side() {
    let _alone = alone();
    let a = lazy(&[1.0, 2.0, 3.0]);
    let run = |k: i64| {
        let a = a.shallow_clone();
        move || {
            let mut y = a.shallow_clone();
            for i in 0..200 {
                y = &y * 0.5 + k as f64;
                if i % 50 == 0 {
                    ltc_torch::sync().expect("a sync");
                }
            }
            to_cpu(&y).expect("a value")
        }
    };
    let threads: Vec<_> = (0..4).map(|k| std::thread::spawn(run(k))).collect();
    for (k, t) in threads.into_iter().enumerate() {
        let got = t.join().expect("no panic").double_value(&[1]);
        let _no_grad = tch::no_grad_guard();
        let mut y = Tensor::from_slice(&[1f32, 2.0, 3.0]);
        for _ in 0..200 {
            y = &y * 0.5 + k as f64;
        }
        assert_eq!(got, y.double_value(&[1]));
    }
    let _ = (Kind::Float, Device::Cpu);
}

#[test]
fn a_repeated_call_is_expected_not_looked_up() {
    let _alone = alone();
    let a = lazy(&[1.0, 2.0]);
    let mut state = lazy(&[0.0, 0.0]);
    let mut step = || {
        let _ = state.g_add_(&(&a * 1.5).sin());
        let _ = to_cpu(&(&state + &a).view([2, 1]).sum(Kind::Float)).expect("a value");
    };
    (0..2).for_each(|_| step());
    let before = ltc_torch::calls();
    step();
    let after = ltc_torch::calls();
    let (expected, looked_up) = (after.expected - before.expected, after.looked_up - before.looked_up);
    assert_eq!(after.inferred, before.inferred);
    if std::env::var("LTC_EXPECT_CALLS").is_ok_and(|v| v == "0") {
        assert!(expected == 0 && looked_up >= 5, "{expected} expected, {looked_up} looked up");
    } else {
        assert!(expected >= 5 && looked_up == 0, "{expected} expected, {looked_up} looked up");
    }
    // Another program in between is recorded like any other, and so is what follows it.
    let other = to_cpu(&(&a - 0.5).cos()).expect("a value");
    assert!(other.allclose(&(Tensor::from_slice(&[1.0f32, 2.0]) - 0.5).cos(), 1e-6, 1e-6, false));
    step();
    let sum = 4.0 * (1.5f64.sin() + 3f64.sin());
    assert!((to_cpu(&state.sum(Kind::Float)).expect("a value").double_value(&[]) - sum).abs() < 1e-4);
}

/// Runs a test again, in a process of its own, with a switch off.
fn passes_without(switch: &str, test: &str) {
    let this = std::env::current_exe().expect("a test has an executable");
    let run =
        std::process::Command::new(this).args(["--exact", test]).env(switch, "0").output().expect("the test runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains(" 1 passed"), "{said}");
}

#[test]
fn calls_are_expected_only_where_the_switch_allows() {
    passes_without("LTC_EXPECT_CALLS", "a_repeated_call_is_expected_not_looked_up");
}

#[test]
fn a_new_size_does_not_run_elementwise_kernels_to_see_what_comes_of_them() {
    let _alone = alone();
    let sized = |n: usize| lazy(&vec![0.5; n]).view([1, n as i64]).contiguous();
    let calls = |a: &Tensor| {
        let mask = a.gt(0.7);
        let y = ((a * 1.5 - 0.25).gelu("tanh") / 2.0).masked_fill(&mask, 3.0);
        let _ = (&y + a).g_mul_scalar_(0.5).g_add_scalar_(1).bernoulli_float_(0.5);
        y.to_kind(Kind::Int64) * 0.5
    };
    let y = calls(&sized(3));
    let x = sized(5);
    let before = ltc_torch::calls();
    let z = calls(&x);
    let after = ltc_torch::calls();
    assert!(after.inferred - before.inferred >= 9);
    let probed = after.probed - before.probed;
    if std::env::var("LTC_SMALL_PROBES").is_ok_and(|v| v == "0") {
        assert!(probed >= 6, "{probed}");
    } else {
        assert_eq!(probed, 0);
    }
    assert_eq!((y.kind(), y.size(), z.kind(), z.size()), (Kind::Float, vec![1, 3], Kind::Float, vec![1, 5]));
    // What does not lie one element after the other is asked at its own sizes.
    let before = ltc_torch::calls().probed;
    let across = sized(6).view([2, 3]).transpose(0, 1) * 2.0;
    assert_eq!((across.size(), across.stride()), (vec![3, 2], vec![1, 3]));
    assert!(ltc_torch::calls().probed > before);
}

#[test]
fn kernels_run_on_one_element_only_where_the_switch_allows() {
    passes_without("LTC_SMALL_PROBES", "a_new_size_does_not_run_elementwise_kernels_to_see_what_comes_of_them");
}

/// Programs that run for long, compared with waking a thread, and on one thread.
fn sorted(a: &Tensor, times: usize) -> Tensor {
    (0..times).fold(a.shallow_clone(), |t, i| (t * -1.0).sort(0, i % 2 == 0).0)
}

/// Where it runs otherwise follows from measured times: `ltc-core/src/handover.rs` has the tests.
#[test]
fn a_program_that_is_read_at_once_runs_on_its_callers_thread() {
    let _alone = alone();
    let a = lazy(&(0..8000).map(|i| (i as f32).sin()).collect::<Vec<_>>());
    ltc_torch::wait().expect("nothing is left to run");
    for _ in 0..10 {
        let before = ltc_torch::metrics().expect("metrics").inline_executions;
        drop(to_cpu(&sorted(&a, 9)).expect("a value"));
        assert_eq!(ltc_torch::metrics().expect("metrics").inline_executions - before, 1);
    }
}
