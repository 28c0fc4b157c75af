//! Operator calls that could not be recorded.

use std::marker::PhantomData;

use ltc_ir::{ArgFlags, FallbackReason, View};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{Tensor, raw},
    tensor,
};

/// A call that must run eagerly. `S` is the recorder's storage type.
#[derive(Debug)]
pub struct EagerCall<'a, S> {
    raw: *mut ffi::LtcCall,
    op: &'a str,
    reason: FallbackReason,
    device: u16,
    storage: PhantomData<&'a S>,
}

/// One lazy tensor among a call's arguments.
#[derive(Debug)]
pub struct EagerOperand<'a, S> {
    /// Its storage.
    pub storage: &'a S,
    /// What of the storage it shows.
    pub view: View<'a>,
    /// Device it is on.
    pub device: u16,
    /// The operator writes it.
    pub written: bool,
}

impl<'a, S> EagerCall<'a, S> {
    /// # Safety
    /// `raw` must be valid for `'a`, and its operands' slots must hold `S`.
    pub(crate) unsafe fn new(raw: *mut ffi::LtcCall, op: &'a str, reason: FallbackReason, device: u16) -> Self {
        EagerCall { raw, op, reason, device, storage: PhantomData }
    }

    /// Operator, with overload.
    pub fn op(&self) -> &'a str {
        self.op
    }

    /// Why it cannot be recorded.
    pub fn reason(&self) -> FallbackReason {
        self.reason
    }

    /// Device the results go to.
    pub fn device(&self) -> u16 {
        self.device
    }

    /// Lazy tensors among the arguments, in order of appearance.
    ///
    /// # Errors
    /// Fails for dtypes the device does not have.
    pub fn operands(&self) -> Result<Vec<EagerOperand<'a, S>>, TorchError> {
        // SAFETY: `raw` is valid and the index is below the count; slots hold `S` and, like the dims, live as long as
        // the tensors on the caller's stack, which outlive `'a`.
        unsafe {
            (0..ffi::ltc_call_operand_count(self.raw))
                .map(|i| {
                    let (mut op, mut device) = (std::mem::MaybeUninit::uninit(), 0);
                    ffi::ltc_call_operand(self.raw, i, op.as_mut_ptr(), &mut device);
                    let op = op.assume_init();
                    Ok(EagerOperand {
                        storage: &*op.slot.cast::<S>(),
                        view: tensor::view_of(&op)
                            .ok_or_else(|| TorchError::runtime(format!("{}: unsupported dtype", self.op)))?,
                        device: device as u16,
                        written: ArgFlags(op.flags).has(ArgFlags::MUT),
                    })
                })
                .collect()
        }
    }

    /// Runs the operator on the operands' values at the device's place; written ones are copied before.
    ///
    /// # Errors
    /// Fails as the operator itself does, with libtorch's class and words.
    pub fn run(&mut self, values: &[&Tensor]) -> Result<(), TorchError> {
        // SAFETY: `raw` is valid.
        let count = unsafe { ffi::ltc_call_operand_count(self.raw) } as usize;
        assert_eq!(values.len(), count, "invariant: one value per operand");
        let raw: Vec<_> = values.iter().map(|t| raw(t).cast_mut()).collect();
        let err = ErrorSlot::new();
        // SAFETY: `raw` is valid, one live tensor per operand.
        unsafe { err.check(ffi::ltc_call_run(self.raw, raw.as_ptr(), err.as_ptr())) }
    }

    /// Brings results and written arguments back to the lazy device.
    ///
    /// # Errors
    /// Fails where the recorder does not take a result back, and where a written argument that has grown overlaps
    /// another.
    pub fn finish(self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: `raw` is valid.
        unsafe { err.check(ffi::ltc_call_finish(self.raw, err.as_ptr())) }
    }
}
