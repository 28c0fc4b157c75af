//! Whether what stands somewhere is what stood there: objects by identity, numbers and strings by type and value.

use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple},
};

/// Whether two objects are the same, or numbers or strings of one type and value.
pub(crate) fn same(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    if a.is(b) {
        return true;
    }
    if !a.get_type().is(b.get_type()) {
        return false;
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyFloat>(), b.downcast_exact::<PyFloat>()) {
        return a.value().to_bits() == b.value().to_bits();
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyTuple>(), b.downcast_exact::<PyTuple>()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b));
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyComplex>(), b.downcast_exact::<PyComplex>()) {
        return a.real().to_bits() == b.real().to_bits() && a.imag().to_bits() == b.imag().to_bits();
    }
    let by_value = a.is_exact_instance_of::<PyInt>()
        || a.is_exact_instance_of::<PyString>()
        || a.is_exact_instance_of::<PyBytes>();
    by_value && a.eq(b).unwrap_or(false)
}

pub(crate) fn same_found(py: Python<'_>, a: &Option<Py<PyAny>>, b: Option<&Bound<'_, PyAny>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a.bind(py), b),
        _ => false,
    }
}

/// Hands on a container's class and members, and what a `defaultdict` makes its values with.
pub(crate) fn each_part(
    container: Option<&Bound<'_, PyAny>>,
    each: &mut dyn FnMut(Option<&Bound<'_, PyAny>>) -> bool,
) -> PyResult<()> {
    let Some(container) = container else {
        each(None);
        return Ok(());
    };
    each(Some(container.get_type().as_any()));
    let Ok(dict) = container.downcast::<PyDict>() else {
        for member in container.try_iter()? {
            each(Some(&member?));
        }
        return Ok(());
    };
    each(container.getattr(intern!(container.py(), "default_factory")).ok().as_ref());
    each_pair(dict, &mut |key, value| {
        each(Some(key));
        each(Some(value))
    })
}

/// Hands on keys and values in the order in which a program meets them, until somebody has seen enough.
pub(crate) fn each_pair<'py>(
    dict: &Bound<'py, PyDict>,
    each: &mut dyn FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> bool,
) -> PyResult<()> {
    if !is_ordered(dict)? {
        let _ = dict.iter().all(|(key, value)| each(&key, &value));
        return Ok(());
    }
    for key in ordered_class(dict.py())?.call_method1(intern!(dict.py(), "__iter__"), (dict,))?.try_iter()? {
        let key = key?;
        if let Some(value) = dict.get_item(&key)?
            && !each(&key, &value)
        {
            break;
        }
    }
    Ok(())
}

/// Whether a dict has an order that changes while it is not written.
pub(crate) fn is_ordered(dict: &Bound<'_, PyDict>) -> PyResult<bool> {
    Ok(!dict.is_exact_instance_of::<PyDict>() && dict.is_instance(ordered_class(dict.py())?)?)
}

fn ordered_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || PyResult::Ok(py.import("collections")?.getattr("OrderedDict")?.unbind());
    Ok(CLASS.get_or_try_init(py, find)?.bind(py))
}
