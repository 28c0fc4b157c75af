//! Host numbers with a type tag.
//!
//! Equality and hashing are by type and bits, so that `0`, `0.0` and `-0.0` differ and a NaN equals itself.

use std::fmt;

use crate::dtype::DType;

/// A number given by the host program.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// Boolean.
    Bool(bool),
    /// 64-bit integer.
    Int(i64),
    /// 64-bit float.
    Float(f64),
    /// Complex of two 64-bit floats.
    Complex(f64, f64),
}

impl Scalar {
    /// Element type libtorch gives the number: `Bool`, `I64`, `F64` or `C128`.
    #[inline]
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(..) => DType::C128,
        }
    }

    /// Reads the bits of a number of this dtype back; any float dtype holds `f64` bits, any integer dtype `i64`.
    /// `None` when too few words are given.
    pub fn from_words(dtype: DType, words: &[u64]) -> Option<Scalar> {
        let first = *words.first()?;
        Some(if dtype.is_complex() {
            Scalar::Complex(f64::from_bits(first), f64::from_bits(*words.get(1)?))
        } else if dtype.is_floating() {
            Scalar::Float(f64::from_bits(first))
        } else if dtype == DType::Bool {
            Scalar::Bool(first != 0)
        } else {
            Scalar::Int(first as i64)
        })
    }

    fn bits(self) -> (u8, u64, u64) {
        match self {
            Scalar::Bool(b) => (0, b as u64, 0),
            Scalar::Int(i) => (1, i as u64, 0),
            Scalar::Float(f) => (2, f.to_bits(), 0),
            Scalar::Complex(re, im) => (3, re.to_bits(), im.to_bits()),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, o: &Scalar) -> bool {
        self.bits() == o.bits()
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, h: &mut H) {
        self.bits().hash(h);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(re, im) => write!(f, "{re:?}{}{im:?}j", if im.is_sign_negative() { "" } else { "+" }),
        }
    }
}

impl From<bool> for Scalar {
    fn from(v: bool) -> Self {
        Scalar::Bool(v)
    }
}

impl From<i64> for Scalar {
    fn from(v: i64) -> Self {
        Scalar::Int(v)
    }
}

impl From<f64> for Scalar {
    fn from(v: f64) -> Self {
        Scalar::Float(v)
    }
}
