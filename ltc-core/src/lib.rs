//! Laziness over any backend: record now, run later, never twice.
//!
//! A [`Session`] owns everything: a backend, one recorder and executor per [`Device`], the computation cache, metrics
//! and events. There are no globals. Operations are recorded as trace nodes ([`Device::record`]) whose values live in
//! [`Storage`]s; [`Device::sync`] canonicalises what is pending, finds or compiles its program, hands it to the
//! device's executor thread, and turns every live value into a placeholder at once. Reading a value waits for just that
//! value.
//!
//! Re-implements `torch/csrc/lazy/core` (`lazy_graph_executor`, `tensor`, `cache`, `metrics`, `multi_wait`, `config`).
#![forbid(unsafe_code)]

mod argument;
mod autodiff;
mod cache;
mod cell;
mod compile;
mod config;
mod device;
mod error;
mod event;
mod executor;
mod extract;
mod handover;
mod lock;
mod marker;
mod metrics;
mod moment;
pub mod nn;
mod outcome;
mod overlap;
mod pending_ops;
mod run_times;
mod runtime;
mod session;
pub mod settings;
mod shape_family;
mod storage;
mod sync;
pub mod tensor;
mod undo;
mod wait;

pub use argument::{Argument, Arguments};
#[doc(hidden)]
pub use autodiff::told as gradients_told;
pub use autodiff::{GradOptions, NoGradGuard, grad, is_enabled as is_grad_enabled, no_grad};
pub use cell::DataCell;
pub use config::Config;
pub use device::Device;
pub use error::Error;
pub use event::{Event, SyncReason};
pub use extract::Extracted;
pub use marker::Marker;
pub use metrics::{Metrics, TimingSummary};
pub use moment::Moment;
pub use runtime::{FailureHook, Interrupt, SiteResolver};
pub use session::{HeldSession, Session};
pub use storage::Storage;
#[cfg(feature = "interleave")]
pub use sync::faults;
pub use tensor::{Index, IndexOp, LazyTensor, Operand};
pub use undo::Before;

/// A value of the trace: pending, or standing for data in a [`DataCell`].
pub type TraceValue = ltc_ir::Value<std::sync::Arc<DataCell>>;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
