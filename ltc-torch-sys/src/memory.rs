//! What is told of a device's memory.

/// Memory of a device in bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceMemory {
    /// In live buffers.
    pub used: u64,
    /// Highest `used` since the last reset.
    pub peak: u64,
    /// Taken by buffers since the last reset.
    pub taken: u64,
    /// Given back by buffers since the last reset.
    pub freed: u64,
    /// In use or kept for the next run.
    pub reserved: u64,
    /// Highest `reserved` since the last reset.
    pub reserved_peak: u64,
    /// What programs may still take; 0 where `total` is.
    pub available: u64,
    /// Of the whole device; 0 where nobody knows.
    pub total: u64,
}

/// Memory of a place, in bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaceMemory {
    /// Kept for reuse.
    pub cached: u64,
    /// Of the whole device: what nobody holds.
    pub available: u64,
    /// All there is.
    pub total: u64,
}
