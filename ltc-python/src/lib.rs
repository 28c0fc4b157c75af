//! The Python module `torch_ltc._ltc`: registers the device in the libtorch that `import torch` has loaded.

use pyo3::{exceptions::PyRuntimeError, prelude::*};

fn raise(e: ltc_torch::Error) -> PyErr {
    PyRuntimeError::new_err(e.to_string())
}

/// Registers the `ltc` device; doing it again does nothing.
#[pyfunction]
fn init() -> PyResult<()> {
    ltc_torch::init().map_err(raise)
}

/// Sends everything pending to run; waits for it when `wait` is true.
#[pyfunction]
#[pyo3(signature = (wait = false))]
fn mark_step(py: Python<'_>, wait: bool) -> PyResult<()> {
    py.detach(|| {
        ltc_torch::sync()?;
        if wait { ltc_torch::wait() } else { Ok(()) }
    })
    .map_err(raise)
}

/// Counters and timings as text.
#[pyfunction]
fn metrics_report() -> PyResult<String> {
    Ok(ltc_torch::metrics().map_err(raise)?.to_string())
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

/// Seeds the device's generators.
#[pyfunction]
fn manual_seed(seed: u64) -> PyResult<()> {
    ltc_torch::manual_seed(seed).map_err(raise)
}

#[pymodule]
fn _ltc(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(init, m)?)?;
    m.add_function(wrap_pyfunction!(mark_step, m)?)?;
    m.add_function(wrap_pyfunction!(metrics_report, m)?)?;
    m.add_function(wrap_pyfunction!(fallback_count, m)?)?;
    m.add_function(wrap_pyfunction!(device_count, m)?)?;
    m.add_function(wrap_pyfunction!(manual_seed, m)?)
}
