//! Compiles the C++ half against the libtorch that `ltc-build` finds.

use std::{env, path::Path};

#[path = "build/precompiled.rs"]
mod precompiled;
#[path = "build/shared.rs"]
mod shared;

/// Files of `csrc`.
const SOURCES: [&str; 32] = [
    "error",
    "storage",
    "memory",
    "op_info",
    "record",
    "infer",
    "eager",
    "device",
    "place",
    "graphs",
    "plan",
    "kernels",
    "register",
    "handle",
    "interop",
    "numerics",
    "capture",
    "state",
    "sparse",
    "recurrent",
    "team",
    "stand_in",
    "attention",
    "pool",
    "ambient",
    "warnings",
    "fork",
    "history",
    "agreement",
    "alias",
    "collectives",
    "process_group",
];

/// Whether this is a build of `cargo clippy`, which keeps what it builds apart and links nothing.
fn is_linting() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").unwrap_or_default();
    Path::new(&wrapper).file_stem().is_some_and(|name| name == "clippy-driver")
}

fn main() {
    ltc_build::rerun();
    println!("cargo:rerun-if-changed=csrc");
    if is_linting() || ltc_build::is_documenting() {
        return;
    }
    let torch = ltc_build::locate().unwrap_or_else(|why| ltc_build::fail(&why));
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .opt_level(2)
        .debug(false)
        .define("_GLIBCXX_USE_CXX11_ABI", if torch.cxx11_abi { "1" } else { "0" })
        .flag_if_supported("-Wno-unused-parameter")
        .flag_if_supported("-Wno-sign-compare")
        .flag_if_supported("-Wno-missing-field-initializers")
        // Of what is inlined from headers, where these are precompiled.
        .flag_if_supported("-Wno-maybe-uninitialized")
        // Declares what headers of libtorch name of CUDA's, which a machine without CUDA has not.
        .include("csrc/cuda_stub");
    for flag in ltc_build::sanitizer_flags() {
        build.flag(flag);
    }
    for dir in torch.includes() {
        build.flag("-isystem").flag(dir.display().to_string());
    }
    if env::var_os("CARGO_FEATURE_DIST").is_some() {
        // Apart, so that all else is the same without the feature.
        let mut dist = build.clone();
        // Declares what a header of libtorch names of gloo, whose headers the torch package leaves out.
        dist.include("csrc/gloo_stub").file("csrc/process_group_gloo.cpp");
        shared::compile(&dist, "ltc_torch_dist", &torch.version);
    }
    shared::compile(build.files(SOURCES.map(|s| format!("csrc/{s}.cpp"))), "ltc_torch", &torch.version);
    println!("cargo:rustc-link-search=native={}", torch.lib().display());
    println!("cargo:rustc-link-lib=dylib=torch_cpu");
    println!("cargo:rustc-link-lib=dylib=c10");
    // Tests find libtorch when they run.
    ltc_build::link_args();
}
