//! What bucket sizes and overlap give from 2 to 1,024 ranks, on paper: `cargo run -p ltc-core --example scale` prints
//! the tables of `docs/scale.md`.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

mod model;

use model::{MIB, NETWORKS, Network, TRAININGS, Training, Wait};

const SIZES: [f64; 4] = [1.0, 5.0, 25.0, 100.0];

fn table(training: &Training, network: &Network) {
    let (mbit, us) = (network.bandwidth * 8e-9, network.latency * 1e6);
    println!("\n**{}**, {mbit:.0} Gbit/s, {us:.0} us a message\n", network.name);
    println!("| ranks | at once: 1 | 5 | 25 | 100 MiB | overlapped: 1 | 5 | 25 | 100 MiB |");
    println!("|-{}|", "|-:".repeat(8));
    for ranks in (1..=10).map(|power| 1 << power) {
        let cells = [Wait::AtOnce, Wait::Overlapped].map(|wait| {
            let step = |mib: f64| 1e3 * training.step(ranks, mib * MIB, network, wait);
            SIZES.map(|mib| format!("{:.1}", step(mib))).join(" | ")
        });
        println!("| {ranks} | {} |", cells.join(" | "));
    }
}

fn main() {
    for training in &TRAININGS {
        let (megabytes, computing) = (training.gradients / 1e6, 1e3 * (training.forward + training.backward));
        println!("\n### {}: {megabytes:.0} MB of gradients, {computing:.1} ms to compute", training.name);
        NETWORKS.iter().for_each(|network| table(training, network));
    }
}
