//! Chains and formulas of pointwise operators, recorded and run each time and as replayed steps, against eager
//! libtorch.
//!
//! `cargo run --release -p ltc-torch --example chain`: microseconds, median of many, in one run, once kernels are
//! machine code (`LTC_JIT=0`: by loops); where this machine's caches and memory are the limit, see the larger rows.
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

fn chain(t: &Tensor, operators: usize) -> Tensor {
    (0..operators / 2).fold(t.shallow_clone(), |y, _| y * 1.01 + 0.5)
}

fn main() -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    let _no_grad = tch::no_grad_guard();
    println!(
        "{:>16} {:>10} {:>12} {:>12} {:>8} {:>12} {:>12} {:>10}",
        "what", "elements", "eager", "lazy", "ratio", "replayed", "first call", "compiled"
    );
    // Whether every bit must be eager's; kernels' own transcendental functions differ in the last places, and
    // libtorch's GELU for AVX-512 is up to 1.3e-6 off.
    type Formula = (&'static str, bool, fn(&Tensor) -> Tensor);
    let formulas: [Formula; 5] = [
        ("20 operators", true, |t| chain(t, 20)),
        ("100 operators", true, |t| chain(t, 100)),
        ("x*exp(x)+x*x", false, |x| x * x.exp() + x * x),
        ("gelu", false, |x| x.gelu("none")),
        ("silu", false, Tensor::silu),
    ];
    for (elements, repetitions) in [(16, 400), (1024, 400), (1 << 20, 40), (1 << 24, 3)] {
        for (name, exact, formula) in formulas {
            let eager = Tensor::randn([elements], (Kind::Float, Device::Cpu));
            let lazy = ltc_torch::to_lazy(&eager)?;
            let run = || {
                let y = formula(&lazy);
                ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing in this program can fail");
                y
            };
            let start = Instant::now();
            let y = run();
            let first = start.elapsed().as_secs_f64() * 1e6;
            let same = |y: &Tensor| -> Result<bool, ltc_torch::Error> {
                let (y, expected) = (ltc_torch::to_cpu(y)?, formula(&eager));
                Ok(if exact { y.equal(&expected) } else { y.allclose(&expected, 1e-5, 3e-6, false) })
            };
            assert!(same(&y)?, "lazy and eager agree");
            // What is warm by now becomes machine code.
            (0..16).for_each(|_| drop(run()));
            ltc_torch::finish_compiling();
            let compiled = ltc_torch::run_stats()?.compiled;
            assert!(same(&run())?, "lazy and eager agree");
            let compiled = if ltc_torch::run_stats()?.compiled > compiled { "yes" } else { "no" };
            let on_cpu = median(repetitions, || drop(formula(&eager)));
            let recorded = median(repetitions, || drop(run()));
            let ratio = recorded / on_cpu;
            let mut step = ltc_torch::compile_frozen(|x: &[Tensor]| vec![formula(&x[0])]);
            let mut replay = || -> Result<Tensor, ltc_torch::Error> {
                let y = step.call(std::slice::from_ref(&lazy), &[])?.remove(0);
                ltc_torch::wait()?;
                Ok(y)
            };
            for _ in 0..20 {
                assert!(same(&replay()?)?, "replayed and eager agree");
            }
            let replayed = median(repetitions, || drop(replay()));
            println!(
                "{name:>16} {elements:>10} {on_cpu:>12.1} {recorded:>12.1} {ratio:>8.3} {replayed:>12.1} {first:>12.1} \
                 {compiled:>10}"
            );
        }
    }
    Ok(())
}
