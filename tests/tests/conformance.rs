//! The libtorch backend passes what every backend has to pass, with kernels of ours and without: on the CPU, and over
//! the stand-in of CUDA on a GPU (docs/cuda.md).

use ltc_torch::Options;
use ltc_torch_sys::{Place, set_place_key};
use ltc_ts::{Fusion, Jit, TsBackend, TsConfig};

mod with_fused_kernels {
    ltc_backend::conformance!(super::backend(ltc_ts::Fusion::Full));
}

mod without {
    ltc_backend::conformance!(super::backend(ltc_ts::Fusion::Off));
}

fn backend(fusion: Fusion) -> TsBackend {
    let config = TsConfig { fusion, ..TsConfig::default() };
    if std::env::var_os("DRY_CUDA_ORDER").is_none() {
        return TsBackend::with_config(config);
    }
    let place = Place::Cuda(0);
    place.check().expect("the stand-in has a GPU");
    // Kernels of libtorch's have values under this key.
    set_place_key("Fake").expect("libtorch has that key");
    let gpu = Options::from_env().expect("the environment makes sense").gpu;
    // Compiled at once: a kernel that has no code yet is not run.
    TsBackend::with_config(TsConfig { places: vec![place], jit: Jit::Now, gpu, ..config })
}
