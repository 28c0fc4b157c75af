//! Tier 1: a kernel's IR as machine code, its values in vector registers from the first operator to the last.
//!
//! Every bit is tier 0's (but which NaN a NaN is): each operator is the same instructions, in the same order.
//!
//! | file | what |
//! |---|---|
//! | `input.rs` | what is compiled |
//! | `tier.rs` | which kernels are compiled, when, and by whom |
//! | `code.rs` | a compiled IR, and how it is called |
//! | `vector.rs` | vector programs: a group of elements, before registers |
//! | `lower.rs`, `math.rs` | IRs as vector programs |
//! | `rows.rs`, `gather.rs` | rows with reductions as one function |
//! | `allocate.rs` | registers |
//! | `emit.rs`, `forms.rs` | machine code |
//! | `memory.rs` | where it lies |
//!
//! A loop takes several groups at once, instruction by instruction, as registers allow, so that no group waits for
//! itself.

#[cfg(target_arch = "x86_64")]
mod allocate;
#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(target_arch = "x86_64")]
mod emit;
#[cfg(target_arch = "x86_64")]
mod forms;
#[cfg(target_arch = "x86_64")]
mod gather;
mod input;
#[cfg(target_arch = "x86_64")]
mod lower;
#[cfg(target_arch = "x86_64")]
mod math;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod rows;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
mod tier;
#[cfg(target_arch = "x86_64")]
mod vector;

/// Other machines have tier 0 alone.
#[cfg(not(target_arch = "x86_64"))]
mod code {
    use super::{JitInput, RowInput};

    #[derive(Debug)]
    pub(crate) enum Compiled {}

    impl JitInput {
        pub(super) fn compile(&self, _: &[u64]) -> Option<Compiled> {
            None
        }
    }

    impl RowInput {
        pub(super) fn compile(&self, _: &[u64]) -> Option<Compiled> {
            None
        }
    }

    impl Compiled {
        pub(crate) fn guards_hold(&self, _: &[u64]) -> bool {
            match *self {}
        }

        pub(crate) fn restore(&self, _: &mut [u64]) {
            match *self {}
        }

        pub(crate) fn reads_uniforms_as_they_are(&self) -> bool {
            match *self {}
        }

        pub(crate) fn prepare(&self, _: &mut [u64]) {
            match *self {}
        }

        pub(crate) fn after(&self, _: &[*mut u8], _: usize) -> smallvec::SmallVec<[*mut u8; 16]> {
            match *self {}
        }

        pub(crate) fn scratch(&self) -> usize {
            match *self {}
        }

        pub(crate) fn rows(&self) -> usize {
            match *self {}
        }

        /// # Safety
        /// Never called.
        pub(crate) unsafe fn run_rows(&self, _: &[*mut u8], _: &mut [u64], _: usize, _: *mut u8) {
            match *self {}
        }

        /// # Safety
        /// Never called.
        pub(crate) unsafe fn run(&self, _: &[*mut u8], _: &[u64], _: usize, _: *mut u8) -> usize {
            match *self {}
        }
    }
}

pub(super) use code::Compiled;
pub(crate) use input::{JitInput, MOST_ROWS, RowInput, RowPart, RowStage, Target, most_rows};
#[cfg(target_arch = "x86_64")]
pub use memory::code_bytes;
pub use tier::{Jit, Paused, finish_compiling};
pub(super) use tier::{Tier, Uncompiled};

/// Bytes of machine code in this process: none.
#[cfg(not(target_arch = "x86_64"))]
pub fn code_bytes() -> usize {
    0
}
