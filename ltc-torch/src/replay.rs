//! When to capture a step and when to replay it.
//!
//! A step is recorded once to warm up (optimisers make their state then), captured twice, and replayed from then on if
//! both captures are the same: equal graphs, storages and numbers, and nothing left behind. Inputs of other shapes, or
//! another `key` (whatever the host program knows to matter), are captured for themselves. Whatever does not fit is
//! recorded, which is always right.

use std::borrow::Borrow;

use tch::Tensor;

use crate::{
    Ambient, Capture, Error, capture_log,
    step::{CompiledStep, HostNumbers, NotReplayable, Signature},
};

/// Different inputs and keys kept per step function.
const MAX_ENTRIES: usize = 64;
/// Captures that may differ from the one before until the step is left alone.
const MAX_ATTEMPTS: u32 = 4;

#[derive(Debug)]
struct Entry {
    key: String,
    ambient: Ambient,
    inputs: Signature,
    attempts: u32,
    first: Option<CompiledStep>,
    ready: Option<CompiledStep>,
    refused: Option<NotReplayable>,
}

/// A step function's captures.
#[derive(Debug, Default)]
pub struct Replayer {
    entries: Vec<Entry>,
    warm: bool,
    /// Entry that the call in progress belongs to, with its capture.
    current: Option<(usize, Option<Capture>)>,
    replays: u64,
    records: u64,
}

impl Entry {
    fn is_for(&self, key: &str, inputs: &[impl Borrow<Tensor>]) -> Result<bool, Error> {
        Ok(self.key == key && self.ambient == crate::ambient() && self.inputs.matches(inputs)?)
    }
}

impl Replayer {
    /// Results of a replay on these inputs, if a step was captured for `key` and inputs like them that can be replayed.
    /// `host`: what the host program of the captured step (see [`HostNumbers`]) computes now. `None`: nothing was done.
    pub fn replay(
        &mut self,
        key: &str,
        inputs: &[impl Borrow<Tensor>],
        host: &[u64],
    ) -> Result<Option<Vec<Tensor>>, Error> {
        for entry in &mut self.entries {
            if let Some(step) = &entry.ready
                && entry.is_for(key, inputs)?
            {
                match step.run(inputs, host)? {
                    Ok(results) => {
                        self.replays += 1;
                        return Ok(Some(results));
                    }
                    // Something changed under the step: it is captured anew, and may turn out to be the same.
                    Err(_) => entry.first = entry.ready.take(),
                }
            }
        }
        Ok(None)
    }

    /// Begins a call on these inputs that was not replayed: run the step function, then call [`Replayer::end`], or
    /// [`Replayer::abort`] when it fails. Whether it is captured: then what the host hands over is asked for at the
    /// end.
    pub fn begin(&mut self, key: &str, inputs: &[impl Borrow<Tensor>]) -> Result<bool, Error> {
        self.current = None;
        let index = self.entry(key, inputs)?;
        self.records += 1;
        let device = inputs.iter().find_map(|t| crate::device_of(t.borrow())).unwrap_or(0);
        let wanted = self.warm && self.entries[index].refused.is_none();
        let capture = if wanted { Capture::begin(device)? } else { None };
        let captures = capture.is_some();
        self.current = Some((index, capture));
        Ok(captures)
    }

    fn entry(&mut self, key: &str, inputs: &[impl Borrow<Tensor>]) -> Result<usize, Error> {
        for (i, entry) in self.entries.iter().enumerate() {
            if entry.is_for(key, inputs)? {
                return Ok(i);
            }
        }
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.remove(0);
        }
        let (key, inputs) = (key.to_owned(), Signature::of(inputs)?);
        let ambient = crate::ambient();
        self.entries.push(Entry { key, ambient, inputs, attempts: 0, first: None, ready: None, refused: None });
        Ok(self.entries.len() - 1)
    }

    /// Ends a recorded call; whether the next one can be a replay.
    pub fn end(
        &mut self,
        inputs: &[impl Borrow<Tensor>],
        results: &[impl Borrow<Tensor>],
        host: HostNumbers,
    ) -> Result<bool, Error> {
        self.warm = true;
        let Some((index, Some(capture))) = self.current.take() else { return Ok(false) };
        let outcome = capture.end(inputs, results, host)?;
        let entry = &mut self.entries[index];
        entry.attempts += 1;
        let checked = outcome.and_then(|mut step| match entry.first.take() {
            None => Ok((step, false)),
            Some(first) => {
                let kept = || NotReplayable("it keeps the tensors it makes".into());
                let confirmed = if first.left_behind() > 0 { Err(kept()) } else { step.confirm(&first) };
                match confirmed {
                    Ok(()) => Ok((step, true)),
                    Err(_) if entry.attempts < MAX_ATTEMPTS => Ok((step, false)),
                    Err(why) => Err(why),
                }
            }
        });
        match checked {
            Ok((step, true)) => {
                step.compile()?;
                (entry.ready, entry.attempts) = (Some(step), 0);
            }
            Ok((step, false)) => entry.first = Some(step),
            Err(why) if why.is_interruption() && entry.attempts < MAX_ATTEMPTS => (),
            Err(why) => {
                tracing::info!("{why}");
                entry.refused = Some(why);
            }
        }
        Ok(entry.ready.is_some())
    }

    /// The step function failed: the capture is forgotten.
    pub fn abort(&mut self) {
        self.current = None;
    }

    /// What calls with this key depend on besides has changed: they are captured anew.
    pub fn forget(&mut self, key: &str) {
        for entry in self.entries.iter_mut().filter(|e| e.key == key) {
            (entry.ready, entry.first) = (None, None);
        }
    }

    /// The call in progress did what a replay cannot repeat, for the reason given: calls like it are recorded.
    pub fn refuse(&mut self, why: String) {
        if let Some((index, _)) = self.current.take() {
            self.entries[index].refused = Some(NotReplayable(why));
        }
    }

    /// Calls replayed and calls recorded so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.replays, self.records)
    }

    /// Why the last inputs and key that cannot be replayed cannot.
    pub fn refusal(&self) -> Option<&NotReplayable> {
        self.entries.iter().rev().find_map(|e| e.refused.as_ref())
    }
}

/// A step function that is replayed where that is safe; see [`compile`].
#[derive(Debug)]
pub struct Compiled<F> {
    step: F,
    replayer: Replayer,
}

/// Makes a step function replay itself. The step is given tensors and numbers; numbers that an operator takes as they
/// are (a learning rate) may be others at each call.
///
/// Everything else that the closure reads is that of the capture: Rust cannot see it. So whatever changes has to be
/// handed in: as a tensor, as a number, or by another `compile`. What is part of the thread's state (grad mode,
/// autocast, ...), which inputs require gradients, and whether gradients that the step left are still there, is
/// compared at each call. Results with a history are recorded each time: return `detach()`.
///
/// ```
/// # fn main() -> Result<(), ltc_torch::Error> {
/// use tch::{Device, Kind, Tensor, nn, nn::OptimizerConfig};
/// ltc_torch::init()?;
/// let mut vs = nn::VarStore::new(Device::Cpu);
/// let layer = nn::linear(vs.root(), 3, 1, Default::default());
/// ltc_torch::lazify(&mut vs)?;
/// let mut opt = nn::Sgd::default().build(&vs, 0.1)?;
/// let mut step = ltc_torch::compile(|x: &[Tensor], numbers: &[f64]| {
///     opt.set_lr(numbers[0]);
///     let loss = x[0].apply(&layer).square().mean(Kind::Float);
///     opt.backward_step(&loss);
///     vec![loss.detach()]
/// });
/// let x = ltc_torch::to_lazy(&Tensor::ones([2, 3], (Kind::Float, Device::Cpu)))?;
/// for k in 0..8 {
///     step.call(&[x.shallow_clone()], &[0.1 / f64::from(k + 1)])?;
/// }
/// assert_eq!(step.counts(), (5, 3), "replayed, recorded: {:?}", step.refusal());
/// # Ok(())
/// # }
/// ```
pub fn compile<F: FnMut(&[Tensor], &[f64]) -> Vec<Tensor>>(step: F) -> Compiled<F> {
    Compiled { step, replayer: Replayer::default() }
}

/// [`compile`] for a step that takes no numbers: all that it computes with, besides tensors, is frozen at the capture.
pub fn compile_frozen(
    mut step: impl FnMut(&[Tensor]) -> Vec<Tensor>,
) -> Compiled<impl FnMut(&[Tensor], &[f64]) -> Vec<Tensor>> {
    compile(move |inputs: &[Tensor], _: &[f64]| step(inputs))
}

impl<F: FnMut(&[Tensor], &[f64]) -> Vec<Tensor>> Compiled<F> {
    /// Calls the step on these inputs and numbers. Within a step that is being captured it is part of that.
    pub fn call(&mut self, inputs: &[Tensor], numbers: &[f64]) -> Result<Vec<Tensor>, Error> {
        if capture_log::is_open() {
            return Ok((self.step)(inputs, numbers));
        }
        let host: Vec<u64> = numbers.iter().map(|n| n.to_bits()).collect();
        if let Some(results) = self.replayer.replay("", inputs, &host)? {
            return Ok(results);
        }
        let ambient = crate::ambient();
        self.replayer.begin("", inputs)?;
        let results = (self.step)(inputs, numbers);
        if let Some(what) = ambient.difference(&crate::ambient()) {
            self.replayer.refuse(format!("it changes {what}"));
        } else if results.iter().any(Tensor::requires_grad) {
            self.replayer
                .refuse("it returns a tensor with history: return detach() where no gradient is wanted".into());
        }
        self.replayer.end(inputs, &results, HostNumbers { program: String::new(), values: host })?;
        crate::sync()?;
        Ok(results)
    }

    /// Calls replayed and calls recorded so far.
    pub fn counts(&self) -> (u64, u64) {
        self.replayer.counts()
    }

    /// Why it is not replayed, if it is not.
    pub fn refusal(&self) -> Option<&NotReplayable> {
        self.replayer.refusal()
    }
}
