//! Programs over CPU tensors as Python objects, for `torch.compile`. What is recorded is decided in `_host_graph.py`.

use ltc_torch::HostProgram as Program;
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyList};

use crate::{
    convert::{all, list, tensor},
    raise,
};

/// A recording in progress on this thread; whoever drops it gives it up.
#[pyclass(unsendable, module = "torch_ltc._ltc")]
pub(crate) struct HostRecording(Option<ltc_torch::HostRecording>);

/// Begins to record a graph over CPU tensors; None while another thread captures.
#[pyfunction]
pub(crate) fn record_host_graph() -> PyResult<Option<HostRecording>> {
    Ok(ltc_torch::HostRecording::begin().map_err(raise)?.map(|recording| HostRecording(Some(recording))))
}

#[pymethods]
impl HostRecording {
    /// A tensor on ltc that shows the memory of a dense CPU tensor.
    fn lend<'py>(&mut self, host: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let recording = self.0.as_mut().ok_or_else(|| PyRuntimeError::new_err("the recording has ended"))?;
        let lent = recording.lend(&tensor(host)?).map_err(raise)?;
        list(host.py(), &[lent])?.get_item(0)
    }

    /// The program that computes these tensors, or why there is none; and whether it may go better another time.
    fn end<'py>(&mut self, results: &Bound<'py, PyAny>) -> PyResult<(Option<HostProgram>, String, bool)> {
        let recording = self.0.take().ok_or_else(|| PyRuntimeError::new_err("the recording has ended"))?;
        Ok(match recording.end(&all(results)?).map_err(raise)? {
            Ok(program) => (Some(HostProgram(program)), String::new(), false),
            Err(why) => (None, why.to_string(), why.is_interruption()),
        })
    }

    /// Gives the recording up.
    fn close(&mut self) {
        drop(self.0.take());
    }
}

/// A program over CPU tensors.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct HostProgram(Program);

#[pymethods]
impl HostProgram {
    /// Its results for these CPU tensors; None where it was recorded for tensors of other layouts.
    fn run<'py>(&self, inputs: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        let held = all(inputs)?;
        if !self.0.takes(&held) {
            return Ok(None);
        }
        // Letting tensors go wants the interpreter's lock: they come back.
        let (results, _held) = inputs.py().detach(move || (self.0.run(&held), held));
        list(inputs.py(), &results.map_err(raise)?).map(Some)
    }

    /// Its graph.
    fn text(&self) -> String {
        self.0.text()
    }
}
