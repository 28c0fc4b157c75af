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

fn class_of(code: i32) -> ErrorClass {
    match code {
        1 => ErrorClass::Index,
        2 => ErrorClass::Value,
        3 => ErrorClass::Type,
        4 => ErrorClass::NotImplemented,
        5 => ErrorClass::LinAlg,
        6 => ErrorClass::OutOfMemory,
        7 => ErrorClass::Interrupted,
        _ => ErrorClass::Runtime,
    }
}

fn code_of(class: ErrorClass) -> i32 {
    match class {
        ErrorClass::Runtime => 0,
        ErrorClass::Index => 1,
        ErrorClass::Value => 2,
        ErrorClass::Type => 3,
        ErrorClass::NotImplemented => 4,
        ErrorClass::LinAlg => 5,
        ErrorClass::OutOfMemory => 6,
        ErrorClass::Interrupted => 7,
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
            (class_of(code), std::slice::from_raw_parts(text.cast::<u8>(), len))
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
pub(crate) fn report(err: *mut ffi::LtcError, e: &TorchError) {
    // SAFETY: `err` comes from the C++ caller for this very purpose; the text is copied.
    unsafe { ffi::ltc_error_set(err, code_of(e.class), e.message.as_ptr().cast(), e.message.len()) }
}
