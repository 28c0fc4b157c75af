//! What devices did, hold and cost: counters, events, timings, memory, caches.

use ltc_backend::{Backend as _, Capacity, DeviceIndex, MemoryInfo, MemoryReset};
use ltc_core::{Event, Metrics, Storage};
use ltc_torch_sys::{AsTensor, TorchError};
use ltc_ts::{Place, RunStats, StepTime, TsBackend};

use crate::{Error, runtime, wait};

/// Counters and timings since the start or the last [`reset_metrics`].
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn metrics() -> Result<Metrics, Error> {
    Ok(runtime()?.session.metrics())
}

/// Whether steps are recorded into the nodes of the ones before them;
/// [`Config::reuse_nodes`](crate::Config::reuse_nodes) to begin with.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn set_reuse_nodes(on: bool) -> Result<(), Error> {
    runtime()?.session.set_reuse_nodes(on);
    Ok(())
}

/// Starts or stops timing the steps of programs.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn set_profiling(on: bool) -> Result<(), Error> {
    runtime()?.backend.set_profiling(on);
    Ok(())
}

/// The steps timed since the last call, those that took longest first. Waits for what was sent before.
///
/// # Errors
/// As [`wait`].
pub fn take_profile() -> Result<Vec<StepTime>, Error> {
    wait()?;
    Ok(runtime()?.backend.take_profile())
}

/// What all programs run so far did: steps, fused kernels, writes in place.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn run_stats() -> Result<RunStats, Error> {
    Ok(runtime()?.backend.run_stats())
}

/// Sets counters and timings to zero.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn reset_metrics() -> Result<(), Error> {
    runtime()?.session.reset_metrics();
    Ok(())
}

/// Starts (with an empty log) or stops keeping events.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn record_events(on: bool) -> Result<(), Error> {
    runtime()?.session.record_events(on);
    Ok(())
}

/// Takes the events kept so far, oldest first.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn take_events() -> Result<Vec<Event>, Error> {
    Ok(runtime()?.session.take_events())
}

/// Memory in live buffers of a device, in bytes.
///
/// # Errors
/// Fails where there is no such device.
pub fn memory(index: u16) -> Result<MemoryInfo, Error> {
    let rt = runtime()?;
    rt.session.device(index)?;
    Ok(rt.session.memory(index))
}

/// Has numbers of [`memory`] begin anew.
///
/// # Errors
/// Fails where there is no such device.
pub fn reset_memory(index: u16, what: MemoryReset) -> Result<(), Error> {
    let rt = runtime()?;
    rt.session.device(index)?;
    rt.session.reset_memory(index, what);
    Ok(())
}

/// How much memory a device has; `None` where nobody knows.
///
/// # Errors
/// Fails where there is no such device.
pub fn capacity(index: u16) -> Result<Option<Capacity>, Error> {
    let rt = runtime()?;
    rt.session.device(index)?;
    Ok(rt.session.capacity(index))
}

/// What a device is, for people to read.
///
/// # Errors
/// Fails where there is no such device.
pub fn device_name(index: u16) -> Result<String, Error> {
    let rt = runtime()?;
    rt.session.device(index)?;
    Ok(rt.session.device_name(index))
}

/// Gives the memory kept for the next run back to the system. Waits for what was sent before.
///
/// # Errors
/// As [`wait`]; also where a GPU's allocator cannot give its memory back.
pub fn empty_cache() -> Result<(), Error> {
    wait()?;
    Ok(release_memory(&runtime()?.backend)?)
}

/// Nothing is under way.
pub(crate) fn release_memory(backend: &TsBackend) -> Result<(), TorchError> {
    ltc_torch_sys::empty_pool();
    (0..backend.device_count() as u16)
        .filter_map(|index| backend.place(DeviceIndex(index)).ok())
        .try_for_each(Place::release_memory)
}

/// Operations recorded on all devices and not yet sent to run.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn pending_count() -> Result<usize, Error> {
    Ok(runtime()?.session.devices().iter().map(ltc_core::Device::pending_count).sum())
}

/// Programs in the computation cache.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn cached_programs() -> Result<usize, Error> {
    Ok(runtime()?.session.cached_programs())
}

/// Forgets all compiled programs.
///
/// # Errors
/// Fails before [`init`](crate::init).
pub fn clear_cache() -> Result<(), Error> {
    runtime()?.session.clear_cache();
    Ok(())
}

/// Size in bytes of the storage behind a lazy tensor.
///
/// # Errors
/// Fails for a tensor that is not on a lazy device.
pub fn storage_bytes(t: &impl AsTensor) -> Result<usize, Error> {
    runtime()?;
    Ok(ltc_torch_sys::storage_of(t, |s: &Storage, _| s.nbytes())?)
}
