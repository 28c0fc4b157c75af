//! Data parallelism for Rust programs that use [`tch`], over libtorch's own c10d: its TCP store and gloo.
//!
//! A program runs in several processes, its ranks. They form a [`Group`], whose collectives take tensors of the CPU and
//! of `ltc`. A training loop gains two calls: [`broadcast_parameters`] before it, and [`average_gradients`] between
//! `backward` and the optimiser's step.
//!
//! ```no_run
//! use ltc_dist::{Group, Op, average_gradients, broadcast_parameters};
//! use tch::{Device, Kind, Tensor, nn, nn::{Module, OptimizerConfig}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let group = Group::from_env()?; // of the processes that torchrun started, or you did
//! ltc_torch::init()?;
//! let mut store = nn::VarStore::new(Device::Cpu);
//! let layer = nn::linear(store.root(), 4, 2, Default::default());
//! ltc_torch::lazify(&mut store)?;
//! broadcast_parameters(&store, &group)?; // all ranks begin with those of rank 0
//! let mut optimizer = nn::Sgd::default().build(&store, 0.1)?;
//! for _ in 0..3 {
//!     let x = Tensor::randn([8, 4], (Kind::Float, Device::Cpu)); // each rank has its own
//!     let loss = layer.forward(&ltc_torch::to_lazy(&x)?).square().mean(Kind::Float);
//!     optimizer.zero_grad();
//!     loss.backward();
//!     average_gradients(&store, &group)?;
//!     optimizer.step();
//!     ltc_torch::sync()?;
//! }
//! group.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! `torchrun --no-python --nproc-per-node 2 PROGRAM` starts it in two processes. By hand, each process gets `RANK`,
//! `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`.
//!
//! # What runs when
//!
//! A collective of CPU tensors is done when its call returns. One of `ltc` tensors is recorded, as every operator is,
//! and runs with the program around it; what goes wrong in it is told by whoever reads or waits. All ranks call the
//! same collectives, with tensors of the same shapes and dtypes, in the same order. That order holds among collectives
//! of CPU tensors, and among those of `ltc` tensors, but not between the two.
//!
//! # Errors
//!
//! Wrong arguments are errors of the call, before anything is sent. A rank that ends is an error in all others: for CPU
//! tensors of the call they wait in, for `ltc` tensors of the next read, both with the operator's name. One that is
//! silent is an error after the group's timeout. After an error the group is of no more use; another one can be made.
#![forbid(unsafe_code)]

mod agreement;
mod arguments;
mod buckets;
mod error;
mod gradients;
mod group;
mod launch;
mod parameters;
mod store;

pub use error::Error;
pub use gradients::{BUCKET_BYTES, average_gradients, average_gradients_in, broadcast_parameters};
pub use group::Group;
pub use ltc_torch_sys::{ReduceOp as Op, TorchError};
pub use parameters::Parameters;
pub use store::{DEFAULT_TIMEOUT, Store};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
