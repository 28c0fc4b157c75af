//! The one line of an example that names a backend.

use std::sync::Arc;

use ltc_backend::Backend;

/// libtorch's kernels, or the reference backend in builds without the feature `libtorch`.
pub fn backend() -> Arc<dyn Backend> {
    #[cfg(feature = "libtorch")]
    return Arc::new(ltc_ts::TsBackend::new(1));
    #[cfg(not(feature = "libtorch"))]
    return Arc::new(ltc_backend::ReferenceBackend);
}
