//! What does not pay, and is therefore not done: the recorded form and the other one, in turn, in one process.
//!
//! `cargo run --release -p ltc-ts --example declined [threads]`: microseconds, medians, and the ratio other / recorded.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::*;
use ltc_backend::Buffer;
use ltc_ir::{ArgFlags, ArgWriter, DType, Graph, Layout, ValueId};
use ltc_ts::TsConfig;
use tch::Tensor;

type Recorded = (Arc<Graph>, Vec<u64>);

/// A convolution of `n` images and ReLU, so many images at a time: what is between them may stay in cache.
fn images([n, c, size, kernel]: [i64; 4], step: i64) -> Recorded {
    let (chunk, pad) = (c * size * size, kernel / 2);
    let mut g = G::default();
    let x = g.param(&f32s(&[n, c, size, size]));
    let (w, bias) = (g.param(&f32s(&[c, c, kernel, kernel])), g.param(&f32s(&[c])));
    let conv = ArgWriter::new()
        .tensor()
        .tensor()
        .tensor()
        .ints(&[1, 1])
        .ints(&[pad, pad])
        .ints(&[1, 1])
        .bool(false)
        .ints(&[0, 0])
        .int(1)
        .clone();
    let part = f32s(&[step, c, size, size]);
    let one = |g: &mut G, i: i64| {
        let x = if step == n { x } else { g.read_view(x, i * step * chunk, &part) };
        let y = g.one("aten::convolution", &conv, &[x, w, bias], &part);
        g.relu(y, &part)
    };
    joined(g, one, n / step, &[n, c, size, size])
}

/// A product and ReLU, so many rows at a time.
fn rows([m, k, n]: [i64; 3], step: i64) -> Recorded {
    let mut g = G::default();
    let (x, w) = (g.param(&f32s(&[m, k])), g.param(&f32s(&[k, n])));
    let (piece, part) = (f32s(&[step, k]), f32s(&[step, n]));
    let one = |g: &mut G, i: i64| {
        let x = if step == m { x } else { g.read_view(x, i * step * k, &piece) };
        let y = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, w], &part);
        g.relu(y, &part)
    };
    joined(g, one, m / step, &[m, n])
}

fn joined(mut g: G, one: impl Fn(&mut G, i64) -> ValueId, times: i64, sizes: &[i64]) -> Recorded {
    let parts: Vec<ValueId> = (0..times).map(|i| one(&mut g, i)).collect();
    let out = match parts[..] {
        [only] => only,
        _ => {
            let args = ArgWriter::new().tensors(&vec![true; parts.len()], ArgFlags::NONE).int(0).clone();
            g.one("aten::cat", &args, &parts, &f32s(sizes))
        }
    };
    g.finish(&[out])
}

/// Queries, keys and values of so many rows of so many numbers, as three products or as one with weights that were
/// joined before.
fn projections(m: i64, k: i64, together: bool) -> Recorded {
    let mut g = G::default();
    let x = g.param(&f32s(&[m, k]));
    let args = ArgWriter::new().tensor().tensor().tensor().number(1i64.into()).number(1i64.into()).clone();
    // As weights of linear layers lie.
    let weight = |n: i64| Layout::strided(DType::F32, &[k, n], &[1, k]).into();
    let out = f32s(&[m, k]);
    let parts: Vec<ValueId> = if together {
        let (w, bias) = (g.param(&weight(3 * k)), g.param(&f32s(&[3 * k])));
        let all = g.one("aten::addmm", &args, &[bias, x, w], &f32s(&[m, 3 * k]));
        let part = Layout::strided(DType::F32, &[m, k], &[3 * k, 1]).into();
        (0..3).map(|i| g.read_view(all, i * k, &part)).collect()
    } else {
        let mut one = || {
            let (w, bias) = (g.param(&weight(k)), g.param(&f32s(&[k])));
            g.one("aten::addmm", &args, &[bias, x, w], &out)
        };
        [one(), one(), one()].to_vec()
    };
    let parts: Vec<ValueId> = parts.into_iter().map(|p| g.relu(p, &out)).collect();
    g.finish(&parts)
}

/// A program and what it runs on.
struct Ready {
    rig: Rig,
    held: Vec<Buffer>,
}

impl Ready {
    fn new(recorded: Recorded) -> Ready {
        let inputs: Vec<Tensor> = recorded.0.params().iter().map(|l| ramp(l.sizes()).sin() * 0.1).collect();
        let laid = |(t, l): (&Tensor, &ltc_ir::LayoutRef)| {
            let laid = Tensor::empty_strided(l.sizes(), l.strides(), (tch::Kind::Float, tch::Device::Cpu));
            laid.shallow_clone().copy_(t);
            laid
        };
        let laid: Vec<Tensor> = inputs.iter().zip(recorded.0.params()).map(laid).collect();
        let rig = Rig::with(TsConfig::default(), recorded);
        let held = laid.iter().map(|t| rig.backend.wrap(D, t.shallow_clone()).expect("a host tensor")).collect();
        Ready { rig, held }
    }

    fn run(&self) {
        drop(self.rig.execute(self.held.iter().map(|b| keep(b.clone())).collect()));
    }
}

fn compare(what: &str, recorded: impl Fn(), other: impl Fn()) {
    let ways: [&dyn Fn(); 2] = [&recorded, &other];
    ways.iter().for_each(|way| (0..5).for_each(|_| way()));
    ltc_ts::finish_compiling();
    let (mut times, began) = ([Vec::new(), Vec::new()], Instant::now());
    while times[0].len() < 5 || began.elapsed() < Duration::from_millis(700) && times[0].len() < 5000 {
        for (times, way) in times.iter_mut().zip(ways) {
            let start = Instant::now();
            way();
            times.push(start.elapsed());
        }
    }
    let [recorded, other] = times.map(|mut t| {
        t.sort_unstable();
        t[t.len() / 2].as_secs_f64() * 1e6
    });
    println!("| {what} | {recorded:.0} | {other:.0} | {:.2} |", other / recorded);
}

fn pieces(what: &str, recorded: Recorded, other: Recorded) {
    let (recorded, other) = (Ready::new(recorded), Ready::new(other));
    compare(what, || recorded.run(), || other.run());
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    tch::set_num_threads(threads);
    println!("| what | recorded | other | other / recorded |\n|---|---|---|---|");
    for (shape, steps) in [
        ([32, 16, 32, 3], [1, 4]),
        ([16, 32, 32, 3], [1, 4]),
        ([32, 64, 56, 3], [1, 4]),
        ([32, 64, 56, 1], [1, 4]),
        ([8, 128, 56, 1], [1, 2]),
    ] {
        let [n, c, size, kernel] = shape;
        for step in steps {
            let what = format!("convolution {kernel} x {kernel} and ReLU, {n} x {c} x {size} x {size}, by {step}");
            pieces(&what, images(shape, n), images(shape, step));
        }
    }
    for shape in [[1024, 256, 1024], [8192, 64, 256], [2048, 768, 3072]] {
        let [m, k, n] = shape;
        for step in [128, 512] {
            pieces(&format!("product and ReLU, {m} x {k} x {n}, by {step} rows"), rows(shape, m), rows(shape, step));
        }
    }
    for (m, k) in [(1, 64), (1, 256), (1, 768), (8, 256), (32, 64), (32, 256), (256, 256)] {
        let what = format!("three projections, {m} x {k}, as one");
        pieces(&what, projections(m, k, false), projections(m, k, true));
    }
}
