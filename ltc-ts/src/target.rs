//! What programs are made for: a place, and what of the configuration holds there.

use ltc_ir::passes::Switches;
use ltc_kernels::Jit;
use ltc_torch_sys::Place;

use crate::config::{Fusion, TsConfig};

/// Where a device's programs run, and how they are made.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) config: TsConfig,
}

impl Target {
    /// The configuration as it holds at a place. What is about the processor's threads is the CPU's alone. Bits of
    /// kernels were not compared with those of libtorch's on a GPU, so exact fusion is none there; nor is there any
    /// without a compiler.
    pub(crate) fn new(config: &TsConfig, place: Place) -> Self {
        let mut config = config.clone();
        if !place.is_cpu() {
            config.single_thread_small = false;
            if config.fusion == Fusion::Exact || config.jit == Jit::Off {
                config.fusion = Fusion::Off;
            }
        }
        Target { place, config }
    }

    /// By libtorch's kernels alone.
    pub(crate) fn unfused(&self) -> Self {
        let config = TsConfig { fusion: Fusion::Off, ..self.config.clone() };
        Target { place: self.place, config }
    }

    /// As recorded; on a GPU, with nothing that has to be compiled.
    pub(crate) fn plain(&self) -> Self {
        let config = TsConfig { rewrites: Switches::none(), ..self.config.clone() };
        let plain = Target { place: self.place, config };
        if self.place.is_cpu() { plain } else { plain.unfused() }
    }

    /// Whether steps may run beside each other on the processor's threads.
    pub(crate) fn has_branches(&self) -> bool {
        self.place.is_cpu()
    }
}
