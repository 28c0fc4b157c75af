//! How the backend is set up.

use std::path::PathBuf;

use ltc_ir::passes::Switches;
use ltc_kernels::Jit;
use ltc_torch_sys::Place;

/// Which operators run in fused kernels of ours, instead of libtorch's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fusion {
    /// None.
    Off,
    /// Those whose results equal libtorch's in every bit, such as plain arithmetic.
    Exact,
    /// All there are kernels for. Transcendental functions may differ from libtorch's in the last places.
    #[default]
    Full,
}

impl std::str::FromStr for Fusion {
    type Err = ();

    /// `0` (or `off`), `exact`, `1` (or `on`).
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "0" | "off" | "false" => Ok(Fusion::Off),
            "exact" => Ok(Fusion::Exact),
            "1" | "on" | "true" => Ok(Fusion::Full),
            _ => Err(()),
        }
    }
}

/// How programs run on GPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuConfig {
    /// Folder with NVRTC, NVIDIA's compiler; without one, or where it has none, it is looked for beside libtorch and
    /// where the system's loader looks.
    pub nvrtc: Option<PathBuf>,
    /// Folder in which machine code is kept from process to process; `None`: it is not.
    pub cache: Option<PathBuf>,
    /// Take down programs whose inputs lie where they lay as graphs of CUDA's.
    pub graphs: bool,
}

impl Default for GpuConfig {
    fn default() -> Self {
        GpuConfig { nvrtc: None, cache: None, graphs: true }
    }
}

/// How a [`TsBackend`](crate::TsBackend) is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsConfig {
    /// Where each device computes. Several may be at one place, each with its own executor thread and its own count of
    /// memory. Elsewhere than on the CPU, what is said of threads and of the pool does not hold, and kernels are fused
    /// with [`Fusion::Full`] only.
    pub places: Vec<Place>,
    /// Let steps write in place where nobody can tell.
    pub reuse: bool,
    /// Which operators run in fused kernels.
    pub fusion: Fusion,
    /// Whether these become machine code.
    pub jit: Jit,
    /// Which whole-graph rewrites may apply ([`crate::rewrite_names`]); those that are not exact only with
    /// [`Fusion::Full`].
    pub rewrites: Switches,
    /// Bytes of free memory kept for the next run; 0: none, libtorch asks the system each time. The pool is the
    /// process's, and the backend made last says how much it keeps.
    pub pool_bytes: usize,
    /// Bytes a program may have alive at once, as far as the order of its steps and making cheap values again can help;
    /// 0: steps run as recorded ([`crate::MemoryPlan`]).
    pub budget_bytes: usize,
    /// Run on one thread what is too small for several, though libtorch would start them: programs of small kernels,
    /// and small matrix products in others; and programs beside which their caller is at work, if that asks for it
    /// ([`ltc_backend::Inputs::single_threaded`]). Only with [`Fusion::Full`], as sums may have other bits then; which
    /// they have follows from the program, never from measured times.
    pub single_thread_small: bool,
    /// How programs run on GPUs. Where code of kernels is found is the process's: the first device to need it counts.
    pub gpu: GpuConfig,
    /// Wait after each step at places that are not the CPU, so that a failure is told of the step that failed.
    pub sync_steps: bool,
    /// Threads libtorch's kernels use on an executor thread; `None` takes libtorch's own number.
    pub threads: Option<u16>,
}

impl Default for TsConfig {
    fn default() -> Self {
        TsConfig {
            places: vec![Place::Cpu],
            reuse: true,
            fusion: Fusion::Full,
            jit: Jit::On,
            rewrites: Switches::default(),
            pool_bytes: 1 << 30,
            budget_bytes: 0,
            single_thread_small: true,
            gpu: GpuConfig::default(),
            sync_steps: false,
            threads: None,
        }
    }
}

impl TsConfig {
    pub(crate) fn may_use_one_thread(&self) -> bool {
        self.single_thread_small && self.fusion == Fusion::Full
    }
}
