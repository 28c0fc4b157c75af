//! Which dtype an operation on mixed operands computes in (`c10::promoteTypes`, `at::result_type`).

use crate::dtype::DType;

/// The dtype that holds values of both, or `None` where libtorch refuses to promote: 8-bit floats with any other type, and
/// unsigned 16 to 64-bit integers with anything but real floats.
pub fn promote_types(a: DType, b: DType) -> Option<DType> {
    use DType::*;
    if a == b {
        return Some(a);
    }
    let alone = |d: DType| matches!(d, RngState | F8E5M2 | F8E4M3Fn | F8E5M2Fnuz | F8E4M3Fnuz);
    let (small, large) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    if alone(small) || alone(large) {
        return None;
    }
    if matches!(small, U16 | U32 | U64) || matches!(large, U16 | U32 | U64) {
        return large.is_floating().then_some(large);
    }
    Some(match (small, large) {
        (U8, I8) => I16,
        (F16, BF16) => F32,
        (F64, C32 | C64) => C128,
        (F32 | BF16, C32) => C64,
        (_, y) => y,
    })
}

/// Order in which types give way to each other.
fn rank(d: DType) -> u8 {
    use DType::*;
    match d {
        Bool => 0,
        U8 => 1,
        I8 => 2,
        I16 => 3,
        U16 => 4,
        I32 => 5,
        U32 => 6,
        I64 => 7,
        U64 => 8,
        F8E5M2 | F8E4M3Fn | F8E5M2Fnuz | F8E4M3Fnuz => 9,
        F16 => 10,
        BF16 => 11,
        F32 => 12,
        F64 => 13,
        C32 => 14,
        C64 => 15,
        C128 => 16,
        RngState => 17,
    }
}

/// How an operand counts: a number of the host gives way to a 0-dim tensor, and that to a tensor with dimensions, unless
/// its kind (integer, float, complex) is higher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// A number where a tensor may stand.
    Wrapped,
    /// A tensor of rank 0.
    ZeroDim,
    /// A tensor with dimensions.
    Dim,
}

/// Promotion over several operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultType {
    dim: Option<DType>,
    zero_dim: Option<DType>,
    wrapped: Option<DType>,
}

impl ResultType {
    /// Adds an operand; `default` is the dtype of host floats ([`DType::F32`] unless the program changed it). `None`
    /// where libtorch refuses.
    pub fn add(mut self, dtype: DType, weight: Weight, default: DType) -> Option<Self> {
        let dtype = match (weight, dtype) {
            (Weight::Wrapped, d) if d.is_complex() => match default {
                DType::F64 => DType::C128,
                DType::F16 => DType::C32,
                _ => DType::C64,
            },
            (Weight::Wrapped, d) if d.is_floating() => default,
            (_, d) => d,
        };
        let slot = match weight {
            Weight::Dim => &mut self.dim,
            Weight::ZeroDim => &mut self.zero_dim,
            Weight::Wrapped => &mut self.wrapped,
        };
        *slot = Some(match *slot {
            None => dtype,
            Some(d) => promote_types(d, dtype)?,
        });
        Some(self)
    }

    /// The dtype the operation computes in; `None` without operands, or where libtorch refuses.
    pub fn finish(self) -> Option<DType> {
        let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
            (None, x) | (x, None) => Some(x),
            (Some(h), Some(l)) if kind(h) >= kind(l) => Some(Some(h)),
            (Some(h), Some(l)) => promote_types(h, l).map(Some),
        };
        combine(self.dim, combine(self.zero_dim, self.wrapped)?)?
    }
}

/// Bool, integer, float or complex.
fn kind(d: DType) -> u8 {
    match d {
        DType::Bool => 0,
        d if d.is_complex() => 3,
        d if d.is_floating() => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.promote_types` of torch 2.11, rows and columns in this order; `-` where it raises.
    const ORDER: &str =
        "u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16 f8e5m2 f8e4m3fn f8e5m2fnuz f8e4m3fnuz u16 u32 u64";
    const TABLE: &str = "
        u8 i16 i16 i32 i64 f16 f32 f64 c32 c64 c128 u8 bf16 - - - - - - -
        i16 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 i8 bf16 - - - - - - -
        i16 i16 i16 i32 i64 f16 f32 f64 c32 c64 c128 i16 bf16 - - - - - - -
        i32 i32 i32 i32 i64 f16 f32 f64 c32 c64 c128 i32 bf16 - - - - - - -
        i64 i64 i64 i64 i64 f16 f32 f64 c32 c64 c128 i64 bf16 - - - - - - -
        f16 f16 f16 f16 f16 f16 f32 f64 c32 c64 c128 f16 f32 - - - - f16 f16 f16
        f32 f32 f32 f32 f32 f32 f32 f64 c64 c64 c128 f32 f32 - - - - f32 f32 f32
        f64 f64 f64 f64 f64 f64 f64 f64 c128 c128 c128 f64 f64 - - - - f64 f64 f64
        c32 c32 c32 c32 c32 c32 c64 c128 c32 c64 c128 c32 c64 - - - - - - -
        c64 c64 c64 c64 c64 c64 c64 c128 c64 c64 c128 c64 c64 - - - - - - -
        c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - - - - - - -
        u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16 - - - - - - -
        bf16 bf16 bf16 bf16 bf16 f32 f32 f64 c64 c64 c128 bf16 bf16 - - - - bf16 bf16 bf16
        - - - - - - - - - - - - - f8e5m2 - - - - - -
        - - - - - - - - - - - - - - f8e4m3fn - - - - -
        - - - - - - - - - - - - - - - f8e5m2fnuz - - - -
        - - - - - - - - - - - - - - - - f8e4m3fnuz - - -
        - - - - - f16 f32 f64 - - - - bf16 - - - - u16 - -
        - - - - - f16 f32 f64 - - - - bf16 - - - - - u32 -
        - - - - - f16 f32 f64 - - - - bf16 - - - - - - u64";

    fn dtype(name: &str) -> DType {
        DType::from_name(name).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn all_pairs_promote_as_in_libtorch() {
        let names: Vec<&str> = ORDER.split_whitespace().collect();
        let mut cells = TABLE.split_whitespace();
        for a in &names {
            for b in &names {
                let expected = cells.next().filter(|c| *c != "-").map(dtype);
                assert_eq!(promote_types(dtype(a), dtype(b)), expected, "{a} and {b}");
            }
        }
        assert_eq!(names.len() + 1, DType::ALL.len(), "all but generator states");
    }

    /// Cases of `torch.result_type`.
    #[test]
    fn numbers_give_way_to_tensors_unless_their_kind_is_higher() {
        use Weight::*;
        let result = |operands: &[(DType, Weight)]| {
            let start = Some(ResultType::default());
            operands.iter().fold(start, |r, &(d, w)| r?.add(d, w, DType::F32))?.finish()
        };
        type Case<'a> = (&'a [(DType, Weight)], Option<DType>);
        let cases: [Case<'_>; 9] = [
            (&[(DType::I32, Dim), (DType::I64, Wrapped)], Some(DType::I32)),
            (&[(DType::I32, Dim), (DType::F64, Wrapped)], Some(DType::F32)),
            (&[(DType::F16, Dim), (DType::F64, Wrapped)], Some(DType::F16)),
            (&[(DType::F16, Dim), (DType::F64, ZeroDim)], Some(DType::F16)),
            (&[(DType::I64, Dim), (DType::F64, ZeroDim)], Some(DType::F64)),
            (&[(DType::F32, Dim), (DType::C128, Wrapped)], Some(DType::C64)),
            (&[(DType::Bool, Dim), (DType::I64, Wrapped)], Some(DType::I64)),
            (&[(DType::U16, Dim), (DType::I64, Dim)], None),
            (&[], None),
        ];
        for (operands, expected) in cases {
            assert_eq!(result(operands), expected, "{operands:?}");
        }
    }
}
