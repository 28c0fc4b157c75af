//! The libtorch backend: runs canonical graphs with libtorch's own kernels.
//!
//! [`TsBackend`] implements the contract of `ltc-backend`. Compiling *lowers* a graph to a [`Program`]: a straight list
//! of steps over numbered slots, with every last use known. Executing is a loop over that list. It takes the place of
//! `torch/csrc/lazy/ts_backend`, which lowers nodes to TorchScript and runs the result; here no TorchScript interpreter
//! stands in between. The name is kept because a program still prints as TorchScript ([`Program::torchscript`]).
//!
//! | file | what |
//! |---|---|
//! | `backend.rs` | devices, uploads, downloads, compile |
//! | `buffer.rs` | what a device buffer is, and who may touch its memory |
//! | `memory.rs` | bytes in use |
//! | `schedule.rs` | last uses: pure, over the graph |
//! | `rewrite/` | whole-graph rewrites that pay with libtorch's kernels |
//! | `fuse/` | which operators become one kernel |
//! | `budget.rs` | steps ordered, and values made again, to fit a memory budget |
//! | `branches.rs`, `helper.rs` | steps that do not depend on each other, on two threads |
//! | `kernels/` | fused kernels: what they compute, and how fast |
//! | `program.rs`, `lower.rs` | what a program is; graph to program |
//! | `interp.rs` | the run loop |
//! | `profile.rs` | where its time goes |
//! | `text.rs`, `torchscript.rs` | the program, printed |
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
mod branches;
mod budget;
mod buffer;
mod cost;
mod fuse;
mod helper;
mod interp;
mod kernels;
mod lower;
mod memory;
mod profile;
mod program;
mod rewrite;
mod schedule;
mod text;
mod torchscript;

pub use backend::{Fusion, HeldThreads, TsBackend, TsConfig, TsExecutable};
pub use budget::MemoryPlan;
pub use buffer::TchBuffer;
pub use fuse::fusable_operators;
pub use interp::RunStats;
pub use kernels::{Jit, code_bytes, finish_compiling, instruction_set};
pub use profile::StepTime;
pub use program::Program;
pub use rewrite::rewrite_names;
