//! Native lazy tensors: libtorch's operators with no libtorch.
//!
//! A [`LazyTensor`] is a storage plus sizes, strides and offset, as every tensor of this workspace; its operators are
//! generated from the operator table (`ltc-ir/ops.toml`), with libtorch's names, argument order and defaults. Arguments
//! with defaults are fields of an options type:
//! `x.sum_dim_with(&[0], SumDimOptions { keepdim: true, ..Default::default() })`. Calling an operator infers the
//! result's shape, or fails with eager libtorch's error; nothing runs until a value is read.
//!
//! ```
//! # use ltc_core::{Config, LazyTensor, Session};
//! # fn main() -> Result<(), ltc_core::Error> {
//! # let backend = std::sync::Arc::new(ltc_backend::testing::RecordingBackend::default());
//! # let session = Session::new(backend, Config::default())?;
//! let device = session.device(0)?;
//! let x = LazyTensor::from_slice(device, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let y = (&x * 2.0 + 1.0).relu()?.sum_dim(Some(&[1]))?; // recorded
//! assert_eq!(y.sizes(), [2]);
//! assert!(x.matmul(&LazyTensor::zeros(device, &[3, 2], y.dtype())?).is_err()); // at the call
//! # Ok(())
//! # }
//! ```

mod composite;
mod display;
mod element;
mod factory;
#[rustfmt::skip]
#[allow(clippy::too_many_arguments, reason = "as many as libtorch's operators have")]
#[allow(clippy::derivable_impls, reason = "one form for all defaults")]
mod generated;
mod index;
mod memory;
mod operators;
mod record;
mod view;

use std::{fmt, sync::Arc};

use ltc_ir::{DType, Layout, LayoutRef, View};
use smallvec::SmallVec;

pub use composite::{Conv2dOptions, Reduction};
pub use element::Element;
pub use generated::*;
pub use index::{Index, IndexOp};
pub use operators::Operand;

use memory::Memory;

use crate::{Device, Error, Storage, TraceValue, autodiff::Edge};

/// A tensor whose operators are recorded. Cloning shares memory, as in libtorch; `Send` and `Sync`.
///
/// # Errors
/// Operators refuse arguments that libtorch refuses, at the call, with its words and the class of its exception
/// ([`crate::Error`]). What fails on values (an index out of range) fails where a value is read, with the operator and
/// its line.
pub struct LazyTensor {
    device: Device,
    memory: Memory,
    layout: LayoutRef,
    offset: i64,
    /// What gradients need to know; nothing for tensors that no gradient reaches.
    edge: Edge,
}

impl Clone for LazyTensor {
    fn clone(&self) -> Self {
        let memory = Memory::of(self.memory.shared());
        let LazyTensor { device, layout, offset, edge, .. } = self;
        LazyTensor { device: device.clone(), memory, layout: layout.clone(), offset: *offset, edge: edge.clone() }
    }
}

impl LazyTensor {
    /// A new tensor of this value.
    pub(crate) fn of(device: Device, value: TraceValue) -> Self {
        let layout = value.layout().clone();
        LazyTensor { device, memory: Memory::own(value), layout, offset: 0, edge: Edge::default() }
    }

    /// A new tensor over memory nobody wrote yet.
    fn uninit(device: Device, layout: LayoutRef) -> Self {
        let memory = Memory::of(Arc::new(Storage::uninit(Some(&device), layout.clone())));
        LazyTensor { device, memory, layout, offset: 0, edge: Edge::default() }
    }

    /// The same memory seen through another layout, outside of what gradients see.
    pub(crate) fn seen_as(&self, layout: Layout, offset: i64) -> Self {
        LazyTensor {
            device: self.device.clone(),
            memory: Memory::of(self.memory.shared()),
            layout: layout.into(),
            offset,
            edge: Edge::default(),
        }
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    pub(crate) fn take_edge(&mut self) -> Edge {
        std::mem::take(&mut self.edge)
    }

    pub(crate) fn with_edge(mut self, edge: Edge) -> Self {
        self.edge = edge;
        self
    }

    fn window(&self) -> View<'_> {
        View::of(&self.layout, self.offset)
    }

    /// The value the tensor shows now.
    #[inline]
    pub(crate) fn value(&self) -> TraceValue {
        self.memory.read(&self.device, &self.layout, self.offset)
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.layout.dtype()
    }

    /// Sizes.
    pub fn sizes(&self) -> &[i64] {
        self.layout.sizes()
    }

    /// Size of one dimension; negative ones count from the end.
    ///
    /// # Errors
    /// Fails for a dimension that there is not.
    pub fn size(&self, dim: i64) -> Result<i64, Error> {
        let d = ltc_ir::rules::wrap_dim(dim, self.dim())?;
        Ok(self.sizes().get(d).copied().unwrap_or(1))
    }

    /// Strides, in elements.
    pub fn strides(&self) -> &[i64] {
        self.layout.strides()
    }

    /// Offset into the storage, in elements.
    pub fn storage_offset(&self) -> i64 {
        self.offset
    }

    /// Element type, sizes and strides.
    pub fn layout(&self) -> &LayoutRef {
        &self.layout
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.layout.rank()
    }

    /// Number of elements.
    pub fn numel(&self) -> i64 {
        self.layout.numel()
    }

    /// Whether elements lie in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Whether both show the same memory in the same way.
    pub fn is_same(&self, other: &LazyTensor) -> bool {
        self.memory.is(&other.memory) && self.layout == other.layout && self.offset == other.offset
    }

    /// Whether writing one may be seen through the other.
    pub fn shares_storage(&self, other: &LazyTensor) -> bool {
        self.memory.is(&other.memory)
    }

    /// Whether the value is still to be computed. Never runs anything.
    pub fn is_pending(&self) -> bool {
        self.memory.is_pending()
    }

    /// Writes a tensor's values into this one's memory, cast and broadcast as `copy_` does; every alias sees them.
    ///
    /// # Errors
    /// Fails where shapes do not broadcast, and for a tensor that gradients flow through: what they need would be
    /// overwritten. Optimisers write under [`crate::no_grad`].
    pub fn assign(&self, source: &LazyTensor) -> Result<(), Error> {
        if self.requires_grad() && crate::autodiff::is_enabled() {
            return Err(Error::InPlaceGradient);
        }
        let _off = crate::autodiff::no_grad();
        let mut source = source.to_dtype(self.dtype())?;
        if source.sizes() != self.sizes() {
            source = source.expand(self.sizes())?;
        }
        let mut value = source.value();
        // What replaces all of the memory has its layout; a part is written wherever the view says.
        if self.memory.covers(&self.window()) && value.layout() != &self.layout {
            value = crate::storage::laid_out(&self.device, value, self.layout.clone());
        }
        self.memory.write(&self.device, self.window(), value);
        Ok(())
    }

    /// Writes an operator's result into this tensor, as its in-place form does: no broadcast of the result, and no cast
    /// to a lower kind of number.
    pub(crate) fn store(&self, result: &LazyTensor) -> Result<(), Error> {
        let message = if result.sizes() != self.sizes() {
            let (own, whole) = (self.sizes(), result.sizes());
            format!("output with shape {own:?} doesn't match the broadcast shape {whole:?}")
        } else if !ltc_ir::promote::can_cast(result.dtype(), self.dtype()) {
            let names = [result.dtype(), self.dtype()].map(ltc_ir::rules::cxx_name);
            format!("result type {} can't be cast to the desired output type {}", names[0], names[1])
        } else {
            return self.assign(result);
        };
        Err(ltc_ir::ShapeError::runtime(message).into())
    }

    /// Sends what this tensor needs to the device, without waiting.
    ///
    /// # Errors
    /// Fails where the program does not compile, or a wait for room in the queue is interrupted.
    pub fn sync(&self) -> Result<(), Error> {
        self.device.sync_values(&[self.value()])
    }
}

/// Layout and state; never runs anything.
impl fmt::Debug for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_pending() { "pending" } else { "data" };
        write!(f, "LazyTensor({}, {:?}, {state}", self.layout, self.device)?;
        f.write_str(if self.requires_grad() { ", requires_grad)" } else { ")" })
    }
}

/// Short lists of tensors.
pub(crate) type Tensors = SmallVec<[LazyTensor; 2]>;
