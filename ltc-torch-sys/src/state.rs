//! What a tensor is besides its values: what a compiled step has to find as it was, and what it has to leave.

use std::{ffi::c_void, ptr::NonNull};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
};

unsafe extern "C" {
    fn ltc_tensor_state(tensor: *const c_void, out: *mut TensorState);
}

/// Dispatch keys (conjugation, subclasses), flags, hooks, and whether it has a history or a gradient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorKind {
    keys: u64,
    hooks: u64,
    flags: u32,
    history: bool,
    grad: bool,
}

/// What a tensor is besides its values. Equal states of one tensor at two times mean that whoever uses it, or
/// differentiates through it, does the same at both.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorState {
    storage: *const c_void,
    grad: *const c_void,
    history: *const c_void,
    keys: u64,
    layout: u64,
    hooks: u64,
    version: u32,
    flags: u32,
}

// SAFETY: the addresses are compared and never followed, on whatever thread.
unsafe impl Send for TensorState {}
// SAFETY: the addresses are compared and never followed, so threads that share them touch nothing.
unsafe impl Sync for TensorState {}

impl TensorState {
    /// How often it was written in place.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether both show the same storage.
    pub fn shares_storage(&self, other: &TensorState) -> bool {
        self.storage == other.storage
    }

    /// Whether operators on it are recorded for differentiation.
    pub fn requires_grad(&self) -> bool {
        self.flags & ffi::LTC_REQUIRES_GRAD != 0
    }

    /// Whether it was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.flags & ffi::LTC_INFERENCE != 0
    }

    /// Whether functions of Python are called where its gradient is added up (hooks of its `AccumulateGrad` node).
    /// States do not tell which.
    pub fn gathers_by_python(&self) -> bool {
        self.flags & ffi::LTC_GATHERS_BY_PYTHON != 0
    }

    /// Whether it has a tangent: operators on it are differentiated forwards.
    pub fn is_dual(&self) -> bool {
        self.flags & ffi::LTC_DUAL != 0
    }

    /// Whether an operator made it that gradients flow through.
    pub fn has_history(&self) -> bool {
        !self.history.is_null()
    }

    /// The same, but with a gradient or without.
    pub fn with_grad(self, has: bool) -> Self {
        TensorState { grad: if has { std::ptr::dangling() } else { std::ptr::null() }, ..self }
    }

    /// The same, but written so often.
    pub fn with_version(self, version: u32) -> Self {
        TensorState { version, ..self }
    }

    /// Whether it has a gradient.
    pub fn has_grad(&self) -> bool {
        !self.grad.is_null()
    }

    /// What an input must have in common with the one of a capture.
    pub fn kind(&self) -> TensorKind {
        let (history, grad) = (self.has_history(), self.has_grad());
        TensorKind { keys: self.keys, hooks: self.hooks, flags: self.flags, history, grad }
    }

    /// Whether `other`, the state of the same tensor at another time, equals this state except for gradient and
    /// version, which steps may change.
    pub fn is_like(&self, other: &TensorState) -> bool {
        TensorState { grad: other.grad, version: other.version, ..*self } == *other
    }
}

/// What a tensor is besides its values.
pub fn state_of(t: &impl AsTensor) -> TensorState {
    let mut state = std::mem::MaybeUninit::uninit();
    // SAFETY: `t` is a live tensor; all of the state is filled in.
    unsafe {
        ltc_tensor_state(raw(t), state.as_mut_ptr());
        state.assume_init()
    }
}

/// Adds `by` writes to the version counter that a tensor shares with its views. Inference tensors have no counter.
pub fn bump_version(t: &impl AsTensor, by: u32) {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_tensor_bump(raw(t), by) }
}

/// A guard that turns inference mode on or off for this thread: tensors that the thread makes while the guard lives are
/// inference tensors, or ordinary ones. A guard ends on the thread that made it, and nested guards end innermost first,
/// because each one restores the mode that it found.
#[derive(Debug)]
pub struct InferenceMode(Option<NonNull<c_void>>);

impl InferenceMode {
    /// Turns inference mode on or off until the guard is dropped.
    ///
    /// # Errors
    /// Fails where there is no memory.
    pub fn set(on: bool) -> Result<Self, TorchError> {
        let (err, mut mode) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: `mode` is written to; what it then points to is ended once, by the drop.
        unsafe { err.check(ffi::ltc_inference_mode(on, &mut mode, err.as_ptr()))? };
        Ok(InferenceMode(NonNull::new(mode)))
    }
}

impl Drop for InferenceMode {
    fn drop(&mut self) {
        if let Some(mode) = self.0 {
            // SAFETY: made by `ltc_inference_mode` on this thread, since a pointer is not sent to others; ended once.
            unsafe { ffi::ltc_inference_mode_end(mode.as_ptr()) }
        }
    }
}

/// The gradient a leaf has.
pub fn grad_of(t: &impl AsTensor) -> Option<Tensor> {
    // SAFETY: `t` is a live tensor; what is not null is a new tensor that is ours.
    unsafe {
        let grad = ffi::ltc_tensor_grad(raw(t));
        (!grad.is_null()).then(|| Tensor::from_raw(grad))
    }
}

/// Gives a leaf this gradient, or takes the one it has.
///
/// # Errors
/// Fails where libtorch lets the tensor have no gradient: its message says why.
pub fn set_grad(t: &impl AsTensor, grad: Option<&Tensor>) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: both are live tensors.
    unsafe { err.check(ffi::ltc_tensor_set_grad(raw(t), grad.map_or(std::ptr::null(), raw), err.as_ptr())) }
}

/// Gives a tensor without history one: its gradients go to another's as they are.
///
/// # Errors
/// Fails where libtorch lets the tensor have no history: its message says why.
pub fn pass_to(t: &impl AsTensor, to: &impl AsTensor) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    // SAFETY: both are live tensors.
    unsafe { err.check(ffi::ltc_tensor_pass_to(raw(t), raw(to), err.as_ptr())) }
}

/// Whether a tensor has a history that [`set_freed_history`] gave it.
pub fn history_is_freed(t: &impl AsTensor) -> bool {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_tensor_history_is_freed(raw(t)) }
}

/// Gives a tensor a history of this name that gradients do not flow through: trying it fails, saying `why`.
///
/// # Errors
/// Fails where libtorch lets the tensor have no history: its message says why.
pub fn set_freed_history(t: &impl AsTensor, name: &str, why: &str) -> Result<(), TorchError> {
    let err = ErrorSlot::new();
    let (name, n, why, m) = (name.as_ptr().cast(), name.len(), why.as_ptr().cast(), why.len());
    // SAFETY: `t` is a live tensor; the strings are valid for the call, which copies them.
    unsafe { err.check(ffi::ltc_tensor_set_freed_history(raw(t), name, n, why, m, err.as_ptr())) }
}
