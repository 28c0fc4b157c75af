//! What the running libtorch's kernels answer where its versions differ.

use std::sync::OnceLock;

use crate::ffi;

/// Whether `clamp` with a single bound that is NaN makes every element NaN: so it is in libtorch 2.13, while in 2.11
/// such a bound holds nothing back.
pub fn nan_bound_holds() -> bool {
    static HOLDS: OnceLock<bool> = OnceLock::new();
    // SAFETY: no preconditions.
    *HOLDS.get_or_init(|| unsafe { ffi::ltc_nan_bound_holds() } != 0)
}
