//! The Python module `torch_ltc._ltc`: registers the device in the libtorch that `import torch` has loaded.
//!
//! Everything crosses as functions and classes; tensors by `convert.rs`. Only what libtorch itself calls is an
//! operator: `ltc::_interrupted`, by which a wait raises what a signal's handler raised (`_device.py`).

mod capturing;
mod convert;
mod history;
mod host_program;
mod inspect;
mod marks;
mod older;
mod same;
mod sites;
mod step;
mod watch;

use std::{cell::RefCell, ffi::CString, time::Duration};

use ltc_torch::{Error, ErrorClass};
use pyo3::{
    exceptions::{PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyUserWarning, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::convert::lock::with_lock;

thread_local! {
    /// What a signal handler raised while this thread waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// An error as the exception that libtorch's bindings raise for it.
fn raise(e: Error) -> PyErr {
    let text = e.to_string();
    match e.class() {
        _ if matches!(e, Error::Setting(_)) => PyValueError::new_err(text),
        ErrorClass::Interrupted => RAISED.take().unwrap_or_else(|| PyRuntimeError::new_err(text)),
        ErrorClass::Runtime => PyRuntimeError::new_err(text),
        ErrorClass::Index => PyIndexError::new_err(text),
        ErrorClass::Value => PyValueError::new_err(text),
        ErrorClass::Type => PyTypeError::new_err(text),
        ErrorClass::NotImplemented => PyNotImplementedError::new_err(text),
        ErrorClass::LinAlg => of_torch("_LinAlgError", text),
        ErrorClass::OutOfMemory => of_torch("OutOfMemoryError", text),
        ErrorClass::DeviceLost => of_torch("AcceleratorError", text),
    }
}

/// An exception of libtorch's own Python module.
fn of_torch(class: &str, text: String) -> PyErr {
    let made =
        with_lock(|py| py.import("torch")?.getattr("_C")?.getattr(class)?.call1((&text,)).map(PyErr::from_value));
    made.and_then(Result::ok).unwrap_or_else(|| PyRuntimeError::new_err(text))
}

/// Runs the handlers of signals that came, on the thread that Python runs them on; whether one raised. Never once the
/// interpreter is going.
fn interrupted() -> bool {
    let raised = with_lock(|py| {
        let raised = py.check_signals().err();
        let is_raised = raised.is_some();
        RAISED.set(raised);
        is_raised
    });
    raised.unwrap_or(false)
}

/// A program failed: what only the failed call made is let go, as far as eager execution would not have it.
fn forget() {
    let _ = with_lock(|py| {
        let forgotten = py.import("torch_ltc._forget").and_then(|module| module.call_method0("forget"));
        if let Err(error) = forgotten {
            error.write_unraisable(py, None);
        }
    });
}

/// Raises what a signal handler raised while this thread waited.
#[pyfunction]
fn raise_interrupt() -> PyResult<()> {
    RAISED.take().map_or(Ok(()), Err)
}

/// What a Python program takes to record an operation, with modules and autograd around it: 5 to 10 us in the networks
/// of `benches/cases.py`.
const RECORDING: Duration = Duration::from_micros(6);

/// Registers the `ltc` device; doing it again does nothing.
#[pyfunction]
fn init(py: Python<'_>) -> PyResult<()> {
    let warnings = RefCell::new(Vec::new());
    let warn = |warning: &str| warnings.borrow_mut().push(warning.to_owned());
    let change = |options: &mut ltc_torch::Options| {
        options.config.recording = RECORDING;
        // Python has a name for the device, and its "mps" is to stay an error.
        options.tch_device = false;
    };
    ltc_torch::init_telling(warn, change).map_err(raise)?;
    ltc_torch::set_site_source(sites::PythonSites::new(py)?);
    ltc_torch::set_interrupt(interrupted).map_err(raise)?;
    ltc_torch::set_failure_hook(forget).map_err(raise)?;
    for warning in warnings.into_inner() {
        let text = CString::new(warning)?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

/// Sends everything pending to run; waits for it when `wait` is true.
#[pyfunction]
#[pyo3(signature = (wait = false))]
fn mark_step(py: Python<'_>, wait: bool) -> PyResult<()> {
    py.detach(|| {
        ltc_torch::sync()?;
        if wait { ltc_torch::wait() } else { Ok(()) }
    })
    .map_err(raise)?;
    warn(py)
}

/// What kernels warned of, as warnings of Python's.
fn warn(py: Python<'_>) -> PyResult<()> {
    for text in ltc_torch::take_warnings() {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)?;
    }
    Ok(())
}

/// Waits until the devices have done what was sent to them.
#[pyfunction]
fn wait(py: Python<'_>) -> PyResult<()> {
    py.detach(ltc_torch::wait).map_err(raise)?;
    warn(py)
}

/// Counters and timings as text.
#[pyfunction]
fn metrics_report() -> PyResult<String> {
    Ok(ltc_torch::metrics().map_err(raise)?.to_string())
}

/// Counters by name: numbers, fallbacks by operator under `aten::...`.
#[pyfunction]
fn counters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let m = ltc_torch::metrics().map_err(raise)?;
    let d = PyDict::new(py);
    for (name, value) in m.counters() {
        d.set_item(name, value)?;
    }
    Ok(d)
}

/// What executions of programs did so far, by name.
#[pyfunction]
fn executions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    for (name, count) in ltc_torch::run_stats().map_err(raise)?.counts() {
        d.set_item(name, count)?;
    }
    Ok(d)
}

/// Sets counters and timings to zero.
#[pyfunction]
fn reset_metrics() -> PyResult<()> {
    ltc_torch::reset_metrics().map_err(raise)
}

/// Operator, reason, how often, what a program can do about it.
type FallbackRow = (String, String, u64, Option<String>);

/// Operators that ran eagerly: `(name, reason, how often, what a program can do about it)`.
#[pyfunction]
fn fallbacks() -> PyResult<Vec<FallbackRow>> {
    let m = ltc_torch::metrics().map_err(raise)?;
    let row = |(op, reason, n): (String, ltc_torch::FallbackReason, u64)| {
        let advice = ltc_torch::advice(&op).map(str::to_owned);
        (op, reason.as_str().to_owned(), n, advice)
    };
    Ok(m.fallbacks.into_iter().map(row).collect())
}

/// How often operators ran eagerly, in all.
#[pyfunction]
fn fallback_count() -> PyResult<u64> {
    Ok(ltc_torch::metrics().map_err(raise)?.fallback_count())
}

/// How many devices there are.
#[pyfunction]
fn device_count() -> PyResult<u16> {
    ltc_torch::device_count().map_err(raise)
}

/// Seeds the devices' default generators.
#[pyfunction]
fn manual_seed(seed: u64) -> PyResult<()> {
    ltc_torch::manual_seed(seed).map_err(raise)
}

/// Seed of a device's default generator.
#[pyfunction]
fn initial_seed(device: u16) -> PyResult<u64> {
    ltc_torch::initial_seed(device).map_err(raise)
}

/// State of a device's default generator, a CPU byte tensor: a wait for the draws recorded so far.
#[pyfunction]
fn generator_state(py: Python<'_>, device: u16) -> PyResult<Py<PyAny>> {
    let state = py.detach(|| ltc_torch::generator_state(device)).map_err(raise)?;
    Ok(convert::list(py, &[state])?.get_item(0)?.unbind())
}

/// Sets the state of a device's default generator.
#[pyfunction]
fn set_generator_state(device: u16, state: &Bound<'_, PyAny>) -> PyResult<()> {
    ltc_torch::set_generator_state(device, &convert::tensor(state)?).map_err(raise)
}

/// Operators that are forced to run eagerly.
#[pyfunction]
fn force_fallback() -> PyResult<Vec<String>> {
    ltc_torch::force_fallback().map_err(raise)
}

/// Forces operators to run eagerly, in place of those forced so far.
#[pyfunction]
fn set_force_fallback(operators: Vec<String>) -> PyResult<()> {
    ltc_torch::set_force_fallback(operators.iter().map(String::as_str)).map_err(raise)
}

/// Starts (with an empty log) or stops keeping events.
#[pyfunction]
fn record_events(on: bool) -> PyResult<()> {
    ltc_torch::record_events(on).map_err(raise)
}

/// Takes the events kept so far, oldest first, as text.
#[pyfunction]
fn take_events() -> PyResult<Vec<String>> {
    Ok(ltc_torch::take_events().map_err(raise)?.iter().map(ToString::to_string).collect())
}

/// What a device is, for people to read.
#[pyfunction]
fn device_name(device: u16) -> PyResult<String> {
    ltc_torch::device_name(device).map_err(raise)
}

/// Where a device computes and keeps its values: `cpu` or `cuda:N`.
#[pyfunction]
fn device_place(device: u16) -> PyResult<String> {
    ltc_torch::place(device).map(|place| place.to_string()).map_err(raise)
}

/// Includes a dispatch key while something is put at a place that is not the CPU: for tests without a GPU.
#[pyfunction]
fn set_place_key(name: &str) -> PyResult<()> {
    ltc_torch::set_place_key(name).map_err(raise)
}

/// Operations recorded and not yet sent to run.
#[pyfunction]
fn pending_count() -> PyResult<usize> {
    ltc_torch::pending_count().map_err(raise)
}

/// Programs in the computation cache.
#[pyfunction]
fn cached_programs() -> PyResult<usize> {
    ltc_torch::cached_programs().map_err(raise)
}

/// Forgets all compiled programs.
#[pyfunction]
fn clear_cache() -> PyResult<()> {
    ltc_torch::clear_cache().map_err(raise)
}

/// Gives memory kept for the next run back to the system.
#[pyfunction]
fn empty_cache(py: Python<'_>) -> PyResult<()> {
    py.detach(ltc_torch::empty_cache).map_err(raise)
}

/// Whether steps are recorded into the nodes of the ones before them.
#[pyfunction]
fn set_reuse_nodes(on: bool) -> PyResult<()> {
    ltc_torch::set_reuse_nodes(on).map_err(raise)
}

/// Sends what is pending and waits for it, whatever comes of it.
#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    py.detach(ltc_torch::before_fork).map_err(raise)
}

/// Operators got other kernels than they had: nothing that was captured before goes by them.
#[pyfunction]
fn note_registration() {
    ltc_torch::note_registration();
}

/// The thread's state that operators and autograd depend on besides their arguments, to be asked what differs later.
#[pyclass(frozen, module = "torch_ltc._ltc")]
struct Ambient(ltc_torch::Ambient);

#[pymethods]
impl Ambient {
    #[new]
    fn new() -> Self {
        Ambient(ltc_torch::ambient())
    }

    /// What is different now, in words; empty where nothing is.
    fn changed(&self) -> &'static str {
        self.0.difference(&ltc_torch::ambient()).unwrap_or_default()
    }

    /// Whether Python modes, function transforms or hooks of saved tensors are active, which see each operator.
    fn has_modes(&self) -> bool {
        self.0.has_modes()
    }
}

/// Makes a function the profile function of this thread, as `sys.setprofile` does but for two things: it is told
/// neither of the ends of C functions nor of exceptions, and frames' variables are not copied to and fro.
#[pyfunction]
fn observe(call: &Bound<'_, PyAny>) {
    convert::profile::observe(call);
}

/// The function that a frame runs; `None` where this Python is not known (`KNOWS_FRAMES`). Only a profile function has
/// frames to ask about.
#[pyfunction]
fn function_of_frame<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    convert::function_of_frame(frame)
}

/// What a device's default generator draws from next, taken down and gone back to without waiting.
#[pyclass(frozen, module = "torch_ltc._ltc")]
struct Draws(ltc_torch::Draws);

#[pymethods]
impl Draws {
    #[new]
    fn new(device: u16) -> PyResult<Self> {
        Ok(Draws(ltc_torch::Draws::of(device).map_err(raise)?))
    }

    /// The generator draws from this next.
    fn resume(&self) -> PyResult<()> {
        self.0.resume().map_err(raise)
    }
}

#[pymodule]
fn _ltc(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<step::Replays>()?;
    m.add_class::<history::History>()?;
    m.add_class::<host_program::HostRecording>()?;
    m.add_class::<host_program::HostProgram>()?;
    m.add_class::<watch::Watch>()?;
    m.add_class::<older::Older>()?;
    m.add_class::<Ambient>()?;
    m.add_class::<Draws>()?;
    m.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    m.add("KNOWS_FRAMES", convert::knows_frames(m.py()))?;
    m.add_function(wrap_pyfunction!(function_of_frame, m)?)?;
    m.add_function(wrap_pyfunction!(observe, m)?)?;
    m.add_function(wrap_pyfunction!(history::gather_by_python, m)?)?;
    m.add_function(wrap_pyfunction!(history::any_is_dual, m)?)?;
    m.add_function(wrap_pyfunction!(history::history_is_freed, m)?)?;
    m.add_function(wrap_pyfunction!(history::grad_of, m)?)?;
    m.add_function(wrap_pyfunction!(history::pass_to, m)?)?;
    m.add_function(wrap_pyfunction!(history::without_history, m)?)?;
    m.add_function(wrap_pyfunction!(note_registration, m)?)?;
    m.add_function(wrap_pyfunction!(capturing::is_capturing, m)?)?;
    m.add_function(wrap_pyfunction!(convert::are_bare, m)?)?;
    m.add_function(wrap_pyfunction!(capturing::pause_capture, m)?)?;
    m.add_function(wrap_pyfunction!(capturing::capture_reads, m)?)?;
    m.add_function(wrap_pyfunction!(capturing::capture_keeps_reads, m)?)?;
    m.add_function(wrap_pyfunction!(init, m)?)?;
    m.add_function(wrap_pyfunction!(raise_interrupt, m)?)?;
    m.add_function(wrap_pyfunction!(mark_step, m)?)?;
    m.add_function(wrap_pyfunction!(wait, m)?)?;
    m.add_function(wrap_pyfunction!(metrics_report, m)?)?;
    m.add_function(wrap_pyfunction!(counters, m)?)?;
    m.add_function(wrap_pyfunction!(executions, m)?)?;
    m.add_function(wrap_pyfunction!(reset_metrics, m)?)?;
    m.add_function(wrap_pyfunction!(fallbacks, m)?)?;
    m.add_function(wrap_pyfunction!(fallback_count, m)?)?;
    m.add_function(wrap_pyfunction!(device_count, m)?)?;
    m.add_function(wrap_pyfunction!(manual_seed, m)?)?;
    m.add_function(wrap_pyfunction!(initial_seed, m)?)?;
    m.add_function(wrap_pyfunction!(force_fallback, m)?)?;
    m.add_function(wrap_pyfunction!(set_force_fallback, m)?)?;
    m.add_function(wrap_pyfunction!(record_events, m)?)?;
    m.add_function(wrap_pyfunction!(take_events, m)?)?;
    m.add_function(wrap_pyfunction!(device_name, m)?)?;
    m.add_function(wrap_pyfunction!(device_place, m)?)?;
    m.add_function(wrap_pyfunction!(set_place_key, m)?)?;
    m.add_function(wrap_pyfunction!(pending_count, m)?)?;
    m.add_function(wrap_pyfunction!(cached_programs, m)?)?;
    m.add_function(wrap_pyfunction!(clear_cache, m)?)?;
    m.add_function(wrap_pyfunction!(empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(set_reuse_nodes, m)?)?;
    m.add_function(wrap_pyfunction!(generator_state, m)?)?;
    m.add_function(wrap_pyfunction!(set_generator_state, m)?)?;
    m.add_function(wrap_pyfunction!(host_program::record_host_graph, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::value_id, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::never_was, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::sync, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_hash, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_data, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::run_graph, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_text, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_sites, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_dot, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::graph_backend, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::cache_dot, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::set_profiling, m)?)?;
    m.add_function(wrap_pyfunction!(inspect::take_profile, m)?)?;
    m.add_function(wrap_pyfunction!(before_fork, m)?)
}
