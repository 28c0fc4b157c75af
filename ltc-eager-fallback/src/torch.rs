//! libtorch's eager calls, as [`Call`]s.

use ltc_backend::{DeviceIndex, FallbackReason};
use ltc_torch_sys::{EagerCall, EagerOperand, Reason, TorchError};
use tch::Tensor;

use crate::Call;

impl<'a, S> Call for EagerCall<'a, S> {
    type Operand = EagerOperand<'a, S>;
    type Tensor = Tensor;

    fn op(&self) -> &str {
        EagerCall::op(self)
    }

    fn reason(&self) -> FallbackReason {
        match EagerCall::reason(self) {
            Reason::DataDependent => FallbackReason::DataDependent,
            Reason::NoShapeFunction => FallbackReason::NoShapeFunction,
            Reason::UnsupportedArgument => FallbackReason::UnsupportedArgument,
            Reason::Forced => FallbackReason::Forced,
        }
    }

    fn device(&self) -> DeviceIndex {
        DeviceIndex(EagerCall::device(self))
    }

    fn operands(&self) -> Result<Vec<Self::Operand>, TorchError> {
        EagerCall::operands(self)
    }

    fn run(&mut self, hosts: &[Tensor]) -> Result<(), TorchError> {
        EagerCall::run(self, &hosts.iter().collect::<Vec<_>>())
    }

    fn finish(self) -> Result<(), TorchError> {
        EagerCall::finish(self)
    }
}
