//! The way back through a compiled step as a Python object; `_history.py` says what it is for.

use ltc_torch::Tensor;
use parking_lot::RwLock;
use pyo3::{prelude::*, types::PyList};

use crate::{
    convert::{all, any_tensor, list},
    raise,
};

/// See [`ltc_torch::History`].
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct History(RwLock<ltc_torch::History>);

/// Tensors that show the same memory as these, without history, and as views of nothing. `freed_histories` are those
/// that get a history nevertheless, one that cannot be gone back through: index, name, and the error that says why.
#[pyfunction]
pub(crate) fn without_history<'py>(
    tensors: &Bound<'py, PyAny>,
    freed_histories: Vec<(usize, String, String)>,
) -> PyResult<Bound<'py, PyList>> {
    let fresh: Result<Vec<_>, _> = all(tensors)?.iter().map(ltc_torch::without_history).collect();
    let fresh = fresh.map_err(raise)?;
    for (i, name, why) in &freed_histories {
        if let Some(t) = fresh.get(*i) {
            ltc_torch::set_freed_history(t, name, why).map_err(ltc_torch::Error::from).map_err(raise)?;
        }
    }
    list(tensors.py(), &fresh)
}

/// Whether a tensor has a history that says why nobody can go back through it.
#[pyfunction]
pub(crate) fn history_is_freed(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(any_tensor(tensor.py(), tensor)?.is_some_and(|t| ltc_torch::history_is_freed(&t)))
}

/// The gradient of a tensor, also of one that is no leaf, without the warning of Python's attribute.
#[pyfunction]
pub(crate) fn grad_of<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(t) = any_tensor(tensor.py(), tensor)? else { return Ok(None) };
    ltc_torch::grad_of(&t).map(|grad| list(tensor.py(), &[grad])?.get_item(0)).transpose()
}

/// Gives these tensors, which have no history, one: their gradients go to the others' as they are.
#[pyfunction]
pub(crate) fn pass_to(tensors: &Bound<'_, PyAny>, others: &Bound<'_, PyAny>) -> PyResult<()> {
    for (t, to) in all(tensors)?.iter().zip(all(others)?.iter()) {
        ltc_torch::pass_to(t, to).map_err(ltc_torch::Error::from).map_err(raise)?;
    }
    Ok(())
}

/// Whether functions of Python are called where the gradient of one of these tensors is added up.
#[pyfunction]
pub(crate) fn gather_by_python(tensors: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(all(tensors)?.iter().any(|t| ltc_torch::state_of(t).gathers_by_python()))
}

/// Whether one of these tensors has a tangent (`torch.autograd.forward_ad`).
#[pyfunction]
pub(crate) fn any_is_dual(tensors: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(all(tensors)?.iter().any(|t| ltc_torch::state_of(t).is_dual()))
}

#[pymethods]
impl History {
    /// What autograd makes of these tensors from here on.
    #[new]
    fn new(tensors: &Bound<'_, PyAny>) -> PyResult<Self> {
        let history = ltc_torch::History::begin(&all(tensors)?).map_err(ltc_torch::Error::from);
        Ok(History(RwLock::new(history.map_err(raise)?)))
    }

    /// Takes the history of these results; which of the tensors it leads to. Raises why it cannot be gone back through.
    fn take(&self, results: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        self.0.write().take(&all(results)?).map_err(ltc_torch::Error::from).map_err(raise)
    }

    /// Gradients stop at the tensors given.
    fn detach(&self) {
        self.0.write().detach();
    }

    /// Gradients go on to what was before, as they did.
    fn mend(&self) {
        self.0.write().mend();
    }

    /// It is detached for good, and holds on to nothing that was before.
    fn let_go(&self) {
        self.0.write().let_go();
    }

    /// Goes back, where it was detached, from gradients of the results or `None` to gradients of the tensors or `None`.
    fn run<'py>(&self, grads: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let py = grads.py();
        let grads: Vec<_> = grads.iter().map(|g| any_tensor(py, &g)).collect::<PyResult<_>>()?;
        // A hook that runs within may go back again in this thread.
        let run = move || (self.0.read_recursive().run(&grads), grads);
        let (out, _grads) = py.detach(run);
        let out = out.map_err(ltc_torch::Error::from).map_err(raise)?;
        let found = list(py, &out.iter().flatten().map(Tensor::shallow_clone).collect::<Vec<_>>())?;
        let result = PyList::empty(py);
        let mut next = found.iter();
        for t in &out {
            result.append(if t.is_some() { next.next() } else { None })?;
        }
        Ok(result)
    }
}
