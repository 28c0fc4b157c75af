//! What programs are made for: a place, and what of the configuration holds there.

use ltc_torch_sys::Place;

use crate::config::{Fusion, TsConfig};

/// Where a device's programs run, and how they are made.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) config: TsConfig,
}

impl Target {
    /// The configuration as it holds at a place. Fused kernels, the rewrites that pay because of the CPU's kernels, and
    /// all that is about its threads and its memory are the CPU's; elsewhere libtorch's kernels run one by one.
    pub(crate) fn new(config: &TsConfig, place: Place) -> Self {
        let mut config = config.clone();
        if !place.is_cpu() {
            config.fusion = Fusion::Off;
            config.single_thread_small = false;
        }
        Target { place, config }
    }

    /// Whether steps may run beside each other on the processor's threads.
    pub(crate) fn has_branches(&self) -> bool {
        self.place.is_cpu()
    }
}
