//! The device as `tch` names it, and what makes tensors of `tch` on it without that name.

use ltc_ir::{DType, Layout};
use tch::{Device, Kind, Tensor, nn};

use crate::{Error, runtime, to_lazy};

/// The device, once it is [initialised](crate::init), as a `tch::Device`: what `tch` takes a device for is done there.
///
/// `tch::Device` has no name for devices of others, so this is one that libtorch has no device for: `Mps`. It is also
/// what `Tensor::device` answers for tensors on the device, whichever of them: [`device_of`](crate::device_of) says
/// which. Where there are several, this is `ltc:0`; tensors come to the others by [`to_device`](crate::to_device).
///
/// Before `init` it is an error, as a device that is not there is. A libtorch that has MPS devices is refused by `init`
/// ([`Options::tch_device`](crate::Options::tch_device)).
pub const DEVICE: Device = Device::Mps;

/// Moves all variables of a store to `ltc:0`, in place: layers and optimisers built from it, before or after, use the
/// moved ones.
///
/// # Errors
/// Fails where the device is not [initialised](crate::init), and for a variable of a kind that it does not have.
pub fn lazify(vs: &mut nn::VarStore) -> Result<(), Error> {
    let _no_grad = tch::no_grad_guard();
    for mut variable in vs.variables().into_values() {
        let moved = to_lazy(&variable.f_detach()?)?;
        variable.set_data(&moved);
    }
    Ok(())
}

fn dtype_of(kind: Kind) -> Result<DType, Error> {
    Ok(match kind {
        Kind::Uint8 => DType::U8,
        Kind::Int8 => DType::I8,
        Kind::Int16 => DType::I16,
        Kind::Int => DType::I32,
        Kind::Int64 => DType::I64,
        Kind::Half => DType::F16,
        Kind::Float => DType::F32,
        Kind::Double => DType::F64,
        Kind::ComplexHalf => DType::C32,
        Kind::ComplexFloat => DType::C64,
        Kind::ComplexDouble => DType::C128,
        Kind::Bool => DType::Bool,
        Kind::BFloat16 => DType::BF16,
        other => return Err(Error::Call(format!("{other:?} tensors are not supported on the ltc device"))),
    })
}

/// A tensor of this shape on `ltc:0` whose contents are not written yet.
///
/// # Errors
/// Fails where the device is not [initialised](crate::init), for a negative size, and for a kind that it does not have.
pub fn empty(size: &[i64], kind: Kind) -> Result<Tensor, Error> {
    runtime()?;
    if let Some(bad) = size.iter().find(|&&s| s < 0) {
        return Err(Error::Call(format!("Trying to create tensor with negative dimension {bad}: {size:?}")));
    }
    Ok(ltc_torch_sys::empty_lazy(&Layout::contiguous(dtype_of(kind)?, size), 0)?.into())
}

/// A tensor of zeros on `ltc:0`.
///
/// # Errors
/// As [`empty`].
pub fn zeros(size: &[i64], kind: Kind) -> Result<Tensor, Error> {
    Ok(empty(size, kind)?.f_zero_()?)
}

/// A tensor of ones on `ltc:0`.
///
/// # Errors
/// As [`empty`].
pub fn ones(size: &[i64], kind: Kind) -> Result<Tensor, Error> {
    full(size, 1, kind)
}

/// A tensor filled with a number on `ltc:0`.
///
/// # Errors
/// As [`empty`]; also for a number that is none of the kind.
pub fn full(size: &[i64], value: impl Into<tch::Scalar>, kind: Kind) -> Result<Tensor, Error> {
    Ok(empty(size, kind)?.f_fill_(value)?)
}
