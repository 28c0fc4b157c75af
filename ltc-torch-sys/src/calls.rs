//! How calls found the layouts of their results.

unsafe extern "C" {
    fn ltc_calls(out: *mut Calls);
}

/// How a thread's calls found the layouts of their results.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    /// The same call came next the last time; nothing was hashed.
    pub expected: u64,
    /// Found among earlier calls by hash.
    pub looked_up: u64,
    /// Not seen before.
    pub inferred: u64,
    /// Those for which the kernel was run once, on stand-ins of the operands' sizes.
    pub probed: u64,
}

/// The calling thread's calls so far.
pub fn calls() -> Calls {
    let mut calls = Calls::default();
    // SAFETY: `Calls` is laid out like LtcCalls and is written before the call returns.
    unsafe { ltc_calls(&mut calls) };
    calls
}
