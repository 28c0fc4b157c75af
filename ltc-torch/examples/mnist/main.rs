//! Trains a LeNet-class network on MNIST, lazily and eagerly in the same run, and compares.
//!
//! `make mnist`, or `cargo run --release -p ltc-torch --example mnist -- --data DIR`. Without a folder of MNIST files
//! the digits are drawn. The network, its loss and its optimiser are plain `tch`; all that is lazy about the lazy run
//! is `ltc_torch::init`, `lazify`, and moving the batches.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

mod data;
mod digits;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Parser;
use data::{Dataset, SIDE};
use indicatif::{ProgressBar, ProgressStyle};
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, OptimizerConfig},
};

/// Train a convolutional network lazily and eagerly on handwritten digits.
#[derive(Parser, Debug)]
struct Args {
    /// Folder with MNIST files (IDX, gzip or not); digits are drawn when it is missing.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Passes over the training images.
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Images per step.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// How many digits to draw for training when there is no folder; a quarter as many for testing.
    #[arg(long, default_value_t = 8000)]
    drawn: usize,
    /// Learning rate of SGD with momentum.
    #[arg(long, default_value_t = 0.005)]
    rate: f64,
    /// Seed of weights, order and drawn digits.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Where a run happens.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Lazy,
    Eager,
}

impl Place {
    fn put(self, t: &Tensor) -> Result<Tensor> {
        Ok(match self {
            Place::Lazy => ltc_torch::to_lazy(t)?,
            Place::Eager => t.shallow_clone(),
        })
    }
}

fn lenet(p: &nn::Path<'_>) -> nn::SequentialT {
    let conv =
        |name: &str, i, o, padding| nn::conv2d(p / name, i, o, 5, nn::ConvConfig { padding, ..Default::default() });
    nn::seq_t()
        .add(conv("conv1", 1, 8, 2))
        .add_fn(|x| x.max_pool2d_default(2).relu())
        .add(conv("conv2", 8, 16, 0))
        .add_fn(|x| x.max_pool2d_default(2).relu().flatten(1, -1))
        .add(nn::linear(p / "fc1", 400, 120, Default::default()))
        .add_fn(|x| x.relu())
        .add(nn::linear(p / "fc2", 120, 84, Default::default()))
        .add_fn(|x| x.relu())
        .add(nn::linear(p / "fc3", 84, 10, Default::default()))
}

struct Tensors {
    images: Tensor,
    labels: Tensor,
}

impl Tensors {
    fn new(d: &Dataset) -> Self {
        let side = SIDE as i64;
        Tensors {
            images: Tensor::from_slice(&d.images).view([-1, 1, side, side]),
            labels: Tensor::from_slice(&d.labels).to_kind(Kind::Int64),
        }
    }
}

/// What a run leaves behind.
struct Outcome {
    losses: Vec<f64>,
    accuracy: f64,
    steps: usize,
    /// The first step, with everything that happens once: in libtorch, and in ours.
    first: Duration,
    /// Per step, in blocks of [`BLOCK`] steps.
    blocks: Vec<Duration>,
}

/// Steps timed together: the device is waited for at their end only, so that it works while the next are recorded.
const BLOCK: usize = 25;

impl Outcome {
    /// Median time of a step.
    fn step_time(&self) -> Duration {
        let mut blocks = self.blocks.clone();
        blocks.sort();
        blocks.get(blocks.len() / 2).copied().unwrap_or(self.first)
    }
}

fn accuracy(net: &nn::SequentialT, test: &Tensors, place: Place) -> Result<f64> {
    let _no_grad = tch::no_grad_guard();
    let (mut right, n) = (0.0, test.labels.size()[0]);
    for from in (0..n).step_by(500) {
        let len = 500.min(n - from);
        let images = place.put(&test.images.narrow(0, from, len))?;
        let labels = place.put(&test.labels.narrow(0, from, len))?;
        let hits = net.forward_t(&images, false).argmax(-1, false).eq_tensor(&labels).sum(Kind::Float);
        right += hits.f_double_value(&[])?;
    }
    Ok(right / n as f64)
}

/// What libtorch does once in a process (threads, the convolutions' own code) would otherwise be part of the first step
/// of whoever comes first.
fn warm_up(args: &Args, train: &Tensors) -> Result<()> {
    let net = lenet(&nn::VarStore::new(Device::Cpu).root());
    let len = (args.batch as i64).min(train.labels.size()[0]);
    let (images, labels) = (train.images.narrow(0, 0, len), train.labels.narrow(0, 0, len));
    Ok(net.forward_t(&images, true).cross_entropy_for_logits(&labels).f_backward()?)
}

fn train(args: &Args, train: &Tensors, test: &Tensors, place: Place) -> Result<Outcome> {
    tch::manual_seed(args.seed as i64);
    let mut vs = nn::VarStore::new(Device::Cpu);
    let net = lenet(&vs.root());
    if place == Place::Lazy {
        ltc_torch::lazify(&mut vs)?;
    }
    let mut opt = nn::Sgd { momentum: 0.9, dampening: 0.0, wd: 0.0, nesterov: false }.build(&vs, args.rate)?;
    let (all_images, all_labels) = (place.put(&train.images)?, place.put(&train.labels)?);
    let (n, batch) = (train.labels.size()[0], args.batch as i64);
    let steps = (n / batch).max(1) as usize;
    let mut out = Outcome { losses: Vec::new(), accuracy: 0.0, steps: 0, first: Duration::ZERO, blocks: Vec::new() };
    let title = if place == Place::Lazy { "lazy " } else { "eager" };
    for epoch in 1..=args.epochs {
        let order = Tensor::randperm(n, (Kind::Int64, Device::Cpu));
        let bar = ProgressBar::new(steps as u64).with_style(
            ProgressStyle::with_template("{prefix} {bar:32} {pos:>4}/{len} {msg}").context("a valid template")?,
        );
        bar.set_prefix(format!("{title} epoch {epoch}/{}", args.epochs));
        opt.set_lr(args.rate / epoch as f64);
        let mut losses = Vec::with_capacity(steps);
        let mut start = Instant::now();
        for step in 0..steps as i64 {
            let at = place.put(&order.narrow(0, step * batch, batch.min(n)))?;
            let (images, labels) = (all_images.index_select(0, &at), all_labels.index_select(0, &at));
            let loss = net.forward_t(&images, true).cross_entropy_for_logits(&labels);
            opt.backward_step(&loss);
            losses.push(loss.detach());
            if place == Place::Lazy {
                ltc_torch::sync()?;
            }
            bar.inc(1);
            let (done, timed) = (step as usize + 1, out.steps > 0 || step > 0);
            if done % BLOCK == 0 || !timed {
                if place == Place::Lazy {
                    ltc_torch::wait()?;
                }
                match () {
                    () if !timed => out.first = start.elapsed(),
                    // The first block is one step short.
                    () => {
                        out.blocks.push(start.elapsed() / (BLOCK - usize::from(done == BLOCK && out.steps == 0)) as u32)
                    }
                }
                start = Instant::now();
            }
        }
        // The losses are read at the end of the epoch: until then the device works while the next steps are recorded.
        let losses: Vec<f64> = losses.iter().map(|l| l.f_double_value(&[])).collect::<Result<_, _>>()?;
        out.steps += steps;
        out.accuracy = accuracy(&net, test, place)?;
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        bar.finish_with_message(format!("loss {mean:.4}  accuracy {:.2} %", out.accuracy * 100.0));
        if bar.is_hidden() {
            println!("{title} epoch {epoch}/{}: loss {mean:.4}, accuracy {:.2} %", args.epochs, out.accuracy * 100.0);
        }
        out.losses.extend(losses);
    }
    Ok(out)
}

fn main() -> Result<()> {
    let args = Args::parse();
    ltc_torch::init()?;
    let (train_data, test_data) = match &args.data {
        Some(folder) => data::load(folder)?,
        None => {
            println!("no --data folder: drawing {} digits", args.drawn);
            digits::generate(args.drawn + args.drawn / 4, args.seed).split(args.drawn)
        }
    };
    anyhow::ensure!(
        train_data.len() >= args.batch,
        "{} training images do not fill a batch of {}",
        train_data.len(),
        args.batch
    );
    println!("{} training images, {} test images, batches of {}", train_data.len(), test_data.len(), args.batch);
    let (train_data, test_data) = (Tensors::new(&train_data), Tensors::new(&test_data));
    warm_up(&args, &train_data)?;
    let lazy = train(&args, &train_data, &test_data, Place::Lazy)?;
    ltc_torch::wait()?;
    let (m, memory) = (ltc_torch::metrics()?, ltc_torch::memory(0)?);
    let eager = train(&args, &train_data, &test_data, Place::Eager)?;

    let apart = lazy.losses.iter().zip(&eager.losses).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let bitwise = lazy.losses.iter().zip(&eager.losses).all(|(a, b)| a.to_bits() == b.to_bits());
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let agree = if bitwise { "equal in every bit".to_owned() } else { format!("within {apart:.1e}") };
    println!();
    let rows = [
        ("steps", lazy.steps.to_string()),
        ("graphs compiled", m.compiles.to_string()),
        ("cache hits", m.cache_hits.to_string()),
        ("eager fallbacks", m.fallback_count().to_string()),
        ("peak memory in device buffers", format!("{:.1} MiB", memory.peak as f64 / 1048576.0)),
        ("first step, lazy / eager", format!("{:.1} ms / {:.1} ms", ms(lazy.first), ms(eager.first))),
        ("time per step, lazy", format!("{:.2} ms", ms(lazy.step_time()))),
        ("time per step, eager", format!("{:.2} ms", ms(eager.step_time()))),
        ("lazy / eager", format!("{:.2}", ms(lazy.step_time()) / ms(eager.step_time()))),
        ("test accuracy, lazy / eager", format!("{:.2} % / {:.2} %", lazy.accuracy * 100.0, eager.accuracy * 100.0)),
        ("losses of both, every step", agree),
    ];
    for (name, value) in rows {
        println!("{name:<32}{value:>24}");
    }
    for (op, why, n) in &m.fallbacks {
        println!("fell back: {op} {n}x ({})", why.as_str());
    }
    Ok(())
}
