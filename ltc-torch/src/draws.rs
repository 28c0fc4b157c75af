//! What a device's generator draws from next, taken down and gone back to without waiting.

use ltc_core::{Storage, TraceValue};
use ltc_ir::{DType, SiteId, View};

use crate::{Error, runtime};

/// What a generator's storage shows.
pub(crate) const GENERATOR: View<'static> = View { dtype: DType::RngState, sizes: &[], strides: &[], offset: 0 };

/// A state of a device's default generator, computed or not.
#[derive(Clone, Debug)]
pub struct Draws {
    device: u16,
    state: TraceValue,
}

impl Draws {
    /// What the default generator of a device draws from next.
    ///
    /// # Errors
    /// Fails where the device is not [initialised](crate::init), or there is none of this index.
    pub fn of(device: u16) -> Result<Draws, Error> {
        let generator = ltc_torch_sys::default_generator_storage::<Storage>(device)?;
        let state = generator.read(runtime()?.session.device(device)?, GENERATOR, SiteId::default());
        Ok(Draws { device, state })
    }

    /// The generator draws from this next.
    ///
    /// # Errors
    /// As [`Draws::of`].
    pub fn resume(&self) -> Result<(), Error> {
        let generator = ltc_torch_sys::default_generator_storage::<Storage>(self.device)?;
        generator.write(runtime()?.session.device(self.device)?, GENERATOR, self.state.clone(), SiteId::default());
        Ok(())
    }
}
