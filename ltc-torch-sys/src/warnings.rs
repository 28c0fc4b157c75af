//! Warnings of the kernels that programs run.

use std::ffi::{c_char, c_void};

use crate::{ffi, tensor::text};

/// What kernels of programs warned of since this, or a read of a tensor, last gave it.
pub fn take_warnings() -> Vec<String> {
    extern "C" fn push(list: *mut c_void, message: *const c_char, len: usize) {
        // SAFETY: `list` is the one below, which outlives the call and nobody else holds; the message is valid for it.
        unsafe { (*list.cast::<Vec<String>>()).push(text(message, len).to_owned()) }
    }
    let mut list: Vec<String> = Vec::new();
    // SAFETY: `push` is called with this list, and a text valid for its call, before this returns.
    unsafe { ffi::ltc_take_warnings((&raw mut list).cast(), push) };
    list
}
