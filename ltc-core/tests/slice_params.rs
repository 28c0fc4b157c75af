//! Parts of data as parameters: one program wherever they begin.

use std::sync::Arc;

use ltc_backend::{HostTensor, ReferenceBackend, testing::RecordingBackend};
use ltc_core::{Config, Device, Session, Storage, TraceValue};
use ltc_ir::{ArgWriter, DType, Layout, LayoutRef, Op, Operands, Signature, SiteId, View};
use smallvec::SmallVec;

fn with(slices: bool) -> Config {
    let mut config = Config::default();
    config.slice_params = slices;
    config
}

fn session(config: Config) -> (RecordingBackend, Session) {
    let backend = RecordingBackend::default();
    let session = Session::new(Arc::new(backend.clone()), config).expect("a session");
    (backend, session)
}

fn numbers(dev: &Device, n: i64) -> Storage {
    let layout = Layout::contiguous(DType::F32, &[n]);
    let bytes = (0..n).flat_map(|i| (i as f32).to_ne_bytes()).collect();
    Storage::with_value(dev.upload(&HostTensor { bytes, layout: layout.into() }).expect("an upload"))
}

fn window(sizes: &'static [i64], strides: &'static [i64], offset: i64) -> View<'static> {
    View { dtype: DType::F32, sizes, strides, offset }
}

fn read(dev: &Device, storage: &Storage, view: View<'_>) -> TraceValue {
    storage.read(dev, view, SiteId::default())
}

fn call(dev: &Device, op: Op, args: &mut ArgWriter, operands: &[&TraceValue], layout: &LayoutRef) -> TraceValue {
    let (words, numbers) = args.finish();
    let signature = Signature::new(op, words, SmallVec::from_iter([layout.clone()]));
    let operands: Operands<_> = operands.iter().map(|&v| v.clone()).collect();
    dev.record(&signature, operands, numbers, SiteId::default())
}

fn negated(dev: &Device, v: &TraceValue) -> TraceValue {
    let op = Op::find("aten::neg").expect("a table row");
    call(dev, op, ArgWriter::new().tensor(), &[v], v.layout())
}

fn sum(dev: &Device, a: &TraceValue, b: &TraceValue) -> TraceValue {
    let op = Op::find("aten::add.Tensor").expect("a table row");
    call(dev, op, ArgWriter::new().tensor().tensor().number(1i64.into()), &[a, b], a.layout())
}

#[test]
fn batches_of_one_data_set_run_one_program() {
    let batch = |at| window(&[2, 4], &[4, 1], at);
    for slices in [true, false] {
        let (backend, session) = session(with(slices));
        let dev = session.device(0).expect("a device");
        let data = numbers(dev, 64);
        backend.take_log();
        for step in 0..4 {
            let y = negated(dev, &read(dev, &data, batch(step * 8)));
            dev.sync().and_then(|()| dev.wait()).expect("the step runs");
            drop(y);
        }
        let log = backend.take_log();
        let m = session.metrics();
        if slices {
            let of = |at: i64| [format!("slice f32[2, 4] from {at}"), "execute 1 nodes, numbers 0".into()];
            let expected: Vec<String> =
                ["compile 1 nodes".into()].into_iter().chain([0, 8, 16, 24].into_iter().flat_map(of)).collect();
            assert_eq!(log, expected);
            assert_eq!((m.compiles, m.cache_hits, m.respecialised, m.sliced_inputs, m.donated), (1, 3, 0, 4, 0));
        } else {
            assert_eq!(m.sliced_inputs, 0);
            assert!(log.iter().all(|l| !l.starts_with("slice")), "{log:?}");
            assert!(m.compiles + m.respecialised == 4, "each offset is a graph of its own: {m:?}");
        }
    }
}

#[test]
fn one_slice_read_twice_is_one_parameter() {
    let (backend, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let data = numbers(dev, 64);
    let at = |offset| read(dev, &data, window(&[4], &[1], offset));
    let slices_of = |a: i64, b: i64| {
        backend.take_log();
        let y = sum(dev, &at(a), &at(b));
        dev.sync().and_then(|()| dev.wait()).expect("a step");
        drop(y);
        backend.take_log().iter().filter(|l| l.starts_with("slice")).count()
    };
    assert_eq!(slices_of(4, 4), 1);
    assert_eq!(slices_of(4, 5), 2);
    assert_eq!(slices_of(9, 9), 1);
    assert_eq!(session.metrics().compiles, 2, "the same slice twice is another structure than two slices");
}

#[test]
fn what_is_no_dense_slice_or_not_read_in_slices_only_stays_a_view() {
    let (_, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let data = numbers(dev, 64);
    let slices_of = |f: &mut dyn FnMut() -> Vec<TraceValue>| {
        let before = session.metrics().sliced_inputs;
        let kept = f();
        dev.sync().and_then(|()| dev.wait()).expect("a step");
        drop(kept);
        session.metrics().sliced_inputs - before
    };
    let slice = |offset| read(dev, &data, window(&[4], &[1], offset));
    let all = || read(dev, &data, window(&[64], &[1], 0));
    assert_eq!(slices_of(&mut || vec![negated(dev, &slice(8))]), 1, "a slice");
    assert_eq!(slices_of(&mut || vec![negated(dev, &read(dev, &data, window(&[], &[], 63)))]), 1, "an element");
    assert_eq!(slices_of(&mut || vec![negated(dev, &read(dev, &data, window(&[4], &[8], 1)))]), 0, "a column");
    assert_eq!(slices_of(&mut || vec![negated(dev, &read(dev, &data, window(&[3, 4], &[0, 1], 0)))]), 0, "repeated");
    assert_eq!(slices_of(&mut || vec![negated(dev, &read(dev, &data, window(&[8, 8], &[8, 1], 0)))]), 0, "all of it");
    assert_eq!(slices_of(&mut || vec![slice(8)]), 0, "somebody holds the view");
    assert_eq!(slices_of(&mut || vec![negated(dev, &slice(8)), negated(dev, &all())]), 0, "used whole as well");
    assert_eq!(slices_of(&mut || vec![negated(dev, &all()), negated(dev, &slice(8))]), 0, "used whole before");
    let many = |n: i64| (0..n).map(|i| negated(dev, &slice(i))).collect::<Vec<_>>();
    assert_eq!(slices_of(&mut || many(32)), 32);
    assert_eq!(slices_of(&mut || many(33)), 0, "more buffers than are worth making one by one");
}

#[test]
fn reading_a_slice_of_data_runs_nothing() {
    for slices in [true, false] {
        let (backend, session) = session(with(slices));
        let dev = session.device(0).expect("a device");
        let data = numbers(dev, 64);
        let other = negated(dev, &read(dev, &data, window(&[64], &[1], 0)));
        backend.take_log();
        dev.download(&read(dev, &data, window(&[4], &[1], 8))).expect("a value");
        let log = backend.take_log();
        if slices {
            assert_eq!(log, ["slice f32[4] from 8", "download f32[4]"]);
        } else {
            assert!(log.iter().any(|l| l.starts_with("execute")), "{log:?}");
        }
        dev.download(&read(dev, &data, window(&[8, 8], &[1, 8], 0))).expect("a value");
        let log = backend.take_log();
        assert_eq!(log.iter().any(|l| l.starts_with("execute")), !slices, "all of it in another shape: {log:?}");
        assert_eq!(other.is_pending(), slices, "what else is recorded waits for its turn");
        // A column is computed.
        dev.download(&read(dev, &data, window(&[4], &[8], 1))).expect("a value");
        assert!(backend.take_log().iter().any(|l| l.starts_with("execute")));
    }
    let session = Session::new(Arc::new(ReferenceBackend), Config::default()).expect("a session");
    let dev = session.device(0).expect("a device");
    let data = numbers(dev, 12);
    for at in [0, 5, 9] {
        let host = dev.download(&read(dev, &data, window(&[3], &[1], at))).expect("a value");
        assert_eq!(host.bytes[..4], (at as f32).to_ne_bytes());
    }
    assert_eq!(session.metrics().executions, 0);
}

/// Writing to a slice needs the whole, whose memory is to be reused.
#[test]
fn a_slice_that_is_written_back_is_no_parameter() {
    let (_, session) = session(Config::default());
    let dev = session.device(0).expect("a device");
    let data = numbers(dev, 64);
    for step in 0..3 {
        let view = window(&[4], &[1], 4);
        let new = negated(dev, &read(dev, &data, view));
        data.write(dev, view, new, SiteId::default());
        dev.sync().and_then(|()| dev.wait()).expect("a step");
        let m = session.metrics();
        assert_eq!((m.sliced_inputs, m.donated), (0, step + 1));
    }
}

#[test]
fn values_of_slices_are_those_of_views() {
    for slices in [true, false] {
        let session = Session::new(Arc::new(ReferenceBackend), with(slices));
        let session = session.expect("a session");
        let dev = session.device(0).expect("a device");
        let data = numbers(dev, 12);
        for at in [0, 3, 8] {
            let slice = |strides| read(dev, &data, window(&[2, 2], strides, at));
            let both = sum(dev, &slice(&[1, 2]), &slice(&[2, 1]));
            let host = dev.download(&both).expect("a value");
            let got: Vec<f32> =
                host.bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().expect("4"))).collect();
            // The sum has the layout of the first: columns first.
            let at = 2.0 * at as f32;
            assert_eq!(got, [at, at + 3.0, at + 3.0, at + 6.0]);
        }
        assert_eq!(session.metrics().sliced_inputs, if slices { 6 } else { 0 });
    }
}
