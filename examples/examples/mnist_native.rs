//! Trains a small convolutional network on handwritten digits with native lazy tensors: no `tch`, and with
//! `--no-default-features` no libtorch at all.
//!
//! `cargo run --release --example mnist_native [--no-default-features] [-- --data DIR]`. Without a folder of MNIST
//! files the digits are drawn.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

#[path = "../../ltc-torch/examples/mnist/data.rs"]
mod data;
#[path = "../../ltc-torch/examples/mnist/digits.rs"]
mod digits;

use std::{path::PathBuf, time::Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use data::{Dataset, SIDE};
use ltc_core::{
    Config, Device, Error, LazyTensor, Session,
    nn::{Conv2d, Conv2dConfig, Linear, Optimizer, Sgd, SgdConfig, Vars},
    no_grad,
    tensor::Reduction,
};

/// Train a convolutional network on handwritten digits, lazily and natively.
#[derive(Parser, Debug)]
struct Args {
    /// Folder with MNIST files (IDX, gzip or not); digits are drawn when it is missing.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Passes over the training images.
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Images per step.
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// How many digits to draw for training when there is no folder; a quarter as many for testing.
    #[arg(long, default_value_t = 1000)]
    drawn: usize,
    /// Learning rate of SGD with momentum.
    #[arg(long, default_value_t = 0.05)]
    rate: f64,
    /// Seed of weights and drawn digits.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

struct Net {
    first: Conv2d,
    second: Conv2d,
    hidden: Linear,
    output: Linear,
}

impl Net {
    fn new(vars: &Vars) -> Result<Net, Error> {
        let config = Conv2dConfig { padding: 1, ..Conv2dConfig::default() };
        Ok(Net {
            first: Conv2d::new(&vars.at("first"), 1, 8, 3, config)?,
            second: Conv2d::new(&vars.at("second"), 8, 16, 3, config)?,
            hidden: Linear::new(&vars.at("hidden"), 16 * 49, 64)?,
            output: Linear::new(&vars.at("output"), 64, 10)?,
        })
    }

    fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        let x = self.first.forward(x)?.relu()?.max_pool2d([2, 2])?;
        let x = self.second.forward(&x)?.relu()?.max_pool2d([2, 2])?;
        self.output.forward(&self.hidden.forward(&x.flatten(1, -1)?)?.relu()?)
    }
}

/// Images and labels from `start` on.
fn batch(device: &Device, set: &Dataset, start: usize, count: usize) -> Result<(LazyTensor, LazyTensor), Error> {
    let (count, side, pixels) = (count.min(set.len() - start), SIDE as i64, SIDE * SIDE);
    let images = &set.images[start * pixels..(start + count) * pixels];
    let labels: Vec<i64> = set.labels[start..start + count].iter().map(|&l| l.into()).collect();
    Ok((
        LazyTensor::from_slice(device, images, &[count as i64, 1, side, side])?,
        LazyTensor::from_slice(device, &labels, &[count as i64])?,
    ))
}

/// Share of images whose digit is recognised.
fn accuracy(device: &Device, net: &Net, set: &Dataset, size: usize) -> Result<f64, Error> {
    let _off = no_grad();
    let mut right = 0.0;
    for start in (0..set.len()).step_by(size) {
        let (x, y) = batch(device, set, start, size)?;
        let guess = net.forward(&x)?.max_dim(1)?.1;
        right += guess.eq(&y)?.sum()?.item()?;
    }
    Ok(right / set.len() as f64)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (train, test) = match &args.data {
        Some(folder) => data::load(folder)?,
        None => digits::generate(args.drawn + args.drawn / 4, args.seed).split(args.drawn),
    };
    let backend = ltc_examples::backend();
    println!("{} training images, {} test images, backend `{}`", train.len(), test.len(), backend.name());
    let session = Session::new(backend, Config::from_env()?)?;
    let device = session.device(0)?;
    device.manual_seed(args.seed);
    let vars = Vars::new(device);
    let net = Net::new(&vars)?;
    let mut optimizer = Sgd::new(&vars, args.rate, SgdConfig { momentum: 0.9, ..SgdConfig::default() });
    for epoch in 1..=args.epochs {
        let start = Instant::now();
        let mut last = 0.0;
        for at in (0..train.len() / args.batch).map(|i| i * args.batch) {
            let (x, y) = batch(device, &train, at, args.batch)?;
            let loss = net.forward(&x)?.cross_entropy(&y, Reduction::Mean)?;
            optimizer.backward_step(&loss)?;
            last = loss.item()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let right = accuracy(device, &net, &test, args.batch)?;
        println!("epoch {epoch}: loss {last:.4}, {:.1} % right, {seconds:.1} s", 100.0 * right);
    }
    let m = session.metrics();
    println!("{} programs compiled, {} run, {} operators recorded", m.compiles, m.executions, m.recorded);
    ensure!(accuracy(device, &net, &test, args.batch)? > 0.5, "the network did not learn");
    Ok(())
}
