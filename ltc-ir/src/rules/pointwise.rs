//! Pointwise operators: broadcasting, dtype promotion, strides.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::{Call, NewResults, ShapeError, iterator::broadcast_layout, one};
use crate::{
    args::Arg,
    dtype::DType,
    layout::Layout,
    promote::{Category, result_type},
};

/// The dtype floating-point results have when no operand is a float.
const DEFAULT: DType = DType::F32;

/// Tensor operands, and how much say each argument has in the dtype.
struct Operands<'a> {
    layouts: SmallVec<[&'a Layout; 4]>,
    dtypes: SmallVec<[(DType, Category); 4]>,
}

/// What a host number broadcasts as.
static SCALAR: LazyLock<Layout> = LazyLock::new(|| Layout::contiguous(DType::F32, &[]));

impl<'a> Operands<'a> {
    /// Of the tensor arguments; schema `Scalar`s count as wrapped numbers when `numbers`.
    fn of(call: &Call<'a>, numbers: bool) -> Operands<'a> {
        let mut o = Operands { layouts: SmallVec::new(), dtypes: SmallVec::new() };
        for (i, arg) in call.args.iter().enumerate() {
            match arg {
                Arg::Tensor { .. } => {
                    if let Some(layout) = call.tensor(i) {
                        o.layouts.push(layout);
                        o.dtypes.push((layout.dtype(), Category::of_rank(layout.rank())));
                    }
                }
                Arg::HostScalar { dtype, wrapped, .. } => {
                    o.layouts.push(&SCALAR);
                    o.dtypes.push((*dtype, if *wrapped { Category::Wrapped } else { Category::ZeroDim }));
                }
                Arg::Number { dtype, .. } if numbers => {
                    o.layouts.push(&SCALAR);
                    o.dtypes.push((*dtype, Category::Wrapped));
                }
                _ => {}
            }
        }
        o
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, ShapeError> {
        result_type(self.dtypes.iter().copied(), DEFAULT)
            .ok_or_else(|| ShapeError::runtime(format!("{}: the operands' dtypes do not promote", call.op)))
    }

    fn result(&self, dtype: DType) -> Result<NewResults, ShapeError> {
        one(broadcast_layout(&self.layouts, dtype)?)
    }

    /// A result over operands that libtorch casts to `common` first: what decides its strides is how they lie then.
    fn result_of_casts(&self, common: DType, dtype: DType) -> Result<NewResults, ShapeError> {
        let is_moved = |l: &&Layout| l.dtype() != common && !l.is_dense();
        if !self.layouts.iter().any(is_moved) {
            return self.result(dtype);
        }
        let casts: SmallVec<[Option<Layout>; 4]> =
            self.layouts.iter().map(|l| is_moved(l).then(|| super::empty_like(l, Some(common)))).collect();
        let layouts: SmallVec<[&Layout; 4]> =
            casts.iter().zip(&self.layouts).map(|(cast, l)| cast.as_ref().unwrap_or(l)).collect();
        one(broadcast_layout(&layouts, dtype)?)
    }
}

fn floating(dtype: DType) -> DType {
    if dtype.is_integral(true) { DEFAULT } else { dtype }
}

/// The common dtype of all tensor operands.
///
/// # Errors
/// Fails where dtypes do not promote, or sizes do not broadcast.
pub fn promoted(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, false);
    let dtype = o.common(call)?;
    o.result_of_casts(dtype, dtype)
}

/// The common dtype of tensor operands and numbers.
///
/// # Errors
/// As [`promoted`].
pub fn promoted_numbers(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    let dtype = o.common(call)?;
    o.result_of_casts(dtype, dtype)
}

/// The common dtype, or the default float where that is an integer.
///
/// # Errors
/// As [`promoted`].
pub fn float(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, false);
    let dtype = floating(o.common(call)?);
    o.result_of_casts(dtype, dtype)
}

/// As [`float`], with numbers.
///
/// # Errors
/// As [`promoted`].
pub fn float_numbers(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    let dtype = floating(o.common(call)?);
    o.result_of_casts(dtype, dtype)
}

/// Booleans over operands whose dtypes promote.
///
/// # Errors
/// As [`promoted`].
pub fn boolean(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    o.result_of_casts(o.common(call)?, DType::Bool)
}

/// Booleans of each operand by itself.
///
/// # Errors
/// Fails where sizes do not broadcast.
pub fn logical(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    Operands::of(call, false).result(DType::Bool)
}

/// The first operand's dtype.
///
/// # Errors
/// Fails where sizes do not broadcast, or the first argument is no tensor.
pub fn like_self(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, false);
    o.result(call.need(0)?.dtype())
}

/// As [`float`], of one operand that must not be complex where the kernel has no such case.
///
/// # Errors
/// As [`promoted`]; also for integers and booleans.
pub fn float_only(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, false);
    let dtype = o.common(call)?;
    if dtype.is_integral(true) {
        return Err(not_implemented(call, dtype));
    }
    o.result(dtype)
}

/// The common dtype, which must not be boolean.
///
/// # Errors
/// As [`promoted`]; also for booleans.
pub fn no_bool(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    let dtype = o.common(call)?;
    if dtype == DType::Bool {
        return Err(not_implemented(call, dtype));
    }
    o.result_of_casts(dtype, dtype)
}

/// `threshold(self, threshold, value)`: the numbers do not promote.
///
/// # Errors
/// As [`no_bool`].
pub fn threshold(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    no_bool(call)?;
    like_self(call)
}

/// The common dtype, which must be an integer.
///
/// # Errors
/// As [`promoted`]; also for other than integers and booleans.
pub fn integral(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    let dtype = o.common(call)?;
    if !dtype.is_integral(true) {
        return Err(not_implemented(call, dtype));
    }
    o.result_of_casts(dtype, dtype)
}

fn not_implemented(call: &Call<'_>, dtype: DType) -> ShapeError {
    super::checks::not_implemented(call.short_op(), dtype)
}

/// Magnitudes: of complex numbers they are real.
///
/// # Errors
/// As [`promoted`].
pub fn real(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, false);
    o.result(super::real_of(o.common(call)?))
}

/// `sub`: booleans have none.
///
/// # Errors
/// As [`promoted`]; also where one of both is of booleans.
pub fn sub(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let o = Operands::of(call, true);
    let is_bool = |d: &(DType, Category)| d.0 == DType::Bool;
    if o.dtypes.iter().all(is_bool) {
        return Err(ShapeError::runtime(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead.",
        ));
    }
    if o.dtypes.iter().take(2).any(is_bool) {
        return Err(ShapeError::runtime(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, \
             use the `~` or `logical_not()` operator instead.",
        ));
    }
    let dtype = o.common(call)?;
    o.result_of_casts(dtype, dtype)
}

/// `rsub(self, other, alpha)`: the numbers do not promote.
///
/// # Errors
/// As [`sub`].
pub fn rsub(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    sub(call)?;
    let mut o = Operands::of(call, true);
    o.dtypes.truncate(2);
    o.layouts.truncate(2);
    let dtype = o.common(call)?;
    o.result_of_casts(dtype, dtype)
}

/// `rsub(self, other)` of tensors: laid out like the tensor that is subtracted from.
///
/// # Errors
/// As [`sub`].
pub fn rsub_tensor(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = sub(call)?.into_iter().flatten().next().map_or(DEFAULT, |l| l.dtype());
    let mut o = Operands::of(call, false);
    o.layouts.reverse();
    o.result(dtype)
}

/// `heaviside(self, values)`: both of one dtype.
///
/// # Errors
/// As [`promoted`]; also where dtypes differ.
pub fn heaviside(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    if call.need(0)?.dtype() != call.need(1)?.dtype() {
        return Err(ShapeError::runtime("heaviside is not yet implemented for tensors with different dtypes."));
    }
    promoted(call)
}

/// `neg`: booleans have none.
///
/// # Errors
/// As [`promoted`]; also for booleans.
pub fn neg(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    if call.need(0)?.dtype() == DType::Bool {
        return Err(ShapeError::runtime(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use \
             the `~` or `logical_not()` operator instead.",
        ));
    }
    promoted(call)
}

/// `relu(self)`, which is a maximum with a number to libtorch.
///
/// # Errors
/// As [`promoted`]; also for booleans.
pub fn relu(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    if call.need(0)?.dtype() == DType::Bool {
        return Err(ShapeError::runtime("Boolean inputs not supported for relu"));
    }
    promoted(call)
}

/// `div(self, other, rounding_mode)`: rounded quotients keep integers.
///
/// # Errors
/// As [`promoted`].
pub fn div_mode(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let rounds = matches!(call.args.get(2), Some(Arg::Str { .. }));
    if rounds { promoted_numbers(call) } else { float_numbers(call) }
}

/// `where(condition, self, other)`: the condition has no say in the dtype, but in the layout.
///
/// # Errors
/// As [`promoted`]; also for a condition that is not of booleans or bytes.
pub fn where_self(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let mut o = Operands::of(call, true);
    let Some(&(condition, _)) = o.dtypes.first() else {
        return Err(ShapeError::runtime(format!("{}: argument 0 must be a tensor", call.op)));
    };
    o.dtypes.remove(0);
    if !matches!(condition, DType::Bool | DType::U8) {
        return Err(ShapeError::runtime(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            super::cxx_name(condition)
        )));
    }
    let dtype = o.common(call)?;
    o.result_of_casts(dtype, dtype)
}

/// `lerp(self, end, weight)`: all of one dtype.
///
/// # Errors
/// As [`promoted`]; also where dtypes differ, that of a weight without dimensions apart.
pub fn lerp(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, end) = (call.need(0)?, call.need(1)?);
    // A weight without dimensions promotes.
    let weight = call.tensor(2).filter(|w| w.rank() > 0).map_or(x.dtype(), Layout::dtype);
    for (dtype, what) in [(end.dtype(), "`end`"), (weight, "`weight`")] {
        if dtype != x.dtype() {
            return Err(ShapeError::runtime(format!(
                "expected dtype {} for {what} but got dtype {}",
                super::c_name(x.dtype()),
                super::c_name(dtype)
            )));
        }
    }
    promoted(call)
}

/// `masked_fill(self, mask, value)`: row-major, of the first operand's dtype.
///
/// # Errors
/// Fails for a mask that is not of booleans, for a value with dimensions, and where the mask does not broadcast with
/// `self`.
pub fn masked_fill(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, mask) = (call.need(0)?, call.need(1)?);
    if mask.dtype() != DType::Bool {
        return Err(ShapeError::runtime(
            "masked_fill only supports boolean masks, but got mask with dtype ".to_owned()
                + super::c_name(mask.dtype()),
        ));
    }
    if call.tensor(2).is_some_and(|v| v.rank() > 0) {
        return Err(ShapeError::runtime(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            call.need(2)?.rank()
        )));
    }
    one(Layout::contiguous(x.dtype(), &super::broadcast(&[mask.sizes(), x.sizes()])?))
}

/// `fill(self, value)`: with a number, or a tensor without dimensions.
///
/// # Errors
/// As [`like_self`]; also for a value with dimensions.
pub fn fill(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    match call.tensor(1).map(Layout::rank) {
        Some(rank @ 1..) => Err(ShapeError::runtime(format!(
            "fill_ only supports 0-dimension value tensor but got tensor with {rank} dimensions."
        ))),
        _ => like_self(call),
    }
}

/// `clamp(self, min, max)`: one of them must be there.
///
/// # Errors
/// As [`promoted`]; also where there is neither bound.
pub fn clamp(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    if call.args.iter().skip(1).all(|a| matches!(a, Arg::None)) {
        return Err(ShapeError::runtime("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    promoted_numbers(call)
}

/// `bitwise` operators take integers and booleans.
///
/// # Errors
/// As [`integral`].
pub fn bitwise(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    integral(call)
}

/// `log_sigmoid_forward(self)`: the result and a buffer its gradient reads.
///
/// # Errors
/// Fails where `self` is no tensor.
pub fn log_sigmoid_forward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    let like = Layout::contiguous(x.dtype(), x.sizes());
    Ok(SmallVec::from_iter([Some(like.clone()), Some(like)]))
}

/// Results like the second operand (`(grad, self, ...)`), row-major when it is.
///
/// # Errors
/// As [`promoted`].
pub fn gradient(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    promoted(call)
}

/// As [`gradient`], of operands of one dtype.
///
/// # Errors
/// As [`promoted`]; also where dtypes differ.
pub fn gradient_of_one_dtype(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    super::checks::one_dtype(call, &[0, 1, 2])?;
    promoted(call)
}

/// `gelu_backward(grad, self, approximate)`: oneDNN's kernel neither promotes nor broadcasts.
///
/// # Errors
/// As [`promoted`]; also, of what oneDNN's kernel takes, where sizes or dtypes differ.
pub fn gelu_backward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (grad, x) = (call.need(0)?, call.need(1)?);
    if call.text(2).as_deref() == Some("none") && x.dtype() == DType::F32 && x.is_contiguous() && x.numel() > 1 {
        super::checks::one_dtype(call, &[1, 0])?;
        super::checks::sizes_are("grad_output", grad, x.sizes())?;
    }
    promoted(call)
}

/// `square(self)`: of booleans, integers.
///
/// # Errors
/// As [`like_self`].
pub fn square(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let dtype = call.need(0)?.dtype();
    Operands::of(call, false).result(if dtype == DType::Bool { DType::I64 } else { dtype })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strides of a result of `common` over these, which are cast to it or, with `as_they_lie`, are not.
    fn strides(operands: &[Layout], common: DType, as_they_lie: bool) -> Vec<i64> {
        let operands = Operands { layouts: operands.iter().collect(), dtypes: SmallVec::new() };
        let results = if as_they_lie { operands.result(common) } else { operands.result_of_casts(common, common) };
        let result = results.expect("sizes broadcast").into_iter().flatten().next().expect("one result");
        result.strides().to_vec()
    }

    /// As libtorch 2.11 answers on the CPU: `exp` of integers, bytes plus halves.
    #[test]
    fn operands_that_are_cast_are_dense_when_strides_are_chosen() {
        let diagonal = [Layout::strided(DType::I64, &[1, 4], &[4, 5])];
        assert_eq!(strides(&diagonal, DType::F32, false), [4, 1]);
        assert_ne!(strides(&diagonal, DType::F32, true), [4, 1]);
        let expanded = Layout::strided(DType::U8, &[4, 4], &[1, 0]);
        let mixed = [expanded, Layout::strided(DType::F16, &[4, 4], &[1, 4])];
        assert_eq!(strides(&mixed, DType::F16, false), [4, 1]);
        assert_eq!(strides(&mixed, DType::F16, true), [1, 4]);
    }
}
