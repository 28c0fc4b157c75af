//! Tier 1 gives the bits of tier 0, and its code is what it should be for machines that are not this one.

use ltc_ir::DType;

use super::{code, tier::Jit};
use crate::{Builder, ComputeType, IterationSpace, Kernel, KernelIr, KernelOp, Val, has_loop, tile::Ran};

mod agree;
mod simulate;
mod wide;

const DTYPES: [DType; 8] =
    [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::U8, DType::Bool];

const CODES: [KernelOp; 44] = [
    KernelOp::Neg,
    KernelOp::Abs,
    KernelOp::Not,
    KernelOp::Sqrt,
    KernelOp::Floor,
    KernelOp::Ceil,
    KernelOp::Trunc,
    KernelOp::Round,
    KernelOp::Exp,
    KernelOp::Exp2,
    KernelOp::Expm1,
    KernelOp::Log2,
    KernelOp::Log10,
    KernelOp::Log1p,
    KernelOp::Sin,
    KernelOp::Cos,
    KernelOp::Tan,
    KernelOp::Sinh,
    KernelOp::Cosh,
    KernelOp::FMod,
    KernelOp::CopySign,
    KernelOp::Log,
    KernelOp::Tanh,
    KernelOp::Erf,
    KernelOp::RoundBf16,
    KernelOp::RoundF16,
    KernelOp::Add,
    KernelOp::Sub,
    KernelOp::Mul,
    KernelOp::Div,
    KernelOp::Max,
    KernelOp::Min,
    KernelOp::Pow,
    KernelOp::And,
    KernelOp::Or,
    KernelOp::Xor,
    KernelOp::Eq,
    KernelOp::Ne,
    KernelOp::Lt,
    KernelOp::Le,
    KernelOp::Fma,
    KernelOp::Select,
    KernelOp::Cast,
    KernelOp::Add,
];

/// A generator of numbers for test data.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// An element of this type, as its bytes: what arithmetic likes to get wrong, and any other.
    fn element(&mut self, dtype: DType) -> u64 {
        const FLOATS: [f64; 24] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.5,
            -3.5,
            0.899,
            -0.9,
            88.7,
            -103.9,
            104.5,
            1e-40,
            -1e-45,
            1e-310,
            3e38,
            -1e300,
            2147483648.0,
            -2147483648.0,
            4294967295.5,
            9.3e18,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let float = match self.below(3) {
            0 => FLOATS[self.below(FLOATS.len())],
            1 => (self.next() as i64 as f64) / 2f64.powi(60),
            _ => (self.next() as i64 as f64) * 2f64.powi(self.below(20) as i32 - 62),
        };
        let any = self.next();
        match dtype {
            DType::F32 if self.below(8) == 0 => any as u32 as u64,
            DType::F32 => u64::from((float as f32).to_bits()),
            DType::F64 if self.below(8) == 0 => any,
            DType::F64 => float.to_bits(),
            DType::BF16 => u64::from(half::bf16::from_f64(float).to_bits()),
            DType::F16 => u64::from(half::f16::from_f64(float).to_bits()),
            DType::Bool => any & 1,
            _ => match self.below(3) {
                0 => any,
                1 => (any as i64 >> 40) as u64,
                _ => [0, 1, u64::MAX, 1 << 31, 1 << 53, (1 << 53) + 1, i64::MIN as u64, 255][self.below(8)],
            },
        }
    }
}

/// Elements at an odd place: `n` of them, `shift` elements from an even address.
struct Elements {
    memory: Vec<u64>,
    dtype: DType,
    shift: usize,
    n: usize,
}

impl Elements {
    fn new(dtype: DType, n: usize, shift: usize, dice: &mut Dice) -> Elements {
        let mut e = Elements { memory: vec![0; (n + shift) + 8], dtype, shift, n };
        for i in 0..n {
            let bits = dice.element(dtype);
            let at = e.at().wrapping_add(i * dtype.size_of());
            // SAFETY: there are eight bytes for each element.
            unsafe { std::ptr::copy_nonoverlapping(bits.to_le_bytes().as_ptr(), at, dtype.size_of()) };
        }
        e
    }

    fn at(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.shift * self.dtype.size_of())
    }

    /// The elements' bits, with one for all NaN; and all bytes that are none of theirs.
    fn bits(&mut self) -> (Vec<u64>, Vec<u8>) {
        let (size, from) = (self.dtype.size_of(), self.shift * self.dtype.size_of());
        let bytes: Vec<u8> = self.memory.iter().flat_map(|w| w.to_le_bytes()).collect();
        let of = |i: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[from + i * size..from + (i + 1) * size]);
            let bits = u64::from_le_bytes(word);
            let nan = match self.dtype {
                DType::F32 => f32::from_bits(bits as u32).is_nan(),
                DType::F64 => f64::from_bits(bits).is_nan(),
                DType::BF16 => half::bf16::from_bits(bits as u16).is_nan(),
                DType::F16 => half::f16::from_bits(bits as u16).is_nan(),
                _ => false,
            };
            if nan { u64::MAX } else { bits }
        };
        let outside = bytes[..from].iter().chain(&bytes[from + self.n * size..]).copied().collect();
        ((0..self.n).map(of).collect(), outside)
    }
}

/// A value of an IR, rounded as a value of this type must be before it is stored.
fn stored(b: &mut Builder, v: Val, dtype: DType) -> Val {
    let v = b.cast(v, ComputeType::of(dtype).expect("a type kernels handle"));
    match dtype {
        DType::BF16 => b.op(KernelOp::RoundBf16, &[v]),
        DType::F16 => b.op(KernelOp::RoundF16, &[v]),
        _ => v,
    }
}

/// A kernel over `rows` times `columns` elements. Inputs are dense, repeated in all rows, or one element.
struct Case {
    inputs: Vec<(DType, Lie)>,
    outputs: Vec<DType>,
    ir: KernelIr,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Lie {
    Dense,
    Row,
    Column,
    Transposed,
    One,
}

impl Case {
    fn kernel(&self, rows: usize, columns: usize, jit: Jit, staged: bool) -> Option<Kernel> {
        let (r, c) = (rows as i64, columns as i64);
        let lie = |lie: Lie| match lie {
            Lie::Dense => [c, 1],
            Lie::Row => [0, 1],
            Lie::Column => [1, 0],
            Lie::Transposed => [1, r],
            Lie::One => [0, 0],
        };
        let strides: Vec<[i64; 2]> =
            self.outputs.iter().map(|_| [c, 1]).chain(self.inputs.iter().map(|i| lie(i.1))).collect();
        let strides: Vec<&[i64]> = strides.iter().map(|s| &s[..]).collect();
        let inputs: Vec<DType> = self.inputs.iter().map(|i| i.0).collect();
        let space = IterationSpace::new(&[r, c], &strides);
        let staged = self.outputs.iter().map(|_| staged).collect();
        let mut kernel = Kernel::new(space, &self.outputs, &inputs, &self.ir, self.ir.clone(), staged)?;
        kernel.set_jit(jit);
        Some(kernel)
    }

    /// Runs both tiers over the same data and compares; whether there was machine code. With `in_place`, each output
    /// takes the memory of the first dense input of its type.
    fn compare(&self, rows: usize, columns: usize, shift: usize, numbers: &[u64], seed: u64, in_place: bool) -> bool {
        let n = rows * columns;
        let mut results = Vec::new();
        let mut ran = Ran::Loops;
        for jit in [Jit::Off, Jit::Now] {
            let mut dice = Dice(seed | 1);
            let count = |lie| match lie {
                Lie::Dense | Lie::Transposed => n,
                Lie::Row => columns,
                Lie::Column => rows,
                Lie::One => 1,
            };
            let mut inputs: Vec<Elements> =
                self.inputs.iter().map(|&(d, lie)| Elements::new(d, count(lie), shift, &mut dice)).collect();
            let mut outputs: Vec<Elements> =
                self.outputs.iter().map(|&d| Elements::new(d, n, (shift + 3) % 5, &mut dice)).collect();
            let mut taken = Vec::new();
            let mut to: Vec<*mut u8> = Vec::new();
            for output in &mut outputs {
                let fits = |i: &usize| self.inputs[*i] == (output.dtype, Lie::Dense) && !taken.contains(i);
                match (0..self.inputs.len()).find(fits).filter(|_| in_place) {
                    Some(i) => {
                        taken.push(i);
                        to.push(inputs[i].at());
                    }
                    None => to.push(output.at()),
                }
            }
            let from: Vec<*const u8> = inputs.iter_mut().map(|i| i.at().cast_const()).collect();
            let Some(kernel) = self.kernel(rows, columns, jit, in_place) else { return false };
            // SAFETY: elements are there for the space, at addresses even for their type; outputs overlap nothing, or
            // are exactly a dense input.
            let done = unsafe {
                kernel.run(&to, &from, numbers, |n, f| {
                    // Two unequal ranges, as threads take them.
                    let half = n / 3;
                    f(0..half);
                    f(half..n);
                })
            };
            ran = done.expect("few values");
            assert!(ran == Ran::Loops || jit != Jit::Off);
            let mut all: Vec<(Vec<u64>, Vec<u8>)> = outputs.iter_mut().map(Elements::bits).collect();
            all.extend(inputs.iter_mut().map(Elements::bits));
            results.push(all);
        }
        for (buffer, (zero, one)) in results[0].iter().zip(&results[1]).enumerate() {
            for (i, (a, b)) in zero.0.iter().zip(&one.0).enumerate() {
                assert_eq!(
                    a, b,
                    "buffer {buffer}, element {i} of {rows} x {columns}: {a:#x} by loops, {b:#x} compiled; {self:?}",
                );
            }
            assert_eq!(zero.1, one.1, "buffer {buffer}: bytes around it");
        }
        ran == Ran::Compiled
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?} to {:?}", self.inputs, self.outputs)?;
        self.ir.values.iter().enumerate().try_for_each(|(i, v)| writeln!(f, "  {i}: {v:?}"))?;
        writeln!(f, "  yields {:?}", self.ir.outputs)
    }
}

fn has_vectors() -> bool {
    code::width().is_some()
}

/// A random IR: values picked by dice, of any type, some kept.
fn random(dice: &mut Dice, size: usize) -> Case {
    let lies = [Lie::Dense, Lie::Dense, Lie::Dense, Lie::Row, Lie::Column, Lie::Transposed, Lie::One];
    let inputs: Vec<(DType, Lie)> =
        (0..1 + dice.below(12)).map(|_| (DTYPES[dice.below(8)], lies[dice.below(lies.len())])).collect();
    let mut b = Builder::new(false);
    let mut values: Vec<Val> =
        (0..inputs.len()).map(|i| b.input(i as u32, ComputeType::of(inputs[i].0).expect("a ty"))).collect();
    values.push(b.number(0, DType::F64, ComputeType::F32));
    values.push(b.number(1, DType::I64, ComputeType::I64));
    values.push(b.constant(1.5, ComputeType::F64));
    for _ in 0..size {
        let code = CODES[dice.below(CODES.len())];
        let mut args = [Val(0); 3];
        let recent = |dice: &mut Dice, values: &[Val]| {
            let near = if dice.below(3) == 0 { usize::MAX } else { 6 };
            let back = dice.below(values.len().min(near));
            values[values.len() - 1 - back]
        };
        let last = recent(dice, &values);
        let ty = b.ty(last);
        if code == KernelOp::Cast {
            let to = [
                ComputeType::Bool,
                ComputeType::U8,
                ComputeType::I32,
                ComputeType::I64,
                ComputeType::F32,
                ComputeType::F64,
            ][dice.below(6)];
            values.push(b.cast(last, to));
            continue;
        }
        for (i, arg) in args[..code.arity()].iter_mut().enumerate() {
            let v = recent(dice, &values);
            *arg = b.cast(v, if code == KernelOp::Select && i == 0 { ComputeType::Bool } else { ty });
        }
        // Only what has a loop.
        let mut one = Builder::new(false);
        let types: Vec<ComputeType> = args[..code.arity()].iter().map(|a| b.ty(*a)).collect();
        let operands: Vec<Val> = types.iter().enumerate().map(|(i, l)| one.input(i as u32, *l)).collect();
        let alone = one.op(code, &operands);
        let scalar = matches!(code, KernelOp::Pow) || code.is_function() && ty == ComputeType::F64;
        if has_loop(&one.finish(&[alone])) && !scalar {
            let v = b.op(code, &args[..code.arity()]);
            values.push(v);
        }
    }
    let mut outputs = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..1 + dice.below(4) {
        let dtype = DTYPES[dice.below(8)];
        let back = dice.below(values.len().min(8));
        kept.push(stored(&mut b, values[values.len() - 1 - back], dtype));
        outputs.push(dtype);
    }
    Case { inputs, outputs, ir: b.finish(&kept) }
}
