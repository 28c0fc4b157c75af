//! The libtorch backend: runs canonical graphs with libtorch's own kernels.
//!
//! [`TsBackend`] implements the contract of `ltc-backend`. Compiling *lowers* a graph to a [`Program`]: a straight list
//! of steps over numbered slots, with every last use known. Executing is a loop over that list. It takes the place of
//! `torch/csrc/lazy/ts_backend`, which lowers nodes to TorchScript and runs the result; here no TorchScript interpreter
//! stands in between. The name is kept because a program still prints as TorchScript ([`Program::torchscript`]).
//!
//! | folder | what, in the order in which a graph goes through |
//! |---|---|
//! | `config.rs`, `target.rs` | how the backend is set up, and what of it holds at a place |
//! | `rewrite/` | whole-graph rewrites that pay with libtorch's kernels |
//! | `fusion/` | which operators become one kernel; last uses of values |
//! | `program/` | graph to program: lowering, for other sizes too; what it costs; how it prints |
//! | `exec/` | programs run: buffers, the run loop, kernels on libtorch's tensors |
//! | `host.rs` | what machine this is |
//! | `backend.rs` | devices, uploads, downloads, compile |
//!
//! What kernels compute, and how fast, is the crate `ltc-kernels`.
//!
//! An operator outside a kernel is a boxed call through the dispatcher, prepared once per graph node
//! ([`ltc_torch_sys::Plan`]) and run below autograd on the executor thread.
//!
//! # What writes where
//! Graphs are functional: a written argument yields a new value. A step writes in place when its operand's last use is
//! this one, nobody outside the program can see the value, and libtorch agrees that neither tensor nor storage has
//! another holder; otherwise it writes to a copy. Inputs qualify if they were donated.
#![deny(unsafe_code)]

mod backend;
mod config;
mod exec;
mod fusion;
mod host;
mod program;
mod rewrite;
mod target;

pub use backend::TsBackend;
pub use config::{Fusion, GpuConfig, TsConfig};
pub use exec::{HeldThreads, RunStats, StepTime, TchBuffer, TsExecutable};
pub use fusion::fusable_operators;
pub use ltc_kernels::{Jit, code_bytes, finish_compiling, instruction_set};
pub use ltc_torch_sys::Place;
pub use program::{MemoryPlan, Program};
pub use rewrite::rewrite_names;
