//! Kernels with reductions: many elements become one.
//!
//! | file | what |
//! |---|---|
//! | `folds.rs` | how elements become one |
//! | `nest.rs` | a body with folds, cut into stages |
//! | `rows.rs` | which rows a kernel goes through at a time, and its stages as loops |
//! | `pass.rs` | a run of it |

mod folds;
mod nest;
mod pass;
mod rows;

pub(crate) use folds::Folder;
pub use rows::{RowKernel, RowSpace};
