//! Which objects are older than a step.

use pyo3::{
    prelude::*,
    types::{PyFrozenSet, PyList, PyTuple},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The objects that the collector knew at some time, held so that none of their addresses is used again meanwhile.
///
/// But for tuples and frozen sets: another thread may be making one, which Python allows only while nobody else holds
/// it (`SystemError` otherwise). They never change, so nobody has to know their age.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct Older {
    /// What the collector answered, with `None` in the place of what is not held.
    objects: Py<PyList>,
    addresses: Addresses,
}

#[pymethods]
impl Older {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let objects = py.import("gc")?.call_method0("get_objects")?.downcast_into::<PyList>()?;
        let mut addresses = Addresses::default();
        for (i, x) in objects.iter().enumerate() {
            if x.is_exact_instance_of::<PyTuple>() || x.is_exact_instance_of::<PyFrozenSet>() {
                objects.set_item(i, py.None())?;
            } else {
                addresses.insert(x.as_ptr() as usize);
            }
        }
        Ok(Older { objects: objects.unbind(), addresses })
    }

    /// Whether this object was there.
    fn __contains__(&self, object: &Bound<'_, PyAny>) -> bool {
        self.addresses.contains(object.as_ptr() as usize)
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

/// Bytes of memory per bit, or less than any two objects are apart; bits per page.
const GRAIN: usize = align_of::<pyo3::ffi::PyObject>();
const PAGE: usize = 1 << 13;

/// A set of addresses as bits: objects lie close together, so that a million of them take a few megabytes, and each
/// takes nanoseconds where a hash table would miss the cache.
#[derive(Default)]
struct Addresses {
    places: FxHashMap<usize, usize>,
    pages: Vec<[u64; PAGE / 64]>,
    /// The page that was looked for last, and its place.
    last: Option<(usize, usize)>,
}

impl Addresses {
    fn insert(&mut self, address: usize) {
        let (page, word, bit) = Self::split(address);
        let place = match self.last {
            Some((last, place)) if last == page => place,
            _ => *self.places.entry(page).or_insert_with(|| {
                self.pages.push([0; PAGE / 64]);
                self.pages.len() - 1
            }),
        };
        self.last = Some((page, place));
        self.pages[place][word] |= bit;
    }

    fn contains(&self, address: usize) -> bool {
        let (page, word, bit) = Self::split(address);
        self.places.get(&page).is_some_and(|&place| self.pages[place][word] & bit != 0)
    }

    /// Page, word in it and bit in that.
    fn split(address: usize) -> (usize, usize, u64) {
        let at = address / GRAIN;
        (at / PAGE, at % PAGE / 64, 1 << (at % 64))
    }
}
