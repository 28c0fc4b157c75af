//! Ranks that end or fall silent: an error in the others, soon, with the operator's name.

mod ranks;

use std::{
    process::{Command, abort, id},
    thread,
    time::{Duration, Instant},
};

use ltc_dist::{Group, Op};
use ranks::{Ended, Place, TIMEOUT, run};
use tch::Tensor;

/// Ends this process as nothing else does: with no last word.
fn kill_myself() -> ! {
    let _ = Command::new("kill").args(["-KILL", &id().to_string()]).status();
    abort()
}

/// Runs `survivor` in rank 0 after rank 1 was killed, or while it is.
fn with_a_killed_rank(test: &str, survivor: impl FnOnce(&Group)) {
    let ended = run(test, |group| {
        let together = Place::Ltc.put(&Tensor::from_slice(&[1.0f32]));
        group.all_reduce(&together, Op::Sum).unwrap();
        assert_eq!(ranks::values(&together), [2.0]);
        group.barrier().unwrap();
        if group.rank() == 1 {
            kill_myself();
        }
        survivor(&group);
    });
    if let [first, second] = &ended[..] {
        let Ended { status, said } = first;
        assert!(status.success(), "rank 0: {status}\n{said}");
        assert!(!second.status.success(), "rank 1 was killed");
    }
}

/// Long before the group's timeout, whatever else the machine does.
fn says_at_once(operator: &str, what: impl FnOnce() -> String) {
    let start = Instant::now();
    let error = what();
    assert!(start.elapsed() < TIMEOUT / 2, "{:?}: {error}", start.elapsed());
    assert!(error.contains(operator), "{error}");
}

#[test]
fn a_killed_rank_is_an_error_on_the_cpu() {
    with_a_killed_rank("a_killed_rank_is_an_error_on_the_cpu", |group| {
        let x = Tensor::from_slice(&[1.0f32, 2.0]);
        says_at_once("c10d::allreduce_", || group.all_reduce(&x, Op::Sum).unwrap_err().to_string());
        says_at_once("c10d::_allgather_base_", || group.all_gather(&x).unwrap_err().to_string());
        says_at_once("c10d::barrier", || group.barrier().unwrap_err().to_string());
    });
}

#[test]
fn a_killed_rank_is_an_error_on_ltc() {
    with_a_killed_rank("a_killed_rank_is_an_error_on_ltc", |group| {
        let x = Place::Ltc.put(&Tensor::from_slice(&[1.0f32, 2.0]));
        let apart = &x + 1.0;
        says_at_once("ltc_dist::all_reduce", || {
            group.all_reduce(&x, Op::Sum).unwrap();
            ltc_torch::to_cpu(&x).unwrap_err().to_string()
        });
        assert_eq!(ranks::values(&(&apart * 2.0)), [4.0, 6.0], "what has no part in it goes on");
        let y = Place::Ltc.put(&Tensor::from_slice(&[1.0f32, 2.0]));
        says_at_once("ltc_dist::", || {
            group.broadcast(&y, 0).unwrap();
            ltc_torch::to_cpu(&y).unwrap_err().to_string()
        });
    });
}

#[test]
fn what_nobody_read_is_told_when_a_group_closes() {
    let ended = run("what_nobody_read_is_told_when_a_group_closes", |group| {
        if group.rank() == 1 {
            kill_myself();
        }
        let x = Place::Ltc.put(&Tensor::from_slice(&[1.0f32]));
        group.all_reduce(&x, Op::Sum).unwrap();
        says_at_once("ltc_dist::all_reduce", || group.close().unwrap_err().to_string());
    });
    if let [first, _] = &ended[..] {
        assert!(first.status.success(), "rank 0: {}\n{}", first.status, first.said);
    }
}

#[test]
fn a_silent_rank_is_an_error_after_the_timeout_and_a_new_group_works() {
    ranks::two_ranks("a_silent_rank_is_an_error_after_the_timeout_and_a_new_group_works", |world| {
        let brief = Group::gloo(world.store(), world.rank(), 2, Duration::from_secs(1)).unwrap();
        if world.rank() == 0 {
            let start = Instant::now();
            let error = brief.all_reduce(&Tensor::from_slice(&[1.0f32]), Op::Sum).unwrap_err().to_string();
            assert!(error.contains("c10d::allreduce_"), "{error}");
            assert!((1..TIMEOUT.as_secs() / 2).contains(&start.elapsed().as_secs()), "{:?}: {error}", start.elapsed());
        } else {
            thread::park_timeout(Duration::from_millis(1500));
        }
        drop(brief);
        let again = Group::gloo(world.store(), world.rank(), 2, TIMEOUT).unwrap();
        for place in ranks::PLACES {
            let x = place.put(&Tensor::from_slice(&[1.0f32]));
            again.all_reduce(&x, Op::Sum).unwrap();
            assert_eq!(ranks::values(&x), [2.0]);
        }
    });
}
