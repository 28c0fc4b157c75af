//! Small programs that fuse into one kernel, recorded and run each time, against eager libtorch.
//!
//! `cargo run --release -p ltc-torch --example kernels`: for each program and number of elements the time of an eager
//! call, and lazy time / eager time (below 1: faster); both are measured in turn, medians.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::time::Instant;

use tch::{Device, Kind, Tensor};

type Program = fn(&[Tensor]) -> Tensor;

fn programs() -> Vec<(&'static str, Program)> {
    vec![
        ("x*exp(x)+x*x", |t| &t[0] * t[0].exp() + &t[0] * &t[0]),
        ("gelu", |t| t[0].gelu("none")),
        ("silu", |t| t[0].silu()),
        ("softmax", |t| t[0].softmax(-1, Kind::Float)),
        ("layer norm", |t| t[0].layer_norm([t[0].size()[1]], Some(&t[1].get(0)), Some(&t[2].get(0)), 1e-5, false)),
        ("RMS norm", |t| &t[0] * ((&t[0] * &t[0]).mean_dim(-1, true, Kind::Float) + 1e-5).rsqrt() * t[1].get(0)),
        ("cross-entropy", |t| t[0].cross_entropy_loss(&t[4], None::<&Tensor>, tch::Reduction::Mean, -100, 0.0)),
        ("rotary", |t| {
            let half = t[0].size()[1] / 2;
            let turned = Tensor::cat(&[-t[0].narrow(1, half, half), t[0].narrow(1, 0, half)], 1);
            &t[0] * &t[1] + turned * &t[2]
        }),
        ("Adam", |t| {
            let m = &t[1] * 0.9 + &t[0] * 0.1;
            let v = t[3].abs() * 0.999 + &t[0] * &t[0] * 0.001;
            &t[2] - &m / (v.sqrt() + 1e-8) * 1e-3
        }),
        ("sum", |t| t[0].sum(Kind::Float)),
        ("mse", |t| t[0].mse_loss(&t[1], tch::Reduction::Mean)),
    ]
}

fn main() -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    let _no_grad = tch::no_grad_guard();
    let only = std::env::args().nth(1);
    println!("{:>14} {:>10} {:>12} {:>12} {:>8} {:>12}", "program", "elements", "eager", "lazy", "ratio", "first call");
    for (name, program) in programs().into_iter().filter(|(name, _)| only.as_deref().is_none_or(|o| o == *name)) {
        for (rows, columns, repetitions) in [(1, 16, 400), (16, 64, 400), (4096, 256, 30), (16384, 1024, 5)] {
            let mut eager: Vec<Tensor> =
                (0..4).map(|_| Tensor::randn([rows, columns], (Kind::Float, Device::Cpu))).collect();
            eager.push(Tensor::randint(columns, [rows], (Kind::Int64, Device::Cpu)));
            let lazy: Vec<Tensor> = eager.iter().map(ltc_torch::to_lazy).collect::<Result<_, _>>()?;
            let time = |run: &dyn Fn() -> Tensor| {
                let start = Instant::now();
                let y = run();
                let time = start.elapsed().as_secs_f64() * 1e6;
                drop(y);
                time
            };
            let on_cpu = || program(&eager);
            let recorded = || {
                let y = program(&lazy);
                ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing in this program can fail");
                y
            };
            time(&on_cpu);
            let first = time(&recorded);
            let close = ltc_torch::to_cpu(&recorded())?.allclose(&program(&eager), 1e-4, 1e-5, true);
            assert!(close, "{name}: lazy and eager differ");
            let (mut a, mut b): (Vec<f64>, Vec<f64>) =
                (0..repetitions).map(|_| (time(&on_cpu), time(&recorded))).unzip();
            a.sort_by(f64::total_cmp);
            b.sort_by(f64::total_cmp);
            let (a, b) = (a[repetitions / 2], b[repetitions / 2]);
            println!("{name:>14} {:>10} {a:>12.1} {b:>12.1} {:>8.3} {first:>12.1}", rows * columns, b / a);
        }
    }
    Ok(())
}
