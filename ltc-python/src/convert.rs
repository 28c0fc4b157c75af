//! Python's tensors as libtorch's and back, by what torch offers for it: nothing here depends on the layout of Python's
//! tensor objects, or on Python's headers.

use std::ffi::c_void;

use ltc_torch::{Borrowed, impl_of};
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyCapsule, PyList, PyTuple, PyType},
};
use smallvec::SmallVec;
use tch::Tensor;

/// Tensors of a call, held. Made and let go with the interpreter's lock, which counting their Python objects wants.
pub(crate) type Tensors = SmallVec<[Tensor; 4]>;

/// The tensors in a tuple; `None` where an item is not a tensor on the device.
pub(crate) fn tensors(items: &Bound<'_, PyTuple>) -> PyResult<Option<Tensors>> {
    let mut tensors = Tensors::new();
    for item in items.iter() {
        let Some(handle) = handle_of(items.py(), &item)? else { return Ok(None) };
        // SAFETY: the `TensorImpl` of a Python tensor, which `item` holds.
        let tensor = unsafe { Borrowed::of_impl(&handle) }.shallow_clone();
        if !ltc_torch::is_lazy(&tensor) {
            return Ok(None);
        }
        tensors.push(tensor);
    }
    Ok(Some(tensors))
}

/// The `at::TensorImpl*` of a Python tensor; `None` for what is none.
fn handle_of(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Option<*mut c_void>> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static PARAMETER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static HANDLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (class, tensor) = (object.get_type(), TENSOR.import(py, "torch", "Tensor")?);
    if class.is(tensor) || class.is(PARAMETER.import(py, "torch.nn", "Parameter")?) {
        let address: usize = object.getattr(intern!(py, "_cdata"))?.extract()?;
        return Ok(Some(address as *mut c_void));
    }
    if !object.is_instance(tensor)? {
        return Ok(None);
    }
    // Subclasses may answer `_cdata` themselves.
    let capsule = HANDLE.import(py, "torch._C", "_tensor_impl_raw_handle")?.call1((object,))?;
    Ok(Some(capsule.downcast::<PyCapsule>()?.pointer()).filter(|p| !p.is_null()))
}

/// A list of these as Python tensors.
pub(crate) fn list<'py>(py: Python<'py>, tensors: &[Tensor]) -> PyResult<Bound<'py, PyList>> {
    static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let wrap = WRAP.import(py, "torch._C", "_wrap_tensor_impl")?;
    let list = PyList::empty(py);
    for t in tensors {
        // SAFETY: a capsule without name or destructor around a pointer that is not null; torch counts the new holder
        // before it returns, while `t` is there.
        let capsule = unsafe {
            let raw = pyo3::ffi::PyCapsule_New(impl_of(t), std::ptr::null(), None);
            Bound::from_owned_ptr_or_err(py, raw)?
        };
        list.append(wrap.call1((capsule,))?)?;
    }
    Ok(list)
}
