//! The graph language of LTC: operators, shapes, trace nodes, canonical graphs, hashes, verifier and text form.
//!
//! What lives here is pure: no libtorch, no IO, no `unsafe`. The crate re-implements the representation half of
//! `torch/csrc/lazy/core` (`ir.h`, `hash.h`, `shape.h`, `ir_util.h`, `ir_dump_util.h`).
//!
//! Two forms, on purpose. The [`trace`] has per-tensor lifetimes: users drop tensors at any time, and what only they
//! needed goes with them. The canonical [`graph`] is dense and ordered, and can be hashed and compared, printed and
//! parsed ([`text`]), checked ([`verify()`]) and drawn ([`dot()`]). [`canonicalize()`] goes from one to the other.
//!
//! A [`symbolic`] graph stands for graphs that differ in nothing but sizes.
//!
//! What operators mean for their arguments is data in [`table`] and functions in [`rules`] and [`promote`].
#![forbid(unsafe_code)]

pub mod args;
pub mod canonicalize;
pub mod dot;
pub mod dtype;
pub mod expr;
pub mod fallback;
pub mod graph;
pub mod hash;
pub mod layout;
pub mod op;
pub mod passes;
pub mod promote;
pub mod props;
pub mod rewrite;
pub mod rules;
pub mod scalar;
pub mod signature;
pub mod symbolic;
pub mod table;
pub mod text;
pub mod trace;
pub mod verify;
pub mod view;

pub use args::{Arg, ArgFlags, ArgReader, ArgWriter, EncodedArgs, RuntimeScalars, Tag, view_offset};
pub use canonicalize::{Canonical, ParamBinding, canonicalize, canonicalize_for, reachable, slice_offset};
pub use dot::dot;
pub use dtype::DType;
pub use expr::{Expr, Func};
pub use fallback::FallbackReason;
pub use graph::{Graph, GraphBuilder, GraphNode, ValueId};
pub use hash::Hash128;
pub use layout::{Dims, Layout, LayoutRef};
pub use op::{Op, OpSpec};
pub use promote::{Category, promote_types, result_type};
pub use props::{OpClass, Props};
pub use rewrite::{Assumption, Rewriting, Rewritten};
pub use rules::{ErrorClass, ShapeError};
pub use scalar::Scalar;
pub use signature::{Results, Signature, SignatureRef};
pub use symbolic::{Dim, Refusal, Spot, Symbolic};
pub use table::OpCode;
pub use text::{ParseError, print_with};
pub use trace::{Kept, Operands, RecycledNode, SiteId, Value, WeakValue};
pub use verify::{Fault, Location, VerifyError, verify};
pub use view::{OwnedView, View};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
