//! Moments in a device's work that a program can ask for and wait for: events, as CUDA has them.

use std::{sync::Arc, time::Duration};

use crate::{device::Device, error::Error, event::SyncReason, executor::Reached};

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
        Ok(self.deferred_marker())
    }

    /// Marks this moment and sends nothing. Where something is pending, the marker goes to the device with it: at the
    /// next sync, or when somebody asks for the marker. Its time is then that of all that was sent with it.
    pub fn deferred_marker(&self) -> Marker {
        Marker { device: self.clone(), reached: self.mark() }
    }
}

impl Marker {
    /// Sends what the marker stands behind, if nobody did yet.
    fn send(&self) {
        if !self.reached.is_sent() {
            self.device.sync_now(SyncReason::Explicit);
        }
    }

    /// Whether the device has passed it. Never waits for the device.
    pub fn is_reached(&self) -> bool {
        self.send();
        self.reached.is_passed()
    }

    /// Waits until the device has passed it, not for what was sent later. A failure of what ran before is told by
    /// whoever reads values, or waits for the device.
    ///
    /// # Errors
    /// Fails where the wait is interrupted, or the device is lost.
    pub fn wait(&self) -> Result<(), Error> {
        self.send();
        if self.device.await_mark(&self.reached)? { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// How long after another marker the device passed this one, in seconds, negative if it was before; `None` while it
    /// has not passed both.
    pub fn seconds_since(&self, earlier: &Marker) -> Option<f64> {
        let (from, to) = (earlier.reached.at()?, self.reached.at()?);
        if let (Some(earlier), Some(fence)) = (earlier.reached.fence(), self.reached.fence()) {
            return fence.seconds_since(&**earlier);
        }
        let backwards = || -from.saturating_duration_since(to).as_secs_f64();
        Some(to.checked_duration_since(from).as_ref().map_or_else(backwards, Duration::as_secs_f64))
    }
}
