//! What a step of a program costs beside the same call made directly through tch.
//!
//! Small tensors, so that the kernel is cheap and the overhead shows; and a size where it no longer does.
#![expect(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::{hint::black_box, sync::Arc};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ltc_backend::{Buffer, DeviceIndex, ExecError, Executable, Input, Inputs, OutputSink};
use ltc_ir::{ArgFlags, ArgWriter, DType, GraphBuilder, Layout, LayoutRef, Op, Props, SiteId, ValueId};
use ltc_ts::{TsBackend, TsExecutable};
use tch::{Kind, Tensor};

const STEPS: usize = 100;

struct Drop;

impl OutputSink for Drop {
    fn output(&mut self, _: usize, result: Result<Buffer, Arc<ExecError>>) {
        let _ = black_box(result);
    }
}

/// `y = op(y, x)`, `STEPS` times.
fn program(backend: &TsBackend, name: &str, written: bool, binary: bool, n: i64) -> (Arc<TsExecutable>, Vec<u64>) {
    let layout = LayoutRef::new(Layout::contiguous(DType::F32, &[n]));
    let mut b = GraphBuilder::new();
    let x = b.param(layout.clone());
    let y = b.param(layout.clone());
    let (mut value, mut all): (ValueId, Vec<u64>) = (y, Vec::new());
    for _ in 0..STEPS {
        let mut w = ArgWriter::new();
        w.tensor_with(if written { ArgFlags::MUT } else { ArgFlags::NONE });
        if binary {
            w.tensor().number(1i64.into());
        }
        let (words, numbers) = w.finish();
        let operands = if binary { vec![value, x] } else { vec![value] };
        let results = [layout.clone()].into_iter().collect();
        value = b.node(Op::intern(name, Props::NONE), words, &operands, numbers.len(), results, SiteId::default());
        all.extend(numbers);
    }
    let graph = Arc::new(b.finish(vec![value]));
    (backend.compile_program(DeviceIndex(0), &graph).expect("compiles"), all)
}

/// As many calls of the operator, through `tch`.
fn eager(host: &Tensor, zeros: &Tensor, written: bool, binary: bool) -> Tensor {
    let _guard = tch::no_grad_guard();
    let mut y = host.copy();
    for _ in 0..STEPS {
        y = match (written, binary) {
            (false, false) => y.relu(),
            (false, true) => &y + zeros,
            _ => y.g_add_(zeros),
        };
    }
    y
}

fn steps(c: &mut Criterion) {
    tch::set_num_threads(1);
    let backend = TsBackend::new(1);
    let mut group = c.benchmark_group("step");
    group.throughput(Throughput::Elements(STEPS as u64));
    for n in [16, 65_536] {
        let host = Tensor::ones([n], (Kind::Float, tch::Device::Cpu));
        let zeros = Tensor::zeros([n], (Kind::Float, tch::Device::Cpu));
        let buffers = [&zeros, &host].map(|t| backend.wrap(DeviceIndex(0), t.copy()).expect("wraps"));
        for (name, written, binary) in
            [("aten::relu", false, false), ("aten::add.Tensor", false, true), ("aten::add_.Tensor", true, true)]
        {
            let (program, numbers) = program(&backend, name, written, binary, n);
            group.bench_function(BenchmarkId::new(format!("{name} program"), n), |b| {
                b.iter(|| {
                    let input = |buffer: &Buffer| Input { buffer: Ok(buffer.clone()), donated: false };
                    program.execute(Inputs::new(buffers.iter().map(input), numbers.clone()), &mut Drop);
                });
            });
            group.bench_function(BenchmarkId::new(format!("{name} tch"), n), |b| {
                b.iter(|| black_box(eager(&host, &zeros, written, binary)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
