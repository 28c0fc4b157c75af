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
/// order in which [`capture_end`] returns them.
pub fn capture_begin() {
    // SAFETY: no preconditions.
    unsafe { ffi::ltc_capture_begin() }
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
