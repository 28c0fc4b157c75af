//! The order of events, over anything that behaves like an eager call; tested without libtorch's dispatcher.

use ltc_ir::FallbackReason;
use ltc_torch_sys::{EagerCall, EagerOperand, Tensor, TorchError};

/// An operator call that is to run eagerly.
pub(crate) trait Call {
    /// A lazy tensor among the arguments.
    type Operand;
    /// A tensor.
    type Tensor;

    fn op(&self) -> &str;
    fn reason(&self) -> FallbackReason;
    /// Device the results go to.
    fn device(&self) -> u16;
    fn device_of(operand: &Self::Operand) -> u16;
    /// Lazy tensors among the arguments, in order of appearance.
    fn operands(&self) -> Result<Vec<Self::Operand>, TorchError>;
    /// Runs the operator on the operands' values, one for each, without changing them.
    fn run(&mut self, values: &[Self::Tensor]) -> Result<(), TorchError>;
    /// Writes mutated arguments back and brings the results to the device.
    fn finish(self) -> Result<(), TorchError>;
}

impl<'a, S> Call for EagerCall<'a, S> {
    type Operand = EagerOperand<'a, S>;
    type Tensor = Tensor;

    fn op(&self) -> &str {
        EagerCall::op(self)
    }

    fn reason(&self) -> FallbackReason {
        EagerCall::reason(self)
    }

    fn device(&self) -> u16 {
        EagerCall::device(self)
    }

    fn device_of(operand: &Self::Operand) -> u16 {
        operand.device
    }

    fn operands(&self) -> Result<Vec<Self::Operand>, TorchError> {
        EagerCall::operands(self)
    }

    fn run(&mut self, values: &[Tensor]) -> Result<(), TorchError> {
        EagerCall::run(self, &values.iter().collect::<Vec<_>>())
    }

    fn finish(self) -> Result<(), TorchError> {
        EagerCall::finish(self)
    }
}

/// The order of events stated in the crate's documentation.
pub(crate) fn run<C: Call>(
    mut call: C,
    note: impl FnOnce(&str, FallbackReason),
    values: impl FnOnce(&[C::Operand]) -> Result<Vec<C::Tensor>, TorchError>,
) -> Result<(), TorchError> {
    let operands = call.operands()?;
    let device = call.device();
    if let Some(other) = operands.iter().map(C::device_of).find(|&other| other != device) {
        return Err(TorchError::runtime(format!(
            "Expected all tensors to be on the same device, but found at least two devices, ltc:{device} and \
             ltc:{other}! (when checking arguments of {})",
            call.op()
        )));
    }
    // Without lazy operands (`randperm` forced out) there is nothing to send.
    let hosts = if operands.is_empty() { Vec::new() } else { values(&operands)? };
    if hosts.len() != operands.len() {
        let (got, expected) = (hosts.len(), operands.len());
        return Err(TorchError::runtime(format!("{}: got {got} values for {expected} operands", call.op())));
    }
    drop(operands);
    call.run(&hosts)?;
    note(call.op(), call.reason());
    call.finish()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use ltc_ir::ErrorClass;

    use super::*;

    type Log = Rc<RefCell<Vec<String>>>;

    /// A call on operands that are just their device numbers.
    struct Fake {
        log: Log,
        operands: Vec<u16>,
        fails: bool,
    }

    impl Call for Fake {
        type Operand = u16;
        type Tensor = String;

        fn op(&self) -> &str {
            "aten::nonzero"
        }

        fn reason(&self) -> FallbackReason {
            FallbackReason::DataDependent
        }

        fn device(&self) -> u16 {
            3
        }

        fn device_of(operand: &u16) -> u16 {
            *operand
        }

        fn operands(&self) -> Result<Vec<u16>, TorchError> {
            Ok(self.operands.clone())
        }

        fn run(&mut self, values: &[String]) -> Result<(), TorchError> {
            self.log.borrow_mut().push(format!("run({})", values.join(",")));
            if self.fails { Err(error("boom")) } else { Ok(()) }
        }

        fn finish(self) -> Result<(), TorchError> {
            self.log.borrow_mut().push("finish".into());
            Ok(())
        }
    }

    fn error(message: &str) -> TorchError {
        TorchError { class: ErrorClass::Index, message: message.into() }
    }

    /// Runs a fake call whose operands have these values; returns its outcome and what happened in which order.
    fn events(operands: &[u16], values: Result<usize, &str>, fails: bool) -> (Result<(), String>, String) {
        let log = Log::default();
        let call = Fake { log: log.clone(), operands: operands.to_vec(), fails };
        let note = |op: &str, reason: FallbackReason| log.borrow_mut().push(format!("note {op}: {}", reason.as_str()));
        let outcome = run(call, note, |operands| {
            log.borrow_mut().push(format!("values of {}", operands.len()));
            values.map(|n| (0..n).map(|i| format!("h{i}")).collect()).map_err(error)
        });
        let log = log.borrow().join("; ");
        (outcome.map_err(|e| e.message), log)
    }

    #[test]
    fn all_operands_come_in_one_batch_before_the_operator_runs() {
        let (outcome, log) = events(&[3, 3, 3], Ok(3), false);
        assert_eq!(outcome, Ok(()));
        assert_eq!(log, "values of 3; run(h0,h1,h2); note aten::nonzero: result depends on data; finish");
    }

    #[test]
    fn without_lazy_operands_nothing_is_sent() {
        assert_eq!(events(&[], Ok(0), false).1, "run(); note aten::nonzero: result depends on data; finish");
    }

    #[test]
    fn a_failed_operator_writes_nothing_back_and_is_not_counted() {
        let (outcome, log) = events(&[3], Ok(1), true);
        assert_eq!(outcome, Err("boom".into()));
        assert_eq!(log, "values of 1; run(h0)");
    }

    #[test]
    fn a_poisoned_operand_stops_the_call_before_it_runs() {
        let (outcome, log) = events(&[3], Err("poisoned"), false);
        assert_eq!(outcome, Err("poisoned".into()));
        assert!(log.ends_with("values of 1"), "{log}");
    }

    #[test]
    fn operands_on_two_devices_are_refused_before_anything_runs() {
        let (outcome, log) = events(&[3, 1], Ok(2), false);
        let message = outcome.expect_err("two devices");
        assert!(message.contains("ltc:3 and ltc:1") && message.contains("aten::nonzero"), "{message}");
        assert!(!log.contains("values"), "{log}");
    }

    #[test]
    fn a_host_that_gives_too_few_values_is_an_error() {
        let (outcome, log) = events(&[3, 3], Ok(1), false);
        assert!(outcome.is_err_and(|e| e.contains("1 values for 2 operands")));
        assert!(!log.contains("run"), "{log}");
    }
}
