//! Points in the work of devices that compute by themselves.

use std::{any::Any, fmt};

use crate::BackendError;

/// A point in the work that a device was given: what was put there before it is done once it is passed. A CUDA event is
/// one.
pub trait Fence: Any + Send + Sync + fmt::Debug {
    /// Whether the device has passed it, or is lost. Never waits.
    fn is_passed(&self) -> bool;

    /// Waits until the device has passed it.
    ///
    /// # Errors
    /// Fails where the device is lost.
    fn wait(&self) -> Result<(), BackendError>;

    /// How long after another fence of the same device it was passed, in seconds; `None` while one of them is not, or
    /// where the device does not tell.
    fn seconds_since(&self, earlier: &dyn Fence) -> Option<f64>;
}
