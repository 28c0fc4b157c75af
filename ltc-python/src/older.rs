//! Which objects are older than a step.

use pyo3::{
    prelude::*,
    types::{PyFrozenSet, PyList, PyTuple},
};
use rustc_hash::FxHashSet;

/// The objects that the collector knew at some time, held so that none of their addresses is used again meanwhile.
///
/// But for tuples and frozen sets: another thread may be making one, which Python allows only while nobody else holds
/// it (`SystemError` otherwise). They never change, so nobody has to know their age.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct Older {
    objects: Py<PyList>,
    addresses: FxHashSet<usize>,
}

#[pymethods]
impl Older {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let all = py.import("gc")?.call_method0("get_objects")?.downcast_into::<PyList>()?;
        let is_held =
            |x: &Bound<'_, PyAny>| !x.is_exact_instance_of::<PyTuple>() && !x.is_exact_instance_of::<PyFrozenSet>();
        let objects: Vec<_> = all.iter().filter(is_held).collect();
        drop(all);
        let mut addresses = FxHashSet::with_capacity_and_hasher(objects.len(), rustc_hash::FxBuildHasher);
        addresses.extend(objects.iter().map(|x| x.as_ptr() as usize));
        Ok(Older { objects: PyList::new(py, objects)?.unbind(), addresses })
    }

    /// Whether this object was there.
    fn __contains__(&self, object: &Bound<'_, PyAny>) -> bool {
        self.addresses.contains(&(object.as_ptr() as usize))
    }

    /// Those of them that are of this class itself.
    fn of_class<'py>(&self, class: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
        let objects = self.objects.bind(class.py());
        objects.iter().filter(|x| x.get_type_ptr().cast() == class.as_ptr()).collect()
    }

    /// Those of them that are at these addresses.
    fn at<'py>(&self, py: Python<'py>, addresses: Vec<usize>) -> Vec<Bound<'py, PyAny>> {
        let wanted: FxHashSet<usize> = addresses.into_iter().collect();
        self.objects.bind(py).iter().filter(|x| wanted.contains(&(x.as_ptr() as usize))).collect()
    }

    /// Lets go of the objects; which they were is still known.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let objects = self.objects.bind(py);
        objects.del_slice(0, objects.len())
    }
}
