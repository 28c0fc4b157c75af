//! Opaque device buffers and plain host tensors.

use std::{any::Any, fmt, sync::Arc};

use ltc_ir::LayoutRef;

/// A counted handle to device memory; only the backend that made it knows what is inside.
#[derive(Clone)]
pub struct Buffer(Arc<dyn Any + Send + Sync>);

impl Buffer {
    /// Wraps a backend's own buffer.
    pub fn new<T: Any + Send + Sync>(inner: T) -> Self {
        Buffer(Arc::new(inner))
    }

    /// The backend's own buffer, if it is of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }

    /// The backend's own buffer by value, if it is of this type and this is the only handle.
    ///
    /// # Errors
    /// Gives the buffer back where somebody else holds it too, or it is of another type.
    pub fn into_inner<T: Any + Send + Sync>(self) -> Result<T, Buffer> {
        match self.0.downcast::<T>() {
            Ok(arc) => Arc::try_unwrap(arc).map_err(|arc| Buffer(arc)),
            Err(any) => Err(Buffer(any)),
        }
    }

    /// How many handles there are.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buffer(..)")
    }
}

/// A tensor in host memory: bytes of a storage with the layout at offset 0, native endianness.
#[derive(Clone, PartialEq, Debug)]
pub struct HostTensor {
    /// Element type, sizes, strides.
    pub layout: LayoutRef,
    /// `layout.storage_bytes()` bytes.
    pub bytes: Vec<u8>,
}
