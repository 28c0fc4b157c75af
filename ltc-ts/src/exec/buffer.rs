//! Device buffers: what is inside, and the rule for sharing it.
//!
//! # The sharing rule
//! A [`Tensor`] may move between threads but not be used by two at once, because most of its methods can change the
//! tensor. A [`TchBuffer`] narrows it: through a shared reference one can only
//! 1. read elements and metadata, or
//! 2. make another handle to the same tensor (libtorch counts holders atomically).
//!
//! Nobody writes elements through such a handle. Elements are written in three places only: while the buffer is being
//! made, by a program that owns the buffer (`Buffer::into_inner` proved it the only holder), and on a copy. A program
//! that owns a buffer still asks libtorch whether the tensor has other holders, because handles of kind 2 exist.
#![allow(unsafe_code, reason = "raw bytes into new host tensors, and the Sync promise stated above")]

use std::sync::Arc;

use ltc_backend::{BackendError, Buffer};
use ltc_ir::{DType, Layout, LayoutRef};
use ltc_torch_sys::{Generator, Held, Place, Tensor, TorchError};

use super::memory_meter::{Charge, Meter};

/// A value in libtorch's memory, with its layout.
pub struct TchBuffer {
    held: Held,
    layout: LayoutRef,
    charge: Charge,
}

// SAFETY: a shared TchBuffer gives out its tensor for reading and for counting holders only (module docs); neither
// changes the tensor, and libtorch's holder counts are atomic. Generator states are only cloned or read through &.
unsafe impl Sync for TchBuffer {}

impl TchBuffer {
    pub(crate) fn new(held: Held, layout: LayoutRef, charge: Charge) -> Self {
        TchBuffer { held, layout, charge }
    }

    /// Element type, sizes and strides.
    pub fn layout(&self) -> &LayoutRef {
        &self.layout
    }

    /// Another handle to the tensor, for reading only: writing through it would change a value others rely on. `None`
    /// for generator states.
    pub fn tensor(&self) -> Option<Tensor> {
        match &self.held {
            Held::Tensor(t) => Some(t.shallow_clone()),
            Held::Generator(_) => None,
        }
    }

    /// An independent copy of the generator state; `None` for tensors.
    pub fn generator(&self) -> Option<Result<Generator, TorchError>> {
        match &self.held {
            Held::Tensor(_) => None,
            Held::Generator(g) => Some(g.deep_clone()),
        }
    }

    /// What is inside, for reading only.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// Where its bytes are counted.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        self.charge.meter()
    }

    pub(crate) fn into_parts(self) -> (Held, Charge) {
        (self.held, self.charge)
    }
}

impl std::fmt::Debug for TchBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TchBuffer({})", self.layout)
    }
}

/// A buffer over a value, with its bytes counted.
pub(crate) fn wrap(value: Held, layout: &LayoutRef, meter: &Arc<Meter>, bytes: usize) -> Buffer {
    Buffer::new(TchBuffer::new(value, layout.clone(), Charge::new(meter, bytes)))
}

/// Address of a tensor's first element, to see whether memory was reused; `None` for generators and empty tensors.
pub(crate) fn address(held: &Held) -> Option<usize> {
    match held {
        Held::Tensor(t) => Some(t.data_ptr() as usize).filter(|&p| p != 0),
        Held::Generator(_) => None,
    }
}

/// A new tensor of the host of this layout holding these bytes.
pub(crate) fn tensor_from_bytes(layout: &Layout, bytes: &[u8]) -> Result<Tensor, BackendError> {
    let expected = checked_bytes(layout)?;
    if bytes.len() != expected {
        return Err(BackendError::BufferMismatch(format!("{layout} takes {expected} bytes, got {}", bytes.len())));
    }
    let tensor = ltc_torch_sys::empty_at(Place::Cpu, layout).map_err(|e| BackendError::Device(e.message))?;
    if expected != 0 {
        // SAFETY: the tensor is new, nobody else holds it, and its storage has the bytes its layout reaches, which is
        // the length of `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr().cast::<u8>(), expected) };
    }
    Ok(tensor)
}

/// The bytes of a host tensor of exactly this layout.
pub(crate) fn tensor_to_bytes(tensor: &Tensor, layout: &Layout) -> Result<Vec<u8>, BackendError> {
    let mismatch = |what: String| BackendError::BufferMismatch(format!("expected {layout}, found {what}"));
    let (found, bytes) = ltc_torch_sys::host_bytes(tensor).ok_or_else(|| mismatch("no host tensor".into()))?;
    if found != *layout {
        return Err(mismatch(found.to_string()));
    }
    let mut out = Vec::new();
    out.try_reserve_exact(bytes.len()).map_err(|e| BackendError::Device(format!("cannot download {layout}: {e}")))?;
    out.extend_from_slice(bytes);
    Ok(out)
}

/// Bytes of a storage of this layout. The layout may come from a caller who got it wrong, so nothing is assumed.
fn checked_bytes(layout: &Layout) -> Result<usize, BackendError> {
    let wrong = || BackendError::BufferMismatch(format!("{layout} is not a layout of host memory"));
    if layout.dtype() == DType::RngState || layout.sizes().iter().chain(layout.strides()).any(|&n| n < 0) {
        return Err(wrong());
    }
    if layout.sizes().contains(&0) {
        return Ok(0);
    }
    let mut last = 0i64;
    for (&size, &stride) in layout.sizes().iter().zip(layout.strides()) {
        last = (size - 1).checked_mul(stride).and_then(|d| last.checked_add(d)).ok_or_else(wrong)?;
    }
    let elements = last.checked_add(1).and_then(|n| usize::try_from(n).ok());
    elements.and_then(|n| n.checked_mul(layout.dtype().size_of())).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_layouts_are_refused() {
        let bytes = |sizes: &[i64], strides: &[i64]| checked_bytes(&Layout::strided(DType::F32, sizes, strides)).ok();
        assert_eq!(bytes(&[2, 3], &[3, 1]), Some(24));
        assert_eq!(bytes(&[2, 3], &[1, 2]), Some(24));
        assert_eq!(bytes(&[2, 3], &[0, 1]), Some(12));
        assert_eq!(bytes(&[], &[]), Some(4));
        assert_eq!(bytes(&[5, 0], &[1, 1]), Some(0));
        assert_eq!(bytes(&[-1], &[1]), None);
        assert_eq!(bytes(&[2], &[-1]), None);
        assert_eq!(bytes(&[i64::MAX, 2], &[2, 1]), None);
    }

    #[test]
    fn buffers_may_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<TchBuffer>();
    }
}
