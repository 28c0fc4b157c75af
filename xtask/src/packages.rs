//! Which packages of the workspace cargo is told to build.

/// Crates that build and pass their tests without libtorch.
const PURE: [&str; 4] = ["ltc-ir", "ltc-backend", "ltc-core", "ltc-kernels"];

/// What of them is behind features.
const FEATURES: [&str; 2] = ["--features", "ltc-backend/conformance"];

/// Selects the crates that need no libtorch.
pub(crate) fn pure() -> Vec<&'static str> {
    PURE.into_iter().flat_map(|name| ["-p", name]).chain(FEATURES).collect()
}

/// Selects all packages of the product: always all of them, as those that they share would be built again with other
/// features for another selection.
pub(crate) fn all() -> Vec<&'static str> {
    [&["--workspace", "--exclude", "xtask", "--exclude", "ltc-build"][..], &FEATURES].concat()
}
