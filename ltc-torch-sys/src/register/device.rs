//! What libtorch asks of a device besides operators: waits, events and memory.

use super::{Ctx, c_int, c_void, ffi, guard, recorder, shield};
use crate::{error::TorchError, memory::DeviceMemory, recorder::Recorder};

/// # Safety
/// `event` must be from [`event_new`] for `R`, and not dropped for `'a`.
unsafe fn event<'a, R: Recorder>(event: *const c_void) -> &'a R::Event {
    // SAFETY: by this function's contract.
    unsafe { &*event.cast::<R::Event>() }
}

pub(super) unsafe extern "C" fn synchronize<R: Recorder>(ctx: Ctx, device: i32, err: *mut ffi::LtcError) -> c_int {
    // SAFETY: `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).synchronize(device.max(0) as u16)) }
}

pub(super) unsafe extern "C" fn others_wait<R: Recorder>(ctx: Ctx, device: i32) {
    // SAFETY: `ctx` is `register`'s.
    shield(|| unsafe { recorder::<R>(ctx).others_wait(device.max(0) as u16) });
}

pub(super) unsafe extern "C" fn is_idle<R: Recorder>(
    ctx: Ctx,
    device: i32,
    idle: *mut c_int,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: `ctx` is `register`'s; `idle` and `err` are this call's.
    unsafe {
        guard(err, || {
            *idle = recorder::<R>(ctx).is_idle(device.max(0) as u16)?.into();
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn event_new<R: Recorder>(
    ctx: Ctx,
    device: i32,
    timed: c_int,
    out: *mut *mut c_void,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: `ctx` is `register`'s, `err` is this call's, and the caller takes over what is put into `out`.
    unsafe {
        guard(err, || {
            let event = recorder::<R>(ctx).record_event(device.max(0) as u16, timed != 0)?;
            *out = Box::into_raw(Box::new(event)).cast();
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn event_drop<R: Recorder>(event: *mut c_void) {
    // SAFETY: it is from `event_new`, and the caller uses it no more.
    shield(|| unsafe { drop(Box::from_raw(event.cast::<R::Event>())) });
}

pub(super) unsafe extern "C" fn event_is_reached<R: Recorder>(
    waited: *const c_void,
    reached: *mut c_int,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the event is from `event_new` and lives for the call; `reached` and `err` are this call's.
    unsafe {
        guard(err, || {
            *reached = R::is_reached(event::<R>(waited)).into();
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn event_wait<R: Recorder>(waited: *const c_void, err: *mut ffi::LtcError) -> c_int {
    // SAFETY: the event is from `event_new` and lives for the call; `err` is this call's.
    unsafe { guard(err, || R::wait_for(event::<R>(waited))) }
}

pub(super) unsafe extern "C" fn event_elapsed<R: Recorder>(
    from: *const c_void,
    to: *const c_void,
    seconds: *mut f64,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: the events are from `event_new` and live for the call; `seconds` and `err` are this call's.
    unsafe {
        guard(err, || {
            let between = R::seconds_between(event::<R>(from), event::<R>(to));
            *seconds = between.ok_or_else(|| TorchError::runtime("ltc: one of the events is not reached yet"))?;
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn memory<R: Recorder>(
    ctx: Ctx,
    device: i32,
    out: *mut DeviceMemory,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: `ctx` is `register`'s; `out`, which is laid out as LtcMemory, and `err` are this call's.
    unsafe {
        guard(err, || {
            *out = recorder::<R>(ctx).memory(device.max(0) as u16)?;
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn memory_reset_peaks<R: Recorder>(
    ctx: Ctx,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).reset_memory_peaks(device.max(0) as u16)) }
}

pub(super) unsafe extern "C" fn memory_reset_sums<R: Recorder>(
    ctx: Ctx,
    device: i32,
    err: *mut ffi::LtcError,
) -> c_int {
    // SAFETY: `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).reset_memory_sums(device.max(0) as u16)) }
}

pub(super) unsafe extern "C" fn memory_release<R: Recorder>(ctx: Ctx, err: *mut ffi::LtcError) -> c_int {
    // SAFETY: `ctx` is `register`'s, and `err` is this call's.
    unsafe { guard(err, || recorder::<R>(ctx).release_memory()) }
}
