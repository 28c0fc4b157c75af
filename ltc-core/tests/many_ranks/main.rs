//! Up to 64 ranks as threads, each with a session of its own, over an engine of their own: the same collectives in the
//! same order, whatever else each rank does; and how near the model of `docs/scale.md` is to counting every message.

mod backend;
mod engine;
#[path = "../../examples/scale/model.rs"]
mod model;
mod paper;
mod rank;
mod script;

use std::{sync::Arc, thread, time::Duration};

use engine::Engine;
use ltc_core::Storage;
use model::Network;
use rank::{Rank, Token, Way, get, set};
use script::{BUCKETS, Deed, Script};

/// Nobody is as slow as this where nothing is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

const NO_NETWORK: Network = Network { name: "none", bandwidth: 1.0, latency: 0.0 };

const WAY: Way = Way { token: Token::One, liveness: true, dawdles: true, uneven: 0.0 };

/// What fails and the collective behind it are one program, however slow the machine is.
const UNTIMED: Way = Way { liveness: false, ..WAY };

/// Runs a script on every rank of an engine; how that ended for each, or who waited for whom.
fn run<T: Send>(
    engine: &Arc<Engine>,
    way: Way,
    patience: Duration,
    script: impl Fn(&Rank) -> Result<T, String> + Sync,
) -> Result<Vec<Result<T, String>>, String> {
    let of_rank = |number| {
        let rank = Rank::new(engine, number, way).inspect_err(|_| engine.leave(number))?;
        script(&rank)
    };
    thread::scope(|scope| {
        let of_rank = &of_rank;
        let ranks: Vec<_> = (0..engine.ranks()).map(|number| scope.spawn(move || of_rank(number))).collect();
        let watched = engine.watch(patience);
        let ends = ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect();
        watched.map(|()| ends)
    })
}

/// Has the ranks train, and compares what they issued with what they should have.
fn train(script: Script, way: Way, patience: Duration) -> Result<(), String> {
    let engine = Arc::new(Engine::new(script.ranks, NO_NETWORK, 0.0));
    let ends = run(&engine, way, patience, |rank| {
        script.run(rank)?;
        if way.token == Token::One {
            let count = rank.collectives()?;
            assert_eq!(count, script.labels().len() as i64, "collectives that rank {} ran", rank.number);
        }
        rank.device().sync().and_then(|()| rank.device().wait()).map_err(|e| e.to_string())
    })?;
    // A value that is wrong says more than that others left.
    let mut errors: Vec<String> = ends.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| !error.contains(", not "));
    errors.into_iter().next().map_or(Ok(()), Err)?;
    for (rank, issued) in engine.issued().into_iter().enumerate() {
        if issued != script.labels() {
            return Err(format!("rank {rank} issued {issued:?}"));
        }
    }
    Ok(())
}

fn script(ranks: usize, steps: usize, deed: Deed) -> Script {
    Script { ranks, steps, seed: 1, deed: (ranks / 2, deed) }
}

#[test]
fn sixty_four_ranks_agree_whatever_each_sends_reads_and_drops() {
    for seed in 1..=3 {
        let script = Script { seed, ..script(64, 8, Deed::DropsResults) };
        train(script, WAY, PATIENCE).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_token_per_call_is_found_out() {
    let way = Way { token: Token::PerCall, ..WAY };
    let error = train(script(8, 8, Deed::DropsResults), way, PATIENCE).expect_err("one rank drops collectives");
    assert!(error.contains(", not "), "a wrong sum: {error}");
}

#[test]
fn ranks_that_wait_for_each_other_are_told_of() {
    let way = Way { liveness: false, ..WAY };
    let error = train(script(8, 8, Deed::Nothing), way, Duration::from_secs(1)).expect_err("nobody sends");
    assert!(error.contains("waits for rank 3's word in step 3"), "{error}");
    assert!(error.contains("collectives issued, waits in ") && error.contains("for ranks ["), "{error}");
}

/// What ranks issued until a failure is what they should have, each once, and not more than so many.
fn issued_in_order(engine: &Engine, script: &Script, most: usize) {
    for (rank, issued) in engine.issued().into_iter().enumerate() {
        assert!(issued.len() <= most && script.labels().starts_with(&issued), "rank {rank} issued {issued:?}");
    }
}

#[test]
fn a_rank_that_ends_ends_all() {
    let script = script(64, 8, Deed::Ends(3));
    let gone = script.deed.0;
    let engine = Arc::new(Engine::new(script.ranks, NO_NETWORK, 0.0));
    let ends = run(&engine, WAY, PATIENCE, |rank| {
        let Err(error) = script.run(rank) else { return Ok(()) };
        let told = format!("rank {gone} left");
        assert!(error.contains("sim::all_reduce") && error.contains(&told), "rank {}: {error}", rank.number);
        // No other collective takes the place of the one that failed; what is no collective goes on.
        let issued = engine.issued()[rank.number].len();
        let x = rank.upload(7)?;
        let sum = rank.collective("sim::all_reduce", &x, -1, 0.0)?;
        let error = rank.read(&sum, || "a later sum".into()).expect_err("a later collective");
        assert!(error.contains(&told), "rank {}: {error}", rank.number);
        assert_eq!(engine.issued()[rank.number].len(), issued, "collectives of rank {}", rank.number);
        rank.check(&rank.compute("sim::scale", &[&x], 3.0), 21, || "what needs no other rank".into())?;
        Err(error)
    });
    let ends = ends.unwrap_or_else(|stuck| panic!("{stuck}"));
    let went_on: Vec<usize> = (0..script.ranks).filter(|&rank| ends[rank].is_ok()).collect();
    assert_eq!(went_on, [gone], "all others end with an error");
    issued_in_order(&engine, &script, 3 * (BUCKETS + 1) + 3);
}

#[test]
fn an_operator_that_fails_on_one_rank_ends_all() {
    for alone in [false, true] {
        let script = script(16, 3, Deed::Fails { step: 1, alone });
        let engine = Arc::new(Engine::new(script.ranks, NO_NETWORK, 0.0));
        let ends = run(&engine, UNTIMED, PATIENCE, |rank| script.run(rank)).unwrap_or_else(|stuck| panic!("{stuck}"));
        let failed = script.deed.0;
        for (rank, end) in ends.into_iter().enumerate() {
            let error = end.expect_err("no rank gets through");
            let told = if rank == failed { "sim::fail: ordered".to_owned() } else { format!("rank {failed} left") };
            assert!(error.contains(&told), "rank {rank}: {error}");
        }
        issued_in_order(&engine, &script, 2 * (BUCKETS + 1) + 1);
    }
}

#[test]
fn a_token_that_forgets_failures_is_found_out() {
    let way = Way { token: Token::Forgetful, ..UNTIMED };
    let deed = Deed::Fails { step: 1, alone: true };
    let error = train(script(8, 3, deed), way, PATIENCE).expect_err("a rank fell behind");
    assert!(error.contains(", not "), "a wrong sum: {error}");
}

#[test]
fn what_a_failure_gives_back_is_not_summed_again() {
    let engine = Arc::new(Engine::new(4, NO_NETWORK, 0.0));
    let ends = run(&engine, UNTIMED, PATIENCE, |rank| {
        let (device, sum) = (rank.device(), Storage::with_value(rank.upload(1)?));
        let add = |label| {
            let all = rank.collective("sim::all_reduce", &get(device, &sum), label, 0.0);
            all.map(|all| set(device, &sum, all))
        };
        add(0)?;
        // Between two sums in one storage: the first is what the storage held before the failure.
        let failed = (rank.number == 0).then(|| rank.compute("sim::fail", &[&get(device, &sum)], 0.0));
        add(1)?;
        device.sync().map_err(|e| e.to_string())?;
        add(2)?;
        rank.read(&get(device, &sum), || "the last sum".into()).map(|_| drop(failed))
    });
    for (rank, end) in ends.unwrap_or_else(|stuck| panic!("{stuck}")).into_iter().enumerate() {
        let told = if rank == 0 { "sim::fail: ordered" } else { "rank 0 left" };
        let error = end.expect_err("rank 0 has no third sum to give");
        assert!(error.contains(told), "rank {rank}: {error}");
    }
    let issued = engine.issued();
    assert_eq!(issued[0], [0, 1]);
    assert!(issued[1..].iter().all(|issued| *issued == [0, 1, 2]), "{issued:?}");
}
