//! Promotion answers as libtorch does.

use ltc_ir::{
    DType,
    promote::{Category, promote_types, result_type},
};

/// `torch.promote_types` of libtorch 2.11: a row per dtype, a column per dtype in the order of the rows.
const PROMOTE: &str = "\
    u8: u8 i16 i16 i32 i64 f16 f32 f64 c32 c64 c128 u8 bf16 - - - - - - -
    i8: i16 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 i8 bf16 - - - - - - -
    i16: i16 i16 i16 i32 i64 f16 f32 f64 c32 c64 c128 i16 bf16 - - - - - - -
    i32: i32 i32 i32 i32 i64 f16 f32 f64 c32 c64 c128 i32 bf16 - - - - - - -
    i64: i64 i64 i64 i64 i64 f16 f32 f64 c32 c64 c128 i64 bf16 - - - - - - -
    f16: f16 f16 f16 f16 f16 f16 f32 f64 c32 c64 c128 f16 f32 - - - - f16 f16 f16
    f32: f32 f32 f32 f32 f32 f32 f32 f64 c64 c64 c128 f32 f32 - - - - f32 f32 f32
    f64: f64 f64 f64 f64 f64 f64 f64 f64 c128 c128 c128 f64 f64 - - - - f64 f64 f64
    c32: c32 c32 c32 c32 c32 c32 c64 c128 c32 c64 c128 c32 c64 - - - - - - -
    c64: c64 c64 c64 c64 c64 c64 c64 c128 c64 c64 c128 c64 c64 - - - - - - -
    c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - - - - - - -
    bool: u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16 - - - - - - -
    bf16: bf16 bf16 bf16 bf16 bf16 f32 f32 f64 c64 c64 c128 bf16 bf16 - - - - bf16 bf16 bf16
    f8e5m2: - - - - - - - - - - - - - f8e5m2 - - - - - -
    f8e4m3fn: - - - - - - - - - - - - - - f8e4m3fn - - - - -
    f8e5m2fnuz: - - - - - - - - - - - - - - - f8e5m2fnuz - - - -
    f8e4m3fnuz: - - - - - - - - - - - - - - - - f8e4m3fnuz - - -
    u16: - - - - - f16 f32 f64 - - - - bf16 - - - - u16 - -
    u32: - - - - - f16 f32 f64 - - - - bf16 - - - - - u32 -
    u64: - - - - - f16 f32 f64 - - - - bf16 - - - - - - u64";

/// `torch.result_type` of a tensor with dimensions (row) and one without (column).
const DIM_AND_ZERO_DIM: &str = "\
    u8: u8 u8 u8 u8 u8 f16 f32 f64 c32 c64 c128 u8 bf16 - - - - u8 u8 u8
    i8: i8 i8 i8 i8 i8 f16 f32 f64 c32 c64 c128 i8 bf16 - - - - i8 i8 i8
    i16: i16 i16 i16 i16 i16 f16 f32 f64 c32 c64 c128 i16 bf16 - - - - i16 i16 i16
    i32: i32 i32 i32 i32 i32 f16 f32 f64 c32 c64 c128 i32 bf16 - - - - i32 i32 i32
    i64: i64 i64 i64 i64 i64 f16 f32 f64 c32 c64 c128 i64 bf16 - - - - i64 i64 i64
    f16: f16 f16 f16 f16 f16 f16 f16 f16 c32 c32 c32 f16 f16 f16 f16 f16 f16 f16 f16 f16
    f32: f32 f32 f32 f32 f32 f32 f32 f32 c64 c64 c64 f32 f32 f32 f32 f32 f32 f32 f32 f32
    f64: f64 f64 f64 f64 f64 f64 f64 f64 c128 c128 c128 f64 f64 f64 f64 f64 f64 f64 f64 f64
    c32: c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32 c32
    c64: c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64
    c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
    bool: u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16 - - - - - - -
    bf16: bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64 c64 c64 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16
    f8e5m2: f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 - - - \
        f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2
    f8e4m3fn: f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn - - - \
        f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn
    f8e5m2fnuz: f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz - - - \
        f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz
    f8e4m3fnuz: f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz - - - \
        f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz
    u16: u16 u16 u16 u16 u16 f16 f32 f64 c32 c64 c128 u16 bf16 - - - - u16 u16 u16
    u32: u32 u32 u32 u32 u32 f16 f32 f64 c32 c64 c128 u32 bf16 - - - - u32 u32 u32
    u64: u64 u64 u64 u64 u64 f16 f32 f64 c32 c64 c128 u64 bf16 - - - - u64 u64 u64";

/// `torch.result_type` of a tensor, with or without dimensions, or a wrapped number (row) and a wrapped `bool`, `i64`,
/// `f64` and `c128`, with default dtype `f32`, `f64`, `bf16` and `f16`.
const WRAPPED: &str = "\
    u8: u8 u8 f32 c64 | u8 u8 f64 c128 | u8 u8 bf16 c64 | u8 u8 f16 c32
    i8: i8 i8 f32 c64 | i8 i8 f64 c128 | i8 i8 bf16 c64 | i8 i8 f16 c32
    i16: i16 i16 f32 c64 | i16 i16 f64 c128 | i16 i16 bf16 c64 | i16 i16 f16 c32
    i32: i32 i32 f32 c64 | i32 i32 f64 c128 | i32 i32 bf16 c64 | i32 i32 f16 c32
    i64: i64 i64 f32 c64 | i64 i64 f64 c128 | i64 i64 bf16 c64 | i64 i64 f16 c32
    f16: f16 f16 f16 c32 | f16 f16 f16 c32 | f16 f16 f16 c32 | f16 f16 f16 c32
    f32: f32 f32 f32 c64 | f32 f32 f32 c64 | f32 f32 f32 c64 | f32 f32 f32 c64
    f64: f64 f64 f64 c128 | f64 f64 f64 c128 | f64 f64 f64 c128 | f64 f64 f64 c128
    c32: c32 c32 c32 c32 | c32 c32 c32 c32 | c32 c32 c32 c32 | c32 c32 c32 c32
    c64: c64 c64 c64 c64 | c64 c64 c64 c64 | c64 c64 c64 c64 | c64 c64 c64 c64
    c128: c128 c128 c128 c128 | c128 c128 c128 c128 | c128 c128 c128 c128 | c128 c128 c128 c128
    bool: bool i64 f32 c64 | bool i64 f64 c128 | bool i64 bf16 c64 | bool i64 f16 c32
    bf16: bf16 bf16 bf16 c64 | bf16 bf16 bf16 c64 | bf16 bf16 bf16 c64 | bf16 bf16 bf16 c64
    f8e5m2: f8e5m2 f8e5m2 f8e5m2 - | f8e5m2 f8e5m2 f8e5m2 - | f8e5m2 f8e5m2 f8e5m2 - | f8e5m2 f8e5m2 f8e5m2 -
    f8e4m3fn: f8e4m3fn f8e4m3fn f8e4m3fn - | f8e4m3fn f8e4m3fn f8e4m3fn - \
        | f8e4m3fn f8e4m3fn f8e4m3fn - | f8e4m3fn f8e4m3fn f8e4m3fn -
    f8e5m2fnuz: f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz - | f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz - \
        | f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz - | f8e5m2fnuz f8e5m2fnuz f8e5m2fnuz -
    f8e4m3fnuz: f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz - | f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz - \
        | f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz - | f8e4m3fnuz f8e4m3fnuz f8e4m3fnuz -
    u16: u16 u16 f32 c64 | u16 u16 f64 c128 | u16 u16 bf16 c64 | u16 u16 f16 c32
    u32: u32 u32 f32 c64 | u32 u32 f64 c128 | u32 u32 bf16 c64 | u32 u32 f16 c32
    u64: u64 u64 f32 c64 | u64 u64 f64 c128 | u64 u64 bf16 c64 | u64 u64 f16 c32
    wrapped bool: bool i64 f32 c64 | bool i64 f64 c128 | bool i64 bf16 c64 | bool i64 f16 c32
    wrapped i64: i64 i64 f32 c64 | i64 i64 f64 c128 | i64 i64 bf16 c64 | i64 i64 f16 c32
    wrapped f64: f32 f32 f32 c64 | f64 f64 f64 c128 | bf16 bf16 bf16 c64 | f16 f16 f16 c32
    wrapped c128: c64 c64 c64 c64 | c128 c128 c128 c128 | c64 c64 c64 c64 | c32 c32 c32 c32";

fn dtype(name: &str) -> Option<DType> {
    (name != "-").then(|| DType::from_name(name).expect(name))
}

/// Rows of a table: name and cells.
fn rows(table: &str) -> impl Iterator<Item = (&str, Vec<Option<DType>>)> {
    table.lines().map(|line| {
        let (name, cells) = line.split_once(": ").expect("a row has a name");
        (name.trim(), cells.split_whitespace().filter(|&c| c != "|").map(dtype).collect())
    })
}

fn real_dtypes() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&d| d != DType::RngState)
}

#[test]
fn all_pairs_of_dtypes() {
    let mut seen = 0;
    for ((name, cells), a) in rows(PROMOTE).zip(real_dtypes()) {
        assert_eq!(name, a.name());
        for (b, expected) in real_dtypes().zip(cells) {
            assert_eq!(promote_types(a, b), expected, "{a} {b}");
            seen += 1;
        }
    }
    assert_eq!(seen, 400);
}

#[test]
fn generator_states_do_not_promote() {
    for d in DType::ALL {
        assert_eq!(promote_types(d, DType::RngState), None);
        assert_eq!(promote_types(DType::RngState, d), None);
    }
}

#[test]
fn tensors_without_dimensions_have_less_say() {
    for (name, cells) in rows(DIM_AND_ZERO_DIM) {
        let a = DType::from_name(name).expect(name);
        for (b, expected) in real_dtypes().zip(cells) {
            for operands in [[(a, Category::Dim), (b, Category::ZeroDim)], [(b, Category::ZeroDim), (a, Category::Dim)]]
            {
                assert_eq!(result_type(operands, DType::F32), expected, "{a} {b}");
            }
        }
    }
}

#[test]
fn tensors_of_one_category_promote() {
    for (a, b) in real_dtypes().flat_map(|a| real_dtypes().map(move |b| (a, b))) {
        for category in [Category::of_rank(3), Category::of_rank(0)] {
            assert_eq!(result_type([(a, category), (b, category)], DType::F32), promote_types(a, b), "{a} {b}");
        }
    }
}

#[test]
fn wrapped_numbers_have_least_say() {
    let numbers = [DType::Bool, DType::I64, DType::F64, DType::C128];
    let defaults = [DType::F32, DType::F64, DType::BF16, DType::F16];
    for (name, cells) in rows(WRAPPED) {
        let (name, categories) = match name.strip_prefix("wrapped ") {
            Some(name) => (name, &[Category::Wrapped][..]),
            None => (name, &[Category::Dim, Category::ZeroDim][..]),
        };
        let a = DType::from_name(name).expect(name);
        let columns = defaults.iter().flat_map(|&d| numbers.map(|n| (d, n)));
        for ((default, number), expected) in columns.zip(cells) {
            for &category in categories {
                let operands = [(a, category), (number, Category::Wrapped)];
                assert_eq!(result_type(operands, default), expected, "{a} {category:?} {number} {default}");
            }
        }
    }
}

#[test]
fn no_operands_have_no_type() {
    assert_eq!(result_type([], DType::F32), None);
}
