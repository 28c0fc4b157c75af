//! A kernel of either kind.

use super::{Jit, Kernel, KernelIr, RowKernel};

/// A kernel of either kind.
#[derive(Debug)]
pub enum FusedKernel {
    /// Element by element.
    Flat(Box<Kernel>),
    /// With reductions.
    Rows(Box<RowKernel>),
}

impl FusedKernel {
    /// How many elements it goes through.
    #[inline]
    pub fn element_count(&self) -> usize {
        match self {
            FusedKernel::Flat(kernel) => kernel.element_count(),
            FusedKernel::Rows(kernel) => kernel.element_count(),
        }
    }

    /// How many loops an element takes.
    pub fn calls(&self) -> usize {
        match self {
            FusedKernel::Flat(kernel) => kernel.calls(),
            FusedKernel::Rows(kernel) => kernel.calls(),
        }
    }

    /// What it computes for one element, whatever its runtime numbers are.
    pub fn ir(&self) -> &KernelIr {
        match self {
            FusedKernel::Flat(kernel) => kernel.ir(),
            FusedKernel::Rows(kernel) => kernel.ir(),
        }
    }

    /// How long it takes on one thread, roughly.
    pub fn nanoseconds(&self) -> u64 {
        match self {
            FusedKernel::Flat(kernel) => kernel.nanoseconds() as u64,
            FusedKernel::Rows(kernel) if kernel.is_compiled() => (kernel.calls() * kernel.element_count() / 8) as u64,
            FusedKernel::Rows(kernel) => (kernel.calls() * kernel.element_count() / 4) as u64,
        }
    }

    /// Says whether it may become machine code. Before its first run.
    pub fn set_jit(&mut self, jit: Jit) {
        match self {
            FusedKernel::Flat(kernel) => kernel.set_jit(jit),
            FusedKernel::Rows(kernel) => kernel.set_jit(jit),
        }
    }

    /// Bytes of an input that must lie at an address that suits its dtype, if it does not lie at this one.
    #[inline]
    pub fn misplaced(&self, input: usize, address: usize) -> Option<usize> {
        match self {
            FusedKernel::Flat(kernel) => kernel.block_bytes(input).filter(|_| !kernel.is_aligned(input, address)),
            FusedKernel::Rows(_) => None,
        }
    }
}
