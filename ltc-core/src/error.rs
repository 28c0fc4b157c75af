//! Errors of a session.

use std::sync::Arc;

use ltc_backend::{BackendError, ExecError};
use ltc_ir::{ErrorClass, ShapeError};

/// What can go wrong in a session. Whatever it is, the session stays usable.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Arguments that do not fit together; raised at the call that made them.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The backend refused a request.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// An operation failed while a program ran; everything that depends on it fails with the same error.
    #[error("{error}{}{largest}", .site.as_ref().map(|s| format!("\n  recorded at {s}")).unwrap_or_default())]
    Exec {
        /// Operator, exception class and message.
        error: Arc<ExecError>,
        /// Where the operation was recorded.
        site: Option<String>,
        /// The largest values then, if there was no memory: lines, each of which begins with a new one.
        largest: String,
    },
    /// An extracted computation was run on another number of inputs.
    #[error("a computation of {wanted} inputs was run on {given}")]
    InputCount {
        /// Inputs given.
        given: usize,
        /// Parameters of the graph.
        wanted: usize,
    },
    /// Tensors of two devices met in one operation.
    #[error("{op}: expected all tensors to be on the same device, but found devices {a} and {b}")]
    DeviceMismatch {
        /// Operator.
        op: String,
        /// One device.
        a: u16,
        /// Another.
        b: u16,
    },
    /// A tensor that gradients flow through was written in place.
    #[error(
        "a tensor that requires grad is being used in an in-place operation: write it under `no_grad`, or `detach` it"
    )]
    InPlaceGradient,
    /// A wait was given up ([`crate::Session::set_interrupt`]); what was sent runs on.
    #[error("the wait was interrupted")]
    Interrupted,
    /// An environment variable makes no sense.
    #[error(transparent)]
    Setting(#[from] crate::settings::BadSetting),
    /// A gradient that does not exist.
    #[error("{0}")]
    NoGradient(String),
}

impl Error {
    /// Class of exception eager libtorch raises.
    pub fn class(&self) -> ErrorClass {
        match self {
            Error::Shape(e) => e.class,
            Error::Exec { error, .. } => error.class,
            Error::Setting(_) => ErrorClass::Value,
            Error::Interrupted => ErrorClass::Interrupted,
            Error::Backend(error) => error.class(),
            Error::InputCount { .. } | Error::DeviceMismatch { .. } | Error::InPlaceGradient | Error::NoGradient(_) => {
                ErrorClass::Runtime
            }
        }
    }
}
