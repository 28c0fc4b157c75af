//! Element types, with libtorch's codes. How they mix is in [`crate::promote`].

use std::fmt;

/// Element type. The discriminants are libtorch's `c10::ScalarType` codes, so that crossing the border costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8 = 0,
    /// Signed 8-bit integer.
    I8 = 1,
    /// Signed 16-bit integer.
    I16 = 2,
    /// Signed 32-bit integer.
    I32 = 3,
    /// Signed 64-bit integer.
    I64 = 4,
    /// IEEE half.
    F16 = 5,
    /// IEEE single.
    F32 = 6,
    /// IEEE double.
    F64 = 7,
    /// Complex of two halves.
    C32 = 8,
    /// Complex of two singles.
    C64 = 9,
    /// Complex of two doubles.
    C128 = 10,
    /// Boolean, one byte.
    Bool = 11,
    /// Brain float.
    BF16 = 15,
    /// 8-bit float, 5 exponent bits.
    F8E5M2 = 23,
    /// 8-bit float, 4 exponent bits, finite.
    F8E4M3Fn = 24,
    /// 8-bit float, 5 exponent bits, no negative zero.
    F8E5M2Fnuz = 25,
    /// 8-bit float, 4 exponent bits, finite, no negative zero.
    F8E4M3Fnuz = 26,
    /// Unsigned 16-bit integer.
    U16 = 27,
    /// Unsigned 32-bit integer.
    U32 = 28,
    /// Unsigned 64-bit integer.
    U64 = 29,
    /// Not an element type of tensors: the state of a random generator, an opaque rank-0 value. Random operators
    /// consume one and yield the next, which orders draws by data flow.
    RngState = 255,
}

impl DType {
    /// All element types, in code order.
    pub const ALL: [DType; 21] = [
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
        DType::C128,
        DType::Bool,
        DType::BF16,
        DType::F8E5M2,
        DType::F8E4M3Fn,
        DType::F8E5M2Fnuz,
        DType::F8E4M3Fnuz,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::RngState,
    ];

    /// The dtype of a libtorch `ScalarType` code; `None` for quantized, bit-packed and unknown ones.
    #[inline]
    pub const fn from_code(code: u8) -> Option<DType> {
        // On the path of every recorded operand: a look-up, not a search.
        const BY_CODE: [Option<DType>; 256] = {
            let mut table = [None; 256];
            let mut i = 0;
            while i < DType::ALL.len() {
                table[DType::ALL[i] as usize] = Some(DType::ALL[i]);
                i += 1;
            }
            table
        };
        BY_CODE[code as usize]
    }

    /// Bytes per element (0 for generator states).
    pub const fn size_of(self) -> usize {
        match self {
            DType::RngState => 0,
            DType::U8
            | DType::I8
            | DType::Bool
            | DType::F8E5M2
            | DType::F8E4M3Fn
            | DType::F8E5M2Fnuz
            | DType::F8E4M3Fnuz => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 | DType::C32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Short name, as in the text form: `f32`, `i64`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C32 => "c32",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::Bool => "bool",
            DType::BF16 => "bf16",
            DType::F8E5M2 => "f8e5m2",
            DType::F8E4M3Fn => "f8e4m3fn",
            DType::F8E5M2Fnuz => "f8e5m2fnuz",
            DType::F8E4M3Fnuz => "f8e4m3fnuz",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::RngState => "rng",
        }
    }

    /// The dtype of this short name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Whether elements are complex.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64 | DType::C128)
    }

    /// Whether elements are real floats.
    pub const fn is_floating(self) -> bool {
        matches!(
            self,
            DType::F16
                | DType::F32
                | DType::F64
                | DType::BF16
                | DType::F8E5M2
                | DType::F8E4M3Fn
                | DType::F8E5M2Fnuz
                | DType::F8E4M3Fnuz
        )
    }

    /// Whether elements are integers; `Bool` is not unless `include_bool`.
    pub const fn is_integral(self, include_bool: bool) -> bool {
        match self {
            DType::Bool => include_bool,
            DType::RngState => false,
            _ => !self.is_complex() && !self.is_floating(),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
