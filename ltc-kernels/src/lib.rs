//! Fused kernels: many operators, one pass over memory.
//!
//! A [`KernelIr`] is what a kernel computes for one element: a list of values, each from earlier ones. A [`Kernel`]
//! adds where elements come from and go to. Tier 0 (`tile`) runs it at once, a block of elements at a time, each
//! operator a loop over the block that the compiler turned into vector instructions; the block's intermediate values
//! stay in the first-level cache. Tier 1 (`jit`) is machine code, made in the background.
//!
//! Kernels know memory, not what it belongs to: no graph, and no libtorch. Whoever runs one says where its operands lie
//! and on which threads it may run.
//!
//! | file | what |
//! |---|---|
//! | `ir.rs` | what a kernel computes for one element, and the builder that shares equal values |
//! | `ops.rs`, `math.rs` | what the operators do to one element |
//! | `loops.rs` | the loops of tier 0, one per operator and element type, for each instruction set |
//! | `space.rs` | the elements a kernel goes through, and how it reaches them in memory |
//! | `jit/` | tier 1 |
//! | `cuda/` | kernels as text for GPUs |
//! | `tile/` | kernels without reductions, run by tier 0 (`mod.rs`) or 1 (`compiled.rs`); loops for other kernels |
//! | `reduce/` | kernels with reductions, in stages |
//! | `support.rs` | which IRs kernels can run |
//! | `kernel.rs` | a kernel of either kind |
//! | `pool.rs` | max pooling |
//! | `random.rs` | draws in the order of libtorch's generator |

#[cfg(test)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "some of it is for machine code"))]
mod cases;
pub mod cuda;
mod ir;
mod jit;
mod kernel;
mod loops;
mod math;
mod ops;
mod pool;
mod print;
mod random;
mod reduce;
mod space;
mod support;
mod tile;

pub use ir::{Builder, ComputeType, KernelIr, KernelOp, Val};
pub use jit::{Jit, Paused, code_bytes, finish_compiling};
pub use kernel::FusedKernel;
pub use loops::instruction_set;
pub use pool::MaxPool;
pub use random::{Mt19937, bernoulli};
pub use reduce::{ReductionSpace, RowKernel};
pub use space::{Access, IterationSpace};
pub use support::has_loop;
pub use tile::{Kernel, Ran, TooLarge};
