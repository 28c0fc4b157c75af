//! Shape rules: result layouts from argument layouts, in pure Rust.

use smallvec::SmallVec;

use crate::{
    args::{Arg, ArgFlags, ArgReader},
    dtype::DType,
    layout::Layout,
    scalar::Scalar,
};

/// Which class of exception eager libtorch raises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// `RuntimeError`.
    Runtime,
    /// `IndexError`.
    Index,
    /// `ValueError`.
    Value,
    /// `TypeError`.
    Type,
    /// `NotImplementedError`.
    NotImplemented,
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
pub type Rule = fn(&Call<'_>) -> Result<SmallVec<[NewResult; 3]>, ShapeError>;

impl<'a> Call<'a> {
    /// Decodes a call. `None` when the blob is malformed.
    pub fn decode(op: &'a str, words: &'a [u64], operands: &'a [&'a Layout], numbers: &'a [u64]) -> Option<Self> {
        let mut reader = ArgReader::new(words);
        let args = reader.by_ref().collect();
        let fits = reader.operands() <= operands.len() && reader.numbers() <= numbers.len();
        (!reader.error() && fits).then_some(Call { op, args, operands, numbers })
    }

    /// The layout of a tensor argument; `None` when it is absent or a host number.
    pub fn tensor(&self, i: usize) -> Option<&'a Layout> {
        match self.args.get(i)? {
            Arg::Tensor { operand: Some(o), flags } if !flags.has(ArgFlags::FRESH) => self.operands.get(*o).copied(),
            _ => None,
        }
    }

    /// The layout of a tensor argument that must be there.
    pub fn need(&self, i: usize) -> Result<&'a Layout, ShapeError> {
        self.tensor(i).ok_or_else(|| ShapeError::runtime(format!("{}: argument {i} must be a tensor", self.op)))
    }

    /// Layouts of a tensor list argument, absent entries as `None`.
    pub fn tensors(&self, i: usize) -> SmallVec<[Option<&'a Layout>; 4]> {
        let Some(Arg::Tensors { len, mask, first_operand, .. }) = self.args.get(i) else { return SmallVec::new() };
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

/// One result shaped like the first argument, as `empty_like` makes it: same strides when dense, else row-major.
pub fn like_first(call: &Call<'_>) -> Result<SmallVec<[NewResult; 3]>, ShapeError> {
    Ok(SmallVec::from_iter([Some(empty_like(call.need(0)?, None))]))
}

/// The layout `empty_like` gives: the source's strides when it is dense, row-major otherwise.
pub fn empty_like(source: &Layout, dtype: Option<DType>) -> Layout {
    let dtype = dtype.unwrap_or(source.dtype());
    if source.is_dense() {
        Layout::strided(dtype, source.sizes(), source.strides())
    } else {
        Layout::contiguous(dtype, source.sizes())
    }
}
