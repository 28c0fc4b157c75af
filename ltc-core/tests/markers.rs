//! Markers: moments in a device's work that can be asked for, waited for and timed.

mod recording;

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use ltc_backend::testing::{Behaviour, RecordingBackend};
use ltc_core::{Config, Device, TraceValue};
use ltc_ir::{ArgWriter, Op, Operands, Props, Signature, SiteId};
use smallvec::SmallVec;

use recording::{session, upload};

/// Holds programs back. Opens when it goes, so that a test that fails ends.
struct Gate(RecordingBackend);

impl Gate {
    fn close(backend: &RecordingBackend) -> Gate {
        backend.close_gate();
        Gate(backend.clone())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.open_gate();
    }
}

fn apply(dev: &Device, op: &str, v: &TraceValue) -> TraceValue {
    let (words, numbers) = ArgWriter::new().tensor().finish();
    let results = SmallVec::from_iter([v.layout().clone()]);
    let signature = Signature::new(Op::intern(op, Props::NONE), words, results);
    dev.record(&signature, Operands::from_iter([v.clone()]), numbers, SiteId::default())
}

fn never_inline() -> Config {
    let mut config = Config::default();
    config.inline_execution = false;
    // None of these tests waits for room behind a closed gate.
    config.queue_depth = 16;
    config
}

#[test]
fn a_marker_sends_what_was_recorded_and_is_reached_when_that_ran() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    let gate = Gate::close(&backend);
    let before = apply(dev, "test::before", &upload(dev, 2));
    let marker = dev.marker().expect("a marker");
    assert!(!before.is_pending(), "it was sent");
    let after = apply(dev, "test::after", &before);
    assert!(!marker.is_reached(), "the gate is closed");
    let (begins, begun) = mpsc::channel();
    let waits = thread::spawn({
        let marker = marker.clone();
        move || {
            begins.send(()).expect("the test listens");
            marker.wait().map(|()| marker.is_reached())
        }
    });
    begun.recv().expect("the thread runs");
    assert!(!waits.is_finished() && !marker.is_reached());
    drop(gate);
    assert!(waits.join().expect("no panic").expect("no interrupt"));
    assert!(after.is_pending(), "what came later was not sent");
}

#[test]
fn markers_are_reached_in_order_although_more_is_queued() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    let gate = Gate::close(&backend);
    let mut value = upload(dev, 2);
    let markers: Vec<_> = (0..4)
        .map(|_| {
            value = apply(dev, "test::step", &value);
            dev.marker().expect("a marker")
        })
        .collect();
    assert_eq!(markers[3].seconds_since(&markers[0]), None, "nothing ran");
    drop(gate);
    markers[3].wait().expect("no interrupt");
    assert!(markers.iter().all(ltc_core::Marker::is_reached));
    for pair in markers.windows(2) {
        let forth = pair[1].seconds_since(&pair[0]).expect("both were reached");
        assert!(forth >= 0.0 && pair[0].seconds_since(&pair[1]) == Some(-forth), "{forth}");
    }
}

#[test]
fn a_marker_behind_nothing_or_behind_what_ran_here_is_reached_at_once() {
    let mut config = Config::default();
    config.async_execution = false;
    let (_, session) = session(config);
    let dev = session.device(0).expect("a device");
    assert!(dev.marker().expect("a marker").is_reached(), "nothing was recorded");
    let value = apply(dev, "test::step", &upload(dev, 2));
    assert!(dev.marker().expect("a marker").is_reached(), "it ran on this thread");
    drop(value);
}

#[test]
fn a_deferred_marker_goes_with_what_is_pending_and_not_with_what_comes_later() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    let before = apply(dev, "test::before", &upload(dev, 2));
    let deferred = dev.deferred_marker();
    assert!(before.is_pending(), "nothing was sent");
    dev.sync().expect("it is sent");
    dev.wait().expect("it has run");
    let gate = Gate::close(&backend);
    let after = apply(dev, "test::after", &before);
    dev.sync().expect("it is sent");
    assert!(deferred.is_reached(), "it does not stand behind what the gate holds back");
    assert!(!dev.marker().expect("a marker").is_reached());
    let held = dev.deferred_marker();
    assert!(!held.is_reached(), "nothing is pending: it stands behind what was sent");
    drop(gate);
    held.wait().expect("it is reached");
    drop(after);
}

#[test]
fn who_asks_for_a_deferred_marker_sends_what_it_stands_behind() {
    let (_, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    let waited = apply(dev, "test::waited", &upload(dev, 2));
    let marker = dev.deferred_marker();
    marker.wait().expect("it is reached");
    assert!(!waited.is_pending());
    let polled = apply(dev, "test::polled", &waited);
    let marker = dev.deferred_marker();
    while !marker.is_reached() {
        thread::yield_now();
    }
    assert!(!polled.is_pending());
}

#[test]
fn a_failed_program_is_passed_too_and_its_error_is_kept_for_the_reader() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    backend.set_behaviour(Behaviour::FailOp("test::bad".into()));
    let value = apply(dev, "test::bad", &upload(dev, 2));
    let marker = dev.marker().expect("a marker");
    marker.wait().expect("the marker is passed");
    assert!(dev.download(&value).expect_err("it failed").to_string().contains("test::bad"));
}

#[test]
fn a_wait_for_a_marker_can_be_given_up() {
    let (backend, session) = session(never_inline());
    session.set_interrupt(|| true);
    let dev = session.device(0).expect("a device");
    let gate = Gate::close(&backend);
    let value = apply(dev, "test::step", &upload(dev, 2));
    let marker = dev.marker().expect("a marker");
    assert!(matches!(marker.wait(), Err(ltc_core::Error::Interrupted)));
    drop(gate);
    drop(value);
}

#[test]
fn a_program_that_is_discarded_tells_nobody_of_its_failure_although_the_wait_was_given_up() {
    let (backend, session) = session(never_inline());
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    session.set_interrupt(|| INTERRUPTED.load(Ordering::Relaxed));
    let dev = session.device(0).expect("a device");
    backend.set_behaviour(Behaviour::FailOp("test::bad".into()));
    for is_discarded in [true, false] {
        let gate = Gate::close(&backend);
        let value = apply(dev, "test::bad", &upload(dev, 2));
        dev.sync().expect("it is sent");
        INTERRUPTED.store(true, Ordering::Relaxed);
        if is_discarded {
            assert!(matches!(dev.discard(&value), Err(ltc_core::Error::Interrupted)));
        }
        INTERRUPTED.store(false, Ordering::Relaxed);
        drop(gate);
        assert_eq!(dev.wait().is_ok(), is_discarded, "only a failure that was discarded is told to nobody");
    }
}

/// Lets devices that compute by themselves do all they were given. When it goes, so that a test that fails ends.
struct Done(RecordingBackend);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.pass(usize::MAX);
    }
}

#[test]
fn a_marker_is_reached_when_a_device_that_computes_by_itself_has_passed_it() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    backend.compute_by_itself();
    let _done = Done(backend.clone());
    assert!(dev.marker().expect("a marker").is_reached(), "it was given nothing");
    let value = apply(dev, "test::first", &upload(dev, 2));
    let first = dev.marker().expect("a marker");
    let value = apply(dev, "test::second", &value);
    let second = dev.marker().expect("a marker");
    dev.wait().expect("the programs were given to it");
    assert!(!first.is_reached() && !second.is_reached(), "it has done neither");
    assert!(!dev.marker().expect("a marker").is_reached(), "nothing was recorded, and it has to do what there was");
    backend.pass(1);
    assert!(first.is_reached() && !second.is_reached());
    assert_eq!(second.seconds_since(&first), None);
    let waits = thread::spawn({
        let second = second.clone();
        move || second.wait().map(|()| second.is_reached())
    });
    backend.pass(2);
    assert!(waits.join().expect("no panic").expect("no interrupt"));
    assert_eq!(second.seconds_since(&first), Some(1.0), "the device says when");
    drop(value);
}

#[test]
fn a_wait_for_a_device_that_computes_by_itself_can_be_given_up() {
    let (backend, session) = session(never_inline());
    let dev = session.device(0).expect("a device");
    backend.compute_by_itself();
    let _done = Done(backend.clone());
    let value = apply(dev, "test::step", &upload(dev, 2));
    let marker = dev.marker().expect("a marker");
    dev.wait().expect("the program was given to it");
    session.set_interrupt(|| true);
    assert!(matches!(marker.wait(), Err(ltc_core::Error::Interrupted)));
    drop(value);
}

#[test]
fn a_device_that_computes_by_itself_is_not_given_more_than_it_may_have_to_do() {
    let mut config = never_inline();
    config.queue_depth = 2;
    let (backend, session) = session(config);
    let dev = session.device(0).expect("a device");
    backend.compute_by_itself();
    let done = Done(backend.clone());
    let mut value = upload(dev, 2);
    backend.take_log();
    let given = |backend: &RecordingBackend| backend.take_log().iter().filter(|l| l.starts_with("execute")).count();
    let mut marker = None;
    // As many as the device may be behind, one that waits for it to come closer, and two that wait for that one.
    for step in 0..5 {
        value = apply(dev, &format!("test::step{step}"), &value);
        marker = Some(dev.marker().expect("a marker"));
    }
    let mut seen = 0;
    while seen < 3 {
        seen += given(&backend);
        thread::yield_now();
    }
    (0..1000).for_each(|_| thread::yield_now());
    assert_eq!(seen + given(&backend), 3, "two to do and one that is waited for");
    drop(done);
    marker.expect("there were steps").wait().expect("no interrupt");
    assert_eq!(given(&backend), 2);
    drop(value);
}
