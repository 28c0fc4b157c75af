//! What graphs of a GPU's work take of libtorch: where they are taken down, memory of theirs, and copies of many
//! tensors at once.

use std::ffi::c_void;

use ltc_ir::Layout;
use smallvec::SmallVec;

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{Tensor, raw},
    place::Place,
    tensor,
};

/// A thread's stay where work is taken down; it ends where it was.
#[derive(Debug)]
pub struct TakingDown(*mut ffi::LtcTakingDown);

impl Drop for TakingDown {
    fn drop(&mut self) {
        // SAFETY: owned, left once, on the thread that entered, as it cannot be sent.
        unsafe { ffi::ltc_graph_leave(self.0) }
    }
}

impl Place {
    /// While the result lives, what this thread asks of the place goes to a stream that nobody else uses, and
    /// [`Place::stream`] is that one. What is allocated comes from memory kept for graphs: it is not given to anybody
    /// else later. One thread of a process may do so at a time.
    ///
    /// # Errors
    /// Fails where this was built beside a libtorch without CUDA.
    pub fn take_down(self) -> Result<TakingDown, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: on success `out` is new and ours.
        unsafe { err.check(ffi::ltc_graph_enter(self.code(), &mut out, err.as_ptr()))? };
        Ok(TakingDown(out))
    }
}

/// A tensor of this layout over memory of the place that somebody else holds.
///
/// # Safety
/// The memory lies at the place, has all elements of the layout, and stays for as long as the tensor and what is put at
/// the place with it.
///
/// # Errors
/// Fails where there is no such place.
#[allow(unsafe_code, reason = "that there is memory is the caller's to know")]
pub unsafe fn tensor_over(memory: *mut c_void, place: Place, layout: &Layout) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: the dims point into `layout` for the call; on success `out` is ours. The rest is by this function's
    // contract.
    unsafe {
        let dims = tensor::dims(layout);
        err.check(ffi::ltc_tensor_over(memory, &dims, place.code(), &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// Copies tensors to others of the same layouts, all of them at the place, and does not wait for it.
///
/// # Errors
/// Fails where the place does.
pub fn copy_all(place: Place, to: &[&Tensor], from: &[&Tensor]) -> Result<(), TorchError> {
    debug_assert_eq!(to.len(), from.len(), "pairs");
    if to.is_empty() {
        return Ok(());
    }
    let handles = |tensors: &[&Tensor]| tensors.iter().map(|t| raw(*t)).collect::<SmallVec<[_; 16]>>();
    let (err, to, from) = (ErrorSlot::new(), handles(to), handles(from));
    // SAFETY: there are as many handles of live tensors as said.
    unsafe { err.check(ffi::ltc_tensors_copy(place.code(), to.as_ptr(), from.as_ptr(), to.len(), err.as_ptr())) }
}
