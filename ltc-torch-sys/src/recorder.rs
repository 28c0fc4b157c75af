//! The recording side: what libtorch's dispatcher calls, as a safe trait.

use std::{
    any::TypeId,
    ffi::{CString, c_char, c_int, c_void},
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use ltc_ir::{DType, Layout, LayoutRef, Op, OpClass, OpSpec, Props, Signature, SignatureRef, table};
use smallvec::SmallVec;
use tch::Tensor;

use crate::{
    eager::EagerCall,
    error::{ErrorSlot, TorchError, report},
    ffi,
    plan::Generator,
    service::{Reply, Request, service},
    tensor,
};

/// What a tensor shows of its storage: dtype, sizes, strides and storage offset in elements.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: &'a [i64],
    /// Strides, in elements.
    pub strides: &'a [i64],
    /// Offset into the storage, in elements.
    pub offset: i64,
}

impl<'a> View<'a> {
    /// # Safety
    /// The operand's dims must be valid for `'a`.
    pub(crate) unsafe fn of(op: &ffi::LtcOperand) -> Option<View<'a>> {
        let rank = op.dims.rank as usize;
        // SAFETY: by this function's contract.
        let (sizes, strides) = unsafe { (tensor::slice(op.dims.sizes, rank), tensor::slice(op.dims.strides, rank)) };
        Some(View { dtype: DType::from_code(op.dims.dtype)?, sizes, strides, offset: op.offset })
    }
}

/// Why an operator cannot be recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The result depends on data.
    DataDependent,
    /// Nothing tells the result's shape.
    NoShapeFunction,
    /// An argument cannot be recorded.
    UnsupportedArgument,
    /// The recorder asked for it ([`Recorder::forces_fallback`]).
    Forced,
}

impl Reason {
    fn from_code(code: i32) -> Reason {
        match code {
            0 => Reason::DataDependent,
            1 => Reason::NoShapeFunction,
            3 => Reason::Forced,
            _ => Reason::UnsupportedArgument,
        }
    }
}

/// One tensor or generator argument of a recorded call, in order of appearance.
#[derive(Debug)]
pub struct Operand<'a, S> {
    /// Its storage; a generator's state is a storage too.
    pub storage: &'a S,
    /// What of it the tensor shows; `RngState` of rank 0 for generators.
    pub view: View<'a>,
    /// The operator writes it: its new value is one of the results.
    pub written: bool,
    /// Its old contents do not matter: it is no operand of the recorded node, only written.
    pub fresh: bool,
}

/// A call to record.
#[derive(Debug)]
pub struct RecordedCall<'a, S> {
    /// Operator, structural arguments and result layouts; the same object for equal calls of a thread.
    pub signature: &'a SignatureRef,
    /// Runtime numbers.
    pub numbers: &'a [u64],
    /// Device.
    pub device: u16,
    /// How many results are new tensors; they stand after the written arguments in the signature.
    pub new_count: usize,
    raw_operands: &'a [ffi::LtcOperand],
    storage: std::marker::PhantomData<&'a S>,
}

impl<'a, S> RecordedCall<'a, S> {
    /// Tensor and generator arguments, in order of appearance.
    #[inline]
    pub fn operands(&self) -> impl ExactSizeIterator<Item = Operand<'a, S>> + use<'a, S> {
        self.raw_operands.iter().map(|op| {
            // SAFETY: C++ passes slots that hold `S` and dims that live in their tensors for the call (`'a`).
            let (storage, view) = unsafe { (&*op.slot.cast::<S>(), View::of(op)) };
            // Tensors of other dtypes cannot come to the device: `layout_new` refuses them.
            let view = view.unwrap_or(View { dtype: DType::U8, sizes: &[], strides: &[], offset: 0 });
            Operand { storage, view, written: op.flags & 1 != 0, fresh: op.flags & 2 != 0 }
        })
    }
}

/// Storages of new results.
pub type NewStorages<S> = SmallVec<[S; 2]>;

/// Receives everything the dispatcher sends to the lazy device.
///
/// Called from any thread, concurrently, with no lock of libtorch's dispatcher held. Implementations must not call back
/// into operators on lazy tensors while they hold locks of their own.
pub trait Recorder: Send + Sync + 'static {
    /// What a tensor's storage holds; lives inside the C++ storage object. At most 48 bytes, alignment at most 8.
    type Storage: Send + Sync + 'static;

    /// A storage nobody wrote yet.
    fn storage_uninit(&self, device: u16, layout: LayoutRef) -> Self::Storage;

    /// A storage of this many bytes nobody wrote yet and whose layout is unknown.
    fn storage_bytes(&self, device: u16, nbytes: usize) -> Self::Storage;

    /// `dst` takes over the contents of `src`, of which `view` is all.
    fn share(&self, device: u16, dst: &Self::Storage, src: &Self::Storage, view: View<'_>);

    /// Grows (or shrinks) a storage, keeping contents at the front.
    fn resize(&self, device: u16, storage: &Self::Storage, nbytes: usize);

    /// Records a call: updates the storages of written operands, returns those of new results.
    fn record(&self, call: &RecordedCall<'_, Self::Storage>) -> Result<NewStorages<Self::Storage>, TorchError>;

    /// A view's value becomes another view's; both have equal dtype, sizes and strides.
    fn assign(
        &self,
        device: u16,
        dst: (&Self::Storage, View<'_>),
        src: (&Self::Storage, View<'_>),
    ) -> Result<(), TorchError>;

    /// Takes a dense host tensor of this layout as a storage's contents.
    fn import(&self, device: u16, host: Tensor, layout: LayoutRef) -> Result<Self::Storage, TorchError>;

    /// Takes a dense host tensor as the new value of a view of equal dtype, sizes and strides.
    fn import_into(&self, device: u16, dst: (&Self::Storage, View<'_>), host: Tensor) -> Result<(), TorchError>;

    /// The current value of a view on the host: a cut point and a wait for this value.
    fn to_host(&self, device: u16, src: (&Self::Storage, View<'_>)) -> Result<Tensor, TorchError>;

    /// Runs a call eagerly.
    fn fallback(&self, call: EagerCall<'_, Self::Storage>) -> Result<(), TorchError>;

    /// Whether a call is compared with the one that came next the last time before it is looked up. Asked once.
    fn expects_calls(&self) -> bool;

    /// Whether elementwise kernels that are asked for their results' layouts run on one element where that tells as
    /// much as all of them. Asked once.
    fn probes_small(&self) -> bool;

    /// Whether an operator shall never be recorded. Asked once per operator.
    fn forces_fallback(&self, op: &str) -> bool;

    /// Sets a generator's state by seed.
    fn seed(&self, device: u16, generator: &Self::Storage, seed: u64) -> Result<(), TorchError>;

    /// A copy of a generator's current state: a cut point and a wait.
    fn generator_state(&self, device: u16, generator: &Self::Storage) -> Result<Generator, TorchError>;

    /// Sets a generator's state.
    fn set_generator_state(&self, device: u16, generator: &Self::Storage, state: Generator) -> Result<(), TorchError>;

    /// Runs what is recorded and waits until the device is idle.
    fn synchronize(&self, device: u16) -> Result<(), TorchError>;

    /// First use of a storage (or generator) in a capture on this thread (see [`crate::capture_begin`]), before the
    /// use.
    fn touched(&self, storage: &Self::Storage);

    /// Answers a request of a language binding.
    fn service(&self, request: Request<'_>) -> Result<Reply, TorchError>;
}

/// Registers the lazy device with libtorch, under `name`, with `devices` indices; once per process.
///
/// Fails when the running libtorch is not the version this crate was built for, or on a second call.
pub fn register<R: Recorder>(recorder: R, name: &str, devices: u16) -> Result<(), TorchError> {
    const { assert!(size_of::<R::Storage>() <= ffi::SLOT_BYTES && align_of::<R::Storage>() <= 8) };
    let name = CString::new(name).map_err(|_| TorchError::runtime("a device name has no NUL"))?;
    // The recorder serves tensors until the process ends.
    let recorder: &'static R = Box::leak(Box::new(recorder));
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
        assign: assign::<R>,
        import: import::<R>,
        import_into: import_into::<R>,
        to_host: to_host::<R>,
        fallback: fallback::<R>,
        forced_fallback: forced_fallback::<R>,
        seed: seed::<R>,
        generator_state: generator_state::<R>,
        set_generator_state: set_generator_state::<R>,
        synchronize: synchronize::<R>,
        touched: touched::<R>,
        service: service::<R>,
        device_count: i32::from(devices),
        expect_calls: recorder.expects_calls().into(),
        small_probes: recorder.probes_small().into(),
    };
    let err = ErrorSlot::new();
    // SAFETY: the vtable is copied; every function in it meets abi.h, with `R::Storage` in the slots.
    unsafe { err.check(ffi::ltc_init(&vtable, name.as_ptr(), err.as_ptr()))? };
    STORAGE_TYPE.get_or_init(TypeId::of::<R::Storage>);
    Ok(())
}

static STORAGE_TYPE: OnceLock<TypeId> = OnceLock::new();

pub(crate) fn check_storage_type<S: 'static>() -> Result<(), TorchError> {
    match STORAGE_TYPE.get() {
        Some(t) if *t == TypeId::of::<S>() => Ok(()),
        _ => Err(TorchError::runtime("the lazy device is not registered with this storage type")),
    }
}

/// Has [`Recorder::forces_fallback`] asked again for every operator.
pub fn forced_changed() {
    // SAFETY: no preconditions; before registration no operator is known.
    unsafe { ffi::ltc_forced_changed() }
}

// ---- trampolines: each borrows what C++ passes for the call, catches panics, and turns errors into codes ----

pub(crate) type Ctx = *const c_void;

pub(crate) fn recorder<R: Recorder>(ctx: Ctx) -> &'static R {
    // SAFETY: `ctx` is the leaked recorder of `register::<R>`.
    unsafe { &*ctx.cast::<R>() }
}

fn storage<'a, R: Recorder>(slot: *const ffi::LtcSlot) -> &'a R::Storage {
    // SAFETY: C++ passes slots that hold a live storage for the duration of the call.
    unsafe { &*slot.cast::<R::Storage>() }
}

fn put<R: Recorder>(out: *mut ffi::LtcSlot, s: R::Storage) {
    // SAFETY: `out` is an unused slot, large and aligned enough (checked in `register`).
    unsafe { out.cast::<R::Storage>().write(s) }
}

fn part<'a, R: Recorder>(op: *const ffi::LtcOperand) -> Result<(&'a R::Storage, View<'a>), TorchError> {
    // SAFETY: C++ passes a live operand whose dims are valid for the call.
    let (op, view) = unsafe { (&*op, View::of(&*op)) };
    Ok((storage::<R>(op.slot), view.ok_or_else(|| TorchError::runtime("unsupported dtype"))?))
}

pub(crate) fn text<'a>(p: *const c_char, len: usize) -> &'a str {
    // SAFETY: C++ passes a string of this length, valid for the call.
    std::str::from_utf8(unsafe { tensor::slice(p.cast::<u8>(), len) }).unwrap_or("?")
}

pub(crate) fn guard(err: *mut ffi::LtcError, f: impl FnOnce() -> Result<(), TorchError>) -> c_int {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => 0,
        Ok(Err(e)) => {
            report(err, &e);
            1
        }
        Err(_) => {
            report(err, &TorchError::runtime("internal error: LTC panicked; see stderr"));
            1
        }
    }
}

/// For functions that cannot fail: a panic is a bug of ours, reported by the panic hook, and the state stays as it was.
fn shield(f: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(f));
}

extern "C" fn define_op(_: Ctx, name: *const c_char, len: usize, props: *mut u32) -> *const c_void {
    // SAFETY: `props` is valid for the call.
    let props = unsafe { &mut *props };
    let op = Op::intern(text(name, len), Props(*props as u16));
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

extern "C" fn layout_new(dims: *const ffi::LtcDims) -> *const c_void {
    // SAFETY: valid for the call.
    match unsafe { tensor::layout_of(&*dims) } {
        Some(layout) => Arc::into_raw(Arc::new(layout)).cast(),
        None => std::ptr::null(),
    }
}

extern "C" fn layout_drop(layout: *const c_void) {
    // SAFETY: from `layout_new`, dropped once.
    drop(unsafe { Arc::from_raw(layout.cast::<Layout>()) });
}

extern "C" fn signature_new(
    op: *const c_void,
    words: *const u64,
    nwords: u32,
    results: *const ffi::LtcDims,
    nresults: u32,
) -> *const c_void {
    // SAFETY: `op` is from `define_op`; the arrays are valid for the call.
    let (op, words, results) =
        unsafe { (op_of(op), tensor::slice(words, nwords as usize), tensor::slice(results, nresults as usize)) };
    // SAFETY: dims are valid for the call. Tensors of dtypes without a layout cannot come to the device.
    let layouts = results.iter().filter_map(|d| unsafe { tensor::layout_of(d) }).map(Arc::new).collect();
    Arc::into_raw(Signature::new(op, words.into(), layouts)).cast()
}

extern "C" fn signature_drop(signature: *const c_void) {
    // SAFETY: from `signature_new`, dropped once.
    drop(unsafe { Arc::from_raw(signature.cast::<Signature>()) });
}

unsafe fn op_of(op: *const c_void) -> Op {
    // SAFETY: from `define_op`: a leaked spec.
    Op::from_static(unsafe { &*op.cast::<OpSpec>() })
}

extern "C" fn record<R: Recorder>(
    ctx: Ctx,
    call: *const ffi::LtcRecord,
    out: *mut ffi::LtcSlot,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: all pointers of the record are valid for the call, with the lengths beside them; the signature is
        // from `signature_new` and stays alive in the shape cache, which is what the count that is not dropped here
        // stands for.
        let (c, signature) = unsafe {
            let c = &*call;
            (c, ManuallyDrop::new(Arc::from_raw(c.signature.cast::<Signature>())))
        };
        // SAFETY: as above.
        let (numbers, raw_operands) =
            unsafe { (tensor::slice(c.numbers, c.nnumbers as usize), tensor::slice(c.operands, c.noperands as usize)) };
        let call = RecordedCall {
            signature: &signature,
            numbers,
            device: c.device as u16,
            new_count: c.nfresh as usize,
            raw_operands,
            storage: std::marker::PhantomData,
        };
        let new = recorder::<R>(ctx).record(&call)?;
        assert_eq!(new.len(), call.new_count, "invariant: one storage per new result");
        for (i, s) in new.into_iter().enumerate() {
            // SAFETY: `out` has one unused slot per new result.
            put::<R>(unsafe { out.add(i) }, s);
        }
        Ok(())
    })
}

extern "C" fn infer(
    _: Ctx,
    op: *const c_void,
    call: *const ffi::LtcRecord,
    operands: *const ffi::LtcDims,
    results: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    let mut found = false;
    let rc = guard(err, || {
        // SAFETY: as `record`; one dims per operand that the blob consumes, generators included.
        let (op, call) = unsafe { (op_of(op), &*call) };
        let Some(rule) = op.row().filter(|row| row.overrides).map(|row| row.rule) else { return Ok(()) };
        // SAFETY: as above.
        let (words, numbers) = unsafe {
            (tensor::slice(call.words, call.nwords as usize), tensor::slice(call.numbers, call.nnumbers as usize))
        };
        let consumed = ltc_ir::ArgReader::new(words);
        let count = {
            let mut r = consumed;
            r.by_ref().for_each(drop);
            r.operands()
        };
        // SAFETY: as above.
        let layouts: SmallVec<[Layout; 8]> = unsafe { tensor::slice(operands, count) }
            .iter()
            // SAFETY: dims are valid for the call.
            .map(|d| unsafe { tensor::layout_of(d) }.unwrap_or_else(|| Layout::contiguous(DType::U8, &[])))
            .collect();
        let refs: SmallVec<[&Layout; 8]> = layouts.iter().collect();
        let Some(call) = ltc_ir::rules::Call::decode(op.name(), words, &refs, numbers) else { return Ok(()) };
        let new = rule(&call).map_err(|e| TorchError { class: e.class, message: e.message })?;
        for layout in &new {
            let dims = layout.as_ref().map(tensor::dims);
            // SAFETY: `results` is the caller's list; the dims point into `new` for the call.
            unsafe { ffi::ltc_infer_push(results, dims.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)) };
        }
        found = true;
        Ok(())
    });
    if rc == 0 && !found { 2 } else { rc }
}

extern "C" fn storage_uninit<R: Recorder>(ctx: Ctx, layout: *const c_void, device: i32, out: *mut ffi::LtcSlot) {
    // SAFETY: from `layout_new`, alive for the call; the count is raised before the `Arc` is made.
    let layout = unsafe {
        Arc::increment_strong_count(layout.cast::<Layout>());
        Arc::from_raw(layout.cast::<Layout>())
    };
    put::<R>(out, recorder::<R>(ctx).storage_uninit(device as u16, layout));
}

extern "C" fn storage_bytes<R: Recorder>(ctx: Ctx, nbytes: usize, device: i32, out: *mut ffi::LtcSlot) {
    put::<R>(out, recorder::<R>(ctx).storage_bytes(device as u16, nbytes));
}

extern "C" fn storage_drop<R: Recorder>(_: Ctx, slot: *mut ffi::LtcSlot) {
    // SAFETY: the slot holds a storage and is not used again.
    shield(|| unsafe { slot.cast::<R::Storage>().drop_in_place() });
}

extern "C" fn storage_share<R: Recorder>(
    ctx: Ctx,
    dst: *const ffi::LtcSlot,
    src: *const ffi::LtcSlot,
    view: *const ffi::LtcOperand,
    device: i32,
) {
    shield(|| {
        // SAFETY: valid for the call; generators have no dims and are not viewed.
        if let Some(view) = unsafe { View::of(&*view) } {
            recorder::<R>(ctx).share(device as u16, storage::<R>(dst), storage::<R>(src), view);
        }
    });
}

extern "C" fn storage_resize<R: Recorder>(ctx: Ctx, slot: *const ffi::LtcSlot, nbytes: usize, device: i32) {
    shield(|| recorder::<R>(ctx).resize(device as u16, storage::<R>(slot), nbytes));
}

extern "C" fn assign<R: Recorder>(
    ctx: Ctx,
    dst: *const ffi::LtcOperand,
    src: *const ffi::LtcOperand,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || recorder::<R>(ctx).assign(device as u16, part::<R>(dst)?, part::<R>(src)?))
}

extern "C" fn import<R: Recorder>(
    ctx: Ctx,
    device: i32,
    host: *mut c_void,
    dims: *const ffi::LtcDims,
    out: *mut ffi::LtcSlot,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: the tensor is handed over; the dims are valid for the call.
        let (host, layout) = unsafe { (tensor::owned(host), tensor::layout_of(&*dims)) };
        let layout = layout.ok_or_else(|| TorchError::runtime("unsupported dtype"))?;
        put::<R>(out, recorder::<R>(ctx).import(device as u16, host, Arc::new(layout))?);
        Ok(())
    })
}

extern "C" fn import_into<R: Recorder>(
    ctx: Ctx,
    device: i32,
    dst: *const ffi::LtcOperand,
    host: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: the tensor is handed over.
        let host = unsafe { tensor::owned(host) };
        recorder::<R>(ctx).import_into(device as u16, part::<R>(dst)?, host)
    })
}

extern "C" fn to_host<R: Recorder>(
    ctx: Ctx,
    device: i32,
    views: *const ffi::LtcOperand,
    n: u32,
    out: *mut *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        let mut hosts = Vec::with_capacity(n as usize);
        for i in 0..n as usize {
            // SAFETY: there are `n` operands.
            hosts.push(recorder::<R>(ctx).to_host(device as u16, part::<R>(unsafe { views.add(i) })?)?);
        }
        for (i, host) in hosts.into_iter().enumerate() {
            // SAFETY: there is room for `n` tensors, which the caller takes over.
            unsafe { out.add(i).write(tensor::release(host)) };
        }
        Ok(())
    })
}

extern "C" fn fallback<R: Recorder>(
    ctx: Ctx,
    call: *mut ffi::LtcCall,
    op: *const c_char,
    len: usize,
    reason: i32,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: the call is valid until this function returns, and its slots hold `R::Storage`.
        let call = unsafe { EagerCall::new(call, text(op, len), Reason::from_code(reason), device as u16) };
        recorder::<R>(ctx).fallback(call)
    })
}

extern "C" fn forced_fallback<R: Recorder>(ctx: Ctx, op: *const c_char, len: usize) -> c_int {
    let mut forced = false;
    shield(|| forced = recorder::<R>(ctx).forces_fallback(text(op, len)));
    c_int::from(forced)
}

extern "C" fn seed<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    seed: u64,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || recorder::<R>(ctx).seed(device as u16, storage::<R>(generator), seed))
}

extern "C" fn generator_state<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    device: i32,
    out: *mut *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        let state = recorder::<R>(ctx).generator_state(device as u16, storage::<R>(generator))?;
        // SAFETY: `out` is valid; the caller takes the generator over.
        unsafe { out.write(state.into_raw()) };
        Ok(())
    })
}

extern "C" fn set_generator_state<R: Recorder>(
    ctx: Ctx,
    generator: *const ffi::LtcSlot,
    device: i32,
    state: *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    guard(err, || {
        // SAFETY: the generator is handed over.
        let state = unsafe { Generator::from_raw(state) };
        recorder::<R>(ctx).set_generator_state(device as u16, storage::<R>(generator), state)
    })
}

extern "C" fn synchronize<R: Recorder>(ctx: Ctx, device: i32, err: *mut ffi::LtcError) -> c_int {
    guard(err, || recorder::<R>(ctx).synchronize(device.max(0) as u16))
}

extern "C" fn touched<R: Recorder>(ctx: Ctx, slot: *const ffi::LtcSlot) {
    shield(|| recorder::<R>(ctx).touched(storage::<R>(slot)));
}
