//! What rewrites gain: programs with and without them, in turn, in one process.
//!
//! `cargo run --release -p ltc-ts --example rewrites [threads [words]]`: programs with these words in their names
//! (all); microseconds, medians, and the ratio with / without. The cost models of `rewrite/attention` and
//! `fusion/concat.rs` follow from it; what they decline is shown with a ratio of about one. Branches run side by side
//! with 2 threads only.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{
    attention::{Case, LONG, Mask},
    *,
};
use ltc_backend::Buffer;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Scalar, ValueId, passes::Switches};
use ltc_ts::TsConfig;
use tch::Tensor;

type Recorded = (std::sync::Arc<ltc_ir::Graph>, Vec<u64>);

/// `softmax(q @ kᵀ / 8) @ v` of heads with so many queries and keys of 64 numbers, under a mask if asked for.
fn attention(heads: i64, length: i64, masked: bool) -> Recorded {
    let (n, l, e) = (heads, length, 64);
    let mut g = G::default();
    let (q, k, v) = (g.param(&f32s(&[n, l, e])), g.param(&f32s(&[n, l, e])), g.param(&f32s(&[n, l, e])));
    let kt = g.read_view(k, 0, &Layout::strided(DType::F32, &[n, e, l], &[l * e, 1, e]).into());
    let bmm = ArgWriter::new().tensor().tensor().clone();
    let scores = f32s(&[n, l, l]);
    let x = g.one("aten::bmm", &bmm, &[q, kt], &scores);
    let by = ArgWriter::new().tensor().wrapped(Scalar::Float(0.125)).clone();
    let mut x = g.one("aten::mul.Tensor", &by, &[x], &scores);
    if masked {
        let mask = g.param(&Layout::contiguous(DType::Bool, &[l, l]).into());
        let fill = ArgWriter::new().tensor().tensor().number(Scalar::Float(f64::NEG_INFINITY)).clone();
        x = g.one("aten::masked_fill.Scalar", &fill, &[x, mask], &scores);
    }
    let weights = g.one("aten::_softmax", ArgWriter::new().tensor().int(-1).bool(false), &[x], &scores);
    let out = g.one("aten::bmm", &bmm, &[weights, v], &f32s(&[n, l, e]));
    g.finish(&[out])
}

/// Four activations of so many elements each, joined along a dimension.
fn activations(rows: i64, columns: i64, dim: usize) -> Recorded {
    let one = f32s(&[rows, columns]);
    let mut g = G::default();
    let (x, y) = (g.param(&one), g.param(&one));
    let mut parts: Vec<ValueId> = Vec::new();
    for op in ["tanh", "sigmoid", "relu", "silu"] {
        let sum = g.one("aten::mul.Tensor", ArgWriter::new().tensor().tensor(), &[x, y], &one);
        parts.push(g.one(&format!("aten::{op}"), ArgWriter::new().tensor(), &[sum], &one));
    }
    let mut sizes = [rows, columns];
    sizes[dim] *= 4;
    let args = ArgWriter::new().tensors(&[true; 4], ArgFlags::NONE).int(dim as i64).clone();
    let all = g.one("aten::cat", &args, &parts, &f32s(&sizes));
    g.finish(&[all])
}

/// `relu(addmm(bias, x, w))` twice.
fn layers(rows: i64, width: i64) -> Recorded {
    let (l, weight) = (f32s(&[rows, width]), f32s(&[width, width]));
    let mut g = G::default();
    let (mut x, w, bias) = (g.param(&l), g.param(&weight), g.param(&f32s(&[width])));
    let addmm = ArgWriter::new().tensor().tensor().tensor().number(1i64.into()).number(1i64.into()).clone();
    for _ in 0..2 {
        let y = g.one("aten::addmm", &addmm, &[bias, x, w], &l);
        x = g.relu(y, &l);
    }
    g.finish(&[x])
}

/// So many towers of layers `tanh(x @ w + x)`, which do not depend on each other.
fn towers(count: usize, layers: usize, rows: i64, width: i64) -> Recorded {
    let (l, weight) = (f32s(&[rows, width]), f32s(&[width, width]));
    let mut g = G::default();
    let mut outputs = Vec::new();
    for _ in 0..count {
        let (mut x, w) = (g.param(&l), g.param(&weight));
        for _ in 0..layers {
            let y = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, w], &l);
            let y = g.add(y, x, &l);
            x = g.one("aten::tanh", ArgWriter::new().tensor(), &[y], &l);
        }
        outputs.push(x);
    }
    g.finish(&outputs)
}

/// Numbers for a parameter.
fn input(layout: &LayoutRef) -> Tensor {
    let numbers = (ramp(layout.sizes()) * 0.37).sin();
    if layout.dtype() == DType::Bool { numbers.ones_like().triu(1).to_kind(tch::Kind::Bool) } else { numbers }
}

fn compare(what: &str, recorded: &Recorded) {
    if std::env::args().nth(2).is_some_and(|wanted| !what.contains(&wanted)) {
        return;
    }
    let rig = |rewrites| Rig::with(TsConfig { rewrites, ..TsConfig::default() }, recorded.clone());
    let with = if what.contains("towers") { "branches" } else { "all" };
    let rigs = [rig(Switches::none()), rig(with.parse().expect("switches"))];
    let inputs: Vec<Tensor> = recorded.0.params().iter().map(input).collect();
    let held: Vec<Buffer> = inputs.iter().map(|t| rigs[0].buffer(t)).collect();
    let once = |rig: &Rig| {
        let start = Instant::now();
        drop(rig.execute(held.iter().map(|b| keep(b.clone())).collect()));
        start.elapsed()
    };
    let (mut times, began) = ([Vec::new(), Vec::new()], Instant::now());
    rigs.iter().for_each(|rig| (0..20).for_each(|_| _ = once(rig)));
    ltc_ts::finish_compiling();
    while times[0].len() < 5 || began.elapsed() < Duration::from_millis(700) && times[0].len() < 2000 {
        times.iter_mut().zip(&rigs).for_each(|(times, rig)| times.push(once(rig)));
    }
    let [without, with] = times.map(|mut t| {
        t.sort_unstable();
        t[t.len() / 2].as_secs_f64() * 1e6
    });
    println!("| {what} | {without:.0} | {with:.0} | {:.2} |", with / without);
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    tch::set_num_threads(threads);
    println!("| program | without | with | with / without |\n|---|---|---|---|");
    for length in [64, 128, 256, 512, 1024] {
        for masked in [false, true] {
            let mask = if masked { ", masked" } else { "" };
            compare(&format!("attention, 8 heads, {length}{mask}"), &attention(8, length, masked));
        }
    }
    for (b, h, e, lengths) in
        [(1, 8, 64, &[32, 64, 128, 256, 512][..]), (8, 4, 16, &[32, 64, 128, 256]), (4, 4, 64, &[128, 512])]
    {
        for (&t, mask) in lengths.iter().flat_map(|t| [(t, Mask::None), (t, Mask::Filled)]) {
            let case = Case { b, h, t, e, mask, wide: [false, false, true], ..LONG };
            let masked = if mask == Mask::None { "" } else { ", masked" };
            compare(&format!("attention and its gradient, {b} x {h} heads of {e}, {t}{masked}"), &case.recorded());
        }
    }
    for (rows, width) in [(1, 64), (32, 64), (64, 128), (256, 256), (1024, 256), (1024, 1024)] {
        compare(&format!("two layers, {rows} x {width}"), &layers(rows, width));
    }
    for (layers, rows, width) in
        [(4, 1, 64), (16, 1, 64), (32, 1, 64), (8, 8, 64), (32, 8, 64), (8, 32, 64), (32, 16, 128)]
    {
        compare(&format!("two towers of {layers} layers, {rows} x {width}"), &towers(2, layers, rows, width));
    }
    for (rows, columns) in [(16, 64), (64, 64), (256, 256), (256, 512), (1024, 1024)] {
        compare(&format!("four activations, rows of {rows} x {columns}"), &activations(rows, columns, 0));
        compare(&format!("four activations, columns of {rows} x {columns}"), &activations(rows, columns, 1));
    }
}
