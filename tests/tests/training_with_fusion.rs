//! Training with all fusion: kernels of ours run, and losses and parameters are eager's within rounding.

use ltc_tests::{
    subject::Lazy,
    training::{check, conv, mlp},
};
use ltc_torch::Fusion;
use tch::{Tensor, nn};

/// Rounding differs in the last places of transcendental functions; twelve steps of training spread that.
fn near(_name: &str, a: &Tensor, b: &Tensor) -> Result<(), String> {
    if a.allclose(b, 1e-4, 1e-5, false) { Ok(()) } else { Err(format!("{a} is not near {b}")) }
}

fn kernels() -> u64 {
    ltc_torch::run_stats().expect("the device is registered").kernels
}

#[test]
fn losses_and_parameters_are_near() {
    Lazy::with_fusion(Fusion::Full);
    type Model = fn(&nn::Path<'_>) -> nn::SequentialT;
    // The convolution's bias has a gradient of rounding and nothing else, which Adam would scale up: batch norm
    // follows.
    let runs: [(Model, &str); 5] = [(mlp, "sgd"), (mlp, "adam"), (conv, "sgd"), (mlp, "adamw"), (mlp, "rmsprop")];
    for (model, which) in runs {
        let before = kernels();
        check(model, which, near);
        assert!(kernels() - before > 12, "{which}: nothing was fused");
    }
}
