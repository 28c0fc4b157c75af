//! What this backend's buffers hold.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use ltc_backend::{Buffer, MemoryInfo};
use ltc_torch_sys::{Generator, Held, TorchError};
use tch::Tensor;

/// Bytes in live buffers of one device.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Usage {
    fn add(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(used, Relaxed);
    }

    pub(crate) fn info(&self) -> MemoryInfo {
        MemoryInfo { used: self.used.load(Relaxed), peak: self.peak.load(Relaxed), cached: 0 }
    }
}

/// A host tensor or generator state inside a [`Buffer`].
#[derive(Debug)]
pub struct TchBuffer {
    held: Option<Held>,
    bytes: usize,
    usage: Arc<Usage>,
}

// SAFETY: `tch::Tensor` is not `Sync` because libtorch lets a shared tensor be written. A buffer never is: through
// `&TchBuffer` one can only copy the handle (an atomic count in libtorch) and read its memory; whoever writes in place
// has proved by the counts to be the only holder of handle and memory.
unsafe impl Sync for TchBuffer {}

impl TchBuffer {
    pub(crate) fn new(held: Held, usage: &Arc<Usage>) -> Self {
        let bytes = match &held {
            Held::Tensor(t) => ltc_torch_sys::host_bytes(t).map_or(0, |(layout, _)| layout.storage_bytes()),
            Held::Generator(_) => 0,
        };
        usage.add(bytes);
        TchBuffer { held: Some(held), bytes, usage: usage.clone() }
    }

    /// Another handle of the tensor; `None` for generator states.
    pub fn tensor(&self) -> Option<Tensor> {
        match &self.held {
            Some(Held::Tensor(t)) => Some(t.shallow_clone()),
            _ => None,
        }
    }

    /// An independent copy of the generator state; `None` for tensors.
    pub fn generator(&self) -> Option<Result<Generator, TorchError>> {
        match &self.held {
            Some(Held::Generator(g)) => Some(g.deep_clone()),
            _ => None,
        }
    }

    /// Another handle of the contents; generator states are copied.
    pub(crate) fn share(&self) -> Result<Held, TorchError> {
        match &self.held {
            Some(Held::Tensor(t)) => Ok(Held::Tensor(t.shallow_clone())),
            Some(Held::Generator(g)) => Ok(Held::Generator(g.deep_clone()?)),
            None => unreachable!("invariant: contents are taken from owned buffers only"),
        }
    }

    fn take(mut self) -> Held {
        self.held.take().expect("invariant: taken once")
    }
}

impl Drop for TchBuffer {
    fn drop(&mut self) {
        self.usage.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// The contents of a buffer: its own handle if nobody else has one, another handle otherwise.
pub(crate) fn contents(buffer: Buffer) -> Result<Held, TorchError> {
    match buffer.into_inner::<TchBuffer>() {
        Ok(ours) => Ok(ours.take()),
        Err(shared) => match shared.get::<TchBuffer>() {
            Some(b) => b.share(),
            None => Err(TorchError::runtime("buffer of another backend")),
        },
    }
}
