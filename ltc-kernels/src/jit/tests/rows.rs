//! Rows with reductions: machine code that takes them through all stages gives the bits of the loops.

use ltc_ir::DType;

use super::{CODES, DTYPES, Dice, has_vectors, stored};
use crate::{
    Builder, ComputeType, Jit, KernelIr, KernelOp, Ran, ReductionSpace, RowKernel, Val,
    cases::{Bits, Elements, is_vector},
};

/// How an operand of `outer` times `inner` rows lies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lie {
    Dense,
    /// With a gap after each row.
    Apart,
    /// With a gap after each element.
    Strided,
    /// The same for all outer rows.
    Inner,
    /// The same for all rows.
    Row,
    /// One element for each row.
    OfRow,
    One,
}

impl Lie {
    fn strides(self, [_, inner, each]: [i64; 3], both: bool) -> [i64; 3] {
        match self {
            Lie::OfRow if both => [1, 0, 0],
            Lie::Row if both => [0, each, 1],
            Lie::Strided => [inner * each * 2, each * 2, 2],
            Lie::Dense => [inner * each, each, 1],
            Lie::Apart => [inner * (each + 3), each + 3, 1],
            Lie::Inner => [0, each, 1],
            Lie::Row => [0, 0, 1],
            Lie::OfRow => [inner, 1, 0],
            Lie::One => [0, 0, 0],
        }
    }

    fn span(self, sizes: [i64; 3], both: bool) -> usize {
        let last: i64 = self.strides(sizes, both).iter().zip(sizes).map(|(stride, size)| stride * (size - 1)).sum();
        last as usize + 1
    }
}

#[derive(Debug)]
struct RowCase {
    sizes: [i64; 3],
    /// Whether a row is the last two dimensions, not the last alone.
    both: bool,
    inputs: Vec<(DType, Lie)>,
    outputs: Vec<(DType, Lie)>,
    ir: KernelIr,
}

impl RowCase {
    fn kernel(&self, jit: Jit) -> Option<RowKernel> {
        let operands = self.outputs.iter().chain(&self.inputs);
        let strides: Vec<[i64; 3]> = operands.map(|(_, lie)| lie.strides(self.sizes, self.both)).collect();
        let strides: Vec<&[i64]> = strides.iter().map(|s| &s[..]).collect();
        let space = ReductionSpace::new(&self.sizes, &[false, self.both, true], &strides);
        let dtypes = |of: &[(DType, Lie)]| of.iter().map(|(dtype, _)| *dtype).collect::<Vec<_>>();
        let mut kernel =
            RowKernel::new(space, &dtypes(&self.outputs), &dtypes(&self.inputs), &self.ir, self.ir.clone())?;
        kernel.set_jit(jit);
        Some(kernel)
    }

    fn run(&self, jit: Jit, shift: usize, seed: u64, numbers: &[u64]) -> Option<(Vec<Bits>, Ran)> {
        let (kernel, mut dice) = (self.kernel(jit)?, Dice(seed | 1));
        let span = |lie: Lie| lie.span(self.sizes, self.both);
        let mut inputs: Vec<Elements> =
            self.inputs.iter().map(|&(dtype, lie)| Elements::new(dtype, span(lie), shift, &mut dice)).collect();
        let outputs = self.outputs.iter();
        let mut outputs: Vec<Elements> =
            outputs.map(|&(dtype, lie)| Elements::of(dtype, span(lie), (shift + 1) % 4, || 0)).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(Elements::at).collect();
        let from: Vec<*const u8> = inputs.iter_mut().map(|i| i.at().cast_const()).collect();
        // SAFETY: elements are there for the space; outputs overlap nothing.
        let ran = unsafe {
            kernel.run(&to, &from, numbers, |n, _, f| {
                f(n / 3..n);
                f(0..n / 3);
            })
        };
        let ran = ran.expect("few values");
        Some((outputs.iter_mut().chain(&mut inputs).map(Elements::bits).collect(), ran))
    }

    /// Compares machine code with the loops; whether whole rows were compiled.
    fn compare(&self, shift: usize, seed: u64, numbers: &[u64]) -> bool {
        let Some((expected, Ran::Loops)) = self.run(Jit::Off, shift, seed, numbers) else { return false };
        let Some((found, _)) = self.run(Jit::Now, shift, seed, numbers) else { return false };
        for (operand, (expected, found)) in expected.iter().zip(&found).enumerate() {
            for (i, (a, b)) in expected.0.iter().zip(&found.0).enumerate() {
                assert_eq!(a, b, "operand {operand}, element {i}: {a:#x} by loops, else {b:#x}; {self:?}\n{}", self.ir);
            }
            assert_eq!(expected.1, found.1, "bytes around operand {operand}");
        }
        let kernel = self.kernel(Jit::Now).expect("a kernel");
        kernel.row_tier_of(numbers)
    }
}

/// Any of the last few values.
fn recent(dice: &mut Dice, values: &[Val]) -> Val {
    let near = if dice.below(3) == 0 { usize::MAX } else { 5 };
    let back = dice.below(values.len().min(near));
    values[values.len() - 1 - back]
}

/// A random IR with reductions of single precision, over inputs of all types that lie in any way.
fn random(dice: &mut Dice, sizes: [i64; 3], size: usize) -> RowCase {
    const LIES: [Lie; 8] = [Lie::Dense, Lie::Dense, Lie::Dense, Lie::Apart, Lie::Inner, Lie::Row, Lie::OfRow, Lie::One];
    let mut inputs = vec![(DType::F32, Lie::Dense)];
    for _ in 0..dice.below(6) {
        let dtype = if dice.below(2) == 0 { DType::F32 } else { DTYPES[dice.below(8)] };
        inputs.push((dtype, if dice.below(20) == 0 { Lie::Strided } else { LIES[dice.below(LIES.len())] }));
    }
    let both = dice.below(6) == 0;
    let mut b = Builder::new(false);
    let input = |(i, (dtype, _)): (usize, &(DType, Lie))| (i as u32, ComputeType::of(*dtype).expect("a type"));
    let mut values: Vec<Val> = inputs.iter().enumerate().map(input).map(|(i, ty)| b.input(i, ty)).collect();
    values.push(b.number(0, DType::F64, ComputeType::F32));
    values.push(b.constant(1.5, ComputeType::F32));
    let mut reductions = 0;
    for _ in 0..size {
        let last = recent(dice, &values);
        if dice.below(4) == 0 && reductions < 5 {
            let op = [KernelOp::Sum, KernelOp::Sum, KernelOp::AMax, KernelOp::AMin][dice.below(4)];
            let x = b.cast(last, ComputeType::F32);
            values.push(b.op(op, &[x]));
            reductions += 1;
            continue;
        }
        let code = CODES[dice.below(CODES.len())];
        let ty = b.ty(last);
        if code == KernelOp::Cast {
            let to = [ComputeType::F32, ComputeType::F64, ComputeType::Bool, ComputeType::I64][dice.below(4)];
            values.push(b.cast(last, to));
            continue;
        }
        let mut args = [last; 3];
        for (i, arg) in args[..code.arity()].iter_mut().enumerate() {
            let v = recent(dice, &values);
            *arg = b.cast(v, if code == KernelOp::Select && i == 0 { ComputeType::Bool } else { ty });
        }
        if is_vector(&b, code, &args[..code.arity()]) && !code.is_checked() {
            values.push(b.op(code, &args[..code.arity()]));
        }
    }
    let x = b.cast(values[0], ComputeType::F32);
    let sum = b.op(KernelOp::Sum, &[x]);
    values.push(sum);
    let (mut kept, mut outputs) = (Vec::new(), Vec::new());
    for lie in [Lie::Dense, Lie::OfRow, Lie::Apart, Lie::OfRow].into_iter().take(1 + dice.below(4)) {
        let dtype = DTYPES[dice.below(8)];
        // What is one for each row is made of a reduction.
        let v = if lie == Lie::OfRow { sum } else { recent(dice, &values) };
        kept.push(stored(&mut b, v, dtype));
        outputs.push((dtype, lie));
    }
    RowCase { sizes, both, inputs, outputs, ir: b.finish(&kept) }
}

#[test]
fn random_rows_agree() {
    let (mut whole, mut all) = (0, 0);
    for seed in 1..600u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let each = [32, 64, 96, 128, 288, 320, 768, 1024, 2048, 4096, 9984, 20_000, 1, 31, 33, 197][dice.below(16)];
        let sizes = [1 + dice.below(4) as i64, 1 + dice.below(9) as i64, each];
        let size = 1 + dice.below(30);
        let case = random(&mut dice, sizes, size);
        let numbers = [dice.element(DType::F64)];
        let compiled = case.compare(dice.below(4), seed * 77, &numbers);
        all += usize::from(each % 32 == 0);
        whole += usize::from(compiled);
    }
    assert!(!has_vectors() || whole * 2 > all, "{whole} of {all}");
}

/// A truth of each row, which the code wants as a mask, chooses between its elements.
#[test]
fn truths_of_rows_are_masks() {
    for each in [32, 96, 1024] {
        let mut b = Builder::new(false);
        let (x, truth) = (b.input(0, ComputeType::F32), b.input(1, ComputeType::Bool));
        let sum = b.op(KernelOp::Sum, &[x]);
        let chosen = b.op(KernelOp::Select, &[truth, x, sum]);
        let positive = b.op(KernelOp::Lt, &[chosen, sum]);
        let case = RowCase {
            sizes: [3, 7, each],
            both: false,
            inputs: vec![(DType::F32, Lie::Dense), (DType::Bool, Lie::OfRow)],
            outputs: vec![(DType::F32, Lie::Dense), (DType::Bool, Lie::Dense)],
            ir: b.finish(&[chosen, positive]),
        };
        assert_eq!(case.compare(1, 5, &[]), has_vectors());
    }
}
