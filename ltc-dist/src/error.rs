//! Errors of groups and their collectives.

use ltc_torch_sys::TorchError;

/// What can go wrong between processes, or before anything is said to another one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call was given what it does not take. Nothing was sent; other ranks may wait for it.
    #[error("{0}")]
    Call(String),
    /// A variable of the environment is missing or makes no sense.
    #[error("{name} {}: expected {expected}", .value.as_ref().map_or("is not set".to_owned(), |v| format!("is {v:?}")))]
    Environment {
        /// Of the variable.
        name: &'static str,
        /// Its value.
        value: Option<String>,
        /// What it should be.
        expected: &'static str,
    },
    /// Ranks hold different parameters.
    #[error("{0}")]
    Disagreement(String),
    /// A collective failed: another rank ended, or was silent for too long.
    #[error("{error} (raised while running {operator})")]
    Collective {
        /// Of c10d's, or of ours that took its place.
        operator: &'static str,
        /// What the engine or libtorch said.
        error: TorchError,
    },
    /// No store, or no group: what c10d said.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// An operator on a tensor failed.
    #[error("{0}")]
    Tch(String),
}

impl From<tch::TchError> for Error {
    fn from(e: tch::TchError) -> Self {
        Error::Tch(e.to_string())
    }
}

impl Error {
    /// Says which operator an error is of.
    pub(crate) fn of(operator: &'static str) -> impl FnOnce(TorchError) -> Error {
        move |error| Error::Collective { operator, error }
    }
}
