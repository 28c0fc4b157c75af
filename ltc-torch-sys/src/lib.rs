//! The border between LTC and libtorch: all C++ of the workspace and the only `extern "C"`.
//!
//! Three doors, all safe to use from outside:
//! - [`register`] puts the lazy device into libtorch's dispatcher. Every operator called on it arrives, shapes inferred
//!   and aliasing sorted out, at a [`Recorder`].
//! - [`Plan`] runs one operator with prepared arguments on tensors of a [`Place`], below autograd.
//! - [`EagerCall`] is an operator call that could not be recorded, with the means to run it at once.
//!
//! No policy lives here: what to record, when to run, what to count is decided by whoever implements [`Recorder`].
//! C++ never throws across the border and Rust never unwinds across it.

mod alias;
mod ambient;
mod callers;
mod calls;
mod capture;
#[cfg(feature = "dist")]
mod dist;
mod eager;
mod error;
mod ffi;
mod fork;
mod frames;
mod generators;
mod graphs;
mod handle;
mod history;
mod memory;
mod numerics;
mod place;
mod plan;
mod pool;
mod recorder;
mod register;
mod state;
mod team;
mod tensor;
mod warnings;

pub use alias::{has_mps, name_mps};
pub use ambient::{Ambient, ambient, host_draws, note_registration};
pub use callers::Callers;
pub use calls::{Calls, calls};
pub use capture::{Hold, TensorChecks, capture_begin, capture_checks, capture_end, capture_pause};
#[cfg(feature = "dist")]
pub use dist::{ProcessGroup, ReduceOp, Store};
pub use eager::{EagerCall, EagerOperand};
pub use error::TorchError;
pub use fork::{AtFork, at_fork, came_along};
pub use generators::{
    default_generator_seed, default_generator_state, default_generator_storage, seed_default_generator,
    set_default_generator_state,
};
pub use graphs::{TakingDown, copy_all, tensor_over};
pub use handle::{AsTensor, Borrowed, Tensor};
pub use history::History;
pub use memory::{DeviceMemory, PlaceMemory};
pub use numerics::nan_bound_holds;
pub use place::{
    AtPlace, Place, PlaceEvent, at_place, empty_at, is_fatal, library_folder, part_of, place_of, set_place_key,
};
pub use plan::{Engine, Generator, Held, Plan, probe};
pub use pool::{PoolStats, PoolUse, Pooled, empty_pool, pool_stats, set_pool_limit};
pub use recorder::{NewStorages, Operand, RecordedCall, Recorder};
pub use register::{forced_changed, register};
pub use state::{
    InferenceMode, TensorKind, TensorState, bump_version, grad_of, history_is_freed, pass_to, set_freed_history,
    set_grad, state_of,
};
pub use team::{OneThread, num_threads, on_one_thread, parallel_for, set_num_threads};
pub use tensor::{
    alias, empty_lazy, for_each_operator, host_bytes, impl_of, is_plain_host, is_sole_holder, lazy_device_of,
    op_schema, storage_of, to_cpu, to_device, wrap,
};
pub use warnings::take_warnings;
