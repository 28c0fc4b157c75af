//! The device for `tch`: what recording costs through libtorch's dispatcher, and a step of training:
//! `cargo bench -p ltc-torch`. Beside each the same on the CPU, eagerly.
#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tch::{
    Device, Kind, Tensor,
    nn::{self, Module, OptimizerConfig},
};

fn finish() {
    ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("the program runs");
}

fn on_device(t: &Tensor, lazy: bool) -> Tensor {
    if lazy { ltc_torch::to_lazy(t).expect("to the device") } else { t.shallow_clone() }
}

const DOORS: [(&str, bool); 2] = [("eager", false), ("lazy", true)];

fn chain(c: &mut Criterion) {
    ltc_torch::init().expect("the device starts");
    const STEPS: usize = 100;
    let _no_grad = tch::no_grad_guard();
    let host = Tensor::ones([16], (Kind::Float, Device::Cpu));
    let mut group = c.benchmark_group("a + b, 100 times");
    group.throughput(Throughput::Elements(STEPS as u64));
    for (name, lazy) in DOORS {
        let x = on_device(&host, lazy);
        let run = || (0..STEPS).fold(x.shallow_clone(), |y, _| y + &x);
        group.bench_function(name, |b| b.iter(|| drop(run())));
        if lazy {
            group.bench_function("lazy, with its program", |b| {
                b.iter(|| {
                    let _y = run();
                    finish();
                });
            });
        }
    }
    group.finish();
}

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("a step of training");
    for (name, lazy) in DOORS {
        let mut vs = nn::VarStore::new(Device::Cpu);
        let net = nn::seq()
            .add(nn::linear(vs.root() / "a", 64, 32, Default::default()))
            .add_fn(Tensor::relu)
            .add(nn::linear(vs.root() / "b", 32, 10, Default::default()));
        let x = on_device(&Tensor::ones([32, 64], (Kind::Float, Device::Cpu)), lazy);
        let labels = on_device(&Tensor::zeros([32], (Kind::Int64, Device::Cpu)), lazy);
        if lazy {
            ltc_torch::lazify(&mut vs).expect("variables move");
        }
        let mut optimizer = nn::Sgd::default().build(&vs, 1e-3).expect("an optimiser");
        group.bench_function(name, |b| {
            b.iter(|| {
                optimizer.backward_step(&net.forward(&x).cross_entropy_for_logits(&labels));
                if lazy {
                    finish();
                }
            });
        });
    }
    group.finish();
}

criterion_group!(group, chain, step);
criterion_main!(group);
