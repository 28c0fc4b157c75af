//! Python's tensors as libtorch's and back, by what torch offers for it: nothing here depends on the layout of Python's
//! tensor objects, or on Python's headers.

pub(crate) mod frames;
pub(crate) mod lock;
pub(crate) mod profile;
pub(crate) mod unwritten;

use std::ffi::c_void;

use ltc_torch::{Borrowed, Tensor, impl_of};
use pyo3::{
    exceptions::PyTypeError,
    ffi, intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyCapsule, PyFloat, PyInt, PyList, PyTuple, PyType},
};
use smallvec::SmallVec;

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

/// Whether a Python object is a dense tensor on the device, and nothing more: of no subclass, and without attributes.
fn is_bare(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static STRIDED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !object.get_type().is(TENSOR.import(py, "torch", "Tensor")?) {
        return Ok(false);
    }
    let Some(handle) = handle_of(py, object)? else { return Ok(false) };
    // SAFETY: the `TensorImpl` of a Python tensor, which `object` holds.
    Ok(ltc_torch::is_lazy(&*unsafe { Borrowed::of_impl(&handle) })
        && object.getattr(intern!(py, "layout"))?.is(STRIDED.import(py, "torch", "strided")?)
        && namespace_of(object)?.len()? == 0)
}

/// Whether all arguments of a call are dense tensors on the device, and nothing more.
#[pyfunction]
pub(crate) fn are_bare(args: &Bound<'_, PyTuple>) -> PyResult<bool> {
    for arg in args.iter() {
        if !is_bare(args.py(), &arg)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The `at::TensorImpl*` of a Python tensor; `None` for what is none.
fn handle_of(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Option<*mut c_void>> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static PARAMETER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static HANDLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static ADDRESS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (class, tensor) = (object.get_type(), TENSOR.import(py, "torch", "Tensor")?);
    if class.is(tensor) || class.is(PARAMETER.import(py, "torch.nn", "Parameter")?) {
        let getter = || Ok::<_, PyErr>(py.import("torch._C")?.getattr("TensorBase")?.getattr("_cdata")?.unbind());
        let address: usize = got(ADDRESS.get_or_try_init(py, getter)?.bind(py), object)?.extract()?;
        return Ok(Some(address as *mut c_void));
    }
    // What an object's `__class__` says does not count: mocks and proxies say what they stand for.
    // SAFETY: two live classes.
    if unsafe { ffi::PyType_IsSubtype(class.as_type_ptr(), tensor.as_type_ptr()) } == 0 {
        return Ok(None);
    }
    // Subclasses may answer `_cdata` themselves.
    let capsule = HANDLE.import(py, "torch._C", "_tensor_impl_raw_handle")?.call1((object,))?;
    Ok(Some(capsule.downcast::<PyCapsule>()?.pointer()).filter(|p| !p.is_null()))
}

/// A Python tensor of any device, held; `None` for what is none.
pub(crate) fn any_tensor(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    // SAFETY: the `TensorImpl` of a Python tensor, which `object` holds.
    Ok(handle_of(py, object)?.map(|handle| unsafe { Borrowed::of_impl(&handle) }.shallow_clone()))
}

/// A Python tensor of any device, held.
///
/// # Errors
/// `TypeError` for what is none.
pub(crate) fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    any_tensor(object.py(), object)?.ok_or_else(|| PyTypeError::new_err("expected a tensor"))
}

/// The tensors of a sequence, of any device, held.
///
/// # Errors
/// `TypeError` where an item is none.
pub(crate) fn all(items: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    items.try_iter()?.map(|item| tensor(&item?)).collect()
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
            let raw = ffi::PyCapsule_New(impl_of(t), std::ptr::null(), None);
            Bound::from_owned_ptr_or_err(py, raw)?
        };
        list.append(wrap.call1((capsule,))?)?;
    }
    Ok(list)
}

// Functions of CPython that are exported by every version and not declared for extensions that serve several.
unsafe extern "C" {
    fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyFunction_GetCode(function: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyFunction_GetDefaults(function: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyFunction_GetKwDefaults(function: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyObject_GenericGetDict(object: *mut ffi::PyObject, context: *mut c_void) -> *mut ffi::PyObject;
}

/// The minor version of this Python if it is a plain CPython 3 of 64 bits: of such this module knows more than what the
/// stable interface says. Else 0.
pub(crate) fn minor_version(py: Python<'_>) -> u8 {
    static KNOWN: PyOnceLock<u8> = PyOnceLock::new();
    let find = || {
        let sys = py.import("sys").ok()?;
        let name: String = sys.getattr("implementation").ok()?.getattr("name").ok()?.extract().ok()?;
        // Debugging builds and such without a lock have other objects.
        let plain = !sys.hasattr("gettotalrefcount").ok()? && sys.getattr("abiflags").ok()?.len().ok()? == 0;
        let version = py.version_info();
        (plain && name == "cpython" && size_of::<usize>() == 8 && version.major == 3).then_some(version.minor)
    };
    *KNOWN.get_or_init(py, || find().unwrap_or(0))
}

/// What a descriptor (of a slot, or of an attribute that C code computes) gives for an object. In a fifth of the time
/// that a call of its `__get__` takes.
///
/// # Errors
/// What the descriptor raises; `TypeError` for what is none.
pub(crate) fn got<'py>(descriptor: &Bound<'py, PyAny>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let class = descriptor.get_type_ptr();
    // SAFETY: a live class.
    let slot = unsafe { ffi::PyType_GetSlot(class, ffi::Py_tp_descr_get) };
    if slot.is_null() {
        return Err(PyTypeError::new_err("expected a descriptor"));
    }
    // SAFETY: what a class has in this slot is such a function. It is given two live objects and no class, as by
    // `__get__(object)`; the result is new, or null with an exception set.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, ffi::descrgetfunc>(slot);
        let found = get(descriptor.as_ptr(), object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(object.py(), found)
    }
}

/// What a cell holds; an error where that is nothing.
///
/// # Errors
/// `ValueError` for an empty cell.
pub(crate) fn contents_of_cell<'py>(cell: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CONTENTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = cell.py();
    let getter = || Ok::<_, PyErr>(py.import("types")?.getattr("CellType")?.getattr("cell_contents")?.unbind());
    got(CONTENTS.get_or_try_init(py, getter)?.bind(py), cell)
}

/// What a class or its bases have under a name, without binding it.
pub(crate) fn lookup<'py>(class: &Bound<'py, PyType>, name: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a live class and a string; the result is borrowed from the class and held here before anything else runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(class.py(), _PyType_Lookup(class.as_ptr().cast(), name.as_ptr())) }
}

/// Code, defaults and keyword defaults of a Python function.
pub(crate) fn parts_of_function<'py>(function: &Bound<'py, PyAny>) -> [Option<Bound<'py, PyAny>>; 3] {
    let (py, f) = (function.py(), function.as_ptr());
    // SAFETY: the functions check that it is a Python function; what they return is borrowed from it, or null.
    let parts = unsafe { [PyFunction_GetCode(f), PyFunction_GetDefaults(f), PyFunction_GetKwDefaults(f)] };
    // SAFETY: each is null or a live object, which `function` holds while it is borrowed here.
    parts.map(|p| unsafe { Bound::from_borrowed_ptr_or_opt(py, p) })
}

/// How many floats a setting is: one, or a tuple of some, which counts as one more; another count for a whole number,
/// and 0 where it is anything else.
pub(crate) fn numbers(setting: Option<&Bound<'_, PyAny>>) -> usize {
    let is_float = |x: &Bound<'_, PyAny>| x.is_exact_instance_of::<PyFloat>();
    let Some(x) = setting else { return 0 };
    match x.downcast_exact::<PyTuple>() {
        Ok(t) if !t.is_empty() && t.iter().all(|y| is_float(&y)) => t.len() + 1,
        _ if x.is_exact_instance_of::<PyInt>() => usize::MAX,
        _ => usize::from(is_float(x)),
    }
}

/// The dict with an object's attributes.
pub(crate) fn namespace_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a live object; the result is new, or null with an exception set.
    unsafe {
        let dict = PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(object.py(), dict)
    }
}

/// The function that a frame runs; `None` where this Python's frames are not known.
pub(crate) fn function_of_frame<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    /// `PyFrameObject` of Python 3.11 to 3.13, as far as it is read here.
    #[repr(C)]
    struct Head {
        object: [usize; 2],
        back: *const c_void,
        frame: *const *mut ffi::PyObject,
    }
    let at = function_in_frame(frame.py())?;
    // SAFETY: a frame object (the caller is a profile function), of a Python whose frames begin so, with the function
    // that many words from the beginning; a frame holds its function while it runs.
    unsafe {
        let function = *(*frame.as_ptr().cast::<Head>()).frame.add(at);
        Bound::from_borrowed_ptr_or_opt(frame.py(), function)
    }
}

/// Where in a frame its function stands, in words.
fn function_in_frame(py: Python<'_>) -> Option<usize> {
    match minor_version(py) {
        11 => Some(0),
        12 | 13 => Some(2),
        _ => None,
    }
}

/// Whether [`function_of_frame`] tells anything.
pub(crate) fn knows_frames(py: Python<'_>) -> bool {
    function_in_frame(py).is_some()
}

/// What the collector keeps in front of each object that it can track (`PyGC_Head`): its neighbours among those that
/// are tracked, in the order in which that began, as a ring. The lowest bits of each are flags.
#[repr(C)]
struct Links {
    _next: usize,
    previous: usize,
}

/// The bits of [`Links`] that are flags.
const FLAGS: usize = 3;

/// Whether the objects of this Python have [`Links`] in front of them.
pub(crate) fn knows_collector(py: Python<'_>) -> bool {
    minor_version(py) >= 11
}

/// Whether the collector tracks an object.
pub(crate) fn is_tracked(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object, of any class.
    unsafe { ffi::PyObject_GC_IsTracked(object.as_ptr()) != 0 }
}

/// Calls `note` with the address of each object that is tracked since `mark` was and before `newest`, the youngest one.
/// Whether `mark` was met: else all objects of the ring were noted, and its head, which is at no object's address. Only
/// where [`knows_collector`] says yes; `note` makes no objects.
pub(crate) fn tracked_between(
    mark: &Bound<'_, PyList>,
    newest: &Bound<'_, PyList>,
    mut note: impl FnMut(usize),
) -> bool {
    let links_of = |list: &Bound<'_, PyList>| list.as_ptr() as usize - size_of::<Links>();
    let (mark, newest) = (links_of(mark), links_of(newest));
    let mut at = newest;
    loop {
        // SAFETY: the links of a list, or what links lead to; nothing changes them while this thread has the lock of
        // the interpreter and makes no objects.
        at = unsafe { (*(at as *const Links)).previous } & !FLAGS;
        if at == mark || at == newest {
            return at == mark;
        }
        note(at + size_of::<Links>());
    }
}
