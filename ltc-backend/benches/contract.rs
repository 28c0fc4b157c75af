//! What a program costs through the contract, on the reference backend: `cargo bench -p ltc-backend`.
#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, HostTensor, Input, Inputs, OutputSink, ReferenceBackend};
use ltc_ir::Graph;

struct Forget;

impl OutputSink for Forget {
    fn output(&mut self, _: usize, result: Result<Buffer, Arc<ExecError>>) {
        drop(black_box(result).expect("the program runs"));
    }
}

/// A layer of a network.
const LAYER: &str = "graph(%p0: f32[16, 32], %p1: f32[32, 8], %p2: f32[8]) {
    %0: f32[16, 8] = aten::mm(%p0, %p1)
    %1: f32[16, 8] = aten::add.Tensor(%0, %p2, number i64)
    %2: f32[16, 8] = aten::relu(%1)
    return %2 }";

fn benches(c: &mut Criterion) {
    let (backend, device) = (ReferenceBackend, DeviceIndex(0));
    let graph: Arc<Graph> = Graph::parse(LAYER).unwrap_or_else(|e| panic!("{e}")).into();
    let zeros =
        |layout: &ltc_ir::LayoutRef| HostTensor { bytes: vec![0; layout.storage_bytes()], layout: layout.clone() };
    let hosts: Vec<HostTensor> = graph.params().iter().map(zeros).collect();
    let upload = |host: &HostTensor| backend.upload(device, host).expect("an upload");
    let buffers: Vec<Buffer> = hosts.iter().map(upload).collect();
    let program = backend.compile(device, &graph).expect("compiles");
    c.bench_function("compile three operators", |b| b.iter(|| backend.compile(device, &graph).expect("compiles")));
    let mut group = c.benchmark_group("run");
    group.throughput(Throughput::Elements(graph.nodes().len() as u64));
    group.bench_function("three operators", |b| {
        b.iter(|| {
            let input = |buffer: &Buffer| Input { buffer: Ok(buffer.clone()), donated: false };
            let params: Vec<Input> = buffers.iter().map(input).collect();
            program.execute(Inputs::new(params, vec![1]), &mut Forget);
        });
    });
    group.finish();
    let mut group = c.benchmark_group("move");
    group.throughput(Throughput::Bytes(hosts[0].bytes.len() as u64));
    group.bench_function("upload and download", |b| {
        b.iter(|| backend.download(device, &upload(&hosts[0]), &hosts[0].layout).expect("a download"));
    });
    group.finish();
}

criterion_group!(group, benches);
criterion_main!(group);
