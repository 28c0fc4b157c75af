//! Running an operator eagerly, when it cannot be recorded.
//!
//! Some operators have no place in a recorded graph: the shape of their result depends on values (`nonzero`), they
//! return a host value (`item`), nothing can tell their result's shape, or the user forces them out. They run at once,
//! where the device's values are, visibly. Takes the place of `torch/csrc/lazy/ts_backend/ts_eager_fallback.cpp`.
//!
//! # Order of events
//! [`run`] does, in this order:
//! 1. refuses operands on two devices, as eager libtorch does;
//! 2. asks for the values of **all** operands in **one** batch ([`Host::values`]): one sync of the recorded graph, no
//!    more of it run than these operands need, one wait;
//! 3. runs the operator there; operands it writes are copied first, so values others rely on stay as they are;
//! 4. counts the call, by operator and reason ([`Host::note`]): one that the operator refuses is an error, no fallback;
//! 5. writes mutated arguments back through their views, where every alias sees them, and brings the results to the
//!    device as data: what follows is recorded again.
//!
//! When one of these fails, those after it do not happen: a failed operator writes nothing back. Views returned by such
//! an operator are an error, never a silent copy.
//!
//! Nothing here knows how a lazy device keeps its values; that is the [`Host`]'s, so the crate needs no recorder.
//! Which operators the user forces out, and what a program can do to need fewer eager calls, is in `policy.rs`.
#![forbid(unsafe_code)]

mod call;
mod policy;

use ltc_ir::FallbackReason;
use ltc_torch_sys::{EagerCall, EagerOperand, Tensor, TorchError};

pub use policy::{BadPattern, Forced, advice};

/// What the fallback needs of its surroundings. `S` is what a lazy tensor's storage holds.
pub trait Host<S> {
    /// Counts a call.
    fn note(&self, device: u16, op: &str, reason: FallbackReason);

    /// Current values of these operands at the device's place, in order: one sync and one wait for all of them. The
    /// tensors are only read.
    ///
    /// # Errors
    /// Fails with what an operation that one of them needs failed with.
    fn values(&self, device: u16, operands: &[EagerOperand<'_, S>]) -> Result<Vec<Tensor>, TorchError>;
}

/// Runs a call eagerly; see the order of events in the crate's documentation.
///
/// # Errors
/// Those of the operator itself, with eager execution's class and text, or those of the execution that had
/// to produce an operand.
pub fn run<S>(host: &impl Host<S>, call: EagerCall<'_, S>) -> Result<(), TorchError> {
    let device = call.device();
    let note = |op: &str, reason| host.note(device, op, reason);
    call::run(call, note, |operands| host.values(device, operands))
}
