//! Points in the work of a place that is not the CPU.

use std::{any::Any, sync::Arc};

use ltc_backend::{BackendError, Fence};
use ltc_torch_sys::{Place, PlaceEvent, TorchError};

/// Behind all that was put at a place.
#[derive(Debug)]
struct EventFence(PlaceEvent);

fn lost(error: TorchError) -> BackendError {
    BackendError::Refused { class: error.class, message: error.message }
}

/// A fence behind all that was put at a place so far; `None` on the CPU, where all of it is done, and where the device
/// is lost, which whoever reads from it is told.
pub(crate) fn fence(place: Place) -> Option<Arc<dyn Fence>> {
    if place.is_cpu() {
        return None;
    }
    let event = PlaceEvent::record(place).ok()?;
    Some(Arc::new(EventFence(event)))
}

impl Fence for EventFence {
    fn is_passed(&self) -> bool {
        self.0.is_passed().unwrap_or(true)
    }

    fn wait(&self) -> Result<(), BackendError> {
        self.0.wait().map_err(lost)
    }

    fn seconds_since(&self, earlier: &dyn Fence) -> Option<f64> {
        let earlier = (earlier as &dyn Any).downcast_ref::<EventFence>()?;
        self.0.seconds_since(&earlier.0).ok()
    }
}
