//! MPS, where libtorch has no such device, as another name of the lazy one.

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
};

/// Whether this libtorch has MPS devices, or [`name_mps`] made the type a name.
pub fn has_mps() -> bool {
    // SAFETY: no preconditions.
    unsafe { ffi::ltc_has_mps() != 0 }
}

/// Makes MPS another name of the registered lazy device: what is asked of an MPS device, which is to have no index, is
/// done on the current lazy one. No tensor of the type MPS comes to be.
///
/// # Errors
/// Fails when this libtorch has MPS devices, and on a second call.
pub fn name_mps() -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: `err` is valid, and takes what is thrown.
    unsafe { err.check(ffi::ltc_name_mps(err.as_ptr())) }
}
