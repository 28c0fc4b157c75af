//! Kernels with reductions: many elements become one.
//!
//! | file | what |
//! |---|---|
//! | `reducers.rs` | how elements become one |
//! | `stages.rs` | an IR with reductions, cut into stages |
//! | `rows.rs` | which rows a kernel goes through at a time, and its stages as loops |
//! | `row_code.rs`, `row_run.rs` | rows by one function of machine code, and a run of it |
//! | `stage_run.rs` | what is the same for all rows a thread goes through |
//! | `worker_run.rs` | a run of it |

mod reducers;
mod row_code;
mod row_run;
mod rows;
mod stage_run;
mod stages;
mod worker_run;

pub(crate) use reducers::Reducer;
pub use rows::{ReductionSpace, RowKernel};
pub(crate) use stages::{ReductionStages, RowOutput, Stage, StageInput, StageOutput};
