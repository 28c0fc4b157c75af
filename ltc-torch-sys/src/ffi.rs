//! Declarations of `csrc/abi.h`, in its order; documented there. Functions that fill a public type of this crate are
//! declared beside it.

use std::ffi::{c_char, c_int, c_void};

use crate::memory::{DeviceMemory, PlaceMemory};

pub(crate) const SLOT_BYTES: usize = 56;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LtcSlot {
    pub(crate) bytes: [u64; SLOT_BYTES / 8],
}

// Flags that only this crate knows; those of `ltc-ir` cross the border as its own types' numbers.
pub(crate) const LTC_ELEMENTWISE: u32 = 1 << 16;
pub(crate) const LTC_COMPARES: u32 = 1 << 17;
pub(crate) const LTC_REQUIRES_GRAD: u32 = 1;
pub(crate) const LTC_INFERENCE: u32 = 2;
pub(crate) const LTC_GATHERS_BY_PYTHON: u32 = 4;
pub(crate) const LTC_DUAL: u32 = 8;

#[repr(C)]
pub(crate) struct LtcError {
    pub(crate) failure: *mut c_void,
}

#[repr(C)]
pub(crate) struct LtcPlan {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcHistory {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcEntered {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcTakingDown {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcFence {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcHold {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcChecks {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct LtcCall {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LtcThreads {
    pub(crate) kernels: c_int,
    pub(crate) products: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LtcDims {
    pub(crate) sizes: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) rank: u32,
    pub(crate) dtype: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LtcOperand {
    pub(crate) slot: *const LtcSlot,
    pub(crate) dims: LtcDims,
    pub(crate) flags: u8,
    pub(crate) generator: u8,
    pub(crate) offset: i64,
}

#[repr(C)]
pub(crate) struct LtcRecord {
    pub(crate) op: *const c_void,
    pub(crate) words: *const u64,
    pub(crate) numbers: *const u64,
    pub(crate) operands: *const LtcOperand,
    pub(crate) signature: *const c_void,
    pub(crate) nwords: u32,
    pub(crate) nnumbers: u32,
    pub(crate) noperands: u32,
    pub(crate) nfresh: u32,
    pub(crate) device: i32,
}

type Ctx = *const c_void;

#[repr(C)]
pub(crate) struct LtcVTable {
    pub(crate) ctx: Ctx,
    pub(crate) define_op: unsafe extern "C" fn(Ctx, *const c_char, usize, *mut u32) -> *const c_void,
    pub(crate) layout_new: unsafe extern "C" fn(*const LtcDims) -> *const c_void,
    pub(crate) layout_drop: unsafe extern "C" fn(*const c_void),
    pub(crate) signature_new:
        unsafe extern "C" fn(*const c_void, *const u64, u32, *const LtcDims, u32) -> *const c_void,
    pub(crate) signature_drop: unsafe extern "C" fn(*const c_void),
    pub(crate) record: unsafe extern "C" fn(Ctx, *const LtcRecord, *mut LtcSlot, *mut LtcError) -> c_int,
    pub(crate) infer:
        unsafe extern "C" fn(Ctx, *const c_void, *const LtcRecord, *const LtcDims, *mut c_void, *mut LtcError) -> c_int,
    pub(crate) storage_uninit: unsafe extern "C" fn(Ctx, *const c_void, i32, *mut LtcSlot),
    pub(crate) storage_bytes: unsafe extern "C" fn(Ctx, usize, i32, *mut LtcSlot),
    pub(crate) storage_drop: unsafe extern "C" fn(Ctx, *mut LtcSlot),
    pub(crate) storage_share: unsafe extern "C" fn(Ctx, *const LtcSlot, *const LtcSlot, *const LtcOperand, i32),
    pub(crate) storage_resize: unsafe extern "C" fn(Ctx, *const LtcSlot, usize, i32),
    pub(crate) storage_keep_failures: unsafe extern "C" fn(*const LtcSlot),
    pub(crate) assign: unsafe extern "C" fn(Ctx, *const LtcOperand, *const LtcOperand, i32, *mut LtcError) -> c_int,
    pub(crate) import:
        unsafe extern "C" fn(Ctx, i32, *mut c_void, *const LtcDims, *mut LtcSlot, *mut LtcError) -> c_int,
    pub(crate) import_into: unsafe extern "C" fn(Ctx, i32, *const LtcOperand, *mut c_void, *mut LtcError) -> c_int,
    pub(crate) to_host:
        unsafe extern "C" fn(Ctx, i32, *const LtcOperand, u32, *mut *mut c_void, *mut LtcError) -> c_int,
    pub(crate) fallback:
        unsafe extern "C" fn(Ctx, *mut LtcCall, *const c_char, usize, i32, i32, *mut LtcError) -> c_int,
    pub(crate) forced_fallback: unsafe extern "C" fn(Ctx, *const c_char, usize) -> c_int,
    pub(crate) seed: unsafe extern "C" fn(Ctx, *const LtcSlot, u64, i32, *mut LtcError) -> c_int,
    pub(crate) generator_state:
        unsafe extern "C" fn(Ctx, *const LtcSlot, i32, *mut *mut c_void, *mut LtcError) -> c_int,
    pub(crate) set_generator_state: unsafe extern "C" fn(Ctx, *const LtcSlot, i32, *mut c_void, *mut LtcError) -> c_int,
    pub(crate) synchronize: unsafe extern "C" fn(Ctx, i32, *mut LtcError) -> c_int,
    pub(crate) others_wait: unsafe extern "C" fn(Ctx, i32),
    pub(crate) is_idle: unsafe extern "C" fn(Ctx, i32, *mut c_int, *mut LtcError) -> c_int,
    pub(crate) event_new: unsafe extern "C" fn(Ctx, i32, c_int, *mut *mut c_void, *mut LtcError) -> c_int,
    pub(crate) event_drop: unsafe extern "C" fn(*mut c_void),
    pub(crate) event_is_reached: unsafe extern "C" fn(*const c_void, *mut c_int, *mut LtcError) -> c_int,
    pub(crate) event_wait: unsafe extern "C" fn(*const c_void, *mut LtcError) -> c_int,
    pub(crate) event_elapsed: unsafe extern "C" fn(*const c_void, *const c_void, *mut f64, *mut LtcError) -> c_int,
    pub(crate) memory: unsafe extern "C" fn(Ctx, i32, *mut DeviceMemory, *mut LtcError) -> c_int,
    pub(crate) memory_reset_peaks: unsafe extern "C" fn(Ctx, i32, *mut LtcError) -> c_int,
    pub(crate) memory_reset_sums: unsafe extern "C" fn(Ctx, i32, *mut LtcError) -> c_int,
    pub(crate) memory_release: unsafe extern "C" fn(Ctx, *mut LtcError) -> c_int,
    pub(crate) touched: unsafe extern "C" fn(Ctx, *const LtcSlot),
    pub(crate) device_count: i32,
    pub(crate) places: *const i32,
    pub(crate) expect_calls: i32,
    pub(crate) small_probes: i32,
}

pub(crate) type EachOp = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);

unsafe extern "C" {
    pub(crate) fn ltc_error_set(err: *mut LtcError, class: i32, text: *const c_char, len: usize);
    pub(crate) fn ltc_error_clear(err: *mut LtcError);
    pub(crate) fn ltc_error_get(err: *const LtcError, text: *mut *const c_char, len: *mut usize) -> i32;

    pub(crate) fn ltc_init(vtable: *const LtcVTable, name: *const c_char, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_has_mps() -> c_int;
    pub(crate) fn ltc_name_mps(err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_wrap(
        slot: *mut LtcSlot,
        nbytes: usize,
        view: *const LtcDims,
        offset: i64,
        device: i32,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_tensor_alias(
        base: *const c_void,
        view: *const LtcDims,
        offset: i64,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_forced_changed();
    pub(crate) fn ltc_on_sparse(tell: unsafe extern "C" fn(Ctx, *const c_char, usize, i32));
    pub(crate) fn ltc_default_generator_get(
        device: i32,
        state: *mut *mut c_void,
        seed: *mut u64,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_default_generator_slot(device: i32, out: *mut *const LtcSlot, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_default_generator_set(device: i32, state: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_bump(tensor: *const c_void, by: u32);
    pub(crate) fn ltc_inference_mode(on: bool, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_inference_mode_end(mode: *mut c_void);
    pub(crate) fn ltc_tensor_grad(tensor: *const c_void) -> *mut c_void;
    pub(crate) fn ltc_tensor_set_grad(tensor: *const c_void, grad: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_pass_to(tensor: *const c_void, to: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_history_is_freed(tensor: *const c_void) -> bool;
    pub(crate) fn ltc_tensor_set_freed_history(
        tensor: *const c_void,
        name: *const c_char,
        n: usize,
        why: *const c_char,
        m: usize,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_capture_begin(with_checks: bool);
    pub(crate) fn ltc_capture_pause(pauses: c_int);
    pub(crate) fn ltc_capture_count() -> u32;
    pub(crate) fn ltc_capture_checks(out: *mut *mut LtcChecks, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_checks_hold(checks: *const LtcChecks, holds: *mut c_int, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_checks_free(checks: *mut LtcChecks);
    pub(crate) fn ltc_capture_end(holds: *mut *mut LtcHold, room: u32) -> u32;
    pub(crate) fn ltc_hold_slot(hold: *const LtcHold) -> *const LtcSlot;
    pub(crate) fn ltc_hold_is_shared(hold: *const LtcHold) -> c_int;
    pub(crate) fn ltc_hold_tensor(
        hold: *const LtcHold,
        view: *const LtcDims,
        offset: i64,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_hold_free(hold: *mut LtcHold);
    pub(crate) fn ltc_history_begin(tensors: *const *const c_void, n: usize, err: *mut LtcError) -> *mut LtcHistory;
    pub(crate) fn ltc_history_take(
        h: *mut LtcHistory,
        results: *const *const c_void,
        m: usize,
        reached: *mut u8,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_history_detach(h: *mut LtcHistory);
    pub(crate) fn ltc_history_mend(h: *mut LtcHistory);
    pub(crate) fn ltc_history_let_go(h: *mut LtcHistory);
    pub(crate) fn ltc_history_run(
        h: *const LtcHistory,
        grads: *const *const c_void,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_history_free(h: *mut LtcHistory);
    pub(crate) fn ltc_infer_push(results: *mut c_void, dims: *const LtcDims);

    pub(crate) fn ltc_tensor_clone(t: *const c_void) -> *mut c_void;
    pub(crate) fn ltc_tensor_free(t: *mut c_void);
    pub(crate) fn ltc_tensor_data(t: *const c_void) -> *mut c_void;
    pub(crate) fn ltc_tensor_copy(to: *const c_void, from: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_zero(t: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_contiguous_copy(t: *const c_void, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_detach(t: *const c_void, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_to_device(
        t: *const c_void,
        device: i32,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_tensor_impl(t: *const c_void) -> *mut c_void;
    pub(crate) fn ltc_tensor_lazy_device(t: *const c_void) -> c_int;
    pub(crate) fn ltc_tensor_empty(d: *const LtcDims, device: i32, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_operand(t: *const c_void, out: *mut LtcOperand, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_host_dims(t: *const c_void, out: *mut LtcDims) -> *const c_void;
    pub(crate) fn ltc_place_check(place: i32, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_place_wait(place: i32, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_place_release(place: i32, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_place_memory(place: i32, out: *mut PlaceMemory, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_library_folder() -> *const c_char;
    pub(crate) fn ltc_place_enter(place: i32, out: *mut *mut LtcEntered, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_place_leave(entered: *mut LtcEntered);
    pub(crate) fn ltc_place_stream(place: i32) -> *mut c_void;
    pub(crate) fn ltc_graph_enter(place: i32, out: *mut *mut LtcTakingDown, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_graph_leave(entered: *mut LtcTakingDown);
    pub(crate) fn ltc_tensor_over(
        memory: *mut c_void,
        dims: *const LtcDims,
        place: i32,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_tensors_copy(
        place: i32,
        to: *const *const c_void,
        from: *const *const c_void,
        n: usize,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_error_is_fatal(code: i32) -> c_int;
    pub(crate) fn ltc_fence_new(place: i32, out: *mut *mut LtcFence, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_fence_free(fence: *mut LtcFence);
    pub(crate) fn ltc_fence_passed(fence: *const LtcFence, passed: *mut c_int, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_fence_wait(fence: *const LtcFence, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_fence_seconds(
        from: *const LtcFence,
        to: *const LtcFence,
        seconds: *mut f64,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_place_key(name: *const c_char, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_tensor_place(t: *const c_void) -> c_int;
    pub(crate) fn ltc_tensor_dims(t: *const c_void, out: *mut LtcDims) -> c_int;
    pub(crate) fn ltc_tensor_at_place(t: *const c_void, place: i32, out: *mut *mut c_void, err: *mut LtcError)
    -> c_int;
    pub(crate) fn ltc_tensor_new_at(d: *const LtcDims, place: i32, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_nan_bound_holds() -> c_int;
    pub(crate) fn ltc_num_threads() -> c_int;
    pub(crate) fn ltc_set_num_threads(threads: c_int);
    pub(crate) fn ltc_threads(wanted: LtcThreads) -> LtcThreads;
    pub(crate) fn ltc_take_warnings(ctx: *mut c_void, each: extern "C" fn(*mut c_void, *const c_char, usize));
    pub(crate) fn ltc_tensor_part(
        base: *const c_void,
        part: *const LtcDims,
        offset: i64,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_host_holds(t: *const c_void) -> c_int;
    pub(crate) fn ltc_host_is_plain(tensor: *const c_void) -> c_int;
    pub(crate) fn ltc_host_is_sole_holder(t: *const c_void) -> c_int;

    pub(crate) fn ltc_plan_new(
        op: *const c_char,
        len: usize,
        words: *const u64,
        nwords: u32,
        results: *const LtcDims,
        nresults: u32,
        place: i32,
        out: *mut *mut LtcPlan,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_plan_free(plan: *mut LtcPlan);
    pub(crate) fn ltc_plan_run(
        plan: *const LtcPlan,
        operands: *const *mut c_void,
        reusable: *const u8,
        numbers: *const u64,
        outs: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_probe(
        op: *const c_char,
        len: usize,
        words: *const u64,
        nwords: u32,
        operands: *const *mut c_void,
        reusable: *const u8,
        numbers: *const u64,
        outs: *mut *mut c_void,
        room: u32,
        count: *mut u32,
        err: *mut LtcError,
    ) -> c_int;

    pub(crate) fn ltc_at_fork(
        prepare: extern "C" fn(),
        parent: extern "C" fn(),
        child: extern "C" fn(),
        err: *mut LtcError,
    ) -> c_int;
    pub(crate) fn ltc_came_along() -> c_int;

    pub(crate) fn ltc_pool_limit(bytes: usize, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_pool_enter();
    pub(crate) fn ltc_pool_leave(reused: *mut u64, fresh: *mut u64, cached: *mut usize);
    pub(crate) fn ltc_pool_empty();

    pub(crate) fn ltc_parallel_for(
        n: i64,
        grain: i64,
        ctx: *mut c_void,
        body: extern "C" fn(*mut c_void, i64, i64),
        err: *mut LtcError,
    ) -> c_int;

    pub(crate) fn ltc_generator_new(seed: u64, place: i32, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_generator_clone(g: *const c_void, out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_cpu_generator_get(out: *mut *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_cpu_generator_set(generator: *const c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_generator_free(g: *mut c_void);
    pub(crate) fn ltc_default_generator_seed(device: i32, seed: u64, err: *mut LtcError) -> c_int;

    pub(crate) fn ltc_call_operand_count(call: *const LtcCall) -> u32;
    pub(crate) fn ltc_call_operand(call: *const LtcCall, i: u32, out: *mut LtcOperand, device: *mut i32);
    pub(crate) fn ltc_call_run(call: *mut LtcCall, values: *const *mut c_void, err: *mut LtcError) -> c_int;
    pub(crate) fn ltc_call_finish(call: *mut LtcCall, err: *mut LtcError) -> c_int;

    pub(crate) fn ltc_op_schema(name: *const c_char, overload: *const c_char, text: *mut *mut c_char) -> c_int;
    pub(crate) fn ltc_for_each_op(each: EachOp, ctx: *mut c_void) -> c_int;
    pub(crate) fn ltc_free(p: *mut c_void);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ltc_ir::{ArgFlags, ErrorClass, FallbackReason, Props, Tag};

    use super::*;

    /// Names, without `LTC_`, and numbers of all enums of the header, and its slot size.
    fn header() -> BTreeMap<&'static str, i64> {
        let text = include_str!("../csrc/abi.h");
        let bodies = text.split("enum Ltc").skip(1).filter_map(|part| part.split_once('{')?.1.split_once('}'));
        let entries = bodies.flat_map(|(body, _)| body.split(',')).filter_map(|entry| entry.split_once('='));
        let mut found: BTreeMap<_, _> = entries
            .map(|(name, number)| (name.trim().trim_start_matches("LTC_"), number.trim().parse().expect("a number")))
            .collect();
        let slot = text.split_once("#define LTC_SLOT_BYTES ").expect("a slot size").1;
        found.insert("SLOT_BYTES", slot.lines().next().unwrap_or_default().parse().expect("a number"));
        found
    }

    #[test]
    fn both_sides_of_the_border_agree_on_every_number() {
        let tags = [
            "NONE",
            "TENSOR",
            "HOST_SCALAR",
            "INT",
            "BOOL",
            "FLOAT",
            "NUMBER",
            "STR",
            "INTS",
            "FLOATS",
            "BOOLS",
            "TENSORS",
            "NUMBERS",
            "GENERATOR",
            "DEVICE",
        ];
        let mut header = header();
        for (code, name) in tags.into_iter().enumerate() {
            let tag = Tag::from_code(code as u8).map(|tag| format!("{tag:?}").to_uppercase());
            assert_eq!(tag.as_deref(), Some(&*name.replace('_', "")), "{name}");
            assert_eq!(header.remove(name), Some(code as i64), "{name}");
        }
        assert_eq!(Tag::from_code(tags.len() as u8), None);
        for (name, number) in [
            ("MUT", i64::from(ArgFlags::MUT.0)),
            ("FRESH", i64::from(ArgFlags::FRESH.0)),
            ("WRAPPED", i64::from(ArgFlags::WRAPPED.0)),
            ("RANDOM", i64::from(Props::RANDOM.0)),
            ("MUTATES", i64::from(Props::MUTATES.0)),
            ("OVERWRITES", i64::from(Props::OVERWRITES.0)),
            ("DATA_DEPENDENT", i64::from(Props::DATA_DEPENDENT.0)),
            ("ELEMENTWISE", i64::from(LTC_ELEMENTWISE)),
            ("COMPARES", i64::from(LTC_COMPARES)),
            ("WHY_DATA", FallbackReason::DataDependent as i64),
            ("WHY_NO_SHAPE", FallbackReason::NoShapeFunction as i64),
            ("WHY_ARGUMENT", FallbackReason::UnsupportedArgument as i64),
            ("WHY_FORCED", FallbackReason::Forced as i64),
            ("RUNTIME", ErrorClass::Runtime as i64),
            ("INDEX", ErrorClass::Index as i64),
            ("VALUE", ErrorClass::Value as i64),
            ("TYPE", ErrorClass::Type as i64),
            ("NOT_IMPLEMENTED", ErrorClass::NotImplemented as i64),
            ("LINALG", ErrorClass::LinAlg as i64),
            ("OUT_OF_MEMORY", ErrorClass::OutOfMemory as i64),
            ("INTERRUPTED", ErrorClass::Interrupted as i64),
            ("DEVICE_LOST", ErrorClass::DeviceLost as i64),
            ("REQUIRES_GRAD", i64::from(LTC_REQUIRES_GRAD)),
            ("INFERENCE", i64::from(LTC_INFERENCE)),
            ("GATHERS_BY_PYTHON", i64::from(LTC_GATHERS_BY_PYTHON)),
            ("DUAL", i64::from(LTC_DUAL)),
            ("SLOT_BYTES", SLOT_BYTES as i64),
        ] {
            assert_eq!(header.remove(name), Some(number), "{name}");
        }
        assert!(header.is_empty(), "only in the header: {header:?}");
    }

    #[test]
    fn numbers_that_come_from_the_header_are_read_back() {
        assert!((0..4).all(|code| FallbackReason::from_code(code).is_some_and(|r| r as i32 == code)));
        assert!((0..9).all(|code| ErrorClass::from_code(code).is_some_and(|c| c as i32 == code)));
        assert_eq!((FallbackReason::from_code(4), ErrorClass::from_code(9)), (None, None));
    }
}
