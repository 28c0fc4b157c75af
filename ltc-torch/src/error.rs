//! Errors of the device.

use ltc_ir::ErrorClass;
use ltc_torch_sys::TorchError;

/// What can go wrong on the device. The session stays usable in every case.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libtorch refused a call, with eager's class and text.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// Syncing, compiling or executing failed.
    #[error(transparent)]
    Core(ltc_core::Error),
    /// The device is not registered yet.
    #[error("the ltc device is not initialised: call ltc_torch::init() first")]
    NotInitialised,
    /// [`DEVICE`](crate::Options::tch_device) would be another device.
    #[error(
        "this libtorch has MPS devices of its own, so `tch::Device::Mps` cannot be the name of the ltc device \
         (ltc_torch::DEVICE): set `tch_device` of ltc_torch::Options to false, and move tensors with ltc_torch::to_lazy"
    )]
    DeviceTaken,
    /// The list of operators to force out of the recording (`LTC_FORCE_FALLBACK`) names none.
    #[error(transparent)]
    Forced(#[from] ltc_eager_fallback::BadPattern),
    /// An environment variable makes no sense.
    #[error(transparent)]
    Setting(#[from] ltc_core::settings::BadSetting),
    /// A call was given what it does not take, or `tch` refused one.
    #[error("{0}")]
    Call(String),
}

/// A failure of an operator has the same class and words whoever waits for it: libtorch's dispatcher or a caller of
/// ours.
impl From<ltc_core::Error> for Error {
    fn from(e: ltc_core::Error) -> Self {
        match e {
            ltc_core::Error::Exec { .. } => Error::Torch(to_torch(e)),
            other => Error::Core(other),
        }
    }
}

#[cfg(feature = "tch")]
impl From<tch::TchError> for Error {
    fn from(e: tch::TchError) -> Self {
        Error::Call(e.to_string())
    }
}

/// A session's error as the exception eager libtorch would raise.
pub(crate) fn to_torch(e: ltc_core::Error) -> TorchError {
    let class = e.class();
    let message = match &e {
        ltc_core::Error::Exec { error, site, largest } => {
            let site = site.as_ref().map(|s| format!("\n  recorded at {s}")).unwrap_or_default();
            format!("{} (raised while running {}){site}{largest}", error.message, error.op)
        }
        other => other.to_string(),
    };
    TorchError { class, message }
}

impl Error {
    /// Class of exception eager libtorch raises.
    pub fn class(&self) -> ErrorClass {
        match self {
            Error::Torch(e) => e.class,
            Error::Core(e) => e.class(),
            Error::Setting(_) => ErrorClass::Value,
            Error::NotInitialised | Error::DeviceTaken | Error::Forced(_) | Error::Call(_) => ErrorClass::Runtime,
        }
    }
}
