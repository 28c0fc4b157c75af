//! Makes the tensors of a sample, asks the rule, runs the kernel, compares.

use ltc_ir::{
    ArgFlags, ArgWriter, DType, EncodedArgs, ErrorClass, Layout, RuntimeScalars, Scalar, ShapeError,
    rules::Call,
    table::{ArgKind, ArgSpec, Row},
};
use ltc_torch_sys::TorchError;
use tch::{Kind, Tensor};

use super::sample::{Fill, TensorSpec, Value};

/// A call, ready for the rule and for the kernel.
#[derive(Debug)]
pub struct Made {
    /// Argument blob.
    pub words: EncodedArgs,
    /// Runtime numbers.
    pub numbers: RuntimeScalars,
    /// Tensors, in order.
    pub operands: Vec<Tensor>,
}

/// libtorch's kind of a dtype the matrix tests.
pub fn kind(dtype: DType) -> Kind {
    match dtype {
        DType::U8 => Kind::Uint8,
        DType::I8 => Kind::Int8,
        DType::I16 => Kind::Int16,
        DType::I32 => Kind::Int,
        DType::I64 => Kind::Int64,
        DType::F16 => Kind::Half,
        DType::F32 => Kind::Float,
        DType::F64 => Kind::Double,
        DType::C64 => Kind::ComplexFloat,
        DType::Bool => Kind::Bool,
        DType::BF16 => Kind::BFloat16,
        other => panic!("the matrix does not test {other}"),
    }
}

/// A tensor of these specifications; the same values each time.
pub fn tensor(spec: &TensorSpec, dtype: DType) -> Tensor {
    let dtype = spec.dtype.unwrap_or(dtype);
    let strides = spec.strides.clone().unwrap_or_else(|| ltc_ir::layout::contiguous_strides(&spec.sizes).to_vec());
    let n = ltc_ir::layout::storage_elements(&spec.sizes, &strides).max(0);
    let mut x = 0x9E37_79B9_7F4A_7C15u64.wrapping_add(n as u64);
    let mut next = || {
        x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (x >> 33) as i64
    };
    let value = |k: i64| match (spec.fill, dtype) {
        (Fill::Below(bound), _) => (k % bound.max(1)) as f64,
        (Fill::Unit, _) => (k % 64) as f64 / 65.0 + 0.005,
        (_, DType::Bool) => (k % 2) as f64,
        (_, DType::U8) => (k % 8) as f64,
        (_, d) if d.is_integral(true) => (k % 9 - 4) as f64,
        _ => (k % 64) as f64 / 8.0 - 4.0 + 0.0625,
    };
    let values: Vec<f64> = (0..n).map(|_| value(next())).collect();
    let flat = Tensor::from_slice(&values).to_kind(kind(dtype));
    let t = flat.as_strided(&spec.sizes, &strides, 0);
    if spec.fill == Fill::Definite && spec.sizes.len() >= 2 && dtype.is_floating() {
        let size = spec.sizes[spec.sizes.len() - 1];
        if spec.sizes[spec.sizes.len() - 2] == size {
            return t.matmul(&t.transpose(-1, -2)) + Tensor::eye(size, (kind(dtype), tch::Device::Cpu)) * 3.0;
        }
    }
    t
}

/// Encodes a call.
pub fn make(row: &Row, values: &[Value], dtype: DType) -> Made {
    let mut w = ArgWriter::new();
    let mut operands = Vec::new();
    for (a, v) in row.arguments.iter().zip(values) {
        argument(&mut w, &mut operands, a, v, dtype);
    }
    let (words, numbers) = w.finish();
    Made { words, numbers, operands }
}

fn argument(w: &mut ArgWriter, operands: &mut Vec<Tensor>, a: &ArgSpec, v: &Value, dtype: DType) {
    let int = |s: Scalar| match s {
        Scalar::Bool(b) => i64::from(b),
        Scalar::Int(i) => i,
        Scalar::Float(x) | Scalar::Complex(x, _) => x as i64,
    };
    let float = |s: Scalar| match s {
        Scalar::Float(x) => x,
        s => int(s) as f64,
    };
    match (v, a.kind) {
        (Value::None, _) => w.none(),
        (Value::Tensor(t), _) => {
            operands.push(tensor(t, dtype));
            w.tensor_with(if a.written { ArgFlags::MUT } else { ArgFlags::NONE })
        }
        (Value::Tensors(list), _) => {
            operands.extend(list.iter().flatten().map(|t| tensor(t, dtype)));
            let present: Vec<bool> = list.iter().map(Option::is_some).collect();
            w.tensors(&present, ArgFlags::NONE)
        }
        (Value::Number(n), ArgKind::Tensor) => w.wrapped(*n),
        (Value::Number(n), ArgKind::Scalar) => w.number(*n),
        (Value::Number(n), ArgKind::Float) => w.float(float(*n)),
        (Value::Number(n), ArgKind::Bool) => w.bool(int(*n) != 0),
        (Value::Number(n), _) => w.int(int(*n)),
        (Value::Ints(l), ArgKind::Bools) => w.bools(&l.iter().map(|&x| x != 0).collect::<Vec<_>>()),
        (Value::Ints(l), ArgKind::Floats) => w.floats(&l.iter().map(|&x| x as f64).collect::<Vec<_>>()),
        (Value::Ints(l), _) => w.ints(l),
        (Value::Str(s), _) => w.str(s),
        (Value::DType(d), _) => w.int(*d as i64),
    };
}

/// Layout of an eager tensor.
pub fn layout(t: &Tensor) -> Layout {
    let code = t.kind() as i32;
    let dtype = DType::ALL.into_iter().find(|d| matches!(code_of(t.kind()), Some(c) if c == *d as i32));
    Layout::strided(dtype.unwrap_or_else(|| panic!("kind {code}")), &t.size(), &t.stride())
}

fn code_of(kind: Kind) -> Option<i32> {
    Some(match kind {
        Kind::Uint8 => 0,
        Kind::Int8 => 1,
        Kind::Int16 => 2,
        Kind::Int => 3,
        Kind::Int64 => 4,
        Kind::Half => 5,
        Kind::Float => 6,
        Kind::Double => 7,
        Kind::ComplexHalf => 8,
        Kind::ComplexFloat => 9,
        Kind::ComplexDouble => 10,
        Kind::Bool => 11,
        Kind::BFloat16 => 15,
        _ => return None,
    })
}

/// What the rule answers.
///
/// # Errors
/// The rule's own; of class `OutOfMemory` where it panicked.
pub fn by_rule(row: &Row, made: &Made) -> Result<Vec<Layout>, ShapeError> {
    let layouts: Vec<Layout> = made.operands.iter().map(layout).collect();
    let refs: Vec<&Layout> = layouts.iter().collect();
    let call = Call::decode(row.name, &made.words, &refs, &made.numbers).expect("a well-formed call");
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (row.rule)(&call)));
    let answer = answer
        .unwrap_or_else(|_| Err(ShapeError { class: ErrorClass::OutOfMemory, message: "THE RULE PANICKED".into() }));
    Ok(answer?.into_iter().flatten().collect())
}

/// What the kernel answers.
///
/// # Errors
/// The kernel's own.
pub fn by_kernel(row: &Row, made: &Made) -> Result<Vec<Tensor>, TorchError> {
    let refs: Vec<&Tensor> = made.operands.iter().collect();
    let made = ltc_torch_sys::probe(row.name, &made.words, &refs, &made.numbers)?;
    Ok(made.into_iter().map(Tensor::from).collect())
}

/// How many arguments an operator writes; their new values come before the new results.
pub fn written(row: &Row) -> usize {
    row.arguments.iter().filter(|a| a.written).count()
}

/// Whether a layout is what users see of the tensor: strides of sizes 0 and 1 say nothing.
pub fn same_layout(rule: &Layout, kernel: &Layout) -> bool {
    let visible = |l: &Layout| -> Vec<Option<i64>> {
        let dims = l.sizes().iter().zip(l.strides());
        dims.map(|(&n, &s)| (n > 1 && l.numel() > 0).then_some(s)).collect()
    };
    rule.dtype() == kernel.dtype() && rule.sizes() == kernel.sizes() && visible(rule) == visible(kernel)
}

/// Compares rule and kernel on one call; `Err` says how they differ.
///
/// # Errors
/// Says how they differ.
pub fn compare(row: &Row, made: &Made, spoilt: bool) -> Result<(), String> {
    match (by_rule(row, made), by_kernel(row, made)) {
        (Ok(rule), Ok(kernel)) => {
            let kernel: Vec<Layout> = kernel.iter().skip(written(row)).map(layout).collect();
            let same = rule.len() == kernel.len() && rule.iter().zip(&kernel).all(|(r, k)| same_layout(r, k));
            if same { Ok(()) } else { Err(format!("rule {rule:?}, kernel {kernel:?}")) }
        }
        (Err(rule), Err(kernel)) if rule.class == kernel.class => Ok(()),
        (Err(rule), Err(kernel)) => {
            Err(format!("rule raises {:?} `{rule}`, kernel {:?} `{}`", rule.class, kernel.class, first_line(&kernel)))
        }
        (Ok(_), Err(kernel)) if about_values(&kernel, spoilt) => Ok(()),
        (Ok(rule), Err(kernel)) => {
            Err(format!("rule {rule:?}, kernel raises {:?} `{}`", kernel.class, first_line(&kernel)))
        }
        (Err(rule), Ok(kernel)) => {
            let kernel: Vec<Layout> = kernel.iter().map(layout).collect();
            Err(format!("rule raises {:?} `{rule}`, kernel {kernel:?}", rule.class))
        }
    }
}

fn first_line(e: &TorchError) -> String {
    e.message.lines().next().unwrap_or_default().to_owned()
}

/// Errors that no rule can foresee: a kernel without a case for the dtype, an integer
/// divisor of zero, and in spoilt calls values out of range.
fn about_values(e: &TorchError, spoilt: bool) -> bool {
    let m = e.message.to_lowercase();
    let unsupported = ["not implemented for", "not supported for", "unsupported", "does not support"];
    let values = ["out of range", "out of bounds", "singular", "not positive-definite", "failed to converge"];
    unsupported.iter().any(|u| m.contains(u))
        || m.contains("zerodivisionerror")
        || spoilt && values.iter().any(|v| m.contains(v))
}
