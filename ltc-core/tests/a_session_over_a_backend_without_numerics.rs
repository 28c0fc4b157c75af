//! Laziness, caching, donation, errors and limits, seen from the backend's side.

mod recording;

use ltc_backend::testing::Behaviour;
use ltc_core::{Argument, Config, Device, Storage, TraceValue};
use ltc_ir::{ArgFlags, ArgWriter, DType, Op, Operands, Props, Scalar, Signature, SiteId, View};
use smallvec::SmallVec;

use recording::{session, upload};

/// `op(value, number)` with the value's layout.
fn scaled(dev: &Device, op: &str, v: &TraceValue, x: f64) -> TraceValue {
    let (words, numbers) = ArgWriter::new().tensor().number(Scalar::Float(x)).finish();
    let results = SmallVec::from_iter([v.layout().clone()]);
    let signature = Signature::new(Op::intern(op, Props::NONE), words, results);
    dev.record(&signature, Operands::from_iter([v.clone()]), numbers, SiteId(3))
}

#[test]
fn the_second_step_compiles_nothing_although_numbers_change() {
    let (backend, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let weight = Storage::with_value(upload(dev, 4));
    let view = View { dtype: DType::F32, sizes: &[4], strides: &[1], offset: 0 };
    backend.take_log();
    for step in 0..3 {
        let w = weight.read(dev, view, SiteId::default());
        let gradient = scaled(dev, "test::gradient", &w, 1.0);
        let moved = scaled(dev, "test::scale", &gradient, 0.1 / f64::from(step));
        drop((w, gradient));
        weight.write(dev, view, moved, SiteId::default());
        assert_eq!(backend.take_log(), [""; 0], "recording calls nothing");
        dev.sync().and_then(|()| dev.wait()).expect("the step runs");
        let log = backend.take_log();
        let run = "execute 2 nodes, numbers 2";
        if step == 0 { assert_eq!(log, ["compile 2 nodes", run]) } else { assert_eq!(log, [run]) }
    }
    let m = session.metrics();
    assert_eq!((m.compiles, m.cache_hits, m.executions, m.donated), (1, 2, 3, 3));
}

#[test]
fn data_that_an_extracted_computation_stands_for_is_not_given_away() {
    let (_, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let a = upload(dev, 2);
    let b = scaled(dev, "test::a", &a, 1.0);
    let (extracted, data) = dev.extract(std::slice::from_ref(&b)).expect("it is pending");
    drop(a);
    dev.sync().and_then(|()| dev.wait()).expect("a sync");
    data[0].wait().expect("still there");
    let results = extracted.placeholders();
    extracted.run(data.into_iter().map(Argument::whole).collect(), &results).expect("a run");
    dev.download(&results[0]).expect("a value");
}

#[test]
fn reading_waits_for_data_and_recording_does_not() {
    let (backend, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    backend.close_gate();
    let a = upload(dev, 2);
    let b = scaled(dev, "test::a", &a, 1.0);
    dev.sync().expect("a sync");
    let c = scaled(dev, "test::b", &b, 1.0);
    assert!(!b.is_pending() && c.is_pending());
    assert!(backend.take_log().iter().all(|l| !l.starts_with("execute")), "the gate is closed");
    backend.open_gate();
    dev.download(&c).expect("a value");
    assert_eq!(backend.take_log().iter().filter(|l| l.starts_with("execute")).count(), 2);
}

#[test]
fn a_failure_poisons_only_what_depends_on_it() {
    let (backend, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let a = upload(dev, 2);
    backend.set_behaviour(Behaviour::FailOp("test::bad".into()));
    let fine = scaled(dev, "test::fine", &a, 1.0);
    let bad = scaled(dev, "test::bad", &a, 1.0);
    let worse = scaled(dev, "test::after", &bad, 1.0);
    let behind = scaled(dev, "test::behind", &a, 1.0);
    dev.sync().expect("a sync");
    let e = dev.download(&worse).expect_err("poisoned").to_string();
    assert!(e.contains("test::bad") && e.contains("ordered to fail"), "{e}");
    dev.download(&fine).expect("made before");
    assert!(dev.download(&behind).is_err(), "eager does not get there");
    backend.set_behaviour(Behaviour::Succeed);
    let later = scaled(dev, "test::later", &worse, 1.0);
    assert!(dev.download(&later).is_err(), "poison goes on through later programs");
    dev.download(&scaled(dev, "test::new", &a, 1.0)).expect("the session works on");
    assert_eq!(session.metrics().failures, 1, "one failure, however many depend on it");
}

#[test]
fn a_panicking_backend_and_a_failing_compiler_lose_nothing_else() {
    let (backend, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let a = upload(dev, 2);
    backend.set_behaviour(Behaviour::Panic);
    let b = scaled(dev, "test::p", &a, 1.0);
    assert!(dev.download(&b).is_err());
    backend.set_behaviour(Behaviour::FailCompile);
    let c = scaled(dev, "test::q", &a, 1.0);
    assert!(dev.sync().is_ok() && dev.wait().is_err() && dev.download(&c).is_err());
    backend.set_behaviour(Behaviour::Succeed);
    dev.download(&scaled(dev, "test::r", &a, 1.0)).expect("the session works on");
}

#[test]
fn writes_through_a_view_are_seen_by_every_alias() {
    let (_, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let storage = Storage::with_value(upload(dev, 4));
    let all = View { dtype: DType::F32, sizes: &[4], strides: &[1], offset: 0 };
    let tail = View { dtype: DType::F32, sizes: &[2], strides: &[1], offset: 2 };
    let before = storage.read(dev, all, SiteId::default());
    let part = storage.read(dev, tail, SiteId::default());
    assert_eq!(part.op().name(), "ltc::read_view");
    storage.write(dev, tail, scaled(dev, "test::x", &part, 2.0), SiteId::default());
    let after = storage.read(dev, all, SiteId::default());
    assert_eq!(after.op().name(), "ltc::write_view");
    assert!(!after.same(&before) && before.layout() == after.layout());
}

#[test]
fn the_cache_is_bounded() {
    let mut config = Config::default();
    config.cache_entries = 4;
    let (_, session) = session(config);
    let dev = session.device(0).expect("a device");
    let a = upload(dev, 2);
    for i in 0..20 {
        let v = scaled(dev, &format!("test::op{i}"), &a, 1.0);
        dev.sync().expect("a sync");
        drop(v);
    }
    assert_eq!(session.cached_programs(), 4);
}

#[test]
fn loops_that_never_mark_are_sent_by_nodes_and_by_bytes() {
    let mut config = Config::default();
    config.max_pending_nodes = 100;
    config.max_retained_bytes = 4000;
    let (_, session) = session(config);
    let dev = session.device(0).expect("a device");
    let mut v = upload(dev, 2);
    for _ in 0..1000 {
        v = scaled(dev, "test::n", &v, 1.0);
    }
    let by_nodes = session.metrics().auto_syncs;
    assert!((5..=20).contains(&by_nodes), "{by_nodes}");
    let mut kept = Vec::new();
    for _ in 0..50 {
        // Each batch is 400 bytes that only the pending work still holds.
        kept.push(scaled(dev, "test::n", &upload(dev, 100), 1.0));
    }
    let by_bytes = session.metrics().auto_syncs - by_nodes;
    assert!((3..=10).contains(&by_bytes), "{by_bytes}");
}

#[test]
fn a_mutating_operator_with_two_results_keeps_them_apart() {
    let (_, session) = session(Config::default());
    let dev = session.device(1).expect("a second device");
    let a = upload(dev, 3);
    let layout = a.layout().clone();
    let (words, numbers) = ArgWriter::new().tensor_with(ArgFlags::MUT).finish();
    let results = SmallVec::from_iter([layout.clone(), layout]);
    let op = Op::intern("test::two_", Props::MUTATES);
    let signature = Signature::new(op, words, results);
    let two = dev.record_results(&signature, Operands::from_iter([a]), numbers, SiteId::default());
    let second = two[1].clone();
    drop(two);
    dev.sync_values(std::slice::from_ref(&second)).expect("a sync");
    assert!(!second.is_pending());
    dev.download(&second).expect("a value");
}
