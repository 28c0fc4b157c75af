//! The model of `docs/scale.md` beside a simulation of each message: `cargo test -p ltc-core --test many_ranks paper
//! -- --nocapture` prints the table there.
#![expect(clippy::print_stdout, reason = "a table for docs/scale.md")]

use std::sync::Arc;

use crate::{
    PATIENCE, WAY,
    engine::Engine,
    model::{MIB, NETWORKS, Network, TRAININGS, Training, Wait},
    rank::{Rank, Way},
    run,
};

/// Records a step; a rank's clock when it is done.
fn step(rank: &Rank, training: &Training, size: f64, wait: Wait) -> Result<f64, String> {
    let mut x = rank.compute("sim::compute", &[&rank.upload(1)?], training.forward);
    let mut sums = Vec::new();
    for (bucket, bytes) in training.buckets(size).into_iter().enumerate() {
        x = rank.compute("sim::compute", &[&x], training.backward * bytes / training.gradients);
        let begun = rank.collective("sim::begin", &x, bucket as i64, bytes)?;
        match wait {
            Wait::AtOnce => sums.push(rank.compute("sim::finish", &[&begun], 0.0)),
            Wait::Overlapped => sums.push(begun),
        }
    }
    for sum in &mut sums {
        if wait == Wait::Overlapped {
            *sum = rank.compute("sim::finish", &[sum], 0.0);
        }
        rank.check(sum, rank.engine.ranks() as i64, || "a sum".into())?;
    }
    Ok(rank.clock())
}

/// Seconds of a step; computing and messages take up to this part longer, by chance.
fn simulated(training: &Training, ranks: usize, size: f64, network: Network, wait: Wait, uneven: f64) -> f64 {
    let engine = Arc::new(Engine::new(ranks, network, uneven));
    let way = Way { dawdles: false, uneven, ..WAY };
    let ends = run(&engine, way, PATIENCE, |rank| step(rank, training, size, wait));
    let ends = ends.and_then(|ends| ends.into_iter().collect::<Result<Vec<f64>, _>>());
    ends.unwrap_or_else(|error| panic!("{error}")).into_iter().fold(0.0, f64::max)
}

#[test]
fn a_step_on_paper_takes_what_its_messages_take() {
    for (training, network) in TRAININGS.iter().zip(&NETWORKS[..2]) {
        for (ranks, size) in [(2, 5.0), (7, 100.0), (64, 25.0)] {
            for wait in [Wait::AtOnce, Wait::Overlapped] {
                let model = training.step(ranks, size * MIB, network, wait);
                let counted = simulated(training, ranks, size * MIB, *network, wait, 0.0);
                let of = format!("{}, {}, {ranks} ranks, {wait:?}", training.name, network.name);
                assert!((counted / model - 1.0).abs() < 1e-9, "{of}: {counted} s, on paper {model} s");
            }
        }
    }
}

#[test]
fn a_step_on_paper_is_near_one_of_uneven_ranks() {
    let (training, size) = (TRAININGS[1], 25.0 * MIB);
    println!("\n| ranks | at once, on paper | counted | overlapped, on paper | counted |\n|-:|-:|-:|-:|-:|");
    for ranks in (1..=6).map(|power| 1 << power) {
        let cells = [Wait::AtOnce, Wait::Overlapped].map(|wait| {
            let model = training.step(ranks, size, &NETWORKS[1], wait);
            let counted = simulated(&training, ranks, size, NETWORKS[1], wait, 0.1);
            assert!((1.0..1.2).contains(&(counted / model)), "{ranks} ranks, {wait:?}: {counted} s, {model} s");
            format!("{:.1} | {:.1}", 1e3 * model, 1e3 * counted)
        });
        println!("| {ranks} | {} |", cells.join(" | "));
    }
}
