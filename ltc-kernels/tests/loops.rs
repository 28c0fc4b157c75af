//! Kernels by their loops, over plain memory: what Miri can run of them. Values are compared in `ltc-ts/tests`, with
//! libtorch's.

use std::ops::Range;

use ltc_ir::DType;
use ltc_kernels::{
    Builder, ComputeType, IterationSpace, Jit, Kernel, KernelOp, MaxPool, Mt19937, Ran, ReductionSpace, RowKernel,
    bernoulli,
};

/// Calls `f` for pieces of `0..n`, the last first: as threads may.
fn in_pieces(n: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let cut = n / 3;
    f(cut..n);
    f(0..cut);
}

#[test]
fn dense_strided_and_uniform_operands_are_read() {
    // y[i][j] = a[i][j] * b[j][i] + c, of three rows and five columns.
    let build = |ones: bool| {
        let mut b = Builder::new(ones);
        let [x, y, z] = [0, 1, 2].map(|i| b.input(i, ComputeType::F32));
        let product = b.op(KernelOp::Mul, &[x, y]);
        let sum = b.op(KernelOp::Add, &[product, z]);
        b.finish(&[sum])
    };
    let space = IterationSpace::new(&[3, 5], &[&[5, 1], &[5, 1], &[1, 3], &[0, 0]]);
    let kernel = Kernel::new(space, &[DType::F32], &[DType::F32; 3], &build(true), build(false), vec![false]);
    let mut kernel = kernel.expect("all have loops");
    kernel.set_jit(Jit::Off);
    let a: Vec<f32> = (0..15).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..15).map(|i| 0.5 * i as f32).collect();
    let (c, mut y) = ([7f32], [0f32; 15]);
    let inputs = [a.as_ptr().cast(), b.as_ptr().cast(), c.as_ptr().cast()];
    // SAFETY: operands have the elements the space speaks of, and the result is no operand.
    let ran = unsafe { kernel.run(&[y.as_mut_ptr().cast()], &inputs, &[], in_pieces) };
    assert!(matches!(ran, Ok(Ran::Loops)));
    for (i, &y) in y.iter().enumerate() {
        assert_eq!(y, a[i] * b[i % 5 * 3 + i / 5] + 7.0, "{i}");
    }
}

/// As libtorch has it: masks of 0 and 255 may be seen as booleans.
#[test]
fn booleans_are_true_for_any_byte_but_zero() {
    for (stride, jit) in [(1, Jit::Off), (0, Jit::Off), (1, Jit::default()), (0, Jit::default())] {
        let mut b = Builder::new(false);
        let (mask, x) = (b.input(0, ComputeType::Bool), b.input(1, ComputeType::F32));
        let (no, number) = (b.op(KernelOp::Not, &[mask]), b.cast(mask, ComputeType::F32));
        let truth = b.constant(1.0, ComputeType::Bool);
        let (same, other) = (b.op(KernelOp::Eq, &[mask, truth]), b.op(KernelOp::Xor, &[mask, truth]));
        let (zero, both) = (b.constant(0.0, ComputeType::F32), b.op(KernelOp::And, &[mask, truth]));
        let chosen = b.op(KernelOp::Select, &[mask, x, zero]);
        let ir = b.finish(&[no, number, same, other, both, chosen, mask]);
        let outputs =
            [DType::Bool, DType::F32, DType::Bool, DType::Bool, DType::Bool, DType::F32, DType::Bool].as_slice();
        let mut strides = vec![[1i64]; outputs.len()];
        strides.extend([[stride], [1]]);
        let strides: Vec<&[i64]> = strides.iter().map(|s| &s[..]).collect();
        let masks = [0u8, 1, 2, 255, 128, 0, 1, 254];
        let space = IterationSpace::new(&[8], &strides);
        let staged = vec![false; outputs.len()];
        let kernel = Kernel::new(space, outputs, &[DType::Bool, DType::F32], &ir, ir.clone(), staged);
        let mut kernel = kernel.expect("all have loops");
        kernel.set_jit(jit);
        for first in 0..masks.len() {
            let mask: Vec<u8> = (0..8).map(|i| masks[(first + i * stride as usize) % 8]).collect();
            let x: Vec<f32> = (3..11).map(|i| i as f32).collect();
            let (mut bytes, mut floats) = ([[9u8; 8]; 5], [[9f32; 8]; 2]);
            let [no, same, other, both, itself] = &mut bytes;
            let [number, chosen] = &mut floats;
            let to = [
                no.as_mut_ptr(),
                number.as_mut_ptr().cast(),
                same.as_mut_ptr(),
                other.as_mut_ptr(),
                both.as_mut_ptr(),
                chosen.as_mut_ptr().cast(),
                itself.as_mut_ptr(),
            ];
            // SAFETY: operands have the elements the space speaks of, and the results are no operands.
            unsafe { kernel.run(&to, &[mask.as_ptr(), x.as_ptr().cast()], &[], in_pieces) }.expect("no check fails");
            for i in 0..8 {
                let is = mask[i] != 0;
                let found = [no[i], same[i], other[i], both[i], itself[i]];
                assert_eq!(found, [!is, is, !is, is, is].map(u8::from), "{} {stride} {jit:?}", mask[i]);
                assert_eq!([number[i], chosen[i]], if is { [1.0, x[i]] } else { [0.0; 2] }, "{} {jit:?}", mask[i]);
            }
        }
    }
}

#[test]
fn rows_columns_and_long_rows_are_reduced() {
    // Sizes, and the strides of memory in which the reduced dimension, the last, is dense or is not.
    for (sizes, strides) in [([6, 4], [4, 1]), ([4, 6], [1, 4]), ([2, 700], [700, 1]), ([1, 40_000], [40_000, 1])] {
        let [rows, each] = sizes.map(|n| n as usize);
        let build = |ones: bool| {
            let mut b = Builder::new(ones);
            let x = b.input(0, ComputeType::F32);
            let largest = b.op(KernelOp::AMax, &[x]);
            let sum = b.op(KernelOp::Sum, &[x]);
            let rest = b.op(KernelOp::Sub, &[x, largest]);
            b.finish(&[rest, sum])
        };
        let space = ReductionSpace::new(&sizes, &[false, true], &[&strides, &[1, 0], &strides]);
        let kernel = RowKernel::new(space, &[DType::F32; 2], &[DType::F32], &build(true), build(false));
        let mut kernel = kernel.expect("all have loops");
        kernel.set_jit(Jit::Off);
        let x: Vec<f32> = (0..rows * each).map(|i| (i * 7 % 11) as f32).collect();
        let (mut rest, mut sums) = (vec![0f32; x.len()], vec![0f32; rows]);
        let outputs = [rest.as_mut_ptr().cast(), sums.as_mut_ptr().cast()];
        // SAFETY: operands have the elements the space speaks of, and results are no operands.
        let ran = unsafe { kernel.run(&outputs, &[x.as_ptr().cast()], &[], |n, _, f| in_pieces(n, f)) };
        assert!(matches!(ran, Ok(Ran::Loops)));
        for (r, &sum) in sums.iter().enumerate() {
            let at = |e: usize| r * strides[0] as usize + e * strides[1] as usize;
            let row: Vec<f32> = (0..each).map(|e| x[at(e)]).collect();
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(sum, row.iter().sum::<f32>(), "{sizes:?}");
            assert!((0..each).all(|e| rest[at(e)] == x[at(e)] - largest), "{sizes:?}");
        }
    }
}

/// A weight and a bias are the same in all rows: they are made ready once for many, wherever they lie and whatever
/// their dtype.
#[test]
fn what_all_rows_have_is_read_in_each_of_them() {
    let bf16 = |x: f32| (x.to_bits() >> 16) as u16;
    // Short rows, which go through many at a time, and long ones; the last tile has fewer of them.
    for (rows, each) in [(700usize, 12usize), (101, 64), (50, 320), (3, 500)] {
        for stride in [1usize, 2] {
            let build = |ones: bool| {
                let mut b = Builder::new(ones);
                let [x, weight, bias] = [0, 1, 2].map(|i| b.input(i, ComputeType::F32));
                let largest = b.op(KernelOp::AMax, &[x]);
                let rest = b.op(KernelOp::Sub, &[x, largest]);
                let product = b.op(KernelOp::Mul, &[rest, weight]);
                let sum = b.op(KernelOp::Add, &[product, bias]);
                b.finish(&[sum])
            };
            let (n, apart) = (each as i64, stride as i64);
            let space =
                ReductionSpace::new(&[rows as i64, n], &[false, true], &[&[n, 1], &[n, 1], &[0, apart], &[0, apart]]);
            let dtypes = [DType::F32, DType::F32, DType::BF16];
            let kernel = RowKernel::new(space, &[DType::F32], &dtypes, &build(true), build(false));
            let mut kernel = kernel.expect("all have loops");
            kernel.set_jit(Jit::Off);
            let x: Vec<f32> = (0..rows * each).map(|i| (i * 7 % 11) as f32).collect();
            let weight: Vec<f32> = (0..each * stride).map(|i| (i * 5 % 13) as f32).collect();
            let bias: Vec<u16> = (0..each * stride).map(|i| bf16((i * 3 % 17) as f32)).collect();
            let mut y = vec![0f32; x.len()];
            let inputs = [x.as_ptr().cast(), weight.as_ptr().cast(), bias.as_ptr().cast()];
            // SAFETY: operands have the elements the space speaks of, and the result is no operand.
            let ran = unsafe { kernel.run(&[y.as_mut_ptr().cast()], &inputs, &[], |n, _, f| in_pieces(n, f)) };
            assert!(matches!(ran, Ok(Ran::Loops)));
            for (r, (y, x)) in y.chunks(each).zip(x.chunks(each)).enumerate() {
                let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                for (e, (&y, &x)) in y.iter().zip(x).enumerate() {
                    let at = e * stride;
                    let bias = f32::from_bits(u32::from(bias[at]) << 16);
                    assert_eq!(y, (x - largest) * weight[at] + bias, "{rows} {each} {stride}: {r} {e}");
                }
            }
        }
    }
}

#[test]
fn windows_are_pooled() {
    let (planes, height, width, out) = (2, 4, 6, [2, 3]);
    let pool = MaxPool { planes, height, width, out, window: [2, 2], stride: [2, 2], padding: [0, 0] };
    let image: Vec<f32> = (0..planes * height * width).map(|i| (i * 5 % 13) as f32).collect();
    let (mut values, mut positions) = ([0f32; 12], [0i64; 12]);
    // SAFETY: results have an element for each window of each plane.
    unsafe { pool.run(image.as_ptr(), values.as_mut_ptr(), positions.as_mut_ptr(), in_pieces) };
    for (i, (&value, &position)) in values.iter().zip(&positions).enumerate() {
        let plane = &image[i / 6 * 24..][..24];
        let first = i % 6 / 3 * 12 + i % 3 * 2;
        let window = [first, first + 1, first + 6, first + 7];
        let largest = window.iter().map(|&at| plane[at]).fold(f32::NEG_INFINITY, f32::max);
        assert_eq!((value, plane[position as usize]), (largest, largest));
        assert!(window.contains(&(position as usize)));
    }
}

#[test]
fn draws_take_two_words_each() {
    let mut state = [0u32; 624];
    (0u32..).zip(&mut state).for_each(|(i, word)| *word = i.wrapping_mul(2_654_435_761));
    let (mut next, mut left, mut out) = (0, 1, [2f32; 400]);
    bernoulli(Mt19937 { state: &mut state, next: &mut next, left: &mut left }, 0.5, [0.0, 1.0], &mut out);
    assert!(out.contains(&0.0) && out.contains(&1.0) && !out.contains(&2.0));
    // 800 words: one whole state, and 176 of the next.
    assert_eq!((next, left), (176, 625 - 176));
}
