//! What Python asks and tells of the capture in progress on its thread.

use pyo3::prelude::*;

/// Whether this thread captures a step: calls within it are part of it.
#[pyfunction]
pub(crate) fn is_capturing() -> bool {
    ltc_torch::is_capturing()
}

/// What this thread uses is not noted by the capture in progress from here on, or is again: what is made meanwhile can
/// be an input of the captured step.
#[pyfunction]
pub(crate) fn pause_capture(pauses: bool) {
    ltc_torch::capture_pause(pauses);
}

/// How many values the host has read in the capture in progress on this thread.
#[pyfunction]
pub(crate) fn capture_reads() -> usize {
    ltc_torch::capture_reads()
}

/// What the host has read behind so many values decides nothing: it is a result of the captured step.
#[pyfunction]
pub(crate) fn capture_keeps_reads(count: usize) {
    ltc_torch::capture_keeps_reads(count);
}
