//! Which numbers of a call libtorch refuses, whatever the layouts: those that its kernels cannot convert to the type
//! they compute in, and those outside an operator's range.
//!
//! A signature serves calls with other numbers, so these rules are asked at each call of an operator whose row names
//! one (`numbers = "..."`). They fail with libtorch's words and the class of its exception.

use smallvec::SmallVec;

use super::{ShapeError, c_name};
use crate::{
    args::{Arg, ArgReader, scalar_words},
    dtype::DType,
    scalar::Scalar,
};

/// A rule.
pub type NumberRule = fn(given: &Numbers<'_>) -> Result<(), ShapeError>;

/// The numbers of a call.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    words: &'a [u64],
    values: &'a [u64],
    dtype: DType,
}

impl<'a> Numbers<'a> {
    /// Of a call with these encoded arguments and runtime scalars, whose first result is of this dtype.
    pub fn new(words: &'a [u64], values: &'a [u64], dtype: DType) -> Self {
        Numbers { words, values, dtype }
    }

    /// Numbers in the order of the arguments, lists taken apart; complex ones are left out.
    fn each(&self) -> SmallVec<[f64; 4]> {
        let mut found = SmallVec::new();
        let mut push = |dtype, at| found.extend(self.number(dtype, at));
        for arg in ArgReader::new(self.words) {
            match arg {
                Arg::Float { number } => push(DType::F64, number),
                Arg::Number { number, dtype } => push(dtype, number),
                Arg::Numbers { dtypes, first_number } => {
                    let mut at = first_number;
                    for dtype in dtypes.iter().filter_map(|&code| DType::from_code(u8::try_from(code).ok()?)) {
                        push(dtype, at);
                        at += scalar_words(dtype);
                    }
                }
                _ => (),
            }
        }
        found
    }

    /// The number that begins at a word, as a float; `None` for a complex one.
    fn number(&self, dtype: DType, at: usize) -> Option<f64> {
        match Scalar::from_words(dtype, self.values.get(at..)?)? {
            Scalar::Float(v) => Some(v),
            Scalar::Int(v) => Some(v as f64),
            Scalar::Bool(v) => Some(f64::from(u8::from(v))),
            Scalar::Complex(..) => None,
        }
    }

    /// What kernels of halves compute in; other dtypes as they are.
    fn computed(&self) -> DType {
        if matches!(self.dtype, DType::F16 | DType::BF16) { DType::F32 } else { self.dtype }
    }

    fn first(&self, default: f64) -> f64 {
        self.each().first().copied().unwrap_or(default)
    }

    /// Whether there is an integer among the numbers.
    fn is_whole(&self) -> bool {
        ArgReader::new(self.words).any(|arg| matches!(arg, Arg::Number { dtype: DType::I64, .. }))
    }

    fn flag(&self) -> bool {
        ArgReader::new(self.words).any(|arg| matches!(arg, Arg::Bool(true)))
    }
}

/// The largest number of a float dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// NaN and the infinities fit everywhere.
fn fits(value: f64, dtype: DType) -> Result<(), ShapeError> {
    if value.is_finite() && value.abs() > largest(dtype) {
        let name = c_name(dtype);
        return Err(ShapeError::runtime(format!("value cannot be converted to type {name} without overflow")));
    }
    Ok(())
}

fn all_fit(given: &Numbers<'_>, dtype: DType) -> Result<(), ShapeError> {
    given.each().into_iter().try_for_each(|v| fits(v, dtype))
}

/// Kernels convert all numbers to the dtype of the result.
///
/// # Errors
/// Fails for a number that the dtype of the result does not hold.
pub fn own(given: &Numbers<'_>) -> Result<(), ShapeError> {
    all_fit(given, given.dtype)
}

/// Kernels convert all numbers to what they compute in, which is single precision for halves.
///
/// # Errors
/// Fails for a number that the dtype kernels compute in does not hold.
pub fn computed(given: &Numbers<'_>) -> Result<(), ShapeError> {
    all_fit(given, given.computed())
}

/// As [`own`], of a number that is stored; integers do not hold all either.
///
/// # Errors
/// As [`own`].
pub fn stored(given: &Numbers<'_>) -> Result<(), ShapeError> {
    let (name, least, most) = match given.dtype {
        // Negative whole numbers are taken modulo 256.
        DType::U8 => ("uint8_t", if given.is_whole() { -255.0 } else { 0.0 }, 255.0),
        DType::I8 => ("int8_t", -128.0, 127.0),
        DType::I16 => ("int16_t", -32768.0, 32767.0),
        DType::I32 => ("int", f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => ("int64_t", i64::MIN as f64, i64::MAX as f64),
        _ => return own(given),
    };
    if given.each().iter().all(|v| (least..=most).contains(v)) {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("value cannot be converted to type {name} without overflow")))
}

/// As [`stored`]; halves round to infinity.
///
/// # Errors
/// As [`stored`].
pub fn scalar_tensor(given: &Numbers<'_>) -> Result<(), ShapeError> {
    if given.computed() == given.dtype { stored(given) } else { Ok(()) }
}

/// As [`own`], of the third argument, `alpha`: the other operand may be any.
///
/// # Errors
/// As [`own`].
pub fn alpha(given: &Numbers<'_>) -> Result<(), ShapeError> {
    let Some(Arg::Number { number, dtype }) = ArgReader::new(given.words).nth(2) else { return Ok(()) };
    given.number(dtype, number).map_or(Ok(()), |v| fits(v, given.dtype))
}

/// As [`own`], but where one bound is NaN, results are NaN and the other bound is not looked at.
///
/// # Errors
/// As [`own`].
pub fn clamp(given: &Numbers<'_>) -> Result<(), ShapeError> {
    if given.each().iter().any(|v| v.is_nan()) { Ok(()) } else { own(given) }
}

/// `delta` is a positive length.
///
/// # Errors
/// Fails for any other number.
pub fn huber_loss(given: &Numbers<'_>) -> Result<(), ShapeError> {
    if given.first(1.0) > 0.0 {
        return Ok(());
    }
    Err(ShapeError::runtime("huber_loss does not support non-positive values for delta."))
}

/// `beta` is a length.
///
/// # Errors
/// Fails for a negative number and NaN.
pub fn smooth_l1_loss(given: &Numbers<'_>) -> Result<(), ShapeError> {
    if given.first(1.0) >= 0.0 {
        return Ok(());
    }
    Err(ShapeError::runtime("smooth_l1_loss does not support negative values for beta."))
}

/// `threshold` is compared in what kernels compute in, `value` is stored.
///
/// # Errors
/// As [`computed`] and [`own`].
pub fn threshold(given: &Numbers<'_>) -> Result<(), ShapeError> {
    let dtypes = [given.computed(), given.dtype];
    given.each().into_iter().zip(dtypes).try_for_each(|(v, dtype)| fits(v, dtype))
}

/// Kernels divide by `alpha`.
///
/// # Errors
/// Fails for zero, and where the number or its reciprocal is beyond what kernels compute in.
pub fn celu(given: &Numbers<'_>) -> Result<(), ShapeError> {
    let alpha = given.first(1.0);
    if alpha == 0.0 {
        return Err(ShapeError::runtime("ZeroDivisionError: alpha cannot be 0 for CELU"));
    }
    [alpha, 1.0 / alpha].into_iter().try_for_each(|v| fits(v, given.computed()))
}

/// `lambd` is a finite length.
///
/// # Errors
/// Fails for a negative number, NaN, and one that the dtype of the result does not hold.
pub fn softshrink(given: &Numbers<'_>) -> Result<(), ShapeError> {
    let lambd = given.first(0.5);
    let most = largest(given.dtype);
    if (0.0..=most).contains(&lambd) {
        return Ok(());
    }
    let dtype = super::cxx_name(given.dtype);
    Err(ShapeError::runtime(format!(
        "lambda must be in range [0, {}] for input dtype {dtype}, but found {lambd}",
        short(most)
    )))
}

/// Six digits, as C++ prints a number.
fn short(v: f64) -> String {
    let text = format!("{v:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e+{exponent}", digits.trim_end_matches('0'))
}

fn of_result(given: &Numbers<'_>, slope: f64, name: &str) -> Result<(), ShapeError> {
    if given.flag() && slope < 0.0 {
        return Err(ShapeError::runtime(format!(
            "In-place {name} backward calculation is triggered with a negative slope which is not supported. This is \
             caused by calling in-place forward function with a negative slope, please call out-of-place version \
             instead."
        )));
    }
    computed(given)
}

/// Of a result, the sign of `alpha` must be known to be positive.
///
/// # Errors
/// Fails for a negative number where the gradient follows from the result; also as [`computed`].
pub fn elu_backward(given: &Numbers<'_>) -> Result<(), ShapeError> {
    of_result(given, given.first(1.0), "elu")
}

/// As [`elu_backward`], of `negative_slope`.
///
/// # Errors
/// As [`elu_backward`].
pub fn leaky_relu_backward(given: &Numbers<'_>) -> Result<(), ShapeError> {
    of_result(given, given.first(0.01), "leakyReLu")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgWriter, Op, props::Props};

    fn refusal(op: &str, dtype: DType, numbers: &[Scalar]) -> Option<String> {
        let mut writer = ArgWriter::new();
        writer.tensor();
        if !op.starts_with("aten::_foreach_") && op.contains("add") {
            writer.tensor();
        }
        for &n in numbers {
            writer.number(n);
        }
        let (words, values) = writer.finish();
        let rule = Op::intern(op, Props::NONE).spec().numbers.expect("the row names a rule");
        rule(&Numbers::new(&words, &values, dtype)).err().map(|e| e.message)
    }

    #[test]
    fn what_kernels_cannot_convert_is_refused() {
        let says = |op, dtype, v: f64| refusal(op, dtype, &[Scalar::Float(v)]);
        let words = |name| Some(format!("value cannot be converted to type {name} without overflow"));
        assert_eq!(says("aten::fill.Scalar", DType::F32, 1e39), words("float"));
        assert_eq!(says("aten::fill_.Scalar", DType::F16, -7e4), words("c10::Half"));
        assert_eq!(says("aten::full", DType::U8, 256.0), words("uint8_t"));
        assert_eq!(says("aten::full", DType::U8, -1.0), words("uint8_t"));
        assert_eq!(refusal("aten::full", DType::U8, &[Scalar::Int(-1)]), None);
        assert_eq!(says("aten::full", DType::I64, f64::NAN), words("int64_t"));
        assert_eq!(says("aten::leaky_relu_", DType::BF16, 1e39), words("float"));
        assert_eq!(says("aten::add.Tensor", DType::BF16, 1e39), words("c10::BFloat16"));
        for fits in [f64::NAN, f64::INFINITY, -65504.0, 1e-46, -0.0] {
            assert_eq!(says("aten::fill.Scalar", DType::F16, fits), None);
        }
        assert_eq!(says("aten::fill.Scalar", DType::F64, 1e300), None);
        for whole in [70_000, -70_000, 1 << 62] {
            assert_eq!(refusal("aten::fill.Scalar", DType::F16, &[Scalar::Int(whole)]), words("c10::Half"));
        }
        assert_eq!(refusal("aten::_foreach_add.Scalar", DType::F32, &[Scalar::Float(1e39)]), None);
    }

    #[test]
    fn ranges_of_operators_are_theirs() {
        let says = |op, v: f64| refusal(op, DType::F32, &[Scalar::Float(v)]).unwrap_or_default();
        assert!(says("aten::celu", 0.0).contains("alpha cannot be 0"));
        assert!(says("aten::celu_", 1e-46).contains("without overflow"));
        assert_eq!(says("aten::celu", f64::NAN), "");
        for refused in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(says("aten::softshrink", refused).starts_with("lambda must be in range [0, 3.40282e+38]"));
        }
        assert_eq!(says("aten::softshrink", 0.0), "");
        for refused in [-1.0, 0.0, f64::NAN] {
            assert_eq!(says("aten::huber_loss", refused), "huber_loss does not support non-positive values for delta.");
        }
        assert_eq!(says("aten::huber_loss", 1e-46), "");
        let refused = [-1.0, f64::NAN].map(|v| says("aten::smooth_l1_loss", v));
        assert!(refused.iter().all(|said| said == "smooth_l1_loss does not support negative values for beta."));
        assert_eq!(says("aten::smooth_l1_loss", 0.0), "");
        let clamp = |bounds: [f64; 2]| refusal("aten::clamp", DType::F16, &bounds.map(Scalar::Float));
        assert_eq!([clamp([f64::NAN, 1e10]), clamp([1e10, f64::NAN])], [None, None]);
        assert!(clamp([0.0, 1e10]).is_some());
    }

    #[test]
    fn a_gradient_from_a_result_needs_its_sign() {
        let call = |is_result| {
            let (words, values) =
                ArgWriter::new().tensor().tensor().number(Scalar::Float(-0.5)).bool(is_result).finish();
            leaky_relu_backward(&Numbers::new(&words, &values, DType::F32)).is_err()
        };
        assert_eq!([call(false), call(true)], [false, true]);
    }
}
