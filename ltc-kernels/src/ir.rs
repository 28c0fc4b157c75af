//! What a kernel computes for one element.

use ltc_ir::DType;
use rustc_hash::FxHashMap;

/// What a value is while a kernel computes with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of dtypes")]
pub enum ComputeType {
    /// A byte, 0 or 1.
    Bool,
    U8,
    I32,
    I64,
    F32,
    F64,
}

impl ComputeType {
    /// The type elements of this dtype are computed in; `None` for types no kernel handles.
    pub fn of(dtype: DType) -> Option<ComputeType> {
        Some(match dtype {
            DType::Bool => ComputeType::Bool,
            DType::U8 => ComputeType::U8,
            DType::I32 => ComputeType::I32,
            DType::I64 => ComputeType::I64,
            DType::F16 | DType::BF16 | DType::F32 => ComputeType::F32,
            DType::F64 => ComputeType::F64,
            _ => return None,
        })
    }

    /// The dtype whose elements are these values.
    pub fn dtype(self) -> DType {
        match self {
            ComputeType::Bool => DType::Bool,
            ComputeType::U8 => DType::U8,
            ComputeType::I32 => DType::I32,
            ComputeType::I64 => DType::I64,
            ComputeType::F32 => DType::F32,
            ComputeType::F64 => DType::F64,
        }
    }

    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            ComputeType::Bool | ComputeType::U8 => 1,
            ComputeType::I32 | ComputeType::F32 => 4,
            ComputeType::I64 | ComputeType::F64 => 8,
        }
    }

    /// Whether values have a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, ComputeType::F32 | ComputeType::F64)
    }

    /// This number as bits of the type.
    pub fn bits_of(self, number: f64) -> u64 {
        match self {
            ComputeType::Bool => u64::from(number != 0.0),
            ComputeType::U8 => u64::from(number as u8),
            ComputeType::I32 => u64::from(number as i32 as u32),
            ComputeType::I64 => number as i64 as u64,
            ComputeType::F32 => u64::from((number as f32).to_bits()),
            ComputeType::F64 => number.to_bits(),
        }
    }

    /// A runtime number of this dtype, given by its word, as bits of the type.
    pub fn bits_from(self, dtype: DType, word: u64) -> u64 {
        if dtype.is_floating() {
            let number = f64::from_bits(word);
            return match self {
                // Integers take a float as libtorch's `Scalar::to` does: cut off.
                ComputeType::I64 => number as i64 as u64,
                _ => self.bits_of(number),
            };
        }
        let number = if dtype == DType::Bool { i64::from(word != 0) } else { word as i64 };
        match self {
            ComputeType::I64 => number as u64,
            ComputeType::I32 => u64::from(number as i32 as u32),
            ComputeType::U8 => u64::from(number as u8),
            ComputeType::Bool => u64::from(number != 0),
            ComputeType::F32 => u64::from((number as f32).to_bits()),
            ComputeType::F64 => (number as f64).to_bits(),
        }
    }
}

/// What is done to values. Operands have one type unless said otherwise, which is the result's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "most names are those of the functions everybody knows")]
pub enum KernelOp {
    /// To another type.
    Cast,
    /// To the nearest bfloat16, kept in `F32`.
    RoundBf16,
    /// To the nearest half, kept in `F32`.
    RoundF16,
    Neg,
    Abs,
    /// Boolean or bitwise.
    Not,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    /// Half to even.
    Round,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Erf,
    Add,
    Sub,
    Mul,
    Div,
    /// What division leaves, with the dividend's sign.
    FMod,
    /// The first's magnitude with the second's sign.
    CopySign,
    /// The larger; NaN if either is; the second of equal ones.
    Max,
    /// The smaller; NaN if either is; the second of equal ones.
    Min,
    /// To a power, with libtorch's short cuts for a number as exponent.
    Pow,
    And,
    Or,
    Xor,
    /// Comparisons give `Bool`.
    Eq,
    Ne,
    Lt,
    Le,
    /// First times second plus third, rounded once where the machine can.
    Fma,
    /// Second where the first (`Bool`) is set, else third.
    Select,
    /// Over all elements of a row, which gives a value of the row: see `reduce/stages.rs`. The sum.
    Sum,
    /// The largest; NaN if any is.
    AMax,
    /// The smallest; NaN if any is.
    AMin,
}

impl KernelOp {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        use KernelOp::*;
        match self {
            Fma | Select => 3,
            Add | Sub | Mul | Div | FMod | CopySign | Max | Min | Pow | And | Or | Xor | Eq | Ne | Lt | Le => 2,
            _ => 1,
        }
    }

    /// Whether it goes over all elements of a row.
    pub fn reduces(self) -> bool {
        matches!(self, KernelOp::Sum | KernelOp::AMax | KernelOp::AMin)
    }

    /// Whether it is a function of `math.rs`, which has one for single precision only.
    pub fn is_function(self) -> bool {
        use KernelOp::*;
        matches!(
            self,
            Exp | Exp2 | Expm1 | Log | Log2 | Log10 | Log1p | Sin | Cos | Tan | Sinh | Cosh | Tanh | Erf | FMod
        )
    }

    /// Whether machine code leaves some of its arguments to tier 0.
    pub fn is_checked(self) -> bool {
        matches!(self, KernelOp::Sin | KernelOp::Cos | KernelOp::Tan | KernelOp::FMod)
    }

    fn compares(self) -> bool {
        matches!(self, KernelOp::Eq | KernelOp::Ne | KernelOp::Lt | KernelOp::Le)
    }

    /// How long one element takes, in additions.
    pub fn cost(self) -> usize {
        match self {
            KernelOp::Sin | KernelOp::Cos | KernelOp::Tan | KernelOp::Sinh | KernelOp::Cosh | KernelOp::Erf => 16,
            op if op.is_function() => 8,
            KernelOp::Pow => 20,
            KernelOp::Div | KernelOp::Sqrt => 4,
            KernelOp::RoundF16 => 12,
            _ => 1,
        }
    }
}

/// A value of an IR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Val(pub(crate) u32);

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Inst {
    /// An element of this input.
    Input(u32),
    /// A runtime number: its word and dtype.
    Number(u32, DType),
    /// A number, as bits of the type.
    Const(u64),
    /// A computation.
    Op(KernelOp, [Val; 3]),
}

/// What a kernel computes for one element: values from earlier ones, and which of them are kept.
#[derive(Clone, Debug, Default)]
pub struct KernelIr {
    pub(crate) values: Vec<(Inst, ComputeType)>,
    /// Per output its value.
    pub(crate) outputs: Vec<Val>,
    /// Runtime numbers this IR takes to be one.
    pub(crate) ones: Vec<(u32, DType)>,
}

impl KernelIr {
    /// What a value is.
    pub fn ty(&self, v: Val) -> ComputeType {
        self.values[v.0 as usize].1
    }

    /// The operands of a computation.
    pub fn operands(&self, v: Val) -> &[Val] {
        match &self.values[v.0 as usize].0 {
            Inst::Op(op, args) => &args[..op.arity()],
            _ => &[],
        }
    }

    /// Whether some computation goes element by element, without vector instructions.
    pub fn has_scalar_math(&self) -> bool {
        self.values.iter().any(|(inst, ty)| match inst {
            Inst::Op(op, _) if op.is_function() => *ty == ComputeType::F64,
            Inst::Op(op, _) => matches!(op, KernelOp::RoundF16),
            _ => false,
        })
    }

    /// Cost of one element, in additions.
    pub fn cost(&self) -> usize {
        self.values.iter().map(|(inst, _)| if let Inst::Op(op, _) = inst { op.cost() } else { 0 }).sum()
    }
}

/// Builds an IR; equal computations become one value.
#[derive(Debug, Default)]
pub struct Builder {
    ir: KernelIr,
    known: FxHashMap<(Inst, ComputeType), Val>,
    /// Take numbers that are nearly always one to be one ([`Builder::usually_one`]).
    assume_ones: bool,
    /// How many elements a row has.
    pub count: usize,
    /// How products with numbers that are nearly always one are rounded before they are added, if they are.
    pub products: Option<KernelOp>,
}

impl Builder {
    /// A builder of an empty IR; `assume_ones`: see [`Builder::usually_one`].
    pub fn new(assume_ones: bool) -> Self {
        Builder { assume_ones, ..Builder::default() }
    }

    fn value(&mut self, inst: Inst, ty: ComputeType) -> Val {
        let next = Val(self.ir.values.len() as u32);
        let v = *self.known.entry((inst, ty)).or_insert(next);
        if v == next {
            self.ir.values.push((inst, ty));
        }
        v
    }

    /// What a value is.
    pub fn ty(&self, v: Val) -> ComputeType {
        self.ir.ty(v)
    }

    /// An element of this input. Memory of booleans may hold any byte (that of a mask of 0 and 255, seen as booleans),
    /// and each but 0 is true, as for libtorch: they are read as bytes and made 0 or 1.
    pub fn input(&mut self, index: u32, ty: ComputeType) -> Val {
        if ty == ComputeType::Bool {
            let byte = self.value(Inst::Input(index), ComputeType::U8);
            return self.cast(byte, ty);
        }
        self.value(Inst::Input(index), ty)
    }

    /// The runtime number at this word.
    pub fn number(&mut self, word: u32, dtype: DType, ty: ComputeType) -> Val {
        self.value(Inst::Number(word, dtype), ty)
    }

    /// A number that is nearly always one, as `alpha` is. An IR that assumes so runs only when it holds.
    pub fn usually_one(&mut self, word: u32, dtype: DType, ty: ComputeType) -> Val {
        if !self.assume_ones {
            return self.number(word, dtype, ty);
        }
        if !self.ir.ones.contains(&(word, dtype)) {
            self.ir.ones.push((word, dtype));
        }
        self.constant(1.0, ty)
    }

    /// The same number for all elements and runs.
    pub fn constant(&mut self, number: f64, ty: ComputeType) -> Val {
        self.value(Inst::Const(ty.bits_of(number)), ty)
    }

    fn is_const(&self, v: Val, number: f64) -> bool {
        let (inst, ty) = self.ir.values[v.0 as usize];
        inst == Inst::Const(ty.bits_of(number))
    }

    /// A computation. Operands must have types the operator takes; what does not change a value is left out.
    pub fn op(&mut self, op: KernelOp, args: &[Val]) -> Val {
        let ty = self.ty(args[args.len() - 1]);
        match op {
            KernelOp::RoundBf16 | KernelOp::RoundF16 if self.is_const(args[0], 1.0) => return args[0],
            KernelOp::Mul if self.is_const(args[1], 1.0) => return args[0],
            KernelOp::Mul if self.is_const(args[0], 1.0) => return args[1],
            KernelOp::Fma if self.is_const(args[1], 1.0) => return self.op(KernelOp::Add, &[args[2], args[0]]),
            KernelOp::Fma if self.is_const(args[0], 1.0) => return self.op(KernelOp::Add, &[args[2], args[1]]),
            KernelOp::Fma if !ty.is_float() => {
                let product = self.op(KernelOp::Mul, &args[..2]);
                return self.op(KernelOp::Add, &[args[2], product]);
            }
            _ => {}
        }
        let ty = if op.compares() { ComputeType::Bool } else { ty };
        let mut all = [Val(0); 3];
        all[..args.len()].copy_from_slice(args);
        self.value(Inst::Op(op, all), ty)
    }

    /// The value in another type.
    pub fn cast(&mut self, v: Val, to: ComputeType) -> Val {
        if self.ty(v) == to { v } else { self.value(Inst::Op(KernelOp::Cast, [v, Val(0), Val(0)]), to) }
    }

    /// The IR that yields these values, without what none of them needs.
    pub fn finish(mut self, outputs: &[Val]) -> KernelIr {
        let mut needed = vec![false; self.ir.values.len()];
        outputs.iter().for_each(|o| needed[o.0 as usize] = true);
        for i in (0..needed.len()).rev().filter(|&i| matches!(self.ir.values[i].0, Inst::Op(..))).collect::<Vec<_>>() {
            if needed[i] {
                self.ir.operands(Val(i as u32)).iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        let mut renamed = vec![Val(0); needed.len()];
        let mut values = Vec::new();
        for (i, (inst, ty)) in self.ir.values.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let inst = match *inst {
                Inst::Op(op, args) => Inst::Op(op, args.map(|a| renamed[a.0 as usize])),
                other => other,
            };
            renamed[i] = Val(values.len() as u32);
            values.push((inst, *ty));
        }
        self.ir.values = values;
        self.ir.outputs = outputs.iter().map(|o| renamed[o.0 as usize]).collect();
        self.ir
    }
}
