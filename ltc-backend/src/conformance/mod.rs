//! The tests every backend has to pass, instantiated with one line in a test file of the backend:
//!
//! ```
//! ltc_backend::conformance!(ltc_backend::ReferenceBackend);
//! ```
//!
//! What a backend does not do yet is an exception with a reason. An exception expires by itself: its test fails when
//! the check passes.
//!
//! ```text
//! ltc_backend::conformance!(MyBackend::new(), except { draws_follow_generator_states: "no random operators yet" });
//! ```

pub mod checks;
mod integers;
mod rig;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Backend;

/// A `#[test]` for each check of [`checks`], on a backend that the expression makes anew for each.
#[macro_export]
macro_rules! conformance {
    ($backend:expr) => {
        $crate::conformance!($backend, except {});
    };
    ($backend:expr, except { $($name:ident: $reason:literal),* $(,)? }) => {
        $crate::conformance_tests!(
            $backend,
            [$((stringify!($name), $reason)),*],
            uploads_come_back,
            wrong_uploads_are_refused,
            foreign_buffers_are_refused,
            wrong_input_counts_fail_the_outputs,
            unknown_operators_are_refused_when_compiled,
            every_output_is_told_once,
            numbers_come_with_each_run,
            results_have_the_recorded_layouts,
            inputs_somebody_holds_are_never_written,
            donated_inputs_give_the_same_results,
            failures_poison_only_what_depends_on_them,
            views_read_what_they_show,
            views_write_what_they_show,
            parts_show_what_views_show,
            draws_follow_generator_states,
            programs_are_compiled_on_any_thread,
            pointwise_operators_compute_their_expressions,
            large_integers_are_computed_exactly,
            large_integers_are_reduced_exactly,
            large_integers_are_moved_whole,
        );
    };
}

/// See [`conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr, $except:expr, $($check:ident,)*) => {
        $(
            #[test]
            fn $check() {
                let exceptions: &[(&str, &str)] = &$except;
                let check = $crate::conformance::checks::$check;
                $crate::conformance::run(&$backend, stringify!($check), exceptions, check);
            }
        )*
    };
}

/// Runs one check; an exception must fail.
#[doc(hidden)]
pub fn run(backend: &dyn Backend, name: &str, exceptions: &[(&str, &str)], check: fn(&dyn Backend)) {
    let outcome = catch_unwind(AssertUnwindSafe(|| check(backend)));
    match (exceptions.iter().find(|(n, _)| *n == name), outcome) {
        (None, Err(panic)) => resume_unwind(panic),
        (Some((_, reason)), Ok(())) => {
            panic!("{name} passes: its exception (\"{reason}\") has expired, take it out")
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReferenceBackend, testing::RecordingBackend};

    conformance!(ReferenceBackend);

    #[test]
    fn a_backend_that_computes_nothing_does_not_pass() {
        let backend = RecordingBackend::default();
        for check in [checks::uploads_come_back, checks::numbers_come_with_each_run, checks::views_read_what_they_show]
        {
            assert!(catch_unwind(AssertUnwindSafe(|| check(&backend))).is_err());
        }
    }

    #[test]
    fn an_exception_expires() {
        let passes = [("numbers_come_with_each_run", "not yet")];
        let expired = catch_unwind(|| run(&ReferenceBackend, passes[0].0, &passes, checks::numbers_come_with_each_run));
        assert!(expired.is_err());
        let recording = RecordingBackend::default();
        run(&recording, passes[0].0, &passes, checks::numbers_come_with_each_run);
    }
}
