//! Shape rules: result layouts from argument layouts, in pure Rust.
//!
//! A rule answers what eager libtorch on the CPU would: dtype, sizes and strides of each new result, or its error.
//! Rules are total: whatever the arguments, they return.
//!
//! # Errors
//! Every rule fails with a [`ShapeError`] for arguments that libtorch refuses: its words, and the class of its
//! exception. It also fails where an argument that has to be a tensor is none; the rules do not each say so again.

mod checks;
pub mod conv;
pub mod factory;
pub mod index;
pub mod iterator;
pub mod linalg;
pub mod loss;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod numbers;
pub mod pointwise;
pub mod pool;
pub mod pool_adaptive;
pub mod random;
pub mod reduction;
pub mod resample;
pub mod view;

use smallvec::SmallVec;

use crate::{
    args::{Arg, ArgFlags, ArgReader},
    dtype::DType,
    layout::Layout,
    scalar::Scalar,
};

/// Which class of exception eager libtorch raises. The numbers cross the border to libtorch
/// (`ltc-torch-sys/csrc/abi.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// `RuntimeError`.
    Runtime = 0,
    /// `IndexError`.
    Index = 1,
    /// `ValueError`.
    Value = 2,
    /// `TypeError`.
    Type = 3,
    /// `NotImplementedError`.
    NotImplemented = 4,
    /// `torch.linalg.LinAlgError`: a matrix that an algorithm cannot take, told by its values.
    LinAlg = 5,
    /// `torch.OutOfMemoryError`.
    OutOfMemory = 6,
    /// No mistake: whoever waited was called away, in Python by a signal whose handler raised.
    Interrupted = 7,
    /// `torch.AcceleratorError`: the device does nothing any more for this process.
    DeviceLost = 8,
}

impl ErrorClass {
    /// The class of this number.
    pub fn from_code(code: i32) -> Option<Self> {
        use ErrorClass::{DeviceLost, Index, Interrupted, LinAlg, NotImplemented, OutOfMemory, Runtime, Type, Value};
        let all = [Runtime, Index, Value, Type, NotImplemented, LinAlg, OutOfMemory, Interrupted, DeviceLost];
        all.into_iter().find(|&class| class as i32 == code)
    }
}

/// A call whose arguments do not fit together.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ShapeError {
    /// Exception class.
    pub class: ErrorClass,
    /// What is wrong, in the wording of eager libtorch.
    pub message: String,
}

impl ShapeError {
    /// A `RuntimeError`.
    pub fn runtime(message: impl Into<String>) -> Self {
        ShapeError { class: ErrorClass::Runtime, message: message.into() }
    }

    /// An `IndexError`.
    pub fn index(message: impl Into<String>) -> Self {
        ShapeError { class: ErrorClass::Index, message: message.into() }
    }
}

/// Arguments of a call as a rule sees them.
#[derive(Debug)]
pub struct Call<'a> {
    /// Operator name, for messages.
    pub op: &'a str,
    /// Decoded arguments, in schema order.
    pub args: SmallVec<[Arg<'a>; 12]>,
    /// Layouts of the operands, in order of appearance.
    pub operands: &'a [&'a Layout],
    /// Runtime numbers.
    pub numbers: &'a [u64],
}

/// One result: a new tensor of this layout, or an undefined one.
pub type NewResult = Option<Layout>;

/// Layouts of the new results (not of written arguments).
pub type Rule = fn(&Call<'_>) -> Result<NewResults, ShapeError>;

impl<'a> Call<'a> {
    /// Decodes a call. `None` when the blob is malformed.
    pub fn decode(op: &'a str, words: &'a [u64], operands: &'a [&'a Layout], numbers: &'a [u64]) -> Option<Self> {
        let mut reader = ArgReader::new(words);
        let args = reader.by_ref().collect();
        let fits = reader.operands() <= operands.len() && reader.numbers() <= numbers.len();
        (!reader.error() && fits).then_some(Call { op, args, operands, numbers })
    }

    /// The operator's name without namespace and overload, for messages.
    pub fn short_op(&self) -> &'a str {
        let name = self.op.rsplit("::").next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }

    /// The layout of a tensor argument; `None` when it is absent or a host number.
    pub fn tensor(&self, i: usize) -> Option<&'a Layout> {
        match self.args.get(i)? {
            Arg::Tensor { operand: Some(o), flags } if !flags.has(ArgFlags::FRESH) => self.operands.get(*o).copied(),
            _ => None,
        }
    }

    /// The layout of a tensor argument that must be there.
    ///
    /// # Errors
    /// Fails where there is none: it is absent, a host number, or memory that is to be made.
    pub fn need(&self, i: usize) -> Result<&'a Layout, ShapeError> {
        self.tensor(i).ok_or_else(|| ShapeError::runtime(format!("{}: argument {i} must be a tensor", self.op)))
    }

    /// The call of an operator on some of these arguments: none where there are not so many.
    pub fn part<'c>(&self, op: &'c str, arguments: std::ops::Range<usize>) -> Call<'c>
    where
        'a: 'c,
    {
        let args = SmallVec::from_slice(self.args.get(arguments).unwrap_or_default());
        Call { op, args, ..*self }
    }

    /// Layouts of a tensor list argument, absent and fresh entries as `None`.
    pub fn tensors(&self, i: usize) -> SmallVec<[Option<&'a Layout>; 4]> {
        let Some(Arg::Tensors { len, mask, first_operand, flags }) = self.args.get(i) else { return SmallVec::new() };
        if flags.has(ArgFlags::FRESH) {
            return SmallVec::from_elem(None, *len);
        }
        let mut next = *first_operand;
        (0..*len)
            .map(|j| {
                (mask[j / 64] >> (j % 64) & 1 == 1).then(|| {
                    next += 1;
                    self.operands[next - 1]
                })
            })
            .collect()
    }

    /// An integer argument (`bool` counts), or `default` when absent.
    pub fn int(&self, i: usize, default: i64) -> i64 {
        match self.args.get(i) {
            Some(Arg::Int(v)) => *v,
            Some(Arg::Bool(b)) => *b as i64,
            _ => default,
        }
    }

    /// A boolean argument; false when absent.
    pub fn bool(&self, i: usize) -> bool {
        self.int(i, 0) != 0
    }

    /// An integer list; `None` when absent. A single integer is a list of one.
    pub fn ints(&self, i: usize) -> Option<SmallVec<[i64; 6]>> {
        match self.args.get(i) {
            Some(Arg::Ints(w)) => Some(w.iter().map(|&x| x as i64).collect()),
            Some(Arg::Int(v)) => Some(SmallVec::from_slice(&[*v])),
            _ => None,
        }
    }

    /// A boolean list; empty when absent.
    pub fn bools(&self, i: usize) -> SmallVec<[bool; 4]> {
        match self.args.get(i) {
            Some(Arg::Bools(w)) => w.iter().map(|&x| x != 0).collect(),
            _ => SmallVec::new(),
        }
    }

    /// A string argument; `None` when absent.
    pub fn text(&self, i: usize) -> Option<String> {
        let Some(Arg::Str { words, len }) = self.args.get(i) else { return None };
        String::from_utf8(words.iter().flat_map(|w| w.to_le_bytes()).take(*len).collect()).ok()
    }

    /// A dtype argument; `None` when absent.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        match self.args.get(i) {
            Some(Arg::Int(v)) => u8::try_from(*v).ok().and_then(DType::from_code),
            _ => None,
        }
    }

    /// A number argument: `Scalar`, `float` or host scalar.
    pub fn number(&self, i: usize) -> Option<Scalar> {
        match self.args.get(i)? {
            Arg::Number { number, dtype } | Arg::HostScalar { number, dtype, .. } => {
                Scalar::from_words(*dtype, &self.numbers[*number..])
            }
            Arg::Float { number } => Some(Scalar::Float(f64::from_bits(self.numbers[*number]))),
            Arg::Int(v) => Some(Scalar::Int(*v)),
            Arg::Bool(b) => Some(Scalar::Bool(*b)),
            _ => None,
        }
    }
}

/// What a rule returns.
pub type NewResults = SmallVec<[NewResult; 3]>;

/// A single new result.
pub(crate) fn one(layout: Layout) -> Result<NewResults, ShapeError> {
    Ok(SmallVec::from_iter([Some(layout)]))
}

/// One result shaped like the first argument, as `empty_like` makes it.
///
/// # Errors
/// Fails where the first argument is no tensor.
pub fn like_first(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    one(empty_like(call.need(0)?, None))
}

/// One result shaped like the second argument: gradients of pointwise operators that take `(grad, self)`.
///
/// # Errors
/// Fails where the second argument is no tensor.
pub fn like_second(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    one(empty_like(call.need(1)?, None))
}

/// One row-major result of the first argument's sizes.
///
/// # Errors
/// Fails where the first argument is no tensor.
pub fn contiguous_like_first(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    one(Layout::contiguous(x.dtype(), x.sizes()))
}

/// The layout `empty_like` gives: the source's strides when it is dense, its order of strides otherwise.
pub fn empty_like(source: &Layout, dtype: Option<DType>) -> Layout {
    let dtype = dtype.unwrap_or(source.dtype());
    if source.is_dense() {
        Layout::strided(dtype, source.sizes(), source.strides())
    } else {
        Layout::strided(dtype, source.sizes(), &dense_strides_in_order(source))
    }
}

/// Dense strides in the order of a layout's strides, as `infer_dense_strides` of libtorch: ties keep the later
/// dimension innermost, and broadcast dimensions do not move.
fn dense_strides_in_order(source: &Layout) -> crate::layout::Dims {
    let (sizes, strides) = (source.sizes(), source.strides());
    let n = sizes.len();
    // Innermost first; an insertion sort because 0 strides compare equal to everything.
    let mut order: SmallVec<[usize; 6]> = (0..n).rev().collect();
    let swaps = |a: usize, b: usize| {
        if strides[a] == 0 || strides[b] == 0 {
            return 0;
        }
        match strides[a].cmp(&strides[b]) {
            std::cmp::Ordering::Less => -1,
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Equal => i32::from(sizes[a] > sizes[b]),
        }
    };
    for i in 1..n {
        let mut at = i;
        for j in (0..i).rev() {
            match swaps(order[j], order[at]) {
                1 => {
                    order.swap(j, at);
                    at = j;
                }
                0 => {}
                _ => break,
            }
        }
    }
    let mut out = crate::layout::Dims::from_elem(1, n);
    let mut step = 1i64;
    for d in order {
        out[d] = step;
        step = step.saturating_mul(sizes[d].max(1));
    }
    out
}

/// Memory formats libtorch tells apart by strides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// Channels innermost: NHWC or NDHWC.
    ChannelsLast,
}

/// `suggest_memory_format` of libtorch: channels-last when the strides of a rank-4 or rank-5 tensor say so.
pub fn suggest_memory_format(layout: &Layout) -> MemoryFormat {
    let order: &[usize] = match layout.rank() {
        4 => &[1, 3, 2, 0],
        5 => &[1, 4, 3, 2, 0],
        _ => return MemoryFormat::Contiguous,
    };
    let (sizes, strides) = (layout.sizes(), layout.strides());
    if strides[1] == 0 {
        return MemoryFormat::Contiguous;
    }
    let mut min = 0;
    for &d in order {
        if sizes[d] == 0 || strides[d] < min || (d == 0 && min == strides[1]) {
            return MemoryFormat::Contiguous;
        }
        min = strides[d].saturating_mul(sizes[d].max(1));
    }
    MemoryFormat::ChannelsLast
}

/// A dense layout in a memory format; channels-last falls back to row-major for other ranks than 4 and 5.
pub fn in_format(dtype: DType, sizes: &[i64], format: MemoryFormat) -> Layout {
    let order: &[usize] = match (format, sizes.len()) {
        (MemoryFormat::ChannelsLast, 4) => &[1, 3, 2, 0],
        (MemoryFormat::ChannelsLast, 5) => &[1, 4, 3, 2, 0],
        _ => return Layout::contiguous(dtype, sizes),
    };
    let mut strides = crate::layout::Dims::from_elem(1, sizes.len());
    let mut step = 1i64;
    for &d in order {
        strides[d] = step;
        step = step.saturating_mul(sizes[d].max(1));
    }
    Layout::strided(dtype, sizes, &strides)
}

/// Resolves a possibly negative dimension of a tensor of this rank, with libtorch's `IndexError`.
///
/// # Errors
/// Fails for a dimension out of range.
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize, ShapeError> {
    let n = rank.max(1) as i64;
    if dim < -n || dim >= n {
        return Err(ShapeError {
            class: ErrorClass::Index,
            message: format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1),
        });
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// Sizes that all operands broadcast to, with libtorch's error.
///
/// # Errors
/// Fails where two sizes of one dimension differ and neither is 1.
pub fn broadcast(operands: &[&[i64]]) -> Result<crate::layout::Dims, ShapeError> {
    let mut out = crate::layout::Dims::new();
    for sizes in operands {
        if sizes.len() > out.len() {
            let grow = sizes.len() - out.len();
            out.insert_many(0, std::iter::repeat_n(1, grow));
        }
        let offset = out.len() - sizes.len();
        for (i, &s) in sizes.iter().enumerate() {
            let o = &mut out[offset + i];
            if *o != s && s != 1 {
                if *o != 1 {
                    return Err(ShapeError::runtime(format!(
                        "The size of tensor a ({o}) must match the size of tensor b ({s}) at non-singleton dimension \
                         {}",
                        offset + i
                    )));
                }
                *o = s;
            }
        }
    }
    Ok(out)
}

/// Checked size arithmetic: an overflow is an error of the call.
pub(crate) fn checked(op: &str, v: Option<i64>) -> Result<i64, ShapeError> {
    v.ok_or_else(|| ShapeError::runtime(format!("{op}: size calculation overflowed")))
}

/// libtorch's C++ name of a dtype, as messages have it: `Float`.
pub const fn cxx_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "Byte",
        DType::I8 => "Char",
        DType::I16 => "Short",
        DType::I32 => "Int",
        DType::I64 => "Long",
        DType::F16 => "Half",
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::C32 => "ComplexHalf",
        DType::C64 => "ComplexFloat",
        DType::C128 => "ComplexDouble",
        DType::Bool => "Bool",
        DType::BF16 => "BFloat16",
        DType::F8E5M2 => "Float8_e5m2",
        DType::F8E4M3Fn => "Float8_e4m3fn",
        DType::F8E5M2Fnuz => "Float8_e5m2fnuz",
        DType::F8E4M3Fnuz => "Float8_e4m3fnuz",
        DType::U16 => "UInt16",
        DType::U32 => "UInt32",
        DType::U64 => "UInt64",
        DType::RngState => "Generator",
    }
}

/// libtorch's C type of a dtype, as other messages have it: `float`.
pub(crate) const fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::F16 => "c10::Half",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C32 => "c10::complex<c10::Half>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        DType::Bool => "bool",
        DType::BF16 => "c10::BFloat16",
        other => other.name(),
    }
}

/// The real dtype of a complex dtype's parts; other dtypes as they are.
pub(crate) const fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        d => d,
    }
}
