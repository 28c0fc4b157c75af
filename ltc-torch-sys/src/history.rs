//! The way back through a compiled step: the history that autograd made while it was captured, gone through again for
//! each replay.

use std::{ffi::c_void, ptr::NonNull};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
};

/// The history that autograd makes from tensors given to a step to the step's results.
///
/// The tensors that nodes saved for the backward pass are found through hooks of saved tensors
/// (`torch.autograd.graph.saved_tensors_hooks`): whoever runs the history installs hooks that give the replay's values.
#[derive(Debug)]
pub struct History {
    raw: NonNull<ffi::LtcHistory>,
    given: usize,
    results: usize,
}

// SAFETY: any thread may run autograd nodes, several at a time, since each node takes its own lock. Functions that
// change a history take it by `&mut`.
unsafe impl Send for History {}
// SAFETY: the only function that is called through a shared history, `ltc_history_run`, only reads it.
unsafe impl Sync for History {}

impl History {
    /// Of these tensors, from here on.
    ///
    /// # Errors
    /// Fails where libtorch does not tell where the gradient of a tensor comes from.
    pub fn begin(tensors: &[impl AsTensor]) -> Result<Self, TorchError> {
        let tensors: Vec<_> = tensors.iter().map(|t| raw(t)).collect();
        let err = ErrorSlot::new();
        // SAFETY: the tensors are live; the result is ours.
        let history = unsafe { ffi::ltc_history_begin(tensors.as_ptr(), tensors.len(), err.as_ptr()) };
        match NonNull::new(history) {
            Some(raw) => Ok(History { raw, given: tensors.len(), results: 0 }),
            None => Err(err.take()),
        }
    }

    /// Takes the history of these results, which all have one. Returns which of the tensors given it leads to.
    ///
    /// # Errors
    /// Where going back would run code that is not libtorch's own, or lead elsewhere: a function of a Python class,
    /// hooks, leaves that the step made, nodes older than the step.
    pub fn take(&mut self, results: &[impl AsTensor]) -> Result<Vec<bool>, TorchError> {
        let results: Vec<_> = results.iter().map(|t| raw(t)).collect();
        let (err, mut reached) = (ErrorSlot::new(), vec![0_u8; self.given]);
        let (at, n) = (results.as_ptr(), results.len());
        // SAFETY: ours alone; the tensors are live, and `reached` has room for each tensor given.
        err.check(unsafe { ffi::ltc_history_take(self.raw.as_ptr(), at, n, reached.as_mut_ptr(), err.as_ptr()) })?;
        self.results = n;
        Ok(reached.iter().map(|&x| x != 0).collect())
    }

    /// Severs it from what was before: gradients stop at the tensors given.
    pub fn detach(&mut self) {
        // SAFETY: ours alone.
        unsafe { ffi::ltc_history_detach(self.raw.as_ptr()) }
    }

    /// Takes [`History::detach`] back.
    pub fn mend(&mut self) {
        // SAFETY: ours alone.
        unsafe { ffi::ltc_history_mend(self.raw.as_ptr()) }
    }

    /// Forgets the tensors given, and what was before: being detached is final.
    pub fn let_go(&mut self) {
        // SAFETY: ours alone.
        unsafe { ffi::ltc_history_let_go(self.raw.as_ptr()) }
    }

    /// Goes back, where it was detached, from gradients of the results (where there are any) to gradients of the
    /// tensors given. It may run Python hooks, so a thread that holds Python's lock must let it go.
    ///
    /// # Errors
    /// What the operators raise, and where there are not as many gradients as results.
    pub fn run(&self, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>, TorchError> {
        if grads.len() != self.results {
            let (m, n) = (grads.len(), self.results);
            return Err(TorchError::runtime(format!("{m} gradients for {n} results of a compiled step")));
        }
        let grads: Vec<_> = grads.iter().map(|g| g.as_ref().map_or(std::ptr::null(), raw)).collect();
        let (err, mut out) = (ErrorSlot::new(), vec![std::ptr::null_mut::<c_void>(); self.given]);
        // SAFETY: the history is live; gradients are live or null, one per result; `out` has room for each tensor
        // given.
        err.check(unsafe { ffi::ltc_history_run(self.raw.as_ptr(), grads.as_ptr(), out.as_mut_ptr(), err.as_ptr()) })?;
        // SAFETY: what is not null is a new tensor that is ours.
        Ok(out.into_iter().map(|t| (!t.is_null()).then(|| unsafe { Tensor::from_raw(t) })).collect())
    }
}

impl Drop for History {
    fn drop(&mut self) {
        // SAFETY: ours alone, and not used any more.
        unsafe { ffi::ltc_history_free(self.raw.as_ptr()) }
    }
}
