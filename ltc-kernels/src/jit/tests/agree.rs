//! Both tiers, compared.

use ltc_ir::DType;

use super::{
    super::{Compiled, finish_compiling},
    CODES, Case, DTYPES, Dice, Lie, has_vectors, random, stored,
};
use crate::{Builder, ComputeType, Jit, Kernel, KernelOp, tile::Ran};

/// Every operator, in every type it has a loop for, over every combination of uniform operands.
#[test]
fn every_operator_gives_the_bits_of_tier_0() {
    let types = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];
    let (mut compared, mut declined) = (0, Vec::new());
    for code in CODES {
        for from in types {
            let alone = [from];
            for to in if code == KernelOp::Cast { &types[..] } else { &alone } {
                for uniform in 0..1 << code.arity() {
                    let lie = |i: usize| if uniform >> i & 1 == 1 { Lie::One } else { Lie::Dense };
                    let Some(case) = Case::of_operator(code, (from, *to), lie) else { continue };
                    let seed = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(compared as u64 + 1);
                    let done = case.compare(1, 3001, 1, &[], seed, false);
                    compared += usize::from(done);
                    if !done && uniform != (1 << code.arity()) - 1 {
                        declined.push((code, from, *to));
                    }
                }
            }
        }
    }
    if has_vectors() {
        assert!(compared > 250, "{compared}");
        // Only these, and copies.
        let expected = |&(code, from, to): &(KernelOp, DType, DType)| match code {
            code if code.is_function() => from == DType::F64,
            KernelOp::Cast => (from, to) == (DType::F32, DType::F32),
            code => code == KernelOp::Pow,
        };
        assert!(declined.iter().all(expected), "{declined:?}");
    }
}

/// Lengths around vector edges, in all types, in place and not, at odd addresses.
#[test]
fn every_length_and_type() {
    for dtype in DTYPES {
        let mut b = Builder::new(false);
        let ty = ComputeType::of(dtype).expect("a ty");
        let (x, y) = (b.input(0, ty), b.input(1, ty));
        let (x32, y32) = (b.cast(x, ComputeType::F32), b.cast(y, ComputeType::F32));
        let sum = b.op(KernelOp::Add, &[x32, y32]);
        let less = b.op(KernelOp::Lt, &[x, y]);
        let (first, second) = (stored(&mut b, sum, dtype), b.op(KernelOp::Select, &[less, y, x]));
        let case = Case {
            inputs: vec![(dtype, Lie::Dense), (dtype, Lie::Dense)],
            outputs: vec![dtype, DType::Bool, dtype],
            ir: b.finish(&[first, less, second]),
        };
        for n in (0..=50).chain([95, 96, 97, 191, 192, 193, 383, 1000, 4099, 70_001]) {
            for in_place in [false, true] {
                let done = case.compare(1, n, n % 4, &[], 77 + n as u64, in_place);
                assert_eq!(done, has_vectors() && n > 1, "{dtype:?} {n}");
            }
        }
    }
}

/// Chains of hundreds of operators, each with its own number, and IRs with more values than registers.
#[test]
fn long_and_wide_bodies() {
    for count in [100usize, 1000] {
        let mut b = Builder::new(false);
        let mut x = b.input(0, ComputeType::F32);
        for i in 0..count {
            let number = b.number(i as u32, DType::F64, ComputeType::F32);
            x = b.op(if i % 2 == 0 { KernelOp::Mul } else { KernelOp::Add }, &[x, number]);
        }
        let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], ir: b.finish(&[x]) };
        let numbers: Vec<u64> = (0..count).map(|i| (1.0 + i as f64 * 1e-4).to_bits()).collect();
        for n in [1, 16, 777, 10_000] {
            assert_eq!(case.compare(1, n, 1, &numbers, 5, false), has_vectors() && n > 1);
        }
    }
    // All values live to the end.
    for count in [20, 300] {
        let mut b = Builder::new(false);
        let (x, y) = (b.input(0, ComputeType::F32), b.input(1, ComputeType::F64));
        let wide = b.cast(x, ComputeType::F64);
        let mut values = vec![x];
        for i in 0..count {
            let number = b.number(i, DType::F64, ComputeType::F32);
            let last = *values.last().expect("one");
            values.push(b.op(KernelOp::Mul, &[last, number]));
        }
        let mut sum = b.op(KernelOp::Fma, &[wide, y, y]);
        for v in values {
            let v = b.cast(v, ComputeType::F64);
            sum = b.op(KernelOp::Sub, &[sum, v]);
        }
        let case = Case {
            inputs: vec![(DType::F32, Lie::Dense), (DType::F64, Lie::Dense)],
            outputs: vec![DType::F64],
            ir: b.finish(&[sum]),
        };
        let numbers: Vec<u64> = (0..count).map(|i| (0.5 + f64::from(i) * 1e-3).to_bits()).collect();
        assert_eq!(case.compare(1, 1003, 0, &numbers, 9, false), has_vectors());
    }
}

#[test]
fn random_bodies_agree() {
    let mut compiled = 0;
    for seed in 1..400u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let size = 1 + dice.below(120);
        let case = random(&mut dice, size);
        let (rows, columns, shift) = (1 + dice.below(5), dice.below(400), dice.below(4));
        let numbers = [dice.element(DType::F64), dice.element(DType::I64)];
        let in_place = dice.below(2) == 0;
        compiled += usize::from(case.compare(rows, columns, shift, &numbers, dice.next(), in_place));
    }
    assert!(compiled > 300 || !has_vectors(), "{compiled}");
}

/// Functions of one number, over numbers of all sizes.
#[test]
fn functions_agree_over_all_sizes_of_numbers() {
    let x: Vec<f32> = (0..=u32::MAX).step_by(2049).map(f32::from_bits).collect();
    let functions = CODES.into_iter().filter(|code| code.is_function() && code.arity() == 1);
    for code in functions.chain([KernelOp::RoundBf16, KernelOp::RoundF16, KernelOp::Round]) {
        let mut b = Builder::new(false);
        let v = b.input(0, ComputeType::F32);
        let y = b.op(code, &[v]);
        let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], ir: b.finish(&[y]) };
        let run = |jit| {
            let (mut kernel, mut y) = (case.kernel(1, x.len(), false).expect("a kernel"), vec![0f32; x.len()]);
            kernel.set_jit(jit);
            // SAFETY: as many elements each as the kernel has.
            unsafe { kernel.run(&[y.as_mut_ptr().cast()], &[x.as_ptr().cast()], &[], |n, f| f(0..n)) }.expect("runs");
            y
        };
        for (i, (a, b)) in run(Jit::Off).into_iter().zip(run(Jit::Now)).enumerate() {
            let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(same, "{code:?} of {:e}: {a:e} by loops, {b:e} compiled", x[i]);
        }
    }
}

/// Powers are compiled for the short cut seen, or for all exponents without one; others are left to tier 0.
#[test]
fn powers_by_their_exponent() {
    for dtype in [DType::F32, DType::F64] {
        let ty = ComputeType::of(dtype).expect("a ty");
        let mut b = Builder::new(false);
        let (x, e) = (b.input(0, ty), b.number(0, DType::F64, ty));
        let y = b.op(KernelOp::Pow, &[x, e]);
        let case = Case { inputs: vec![(dtype, Lie::Dense)], outputs: vec![dtype], ir: b.finish(&[y]) };
        let short = [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0].map(|exponent| (exponent, true));
        let others = [1.7, -3.0, 1e-3, 200.0, -0.0].map(|exponent| (exponent, dtype == DType::F32 || exponent == 0.0));
        for (exponent, compiled) in short.into_iter().chain(others) {
            assert_eq!(case.compare(1, 999, 0, &[f64::to_bits(exponent)], 3, false), compiled && has_vectors());
        }
        // By what one kernel runs with each of these exponents.
        let ran = |exponents: [f64; 3]| {
            let mut kernel = case.kernel(1, 100, false).expect("a kernel");
            kernel.set_jit(Jit::Now);
            let (x, mut y) = (vec![3f64; 100], vec![0f64; 100]);
            exponents.map(|exponent| {
                let to = [y.as_mut_ptr().cast()];
                // SAFETY: a hundred elements each, of eight bytes at most.
                unsafe { kernel.run(&to, &[x.as_ptr().cast()], &[exponent.to_bits()], |n, f| f(0..n)) }.expect("runs")
            })
        };
        if has_vectors() {
            assert_eq!(ran([2.0, 3.0, 2.0]), [Ran::Compiled, Ran::Loops, Ran::Compiled]);
        }
        if has_vectors() && dtype == DType::F32 {
            assert_eq!(ran([1.7, 0.3, 2.0]), [Ran::Compiled, Ran::Compiled, Ran::Loops]);
        }
    }
}

/// A cold kernel runs by loops, a warm one becomes code in the background.
#[test]
fn warm_kernels_are_compiled() {
    let mut b = Builder::new(false);
    let x = b.input(0, ComputeType::F32);
    let y = b.op(KernelOp::Exp, &[x]);
    let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], ir: b.finish(&[y]) };
    let mut kernel = case.kernel(1, 100, false).expect("a kernel");
    kernel.set_jit(Jit::On);
    let (x, mut y) = (vec![3f32; 100], vec![0f32; 100]);
    let mut run = |kernel: &Kernel| {
        // SAFETY: a hundred elements each.
        unsafe { kernel.run(&[y.as_mut_ptr().cast()], &[x.as_ptr().cast()], &[], |n, f| f(0..n)) }.expect("runs")
    };
    assert_eq!(run(&kernel), Ran::Loops);
    (0..20).for_each(|_| _ = run(&kernel));
    finish_compiling();
    assert_eq!(run(&kernel) == Ran::Compiled, has_vectors());
    let mut off = case.kernel(1, 100, false).expect("a kernel");
    off.set_jit(Jit::Off);
    (0..100).for_each(|_| assert_eq!(run(&off), Ran::Loops));
}

/// A large first run that is still going when its machine code is there ends with it, and no bit tells.
#[test]
fn a_large_run_goes_over_to_machine_code() {
    const N: usize = 1 << 21;
    let mut b = Builder::new(false);
    let x = b.input(0, ComputeType::F32);
    let e = b.op(KernelOp::Exp, &[x]);
    let y = b.op(KernelOp::Mul, &[e, x]);
    let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], ir: b.finish(&[y]) };
    let x: Vec<f32> = (0..N).map(|i| i as f32 / N as f32 - 0.5).collect();
    let run = |jit| {
        let (mut kernel, mut y) = (case.kernel(1, N, false).expect("a kernel"), vec![0f32; N]);
        kernel.set_jit(jit);
        let (to, from) = ([y.as_mut_ptr().cast()], [x.as_ptr().cast()]);
        // SAFETY: as many elements each as the kernel goes through.
        let ran = unsafe {
            kernel.run(&to, &from, &[], |n, f| {
                f(0..n / 2);
                finish_compiling();
                f(n / 2..n);
            })
        };
        (ran.expect("few values"), y)
    };
    let (loops, compiled) = (run(Jit::Off), run(Jit::On));
    assert_eq!(loops.0, Ran::Loops);
    assert_eq!(compiled.0, if has_vectors() { Ran::Both } else { Ran::Loops });
    assert!(loops.1.iter().zip(&compiled.1).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn compiled_bodies_can_be_sent_to_threads() {
    fn check<T: Send + Sync>() {}
    check::<Compiled>();
}
