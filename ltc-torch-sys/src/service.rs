//! The operator `ltc::_service`: how language bindings hand tensors in and get tensors back.

use std::ffi::{c_char, c_int, c_void};

use tch::Tensor;

use crate::{
    ffi,
    recorder::{Ctx, Recorder, guard, recorder, text},
    tensor::{self, Borrowed},
};

/// A named request.
#[derive(Debug)]
pub struct Request<'a> {
    /// What is asked for.
    pub name: &'a str,
    /// Tensors it is about.
    pub tensors: Vec<Borrowed<'a>>,
    /// Further words.
    pub text: &'a str,
    /// Further numbers.
    pub numbers: &'a [i64],
}

/// An answer.
#[derive(Debug, Default)]
pub struct Reply {
    /// Tensors.
    pub tensors: Vec<Tensor>,
    /// Text.
    pub text: String,
    /// Numbers.
    pub numbers: Vec<i64>,
}

pub(crate) extern "C" fn service<R: Recorder>(
    ctx: Ctx,
    name: *const c_char,
    name_len: usize,
    tensors: *const *const c_void,
    ntensors: u32,
    words: *const c_char,
    words_len: usize,
    numbers: *const i64,
    nnumbers: u32,
    reply: *mut ffi::LtcReply,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: the arrays are valid for the call; each entry is an `at::Tensor*` that lives as long.
        let (tensors, numbers) = unsafe {
            (
                tensor::slice(tensors, ntensors as usize).iter().map(|&p| Borrowed::new(p)).collect(),
                tensor::slice(numbers, nnumbers as usize),
            )
        };
        let request = Request { name: text(name, name_len), tensors, text: text(words, words_len), numbers };
        let answer = recorder::<R>(ctx).service(request)?;
        // SAFETY: `reply` is the caller's object; tensors are handed over, text and numbers are copied.
        unsafe {
            for t in answer.tensors {
                ffi::ltc_reply_tensor(reply, tensor::release(t));
            }
            ffi::ltc_reply_text(reply, answer.text.as_ptr().cast(), answer.text.len());
            ffi::ltc_reply_numbers(reply, answer.numbers.as_ptr(), answer.numbers.len() as u32);
        }
        Ok(())
    })
}
