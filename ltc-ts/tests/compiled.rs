//! Fused kernels become machine code, when they may, and give the same values.

mod common;

use common::*;
use ltc_ir::{ArgWriter, Layout};
use ltc_ts::{Jit, TsConfig, finish_compiling, instruction_set};
use tch::Tensor;

fn with(jit: Jit) -> TsConfig {
    TsConfig { jit, ..TsConfig::default() }
}

/// Machine code is for x86-64 with AVX2.
fn has_code() -> u64 {
    u64::from(instruction_set().starts_with("avx"))
}

/// `relu(x + y) + x` of an image and a row, with both sums kept.
fn graph(sizes: &[i64]) -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let mut g = G::default();
    let (shape, row) = (f32s(sizes), f32s(&sizes[1..]));
    let (p, q) = (g.param(&shape), g.param(&row));
    let x = g.add(p, q, &shape);
    let y = g.relu(x, &shape);
    let z = g.add(y, p, &shape);
    g.finish(&[z, x])
}

#[test]
fn a_warm_kernel_becomes_machine_code_and_no_step_waits_for_it() {
    let rig = Rig::with(with(Jit::On), graph(&[3, 50]));
    let (a, b) = (Tensor::randn([3, 50], tch::kind::FLOAT_CPU), Tensor::randn([50], tch::kind::FLOAT_CPU));
    let check = || {
        let told = rig.run(&[&a, &b]);
        assert_same(&told.tensor(1), &(&a + &b));
        assert_same(&told.tensor(0), &((&a + &b).relu() + &a));
    };
    (0..16).for_each(|_| check());
    assert_eq!((rig.stats().kernels, rig.stats().compiled), (16, 0));
    finish_compiling();
    (0..4).for_each(|_| check());
    assert_eq!((rig.stats().kernels, rig.stats().compiled), (20, 4 * has_code()));
}

#[test]
fn the_switch_turns_machine_code_off_or_makes_it_at_once() {
    for (jit, compiled) in [(Jit::Off, 0), (Jit::Now, 100 * has_code())] {
        let rig = Rig::with(with(jit), graph(&[2, 300]));
        let (a, b) = (Tensor::randn([2, 300], tch::kind::FLOAT_CPU), Tensor::randn([300], tch::kind::FLOAT_CPU));
        for _ in 0..100 {
            assert_same(&rig.run(&[&a, &b]).tensor(0), &((&a + &b).relu() + &a));
        }
        finish_compiling();
        assert_eq!((rig.stats().kernels, rig.stats().compiled), (100, compiled), "{jit:?}");
    }
    assert_eq!(["0", "1", "now", "?"].map(|t| t.parse().ok()), [Some(Jit::Off), Some(Jit::On), Some(Jit::Now), None]);
}

/// Rows, columns and transposed operands, long and short, in several types.
#[test]
fn operands_that_lie_apart_are_read_where_they_are() {
    use ltc_ir::DType::{BF16, F32, F64, I64};
    let kinds =
        [(F32, tch::Kind::Float), (F64, tch::Kind::Double), (BF16, tch::Kind::BFloat16), (I64, tch::Kind::Int64)];
    for (dtype, kind) in kinds {
        for (rows, columns) in [(5, 7), (40, 300), (300, 1030), (3, 70_000)] {
            let mut g = G::default();
            let of = |strides: &[i64], sizes: &[i64]| Layout::strided(dtype, sizes, strides).into();
            let full = of(&[columns, 1], &[rows, columns]);
            let dense = g.param(&full);
            let transposed = g.param(&of(&[1, rows], &[rows, columns]));
            let (row, column) = (g.param(&of(&[1], &[columns])), g.param(&of(&[1, 1], &[rows, 1])));
            let mul = |g: &mut G, x, y| g.one("aten::mul.Tensor", ArgWriter::new().tensor().tensor(), &[x, y], &full);
            let x = mul(&mut g, dense, row);
            let y = mul(&mut g, x, column);
            let z = g.add(y, transposed, &full);
            let rig = Rig::with(with(Jit::Now), g.finish(&[z]));
            let make = |sizes: &[i64]| (Tensor::randn(sizes, tch::kind::FLOAT_CPU) * 9.0).to_kind(kind);
            let given = [make(&[rows, columns]), make(&[columns, rows]).tr(), make(&[columns]), make(&[rows, 1])];
            let told = rig.run(&given.each_ref());
            let [a, b, c, d] = given;
            assert_same(&told.tensor(0), &(a * c * d + b));
            assert_eq!((rig.stats().kernels, rig.stats().compiled), (1, has_code()));
        }
    }
}
