//! What each way of a node through this crate costs: `cargo bench -p ltc-ir`. Throughput is in nodes.
//!
//! Two shapes of program: a chain of one layout, where all stays in cache lines, and a training-like one with several
//! layouts, results and argument forms.
#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ltc_ir::{
    ArgFlags, ArgWriter, DType, Graph, Layout, LayoutRef, Op, Operands, Props, Results, Scalar, SiteId, Value,
    WeakValue, canonicalize, verify,
};

type V = Value<()>;

/// The values a program keeps, and all nodes it recorded.
struct Recorded {
    kept: Vec<V>,
    recording: Vec<WeakValue<()>>,
}

impl Recorded {
    fn set(&self) -> Vec<V> {
        self.recording.iter().filter_map(WeakValue::upgrade).collect()
    }
}

struct Program {
    name: &'static str,
    nodes: usize,
    layouts: [LayoutRef; 3],
    ops: [Op; 4],
    mixed: bool,
}

impl Program {
    fn new(name: &'static str, nodes: usize, mixed: bool) -> Program {
        let layout = |sizes: &[i64]| LayoutRef::from(Layout::contiguous(DType::F32, sizes));
        let op = |name| Op::intern(name, Props::NONE);
        Program {
            name,
            nodes,
            layouts: [layout(&[64, 128]), layout(&[64]), Layout::contiguous(DType::I64, &[64]).into()],
            ops: [op("aten::add.Tensor"), op("aten::max.dim"), op("aten::mul_.Tensor"), op("aten::sum.dim_IntList")],
            mixed,
        }
    }

    fn record(&self, leaf: &V, recording: &mut Vec<WeakValue<()>>) -> Vec<V> {
        let [full, row, index] = &self.layouts;
        let [add, max, mul_, sum] = self.ops;
        let mut kept = Vec::new();
        let mut x = leaf.clone();
        for i in 0..self.nodes {
            let mut w = ArgWriter::new();
            let (op, second, results) = match i % 8 {
                2 if self.mixed => {
                    w.tensor().int(1).bool(false);
                    (max, false, Results::from_iter([row.clone(), index.clone()]))
                }
                4 if self.mixed => {
                    w.tensor_with(ArgFlags::MUT).wrapped(Scalar::Float(0.5));
                    (mul_, false, Results::from_iter([full.clone()]))
                }
                6 if self.mixed => {
                    w.tensor().ints(&[1]).bool(false).none();
                    (sum, false, Results::from_iter([row.clone()]))
                }
                _ => {
                    w.tensor().tensor().number(Scalar::Int(1));
                    (add, true, Results::from_iter([full.clone()]))
                }
            };
            let (words, numbers) = w.finish();
            let mut operands = Operands::new();
            operands.push(x.clone());
            if second {
                operands.push(leaf.clone());
            }
            let results_count = results.len();
            let node = V::record(ltc_ir::Signature::new(op, words, results), operands, numbers, SiteId(i as u32));
            recording.push(node.downgrade());
            if results_count > 1 {
                let value = node.result(1);
                recording.push(value.downgrade());
                kept.push(value);
            } else if node.layout() == full {
                x = node;
            } else {
                kept.push(node);
            }
        }
        kept.push(x);
        kept
    }

    fn recorded(&self, leaf: &V) -> Recorded {
        let mut recording = Vec::with_capacity(2 * self.nodes);
        let kept = self.record(leaf, &mut recording);
        Recorded { kept, recording }
    }
}

fn benches(c: &mut Criterion) {
    for program in [Program::new("chain", 1000, false), Program::new("mixed", 1000, true)] {
        let leaf = V::data(program.layouts[0].clone(), ());
        let mut group = c.benchmark_group(program.name);
        group.throughput(Throughput::Elements(program.nodes as u64));
        let mut recording = Vec::with_capacity(2 * program.nodes);
        group.bench_function("record and drop", |b| {
            b.iter(|| {
                recording.clear();
                program.record(&leaf, &mut recording)
            });
        });
        let recorded = program.recorded(&leaf);
        let mut epoch = 0;
        group.bench_function("canonicalise", |b| {
            b.iter_batched(
                || recorded.set(),
                |set| {
                    epoch += 1;
                    canonicalize(set, epoch)
                },
                BatchSize::SmallInput,
            );
        });
        let canonical = canonicalize(recorded.set(), u32::MAX);
        let graph = canonical.to_graph();
        assert_eq!(canonical.outputs.len(), recorded.kept.len());
        group.bench_function("confirm a hit", |b| b.iter(|| black_box(&canonical).matches(black_box(&graph))));
        group.bench_function("to_graph", |b| b.iter(|| black_box(&canonical).to_graph()));
        group.bench_function("verify", |b| b.iter(|| verify(black_box(&graph))));
        group.bench_function("print", |b| b.iter(|| black_box(&graph).to_string()));
        let text = graph.to_string();
        group.bench_function("parse", |b| b.iter(|| Graph::parse(black_box(&text))));
        group.finish();
    }
}

criterion_group!(group, benches);
criterion_main!(group);
