//! What it costs that an operator runs eagerly: `cargo bench -p ltc-eager-fallback`. Beside it the same call without
//! us.
#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ltc_eager_fallback::Forced;
use tch::{Device, Kind, Tensor};

fn benches(c: &mut Criterion) {
    let words = ["aten::mm", "add", "aten::mul.Tensor"];
    let forced = Forced::new(words).expect("names of operators");
    c.bench_function("is the operator forced out", |b| b.iter(|| forced.contains(black_box("aten::relu"))));
    ltc_torch::init().expect("the device starts");
    let host = Tensor::ones([64], (Kind::Float, Device::Cpu));
    let ready = ltc_torch::to_lazy(&host).expect("to the device");
    let mut group = c.benchmark_group("nonzero");
    group.bench_function("eager", |b| b.iter(|| host.nonzero()));
    group.bench_function("of data", |b| b.iter(|| ready.nonzero()));
    group.bench_function("of something pending", |b| b.iter(|| (&ready + 1.0).nonzero()));
    group.finish();
}

criterion_group!(group, benches);
criterion_main!(group);
