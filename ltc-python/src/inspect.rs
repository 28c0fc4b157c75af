//! Looking at what is recorded: functions of tensors behind `torch_ltc.computation`, `debug`, `ir_cache` and `metrics`.

use ltc_torch::{Computation, Error, Tensor};
use pyo3::{prelude::*, types::PyList};

use crate::{
    convert::{self, all, list},
    raise,
};

/// What `f` says of these tensors. It runs without the interpreter's lock, which letting the tensors go wants: they
/// come back.
fn of<T: Send>(tensors: &Bound<'_, PyAny>, f: impl FnOnce(&[Tensor]) -> Result<T, Error> + Send) -> PyResult<T> {
    let held = all(tensors)?;
    let (said, _held) = tensors.py().detach(move || (f(&held), held));
    said.map_err(raise)
}

/// What `f` says of the pending computation of these tensors.
fn of_pending<T: Send>(
    tensors: &Bound<'_, PyAny>,
    f: impl FnOnce(Computation) -> Result<T, Error> + Send,
) -> PyResult<T> {
    of(tensors, |tensors| f(ltc_torch::computation(tensors)?))
}

/// A number that names the value a tensor holds.
#[pyfunction]
pub(crate) fn value_id(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    ltc_torch::value_id(&convert::tensor(tensor)?).map_err(raise)
}

/// Whether all a lazy tensor holds is a failure, and it held nothing before.
#[pyfunction]
pub(crate) fn never_was(py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let tensor = convert::tensor(tensor)?;
    if !ltc_torch::is_lazy(&tensor) {
        return Ok(false);
    }
    py.detach(move || ltc_torch::never_was(&tensor)).map_err(raise)
}

/// Sends what these tensors need to run.
#[pyfunction]
pub(crate) fn sync(tensors: &Bound<'_, PyAny>) -> PyResult<()> {
    of(tensors, ltc_torch::sync_tensors)
}

/// Structural hash of the pending computation of these tensors.
#[pyfunction]
pub(crate) fn graph_hash(tensors: &Bound<'_, PyAny>) -> PyResult<String> {
    of(tensors, ltc_torch::computation_hash)
}

/// Data that the pending computation of these tensors starts from: numbers that name it, and CPU tensors.
#[pyfunction]
pub(crate) fn graph_data<'py>(tensors: &Bound<'py, PyAny>) -> PyResult<(Vec<u64>, Bound<'py, PyList>)> {
    let (ids, data) = of_pending(tensors, |pending| Ok((pending.data_ids(), pending.data()?)))?;
    Ok((ids, list(tensors.py(), &data)?))
}

/// Runs the computation of this hash on other data; CPU tensors.
#[pyfunction]
pub(crate) fn run_graph<'py>(hash: &str, inputs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    list(inputs.py(), &of(inputs, |inputs| ltc_torch::run_computation(hash, inputs))?)
}

/// The pending graph of these tensors, with the numbers of this recording.
#[pyfunction]
pub(crate) fn graph_text(tensors: &Bound<'_, PyAny>) -> PyResult<String> {
    of_pending(tensors, |pending| Ok(pending.text()))
}

/// The pending graph of these tensors, with the line of the program that recorded each operation.
#[pyfunction]
pub(crate) fn graph_sites(tensors: &Bound<'_, PyAny>) -> PyResult<String> {
    of_pending(tensors, |pending| Ok(pending.text_with_sites()))
}

/// The pending graph of these tensors in the DOT language.
#[pyfunction]
pub(crate) fn graph_dot(tensors: &Bound<'_, PyAny>) -> PyResult<String> {
    of_pending(tensors, |pending| Ok(pending.dot()))
}

/// The pending graph of these tensors, lowered for the backend.
#[pyfunction]
pub(crate) fn graph_backend(tensors: &Bound<'_, PyAny>) -> PyResult<String> {
    of_pending(tensors, |pending| Ok(pending.extracted.backend_text()?))
}

/// The cached programs in the DOT language.
#[pyfunction]
pub(crate) fn cache_dot() -> PyResult<String> {
    ltc_torch::cache_dot().map_err(raise)
}

/// Starts or stops timing the steps of programs.
#[pyfunction]
pub(crate) fn set_profiling(on: bool) -> PyResult<()> {
    ltc_torch::set_profiling(on).map_err(raise)
}

/// The steps timed since the last call: seconds in all, runs, name; those that took longest first.
#[pyfunction]
pub(crate) fn take_profile(py: Python<'_>) -> PyResult<Vec<(f64, u64, String)>> {
    let steps = py.detach(ltc_torch::take_profile).map_err(raise)?;
    Ok(steps.into_iter().map(|step| (step.total.as_secs_f64(), step.count, step.name)).collect())
}
