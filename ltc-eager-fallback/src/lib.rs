//! Eager fallback: operators that cannot be recorded run on the host, visibly.
//!
//! The order of events, always the same:
//! 1. the call is counted, by operator and reason ([`Host::note`]);
//! 2. just what its operands need is sent to the device, in one cut, and waited for ([`Host::values`]);
//! 3. the operator runs on the host, on copies of the arguments it writes;
//! 4. written arguments are written back, through their views, so that every alias sees them;
//! 5. results become data of the device.
//!
//! Where 2 or 3 fail nothing was changed. Views returned by such an operator are an error, never a silent copy.
//! Takes the place of `ts_eager_fallback.cpp`.
#![forbid(unsafe_code)]

use ltc_backend::FallbackReason;
use ltc_torch_sys::{EagerCall, EagerOperand, Reason, TorchError};
use tch::Tensor;

/// What the fallback needs of its surroundings.
pub trait Host<S> {
    /// Counts a call.
    fn note(&self, device: u16, op: &str, reason: FallbackReason);

    /// Current values of these operands on the host: one cut for all of them. The tensors are only read.
    fn values(&self, device: u16, operands: &[EagerOperand<'_, S>]) -> Result<Vec<Tensor>, TorchError>;
}

/// Runs a call eagerly.
pub fn run<S>(host: &impl Host<S>, mut call: EagerCall<'_, S>) -> Result<(), TorchError> {
    let device = call.device();
    host.note(device, call.op(), reason_of(call.reason()));
    let operands = call.operands()?;
    if let Some(other) = operands.iter().find(|o| o.device != device) {
        return Err(TorchError::runtime(format!(
            "Expected all tensors to be on the same device, but found at least two devices, ltc:{device} and ltc:{}! \
             (when checking arguments of {})",
            other.device,
            call.op()
        )));
    }
    let values = host.values(device, &operands)?;
    call.run(&values.iter().collect::<Vec<_>>())?;
    call.finish()
}

/// The backend contract's reason for a border reason.
pub fn reason_of(reason: Reason) -> FallbackReason {
    match reason {
        Reason::DataDependent => FallbackReason::DataDependent,
        Reason::NoShapeFunction => FallbackReason::NoShapeFunction,
        Reason::UnsupportedArgument => FallbackReason::UnsupportedArgument,
        Reason::Forced => FallbackReason::Forced,
    }
}
