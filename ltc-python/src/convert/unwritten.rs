//! Whether a dict or a class was written in the meantime, without looking at what is in it.
//!
//! Python 3.11 gives a dict another version at each write. 3.12 and 3.13 call whoever watches a dict before it is
//! written; but stores into an object whose values its dict shares are told to nobody in 3.13.0, and are no write to
//! the dict's version either. Classes have versions in all of these. Newer Pythons are taken to tell nothing.

use std::{
    ffi::{CStr, c_int, c_void},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use pyo3::{
    ffi,
    prelude::*,
    types::{PyDict, PyType},
};
use rustc_hash::FxHashMap;

use super::minor_version;

/// A dict as it was at some time.
#[derive(Debug)]
pub(crate) enum Unwritten {
    Version(u64),
    /// Number of its changes then, and address of the dict.
    Watched {
        changes: Arc<AtomicU64>,
        then: u64,
        dict: usize,
    },
}

impl Unwritten {
    /// The dict as it is now; `None` where this Python does not tell of writes.
    pub(crate) fn since_now(dict: &Bound<'_, PyDict>) -> Option<Self> {
        let head = match minor_version(dict.py()) {
            11 => return Some(Unwritten::Version(head(dict).version)),
            12 | 13 => head(dict),
            _ => return None,
        };
        // What is stored in the object does not come by here.
        if minor_version(dict.py()) == 13 && !head.values.is_null() {
            return None;
        }
        let changes = watch(dict)?;
        let then = changes.load(Ordering::Relaxed);
        Some(Unwritten::Watched { changes, then, dict: dict.as_ptr() as usize })
    }

    /// Whether the dict, which is the same as then, was not written since.
    #[inline]
    pub(crate) fn holds(&self, dict: &Bound<'_, PyDict>) -> bool {
        match self {
            Unwritten::Version(then) => head(dict).version == *then,
            Unwritten::Watched { changes, then, .. } => changes.load(Ordering::Relaxed) == *then,
        }
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Unwritten::Watched { changes, dict, .. } = self {
            let mut watched = WATCHED.lock();
            // The table's and this one. The watch itself stays: its next change takes it away.
            if Arc::strong_count(changes) == 2 && watched.get(dict).is_some_and(|c| Arc::ptr_eq(c, changes)) {
                watched.remove(dict);
            }
        }
    }
}

/// `PyDictObject` of Python 3.11 to 3.13.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    object: [usize; 2],
    used: isize,
    /// In 3.11 another one after each write.
    version: u64,
    keys: *const c_void,
    /// The values of a dict whose keys are shared with others, else null.
    values: *const c_void,
}

fn head(dict: &Bound<'_, PyDict>) -> Head {
    // SAFETY: a live dict, of a Python whose dicts are laid out so: nobody else asks.
    unsafe { *dict.as_ptr().cast::<Head>() }
}

/// Per address of a dict, how often it was found changed while it was watched.
static WATCHED: Mutex<FxHashMap<usize, Arc<AtomicU64>>> = Mutex::new(FxHashMap::with_hasher(rustc_hash::FxBuildHasher));

type Callback = extern "C" fn(c_int, *mut ffi::PyObject, *mut ffi::PyObject, *mut ffi::PyObject) -> c_int;
type OfDict = unsafe extern "C" fn(c_int, *mut ffi::PyObject) -> c_int;

/// CPython's watchers of dicts (`PyDict_AddWatcher`, from 3.12 on), and the number of ours.
#[derive(Clone, Copy)]
struct Watcher {
    number: c_int,
    watch: OfDict,
    unwatch: OfDict,
}

static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();

fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends; the process's own symbols are asked.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Watcher {
    fn new(py: Python<'_>) -> Option<Self> {
        let (add, watch, unwatch) =
            (function(c"PyDict_AddWatcher")?, function(c"PyDict_Watch")?, function(c"PyDict_Unwatch")?);
        // SAFETY: functions of CPython of these names have these types in every version that has them.
        let (add, watch, unwatch) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Callback) -> c_int>(add),
                std::mem::transmute::<*mut c_void, OfDict>(watch),
                std::mem::transmute::<*mut c_void, OfDict>(unwatch),
            )
        };
        // SAFETY: called with the interpreter's lock; the function lives as long as the process.
        let number = unsafe { add(changes) };
        if number < 0 {
            // There are eight, and others may have them all.
            drop(PyErr::take(py));
            return None;
        }
        Some(Watcher { number, watch, unwatch })
    }
}

/// Called before a dict that is watched changes or goes.
extern "C" fn changes(
    _event: c_int,
    dict: *mut ffi::PyObject,
    _key: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
) -> c_int {
    if let Some(changes) = WATCHED.lock().get(&(dict as usize)) {
        changes.fetch_add(1, Ordering::Relaxed);
    }
    // Whoever wants to know of further changes looks at the dict first, and watches it again.
    if let Some(Some(watcher)) = WATCHER.get() {
        // SAFETY: a dict, which is still there, and a number of ours.
        unsafe { (watcher.unwatch)(watcher.number, dict) };
    }
    0
}

/// Watches a dict from now on: the number of its changes.
fn watch(dict: &Bound<'_, PyDict>) -> Option<Arc<AtomicU64>> {
    let py = dict.py();
    let watcher = (*WATCHER.get_or_init(|| Watcher::new(py)))?;
    let changes = WATCHED.lock().entry(dict.as_ptr() as usize).or_default().clone();
    // SAFETY: a live dict and a number of ours.
    if unsafe { (watcher.watch)(watcher.number, dict.as_ptr()) } < 0 {
        drop(PyErr::take(py));
        return None;
    }
    Some(changes)
}

/// A number that is another one after each change of a class or its bases; `None` where there is none at the moment.
pub(crate) fn class_version(class: &Bound<'_, PyType>) -> Option<u64> {
    /// Where `tp_flags` and `tp_version_tag` stand in a `PyTypeObject` of Python 3.11 to 3.13, in bytes.
    const FLAGS: usize = 168;
    const VERSION: usize = 384;
    /// Not kept up from 3.13 on, where a version that is not valid is 0.
    const IS_VALID: u64 = 1 << 19;
    let minor = minor_version(class.py());
    if !(11..=13).contains(&minor) {
        return None;
    }
    // SAFETY: a live class, of a Python whose classes are laid out so; both offsets lie within and are aligned.
    let (flags, version) = unsafe {
        let at = class.as_ptr().cast::<u8>();
        (*at.add(FLAGS).cast::<u64>(), *at.add(VERSION).cast::<u32>())
    };
    ((minor >= 13 || flags & IS_VALID != 0) && version != 0).then_some(u64::from(version))
}
