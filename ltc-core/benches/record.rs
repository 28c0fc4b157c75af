//! What recording and syncing cost without a dispatcher: `cargo bench -p ltc-core`.
#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::{hint::black_box, sync::Arc, time::Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ltc_backend::{HostTensor, testing::RecordingBackend};
use ltc_core::{Config, Device, LazyTensor, Session, TraceValue};
use ltc_ir::{ArgWriter, DType, Layout, LayoutRef, Op, Operands, Props, Scalar, Signature, SignatureRef, SiteId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

fn signature(op: Op, layout: &LayoutRef) -> SignatureRef {
    let words = ArgWriter::new().tensor().tensor().number(Scalar::Int(1)).finish().0;
    Signature::new(op, words, SmallVec::from_iter([layout.clone()]))
}

fn add(dev: &Device, signature: &SignatureRef, a: &TraceValue, b: &TraceValue) -> TraceValue {
    dev.record(signature, Operands::from_iter([a.clone(), b.clone()]), SmallVec::from_iter([1]), SiteId::default())
}

fn benches(c: &mut Criterion) {
    let session = Session::new(Arc::new(RecordingBackend::default()), Config::default()).expect("a session");
    let dev = session.device(0).expect("a device");
    let layout = Layout::contiguous(DType::F32, &[16]);
    let host = HostTensor { bytes: vec![0; layout.storage_bytes()], layout: layout.into() };
    let a = dev.upload(&host).expect("an upload");
    let op = Op::intern("aten::add.Tensor", Props::NONE);
    let shared = signature(op, a.layout());
    let chain = |n: usize| (0..n).fold(a.clone(), |y, _| add(dev, &shared, &y, &a));
    let fresh = |n: usize| (0..n).fold(a.clone(), |y, _| add(dev, &signature(op, y.layout()), &y, &a));
    c.bench_function("record and drop 1000 binary operators, new signatures", |b| b.iter(|| drop(fresh(1000))));
    c.bench_function("record and drop 1000 binary operators, one signature", |b| b.iter(|| drop(chain(1000))));
    c.bench_function("record, sync and run 1000 binary operators on a cache hit", |b| {
        b.iter(|| {
            let _y = chain(1000);
            dev.sync().and_then(|()| dev.wait()).expect("the program runs");
        });
    });
}

/// The whole of a native call: inference, hashing, storage, node.
fn native(c: &mut Criterion) {
    let session = Session::new(Arc::new(RecordingBackend::default()), Config::default()).expect("a session");
    let dev = session.device(0).expect("a device");
    let a = LazyTensor::from_slice(dev, &[0f32; 16], &[16]).expect("a tensor");
    let chain = |f: &dyn Fn(&LazyTensor) -> LazyTensor| (0..1000).fold(a.clone(), |y, _| f(&y));
    let mut group = c.benchmark_group("native");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("a + b", |b| b.iter(|| drop(chain(&|y| y + &a))));
    group.bench_function("a * number", |b| b.iter(|| drop(chain(&|y| y * 1.5))));
    group.bench_function("relu", |b| b.iter(|| drop(chain(&|y| y.relu().expect("a tensor")))));
    let leaf = a.clone().requiring_grad();
    let chain = |y: &LazyTensor| (0..1000).fold(y.clone(), |y, _| y + &a);
    group.bench_function("a + b, remembered for gradients", |b| b.iter(|| drop(chain(&leaf))));
    group.finish();
}

/// A step of a loop: 100 operators, a sync, and a program the cache has. The backend does nothing, on the calling
/// thread.
fn repeated(c: &mut Criterion) {
    let mut config = Config::default();
    config.async_execution = false;
    let session = Session::new(Arc::new(RecordingBackend::default()), config).expect("a session");
    let dev = session.device(0).expect("a device");
    let a = LazyTensor::from_slice(dev, &[0f32; 16], &[16]).expect("a tensor");
    let step = || {
        (0..100).fold(a.clone(), |y, i| match i % 3 {
            0 => y + &a,
            1 => y * 1.5,
            _ => y.relu().expect("a tensor"),
        })
    };
    let mut group = c.benchmark_group("a repeated step");
    group.throughput(Throughput::Elements(100));
    group.bench_function("record and drop", |b| b.iter(|| drop(step())));
    group.bench_function("record", |b| {
        b.iter_custom(|steps| {
            let one = |_| {
                let start = Instant::now();
                let _y = step();
                let time = start.elapsed();
                dev.sync().expect("the program runs");
                time
            };
            (0..steps).map(one).sum()
        });
    });
    group.bench_function("record, sync and run", |b| {
        b.iter(|| {
            let _y = step();
            dev.sync().expect("the program runs");
        });
    });
    group.finish();
}

/// What to compare with: an allocation of a node's size, a look-up by hash, taking and letting go a counted reference.
fn yardsticks(c: &mut Criterion) {
    let mut group = c.benchmark_group("yardstick");
    group.bench_function("allocate and free", |b| b.iter(|| drop(black_box(Box::new([0u64; 16])))));
    let map: FxHashMap<u64, u64> = (0..100).map(|i| (i * 7919, i)).collect();
    group.bench_function("look up", |b| b.iter(|| map.get(&black_box(7919 * 50))));
    let counted = Arc::new(0u64);
    group.bench_function("count up and down", |b| b.iter(|| drop(black_box(counted.clone()))));
    group.finish();
}

criterion_group!(group, benches, native, repeated, yardsticks);
criterion_main!(group);
