//! Kernels with reductions: many elements become one.
//!
//! | file | what |
//! |---|---|
//! | `reducers.rs` | how elements become one |
//! | `nest.rs` | a body with reductions, cut into stages |
//! | `rows.rs` | which rows a kernel goes through at a time, and its stages as loops |
//! | `pass.rs` | a run of it |

mod nest;
mod pass;
mod reducers;
mod rows;

pub(crate) use reducers::Reducer;
pub use rows::{ReductionSpace, RowKernel};
