//! Views: other sizes and strides over the same memory. Nothing is recorded until one is read.

use ltc_ir::{ArgWriter, OpCode, OwnedView, Signature};
use smallvec::SmallVec;

use super::LazyTensor;
use crate::{Error, autodiff};

impl LazyTensor {
    /// All of this tensor; views of it count from where it begins.
    fn whole(&self) -> OwnedView {
        OwnedView::of(self.layout())
    }

    /// This part of the tensor. `code` and `arguments` (those after the tensor) say to gradients where it came from.
    fn viewed(&self, code: OpCode, part: OwnedView, arguments: impl FnOnce(&mut ArgWriter)) -> LazyTensor {
        let view = self.seen_as(part.layout(), self.storage_offset() + part.offset);
        if !self.requires_grad() || !autodiff::is_enabled() {
            return view;
        }
        let mut w = ArgWriter::new();
        arguments(w.tensor());
        let (words, numbers) = w.finish();
        let signature = Signature::new(code.op(), words, SmallVec::from_iter([view.layout().clone()]));
        let source = LazyTensor::of(self.device().clone(), self.value()).with_edge(self.edge().clone());
        let mut views =
            autodiff::attach(code, signature, numbers, SmallVec::from_iter([source]), SmallVec::from_iter([view]));
        views.remove(0)
    }

    /// `view(size)`: one size may be -1.
    ///
    /// # Errors
    /// Fails where strides do not allow it, and for sizes that do not fit the number of elements.
    pub fn view(&self, sizes: &[i64]) -> Result<LazyTensor, Error> {
        let part = self.whole().view(sizes)?;
        Ok(self.viewed(OpCode::View, part, |w| {
            w.ints(sizes);
        }))
    }

    /// `reshape(size)`: a view where there is one, a copy otherwise.
    ///
    /// # Errors
    /// Fails for sizes that do not fit the number of elements.
    pub fn reshape(&self, sizes: &[i64]) -> Result<LazyTensor, Error> {
        match self.whole().view(sizes) {
            Ok(part) => Ok(self.viewed(OpCode::View, part, |w| {
                w.ints(sizes);
            })),
            // Sizes that do not fit are an error either way.
            Err(_) => self.contiguous()?.view(sizes),
        }
    }

    /// `flatten(start_dim, end_dim)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not, and where the first comes after the last.
    pub fn flatten(&self, start_dim: i64, end_dim: i64) -> Result<LazyTensor, Error> {
        let rank = self.dim();
        let (start, end) = (ltc_ir::rules::wrap_dim(start_dim, rank)?, ltc_ir::rules::wrap_dim(end_dim, rank)?);
        if start > end {
            return Err(
                ltc_ir::ShapeError::runtime("flatten() has invalid args: start_dim cannot come after end_dim").into()
            );
        }
        if rank == 0 {
            return self.reshape(&[1]);
        }
        let s = self.sizes();
        let sizes: Vec<i64> = s[..start]
            .iter()
            .copied()
            .chain([s[start..=end].iter().product()])
            .chain(s[end + 1..].iter().copied())
            .collect();
        self.reshape(&sizes)
    }

    /// `expand(size)`: -1 keeps a size.
    ///
    /// # Errors
    /// As [`OwnedView::expand`].
    pub fn expand(&self, sizes: &[i64]) -> Result<LazyTensor, Error> {
        let part = self.whole().expand(sizes)?;
        Ok(self.viewed(OpCode::Expand, part, |w| {
            w.ints(sizes).bool(false);
        }))
    }

    /// `permute(dims)`
    ///
    /// # Errors
    /// As [`OwnedView::permute`].
    pub fn permute(&self, dims: &[i64]) -> Result<LazyTensor, Error> {
        let part = self.whole().permute(dims)?;
        Ok(self.viewed(OpCode::Permute, part, |w| {
            w.ints(dims);
        }))
    }

    /// `transpose(dim0, dim1)`
    ///
    /// # Errors
    /// As [`OwnedView::transpose`].
    pub fn transpose(&self, dim0: i64, dim1: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().transpose(dim0, dim1)?;
        Ok(self.viewed(OpCode::TransposeInt, part, |w| {
            w.int(dim0).int(dim1);
        }))
    }

    /// `t()` of at most two dimensions.
    ///
    /// # Errors
    /// As [`OwnedView::t`].
    pub fn t(&self) -> Result<LazyTensor, Error> {
        let part = self.whole().t()?;
        Ok(self.viewed(OpCode::T, part, |_| ()))
    }

    /// `squeeze()`: without dimensions of size 1.
    pub fn squeeze(&self) -> LazyTensor {
        self.viewed(OpCode::Squeeze, self.whole().squeeze(), |_| ())
    }

    /// `squeeze(dims)`: without those of these dimensions whose size is 1.
    ///
    /// # Errors
    /// As [`OwnedView::squeeze_dims`].
    pub fn squeeze_dims(&self, dims: &[i64]) -> Result<LazyTensor, Error> {
        let part = self.whole().squeeze_dims(dims)?;
        Ok(self.viewed(OpCode::SqueezeDims, part, |w| {
            w.ints(dims);
        }))
    }

    /// `unsqueeze(dim)`
    ///
    /// # Errors
    /// As [`OwnedView::unsqueeze`].
    pub fn unsqueeze(&self, dim: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().unsqueeze(dim)?;
        Ok(self.viewed(OpCode::Unsqueeze, part, |w| {
            w.int(dim);
        }))
    }

    /// `select(dim, index)`
    ///
    /// # Errors
    /// As [`OwnedView::select`].
    pub fn select(&self, dim: i64, index: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().select(dim, index)?;
        Ok(self.viewed(OpCode::SelectInt, part, |w| {
            w.int(dim).int(index);
        }))
    }

    /// `slice(dim, start, end, step)`: bounds clamp, negative ones count from the end.
    ///
    /// # Errors
    /// As [`OwnedView::slice`].
    pub fn slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().slice(dim, start, end, step)?;
        Ok(self.viewed(OpCode::SliceTensor, part, |w| {
            w.int(dim).int(start.unwrap_or(0)).int(end.unwrap_or(i64::MAX)).int(step);
        }))
    }

    /// `narrow(dim, start, length)`
    ///
    /// # Errors
    /// As [`OwnedView::narrow`].
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().narrow(dim, start, length)?;
        let from = if start < 0 { start + self.size(dim)? } else { start };
        Ok(self.viewed(OpCode::SliceTensor, part, |w| {
            w.int(dim).int(from).int(from + length).int(1);
        }))
    }

    /// `diagonal(offset, dim1, dim2)`
    ///
    /// # Errors
    /// As [`OwnedView::diagonal`].
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().diagonal(offset, dim1, dim2)?;
        Ok(self.viewed(OpCode::Diagonal, part, |w| {
            w.int(offset).int(dim1).int(dim2);
        }))
    }

    /// `unfold(dimension, size, step)`
    ///
    /// # Errors
    /// As [`OwnedView::unfold`].
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().unfold(dim, size, step)?;
        Ok(self.viewed(OpCode::Unfold, part, |w| {
            w.int(dim).int(size).int(step);
        }))
    }

    /// `as_strided(size, stride, offset)`: any layout within the storage. Gradients do not see through it.
    ///
    /// # Errors
    /// As [`OwnedView::as_strided`]; also where the view would leave the storage.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Result<LazyTensor, Error> {
        let part = self.whole().as_strided(sizes, strides, offset)?;
        if offset < 0 {
            return Err(ltc_ir::ShapeError::runtime(format!("Tensor: invalid storage offset {offset}")).into());
        }
        let end = ltc_ir::layout::storage_elements(sizes, strides).saturating_add(offset) as usize;
        let end = end.saturating_mul(self.dtype().size_of());
        if end > self.memory.nbytes() {
            let message = format!(
                "setStorage: sizes {sizes:?}, strides {strides:?}, storage offset {offset} require a storage size of \
                 {end} which is out of bounds for storage of size {}",
                self.memory.nbytes()
            );
            return Err(ltc_ir::ShapeError::runtime(message).into());
        }
        Ok(self.seen_as(part.layout(), offset))
    }

    /// `split(split_size, dim)`
    ///
    /// # Errors
    /// As [`LazyTensor::split_with_sizes`]; also for a size that is not positive.
    pub fn split(&self, split_size: i64, dim: i64) -> Result<Vec<LazyTensor>, Error> {
        if split_size <= 0 {
            let message = format!("split expects split_size be non-negative, but got split_size={split_size}");
            return Err(ltc_ir::ShapeError::runtime(message).into());
        }
        let whole = self.size(dim)?;
        // A split of more than there is is one of all.
        let split_size = split_size.min(whole.max(1));
        let sizes: Vec<i64> =
            (0..(whole + split_size - 1) / split_size).map(|i| split_size.min(whole - i * split_size)).collect();
        self.split_with_sizes(&sizes, dim)
    }

    /// `chunk(chunks, dim)`
    ///
    /// # Errors
    /// As [`LazyTensor::split_with_sizes`]; also for a number that is not positive.
    pub fn chunk(&self, chunks: i64, dim: i64) -> Result<Vec<LazyTensor>, Error> {
        if chunks <= 0 {
            return Err(ltc_ir::ShapeError::runtime(format!(
                "chunk expects `chunks` to be greater than 0, got: {chunks}"
            ))
            .into());
        }
        let whole = self.size(dim)?;
        self.split((whole.saturating_add(chunks - 1) / chunks).max(1), dim)
    }

    /// `split_with_sizes(split_sizes, dim)`
    ///
    /// # Errors
    /// As [`OwnedView::split`].
    pub fn split_with_sizes(&self, sizes: &[i64], dim: i64) -> Result<Vec<LazyTensor>, Error> {
        self.whole().split(sizes, dim)?;
        let mut start = 0;
        let part = |&length: &i64| {
            start += length;
            self.narrow(dim, start - length, length)
        };
        sizes.iter().map(part).collect()
    }

    /// `unbind(dim)`
    ///
    /// # Errors
    /// Fails for no dimensions, and for one that there is not.
    pub fn unbind(&self, dim: i64) -> Result<Vec<LazyTensor>, Error> {
        (0..self.size(dim)?).map(|i| self.select(dim, i)).collect()
    }

    /// The same memory, outside of what gradients see.
    pub fn detach(&self) -> LazyTensor {
        self.clone().with_edge(Default::default())
    }
}
