//! Fused pointwise kernels: many operators, one pass over memory.
//!
//! A [`Body`] is what a kernel computes for one element: a list of values, each from earlier ones. A [`Kernel`] adds
//! where elements come from and go to. Tier 0 ([`tile`]) runs it at once, a block of elements at a time, each operator
//! a loop over the block that the compiler turned into vector instructions; the block's intermediate values stay in the
//! first-level cache.
//!
//! | file | what |
//! |---|---|
//! | `body.rs` | values, and the builder that shares equal ones |
//! | `space.rs` | the elements a kernel goes through, and how it reaches them in memory |
//! | `tile.rs` | tier 0 |
//! | `jit/` | tier 1: machine code, made in the background |
//! | `run.rs` | kernels run by it |
//! | `lanes.rs` | the loops of tier 0, one per operator and element type, for each instruction set |
//! | `launch.rs` | kernels on libtorch's tensors |
//! | `blocks.rs` | tier 0 over plain blocks, for other kernels |
//! | `fold.rs` | many elements become one |
//! | `nest.rs`, `rows.rs`, `pass.rs` | kernels that fold rows: their stages, and how they run |
//! | `pool.rs` | max pooling |
//! | `random.rs` | draws from libtorch's generator |
//! | `ops.rs`, `math.rs` | what the operators do to one element |
#![allow(unsafe_code, reason = "raw tensor memory and vector instructions; the contract is `Kernel::run`'s")]

mod blocks;
mod body;
mod fold;
mod jit;
mod lanes;
mod launch;
mod math;
mod nest;
mod ops;
mod pass;
mod pool;
mod random;
mod rows;
mod run;
mod space;
mod tile;

pub(crate) use body::{Body, Builder, Code, Lane, Val};
pub(crate) use jit::Paused;
pub use jit::{Jit, code_bytes, finish_compiling};
pub(crate) use lanes::has_loop;
pub use lanes::instruction_set;
pub(crate) use launch::{FusedKernel, run_bernoulli, run_pool};
pub(crate) use pool::MaxPool;
use random::bernoulli;
pub(crate) use rows::{RowKernel, RowSpace};
pub(crate) use space::{Access, Space};
pub(crate) use tile::{Kernel, Ran};
