//! The chain `t = t * 1.01 + 0.5`, recorded and run each time, and replayed, against eager libtorch.
//!
//! `cargo run --release -p ltc-torch --example chain`: microseconds per chain, median of many, in one run; where this
//! machine's caches and memory are the limit, see the larger rows.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::time::Instant;

use tch::{Device, Kind, Tensor};

fn median(repetitions: usize, mut run: impl FnMut()) -> f64 {
    let one = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    let mut times: Vec<f64> = (0..repetitions).map(|_| one(&mut run)).collect();
    times.sort_by(f64::total_cmp);
    times[repetitions / 2]
}

fn main() -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    let _no_grad = tch::no_grad_guard();
    println!(
        "{:>12} {:>10} {:>12} {:>12} {:>8} {:>12}",
        "operators", "elements", "eager", "lazy", "ratio", "first call"
    );
    for (elements, repetitions) in [(16, 400), (1024, 400), (1 << 20, 40), (1 << 24, 3)] {
        for operators in [20, 100] {
            let eager = Tensor::randn([elements], (Kind::Float, Device::Cpu));
            let lazy = ltc_torch::to_lazy(&eager)?;
            let chain = |t: &Tensor| (0..operators / 2).fold(t.shallow_clone(), |y, _| y * 1.01 + 0.5);
            let run = || {
                let y = chain(&lazy);
                ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing in this program can fail");
                y
            };
            let start = Instant::now();
            let y = run();
            let first = start.elapsed().as_secs_f64() * 1e6;
            assert!(ltc_torch::to_cpu(&y)?.equal(&chain(&eager)), "lazy and eager agree in every bit");
            drop(y);
            let on_cpu = median(repetitions, || drop(chain(&eager)));
            let recorded = median(repetitions, || drop(run()));
            let ratio = recorded / on_cpu;
            println!("{operators:>12} {elements:>10} {on_cpu:>12.1} {recorded:>12.1} {ratio:>8.3} {first:>12.1}");
        }
    }
    Ok(())
}
