//! When to capture a step and when to replay it.
//!
//! A step is recorded once to warm up (optimisers make their state then), captured twice, and replayed from then on if
//! both captures are the same: equal graphs, storages and numbers, and nothing left behind. Inputs of other shapes, or
//! another `key` (whatever the host program knows to matter), are captured for themselves. Whatever does not fit is
//! recorded, which is always right.

use ltc_torch_sys::{AsTensor, Tensor, TensorChecks};

use crate::{
    Ambient, Capture, Error,
    numbers::HostNumbers,
    step::{CompiledStep, NotReplayable, Signature},
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
    /// What is replayed, and what it takes for granted.
    ready: Option<(CompiledStep, TensorChecks)>,
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
    fn is_for(&self, key: &str, inputs: &[impl AsTensor]) -> Result<bool, Error> {
        Ok(self.key == key && self.ambient == crate::ambient() && self.inputs.matches(inputs)?)
    }
}

impl Replayer {
    /// Results of a replay on these inputs, if a step was captured for `key` and inputs like them that can be replayed.
    /// `host`: what the host program of the captured step (see [`HostNumbers`]) computes now. `None`: nothing was done.
    ///
    /// # Errors
    /// Fails for an input that is not on the device, and as [`CompiledStep::run`].
    pub fn replay(&mut self, key: &str, inputs: &[impl AsTensor], host: &[u64]) -> Result<Option<Vec<Tensor>>, Error> {
        for entry in &mut self.entries {
            if let Some((step, checks)) = &entry.ready
                && entry.is_for(key, inputs)?
            {
                if step.may_decide(host) {
                    continue;
                }
                if checks.hold()?
                    && let Ok(results) = step.run(inputs, host)?
                {
                    self.replays += 1;
                    return Ok(Some(results));
                }
                // An assumption of the step no longer holds. The step becomes the first capture to compare with: if the
                // next capture agrees with it, the step can be replayed again.
                entry.first = entry.ready.take().map(|(step, _)| step);
            }
        }
        Ok(None)
    }

    /// Begins a call on these inputs that was not replayed: run the step function, then call [`Replayer::end`], or
    /// [`Replayer::abort`] when it fails. Whether it is captured: then what the host hands over is asked for at the
    /// end.
    ///
    /// # Errors
    /// Fails for an input that is not on the device, and as [`Capture::begin`].
    pub fn begin(&mut self, key: &str, inputs: &[impl AsTensor]) -> Result<bool, Error> {
        self.current = None;
        let index = self.entry(key, inputs)?;
        self.records += 1;
        let device =
            inputs.iter().find_map(|t| crate::device_of(t)).unwrap_or_else(|| ltc_torch_sys::ambient().device());
        let wanted = self.warm && self.entries[index].refused.is_none();
        let capture = if wanted { Capture::begin_with_checks(device)? } else { None };
        let captures = capture.is_some();
        self.current = Some((index, capture));
        Ok(captures)
    }

    fn entry(&mut self, key: &str, inputs: &[impl AsTensor]) -> Result<usize, Error> {
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
    ///
    /// # Errors
    /// As [`Capture::end`] and [`CompiledStep::compile`].
    pub fn end(
        &mut self,
        inputs: &[impl AsTensor],
        results: &[impl AsTensor],
        host: HostNumbers,
    ) -> Result<bool, Error> {
        self.warm = true;
        let Some((index, Some(capture))) = self.current.take() else { return Ok(false) };
        let checks = capture.checks()?;
        let outcome = capture.end(inputs, results, host)?;
        let entry = &mut self.entries[index];
        entry.attempts += 1;
        let checked = outcome.and_then(|mut step| match entry.first.take() {
            None => Ok((step, false)),
            Some(first) => match step.confirm(&first).and_then(|()| step.uses_numbers_of_host()) {
                Ok(()) => Ok((step, true)),
                Err(_) if entry.attempts < MAX_ATTEMPTS => Ok((step, false)),
                Err(why) => Err(why),
            },
        });
        match checked {
            Ok((step, true)) => {
                step.compile()?;
                (entry.ready, entry.attempts) = (Some((step, checks)), 0);
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

    /// Something else that calls with this key depend on has changed: their captures are dropped and made anew.
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

    /// Why calls are not replayed, for the most recent inputs and key that were refused.
    pub fn refusal(&self) -> Option<&NotReplayable> {
        self.entries.iter().rev().find_map(|e| e.refused.as_ref())
    }
}
