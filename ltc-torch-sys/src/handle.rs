//! The tensor of this workspace: one counted handle of libtorch's, with the few methods that backends ask of it.
//!
//! Programs that use `tch` hold the same thing under another type. With the feature `tch` each becomes the other for
//! nothing, and whatever takes [`AsTensor`] takes both.

use std::{ffi::c_void, fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
};

/// A tensor of libtorch's (`at::Tensor`), let go when it is dropped.
///
/// As libtorch's own, it may move between threads but not be used by two at once: through it others that share its
/// memory can be written to.
#[repr(transparent)]
pub struct Tensor(NonNull<c_void>);

// SAFETY: libtorch counts the holders of a tensor atomically, so that any thread may let one go.
unsafe impl Send for Tensor {}

impl Tensor {
    /// Takes ownership of an `at::Tensor*`.
    ///
    /// # Safety
    /// `p` must be a live `at::Tensor` made by `new`, that nobody else will delete.
    pub unsafe fn from_raw(p: *mut c_void) -> Self {
        // SAFETY: live, so not null.
        Tensor(unsafe { NonNull::new_unchecked(p) })
    }

    /// Gives up ownership of the `at::Tensor*` inside.
    pub fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Another handle to the same tensor.
    pub fn shallow_clone(&self) -> Tensor {
        // SAFETY: a live tensor; the result is new and ours. Counting a holder more cannot fail.
        unsafe { Tensor::from_raw(ffi::ltc_tensor_clone(raw(self))) }
    }

    /// Address of its first element; null where there is none, and of no meaning on the lazy device.
    pub fn data_ptr(&self) -> *mut c_void {
        // SAFETY: a live tensor.
        unsafe { ffi::ltc_tensor_data(raw(self)) }
    }

    /// Copies the elements of another tensor, of a shape that broadcasts to this one's, over its own.
    ///
    /// # Errors
    /// What `aten::copy_` raises.
    pub fn copy_from(&mut self, other: &impl AsTensor) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: both are live tensors.
        unsafe { err.check(ffi::ltc_tensor_copy(raw(self), raw(other), err.as_ptr())) }
    }

    /// Writes zeros over its elements.
    ///
    /// # Errors
    /// What `aten::zero_` raises.
    pub fn zero(&mut self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: a live tensor.
        unsafe { err.check(ffi::ltc_tensor_zero(raw(self), err.as_ptr())) }
    }

    /// A tensor that shows the same memory and has no history.
    ///
    /// # Errors
    /// What `aten::detach` raises.
    pub fn detach(&self) -> Result<Tensor, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: a live tensor; on success `out` is new and ours.
        unsafe {
            err.check(ffi::ltc_tensor_detach(raw(self), &mut out, err.as_ptr()))?;
            Ok(Tensor::from_raw(out))
        }
    }

    /// A contiguous tensor on the same device that holds the same elements, without history.
    ///
    /// # Errors
    /// What `aten::clone` raises.
    pub fn contiguous_copy(&self) -> Result<Tensor, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: a live tensor; on success `out` is new and ours.
        unsafe {
            err.check(ffi::ltc_tensor_contiguous_copy(raw(self), &mut out, err.as_ptr()))?;
            Ok(Tensor::from_raw(out))
        }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: owned, deleted once.
        unsafe { ffi::ltc_tensor_free(self.0.as_ptr()) }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:p})", self.0)
    }
}

/// What holds an `at::Tensor`: [`Tensor`], [`Borrowed`] and, with the feature `tch`, `tch::Tensor`.
///
/// # Safety
/// The pointer is to an `at::Tensor` that lives as long as `self` is borrowed.
pub unsafe trait AsTensor {
    /// The `at::Tensor*` inside.
    fn as_at(&self) -> *const c_void;
}

// SAFETY: the handle holds it.
unsafe impl AsTensor for Tensor {
    fn as_at(&self) -> *const c_void {
        self.0.as_ptr()
    }
}

// SAFETY: the pointer is that of the `T` behind the reference, whose own implementation says that it is to an
// `at::Tensor`; the `T` stays borrowed for as long as the reference does.
unsafe impl<T: AsTensor + ?Sized> AsTensor for &T {
    fn as_at(&self) -> *const c_void {
        (**self).as_at()
    }
}

/// The `at::Tensor*` of a handle.
pub(crate) fn raw(t: &impl AsTensor) -> *const c_void {
    t.as_at()
}

/// A tensor that is somebody else's for `'a`.
#[derive(Debug)]
pub struct Borrowed<'a>(ManuallyDrop<Tensor>, PhantomData<&'a ()>);

impl<'a> Borrowed<'a> {
    /// # Safety
    /// `p` must be an `at::Tensor*` that lives for `'a`.
    pub(crate) unsafe fn new(p: *const c_void) -> Self {
        // SAFETY: by this function's contract `p` is to a live `at::Tensor`. `from_raw` also asks for ownership, which
        // matters only for deleting the tensor, and `ManuallyDrop` never does that.
        Borrowed(ManuallyDrop::new(unsafe { Tensor::from_raw(p.cast_mut()) }), PhantomData)
    }

    /// The tensor of an `at::TensorImpl*` ([`crate::impl_of`]), as language bindings know their tensors.
    ///
    /// # Safety
    /// `*handle` must be a live `at::TensorImpl*` for `'a`.
    pub unsafe fn of_impl(handle: &'a *mut c_void) -> Self {
        // SAFETY: an `at::Tensor` is a counted pointer to its `TensorImpl` and nothing else (checked when the C++ side
        // is compiled), so the handle can be read as one; the count is not touched, as it is never dropped.
        unsafe { Self::new(std::ptr::from_ref(handle).cast()) }
    }

    /// Another type's tensor as ours.
    pub fn of(tensor: &'a impl AsTensor) -> Self {
        // SAFETY: it lives as long as it is borrowed.
        unsafe { Self::new(tensor.as_at()) }
    }
}

impl Deref for Borrowed<'_> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

// SAFETY: by the contract of `Borrowed::new`, the pointer inside is to an `at::Tensor` that lives for `'a`.
unsafe impl AsTensor for Borrowed<'_> {
    fn as_at(&self) -> *const c_void {
        self.0.as_at()
    }
}

#[cfg(feature = "tch")]
mod of_tch {
    use std::ffi::c_void;

    use super::{AsTensor, Tensor};

    // SAFETY: `tch::Tensor` holds an `at::Tensor` made by `new` and deletes it when it is dropped.
    unsafe impl AsTensor for tch::Tensor {
        fn as_at(&self) -> *const c_void {
            self.as_ptr().cast()
        }
    }

    impl From<Tensor> for tch::Tensor {
        fn from(t: Tensor) -> Self {
            // SAFETY: ours until here, and an `at::Tensor` as `tch` makes them.
            unsafe { tch::Tensor::from_ptr(t.into_raw().cast()) }
        }
    }

    impl From<tch::Tensor> for Tensor {
        fn from(mut t: tch::Tensor) -> Self {
            let p: *mut c_void = t.as_mut_ptr().cast();
            std::mem::forget(t);
            // SAFETY: `tch`'s until here, and deleted by nobody else, as `t` is forgotten.
            unsafe { Tensor::from_raw(p) }
        }
    }
}
