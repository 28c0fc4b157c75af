//! What a kernel computes for one element.

use ltc_ir::DType;
use rustc_hash::FxHashMap;

/// What a value is while a kernel computes with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of dtypes")]
pub enum Lane {
    /// A byte, 0 or 1.
    Bool,
    U8,
    I32,
    I64,
    F32,
    F64,
}

impl Lane {
    /// The lane elements of this type are computed in; `None` for types no kernel handles.
    pub fn of(dtype: DType) -> Option<Lane> {
        Some(match dtype {
            DType::Bool => Lane::Bool,
            DType::U8 => Lane::U8,
            DType::I32 => Lane::I32,
            DType::I64 => Lane::I64,
            DType::F16 | DType::BF16 | DType::F32 => Lane::F32,
            DType::F64 => Lane::F64,
            _ => return None,
        })
    }

    /// The dtype whose elements are these values.
    pub fn dtype(self) -> DType {
        match self {
            Lane::Bool => DType::Bool,
            Lane::U8 => DType::U8,
            Lane::I32 => DType::I32,
            Lane::I64 => DType::I64,
            Lane::F32 => DType::F32,
            Lane::F64 => DType::F64,
        }
    }

    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Lane::Bool | Lane::U8 => 1,
            Lane::I32 | Lane::F32 => 4,
            Lane::I64 | Lane::F64 => 8,
        }
    }

    /// Whether values have a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Lane::F32 | Lane::F64)
    }

    /// This number as bits of the lane.
    pub fn bits_of(self, number: f64) -> u64 {
        match self {
            Lane::Bool => u64::from(number != 0.0),
            Lane::U8 => u64::from(number as u8),
            Lane::I32 => u64::from(number as i32 as u32),
            Lane::I64 => number as i64 as u64,
            Lane::F32 => u64::from((number as f32).to_bits()),
            Lane::F64 => number.to_bits(),
        }
    }

    /// A runtime number of this dtype, given by its word, as bits of the lane.
    pub fn bits_from(self, dtype: DType, word: u64) -> u64 {
        if dtype.is_floating() {
            let number = f64::from_bits(word);
            return match self {
                // Integers take a float as libtorch's `Scalar::to` does: cut off.
                Lane::I64 => number as i64 as u64,
                _ => self.bits_of(number),
            };
        }
        let number = if dtype == DType::Bool { i64::from(word != 0) } else { word as i64 };
        match self {
            Lane::I64 => number as u64,
            Lane::I32 => u64::from(number as i32 as u32),
            Lane::U8 => u64::from(number as u8),
            Lane::Bool => u64::from(number != 0),
            Lane::F32 => u64::from((number as f32).to_bits()),
            Lane::F64 => (number as f64).to_bits(),
        }
    }
}

/// What is done to values. Operands have one lane unless said otherwise, which is the result's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "most names are those of the functions everybody knows")]
pub enum Code {
    /// To another lane.
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

impl Code {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        use Code::*;
        match self {
            Fma | Select => 3,
            Add | Sub | Mul | Div | FMod | CopySign | Max | Min | Pow | And | Or | Xor | Eq | Ne | Lt | Le => 2,
            _ => 1,
        }
    }

    /// Whether it goes over all elements of a row.
    pub fn reduces(self) -> bool {
        matches!(self, Code::Sum | Code::AMax | Code::AMin)
    }

    /// Whether it is a function of [`super::math`], which has one for single precision only.
    pub fn is_function(self) -> bool {
        use Code::*;
        matches!(
            self,
            Exp | Exp2 | Expm1 | Log | Log2 | Log10 | Log1p | Sin | Cos | Tan | Sinh | Cosh | Tanh | Erf | FMod
        )
    }

    /// Whether machine code leaves some of its arguments to tier 0.
    pub fn is_checked(self) -> bool {
        matches!(self, Code::Sin | Code::Cos | Code::Tan | Code::FMod)
    }

    fn compares(self) -> bool {
        matches!(self, Code::Eq | Code::Ne | Code::Lt | Code::Le)
    }

    /// How long one element takes, in additions.
    pub fn cost(self) -> usize {
        match self {
            Code::Sin | Code::Cos | Code::Tan | Code::Sinh | Code::Cosh | Code::Erf => 16,
            code if code.is_function() => 8,
            Code::Pow => 20,
            Code::Div | Code::Sqrt => 4,
            Code::RoundF16 => 12,
            _ => 1,
        }
    }
}

/// A value of a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Val(pub(crate) u32);

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Def {
    /// An element of this input.
    Input(u32),
    /// A runtime number: its word and dtype.
    Number(u32, DType),
    /// A number, as bits of the lane.
    Const(u64),
    /// A computation.
    Op(Code, [Val; 3]),
}

/// What a kernel computes for one element: values from earlier ones, and which of them are kept.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub(crate) values: Vec<(Def, Lane)>,
    /// Per output its value.
    pub(crate) outputs: Vec<Val>,
    /// Runtime numbers this body takes to be one.
    pub(crate) ones: Vec<(u32, DType)>,
}

impl Body {
    /// What a value is.
    pub fn lane(&self, v: Val) -> Lane {
        self.values[v.0 as usize].1
    }

    /// The operands of a computation.
    pub fn operands(&self, v: Val) -> &[Val] {
        match &self.values[v.0 as usize].0 {
            Def::Op(code, args) => &args[..code.arity()],
            _ => &[],
        }
    }

    /// Whether some computation goes element by element, without vector instructions.
    pub fn has_scalar_math(&self) -> bool {
        self.values.iter().any(|(def, lane)| match def {
            Def::Op(code, _) if code.is_function() => *lane == Lane::F64,
            Def::Op(code, _) => matches!(code, Code::RoundF16),
            _ => false,
        })
    }

    /// Cost of one element, in additions.
    pub fn cost(&self) -> usize {
        self.values.iter().map(|(def, _)| if let Def::Op(code, _) = def { code.cost() } else { 0 }).sum()
    }
}

/// Builds a body; equal computations become one value.
#[derive(Debug, Default)]
pub struct Builder {
    body: Body,
    known: FxHashMap<(Def, Lane), Val>,
    /// Take numbers that are nearly always one to be one ([`Builder::usually_one`]).
    assume_ones: bool,
    /// How many elements a row has.
    pub count: usize,
    /// How products with numbers that are nearly always one are rounded before they are added, if they are.
    pub products: Option<Code>,
}

impl Builder {
    /// A builder of an empty body; `assume_ones`: see [`Builder::usually_one`].
    pub fn new(assume_ones: bool) -> Self {
        Builder { assume_ones, ..Builder::default() }
    }

    fn value(&mut self, def: Def, lane: Lane) -> Val {
        let next = Val(self.body.values.len() as u32);
        let v = *self.known.entry((def, lane)).or_insert(next);
        if v == next {
            self.body.values.push((def, lane));
        }
        v
    }

    /// What a value is.
    pub fn lane(&self, v: Val) -> Lane {
        self.body.lane(v)
    }

    /// An element of this input.
    pub fn input(&mut self, index: u32, lane: Lane) -> Val {
        self.value(Def::Input(index), lane)
    }

    /// The runtime number at this word.
    pub fn number(&mut self, word: u32, dtype: DType, lane: Lane) -> Val {
        self.value(Def::Number(word, dtype), lane)
    }

    /// A number that is nearly always one, as `alpha` is. A body that assumes so runs only when it holds.
    pub fn usually_one(&mut self, word: u32, dtype: DType, lane: Lane) -> Val {
        if !self.assume_ones {
            return self.number(word, dtype, lane);
        }
        if !self.body.ones.contains(&(word, dtype)) {
            self.body.ones.push((word, dtype));
        }
        self.constant(1.0, lane)
    }

    /// The same number for all elements and runs.
    pub fn constant(&mut self, number: f64, lane: Lane) -> Val {
        self.value(Def::Const(lane.bits_of(number)), lane)
    }

    fn is_const(&self, v: Val, number: f64) -> bool {
        let (def, lane) = self.body.values[v.0 as usize];
        def == Def::Const(lane.bits_of(number))
    }

    /// A computation. Operands must have lanes the operator takes; what does not change a value is left out.
    pub fn op(&mut self, code: Code, args: &[Val]) -> Val {
        let lane = self.lane(args[args.len() - 1]);
        match code {
            Code::RoundBf16 | Code::RoundF16 if self.is_const(args[0], 1.0) => return args[0],
            Code::Mul if self.is_const(args[1], 1.0) => return args[0],
            Code::Mul if self.is_const(args[0], 1.0) => return args[1],
            Code::Fma if self.is_const(args[1], 1.0) => return self.op(Code::Add, &[args[2], args[0]]),
            Code::Fma if self.is_const(args[0], 1.0) => return self.op(Code::Add, &[args[2], args[1]]),
            Code::Fma if !lane.is_float() => {
                let product = self.op(Code::Mul, &args[..2]);
                return self.op(Code::Add, &[args[2], product]);
            }
            _ => {}
        }
        let lane = if code.compares() { Lane::Bool } else { lane };
        let mut all = [Val(0); 3];
        all[..args.len()].copy_from_slice(args);
        self.value(Def::Op(code, all), lane)
    }

    /// The value in another lane.
    pub fn cast(&mut self, v: Val, to: Lane) -> Val {
        if self.lane(v) == to { v } else { self.value(Def::Op(Code::Cast, [v, Val(0), Val(0)]), to) }
    }

    /// The body that yields these values, without what none of them needs.
    pub fn finish(mut self, outputs: &[Val]) -> Body {
        let mut needed = vec![false; self.body.values.len()];
        outputs.iter().for_each(|o| needed[o.0 as usize] = true);
        for i in (0..needed.len()).rev().filter(|&i| matches!(self.body.values[i].0, Def::Op(..))).collect::<Vec<_>>() {
            if needed[i] {
                self.body.operands(Val(i as u32)).iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        let mut renamed = vec![Val(0); needed.len()];
        let mut values = Vec::new();
        for (i, (def, lane)) in self.body.values.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let def = match *def {
                Def::Op(code, args) => Def::Op(code, args.map(|a| renamed[a.0 as usize])),
                other => other,
            };
            renamed[i] = Val(values.len() as u32);
            values.push((def, *lane));
        }
        self.body.values = values;
        self.body.outputs = outputs.iter().map(|o| renamed[o.0 as usize]).collect();
        self.body
    }
}
