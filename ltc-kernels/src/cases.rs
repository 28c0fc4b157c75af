//! Kernels and data for tests that compare what computes them: loops, machine code, text for GPUs.

use ltc_ir::DType;

use crate::{Builder, ComputeType, IterationSpace, Kernel, KernelIr, KernelOp, Val, has_loop};

pub(crate) const DTYPES: [DType; 8] =
    [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::U8, DType::Bool];

pub(crate) const CODES: [KernelOp; 44] = [
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
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// An element of this type, as its bytes: what arithmetic likes to get wrong, and any other.
    pub(crate) fn element(&mut self, dtype: DType) -> u64 {
        const FLOATS: [f64; 25] = [
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
            1e38,
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
            // Any byte but 0 is true.
            DType::Bool => [0, 1, any & 0xff][self.below(3)],
            _ => match self.below(3) {
                0 => any,
                1 => (any as i64 >> 40) as u64,
                _ => [0, 1, u64::MAX, 1 << 31, 1 << 53, (1 << 53) + 1, i64::MIN as u64, 255][self.below(8)],
            },
        }
    }
}

/// Elements at an odd place: `n` of them, `shift` elements from an even address.
pub(crate) struct Elements {
    pub(crate) memory: Vec<u64>,
    pub(crate) dtype: DType,
    pub(crate) shift: usize,
    pub(crate) n: usize,
}

impl Elements {
    pub(crate) fn new(dtype: DType, n: usize, shift: usize, dice: &mut Dice) -> Elements {
        Elements::of(dtype, n, shift, || dice.element(dtype))
    }

    /// Elements of these bits.
    pub(crate) fn of(dtype: DType, n: usize, shift: usize, mut next: impl FnMut() -> u64) -> Elements {
        let mut e = Elements { memory: vec![u64::MAX; (n + shift) + 8], dtype, shift, n };
        for i in 0..n {
            let bits = next();
            let at = e.at().wrapping_add(i * dtype.size_of());
            // SAFETY: there are eight bytes for each element.
            unsafe { std::ptr::copy_nonoverlapping(bits.to_le_bytes().as_ptr(), at, dtype.size_of()) };
        }
        e
    }

    pub(crate) fn at(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.shift * self.dtype.size_of())
    }

    /// The elements' bits, with one for all NaN; and all bytes that are none of theirs.
    pub(crate) fn bits(&mut self) -> Bits {
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
pub(crate) fn stored(b: &mut Builder, v: Val, dtype: DType) -> Val {
    let v = b.cast(v, ComputeType::of(dtype).expect("a type kernels handle"));
    match dtype {
        DType::BF16 => b.op(KernelOp::RoundBf16, &[v]),
        DType::F16 => b.op(KernelOp::RoundF16, &[v]),
        _ => v,
    }
}

/// A kernel over `rows` times `columns` elements. Inputs are dense, repeated in all rows, or one element.
pub(crate) struct Case {
    pub(crate) inputs: Vec<(DType, Lie)>,
    pub(crate) outputs: Vec<DType>,
    pub(crate) ir: KernelIr,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Lie {
    Dense,
    Row,
    Column,
    Transposed,
    One,
}

impl Case {
    /// A kernel of one operation, whose inputs lie as said. `None` where the operation has no loop in these types.
    pub(crate) fn of_operator(code: KernelOp, (from, to): (DType, DType), lie: impl Fn(usize) -> Lie) -> Option<Case> {
        let mut b = Builder::new(false);
        let mut inputs = Vec::new();
        let mut args = Vec::new();
        for i in 0..code.arity() {
            let dtype = if code == KernelOp::Select && i == 0 { DType::Bool } else { from };
            inputs.push((dtype, lie(i)));
            args.push(b.input(i as u32, ComputeType::of(dtype).expect("a ty")));
        }
        let ty = ComputeType::of(to).expect("a ty");
        let value = if code == KernelOp::Cast { b.cast(args[0], ty) } else { b.op(code, &args) };
        let result = DTYPES.into_iter().find(|d| ComputeType::of(*d) == Some(b.ty(value))).expect("a type");
        // In some type wider than a byte, too: of bytes alone nothing is compiled.
        let wide = b.cast(value, ComputeType::F32);
        let outputs = vec![result, DType::F32];
        let ir = b.finish(&[value, wide]);
        has_loop(&ir).then_some(Case { inputs, outputs, ir })
    }

    pub(crate) fn kernel(&self, rows: usize, columns: usize, staged: bool) -> Option<Kernel> {
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
        Kernel::new(space, &self.outputs, &inputs, &self.ir, self.ir.clone(), staged)
    }

    /// Calls `run` with where outputs and inputs lie, filled with data, and gives what is in them then.
    pub(crate) fn run(&self, data: Data, run: impl FnOnce(&[*mut u8], &[*const u8])) -> Vec<Bits> {
        let Data { rows, columns, shift, seed, in_place } = data;
        let (n, mut dice) = (rows * columns, Dice(seed | 1));
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
        run(&to, &from);
        outputs.iter_mut().chain(&mut inputs).map(Elements::bits).collect()
    }

    /// Fails where two runs differ.
    pub(crate) fn assert_equal(&self, data: Data, expected: &[Bits], found: &[Bits]) {
        for (buffer, (expected, found)) in expected.iter().zip(found).enumerate() {
            for (i, (a, b)) in expected.0.iter().zip(&found.0).enumerate() {
                assert_eq!(a, b, "buffer {buffer}, element {i} of {data:?}: {a:#x} by loops, else {b:#x}; {self:?}");
            }
            assert_eq!(expected.1, found.1, "buffer {buffer}: bytes around it");
        }
    }
}

/// Elements' bits, and the bytes around them.
pub(crate) type Bits = (Vec<u64>, Vec<u8>);

/// What a kernel of a [`Case`] runs on. With `in_place`, each output takes the memory of the first dense input of its
/// type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// How many elements operands lie from an even address.
    pub(crate) shift: usize,
    pub(crate) seed: u64,
    pub(crate) in_place: bool,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?} to {:?}", self.inputs, self.outputs)?;
        self.ir.values.iter().enumerate().try_for_each(|(i, v)| writeln!(f, "  {i}: {v:?}"))?;
        writeln!(f, "  yields {:?}", self.ir.outputs)
    }
}

/// Whether an operation on these values has a loop, and is no function of each element alone.
pub(crate) fn is_vector(b: &Builder, code: KernelOp, args: &[Val]) -> bool {
    let mut one = Builder::new(false);
    let operands: Vec<Val> = args.iter().enumerate().map(|(i, a)| one.input(i as u32, b.ty(*a))).collect();
    let alone = one.op(code, &operands);
    let scalar = code == KernelOp::Pow || code.is_function() && b.ty(args[args.len() - 1]) == ComputeType::F64;
    has_loop(&one.finish(&[alone])) && !scalar
}

/// A random IR: values picked by dice, of any type, some kept.
pub(crate) fn random(dice: &mut Dice, size: usize) -> Case {
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
        if is_vector(&b, code, &args[..code.arity()]) {
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
