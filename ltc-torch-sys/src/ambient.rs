//! Ambient state: what no argument says and what a call, or a step of many calls, may depend on all the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{TorchError, error::ErrorSlot, ffi::LtcError};

unsafe extern "C" {
    fn ltc_ambient(out: *mut Ambient);
    fn ltc_host_draws(out: *mut u64, err: *mut LtcError) -> std::ffi::c_int;
    safe fn ltc_note_registration();
}

/// A number for the state of the CPU's default generator, which draws move.
///
/// # Errors
/// Fails where libtorch refuses to show it.
pub fn host_draws() -> Result<u64, TorchError> {
    let (err, mut out) = (ErrorSlot::new(), 0);
    // SAFETY: both pointers are to values that live through the call.
    let rc = unsafe { ltc_host_draws(&mut out, err.as_ptr()) };
    err.check(rc)?;
    Ok(out)
}

/// Ambient state of a thread and its process, to be compared with that of another time. Random generators are not in
/// it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ambient {
    keys_included: u64,
    keys_excluded: u64,
    autograd: u64,
    anomaly: u64,
    autocast: u64,
    modes: u64,
    mode_objects: u64,
    default_dtype: u64,
    determinism: u64,
    numerics: u64,
    threads: u64,
    registrations: u64,
    device: u64,
}

impl Ambient {
    /// A number for it: equal for equal states, and of this process only.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// The current one of the lazy devices.
    pub fn device(&self) -> u16 {
        self.device as u16
    }

    /// Whether Python modes, functorch's transforms or hooks of saved tensors are active. These are objects of the user
    /// with state of their own: two equal states of this kind need not act equally, and a new object may have the
    /// address of an old one.
    pub fn has_modes(&self) -> bool {
        self.modes != 0
    }

    /// What differs between two states, in a user's words; the first such thing.
    pub fn difference(&self, other: &Ambient) -> Option<&'static str> {
        type Part = (&'static str, fn(&Ambient) -> u64);
        let parts: [Part; 13] = [
            ("grad or inference mode", |a| a.autograd),
            ("autocast", |a| a.autocast),
            ("the default dtype", |a| a.default_dtype),
            ("deterministic algorithms", |a| a.determinism),
            ("anomaly detection", |a| a.anomaly),
            ("the number of threads", |a| a.threads),
            ("the precision or choice of kernels", |a| a.numerics),
            ("a mode, a function transform or hooks of saved tensors", |a| a.modes),
            ("a mode, a function transform or hooks of saved tensors", |a| a.mode_objects),
            ("dispatch keys", |a| a.keys_included),
            ("dispatch keys", |a| a.keys_excluded),
            ("which kernels operators have", |a| a.registrations),
            ("the current device", |a| a.device),
        ];
        parts.iter().find(|(_, part)| part(self) != part(other)).map(|(name, _)| *name)
    }
}

/// The calling thread's ambient state.
pub fn ambient() -> Ambient {
    let mut ambient = Ambient::default();
    // SAFETY: `Ambient` is laid out like LtcAmbient and is written before the call returns.
    unsafe { ltc_ambient(&mut ambient) };
    ambient
}

/// To be called when operators got other kernels than they had (`torch.library.Library.impl`): steps that were captured
/// before did what the kernels of then do, and libtorch tells nobody.
pub fn note_registration() {
    ltc_note_registration();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: some of this is the whole process's, and tests run side by side.
    #[test]
    fn what_changes_is_told_by_name() {
        let before = ambient();
        assert_eq!(ambient(), before);
        assert!(!before.has_modes());
        let within = tch::no_grad(ambient);
        assert_eq!(before.difference(&within), Some("grad or inference mode"));
        assert_ne!(before.fingerprint(), within.fingerprint());
        assert_eq!(ambient().difference(&before), None);

        let threads = tch::get_num_threads();
        tch::set_num_threads(threads + 1);
        let more = ambient();
        tch::set_num_threads(threads);
        assert_eq!(before.difference(&more), Some("the number of threads"));

        note_registration();
        assert_eq!(before.difference(&ambient()), Some("which kernels operators have"));
    }
}
