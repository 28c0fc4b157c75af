//! Texts, as a reader sees them.

use ltc_ir::DType;

use crate::{
    Builder, ComputeType, KernelOp,
    cases::{Case, Data, Lie, stored},
};

/// `silu(x * n + bias)` in single precision and as bfloat16, over rows with a bias each column.
pub(super) fn silu() -> Case {
    let mut b = Builder::new(false);
    let [x, bias] = [0, 1].map(|i| b.input(i, ComputeType::F32));
    let (scale, one) = (b.number(0, DType::F64, ComputeType::F32), b.constant(1.0, ComputeType::F32));
    let y = b.op(KernelOp::Fma, &[x, scale, bias]);
    let negative = b.op(KernelOp::Neg, &[y]);
    let e = b.op(KernelOp::Exp, &[negative]);
    let divisor = b.op(KernelOp::Add, &[e, one]);
    let silu = b.op(KernelOp::Div, &[y, divisor]);
    let half = stored(&mut b, silu, DType::BF16);
    let inputs = vec![(DType::F32, Lie::Dense), (DType::F32, Lie::Row)];
    Case { inputs, outputs: vec![DType::F32, DType::BF16], ir: b.finish(&[silu, half]) }
}

pub(super) const ROWS: Data = Data { rows: 37, columns: 128, shift: 0, seed: 1, in_place: false };

#[test]
fn dense_and_repeated_operands() {
    insta::assert_snapshot!(silu().launches(ROWS).each[0].source.text);
}

#[test]
fn other_sizes_have_the_same_text_and_other_arguments() {
    let small = silu().launches(ROWS);
    let large = silu().launches(Data { rows: 500, columns: 4096, ..ROWS });
    let [small, large] = [small, large].map(|launches| launches.each[0].clone());
    assert_eq!(small.source, large.source);
    assert_eq!((small.grid, large.grid), (5, 2000));
    let operands = crate::cuda::Operands {
        outputs: &[0x100, 0x200],
        inputs: &[0x300, 0x400],
        numbers: &[0.5f64.to_bits()],
        scratch: 0,
    };
    let arguments = small.arguments(operands);
    assert_eq!(arguments[..5], [0x100, 0x200, 0x300, 0x400, 37 * 128]);
    assert!(arguments.contains(&u64::from(0.5f32.to_bits())));
    // Beyond what 32 bits can count, and for rows that a thread cannot take four of.
    let huge = silu().launches(Data { rows: 1 << 20, columns: 4096, ..ROWS });
    let odd = silu().launches(Data { columns: 127, ..ROWS });
    assert!(huge.each[0].source.text.contains("typedef i64 I;"));
    assert!(odd.each[0].source.text.contains("const int N = 1;"));
}

#[test]
fn nothing_is_launched_for_no_elements() {
    assert!(silu().launches(Data { rows: 0, ..ROWS }).each.is_empty());
}
