//! The text form of a graph: what dumps show, tests write and [`parse`] reads back.
//!
//! ```text
//! graph(%p0: f32[2, 3], %p1: f32[3, 2]{1, 3}) {
//!   %0: f32[2, 3] = aten::add.Tensor(%p0, %p0, number(i64))
//!   %1: f32[2], %2: i64[2] = aten::max.dim(%0, 1, false)
//!   return %1, %2
//! }
//! ```
//!
//! Layouts are `dtype[sizes]`, followed by `{strides}` when they are not row-major. Arguments, in schema order:
//!
//! | argument | text |
//! |---|---|
//! | absent | `none` |
//! | tensor; written; written, old contents unused | `%0`; `mut %0`; `mut fresh` |
//! | runtime number: `Scalar`, `float`, host scalar, wrapped one | `number(i64)`, `float`, `host(f32)`, `wrapped(f64)` |
//! | `int`, `bool`, `str` | `-3`, `true`, `"a\n\x00"` |
//! | `int[]`, `float[]`, `bool[]` | `[1, 2]`, `floats[1.5, nan(7ff8000000000000)]`, `bools[true]` |
//! | list of tensors, of numbers | `tensors[%0, none]`, `numbers[i64, f64]` |
//! | generator, device | `generator %1`, `device` |
//!
//! Results are numbered through the graph. Runtime numbers and sites are no part of the structure and are not printed.
//! Equal graphs have equal texts, and no address or map order shows.

mod parse;
mod print;

pub use parse::{ParseError, parse};
