//! Python's lock, got by asking the interpreter who has it.

use pyo3::{ffi, prelude::*};

/// Calls with the interpreter's lock held; `None` where there is no interpreter any more.
///
/// For calls from libtorch. [`Python::attach`] goes by what PyO3 did: within a function of ours it takes the lock for
/// held. It may not be: such a function lets an object go, Python code finalises it and calls an operator, and torch
/// gives the lock up for as long as that operator runs.
pub(crate) fn with_lock<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Release(ffi::PyGILState_STATE);
    impl Drop for Release {
        fn drop(&mut self) {
            // SAFETY: the state was got on this thread, which gives it back once.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: both may be called on any thread, with and without the lock; the second, where there is an interpreter.
    let _held = unsafe {
        if ffi::Py_IsInitialized() == 0 {
            return None;
        }
        Release(ffi::PyGILState_Ensure())
    };
    Some(Python::attach(call))
}
