//! Programs, run.
//!
//! | file | what |
//! |---|---|
//! | `executable.rs` | a compiled program as the contract has it |
//! | `run.rs` | one execution |
//! | `interp.rs` | the run loop |
//! | `parallel_branches.rs`, `worker.rs` | steps that do not depend on each other, on two threads |
//! | `launch.rs` | kernels on libtorch's tensors |
//! | `fence.rs` | points in the work of a place that is not the CPU |
//! | `gpu.rs` | code of kernels on a GPU, compiled in the background |
//! | `graphs.rs`, `taken_down.rs`, `launch_graph.rs` | programs on a GPU that are one launch |
//! | `buffer.rs` | what a device buffer is, and who may touch its memory |
//! | `memory_meter.rs` | bytes in use |
//! | `profile.rs` | where time goes |

pub(crate) mod buffer;
mod executable;
mod fence;
mod gpu;
mod graphs;
mod interp;
mod launch;
mod launch_graph;
mod memory_meter;
mod parallel_branches;
mod profile;
mod run;
mod taken_down;
mod worker;

pub use buffer::TchBuffer;
pub use executable::TsExecutable;
pub(crate) use fence::fence;
pub use interp::RunStats;
pub(crate) use memory_meter::Meter;
pub(crate) use profile::Profile;
pub use profile::StepTime;
pub use worker::HeldThreads;
