//! The profile function of a thread, without what `sys.setprofile` adds: before each event that copies the frame's
//! variables into a dict, and afterwards back, so that it keeps alive what the program drops, and takes back what other
//! threads put into variables meanwhile.

use std::ffi::c_int;

use pyo3::{ffi, intern, prelude::*};

/// `Py_tracefunc`.
type TraceFunction = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, c_int, *mut ffi::PyObject) -> c_int;

unsafe extern "C" {
    // Exported by every version and not declared for extensions that serve several.
    fn PyEval_SetProfile(function: Option<TraceFunction>, object: *mut ffi::PyObject);
}

/// Makes `call(frame, event, argument)` the profile function of this thread, for calls of Python and C functions and
/// the ends of Python's. `sys.getprofile` returns `call`.
pub(crate) fn observe(call: &Bound<'_, PyAny>) {
    // SAFETY: the interpreter holds the object for as long as it is set.
    unsafe { PyEval_SetProfile(Some(tell), call.as_ptr()) }
}

/// Tells of an event. What `call` raises, the program gets, and the thread has no profile function from there on.
unsafe extern "C" fn tell(
    call: *mut ffi::PyObject,
    frame: *mut ffi::PyObject,
    what: c_int,
    argument: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: the interpreter calls this with its lock held.
    let py = unsafe { Python::assume_attached() };
    // `PyTrace_CALL`, `PyTrace_RETURN` and `PyTrace_C_CALL`.
    let event = match what {
        0 => intern!(py, "call"),
        3 => intern!(py, "return"),
        4 => intern!(py, "c_call"),
        _ => return 0,
    };
    // SAFETY: live objects, which the interpreter holds meanwhile; the argument is null where a function is left by an
    // exception.
    let (call, frame, argument) = unsafe {
        let argument = Bound::from_borrowed_ptr_or_opt(py, argument);
        (Bound::from_borrowed_ptr(py, call), Bound::from_borrowed_ptr(py, frame), argument)
    };
    let Err(error) = call.call1((frame, event, argument)) else { return 0 };
    // SAFETY: takes the profile function away; `call` is held here.
    unsafe { PyEval_SetProfile(None, std::ptr::null_mut()) };
    error.restore(py);
    -1
}
