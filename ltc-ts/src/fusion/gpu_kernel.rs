//! A fused kernel as a GPU runs it.

use std::sync::OnceLock;

use ltc_kernels::{
    FusedKernel,
    cuda::{Function, Launches, Source, Unsupported},
};

/// A fused kernel as launches, and their functions once they have code.
#[derive(Debug)]
pub(crate) struct GpuKernel {
    pub(crate) launches: Launches,
    pub(crate) functions: OnceLock<Box<[Function]>>,
}

impl GpuKernel {
    pub(crate) fn of(kernel: &FusedKernel) -> Result<GpuKernel, Unsupported> {
        Ok(GpuKernel { launches: Launches::of(kernel)?, functions: OnceLock::new() })
    }

    /// The text of each function.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.launches.each.iter().map(|launch| &launch.source)
    }
}
