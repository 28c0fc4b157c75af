//! The libtorch backend.
//!
//! A canonical graph is lowered to a linear [`Program`]: steps over slots, each an operator with its constant arguments
//! boxed in advance, with the last use of every value marked. The interpreter calls libtorch below autograd, frees values
//! at their last use, writes in place where it holds the only handle, publishes outputs as soon as they exist, and
//! contains failures: a failing step poisons what depends on it and nothing else.
//!
//! The name is that of LTC's TorchScript backend, whose place it takes (`torch/csrc/lazy/ts_backend`).

mod backend;
mod buffer;
mod interp;
mod lower;

pub use backend::TsBackend;
pub use buffer::TchBuffer;
pub use interp::RunStats;
pub use lower::Program;
