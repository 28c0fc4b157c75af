//! Which instructions of Python code this thread is in.
//!
//! Recording runs without the interpreter's lock, which takes longer to get than an operator takes to record. The
//! frames of a thread are its own: nobody else pushes, pops or moves them, so the thread reads them without the lock
//! where it knows how the interpreter lays them out. That is known per version, and compared with what the interpreter
//! says itself before it is used. Elsewhere the interpreter is asked, with its lock.

use std::ffi::{c_int, c_void};

use pyo3::{ffi, prelude::*};

use super::{lock::with_lock, minor_version};

/// A frame: its code object, and the address of the instruction it is at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CodePosition {
    pub(crate) code: usize,
    pub(crate) at: usize,
}

/// Where the interpreter keeps things: offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// In the state of a thread: what points to the innermost frame, if there is such a thing between.
    cframe: Option<usize>,
    /// In that, or in the state: the innermost frame.
    current: usize,
    /// In a frame: its code, its caller's frame, its instruction, and a byte that says who owns it.
    code: usize,
    previous: usize,
    at: usize,
    owner: usize,
}

/// A frame with this owner belongs to an entry into the interpreter (3.12); it runs no code of a program's.
const OF_AN_ENTRY: u8 = 3;

/// CPython, 64 bits: `cpython/pystate.h` and `internal/pycore_frame.h`, which no release of a minor version changes.
const CPYTHON: [(u8, Layout); 3] = [
    (11, Layout { cframe: Some(56), current: 8, code: 32, previous: 48, at: 56, owner: 69 }),
    (12, Layout { cframe: Some(56), current: 0, code: 0, previous: 8, at: 56, owner: 70 }),
    (13, Layout { cframe: None, current: 72, code: 0, previous: 8, at: 56, owner: 70 }),
];

/// How frames are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frames {
    /// From memory.
    Read(Layout),
    /// Asked for; where a code object's instructions begin in it.
    Asked(usize),
}

unsafe extern "C" {
    // Exported by every CPython from 3.11 on, though not all of them are part of its stable interface.
    fn PyFrame_GetBack(frame: *mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
    fn PyFrame_GetCode(frame: *mut ffi::PyFrameObject) -> *mut c_void;
    fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> c_int;
}

impl Frames {
    /// The way that works in this interpreter.
    pub(crate) fn find(py: Python<'_>, begin: usize, ask: bool) -> Frames {
        let asked = Frames::Asked(begin);
        let Some(layout) = known(py).filter(|_| !ask) else { return asked };
        let all = |frames: Frames| {
            let mut places = Vec::new();
            frames.find_map(|position| {
                places.push(position);
                None::<()>
            });
            places
        };
        let read = Frames::Read(layout);
        if all(read) == all(asked) { read } else { asked }
    }

    /// The first answer for a frame of this thread, innermost first.
    #[inline]
    pub(crate) fn find_map<T>(self, visit: impl FnMut(CodePosition) -> Option<T>) -> Option<T> {
        match self {
            Frames::Read(layout) => layout.find_map(visit),
            Frames::Asked(begin) => with_lock(|py| ask(py, begin, visit)).flatten(),
        }
    }
}

/// The layout of this interpreter, if it is a known one.
fn known(py: Python<'_>) -> Option<Layout> {
    CPYTHON.iter().find(|(minor, _)| *minor == minor_version(py)).map(|(_, layout)| *layout)
}

impl Layout {
    #[inline]
    fn find_map<T>(self, mut visit: impl FnMut(CodePosition) -> Option<T>) -> Option<T> {
        // SAFETY: may be called on any thread at any time, and gives this thread's own state or null.
        let thread = unsafe { ffi::PyGILState_GetThisThreadState() } as usize;
        if thread == 0 {
            return None;
        }
        // SAFETY: a thread's state lives as long as the thread runs Python; it points to its innermost frame or to
        // null, by a structure that is never missing (`known` says where).
        let mut frame = unsafe { word(self.cframe.map_or(thread, |at| word(thread + at)) + self.current) };
        while frame != 0 {
            // SAFETY: a frame of this thread's stack, which only this thread changes, and it is here. Frames hold their
            // code, and have a byte for their owner.
            let (position, previous, owner) = unsafe {
                let position = CodePosition { code: word(frame + self.code), at: word(frame + self.at) };
                (position, word(frame + self.previous), *((frame + self.owner) as *const u8))
            };
            if owner != OF_AN_ENTRY
                && let Some(found) = visit(position)
            {
                return Some(found);
            }
            frame = previous;
        }
        None
    }
}

/// The word at an address.
///
/// # Safety
/// There is one.
#[inline]
unsafe fn word(address: usize) -> usize {
    // SAFETY: as the caller says.
    unsafe { *(address as *const usize) }
}

fn ask<T>(_py: Python<'_>, begin: usize, mut visit: impl FnMut(CodePosition) -> Option<T>) -> Option<T> {
    // SAFETY: the interpreter's lock is held (`_py`). Borrowed, or null where no Python code runs; counted here, as
    // those that follow are by what gives them.
    let mut frame = unsafe {
        let frame = ffi::PyEval_GetFrame();
        ffi::Py_XINCREF(frame.cast());
        frame
    };
    let mut found = None;
    while !frame.is_null() && found.is_none() {
        // SAFETY: a frame we hold; its code is counted for us, and held by the frame besides.
        let (code, instruction) = unsafe {
            let code = PyFrame_GetCode(frame);
            ffi::Py_DECREF(code.cast());
            (code as usize, PyFrame_GetLasti(frame))
        };
        found = visit(CodePosition { code, at: code + begin + usize::try_from(instruction).unwrap_or(0) });
        // SAFETY: a frame we hold, which is let go after its caller's, now ours, was taken.
        frame = unsafe {
            let back = PyFrame_GetBack(frame);
            ffi::Py_DECREF(frame.cast());
            back
        };
    }
    // SAFETY: ours, or null.
    unsafe { ffi::Py_XDECREF(frame.cast()) };
    found
}

/// A code object, held.
pub(crate) fn hold(py: Python<'_>, code: usize) -> Bound<'_, PyAny> {
    // SAFETY: the code of a frame of this thread's stack ([`CodePosition`]), alive while the frame is; callers are
    // within its call.
    unsafe { Bound::from_borrowed_ptr(py, code as *mut ffi::PyObject) }
}
