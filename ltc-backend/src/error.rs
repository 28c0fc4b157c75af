//! Errors of backends.

use ltc_ir::{ErrorClass, SiteId};

/// A request the backend could not meet.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// There is no such device.
    #[error("no device {index}: the `{backend}` backend has {count}")]
    NoSuchDevice {
        /// Asked for.
        index: u16,
        /// Backend's name.
        backend: String,
        /// How many there are.
        count: usize,
    },
    /// An operator or argument the backend cannot lower.
    #[error("cannot lower {op}: {reason}")]
    CannotLower {
        /// Operator.
        op: String,
        /// Why.
        reason: String,
    },
    /// A buffer of another backend, or of another layout than promised.
    #[error("buffer mismatch: {0}")]
    BufferMismatch(String),
    /// The device refused, with its own words.
    #[error("{0}")]
    Device(String),
    /// The same where eager execution raises an exception of a class of its own, such as for no memory.
    #[error("{message}")]
    Refused {
        /// Exception class eager execution raises.
        class: ErrorClass,
        /// The device's words.
        message: String,
    },
}

impl BackendError {
    /// Class of exception eager execution raises.
    pub fn class(&self) -> ErrorClass {
        match self {
            BackendError::Refused { class, .. } => *class,
            _ => ErrorClass::Runtime,
        }
    }
}

/// A failed operation inside an execution.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{op}: {message}")]
pub struct ExecError {
    /// Operator that failed.
    pub op: String,
    /// Exception class eager execution raises.
    pub class: ErrorClass,
    /// What the kernel said.
    pub message: String,
    /// Position of the operator among the graph nodes of the program that runs, or [`ExecError::ELSEWHERE`].
    pub node: usize,
    /// Where it was recorded; the session fills it in from the failing step's own trace.
    pub site: SiteId,
    /// Values that took most of the memory when an operator found none for its result, the largest first.
    pub largest: Vec<LargeValue>,
}

/// A value that was in memory while a program ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeValue {
    /// What it took.
    pub bytes: usize,
    /// What made it, and its layout.
    pub what: String,
    /// Position of the operator that made it among the graph nodes, or [`ExecError::ELSEWHERE`].
    pub node: usize,
    /// Where that was recorded; filled in as [`ExecError::site`].
    pub site: SiteId,
}

impl ExecError {
    /// Not a node of the program that runs: the failure came in with an input.
    pub const ELSEWHERE: usize = usize::MAX;

    /// A failure of an operator that is no node of the program that runs.
    pub fn new(op: impl Into<String>, class: ErrorClass, message: impl Into<String>) -> ExecError {
        let (op, message) = (op.into(), message.into());
        ExecError { op, class, message, node: ExecError::ELSEWHERE, site: SiteId::default(), largest: Vec::new() }
    }

    /// The same of the operator at a position among the graph nodes.
    #[must_use]
    pub fn at(self, node: usize) -> ExecError {
        ExecError { node, ..self }
    }
}
