//! The harness finds planted mistakes, and finds none where there are none.

use ltc_tests::{
    run::agree,
    strategy,
    subject::{Faulty, Mistake},
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

/// How many of 300 random programs expose a mistake planted at their fifth step.
fn exposed(mistake: Mistake) -> usize {
    let mut runner = TestRunner::deterministic();
    let programs = strategy::programs(40);
    (0..300)
        .filter(|_| {
            let program = programs.new_tree(&mut runner).expect("a program").current();
            // The CPU's default generator is one per process.
            let _alone = ltc_tests::alone();
            agree(&program, &Faulty { mistake, at: 4 }).is_err()
        })
        .count()
}

#[test]
fn eager_agrees_with_itself() {
    assert_eq!(exposed(Mistake::None), 0);
}

#[test]
fn each_planted_mistake_is_found() {
    for mistake in [Mistake::Value, Mistake::Stride, Mistake::Dtype, Mistake::LostAlias, Mistake::Skipped] {
        let found = exposed(mistake);
        assert!(found >= 3, "{mistake:?} was found in {found} of 300 programs");
    }
}

#[test]
fn a_found_mistake_is_shrunk_to_a_short_program() {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        rng_seed: ltc_tests::seed(),
        cases: 500,
        ..Config::default()
    });
    let result = runner.run(&strategy::programs(40), |program| {
        let _alone = ltc_tests::alone();
        agree(&program, &Faulty { mistake: Mistake::Dtype, at: 2 }).map_err(|d| TestCaseError::fail(d.to_string()))
    });
    match result {
        Err(proptest::test_runner::TestError::Fail(_, program)) => assert!(program.len() <= 6, "{program:?}"),
        other => panic!("the mistake was not found: {other:?}"),
    }
}
