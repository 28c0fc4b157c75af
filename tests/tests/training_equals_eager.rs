//! Training with libtorch's own layers and optimisers: losses and parameters bitwise equal to eager, and after the
//! second step one execution per step, nothing compiled, nothing fallen back, memory flat.

use ltc_tests::{
    compare::same_values,
    training::{check, conv, mlp},
};

#[test]
fn a_perceptron_with_sgd() {
    check(mlp, "sgd", |_, a, b| same_values(a, b));
}

#[test]
fn a_perceptron_with_adam() {
    check(mlp, "adam", |_, a, b| same_values(a, b));
}

#[test]
fn a_perceptron_with_rmsprop() {
    check(mlp, "rmsprop", |_, a, b| same_values(a, b));
}

#[test]
fn a_convnet_with_sgd() {
    check(conv, "sgd", |_, a, b| same_values(a, b));
}

#[test]
fn a_convnet_with_adam() {
    check(conv, "adam", |_, a, b| same_values(a, b));
}

#[test]
fn a_convnet_with_adamw() {
    check(conv, "adamw", |_, a, b| same_values(a, b));
}
