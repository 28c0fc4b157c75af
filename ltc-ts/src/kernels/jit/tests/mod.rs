//! Tier 1 gives the bits of tier 0, and its code is what it should be for machines that are not this one.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Instruction, OpKind, Register};
use ltc_ir::DType;

mod simulate;

use super::{
    Compiled, Recipe,
    allocate::Step,
    code, emit, finish_compiling,
    memory::code_bytes,
    tier::Jit,
    vector::{Form, Op, Place, Width},
};
use crate::kernels::{Body, Builder, Code, Kernel, Lane, Space, Val, body::Def, has_loop, tile::Ran};

const DTYPES: [DType; 8] =
    [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::U8, DType::Bool];

const CODES: [Code; 32] = [
    Code::Neg,
    Code::Abs,
    Code::Not,
    Code::Sqrt,
    Code::Floor,
    Code::Ceil,
    Code::Trunc,
    Code::Round,
    Code::Exp,
    Code::Log,
    Code::Tanh,
    Code::Erf,
    Code::RoundBf16,
    Code::RoundF16,
    Code::Add,
    Code::Sub,
    Code::Mul,
    Code::Div,
    Code::Max,
    Code::Min,
    Code::Pow,
    Code::And,
    Code::Or,
    Code::Xor,
    Code::Eq,
    Code::Ne,
    Code::Lt,
    Code::Le,
    Code::Fma,
    Code::Select,
    Code::Cast,
    Code::Add,
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

/// A value of a body, rounded as a value of this type must be before it is stored.
fn stored(b: &mut Builder, v: Val, dtype: DType) -> Val {
    let v = b.cast(v, Lane::of(dtype).expect("a type kernels handle"));
    match dtype {
        DType::BF16 => b.op(Code::RoundBf16, &[v]),
        DType::F16 => b.op(Code::RoundF16, &[v]),
        _ => v,
    }
}

/// A kernel over `rows` times `columns` elements. Inputs are dense, repeated in all rows, or one element.
struct Case {
    inputs: Vec<(DType, Lie)>,
    outputs: Vec<DType>,
    body: Body,
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
        let space = Space::new(&[r, c], &strides);
        let staged = self.outputs.iter().map(|_| staged).collect();
        let mut kernel = Kernel::new(space, &self.outputs, &inputs, &self.body, self.body.clone(), staged)?;
        kernel.set_jit(jit);
        Some(kernel)
    }

    /// Runs both tiers over the same data and compares; whether there was machine code. With `in_place`, each output takes
    /// the memory of the first dense input of its type.
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
            // SAFETY: elements are there for the space, at addresses even for their type; outputs overlap nothing, or are
            // exactly a dense input.
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
        for (port, (zero, one)) in results[0].iter().zip(&results[1]).enumerate() {
            for (i, (a, b)) in zero.0.iter().zip(&one.0).enumerate() {
                assert_eq!(
                    a, b,
                    "port {port}, element {i} of {rows} x {columns}: {a:#x} by loops, {b:#x} compiled; {self:?}",
                );
            }
            assert_eq!(zero.1, one.1, "port {port}: bytes around it");
        }
        ran == Ran::Compiled
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?} to {:?}", self.inputs, self.outputs)?;
        self.body.values.iter().enumerate().try_for_each(|(i, v)| writeln!(f, "  {i}: {v:?}"))?;
        writeln!(f, "  yields {:?}", self.body.outputs)
    }
}

fn has_vectors() -> bool {
    code::width().is_some()
}

/// Every operator, in every lane it has a loop for, over every combination of uniform operands.
#[test]
fn every_operator_gives_the_bits_of_tier_0() {
    let lanes = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];
    let (mut compared, mut declined) = (0, Vec::new());
    for code in CODES {
        for from in lanes {
            let alone = [from];
            for to in if code == Code::Cast { &lanes[..] } else { &alone } {
                for uniform in 0..1 << code.arity() {
                    let mut b = Builder::new(false);
                    let lie = |i: usize| if uniform >> i & 1 == 1 { Lie::One } else { Lie::Dense };
                    let mut inputs = Vec::new();
                    let mut args = Vec::new();
                    for i in 0..code.arity() {
                        let dtype = if code == Code::Select && i == 0 { DType::Bool } else { from };
                        inputs.push((dtype, lie(i)));
                        args.push(b.input(i as u32, Lane::of(dtype).expect("a lane")));
                    }
                    let lane = Lane::of(*to).expect("a lane");
                    let value = if code == Code::Cast { b.cast(args[0], lane) } else { b.op(code, &args) };
                    let result = DTYPES.into_iter().find(|d| Lane::of(*d) == Some(b.lane(value))).expect("a type");
                    // In some type wider than a byte, too: of bytes alone nothing is compiled.
                    let wide = b.cast(value, Lane::F32);
                    let outputs = vec![result, DType::F32];
                    let body = b.finish(&[value, wide]);
                    if !has_loop(&body) {
                        continue;
                    }
                    let case = Case { inputs, outputs, body };
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
        let expected = |&(code, from, to): &(Code, DType, DType)| match code {
            Code::Exp | Code::Log | Code::Tanh => from == DType::F64,
            Code::Cast => (from, to) == (DType::F32, DType::F32),
            code => code == Code::Pow,
        };
        assert!(declined.iter().all(expected), "{declined:?}");
    }
}

/// Lengths around vector edges, in all types, in place and not, at odd addresses.
#[test]
fn every_length_and_type() {
    for dtype in DTYPES {
        let mut b = Builder::new(false);
        let lane = Lane::of(dtype).expect("a lane");
        let (x, y) = (b.input(0, lane), b.input(1, lane));
        let (x32, y32) = (b.cast(x, Lane::F32), b.cast(y, Lane::F32));
        let sum = b.op(Code::Add, &[x32, y32]);
        let less = b.op(Code::Lt, &[x, y]);
        let (first, second) = (stored(&mut b, sum, dtype), b.op(Code::Select, &[less, y, x]));
        let case = Case {
            inputs: vec![(dtype, Lie::Dense), (dtype, Lie::Dense)],
            outputs: vec![dtype, DType::Bool, dtype],
            body: b.finish(&[first, less, second]),
        };
        for n in (0..=50).chain([95, 96, 97, 191, 192, 193, 383, 1000, 4099, 70_001]) {
            for in_place in [false, true] {
                let done = case.compare(1, n, n % 4, &[], 77 + n as u64, in_place);
                assert_eq!(done, has_vectors() && n > 1, "{dtype:?} {n}");
            }
        }
    }
}

/// Chains of hundreds of operators, each with its own number, and bodies with more values than registers.
#[test]
fn long_and_wide_bodies() {
    for count in [100usize, 1000] {
        let mut b = Builder::new(false);
        let mut x = b.input(0, Lane::F32);
        for i in 0..count {
            let number = b.number(i as u32, DType::F64, Lane::F32);
            x = b.op(if i % 2 == 0 { Code::Mul } else { Code::Add }, &[x, number]);
        }
        let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], body: b.finish(&[x]) };
        let numbers: Vec<u64> = (0..count).map(|i| (1.0 + i as f64 * 1e-4).to_bits()).collect();
        for n in [1, 16, 777, 10_000] {
            assert_eq!(case.compare(1, n, 1, &numbers, 5, false), has_vectors() && n > 1);
        }
    }
    // All values live to the end.
    for count in [20, 300] {
        let mut b = Builder::new(false);
        let (x, y) = (b.input(0, Lane::F32), b.input(1, Lane::F64));
        let wide = b.cast(x, Lane::F64);
        let mut values = vec![x];
        for i in 0..count {
            let number = b.number(i, DType::F64, Lane::F32);
            let last = *values.last().expect("one");
            values.push(b.op(Code::Mul, &[last, number]));
        }
        let mut sum = b.op(Code::Fma, &[wide, y, y]);
        for v in values {
            let v = b.cast(v, Lane::F64);
            sum = b.op(Code::Sub, &[sum, v]);
        }
        let case = Case {
            inputs: vec![(DType::F32, Lie::Dense), (DType::F64, Lie::Dense)],
            outputs: vec![DType::F64],
            body: b.finish(&[sum]),
        };
        let numbers: Vec<u64> = (0..count).map(|i| (0.5 + f64::from(i) * 1e-3).to_bits()).collect();
        assert_eq!(case.compare(1, 1003, 0, &numbers, 9, false), has_vectors());
    }
}

/// A random body: values picked by dice, of any lane, some kept.
fn random(dice: &mut Dice, size: usize) -> Case {
    let lies = [Lie::Dense, Lie::Dense, Lie::Dense, Lie::Row, Lie::Column, Lie::Transposed, Lie::One];
    let inputs: Vec<(DType, Lie)> =
        (0..1 + dice.below(12)).map(|_| (DTYPES[dice.below(8)], lies[dice.below(lies.len())])).collect();
    let mut b = Builder::new(false);
    let mut values: Vec<Val> =
        (0..inputs.len()).map(|i| b.input(i as u32, Lane::of(inputs[i].0).expect("a lane"))).collect();
    values.push(b.number(0, DType::F64, Lane::F32));
    values.push(b.number(1, DType::I64, Lane::I64));
    values.push(b.constant(1.5, Lane::F64));
    for _ in 0..size {
        let code = CODES[dice.below(CODES.len())];
        let mut args = [Val(0); 3];
        let recent = |dice: &mut Dice, values: &[Val]| {
            let near = if dice.below(3) == 0 { usize::MAX } else { 6 };
            let back = dice.below(values.len().min(near));
            values[values.len() - 1 - back]
        };
        let last = recent(dice, &values);
        let lane = b.lane(last);
        if code == Code::Cast {
            let to = [Lane::Bool, Lane::U8, Lane::I32, Lane::I64, Lane::F32, Lane::F64][dice.below(6)];
            values.push(b.cast(last, to));
            continue;
        }
        for i in 0..code.arity() {
            let v = recent(dice, &values);
            args[i] = b.cast(v, if code == Code::Select && i == 0 { Lane::Bool } else { lane });
        }
        // Only what has a loop.
        let mut one = Builder::new(false);
        let lanes: Vec<Lane> = args[..code.arity()].iter().map(|a| b.lane(*a)).collect();
        let operands: Vec<Val> = lanes.iter().enumerate().map(|(i, l)| one.input(i as u32, *l)).collect();
        let alone = one.op(code, &operands);
        let scalar = matches!(code, Code::Pow)
            || matches!(code, Code::Exp | Code::Log | Code::Tanh | Code::Erf) && lane == Lane::F64;
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
    Case { inputs, outputs, body: b.finish(&kept) }
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
    for code in [Code::Exp, Code::Log, Code::Tanh, Code::Erf, Code::RoundBf16, Code::RoundF16, Code::Round] {
        let mut b = Builder::new(false);
        let v = b.input(0, Lane::F32);
        let y = b.op(code, &[v]);
        let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], body: b.finish(&[y]) };
        let run = |jit| {
            let (kernel, mut y) = (case.kernel(1, x.len(), jit, false).expect("a kernel"), vec![0f32; x.len()]);
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

/// Powers are compiled for the exponent seen; another one is left to tier 0.
#[test]
fn powers_by_their_exponent() {
    for dtype in [DType::F32, DType::F64] {
        let lane = Lane::of(dtype).expect("a lane");
        let mut b = Builder::new(false);
        let (x, e) = (b.input(0, lane), b.number(0, DType::F64, lane));
        let y = b.op(Code::Pow, &[x, e]);
        let case = Case { inputs: vec![(dtype, Lie::Dense)], outputs: vec![dtype], body: b.finish(&[y]) };
        for (exponent, compiled) in
            [(2.0, true), (3.0, true), (0.5, true), (-0.5, true), (-1.0, true), (-2.0, true), (1.7, false)]
        {
            assert_eq!(case.compare(1, 999, 0, &[f64::to_bits(exponent)], 3, false), compiled && has_vectors());
        }
        if has_vectors() {
            let kernel = case.kernel(1, 100, Jit::Now, false).expect("a kernel");
            let (x, mut y) = (vec![3f64; 100], vec![0f64; 100]);
            let mut run = |exponent: f64| {
                let to = [y.as_mut_ptr().cast()];
                // SAFETY: a hundred elements each, of eight bytes at most.
                unsafe { kernel.run(&to, &[x.as_ptr().cast()], &[exponent.to_bits()], |n, f| f(0..n)) }.expect("runs")
            };
            assert_eq!([2.0, 3.0, 2.0].map(&mut run), [Ran::Compiled, Ran::Loops, Ran::Compiled]);
        }
    }
}

/// A cold kernel runs by loops, a warm one becomes code in the background, and its code goes with it.
#[test]
fn warm_kernels_are_compiled_and_freed() {
    let mut b = Builder::new(false);
    let x = b.input(0, Lane::F32);
    let y = b.op(Code::Exp, &[x]);
    let case = Case { inputs: vec![(DType::F32, Lie::Dense)], outputs: vec![DType::F32], body: b.finish(&[y]) };
    let kernel = case.kernel(1, 100, Jit::On, false).expect("a kernel");
    let (x, mut y) = (vec![3f32; 100], vec![0f32; 100]);
    let mut run = |kernel: &Kernel| {
        // SAFETY: a hundred elements each.
        unsafe { kernel.run(&[y.as_mut_ptr().cast()], &[x.as_ptr().cast()], &[], |n, f| f(0..n)) }.expect("runs")
    };
    assert_eq!(run(&kernel), Ran::Loops);
    (0..20).for_each(|_| _ = run(&kernel));
    finish_compiling();
    assert_eq!(run(&kernel) == Ran::Compiled, has_vectors());
    assert!(!has_vectors() || code_bytes() > 0);
    let off = case.kernel(1, 100, Jit::Off, false).expect("a kernel");
    (0..100).for_each(|_| assert_eq!(run(&off), Ran::Loops));
}

fn recipe(case: &Case) -> Recipe {
    let uniform = |v: &(Def, Lane)| matches!(v.0, Def::Number(..) | Def::Const(_));
    let mut uniforms: Vec<bool> = case.body.values.iter().map(uniform).collect();
    for i in 0..uniforms.len() {
        if let Def::Input(input) = case.body.values[i].0 {
            uniforms[i] = case.inputs[input as usize].1 == Lie::One;
        } else if matches!(case.body.values[i].0, Def::Op(..)) {
            uniforms[i] = case.body.operands(Val(i as u32)).iter().all(|o| uniforms[o.0 as usize]);
        }
    }
    Recipe {
        body: case.body.clone(),
        uniform: uniforms,
        inputs: case.inputs.iter().map(|i| i.0).collect(),
        outputs: case.outputs.clone(),
        staged: vec![false; case.outputs.len()],
    }
}

/// Code for AVX-512 decodes to instructions that machines with F, VL, BW and DQ have, and ends where it should.
#[test]
fn both_widths_decode() {
    use CpuidFeature::*;
    let allowed = [INTEL8086, INTEL386, INTEL486, X64, AVX, AVX2, FMA, F16C, AVX512F, AVX512VL, AVX512BW, AVX512DQ];
    let mut dice = Dice(12345);
    for round in 0..60 {
        let case = random(&mut dice, 1 + round * 4);
        for width in [Width::Ymm, Width::Zmm] {
            let Some(machine) = recipe(&case).assemble(width, &[0; 1024]) else { continue };
            let bytes = &machine.bytes[machine.entry..];
            let decoder = Decoder::with_ip(64, bytes, machine.entry as u64, DecoderOptions::NONE);
            let all: Vec<Instruction> = decoder.into_iter().collect();
            let starts: Vec<u64> = all.iter().map(Instruction::ip).collect();
            assert_eq!(all.last().map(Instruction::mnemonic), Some(iced_x86::Mnemonic::Ret));
            for i in &all {
                assert!(!i.is_invalid(), "{width:?} at {:#x}", i.ip());
                assert!(i.cpuid_features().iter().all(|f| allowed.contains(f)), "{i}: {:?}", i.cpuid_features());
                assert!(width == Width::Zmm || !i.cpuid_features().contains(&AVX512F), "{i}");
                if matches!(i.op0_kind(), OpKind::NearBranch64) {
                    assert!(starts.contains(&i.near_branch64()), "{i} jumps into an instruction");
                }
                if i.is_ip_rel_memory_operand() {
                    assert!(i.ip_rel_memory_address() < machine.entry as u64, "{i} reads beyond the pool");
                }
                assert!(!i.op_kinds().any(|k| k == OpKind::Memory) || i.memory_base() != Register::None, "{i}");
            }
        }
    }
}

/// The AVX-512 program, spills and all, computed by a machine of ours, gives the bits of tier 0.
#[test]
fn wide_programs_agree() {
    let mut compared = 0;
    for seed in 1..150u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let size = 1 + dice.below(if seed % 10 == 0 { 300 } else { 80 });
        let mut case = random(&mut dice, size);
        case.inputs.iter_mut().for_each(|i| i.1 = Lie::Dense);
        let groups = 1 + dice.below(4);
        let n = groups * Width::Zmm.group();
        let numbers = [dice.element(DType::F64), dice.element(DType::I64)];
        let mut inputs: Vec<Elements> = case.inputs.iter().map(|i| Elements::new(i.0, n, 0, &mut dice)).collect();
        let mut outputs: Vec<Elements> = case.outputs.iter().map(|d| Elements::new(*d, n, 0, &mut dice)).collect();
        let kernel = case.kernel(1, n, Jit::Off, false).expect("a kernel");
        let from: Vec<*const u8> = inputs.iter_mut().map(|i| i.at().cast_const()).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(Elements::at).collect();
        // SAFETY: `n` elements each.
        unsafe { kernel.run(&to, &from, &numbers, |n, f| f(0..n)) }.expect("runs");
        let bytes = |e: &Elements| e.memory.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let mut ports: Vec<Vec<u8>> = inputs.iter().chain(&outputs).map(bytes).collect();
        ports[inputs.len()..].iter_mut().for_each(|p| p.fill(0xcc));
        let recipe = recipe(&case);
        let mut cells = kernel.cells(&from, &numbers);
        let truths = recipe.uniform.iter().zip(&case.body.values).filter(|(u, _)| **u);
        for (cell, (_, value)) in cells.iter_mut().zip(truths) {
            *cell = if value.1 == Lane::Bool && *cell != 0 { u64::MAX } else { *cell };
        }
        if !simulate::run(&recipe, &cells, groups, &mut ports) {
            continue;
        }
        compared += 1;
        for (output, port) in outputs.iter_mut().zip(&ports[inputs.len()..]) {
            let words = port.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")));
            let mut got = Elements { memory: words.collect(), dtype: output.dtype, shift: 0, n };
            assert_eq!(got.bits().0, output.bits().0, "{case:?}");
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn compiled_bodies_can_be_sent_to_threads() {
    fn check<T: Send + Sync>() {}
    check::<Compiled>();
}

/// Every operation's instruction for AVX-512 is the one for AVX2 with wider registers, or what stands in its place.
#[test]
fn both_widths_are_one_operation() {
    use Op::*;
    let place = |form| Place { port: 9, first: 48, form };
    let forms = [Form::Bytes, Form::Words, Form::Halves, Form::Vector32, Form::Vector64];
    let simple = [
        AddPs, SubPs, MulPs, DivPs, MaxPs, MinPs, AddPd, SubPd, MulPd, DivPd, MaxPd, MinPd, And, Andn, Or, Xor, AddD,
        SubD, MulD, MaxD, MinD, AddQ, SubQ, MulLow,
    ];
    let of_one = [
        SqrtPs, SqrtPd, AbsD, DToPs, PsToD, RoundPs, RoundPd, ShlD, ShrD, SarD, ShlQ, ShrQ, RoundHalf, DToQLo, DToQHi,
        PsToPdLo, PsToPdHi, DToPdLo, DToPdHi,
    ];
    let mut cases: Vec<(Op, Vec<u8>, u8)> = simple.iter().map(|&op| (op, vec![1, 2], 0)).collect();
    cases.extend(of_one.iter().map(|&op| (op, vec![1], 0)));
    cases.extend(
        [CmpPs, CmpPd, EqD, GtD, EqQ, GtQ, QToDNarrow, PdToPsNarrow, PdToDNarrow].map(|op| (op, vec![1, 2], 0)),
    );
    cases.extend([BlendD, BlendQ].map(|op| (op, vec![1, 2, 3], 0)));
    for result in [1, 2, 3] {
        cases.extend([FmaPs, FmaPd].map(|op| (op, vec![1, 2, 3], result)));
    }
    cases.extend(forms.map(|form| (Load(place(form)), vec![], 0)));
    cases.extend(forms.map(|form| (Store(place(form)), vec![1], 0)));
    for (op, args, result) in cases {
        let step = Step::Op { op, imm: 10, args: args.into_iter().collect(), result };
        let read = |width: Width| -> Vec<String> {
            let bytes = emit::encode(&step, width).expect("encodes");
            let mut formatter = iced_x86::IntelFormatter::new();
            let mut line = |i: Instruction| {
                assert!(!i.is_invalid() && !i.suppress_all_exceptions() && !i.zeroing_masking(), "{i}");
                assert_eq!(i.rounding_control(), iced_x86::RoundingControl::None);
                let mut text = String::new();
                iced_x86::Formatter::format(&mut formatter, &i, &mut text);
                text
            };
            Decoder::new(64, &bytes, DecoderOptions::NONE).into_iter().map(&mut line).collect()
        };
        let (narrow, wide) = (read(Width::Ymm), read(Width::Zmm));
        // The spare register, and the registers' names, one size up.
        let up = |text: &str| {
            let text = text.replace("mm15", "mm31").replace("ymm", "zmm").replace("xmm", "ymm");
            text.replace("i128 ", "i64x4 ")
                .replace("vround", "vrndscale")
                .replace("ymmword", "zmmword")
                .replace("xmmword", "ymmword")
        };
        let expected: Vec<String> = match op {
            // Bitwise operations name a lane size.
            And | Andn | Or | Xor => narrow.iter().map(|l| up(l).replacen(' ', "d ", 1)).collect(),
            CmpPs | EqD | GtD => vec![up(&narrow[0]).replacen("zmm0", "k1", 1), "vpmovm2d zmm0,k1".into()],
            CmpPd | EqQ | GtQ => vec![up(&narrow[0]).replacen("zmm0", "k1", 1), "vpmovm2q zmm0,k1".into()],
            BlendD => vec!["vpmovd2m k1,zmm1".into(), "vpblendmd zmm0{k1},zmm3,zmm2".into()],
            BlendQ => vec!["vpmovq2m k1,zmm1".into(), "vpblendmq zmm0{k1},zmm3,zmm2".into()],
            QToDNarrow => {
                ["vpmovqd ymm31,zmm2", "vpmovqd ymm0,zmm1", "vinserti64x4 zmm0,zmm0,ymm31,1"].map(String::from).into()
            }
            Store(p) if p.form == Form::Bytes => {
                vec![narrow[0].clone(), "vpmovdb [r11+rax+30h],zmm1".into()]
            }
            Store(p) if p.form == Form::Words => {
                vec![narrow[0].clone(), "vpmovdw [r11+rax*2+60h],zmm1".into()]
            }
            _ => narrow.iter().map(|l| up(l)).collect(),
        };
        assert_eq!(wide, expected, "{op:?}: {narrow:?}");
    }
}
