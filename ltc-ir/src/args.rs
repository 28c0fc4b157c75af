//! Arguments of a recorded operator as one compact tagged blob.
//!
//! The blob is what the recording kernel writes once and everyone else reads: the trace keeps it, the hash covers it,
//! equality compares it, the backend's lowering decodes it. It holds *structure* only. Operands and runtime numbers
//! stand beside it, consumed in order of appearance, so a changing learning rate changes no blob.
//!
//! # Format
//! One header word per argument, in schema order, then the payload words of that argument:
//!
//! | bits | 0-7 | 8-15 | 16-23 | 24-31 | 32-63 |
//! |---|---|---|---|---|---|
//! | header | [`Tag`] | [`ArgFlags`] | dtype code | 0 | length |
//!
//! The same numbers stand in `ltc-torch-sys/csrc/abi.h`; a test of `ltc-torch-sys` compares them.

mod again;
mod check;

use smallvec::SmallVec;

pub use check::{Consumed, Malformed, check};

use crate::{dtype::DType, scalar::Scalar};

/// Structural words of all arguments.
pub type EncodedArgs = SmallVec<[u64; 8]>;

/// Runtime numbers, as bits (`i64`, `f64::to_bits`, `bool as u64`; complex takes two).
pub type RuntimeScalars = SmallVec<[u64; 2]>;

impl Scalar {
    /// Appends the bits: one word, two for complex.
    #[inline]
    pub fn push_words(self, words: &mut RuntimeScalars) {
        match self {
            Scalar::Bool(b) => words.push(b as u64),
            Scalar::Int(i) => words.push(i as u64),
            Scalar::Float(f) => words.push(f.to_bits()),
            Scalar::Complex(re, im) => words.extend([re.to_bits(), im.to_bits()]),
        }
    }
}

/// Kind of one argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Tag {
    /// Absent optional.
    None = 0,
    /// A tensor; consumes one operand, or none when [`ArgFlags::FRESH`] is set.
    Tensor = 1,
    /// A host number where the schema says tensor (wrapped number or 0-dim host tensor); consumes numbers of its dtype.
    HostScalar = 2,
    /// A schema `int`, `ScalarType`, `Layout`, `MemoryFormat`: one payload word, part of the structure.
    Int = 3,
    /// A schema `bool`: the length field is 0 or 1.
    Bool = 4,
    /// A schema `float`: consumes one number (`f64` bits).
    Float = 5,
    /// A schema `Scalar`: consumes numbers of its dtype (`I64`, `F64`, `Bool`, `C128`).
    Number = 6,
    /// A string: length in bytes, payload padded to words.
    Str = 7,
    /// `int[]`: one payload word each.
    Ints = 8,
    /// `float[]`: one payload word each, part of the structure.
    Floats = 9,
    /// `bool[]`: one payload word each.
    Bools = 10,
    /// `Tensor[]` or `Tensor?[]`: payload is a bit mask (⌈length/64⌉ words) of the present ones; consumes that many
    /// operands.
    Tensors = 11,
    /// `Scalar[]`: one payload word each, the dtype code; consumes their numbers.
    Numbers = 12,
    /// A generator: consumes one operand, its state. Absent generators are recorded as the device's default one.
    Generator = 13,
    /// A device: always the device of the trace.
    Device = 14,
}

impl Tag {
    /// The tag of this code.
    pub fn from_code(code: u8) -> Option<Tag> {
        const ALL: [Tag; 15] = [
            Tag::None,
            Tag::Tensor,
            Tag::HostScalar,
            Tag::Int,
            Tag::Bool,
            Tag::Float,
            Tag::Number,
            Tag::Str,
            Tag::Ints,
            Tag::Floats,
            Tag::Bools,
            Tag::Tensors,
            Tag::Numbers,
            Tag::Generator,
            Tag::Device,
        ];
        ALL.get(code as usize).copied()
    }
}

/// Flags of one argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArgFlags(pub u8);

impl ArgFlags {
    /// No flag.
    pub const NONE: ArgFlags = ArgFlags(0);
    /// The operator writes this argument; its new value is one of the node's results.
    pub const MUT: ArgFlags = ArgFlags(1);
    /// Written and its old contents do not matter: there is no operand, memory of the result's layout is made.
    pub const FRESH: ArgFlags = ArgFlags(2);
    /// A host scalar that takes part in dtype promotion as a number, not as a tensor.
    pub const WRAPPED: ArgFlags = ArgFlags(4);

    /// Whether all of `other` is set.
    pub const fn has(self, other: ArgFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union.
    pub const fn and(self, other: ArgFlags) -> ArgFlags {
        ArgFlags(self.0 | other.0)
    }
}

/// How many number words a dtype takes.
#[inline]
pub fn scalar_words(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// Builds argument blobs.
#[derive(Clone, Debug, Default)]
pub struct ArgWriter {
    words: EncodedArgs,
    numbers: RuntimeScalars,
}

impl ArgWriter {
    /// An empty blob.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn head(&mut self, tag: Tag, flags: ArgFlags, dtype: u8, len: usize) -> &mut Self {
        self.words.push(tag as u64 | (flags.0 as u64) << 8 | (dtype as u64) << 16 | (len as u64) << 32);
        self
    }

    /// An absent optional.
    #[inline]
    pub fn none(&mut self) -> &mut Self {
        self.head(Tag::None, ArgFlags::NONE, 0, 0)
    }

    /// A tensor operand.
    #[inline]
    pub fn tensor(&mut self) -> &mut Self {
        self.head(Tag::Tensor, ArgFlags::NONE, 0, 0)
    }

    /// A tensor with flags.
    pub fn tensor_with(&mut self, flags: ArgFlags) -> &mut Self {
        self.head(Tag::Tensor, flags, 0, 0)
    }

    /// A number where the schema says tensor, promoted as a number.
    #[inline]
    pub fn wrapped(&mut self, n: Scalar) -> &mut Self {
        self.head(Tag::HostScalar, ArgFlags::WRAPPED, n.dtype() as u8, 0);
        n.push_words(&mut self.numbers);
        self
    }

    /// A 0-dim host tensor, or with [`ArgFlags::WRAPPED`] a number, of any dtype where the schema says tensor. `bits`
    /// as [`crate::Scalar::from_words`] reads them; the second word counts for complex dtypes only.
    pub fn host_scalar(&mut self, dtype: DType, bits: [u64; 2], flags: ArgFlags) -> &mut Self {
        self.numbers.extend_from_slice(&bits[..scalar_words(dtype)]);
        self.head(Tag::HostScalar, flags, dtype as u8, 0)
    }

    /// A schema `int`.
    #[inline]
    pub fn int(&mut self, v: i64) -> &mut Self {
        self.head(Tag::Int, ArgFlags::NONE, 0, 0).words.push(v as u64);
        self
    }

    /// A schema `bool`.
    #[inline]
    pub fn bool(&mut self, v: bool) -> &mut Self {
        self.head(Tag::Bool, ArgFlags::NONE, 0, v as usize)
    }

    /// A schema `float` (runtime number).
    #[inline]
    pub fn float(&mut self, v: f64) -> &mut Self {
        self.head(Tag::Float, ArgFlags::NONE, 0, 0).numbers.push(v.to_bits());
        self
    }

    /// A schema `Scalar` (runtime number).
    #[inline]
    pub fn number(&mut self, n: Scalar) -> &mut Self {
        self.head(Tag::Number, ArgFlags::NONE, n.dtype() as u8, 0);
        n.push_words(&mut self.numbers);
        self
    }

    /// A schema `int[]`.
    pub fn ints(&mut self, v: &[i64]) -> &mut Self {
        self.head(Tag::Ints, ArgFlags::NONE, 0, v.len()).words.extend(v.iter().map(|&x| x as u64));
        self
    }

    /// A schema `bool[]`.
    pub fn bools(&mut self, v: &[bool]) -> &mut Self {
        self.head(Tag::Bools, ArgFlags::NONE, 0, v.len()).words.extend(v.iter().map(|&x| x as u64));
        self
    }

    /// A schema `float[]` (structure).
    pub fn floats(&mut self, v: &[f64]) -> &mut Self {
        self.head(Tag::Floats, ArgFlags::NONE, 0, v.len()).words.extend(v.iter().map(|&x| x.to_bits()));
        self
    }

    /// A string.
    pub fn str(&mut self, v: &str) -> &mut Self {
        self.bytes(v.as_bytes())
    }

    /// A string that need not be UTF-8, as C++ has them.
    pub fn bytes(&mut self, v: &[u8]) -> &mut Self {
        self.head(Tag::Str, ArgFlags::NONE, 0, v.len());
        for chunk in v.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_le_bytes(word));
        }
        self
    }

    /// A list of tensors, `present[i]` telling whether entry `i` consumes an operand.
    pub fn tensors(&mut self, present: &[bool], flags: ArgFlags) -> &mut Self {
        self.head(Tag::Tensors, flags, 0, present.len());
        for chunk in present.chunks(64) {
            self.words.push(chunk.iter().enumerate().fold(0, |m, (i, &p)| m | (p as u64) << i));
        }
        self
    }

    /// A list of runtime numbers.
    pub fn number_list(&mut self, v: &[Scalar]) -> &mut Self {
        self.head(Tag::Numbers, ArgFlags::NONE, 0, v.len());
        for n in v {
            self.words.push(n.dtype() as u64);
            n.push_words(&mut self.numbers);
        }
        self
    }

    /// A generator; consumes an operand and yields its next state as a result.
    pub fn generator(&mut self) -> &mut Self {
        self.head(Tag::Generator, ArgFlags::MUT, 0, 0)
    }

    /// The trace's device.
    pub fn device(&mut self) -> &mut Self {
        self.head(Tag::Device, ArgFlags::NONE, 0, 0)
    }

    /// The blob so far.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The runtime numbers so far.
    #[inline]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The runtime numbers alone.
    #[inline]
    pub fn take_numbers(&mut self) -> RuntimeScalars {
        std::mem::take(&mut self.numbers)
    }

    /// The blob and the runtime numbers.
    #[inline]
    pub fn finish(&mut self) -> (EncodedArgs, RuntimeScalars) {
        (std::mem::take(&mut self.words), std::mem::take(&mut self.numbers))
    }
}

/// One decoded argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arg<'a> {
    /// Absent optional.
    None,
    /// Operand number, or none when [`ArgFlags::FRESH`].
    Tensor {
        /// Position among the operands.
        operand: Option<usize>,
        /// Flags.
        flags: ArgFlags,
    },
    /// Host number: first number word, dtype, whether wrapped.
    HostScalar {
        /// Position of its first number word.
        number: usize,
        /// Element type.
        dtype: DType,
        /// Promotes as a number.
        wrapped: bool,
    },
    /// Integer.
    Int(i64),
    /// Boolean.
    Bool(bool),
    /// Runtime `f64`: its number word.
    Float {
        /// Position of its first number word.
        number: usize,
    },
    /// Runtime number: first number word and dtype.
    Number {
        /// Position of its first number word.
        number: usize,
        /// Element type.
        dtype: DType,
    },
    /// String bytes, padded with zeros to whole words, and the length in bytes.
    Str {
        /// Payload words.
        words: &'a [u64],
        /// Length.
        len: usize,
    },
    /// Integers, as two's-complement words.
    Ints(&'a [u64]),
    /// `f64` bits.
    Floats(&'a [u64]),
    /// 0 or 1 each.
    Bools(&'a [u64]),
    /// List of tensors: length, presence mask, first operand, flags.
    Tensors {
        /// Length.
        len: usize,
        /// Which entries are present.
        mask: &'a [u64],
        /// Position of its first operand.
        first_operand: usize,
        /// Flags.
        flags: ArgFlags,
    },
    /// List of runtime numbers: dtype codes, first number word.
    Numbers {
        /// Codes of the element types.
        dtypes: &'a [u64],
        /// Position of its first number word.
        first_number: usize,
    },
    /// Generator state: its operand.
    Generator {
        /// Position among the operands.
        operand: usize,
    },
    /// The trace's device.
    Device,
}

/// Decodes a blob argument by argument; ends early (see [`ArgReader::error`]) on malformed words.
#[derive(Clone, Debug)]
pub struct ArgReader<'a> {
    words: &'a [u64],
    operands: usize,
    numbers: usize,
    error: bool,
}

/// Where a view begins in its base, in elements: the one integer among the arguments of `ltc::read_view` and
/// `ltc::write_view`.
pub fn view_offset(words: &[u64]) -> Option<i64> {
    ArgReader::new(words).find_map(|a| if let Arg::Int(offset) = a { Some(offset) } else { None })
}

impl<'a> ArgReader<'a> {
    /// A reader at the first argument.
    pub fn new(words: &'a [u64]) -> Self {
        ArgReader { words, operands: 0, numbers: 0, error: false }
    }

    /// Whether the blob was malformed: unknown tag or dtype, or cut short.
    pub fn error(&self) -> bool {
        self.error
    }

    /// Operands consumed so far.
    pub fn operands(&self) -> usize {
        self.operands
    }

    /// Number words consumed so far.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    fn payload(&mut self, n: usize) -> Option<&'a [u64]> {
        if n > self.words.len() {
            return None;
        }
        let (p, rest) = self.words.split_at(n);
        self.words = rest;
        Some(p)
    }

    fn take_numbers(&mut self, dtype: DType) -> usize {
        let at = self.numbers;
        self.numbers += scalar_words(dtype);
        at
    }

    fn read(&mut self, head: u64) -> Option<Arg<'a>> {
        let flags = ArgFlags((head >> 8) as u8);
        let dtype = || DType::from_code((head >> 16) as u8);
        let len = (head >> 32) as usize;
        Some(match Tag::from_code(head as u8)? {
            Tag::None => Arg::None,
            Tag::Tensor => {
                let operand = (!flags.has(ArgFlags::FRESH)).then_some(self.operands);
                self.operands += operand.is_some() as usize;
                Arg::Tensor { operand, flags }
            }
            Tag::HostScalar => {
                let dtype = dtype()?;
                Arg::HostScalar { number: self.take_numbers(dtype), dtype, wrapped: flags.has(ArgFlags::WRAPPED) }
            }
            Tag::Int => Arg::Int(self.payload(1)?[0] as i64),
            Tag::Bool => Arg::Bool(len != 0),
            Tag::Float => Arg::Float { number: self.take_numbers(DType::F64) },
            Tag::Number => {
                let dtype = dtype()?;
                Arg::Number { number: self.take_numbers(dtype), dtype }
            }
            Tag::Str => Arg::Str { words: self.payload(len.div_ceil(8))?, len },
            Tag::Ints => Arg::Ints(self.payload(len)?),
            Tag::Floats => Arg::Floats(self.payload(len)?),
            Tag::Bools => Arg::Bools(self.payload(len)?),
            Tag::Tensors => {
                let mask = self.payload(len.div_ceil(64))?;
                let first_operand = self.operands;
                if !flags.has(ArgFlags::FRESH) {
                    self.operands += mask.iter().map(|m| m.count_ones() as usize).sum::<usize>();
                }
                Arg::Tensors { len, mask, first_operand, flags }
            }
            Tag::Numbers => {
                let dtypes = self.payload(len)?;
                let first_number = self.numbers;
                for &d in dtypes {
                    let dtype = DType::from_code(u8::try_from(d).ok()?)?;
                    self.take_numbers(dtype);
                }
                Arg::Numbers { dtypes, first_number }
            }
            Tag::Generator => {
                self.operands += 1;
                Arg::Generator { operand: self.operands - 1 }
            }
            Tag::Device => Arg::Device,
        })
    }
}

impl<'a> Iterator for ArgReader<'a> {
    type Item = Arg<'a>;

    fn next(&mut self) -> Option<Arg<'a>> {
        let (&head, rest) = self.words.split_first()?;
        self.words = rest;
        let arg = self.read(head);
        if arg.is_none() {
            self.error = true;
            self.words = &[];
        }
        arg
    }
}
