//! Random programs agree with eager libtorch in value, shape, dtype, strides, aliasing, and in what is an error.

use ltc_tests::{
    alone, cases,
    run::{agree, agree_with_gradients},
    seed, strategy,
    subject::Lazy,
};
use proptest::prelude::*;

fn check(program: &ltc_tests::program::Program) -> Result<(), TestCaseError> {
    // The CPU's default generator is one per process.
    let _alone = alone();
    agree(program, &Lazy::new()).map_err(|d| TestCaseError::fail(format!("{d}\n{program:?}")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(150),
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 4000,
        ..Default::default()
    })]

    #[test]
    fn over_all_operators(program in strategy::programs(30)) {
        check(&program)?;
    }

    #[test]
    fn over_views_and_writes(program in strategy::aliasing(30)) {
        check(&program)?;
    }

    #[test]
    fn over_gradients(program in strategy::differentiating(30)) {
        let _alone = alone();
        agree_with_gradients(&program, &Lazy::new()).map_err(|d| TestCaseError::fail(format!("{d}\n{program:?}")))?;
    }

    #[test]
    fn over_draws(program in strategy::drawing(24)) {
        check(&program)?;
    }
}
