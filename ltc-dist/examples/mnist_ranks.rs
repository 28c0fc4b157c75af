//! Trains a LeNet-class network on MNIST in several processes on `ltc`, each with its share of every batch.
//!
//! `cargo build --release -p ltc-dist --example mnist_ranks`, then
//! `torchrun --no-python --nproc-per-node 2 target/release/examples/mnist_ranks [--data DIR]`. By hand, a process for
//! each rank: `RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 target/release/examples/mnist_ranks`, and
//! the same with `RANK=1`. Without a folder of MNIST files the digits are drawn.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

#[path = "../../ltc-torch/examples/mnist/data.rs"]
mod data;
#[path = "../../ltc-torch/examples/mnist/digits.rs"]
mod digits;

use std::{path::PathBuf, time::Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use data::{Dataset, SIDE};
use ltc_dist::{Group, Op, Parameters, average_gradients, broadcast_parameters};
use ltc_torch::to_lazy;
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, OptimizerConfig},
};

/// Train a convolutional network on handwritten digits, in as many processes as are started.
#[derive(Parser, Debug)]
struct Args {
    /// Folder with MNIST files (IDX, gzip or not); digits are drawn when it is missing.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Passes over the training images.
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Images per step, of all processes together.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// How many digits to draw for training when there is no folder; a quarter as many for testing.
    #[arg(long, default_value_t = 4000)]
    drawn: usize,
    /// Learning rate of SGD with momentum.
    #[arg(long, default_value_t = 0.02)]
    rate: f64,
    /// Seed of order and drawn digits.
    #[arg(long, default_value_t = 7)]
    seed: u64,
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
        .add(nn::linear(p / "fc2", 120, 10, Default::default()))
}

/// Images and labels of a data set, on `ltc`.
fn on_ltc(d: &Dataset) -> Result<(Tensor, Tensor)> {
    let side = SIDE as i64;
    let images = Tensor::from_slice(&d.images).view([-1, 1, side, side]);
    let labels = Tensor::from_slice(&d.labels).to_kind(Kind::Int64);
    Ok((to_lazy(&images)?, to_lazy(&labels)?))
}

/// The share of right answers, each rank asking about every so many-th image.
fn accuracy(net: &nn::SequentialT, (images, labels): &(Tensor, Tensor), group: &Group) -> Result<f64> {
    let _no_grad = tch::no_grad_guard();
    let (rank, ranks) = (group.rank() as i64, group.size() as i64);
    let (images, labels) = (images.slice(0, rank, None, ranks), labels.slice(0, rank, None, ranks));
    let right = net.forward_t(&images, false).argmax(-1, false).eq_tensor(&labels).to_kind(Kind::Double);
    // How many of how many: ranks may have asked about different numbers.
    let counts = Tensor::stack(&[right.sum(Kind::Double), right.ones_like().sum(Kind::Double)], 0);
    group.all_reduce(&counts, Op::Sum)?;
    Ok(counts.f_double_value(&[0])? / counts.f_double_value(&[1])?)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let group = Group::from_env()?;
    ltc_torch::init()?;
    let (train, test) = match &args.data {
        Some(folder) => data::load(folder)?,
        None => digits::generate(args.drawn + args.drawn / 4, args.seed).split(args.drawn),
    };
    let share = args.batch / group.size();
    ensure!(share > 0, "a batch of {} has no image for each of {} processes", args.batch, group.size());
    let batch = share * group.size();
    ensure!(train.len() >= batch, "{} training images do not fill a batch of {batch}", train.len());
    if group.rank() == 0 {
        println!("{} processes, {} training images, batches of {batch}", group.size(), train.len());
    }
    let (steps, count) = (train.len() / batch, train.len() as i64);
    let ((images, labels), test) = (on_ltc(&train)?, on_ltc(&test)?);

    let mut store = nn::VarStore::new(Device::Cpu);
    let net = lenet(&store.root());
    ltc_torch::lazify(&mut store)?;
    broadcast_parameters(&store, &group)?;
    let mut optimizer = nn::Sgd { momentum: 0.9, ..Default::default() }.build(&store, args.rate)?;
    // The same order in all ranks, each with its part of every batch.
    tch::manual_seed(args.seed as i64);
    for epoch in 1..=args.epochs {
        let start = Instant::now();
        let order = Tensor::randperm(count, (Kind::Int64, Device::Cpu));
        let mut losses = Vec::with_capacity(steps);
        for step in 0..steps {
            let at = to_lazy(&order.narrow(0, (step * batch + group.rank() * share) as i64, share as i64))?;
            let logits = net.forward_t(&images.index_select(0, &at), true);
            let loss = logits.cross_entropy_for_logits(&labels.index_select(0, &at));
            optimizer.zero_grad();
            loss.backward();
            average_gradients(&store, &group)?;
            optimizer.step();
            losses.push(loss.detach());
            ltc_torch::sync()?;
        }
        // The loss of all ranks' images, step by step.
        let losses = Tensor::stack(&losses, 0);
        group.all_reduce(&losses, Op::Average)?;
        let right = accuracy(&net, &test, &group)?;
        let (first, mean) = (losses.f_double_value(&[0])?, losses.f_mean(Kind::Double)?.f_double_value(&[])?);
        println!(
            "rank {} epoch {epoch}/{}: first loss {first:.9}, mean loss {mean:.9}, accuracy {:.2} %, {:.1} s",
            group.rank(),
            args.epochs,
            right * 100.0,
            start.elapsed().as_secs_f64()
        );
    }
    // What keeps losses equal: so are the weights, in every bit.
    for (name, weight) in store.named() {
        let all = group.all_gather(&weight)?;
        ensure!(all.f_eq_tensor(&all.get(0).unsqueeze(0))?.all().f_int64_value(&[])? == 1, "{name} differs in a rank");
    }
    group.close()?;
    Ok(())
}
