//! Which packages of the workspace cargo is told to build.

/// Crates that build and pass their tests without libtorch.
const PURE: [&str; 4] = ["ltc-ir", "ltc-backend", "ltc-core", "ltc-kernels"];

/// Selects the packages that need libtorch: always all of them, as those that they share would be built again with
/// other features for another selection.
pub(crate) fn with_libtorch() -> Vec<&'static str> {
    [vec!["--workspace", "--exclude", "xtask", "--exclude", "ltc-build"], each_pure("--exclude")].concat()
}

/// `flag crate` for each pure crate.
pub(crate) fn each_pure(flag: &'static str) -> Vec<&'static str> {
    PURE.into_iter().flat_map(|name| [flag, name]).collect()
}
