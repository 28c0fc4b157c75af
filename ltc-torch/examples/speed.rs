//! What recording costs, against eager libtorch, in one run.
//!
//! `cargo run --release -p ltc-torch --example speed`: microseconds per operator, best of many repetitions, tensors of
//! 16 elements; eager computes while recording only records.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::time::Instant;

use tch::{Device, Kind, Tensor};

const OPS: usize = 50;

type Program<'a> = &'a dyn Fn(&Tensor) -> Tensor;

fn best(repetitions: usize, mut run: impl FnMut() -> f64) -> f64 {
    (0..repetitions).map(|_| run()).fold(f64::MAX, f64::min)
}

fn main() -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    tch::set_num_threads(1);
    let _no_grad = tch::no_grad_guard();
    let eager = Tensor::randn([16], (Kind::Float, Device::Cpu));
    let lazy = ltc_torch::to_lazy(&eager)?;
    let chain = |t: &Tensor| (0..OPS / 2).fold(t.shallow_clone(), |y, _| y * 1.01 + 0.5);
    let add = |t: &Tensor| (0..OPS).fold(t.shallow_clone(), |y, _| y + t);
    let relu = |t: &Tensor| (0..OPS).fold(t.shallow_clone(), |y, _| y.relu());
    println!("{:<22}{:>10}{:>10}{:>10}{:>16}", "us per operator", "eager", "record", "ratio", "record and run");
    let programs: [(&str, Program<'_>); 3] = [("t * 1.01 + 0.5", &chain), ("t + t", &add), ("relu", &relu)];
    for (name, program) in programs {
        let time = |t: &Tensor, keep: &mut Vec<Tensor>| {
            let start = Instant::now();
            for _ in 0..20 {
                keep.push(program(t));
            }
            start.elapsed().as_secs_f64() * 1e6 / (20 * OPS) as f64
        };
        let on_cpu = best(200, || time(&eager, &mut Vec::new()));
        let recorded = best(200, || {
            let mut keep = Vec::new();
            let t = time(&lazy, &mut keep);
            drop(keep);
            t
        });
        let run = best(100, || {
            let start = Instant::now();
            for _ in 0..20 {
                let _y = program(&lazy);
                ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing in this program can fail");
            }
            start.elapsed().as_secs_f64() * 1e6 / (20 * OPS) as f64
        });
        println!("{name:<22}{on_cpu:>10.3}{recorded:>10.3}{:>10.2}{run:>16.3}", recorded / on_cpu);
    }
    Ok(())
}
