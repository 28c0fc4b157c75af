//! Tensors across the border: to and from the lazy device, host bytes, operator schemas.

use std::{
    any::TypeId,
    ffi::{CStr, CString, c_char, c_void},
    sync::OnceLock,
};

use ltc_ir::{DType, Layout, View};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
};

/// The `at::TensorImpl*` of a tensor, which lives as long as a tensor of it.
pub fn impl_of(t: &impl AsTensor) -> *mut c_void {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_tensor_impl(raw(t)) }
}

pub(crate) fn dims(layout: &Layout) -> ffi::LtcDims {
    dims_of(View::of(layout, 0))
}

pub(crate) fn dims_of(view: View<'_>) -> ffi::LtcDims {
    let (sizes, strides) = (view.sizes.as_ptr(), view.strides.as_ptr());
    ffi::LtcDims { sizes, strides, rank: view.sizes.len() as u32, dtype: view.dtype as u8 }
}

/// Copies a tensor to lazy device `device`, keeping dtype and strides; differentiable, as `Tensor.to` is.
///
/// # Errors
/// Fails for a device that there is not, and for a tensor of a kind that it does not have.
pub fn to_device(t: &impl AsTensor, device: u16) -> Result<Tensor, TorchError> {
    convert(t, i32::from(device))
}

/// Copies a tensor to the CPU: a sync point that waits for its value; differentiable.
///
/// # Errors
/// Fails with what an operation that the value needs failed with.
pub fn to_cpu(t: &impl AsTensor) -> Result<Tensor, TorchError> {
    convert(t, -1)
}

fn convert(t: &impl AsTensor, device: i32) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: `t` is a live tensor; on success `out` is a new tensor that is ours.
    unsafe {
        err.check(ffi::ltc_tensor_to_device(raw(t), device, &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// The lazy device a tensor is on; `None` when it is somewhere else.
pub fn lazy_device_of(t: &impl AsTensor) -> Option<u16> {
    // SAFETY: `t` is a live tensor.
    u16::try_from(unsafe { ffi::ltc_tensor_lazy_device(raw(t)) }).ok()
}

/// A new tensor on the lazy device whose contents nobody has written yet.
///
/// # Errors
/// Fails for a device that there is not, and for a layout that libtorch refuses.
pub fn empty_lazy(layout: &Layout, device: u16) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: the dims point into `layout` for the call; on success `out` is ours.
    unsafe {
        err.check(ffi::ltc_tensor_empty(&dims(layout), i32::from(device), &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// What the registered recorder's storages are.
pub(crate) static STORAGE_TYPE: OnceLock<TypeId> = OnceLock::new();

pub(crate) fn check_storage_type<S: 'static>() -> Result<(), TorchError> {
    match STORAGE_TYPE.get() {
        Some(t) if *t == TypeId::of::<S>() => Ok(()),
        _ => Err(TorchError::runtime("the lazy device is not registered with this storage type")),
    }
}

/// Runs `f` on the storage and view behind a lazy tensor. `S` must be the registered recorder's storage type.
///
/// # Errors
/// Fails for a tensor that is not on the lazy device or of a dtype that it does not have, and where another storage
/// type than `S` is registered, or none.
pub fn storage_of<S: 'static, R>(t: &impl AsTensor, f: impl FnOnce(&S, View<'_>) -> R) -> Result<R, TorchError> {
    check_storage_type::<S>()?;
    let err = ErrorSlot::new();
    let mut op = std::mem::MaybeUninit::uninit();
    // SAFETY: on success the operand is filled in; its slot holds an `S` (checked above) and lives in the tensor's
    // storage, as do the dims, for as long as `t` is borrowed.
    unsafe {
        err.check(ffi::ltc_tensor_operand(raw(t), op.as_mut_ptr(), err.as_ptr()))?;
        let op = op.assume_init();
        Ok(f(&*op.slot.cast::<S>(), view_of(&op).ok_or_else(|| TorchError::runtime("unsupported dtype"))?))
    }
}

/// A new lazy tensor that shows `view` of a new storage. `S` must be the registered recorder's storage type.
///
/// # Errors
/// Fails for a view that libtorch refuses, and where another storage type than `S` is registered, or none.
pub fn wrap<S: 'static>(storage: S, nbytes: usize, view: View<'_>, device: u16) -> Result<Tensor, TorchError> {
    check_storage_type::<S>()?;
    let mut slot = std::mem::MaybeUninit::<ffi::LtcSlot>::uninit();
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    let dims = dims_of(view);
    // SAFETY: the slot is large and aligned enough for `S` (checked at registration) and handed over; the dims are
    // valid for the call; on success `out` is ours.
    unsafe {
        slot.as_mut_ptr().cast::<S>().write(storage);
        let slot = slot.as_mut_ptr();
        err.check(ffi::ltc_tensor_wrap(slot, nbytes, &dims, view.offset, i32::from(device), &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

/// A tensor that shows `view` of the memory behind another one.
///
/// # Errors
/// Fails for a view that libtorch refuses.
pub fn alias(base: &impl AsTensor, view: View<'_>) -> Result<Tensor, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
    // SAFETY: `base` is a live tensor, the dims are valid for the call; on success `out` is ours.
    unsafe {
        err.check(ffi::ltc_tensor_alias(raw(base), &dims_of(view), view.offset, &mut out, err.as_ptr()))?;
        Ok(Tensor::from_raw(out))
    }
}

fn is_on_host(t: &impl AsTensor) -> bool {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_host_holds(raw(t)) != 0 }
}

/// Layout and memory of a CPU tensor at its offset: `layout.storage_bytes()` bytes.
pub fn host_bytes(t: &impl AsTensor) -> Option<(Layout, &[u8])> {
    let mut d = std::mem::MaybeUninit::uninit();
    if !is_on_host(t) {
        return None;
    }
    // SAFETY: `t` is a live CPU tensor: its data pointer covers what its sizes and strides reach, while `t` is
    // borrowed.
    unsafe {
        let p: *const u8 = ffi::ltc_host_dims(raw(t), d.as_mut_ptr()).cast();
        let d = d.assume_init();
        let layout = layout_of(&d)?;
        let n = layout.storage_bytes();
        let bytes = if n == 0 { &[][..] } else { std::slice::from_raw_parts(p, n) };
        Some((layout, bytes))
    }
}

/// Whether a tensor is a dense one on the CPU whose memory holds its elements as they are: not conjugated or negated
/// when they are read, and of no kind that answers operators itself.
pub fn is_plain_host(t: &impl AsTensor) -> bool {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_host_is_plain(raw(t)) != 0 }
}

/// Whether this handle is the only one of the tensor and of its memory.
pub fn is_sole_holder(t: &impl AsTensor) -> bool {
    // SAFETY: `t` is a live tensor.
    unsafe { ffi::ltc_host_is_sole_holder(raw(t)) != 0 }
}

/// Reads dims from C++; `None` for dtypes we do not have.
///
/// # Safety
/// The pointers must be valid for `rank` elements.
pub(crate) unsafe fn layout_of(d: &ffi::LtcDims) -> Option<Layout> {
    let dtype = DType::from_code(d.dtype)?;
    // SAFETY: by this function's contract.
    let (sizes, strides) = unsafe { (slice(d.sizes, d.rank as usize), slice(d.strides, d.rank as usize)) };
    Some(Layout::strided(dtype, sizes, strides))
}

/// Reads the view of an operand from C++; `None` for dtypes we do not have.
///
/// # Safety
/// The operand's dims must be valid for `'a`.
pub(crate) unsafe fn view_of<'a>(op: &ffi::LtcOperand) -> Option<View<'a>> {
    let (dims, offset) = (op.dims, op.offset);
    // SAFETY: by this function's contract.
    let (sizes, strides) = unsafe { (slice(dims.sizes, dims.rank as usize), slice(dims.strides, dims.rank as usize)) };
    Some(View { dtype: DType::from_code(dims.dtype)?, sizes, strides, offset })
}

/// A slice that may come with a null pointer when it is empty.
///
/// # Safety
/// `p` must be valid for `n` elements for `'a`.
pub(crate) unsafe fn slice<'a, T>(p: *const T, n: usize) -> &'a [T] {
    // SAFETY: by this function's contract.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(p, n) } }
}

/// A text from C++; `?` where it is not UTF-8.
///
/// # Safety
/// `p` must be valid for `len` bytes for `'a`.
pub(crate) unsafe fn text<'a>(p: *const c_char, len: usize) -> &'a str {
    // SAFETY: by this function's contract.
    std::str::from_utf8(unsafe { slice(p.cast::<u8>(), len) }).unwrap_or("?")
}

/// The dispatcher's schema of an operator (`aten::add.Tensor`); `None` when there is no such operator.
pub fn op_schema(name: &str) -> Option<String> {
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    let (base, overload) = (CString::new(base).ok()?, CString::new(overload).ok()?);
    let mut text = std::ptr::null_mut();
    // SAFETY: both names are C strings; on success `text` is a malloc'ed C string that is ours.
    unsafe {
        if ffi::ltc_op_schema(base.as_ptr(), overload.as_ptr(), &mut text) != 0 {
            return None;
        }
        let schema = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::ltc_free(text.cast());
        Some(schema)
    }
}

/// Calls `each(name, schema)` for every operator the dispatcher knows, in its order.
pub fn for_each_operator(mut each: impl FnMut(&str, &str)) {
    extern "C" fn trampoline(ctx: *mut c_void, name: *const c_char, n: usize, schema: *const c_char, m: usize) {
        // SAFETY: `ctx` is the `&mut &mut dyn FnMut` below; the strings are valid for the call.
        unsafe {
            let each = &mut *ctx.cast::<&mut dyn FnMut(&str, &str)>();
            let text = |p: *const c_char, n| String::from_utf8_lossy(slice(p.cast::<u8>(), n)).into_owned();
            let call = || each(&text(name, n), &text(schema, m));
            // A panic must not unwind into C++; the caller's closure only collects strings.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        }
    }
    let mut each: &mut dyn FnMut(&str, &str) = &mut each;
    // SAFETY: the closure outlives the call; failure means the dispatcher threw, and then nothing more is listed.
    unsafe {
        ffi::ltc_for_each_op(trampoline, (&raw mut each).cast());
    }
}
