//! Registering a [`Recorder`]: the functions that libtorch's dispatcher calls it through.
//!
//! C++ calls them, by the table of `csrc/abi.h`, and nobody else. Each borrows what C++ passes for the call, catches
//! panics, and turns errors into codes.

mod device;

use std::{
    any::TypeId,
    ffi::{CString, c_char, c_int, c_void},
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ltc_ir::{
    DType, FallbackReason, Layout, Op, OpClass, OpSpec, Props, Signature, View,
    rules::{self, Call},
    table,
};
use smallvec::SmallVec;

use crate::{
    eager::EagerCall,
    error::{ErrorSlot, TorchError, report},
    ffi,
    handle::Tensor,
    place::Place,
    plan::Generator,
    recorder::{RecordedCall, Recorder},
    tensor::{self, STORAGE_TYPE, text},
};

/// Registers the lazy device with libtorch, under `name`, with an index for each place; once per process. Places must
/// have been [checked](Place::check).
///
/// # Errors
/// Fails when the running libtorch is not the version this crate was built for, or on a second call.
pub fn register<R: Recorder>(recorder: R, name: &str, places: &[Place]) -> Result<(), TorchError> {
    const { assert!(size_of::<R::Storage>() <= ffi::SLOT_BYTES && align_of::<R::Storage>() <= 8) };
    let name = CString::new(name).map_err(|_| TorchError::runtime("a device name has no NUL"))?;
    // The recorder serves tensors until the process ends.
    let recorder: &'static R = Box::leak(Box::new(recorder));
    let places: &'static [i32] = Vec::leak(places.iter().map(|p| p.code()).collect());
    let vtable = ffi::LtcVTable {
        ctx: std::ptr::from_ref(recorder).cast(),
        define_op,
        layout_new,
        layout_drop,
        signature_new,
        signature_drop,
        record: record::<R>,
        infer,
        storage_uninit: storage_uninit::<R>,
        storage_bytes: storage_bytes::<R>,
        storage_drop: storage_drop::<R>,
        storage_share: storage_share::<R>,
        storage_resize: storage_resize::<R>,
        storage_keep_failures: storage_keep_failures::<R>,
        assign: assign::<R>,
        import: import::<R>,
        import_into: import_into::<R>,
        to_host: to_host::<R>,
        fallback: fallback::<R>,
        forced_fallback: forced_fallback::<R>,
        seed: seed::<R>,
        generator_state: generator_state::<R>,
        set_generator_state: set_generator_state::<R>,
        synchronize: device::synchronize::<R>,
        others_wait: device::others_wait::<R>,
        is_idle: device::is_idle::<R>,
        event_new: device::event_new::<R>,
        event_drop: device::event_drop::<R>,
        event_is_reached: device::event_is_reached::<R>,
        event_wait: device::event_wait::<R>,
        event_elapsed: device::event_elapsed::<R>,
        memory: device::memory::<R>,
        memory_reset_peaks: device::memory_reset_peaks::<R>,
        memory_reset_sums: device::memory_reset_sums::<R>,
        memory_release: device::memory_release::<R>,
        touched: touched::<R>,
        device_count: i32::try_from(places.len()).unwrap_or(i32::MAX),
        places: places.as_ptr(),
        expect_calls: recorder.expects_calls().into(),
        small_probes: recorder.probes_small().into(),
    };
    let err = ErrorSlot::new();
    // SAFETY: the vtable is copied; every function in it meets abi.h, with `R::Storage` in the slots.
    unsafe { err.check(ffi::ltc_init(&vtable, name.as_ptr(), err.as_ptr()))? };
    // SAFETY: the function meets sparse.h, and is called with `vtable.ctx`.
    unsafe { ffi::ltc_on_sparse(takes_sparse::<R>) };
    STORAGE_TYPE.get_or_init(TypeId::of::<R::Storage>);
    Ok(())
}

/// Has [`Recorder::forces_fallback`] asked again for every operator.
pub fn forced_changed() {
    // SAFETY: no preconditions; before registration no operator is known.
    unsafe { ffi::ltc_forced_changed() }
}

type Ctx = *const c_void;

/// # Safety
/// `ctx` must be the `ctx` of a table that [`register`] made for `R`.
unsafe fn recorder<R: Recorder>(ctx: Ctx) -> &'static R {
    // SAFETY: by this function's contract it is the recorder that `register` leaked.
    unsafe { &*ctx.cast::<R>() }
}

/// # Safety
/// The slot must hold a live `R::Storage` for `'a`.
unsafe fn storage<'a, R: Recorder>(slot: *const ffi::LtcSlot) -> &'a R::Storage {
    // SAFETY: by this function's contract.
    unsafe { &*slot.cast::<R::Storage>() }
}

/// # Safety
/// `out` must be an unused slot. That it is large and aligned enough, [`register`] checks.
unsafe fn put<R: Recorder>(out: *mut ffi::LtcSlot, s: R::Storage) {
    // SAFETY: by this function's contract.
    unsafe { out.cast::<R::Storage>().write(s) }
}

/// # Safety
/// The operand must be live for `'a`, and so must be its dims and the `R::Storage` in its slot.
unsafe fn part<'a, R: Recorder>(op: *const ffi::LtcOperand) -> Result<(&'a R::Storage, View<'a>), TorchError> {
    // SAFETY: by this function's contract.
    let (storage, view) = unsafe { (storage::<R>((*op).slot), tensor::view_of(&*op)) };
    Ok((storage, view.ok_or_else(|| TorchError::runtime("unsupported dtype"))?))
}

/// # Safety
/// `op` must be from [`define_op`].
unsafe fn op_of(op: *const c_void) -> Op {
    // SAFETY: by this function's contract it is a spec, and specs live for ever.
    Op::from_static(unsafe { &*op.cast::<OpSpec>() })
}

/// # Safety
/// `err` must be the live error object of the C++ call that `f` answers.
unsafe fn guard(err: *mut ffi::LtcError, f: impl FnOnce() -> Result<(), TorchError>) -> c_int {
    let error = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => return 0,
        Ok(Err(e)) => e,
        Err(_) => TorchError::runtime("internal error: LTC panicked; see stderr"),
    };
    // SAFETY: by this function's contract.
    unsafe { report(err, &error) };
    1
}

/// For functions that cannot fail: a panic is a bug of ours, reported by the panic hook, and the state stays as it was.
fn shield(f: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(f));
}

unsafe extern "C" fn define_op(_: Ctx, name: *const c_char, len: usize, props: *mut u32) -> *const c_void {
    // SAFETY: C++ passes a name of this length and a number of its own, both valid for the call.
    let (name, props) = unsafe { (text(name, len), &mut *props) };
    let op = Op::intern(name, Props(*props as u16));
    let also = [(is_elementwise(op), ffi::LTC_ELEMENTWISE), (table::compares(op.name()), ffi::LTC_COMPARES)];
    let also = also.iter().fold(0, |all, &(is, prop)| if is { all | prop } else { all });
    *props |= u32::from(op.spec().props().0) | also;
    std::ptr::from_ref(op.as_static()).cast()
}

/// Pointwise operators, and those that do the same with each tensor of a list.
fn is_elementwise(op: Op) -> bool {
    let each = table::single_form(op.name()).map_or(op, |single| Op::intern(&single, Props::NONE));
    each.spec().class == OpClass::Pointwise
}

unsafe extern "C" fn layout_new(dims: *const ffi::LtcDims) -> *const c_void {
    // SAFETY: C++ passes dims of a tensor or layout of its own, valid for the call.
    match unsafe { tensor::layout_of(&*dims) } {
        Some(layout) => Arc::into_raw(Arc::new(layout)).cast(),
        None => std::ptr::null(),
    }
}

unsafe extern "C" fn layout_drop(layout: *const c_void) {
    // SAFETY: C++ gives back what `layout_new` gave it, once.
    drop(unsafe { Arc::from_raw(layout.cast::<Layout>()) });
}

unsafe extern "C" fn signature_new(
    op: *const c_void,
    words: *const u64,
    nwords: u32,
    results: *const ffi::LtcDims,
    nresults: u32,
) -> *const c_void {
    // SAFETY: C++ has `op` from `define_op`, and passes arrays of these lengths that are valid for the call.
    let (op, words, results) =
        unsafe { (op_of(op), tensor::slice(words, nwords as usize), tensor::slice(results, nresults as usize)) };
    // SAFETY: each entry's sizes and strides are valid for the call. Tensors of dtypes without a layout cannot come to
    // the device.
    let layouts = results.iter().filter_map(|d| unsafe { tensor::layout_of(d) }).map(Arc::new).collect();
    Arc::into_raw(Signature::new(op, words.into(), layouts)).cast()
}

unsafe extern "C" fn signature_drop(signature: *const c_void) {
    // SAFETY: C++ gives back what `signature_new` gave it, once.
    drop(unsafe { Arc::from_raw(signature.cast::<Signature>()) });
}

unsafe extern "C" fn record<R: Recorder>(
    ctx: Ctx,
    call: *const ffi::LtcRecord,
    out: *mut ffi::LtcSlot,
    err: *mut ffi::LtcError,
) -> c_int {
    let body = || {
        // SAFETY: all pointers of the record are valid for the call, and the slots hold `R::Storage`. The signature is
        // from `signature_new` and stays alive in the shape cache, which is what the count that is not dropped here
        // stands for. `ctx` is `register`'s.
        let new = unsafe {
            let signature = ManuallyDrop::new(Arc::from_raw((*call).signature.cast::<Signature>()));
            let call = RecordedCall::new(&*call, &signature);
            let new = recorder::<R>(ctx).record(&call)?;
            assert_eq!(new.len(), call.new_count, "invariant: one storage per new result");
            new
        };
        for (i, s) in new.into_iter().enumerate() {
            // SAFETY: `out` has one unused slot per new result.
            unsafe { put::<R>(out.add(i), s) };
        }
        Ok(())
    };
    // SAFETY: `err` is the error object of this call.
    unsafe { guard(err, body) }
}

unsafe extern "C" fn infer(
    _: Ctx,
    op: *const c_void,
    call: *const ffi::LtcRecord,
    operands: *const ffi::LtcDims,
    results: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    let mut found = false;
    let body = || {
        // SAFETY: `op` is from `define_op`; the record is valid for the call, and its lengths are those of its arrays.
        let (op, words, numbers) = unsafe {
            let call = &*call;
            let words = tensor::slice(call.words, call.nwords as usize);
            (op_of(op), words, tensor::slice(call.numbers, call.nnumbers as usize))
        };
        let Some(rule) = op.row().filter(|row| row.overrides).map(|row| row.rule) else { return Ok(()) };
        let mut consumed = ltc_ir::ArgReader::new(words);
        consumed.by_ref().for_each(drop);
        // SAFETY: there is one entry for each operand that the blob consumes, generators included, and what each
        // points to is valid for the call.
        let layouts: SmallVec<[Layout; 8]> = unsafe {
            let dims = tensor::slice(operands, consumed.operands()).iter();
            dims.map(|d| tensor::layout_of(d).unwrap_or_else(|| Layout::contiguous(DType::U8, &[]))).collect()
        };
        let refs: SmallVec<[&Layout; 8]> = layouts.iter().collect();
        let Some(call) = Call::decode(op.name(), words, &refs, numbers) else { return Ok(()) };
        let new = rule(&call).map_err(|e: rules::ShapeError| TorchError { class: e.class, message: e.message })?;
        for layout in &new {
            let dims = layout.as_ref().map(tensor::dims);
            // SAFETY: `results` is the caller's list; the dims point into `new`, and are copied.
            unsafe { ffi::ltc_infer_push(results, dims.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)) };
        }
        found = true;
        Ok(())
    };
    // SAFETY: `err` is the error object of this call.
    let rc = unsafe { guard(err, body) };
    if rc == 0 && !found { 2 } else { rc }
}

unsafe extern "C" fn storage_uninit<R: Recorder>(ctx: Ctx, layout: *const c_void, device: i32, out: *mut ffi::LtcSlot) {
    // SAFETY: the layout is from `layout_new` and alive for the call, and its count is raised before the `Arc` is made;
    // `ctx` is `register`'s, and the slot is unused.
    unsafe {
        Arc::increment_strong_count(layout.cast::<Layout>());
        let layout = Arc::from_raw(layout.cast::<Layout>());
        put::<R>(out, recorder::<R>(ctx).storage_uninit(device as u16, layout));
    }
}

unsafe extern "C" fn storage_bytes<R: Recorder>(ctx: Ctx, nbytes: usize, device: i32, out: *mut ffi::LtcSlot) {
    // SAFETY: `ctx` is `register`'s, and the slot is unused.
    unsafe { put::<R>(out, recorder::<R>(ctx).storage_bytes(device as u16, nbytes)) }
}

unsafe extern "C" fn storage_drop<R: Recorder>(_: Ctx, slot: *mut ffi::LtcSlot) {
    // SAFETY: the slot holds a storage and is not used again.
    shield(|| unsafe { slot.cast::<R::Storage>().drop_in_place() });
}

unsafe extern "C" fn storage_share<R: Recorder>(
    ctx: Ctx,
    dst: *const ffi::LtcSlot,
    src: *const ffi::LtcSlot,
    view: *const ffi::LtcOperand,
    device: i32,
) {
    // SAFETY: both slots hold storages and the view is valid for the call; `ctx` is `register`'s.
    shield(|| unsafe {
        // Generators have no dims, and are not viewed.
        if let Some(view) = tensor::view_of(&*view) {
            recorder::<R>(ctx).share(device as u16, storage::<R>(dst), storage::<R>(src), view);
        }
    });
}

unsafe extern "C" fn storage_resize<R: Recorder>(ctx: Ctx, slot: *const ffi::LtcSlot, nbytes: usize, device: i32) {
    // SAFETY: the slot holds a storage; `ctx` is `register`'s.
    shield(|| unsafe { recorder::<R>(ctx).resize(device as u16, storage::<R>(slot), nbytes) });
}

unsafe extern "C" fn storage_keep_failures<R: Recorder>(slot: *const ffi::LtcSlot) {
    // SAFETY: the slot holds a storage.
    shield(|| unsafe { R::keep_failures(storage::<R>(slot)) });
}

unsafe extern "C" fn assign<R: Recorder>(
    ctx: Ctx,
    dst: *const ffi::LtcOperand,
    src: *const ffi::LtcOperand,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: both operands are live for the call, `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).assign(device as u16, part::<R>(dst)?, part::<R>(src)?)) }
}

unsafe extern "C" fn import<R: Recorder>(
    ctx: Ctx,
    device: i32,
    host: *mut c_void,
    dims: *const ffi::LtcDims,
    out: *mut ffi::LtcSlot,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the tensor is handed over and the dims are valid for the call; the slot is unused, `ctx` is `register`'s,
    // and `err` is this call's.
    unsafe {
        guard(err, || {
            let (host, layout) = (Tensor::from_raw(host), tensor::layout_of(&*dims));
            let layout = layout.ok_or_else(|| TorchError::runtime("unsupported dtype"))?;
            put::<R>(out, recorder::<R>(ctx).import(device as u16, host, Arc::new(layout))?);
            Ok(())
        })
    }
}

unsafe extern "C" fn import_into<R: Recorder>(
    ctx: Ctx,
    device: i32,
    dst: *const ffi::LtcOperand,
    host: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the tensor is handed over and the operand is live for the call; `ctx` is `register`'s, and `err` is this
    // call's.
    unsafe {
        guard(err, || {
            let host = Tensor::from_raw(host);
            recorder::<R>(ctx).import_into(device as u16, part::<R>(dst)?, host)
        })
    }
}

unsafe extern "C" fn to_host<R: Recorder>(
    ctx: Ctx,
    device: i32,
    views: *const ffi::LtcOperand,
    n: u32,
    out: *mut *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: there are `n` live operands, and room for `n` tensors, which the caller takes over; `ctx` is
    // `register`'s, and `err` is this call's.
    unsafe {
        guard(err, || {
            let mut hosts = Vec::with_capacity(n as usize);
            for i in 0..n as usize {
                hosts.push(recorder::<R>(ctx).to_host(device as u16, part::<R>(views.add(i))?)?);
            }
            for (i, host) in hosts.into_iter().enumerate() {
                out.add(i).write(host.into_raw());
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn fallback<R: Recorder>(
    ctx: Ctx,
    call: *mut ffi::LtcCall,
    op: *const c_char,
    len: usize,
    reason: i32,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    let reason = FallbackReason::from_code(reason).unwrap_or(FallbackReason::UnsupportedArgument);
    // SAFETY: the call and the name are valid until this function returns, and the call's slots hold `R::Storage`;
    // `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).fallback(EagerCall::new(call, text(op, len), reason, device as u16))) }
}

unsafe extern "C" fn forced_fallback<R: Recorder>(ctx: Ctx, op: *const c_char, len: usize) -> c_int {
    let mut forced = false;
    // SAFETY: the name is valid for the call; `ctx` is `register`'s.
    shield(|| forced = unsafe { recorder::<R>(ctx).forces_fallback(text(op, len)) });
    c_int::from(forced)
}

unsafe extern "C" fn seed<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    seed: u64,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the generator's slot holds a storage; `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).seed(device as u16, storage::<R>(generator), seed)) }
}

unsafe extern "C" fn generator_state<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    device: i32,
    out: *mut *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the generator's slot holds a storage, and the caller takes over what is put into `out`; `ctx` is
    // `register`'s, and `err` is this call's.
    unsafe {
        guard(err, || {
            let state = recorder::<R>(ctx).generator_state(device as u16, storage::<R>(generator))?;
            out.write(state.into_raw());
            Ok(())
        })
    }
}

unsafe extern "C" fn set_generator_state<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    device: i32,
    state: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the generator's slot holds a storage, and the state is handed over; `ctx` is `register`'s, and `err` is
    // this call's.
    unsafe {
        guard(err, || {
            let state = Generator::from_raw(state);
            recorder::<R>(ctx).set_generator_state(device as u16, storage::<R>(generator), state)
        })
    }
}

unsafe extern "C" fn touched<R: Recorder>(ctx: Ctx, slot: *const ffi::LtcSlot) {
    // SAFETY: the slot holds a storage; `ctx` is `register`'s.
    shield(|| unsafe { recorder::<R>(ctx).touched(storage::<R>(slot)) });
}

unsafe extern "C" fn takes_sparse<R: Recorder>(ctx: Ctx, op: *const c_char, len: usize, device: i32) {
    // SAFETY: C++ passes a name of this length that is valid for the call; `ctx` is `register`'s.
    shield(|| unsafe { recorder::<R>(ctx).takes_sparse(device as u16, text(op, len)) });
}
