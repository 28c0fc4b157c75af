//! Small programs that fuse into one kernel, recorded and run each time, against eager libtorch.
//!
//! `cargo run --release -p ltc-torch --example kernels [-- PROGRAM [THREADS]]`: for each program and number of elements
//! the microseconds of an eager call and of a lazy one, and lazy / eager (below 1: faster). Each way has processes of
//! its own, in turn: libtorch keeps a team of threads for each thread that calls it, and a team that has nothing to do
//! spins for a while, beside the other's. The best of the processes' medians.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::{process::Command, time::Instant};

use tch::{Device, Kind, Tensor};

type Program = fn(&[Tensor]) -> Tensor;

fn programs() -> Vec<(&'static str, Program)> {
    vec![
        ("x*exp(x)+x*x", |t| &t[0] * t[0].exp() + &t[0] * &t[0]),
        ("gelu", |t| t[0].gelu("none")),
        ("silu", |t| t[0].silu()),
        ("softmax", |t| t[0].softmax(-1, Kind::Float)),
        ("layer norm", |t| t[0].layer_norm([t[0].size()[1]], Some(&t[1].get(0)), Some(&t[2].get(0)), 1e-5, false)),
        ("sum, norm", |t| {
            (&t[0] + &t[3]).layer_norm([t[0].size()[1]], Some(&t[1].get(0)), Some(&t[2].get(0)), 1e-5, false)
        }),
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
        ("strips", |t| {
            let strips = |i: usize| t[i].view([t[i].size()[0], -1, 16]);
            (strips(0) + strips(1) + strips(2) + strips(3)).sum_dim_intlist([1i64].as_slice(), false, Kind::Float)
        }),
        ("mse", |t| t[0].mse_loss(&t[1], tch::Reduction::Mean)),
    ]
}

/// Rows, columns, and how often each program runs.
const SIZES: [(i64, i64, usize); 4] = [(1, 16, 2000), (16, 64, 2000), (4096, 256, 60), (16384, 1024, 5)];
/// Processes of each way.
const ROUNDS: usize = 3;

/// Microseconds.
fn time(run: &dyn Fn() -> Tensor) -> f64 {
    let start = Instant::now();
    let y = run();
    let time = start.elapsed().as_secs_f64() * 1e6;
    drop(y);
    time
}

/// One way of one program: per size a line of its first call and the median of the later ones.
fn measure(lazily: bool, program: Program) -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    let _no_grad = tch::no_grad_guard();
    for (rows, columns, repetitions) in SIZES {
        let mut eager: Vec<Tensor> =
            (0..4).map(|_| Tensor::randn([rows, columns], (Kind::Float, Device::Cpu))).collect();
        eager.push(Tensor::randint(columns, [rows], (Kind::Int64, Device::Cpu)));
        let lazy: Vec<Tensor> = eager.iter().map(ltc_torch::to_lazy).collect::<Result<_, _>>()?;
        let on_cpu = || program(&eager);
        let recorded = || {
            let y = program(&lazy);
            ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing in this program can fail");
            y
        };
        let run: &dyn Fn() -> Tensor = if lazily { &recorded } else { &on_cpu };
        let first = time(run);
        if lazily {
            // What is warm by then becomes machine code.
            (0..16).for_each(|_| drop(recorded()));
            ltc_torch::finish_compiling();
            let close = ltc_torch::to_cpu(&recorded())?.allclose(&on_cpu(), 1e-4, 1e-5, true);
            assert!(close, "lazy and eager differ");
        }
        let start = Instant::now();
        while start.elapsed().as_millis() < 50 {
            time(run);
        }
        let mut times: Vec<f64> = (0..repetitions).map(|_| time(run)).collect();
        times.sort_by(f64::total_cmp);
        println!("{first} {}", times[repetitions / 2]);
    }
    Ok(())
}

/// Per size the first call and the median, in a process of its own.
fn in_a_process(way: &str, name: &str, threads: &str) -> anyhow::Result<Vec<(f64, f64)>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--measure", way, name])
        .env("OMP_NUM_THREADS", threads)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "{name}, {way}: {}", output.status);
    let line = |line: &str| {
        let (first, median) = line.split_once(' ')?;
        Some((first.parse().ok()?, median.parse().ok()?))
    };
    String::from_utf8(output.stdout)?
        .lines()
        .map(|l| line(l).ok_or_else(|| anyhow::anyhow!("what is `{l}`?")))
        .collect()
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, way, name] = &args[..]
        && flag == "--measure"
        && let Some((_, program)) = programs().into_iter().find(|(n, _)| n == name)
    {
        return Ok(measure(way == "lazy", program)?);
    }
    let threads = args.get(1).cloned().unwrap_or(std::thread::available_parallelism()?.to_string());
    println!("{:>14} {:>10} {:>12} {:>12} {:>8} {:>12}", "program", "elements", "eager", "lazy", "ratio", "first call");
    for (name, _) in programs().into_iter().filter(|(name, _)| args.first().is_none_or(|o| o == name)) {
        let mut best = [[(f64::INFINITY, f64::INFINITY); SIZES.len()]; 2];
        for _ in 0..ROUNDS {
            for (way, best) in ["eager", "lazy"].iter().zip(&mut best) {
                for (best, (first, median)) in best.iter_mut().zip(in_a_process(way, name, &threads)?) {
                    *best = (best.0.min(first), best.1.min(median));
                }
            }
        }
        for (i, (rows, columns, _)) in SIZES.iter().enumerate() {
            let [(_, eager), (first, lazy)] = best.map(|way| way[i]);
            println!(
                "{name:>14} {:>10} {eager:>12.1} {lazy:>12.1} {:>8.3} {first:>12.1}",
                rows * columns,
                lazy / eager
            );
        }
    }
    Ok(())
}
