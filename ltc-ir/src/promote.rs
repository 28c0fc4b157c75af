//! Which dtype operands of several dtypes compute in.
//!
//! The rules of libtorch (`c10/core/ScalarType.cpp`, `aten/src/ATen/native/TypeProperties.cpp`), written as what they
//! mean; a test compares them with libtorch's own answers for all pairs.

use crate::dtype::DType;

/// The real float whose precision a dtype computes in; `None` for integers.
const fn value_type(dtype: DType) -> Option<DType> {
    match dtype {
        DType::C32 => Some(DType::F16),
        DType::C64 => Some(DType::F32),
        DType::C128 => Some(DType::F64),
        d if d.is_floating() => Some(d),
        _ => None,
    }
}

/// The complex dtype of real floats like this; `None` where there is none (8-bit floats, integers).
pub const fn complex_of(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 => Some(DType::C32),
        DType::BF16 | DType::F32 => Some(DType::C64),
        DType::F64 => Some(DType::C128),
        d if d.is_complex() => Some(d),
        _ => None,
    }
}

const fn is_float8(dtype: DType) -> bool {
    dtype.is_floating() && dtype.size_of() == 1
}

/// Unsigned integers that libtorch lets meet only floats.
const fn is_barebones(dtype: DType) -> bool {
    matches!(dtype, DType::U16 | DType::U32 | DType::U64)
}

/// The smallest dtype both convert to, as `torch.promote_types`; `None` where libtorch raises: 8-bit floats with
/// anything else, wide unsigned integers with anything but real floats, generator states.
pub fn promote_types(a: DType, b: DType) -> Option<DType> {
    let (a_value, b_value) = (value_type(a), value_type(b));
    if a == DType::RngState || b == DType::RngState {
        return None;
    }
    if a == b {
        return Some(a);
    }
    if is_float8(a) || is_float8(b) {
        return None;
    }
    if is_barebones(a) || is_barebones(b) {
        return [a, b].into_iter().find(|d| d.is_floating());
    }
    match (a_value, b_value) {
        (None, None) => Some(wider_integer(a, b)),
        (Some(x), Some(y)) => {
            let float = if x.size_of() != y.size_of() {
                if x.size_of() > y.size_of() { x } else { y }
            } else if x == y {
                x
            } else {
                // Neither half holds the other.
                DType::F32
            };
            if a.is_complex() || b.is_complex() { complex_of(float) } else { Some(float) }
        }
        (Some(_), None) => Some(a),
        (None, Some(_)) => Some(b),
    }
}

/// Of different integers.
fn wider_integer(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::Bool, other) | (other, DType::Bool) => other,
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        _ if a.size_of() > b.size_of() => a,
        _ => b,
    }
}

/// Whether results of dtype `from` may be written into a tensor of dtype `to`, as `torch.can_cast`: booleans, integers,
/// floats and complex numbers cast upwards only.
pub const fn can_cast(from: DType, to: DType) -> bool {
    kind(from) <= kind(to)
}

const fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        d if d.is_complex() => 3,
        d if d.is_floating() => 2,
        _ => 1,
    }
}

/// How much say an operand has in the result's dtype. Operands of one category promote among themselves; a lower
/// category then counts only as far as its kind is higher: a float beside integers, a complex number beside floats,
/// anything beside booleans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// A host number standing for a tensor.
    Wrapped,
    /// A tensor with no dimensions.
    ZeroDim,
    /// A tensor with dimensions.
    Dim,
}

impl Category {
    /// The category of a tensor of this rank.
    pub const fn of_rank(rank: usize) -> Category {
        if rank == 0 { Category::ZeroDim } else { Category::Dim }
    }
}

/// The dtype in which operands compute, as `torch.result_type`. `default` is the default dtype, a real float: wrapped
/// floats have it, wrapped complex numbers its complex one. `None` where libtorch raises, and for no operands.
pub fn result_type(operands: impl IntoIterator<Item = (DType, Category)>, default: DType) -> Option<DType> {
    let mut states: [Option<DType>; 3] = [None; 3];
    for (mut dtype, category) in operands {
        if category == Category::Wrapped && dtype.is_complex() {
            dtype = complex_of(default)?;
        } else if category == Category::Wrapped && dtype.is_floating() {
            dtype = default;
        }
        let state = &mut states[category as usize];
        *state = Some(state.map_or(Some(dtype), |s| promote_types(s, dtype))?);
    }
    let [wrapped, zero_dim, dim] = states;
    combine(dim, combine(zero_dim, wrapped)?)?
}

/// Outer `None`: they do not combine. Inner `None`: no operand.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<Option<DType>> {
    let (Some(h), Some(l)) = (higher, lower) else { return Some(higher.or(lower)) };
    let decided = if h.is_complex() {
        Some(h)
    } else if h.is_floating() {
        if l.is_complex() { complex_of(h) } else { Some(h) }
    } else if l.is_complex() {
        // Wide unsigned integers too, although `promote_types` refuses them.
        Some(l)
    } else if h == DType::Bool || l.is_floating() {
        promote_types(h, l)
    } else {
        Some(h)
    };
    decided.map(Some)
}
