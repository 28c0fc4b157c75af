//! Errors that come out of libtorch, and their way back in.

use std::cell::UnsafeCell;

use ltc_ir::ErrorClass;

use crate::ffi;

/// What libtorch threw: the class of exception its Python bindings raise, and the text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TorchError {
    /// Exception class.
    pub class: ErrorClass,
    /// Text, without a backtrace.
    pub message: String,
}

impl TorchError {
    /// A `RuntimeError`.
    pub fn runtime(message: impl Into<String>) -> Self {
        TorchError { class: ErrorClass::Runtime, message: message.into() }
    }
}

/// An error slot for one foreign call.
pub(crate) struct ErrorSlot(UnsafeCell<ffi::LtcError>);

impl ErrorSlot {
    pub(crate) fn new() -> Self {
        ErrorSlot(UnsafeCell::new(ffi::LtcError { failure: std::ptr::null_mut() }))
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::LtcError {
        self.0.get()
    }

    /// The error the callee filled in.
    pub(crate) fn take(&self) -> TorchError {
        let (mut text, mut len) = (std::ptr::null(), 0);
        // SAFETY: the slot is live and no call is writing it; `text` and `len` describe its string, valid until it
        // changes.
        let (class, bytes) = unsafe {
            let code = ffi::ltc_error_get(self.as_ptr(), &mut text, &mut len);
            (
                ErrorClass::from_code(code).unwrap_or(ErrorClass::Runtime),
                std::slice::from_raw_parts(text.cast::<u8>(), len),
            )
        };
        TorchError { class, message: String::from_utf8_lossy(bytes).into_owned() }
    }

    /// Result of a call that returned `rc`.
    pub(crate) fn check(&self, rc: i32) -> Result<(), TorchError> {
        if rc == 0 { Ok(()) } else { Err(self.take()) }
    }
}

impl Drop for ErrorSlot {
    fn drop(&mut self) {
        if !self.0.get_mut().failure.is_null() {
            // SAFETY: the slot is live; what a callee put there is freed once.
            unsafe { ffi::ltc_error_clear(self.0.get()) }
        }
    }
}

/// Fills the C++ caller's error object.
///
/// # Safety
/// `err` must be the live error object of the C++ call that is being answered.
pub(crate) unsafe fn report(err: *mut ffi::LtcError, e: &TorchError) {
    // SAFETY: `err` is live by this function's contract; the text is valid for the call, which copies it.
    unsafe { ffi::ltc_error_set(err, e.class as i32, e.message.as_ptr().cast(), e.message.len()) }
}
