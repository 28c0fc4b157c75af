//! What goes between host and device: copies, sync points and waits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ltc_backend::{Buffer, ExecError, HostTensor, LargeValue};

use super::Device;
use crate::{
    TraceValue,
    cell::DataCell,
    error::Error,
    event::{Event, SyncReason},
    executor::Reached,
    metrics,
};

/// How often a device that computes by itself is asked whether it has passed a fence, by who may give the wait up.
const POLL: Duration = Duration::from_micros(50);

/// The data a value is, once what computes it was sent.
fn cell_of(value: &TraceValue) -> Arc<DataCell> {
    let cell = value.inspect(|_, _| None, |cell| Some(cell.clone()));
    cell.expect("invariant: a sync leaves no value pending that somebody holds")
}

impl Device {
    /// The data of a value: a sync point for everything pending, so that a loop that reads its loss each step runs one
    /// program per step, and a wait for just this value.
    ///
    /// # Errors
    /// Fails with what the program that makes the value failed with, or where the wait is interrupted.
    pub fn value(&self, value: &TraceValue) -> Result<Buffer, Error> {
        if value.is_pending() {
            if let Some(slice) = self.slice_of_data(value) {
                return slice;
            }
            self.sync_for(SyncReason::Read)?;
        }
        self.wait_for(value)
    }

    /// A value that is a dense slice of data: there is nothing to compute, so nothing is sent.
    fn slice_of_data(&self, value: &TraceValue) -> Option<Result<Buffer, Error>> {
        // If an operation recorded before it fails, the tensor may have to show another slice, so the value is not read
        // from the data directly.
        let base = value.inspect(|operands, _| operands.first().cloned(), |_| None);
        let base = base.filter(|b| self.raises() == 0 && !b.is_pending())?;
        let offset = ltc_ir::slice_offset(value, &base).filter(|_| self.takes_slices())?;
        let slice = |whole| Ok(self.0.runtime.backend.slice(self.0.index, &whole, value.layout(), offset)?);
        Some(self.wait_for(&base).and_then(slice))
    }

    /// The data of values: sends what they need and nothing else, and waits for them.
    ///
    /// # Errors
    /// Fails with what the program that makes the value failed with, or where the wait is interrupted.
    pub fn values_alone(&self, values: &[TraceValue]) -> Result<Vec<Buffer>, Error> {
        if values.iter().any(TraceValue::is_pending) {
            self.sync_some(values, SyncReason::Fallback)?;
        }
        values.iter().map(|v| self.wait_for(v)).collect()
    }

    fn wait_for(&self, value: &TraceValue) -> Result<Buffer, Error> {
        let cell = cell_of(value);
        let result = self.settled(&cell)?;
        // A failure before it comes first, as it would have in eager execution.
        match self.0.executor.unreported(cell.made_by()) {
            Some(error) => Err(self.exec_error(error)),
            None => result.map_err(|e| self.exec_error(e)),
        }
    }

    /// Waits until a cell is ready; its data, or the error with which its program failed.
    fn settled(&self, cell: &DataCell) -> Result<Result<Buffer, Arc<ExecError>>, Error> {
        let runtime = &self.0.runtime;
        metrics::add(&runtime.counters.downloads, 1);
        runtime.events.push(|| Event::Download);
        let start = Instant::now();
        self.0.executor.handover.needed(start, self.recorded());
        let ready = cell.is_ready();
        let result = cell.wait_unless(&|| runtime.is_interrupted());
        if !ready {
            runtime.counters.wait.add(start.elapsed());
        }
        result.ok_or(Error::Interrupted)
    }

    /// Copies a value to the host that a speculative program (one that may have run for nothing) reads or makes; `of`
    /// is one of its results. `None` if that program failed before the value was there: its sender decides whether
    /// anybody is told.
    ///
    /// # Errors
    /// Fails with what a program before it failed with, or where the wait is interrupted.
    pub fn download_from(&self, value: &TraceValue, of: &TraceValue) -> Result<Option<HostTensor>, Error> {
        let (cell, program) = (cell_of(value), cell_of(of).made_by());
        let result = self.settled(&cell)?;
        if let Some(error) = self.0.executor.unreported(cell.made_by().min(program.saturating_sub(1))) {
            return Err(self.exec_error(error));
        }
        match result {
            Ok(buffer) => Ok(Some(self.0.runtime.backend.download(self.0.index, &buffer, value.layout())?)),
            Err(_) if cell.made_by() == program => Ok(None),
            Err(error) => Err(self.exec_error(error)),
        }
    }

    /// Waits until the program with this result, which was run for nothing, is done. Its failure is reported to nobody.
    ///
    /// # Errors
    /// Fails where the wait is interrupted.
    pub fn discard(&self, of: &TraceValue) -> Result<(), Error> {
        let mark = Arc::new(Reached::default());
        self.0.executor.mark(mark.clone());
        let done = self.0.executor.await_mark(&mark, &|| self.0.runtime.is_interrupted());
        self.0.executor.forget(cell_of(of).made_by());
        if done { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// Copies a host tensor to the device.
    ///
    /// # Errors
    /// Fails where bytes and layout do not fit together, or the device has no room.
    pub fn upload(&self, host: &HostTensor) -> Result<TraceValue, Error> {
        let buffer = self.0.runtime.backend.upload(self.0.index, host)?;
        Ok(self.import(host.layout.clone(), buffer))
    }

    /// Copies a value to the host.
    ///
    /// # Errors
    /// Fails with what the program that makes the value failed with, or where the wait is interrupted.
    pub fn download(&self, value: &TraceValue) -> Result<HostTensor, Error> {
        let buffer = self.value(value)?;
        Ok(self.0.runtime.backend.download(self.0.index, &buffer, value.layout())?)
    }

    /// Waits until the device has done everything sent to it. Returns the first execution error that no read has
    /// reported yet.
    ///
    /// # Errors
    /// Fails with the first failure that nobody was told of, or where the wait is interrupted.
    pub fn wait(&self) -> Result<(), Error> {
        let done = self.0.executor.wait_idle(self.recorded(), &|| self.0.runtime.is_interrupted());
        done.ok_or(Error::Interrupted)?.map_err(|e| self.exec_error(e))?;
        Ok(self.0.runtime.backend.synchronize(self.0.index)?)
    }

    /// A mark behind all that was recorded so far, which goes to the executor with what is pending, if anything is.
    pub(crate) fn mark(&self) -> Arc<Reached> {
        let mark = Arc::new(Reached::default());
        // Held all along: another thread's sync may have taken what was pending and not sent it yet.
        let mut syncing = self.0.syncing.lock();
        if self.0.pending_ops.lock().live().is_empty() {
            self.0.executor.mark(mark.clone());
        } else {
            syncing.marks.push(mark.clone());
        }
        mark
    }

    /// Waits for a mark, and for a device that computes by itself to pass it; false if the wait was given up.
    pub(crate) fn await_mark(&self, mark: &Reached) -> Result<bool, Error> {
        self.0.executor.handover.needed(Instant::now(), self.recorded());
        let given_up = || self.0.runtime.is_interrupted();
        if !self.0.executor.await_mark(mark, &given_up) {
            return Ok(false);
        }
        let Some(fence) = mark.fence() else { return Ok(true) };
        while !fence.is_passed() {
            if given_up() {
                return Ok(false);
            }
            std::thread::park_timeout(POLL);
        }
        fence.wait()?;
        Ok(true)
    }

    fn exec_error(&self, error: Arc<ExecError>) -> Error {
        self.0.executor.reported(&error);
        if let Some(hook) = self.0.runtime.failure_hook.get() {
            hook();
        }
        let site = self.0.runtime.describe_origin(error.site);
        let line = |v: &LargeValue| {
            let site = self.0.runtime.describe_site(v.site).map(|s| format!(", recorded at {s}")).unwrap_or_default();
            format!("\n  {:.1} MiB: {}{site}", v.bytes as f64 / f64::from(1 << 20), v.what)
        };
        let mut largest: String = error.largest.iter().map(line).collect();
        if !largest.is_empty() {
            largest.insert_str(0, "\nthe largest values were:");
        }
        Error::Exec { error, site, largest }
    }
}
