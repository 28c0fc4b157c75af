//! Noting what a step uses while it is recorded, so that it can be replayed.

mod stages;

use ltc_core::{Moment, Storage};
use ltc_torch_sys::{AsTensor, TensorChecks};

use crate::{
    Error,
    capture_log::{self, Turn},
    numbers::HostNumbers,
    runtime,
    step::{CompiledStep, NotReplayable},
};
use stages::{Noted, Stop};

/// A capture in progress on this thread. Dropping it forgets the capture.
#[derive(Debug)]
pub struct Capture {
    device: u16,
    /// When it began, on this device and on the others.
    since: Moment,
    others: Vec<(u16, Moment)>,
    _turn: Turn,
}

impl Drop for Capture {
    fn drop(&mut self) {
        drop(capture_log::close());
        let _ = ltc_torch_sys::capture_end::<Storage>();
    }
}

impl Capture {
    /// Begins: what is pending is sent to run, so that what the step reads is data. `None` while another capture is
    /// open, on whatever thread.
    ///
    /// # Errors
    /// Fails where the device is not [initialised](crate::init), there is none of this index, or what is pending does
    /// not compile.
    pub fn begin(device: u16) -> Result<Option<Capture>, Error> {
        Capture::open(device, false)
    }

    /// The same, for a capture that is asked for its [`checks`](Capture::checks).
    pub(crate) fn begin_with_checks(device: u16) -> Result<Option<Capture>, Error> {
        Capture::open(device, true)
    }

    /// What the step so far takes for granted of the tensors that the program keeps.
    pub(crate) fn checks(&self) -> Result<TensorChecks, Error> {
        Ok(ltc_torch_sys::capture_checks()?)
    }

    fn open(device: u16, with_checks: bool) -> Result<Option<Capture>, Error> {
        let Some(turn) = Turn::take() else { return Ok(None) };
        crate::sync_all()?;
        let session = &runtime()?.session;
        let since = session.device(device)?.moment();
        let others = session.devices().iter().filter(|d| d.index() != device);
        let others = others.map(|d| (d.index(), d.moment())).collect();
        capture_log::open();
        ltc_torch_sys::capture_begin(with_checks);
        Ok(Some(Capture { device, since, others, _turn: turn }))
    }

    /// Ends the capture of a step that was given `inputs` and returned `results`, all tensors on the device, and whose
    /// host part handed over `host`. The step itself stays recorded as usual.
    ///
    /// # Errors
    /// Fails for an input that is not on the device, and where libtorch refuses what the capture asks of it.
    pub fn end(
        self,
        inputs: &[impl AsTensor],
        results: &[impl AsTensor],
        host: HostNumbers,
    ) -> Result<Result<CompiledStep, NotReplayable>, Error> {
        let log = capture_log::close().unwrap_or_default();
        let holds = ltc_torch_sys::capture_end::<Storage>()?;
        let device = runtime()?.session.device(self.device)?.clone();
        if let Some(obstacle) = log.obstacle {
            return Ok(Err(NotReplayable(obstacle)));
        }
        if !results.iter().all(crate::is_lazy) {
            return Ok(Err(NotReplayable("it returns a tensor that is not on the device, or is undefined".into())));
        }
        let is_elsewhere = |t: Option<u16>| t.is_some_and(|device| device != self.device);
        let mut tensors = inputs.iter().map(crate::device_of).chain(results.iter().map(crate::device_of));
        if tensors.any(is_elsewhere) || self.uses_others()? {
            return Ok(Err(NotReplayable("it uses more than one device".into())));
        }
        let noted =
            Noted { device, since: self.since, holds, starts: log.starts, uploads: log.uploads, reads: log.reads };
        match stages::step(noted, inputs, results, host) {
            Ok(step) => Ok(Ok(step)),
            Err(Stop::NotReplayable(why)) => Ok(Err(why)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Whether something was recorded on another device since it began.
    fn uses_others(&self) -> Result<bool, Error> {
        let session = &runtime()?.session;
        for (index, since) in &self.others {
            let device = session.device(*index)?;
            if device.pending_count() > 0 || device.moment() != *since {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
