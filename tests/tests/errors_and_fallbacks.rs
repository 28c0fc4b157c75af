//! Errors come at the call, or at the next wait naming operator and line; fallbacks are counted; the session goes on.

use ltc_tests::alone;
use ltc_torch::{Event, to_cpu, to_lazy};
use tch::{Device, Kind, Tensor};

fn lazy(shape: &[i64]) -> Tensor {
    ltc_torch::init().expect("the device registers");
    to_lazy(&Tensor::ones(shape, (Kind::Float, Device::Cpu))).expect("to the device")
}

fn floats(t: &Tensor) -> Vec<f32> {
    Vec::try_from(to_cpu(t).expect("a value").reshape([-1])).expect("floats")
}

#[test]
fn shapes_that_do_not_fit_are_refused_at_the_call_as_eager_does() {
    let _alone = alone();
    let (a, b) = (lazy(&[2, 3]), lazy(&[4, 5]));
    let (ea, eb) = (Tensor::ones([2, 3], (Kind::Float, Device::Cpu)), Tensor::ones([4, 5], (Kind::Float, Device::Cpu)));
    let first =
        |r: Result<Tensor, tch::TchError>| r.unwrap_err().to_string().lines().next().unwrap_or_default().to_owned();
    assert_eq!(first(a.f_matmul(&b)), first(ea.f_matmul(&eb)));
    assert_eq!(first(a.f_add(&b)), first(ea.f_add(&eb)));
    assert_eq!(first(a.f_view([7])), first(ea.f_view([7])));
    let conv = |x: &Tensor, w: &Tensor| x.f_conv2d(w, None::<Tensor>, 1, 0, 1, 1);
    let e = first(conv(&lazy(&[1, 2, 5, 5]), &lazy(&[4, 3, 3, 3])));
    assert!(e.contains("to have 3 channels, but got 2 channels"), "{e}");
    assert_eq!(floats(&(a + 1.0)), [2.0; 6]);
}

#[test]
fn tensors_of_other_devices_are_refused_by_name() {
    let _alone = alone();
    let a = lazy(&[2]);
    let e = a.f_add(&Tensor::ones([2], (Kind::Float, Device::Cpu))).unwrap_err().to_string();
    assert!(e.contains("same device") && e.contains("aten::add.Tensor"), "{e}");
}

#[test]
fn an_unknown_device_index_is_a_clear_error() {
    let _alone = alone();
    let a = lazy(&[2]);
    let e = ltc_torch::to_device(&a, 9).unwrap_err().to_string();
    assert!(e.contains("no device 9"), "{e}");
}

#[test]
fn memory_that_is_not_there_is_an_error_and_not_an_abort() {
    let _alone = alone();
    let a = lazy(&[1]);
    let huge = a.expand([1 << 42], false).f_add_scalar(1.0);
    let e = huge.map_err(|e| e.to_string()).and_then(|h| to_cpu(&h).map_err(|e| e.to_string())).unwrap_err();
    assert!(e.contains("memory") || e.contains("allocate"), "{e}");
    assert_eq!(floats(&(a * 3.0)), [3.0]);
}

#[test]
fn an_error_while_running_names_operator_and_line_and_what_comes_before_is_there() {
    let _alone = alone();
    let table = lazy(&[4, 2]);
    let bad = to_lazy(&Tensor::from_slice(&[9i64])).expect("to the device");
    let fine = &table * 2.0;
    let line = line!() + 1;
    let wrong = table.index_select(0, &bad);
    let dependent = &wrong + 1.0;
    let behind = &table * 3.0;
    ltc_torch::sync().expect("a sync does not fail");
    let e = to_cpu(&dependent).unwrap_err().to_string();
    assert!(e.contains("index_select") && e.contains("out of range"), "{e}");
    assert!(e.contains(&format!("errors_and_fallbacks.rs:{line}")), "{e}");
    assert_eq!(floats(&fine), [2.0; 8]);
    let e = to_cpu(&behind).unwrap_err().to_string();
    assert!(e.contains("index_select"), "eager does not get there: {e}");
    assert!(ltc_torch::wait().is_ok(), "the error was reported once already");
    let unread = table.index_select(0, &bad);
    ltc_torch::sync().expect("a sync does not fail");
    let e = ltc_torch::wait().unwrap_err().to_string();
    assert!(e.contains("index_select"), "{e}");
    drop(unread);
    assert!(ltc_torch::wait().is_ok());
}

/// Picks a row of two: too large an index fails when the program runs.
#[inline(never)]
fn trains(t: &Tensor, index: &Tensor) -> (Tensor, u32) {
    (t.index_select(0, index), line!())
}

#[inline(never)]
fn validates(t: &Tensor, index: &Tensor) -> (Tensor, u32) {
    (t.index_select(0, index), line!())
}

#[test]
fn the_line_is_the_one_that_recorded_whatever_was_recorded_before() {
    let _alone = alone();
    let index = |i: i64| to_lazy(&Tensor::from_slice(&[i])).expect("to the device");
    let (t, good, bad) = (lazy(&[2, 3]), index(1), index(7));
    for (operators, before) in [(0, trains as fn(&Tensor, &Tensor) -> _), (0, validates), (5000, trains)] {
        for failing in [trains as fn(&Tensor, &Tensor) -> _, validates] {
            for _ in 0..3 {
                drop(before(&t, &good));
                ltc_torch::sync().expect("it is sent");
            }
            let _many = (0..operators).fold(t.shallow_clone(), |t, _| t + 1.0);
            let (failed, line) = failing(&t, &bad);
            let e = to_cpu(&failed).unwrap_err().to_string();
            let place = format!("errors_and_fallbacks.rs:{line} in ");
            assert!(!cfg!(all(target_arch = "x86_64", target_os = "linux")) || e.contains(&place), "{place}: {e}");
            // Whoever waits next is not told again.
            let _ = ltc_torch::wait();
        }
    }
}

#[test]
fn operators_that_depend_on_data_fall_back_and_run_only_what_they_need() {
    let _alone = alone();
    let a = lazy(&[3]);
    ltc_torch::sync().expect("a sync");
    ltc_torch::reset_metrics().expect("metrics");
    ltc_torch::record_events(true).expect("events");
    let needed = &a * 2.0;
    let other = (&a + 5.0).exp();
    let found = needed.nonzero();
    assert_eq!(found.size(), [3, 1]);
    let events = ltc_torch::take_events().expect("events");
    let nodes = events.iter().find_map(|e| if let Event::Sync { nodes, .. } = e { Some(*nodes) } else { None });
    assert_eq!(nodes, Some(1), "{events:?}");
    assert_eq!(ltc_torch::pending_count().expect("a count"), 2);
    ltc_torch::record_events(false).expect("events");
    let m = ltc_torch::metrics().expect("metrics");
    assert_eq!(m.fallbacks.len(), 1);
    assert!(m.fallbacks[0].0 == "aten::nonzero" && m.fallbacks[0].2 == 1);
    assert!((floats(&other)[0] - 6f32.exp()).abs() < 1e-3);
}

#[test]
fn written_arguments_come_back_from_a_fallback_through_their_views() {
    let _alone = alone();
    let a = lazy(&[2, 3]);
    let mut row = a.select(0, 1);
    let mask = to_lazy(&Tensor::from_slice(&[true, false, true])).expect("to the device");
    let _ = row.index_put_(&[Some(mask)], &lazy(&[1]).fill_(7.0), false);
    assert_eq!(floats(&a), [1.0, 1.0, 1.0, 7.0, 1.0, 7.0]);
}
