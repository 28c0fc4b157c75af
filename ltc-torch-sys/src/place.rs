//! Places: where the values of a lazy device are, and what moves between them and the host.

use std::{
    ffi::{CStr, CString, c_void},
    fmt,
    path::PathBuf,
    str::FromStr,
};

use ltc_ir::Layout;

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
    memory::PlaceMemory,
    tensor,
};

/// Where a lazy device computes and keeps its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    /// The memory and the processors of this machine.
    #[default]
    Cpu,
    /// The GPU of this number, by libtorch's kernels. Its work is asynchronous: a tensor there is a promise that only
    /// its own stream may rely on, until somebody waits ([`Place::wait`], [`at_place`]).
    Cuda(u8),
}

impl Place {
    /// Its number in `csrc/abi.h`.
    pub(crate) fn code(self) -> i32 {
        match self {
            Place::Cpu => -1,
            Place::Cuda(index) => index.into(),
        }
    }

    /// Whether it is the CPU, where a value is there when the call that makes it returns.
    pub fn is_cpu(self) -> bool {
        self == Place::Cpu
    }

    /// Makes sure that it can be used, and loads what that takes. To be called before anything is done there, and
    /// before libtorch was asked for devices of that kind.
    ///
    /// # Errors
    /// Fails where this libtorch was built without it, or the machine has no such device.
    pub fn check(self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: no preconditions.
        unsafe { err.check(ffi::ltc_place_check(self.code(), err.as_ptr())) }
    }

    /// Waits until all that was put there is done.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn wait(self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: no preconditions; a place that was not checked has no stream to wait for.
        unsafe { err.check(ffi::ltc_place_wait(self.code(), err.as_ptr())) }
    }

    /// Memory of the device; all zero on the CPU.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn memory(self) -> Result<PlaceMemory, TorchError> {
        let (err, mut memory) = (ErrorSlot::new(), PlaceMemory::default());
        // SAFETY: `memory` is valid for the call.
        unsafe { err.check(ffi::ltc_place_memory(self.code(), &mut memory, err.as_ptr()))? };
        Ok(memory)
    }

    /// Gives memory kept for reuse, on the device and of the host for transfers, back to the system.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn release_memory(self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: no preconditions.
        unsafe { err.check(ffi::ltc_place_release(self.code(), err.as_ptr())) }
    }
}

/// A thread's stay at a place; it ends where it was.
#[derive(Debug)]
pub struct AtPlace(*mut ffi::LtcEntered);

impl Drop for AtPlace {
    fn drop(&mut self) {
        // SAFETY: owned, left once, on the thread that entered, as it cannot be sent.
        unsafe { ffi::ltc_place_leave(self.0) }
    }
}

impl Place {
    /// While the result lives, the place is the current one of its kind on this thread, with our stream there. `None`
    /// on the CPU, and where the device is lost.
    pub fn enter(self) -> Option<AtPlace> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: on success `out` is new and ours.
        let entered = !self.is_cpu() && unsafe { ffi::ltc_place_enter(self.code(), &mut out, err.as_ptr()) } == 0;
        entered.then(|| AtPlace(out))
    }

    /// CUDA's handle of our stream there; null on the CPU.
    pub fn stream(self) -> *mut c_void {
        // SAFETY: no preconditions.
        unsafe { ffi::ltc_place_stream(self.code()) }
    }
}

/// Whether a GPU does nothing any more for this process after an error of CUDA's of this number.
pub fn is_fatal(code: i32) -> bool {
    // SAFETY: no preconditions.
    unsafe { ffi::ltc_error_is_fatal(code) != 0 }
}

/// The folder of the loaded libtorch.
pub fn library_folder() -> Option<PathBuf> {
    // SAFETY: the text stays while the process lives.
    let text = unsafe { ffi::ltc_library_folder().as_ref().map(|text| CStr::from_ptr(text)) };
    text.map(|text| PathBuf::from(text.to_string_lossy().into_owned()))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cpu => f.write_str("cpu"),
            Place::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for Place {
    type Err = ();

    /// `cpu`, `cuda` (the first one) or `cuda:N`.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim().split_once(':') {
            None if text.trim() == "cpu" => Ok(Place::Cpu),
            None if text.trim() == "cuda" => Ok(Place::Cuda(0)),
            Some(("cuda", index)) => index.parse().map(Place::Cuda).map_err(drop),
            _ => Err(()),
        }
    }
}

/// A point behind all that was put at a place, which its device passes when it is done.
#[derive(Debug)]
pub struct PlaceEvent(*mut ffi::LtcFence);

// SAFETY: the handle owns an event of CUDA's, which any thread may ask, and which is recorded once, when it is made.
unsafe impl Send for PlaceEvent {}
// SAFETY: through `&PlaceEvent` the event is only asked.
unsafe impl Sync for PlaceEvent {}

impl PlaceEvent {
    /// Behind all that was put there so far, at a place that is not the CPU.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn record(place: Place) -> Result<PlaceEvent, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: on success `out` is new and ours.
        unsafe { err.check(ffi::ltc_fence_new(place.code(), &mut out, err.as_ptr()))? };
        Ok(PlaceEvent(out))
    }

    /// Whether the device has passed it. Never waits.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn is_passed(&self) -> Result<bool, TorchError> {
        let (err, mut passed) = (ErrorSlot::new(), 0);
        // SAFETY: the event is live, and `passed` valid for the call.
        unsafe { err.check(ffi::ltc_fence_passed(self.0, &mut passed, err.as_ptr()))? };
        Ok(passed != 0)
    }

    /// Waits until the device has passed it.
    ///
    /// # Errors
    /// Fails where the device is lost.
    pub fn wait(&self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: the event is live.
        unsafe { err.check(ffi::ltc_fence_wait(self.0, err.as_ptr())) }
    }

    /// How long after another one of the same device it was passed, in seconds, by the device's clock.
    ///
    /// # Errors
    /// Fails where one of them was not passed yet, or the device is lost.
    pub fn seconds_since(&self, earlier: &PlaceEvent) -> Result<f64, TorchError> {
        let (err, mut seconds) = (ErrorSlot::new(), 0.0);
        // SAFETY: both events are live, and `seconds` is valid for the call.
        unsafe { err.check(ffi::ltc_fence_seconds(earlier.0, self.0, &mut seconds, err.as_ptr()))? };
        Ok(seconds)
    }
}

impl Drop for PlaceEvent {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { ffi::ltc_fence_free(self.0) }
    }
}

/// Includes a dispatch key of libtorch's, by its name, while something is put at a place that is not the CPU. Tests
/// without a GPU have the values of CUDA's kernels computed under one.
///
/// # Errors
/// Fails where libtorch has no such key.
#[doc(hidden)]
pub fn set_place_key(name: &str) -> Result<(), TorchError> {
    let name = CString::new(name).map_err(|_| TorchError::runtime("a key's name has no NUL"))?;
    let err = ErrorSlot::new();
    // SAFETY: the name is valid for the call.
    unsafe { err.check(ffi::ltc_place_key(name.as_ptr(), err.as_ptr())) }
}

/// Where a tensor's values are, and how they lie there; `None` for lazy tensors, for other kinds of devices and for
/// what is not strided.
pub fn place_of(t: &impl AsTensor) -> Option<(Place, Layout)> {
    let mut dims = std::mem::MaybeUninit::uninit();
    // SAFETY: `t` is a live tensor; where the call answers yes, the dims are filled in and valid while it is.
    let (code, layout) = unsafe {
        if ffi::ltc_tensor_dims(raw(t), dims.as_mut_ptr()) == 0 {
            return None;
        }
        (ffi::ltc_tensor_place(raw(t)), tensor::layout_of(&dims.assume_init())?)
    };
    let place = match code {
        -1 => Place::Cpu,
        code => Place::Cuda(u8::try_from(code).ok()?),
    };
    Some((place, layout))
}

/// The same values in the same layout at a place; the tensor itself if it is there. What was done to it before comes
/// first. Waits only on the way to the CPU.
///
/// # Errors
/// Fails where the place has no memory for it, or is lost.
pub fn at_place(t: &impl AsTensor, place: Place) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: `t` is a live tensor; on success `out` is new and ours.
    unsafe {
        err.check(ffi::ltc_tensor_at_place(raw(t), place.code(), &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// A new tensor whose contents nobody has written yet.
///
/// # Errors
/// Fails where the place has no memory for it.
pub fn empty_at(place: Place, layout: &Layout) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: the dims point into `layout` for the call; on success `out` is ours.
    unsafe {
        err.check(ffi::ltc_tensor_new_at(&tensor::dims(layout), place.code(), &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// What this layout shows of a tensor's memory, from its element `offset` on; it shares that memory.
///
/// # Errors
/// Fails where that is not within it, or of another dtype.
pub fn part_of(base: &impl AsTensor, layout: &Layout, offset: i64) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: `base` is a live tensor, the dims point into `layout` for the call; on success `out` is ours.
    unsafe {
        err.check(ffi::ltc_tensor_part(raw(base), &tensor::dims(layout), offset, &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_printed() {
        for place in [Place::Cpu, Place::Cuda(0), Place::Cuda(3)] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert_eq!(" cuda ".parse(), Ok(Place::Cuda(0)));
        for wrong in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn tensors_say_where_they_are() {
        let layout = Layout::strided(ltc_ir::DType::F32, &[2, 3], &[1, 2]);
        let t = empty_at(Place::Cpu, &layout).unwrap();
        assert_eq!(place_of(&t), Some((Place::Cpu, layout)));
        assert_eq!(at_place(&t, Place::Cpu).unwrap().data_ptr(), t.data_ptr());
        assert_eq!(Place::Cpu.memory().unwrap(), PlaceMemory::default());
        Place::Cpu.check().and_then(|()| Place::Cpu.wait()).unwrap();
    }
}
