//! Captures: which storages and generators a thread uses.

use std::{ops::Deref, ptr::NonNull};

use ltc_ir::View;

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::Tensor,
    tensor::{check_storage_type, dims_of},
};

/// Keeps the storage of a lazy tensor, or a lazy generator, alive.
pub struct Hold<S> {
    raw: *mut ffi::LtcHold,
    storage: NonNull<S>,
}

// SAFETY: the C++ object is a pair of atomically counted pointers, and `S` is `Send + Sync` by `Recorder::Storage`.
unsafe impl<S: Send + Sync> Send for Hold<S> {}
// SAFETY: shared access only reads the pair and what it points to, and `S` is `Sync`.
unsafe impl<S: Send + Sync> Sync for Hold<S> {}

impl<S> Hold<S> {
    /// Whether somebody else holds it too. The default generators live for ever: always held.
    pub fn is_shared(&self) -> bool {
        // SAFETY: `raw` is a live hold.
        unsafe { ffi::ltc_hold_is_shared(self.raw) != 0 }
    }

    /// A tensor that shows `view` of it.
    ///
    /// # Errors
    /// Fails where it is a generator, and where libtorch refuses the view.
    pub fn alias(&self, view: View<'_>) -> Result<Tensor, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: `raw` is a live hold, the dims are valid for the call; on success `out` is ours.
        unsafe {
            err.check(ffi::ltc_hold_tensor(self.raw, &dims_of(view), view.offset, &mut out, err.as_ptr()))?;
            Ok(Tensor::from_raw(out))
        }
    }
}

impl<S> Deref for Hold<S> {
    type Target = S;

    fn deref(&self) -> &S {
        // SAFETY: `storage` is the slot of the held storage or generator. It lives as long as the hold, and it is an
        // `S`, which `capture_end` has checked.
        unsafe { self.storage.as_ref() }
    }
}

impl<S> Drop for Hold<S> {
    fn drop(&mut self) {
        // SAFETY: made by `ltc_capture_end`, freed once.
        unsafe { ffi::ltc_hold_free(self.raw) }
    }
}

impl<S> std::fmt::Debug for Hold<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({:p})", self.raw)
    }
}

/// From here on this thread's use of storages is noted: [`crate::Recorder::touched`] is told of each first use, in the
/// order in which [`capture_end`] returns them. `with_checks`: [`capture_checks`] will be asked for.
pub fn capture_begin(with_checks: bool) {
    // SAFETY: no preconditions.
    unsafe { ffi::ltc_capture_begin(with_checks) }
}

/// What a capture takes for granted of the tensors that calls were given and that the program keeps: whether they
/// require gradients, which storages they have, and what 0-dim tensors of the host hold, which calls take as numbers.
pub struct TensorChecks(*mut ffi::LtcChecks);

// SAFETY: counted pointers, which are counted atomically, and tensors, which are only read.
unsafe impl Send for TensorChecks {}
// SAFETY: as above.
unsafe impl Sync for TensorChecks {}

impl TensorChecks {
    /// Whether all is as it was. A tensor that is gone is not looked at.
    ///
    /// # Errors
    /// Fails where libtorch refuses to show a tensor.
    pub fn hold(&self) -> Result<bool, TorchError> {
        let (err, mut holds) = (ErrorSlot::new(), 0);
        // SAFETY: a live object; there is room for the answer.
        err.check(unsafe { ffi::ltc_checks_hold(self.0, &mut holds, err.as_ptr()) })?;
        Ok(holds != 0)
    }
}

impl Drop for TensorChecks {
    fn drop(&mut self) {
        // SAFETY: made by `ltc_capture_checks`, freed once.
        unsafe { ffi::ltc_checks_free(self.0) }
    }
}

impl std::fmt::Debug for TensorChecks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TensorChecks({:p})", self.0)
    }
}

/// What this thread's capture, which is about to end, takes for granted.
///
/// # Errors
/// Fails where libtorch refuses to show a tensor.
pub fn capture_checks() -> Result<TensorChecks, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: there is room for the pointer; on success it is ours.
    err.check(unsafe { ffi::ltc_capture_checks(&mut out, err.as_ptr()) })?;
    Ok(TensorChecks(out))
}

/// Pauses or resumes noting this thread's use of storages. A tensor that is made during a pause can be an input of the
/// captured step: its first use comes after the pause, and counts with the contents that the tensor has by then.
pub fn capture_pause(pauses: bool) {
    // SAFETY: no preconditions.
    unsafe { ffi::ltc_capture_pause(pauses.into()) }
}

/// Ends this thread's capture: the storages and generators it used, in order of first use; `None` for a storage that is
/// gone. `S` must be the registered recorder's storage type.
///
/// # Errors
/// Fails where another storage type than `S` is registered, or none. The capture is over all the same.
pub fn capture_end<S: 'static>() -> Result<Vec<Option<Hold<S>>>, TorchError> {
    let checked = check_storage_type::<S>();
    // SAFETY: the room is as large as told; a null list only forgets the capture.
    unsafe {
        if let Err(e) = checked {
            ffi::ltc_capture_end(std::ptr::null_mut(), 0);
            return Err(e);
        }
        let mut raw = vec![std::ptr::null_mut(); ffi::ltc_capture_count() as usize];
        let n = ffi::ltc_capture_end(raw.as_mut_ptr(), raw.len() as u32);
        raw.truncate(n as usize);
        let hold = |raw: *mut ffi::LtcHold| {
            let slot = if raw.is_null() { std::ptr::null() } else { ffi::ltc_hold_slot(raw) };
            Some(Hold { raw, storage: NonNull::new(slot.cast_mut().cast::<S>())? })
        };
        Ok(raw.into_iter().map(hold).collect())
    }
}
