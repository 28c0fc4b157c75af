//! Moments in a device's work that a program can ask for and wait for: events, as CUDA has them.

use std::{sync::Arc, time::Duration};

use crate::{device::Device, error::Error, executor::Reached};

/// All that was recorded on a device until then. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Marker {
    device: Device,
    reached: Arc<Reached>,
}

impl Device {
    /// Marks this moment: all that was recorded so far is sent to the device, which passes the marker when it has run.
    ///
    /// # Errors
    /// As [`Device::sync`].
    pub fn marker(&self) -> Result<Marker, Error> {
        self.sync()?;
        Ok(Marker { device: self.clone(), reached: self.mark() })
    }
}

impl Marker {
    /// Whether the device has passed it. Never waits.
    pub fn is_reached(&self) -> bool {
        self.reached.at().is_some()
    }

    /// Waits until the device has passed it, not for what was sent later. A failure of what ran before is told by
    /// whoever reads values, or waits for the device.
    ///
    /// # Errors
    /// Fails where the wait is interrupted.
    pub fn wait(&self) -> Result<(), Error> {
        if self.device.await_mark(&self.reached) { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// How long after another marker the device passed this one, in seconds, negative if it was before; `None` while it
    /// has not passed both.
    pub fn seconds_since(&self, earlier: &Marker) -> Option<f64> {
        let (from, to) = (earlier.reached.at()?, self.reached.at()?);
        let backwards = || -from.saturating_duration_since(to).as_secs_f64();
        Some(to.checked_duration_since(from).as_ref().map_or_else(backwards, Duration::as_secs_f64))
    }
}
