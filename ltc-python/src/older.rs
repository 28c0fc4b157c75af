//! Which objects are older than a step.

use parking_lot::Mutex;
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyList};
use rustc_hash::FxHashMap;

use crate::convert;

/// Tells the objects that were there when it was made from those that were made since.
///
/// The collector links what it tracks in the order in which it began to, and puts new objects at the end. So a list
/// that is made as a mark has all older ones before it and all newer ones behind it, until a collection moves it: these
/// announce themselves (`gc.callbacks`), and what is new by then is noted. Nothing else is looked at, so that a capture
/// costs the same among a million objects as among a thousand.
///
/// Addresses are enough to know what is new: no older object can get to the address of one that was made since.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct Older {
    state: Mutex<State>,
}

struct State {
    /// The youngest object when the new ones were noted last.
    mark: Py<PyList>,
    new: Addresses,
    /// Whether the collector may take the mark away before the next look.
    is_announced: bool,
    /// Whether it did so without an announcement: then some objects were missed.
    is_lost: bool,
}

#[pymethods]
impl Older {
    /// `RuntimeError` where the collector of this Python is not known.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let (first, second) = (PyList::empty(py), PyList::empty(py));
        let mut between = 0;
        if !convert::knows_collector(py) || !convert::tracked_between(&first, &second, |_| between += 1) || between > 0
        {
            return Err(PyRuntimeError::new_err("the garbage collector of this Python is not known"));
        }
        let (mark, new) = (second.unbind(), Addresses::default());
        Ok(Older { state: Mutex::new(State { mark, new, is_announced: false, is_lost: false }) })
    }

    /// Whether this object was there, among those that the collector tracks.
    fn __contains__(&self, object: &Bound<'_, PyAny>) -> bool {
        if !convert::is_tracked(object) {
            return false;
        }
        self.note_new(object.py());
        !self.state.lock().new.contains(object.as_ptr() as usize)
    }

    /// Called before the collector changes the order of objects: as one of `gc.callbacks`, and before calls that do so
    /// without these.
    #[pyo3(signature = (phase = "start", info = None, /))]
    fn announce(&self, py: Python<'_>, phase: &str, info: Option<&Bound<'_, PyAny>>) {
        let _ = info; // what a collection found
        if phase == "start" {
            self.note_new(py);
            self.state.lock().is_announced = true;
        }
    }

    /// Whether the order of objects was changed without an announcement, so that answers may be wrong.
    fn is_lost(&self) -> bool {
        self.state.lock().is_lost
    }
}

impl Older {
    /// Notes the objects that were made since this was called last.
    fn note_new(&self, py: Python<'_>) {
        // Making the list may run the collector, and so this function: what is below must not make objects.
        let newest = PyList::empty(py);
        let mut state = self.state.lock();
        let State { mark, new, .. } = &mut *state;
        // Where the collector took the mark away, all that is linked is new.
        let is_whole = convert::tracked_between(mark.bind(py), &newest, |at| new.insert(at));
        state.is_lost |= !is_whole && !state.is_announced;
        state.is_announced = false;
        let old = std::mem::replace(&mut state.mark, newest.unbind());
        drop(state);
        drop(old);
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
