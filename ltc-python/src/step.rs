//! Compiled steps as Python objects; see `ltc_torch::Replayer`.

use ltc_torch::{HostNumbers, Replayer};
use parking_lot::Mutex;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyList, PyTuple},
};

use crate::{
    convert::{Tensors, list, tensors},
    raise,
};

/// A step function's captures.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct Replays(Mutex<Replayer>);

fn all_lazy(items: &Bound<'_, PyTuple>) -> PyResult<Tensors> {
    tensors(items)?.ok_or_else(|| PyTypeError::new_err("expected tensors on the ltc device"))
}

#[pymethods]
impl Replays {
    #[new]
    fn new() -> Self {
        Replays(Mutex::default())
    }

    /// Results of a replay of what was captured under `key`, if there is such a thing and all inputs are tensors on the
    /// device. Otherwise nothing was done.
    fn replay<'py>(
        &self,
        inputs: &Bound<'py, PyTuple>,
        key: &str,
        host: Vec<i64>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let py = inputs.py();
        let Some(inputs) = tensors(inputs)? else { return Ok(None) };
        let host: Vec<u64> = host.into_iter().map(|n| n as u64).collect();
        let (found, _inputs) = py.detach(move || (self.0.lock().replay(key, &inputs, &host), inputs));
        found.map_err(raise)?.map(|results| list(py, &results)).transpose()
    }

    /// Begins a call that was not replayed; whether it is to be captured.
    fn begin(&self, inputs: &Bound<'_, PyTuple>, key: &str) -> PyResult<bool> {
        let py = inputs.py();
        let inputs = all_lazy(inputs)?;
        let (captures, _inputs) = py.detach(move || (self.0.lock().begin(key, &inputs), inputs));
        captures.map_err(raise)
    }

    /// Ends a call that returned these results, whose host part is `program` and handed over `host`; whether the next one
    /// can be a replay.
    fn end(
        &self,
        inputs: &Bound<'_, PyTuple>,
        results: &Bound<'_, PyTuple>,
        program: String,
        host: Vec<i64>,
    ) -> PyResult<bool> {
        let py = inputs.py();
        let (inputs, results) = (all_lazy(inputs)?, all_lazy(results)?);
        let host = HostNumbers { program, values: host.into_iter().map(|n| n as u64).collect() };
        let end = move || (self.0.lock().end(&inputs, &results, host), inputs, results);
        let (ready, _inputs, _results) = py.detach(end);
        ready.map_err(raise)
    }

    /// The call in progress failed.
    fn abort(&self) {
        self.0.lock().abort();
    }

    /// The call in progress did what a replay cannot repeat.
    fn refuse(&self, why: String) {
        self.0.lock().refuse(why);
    }

    /// What calls with this key depend on besides has changed.
    fn forget(&self, key: &str) {
        self.0.lock().forget(key);
    }

    /// Calls replayed, calls recorded, why it is not replayed.
    fn state(&self) -> (u64, u64, String) {
        let replayer = self.0.lock();
        let (replayed, recorded) = replayer.counts();
        (replayed, recorded, replayer.refusal().map(ToString::to_string).unwrap_or_default())
    }
}
