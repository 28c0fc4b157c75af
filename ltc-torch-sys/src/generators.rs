//! The default generators of lazy devices.

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
    tensor,
};

/// Seeds the default generator of a lazy device.
///
/// # Errors
/// Fails for a device that there is not, and as [`crate::Recorder::seed`].
pub fn seed_default_generator(device: u16, seed: u64) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: no preconditions.
    unsafe { err.check(ffi::ltc_default_generator_seed(i32::from(device), seed, err.as_ptr())) }
}

/// Seed of the default generator of a lazy device.
///
/// # Errors
/// Fails for a device that there is not.
pub fn default_generator_seed(device: u16) -> Result<u64, TorchError> {
    let (err, mut seed) = (ErrorSlot::new(), 0);
    // SAFETY: `seed` is valid for the call; no state is asked for.
    unsafe {
        let state = std::ptr::null_mut();
        err.check(ffi::ltc_default_generator_get(i32::from(device), state, &mut seed, err.as_ptr()))?;
    }
    Ok(seed)
}

/// State of the default generator of a lazy device, as libtorch's CPU generators give it: a sync point and a wait.
///
/// # Errors
/// Fails for a device that there is not, and as [`crate::Recorder::generator_state`].
pub fn default_generator_state(device: u16) -> Result<Tensor, TorchError> {
    let (err, mut seed, mut state) = (ErrorSlot::new(), 0, std::ptr::null_mut());
    // SAFETY: both are valid for the call; on success the tensor is ours.
    unsafe {
        err.check(ffi::ltc_default_generator_get(i32::from(device), &mut state, &mut seed, err.as_ptr()))?;
        Ok(Tensor::from_raw(state))
    }
}

/// What holds the state of the default generator of a lazy device. `S` must be the registered recorder's storage type.
///
/// # Errors
/// Fails for a device that there is not, and where another storage type than `S` is registered, or none.
pub fn default_generator_storage<S: 'static>(device: u16) -> Result<&'static S, TorchError> {
    tensor::check_storage_type::<S>()?;
    let (err, mut slot) = (ErrorSlot::new(), std::ptr::null());
    // SAFETY: `slot` is valid for the call; on success it is the slot of a generator that lives as long as the process,
    // which holds an `S` (checked above).
    unsafe {
        err.check(ffi::ltc_default_generator_slot(i32::from(device), &mut slot, err.as_ptr()))?;
        Ok(&*slot.cast::<S>())
    }
}

/// Sets the state of the default generator of a lazy device.
///
/// # Errors
/// Fails for a device that there is not, for a tensor that is no state of a generator, and as
/// [`crate::Recorder::set_generator_state`].
pub fn set_default_generator_state(device: u16, state: &impl AsTensor) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: a live tensor.
    unsafe { err.check(ffi::ltc_default_generator_set(i32::from(device), raw(state), err.as_ptr())) }
}
