//! Noting what a step uses while it is recorded, so that it can be replayed.

mod stages;

use std::{
    borrow::Borrow,
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ltc_backend::Buffer;
use ltc_core::{DataCell, Device, Moment, Storage, TraceValue};
use tch::Tensor;

use crate::{
    Error, runtime,
    step::{HostNumbers, NotReplayable, Step, cell_of},
};
use stages::{Noted, Stop};

/// The data of a value; a barrier, too, where no other thread captures.
pub(crate) fn value(device: &Device, value: &TraceValue) -> Result<Buffer, ltc_core::Error> {
    if value.is_pending() && is_open_elsewhere() {
        device.sync_values(std::slice::from_ref(value))?;
    }
    device.value(value)
}

/// What a capture notes on the recording side.
#[derive(Default)]
pub(crate) struct Log {
    /// What each storage held at its first use, in order of first use.
    starts: Vec<Option<TraceValue>>,
    /// What was copied from the host: an obstacle only where it is used.
    uploads: Vec<Arc<DataCell>>,
    obstacle: Option<String>,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Whether some thread captures a step.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held by the one thread that captures.
#[derive(Debug)]
struct Turn(());

impl Turn {
    fn take() -> Option<Self> {
        if TAKEN.swap(true, Ordering::Acquire) { None } else { Some(Turn(())) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// In a forked child: no other thread captures.
pub(crate) fn begin_anew() {
    TAKEN.store(is_open(), Ordering::Release);
}

/// Whether this thread captures a step: others within it are part of it.
pub fn is_open() -> bool {
    LOG.try_with(|log| log.borrow().is_some()).unwrap_or(false)
}

/// Whether another thread captures a step. A barrier would send what that step has recorded so far, and the capture
/// would have to be made again; so barriers wait for the next one.
pub(crate) fn is_open_elsewhere() -> bool {
    TAKEN.load(Ordering::Acquire) && !is_open()
}

/// Sends what these values need to run, and leaves alone what another thread captures.
pub(crate) fn send(device: &Device, values: &[TraceValue]) -> Result<(), Error> {
    if is_open_elsewhere() { Ok(device.sync_values(values)?) } else { crate::sync() }
}

/// A storage is used for the first time.
pub(crate) fn touched(storage: &Storage) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.starts.push(storage.current());
        }
    });
}

/// Something happens that a replay cannot repeat.
pub(crate) fn obstacle(what: impl FnOnce() -> String) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log
            && log.obstacle.is_none()
        {
            log.obstacle = Some(what());
        }
    });
}

/// Data came from the host.
pub(crate) fn uploaded(value: &TraceValue) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.uploads.extend(cell_of(value));
        }
    });
}

/// A capture in progress on this thread. Dropping it forgets the capture.
#[derive(Debug)]
pub struct Capture {
    device: u16,
    /// When it began.
    since: Moment,
    _turn: Turn,
}

impl Drop for Capture {
    fn drop(&mut self) {
        LOG.take();
        let _ = ltc_torch_sys::capture_end::<Storage>();
    }
}

impl Capture {
    /// Begins: what is pending is sent to run, so that what the step reads is data. `None` while another capture is
    /// open, on whatever thread.
    pub fn begin(device: u16) -> Result<Option<Capture>, Error> {
        let Some(turn) = Turn::take() else { return Ok(None) };
        crate::sync_all()?;
        let since = runtime()?.session.device(device)?.moment();
        LOG.set(Some(Log::default()));
        ltc_torch_sys::capture_begin();
        Ok(Some(Capture { device, since, _turn: turn }))
    }

    /// Ends the capture of a step that was given `inputs` and returned `results`, all tensors on the device, and whose
    /// host part handed over `host`. The step itself stays recorded as usual.
    pub fn end(
        self,
        inputs: &[impl Borrow<Tensor>],
        results: &[impl Borrow<Tensor>],
        host: HostNumbers,
    ) -> Result<Result<Step, NotReplayable>, Error> {
        let log = LOG.take().unwrap_or_default();
        let holds = ltc_torch_sys::capture_end::<Storage>()?;
        let device = runtime()?.session.device(self.device)?.clone();
        if let Some(obstacle) = log.obstacle {
            return Ok(Err(NotReplayable(obstacle)));
        }
        let noted = Noted { device, since: self.since, holds, starts: log.starts, uploads: log.uploads };
        match stages::step(noted, inputs, results, host) {
            Ok(step) => Ok(Ok(step)),
            Err(Stop::NotReplayable(why)) => Ok(Err(why)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}
