//! Views: what a tensor shows of its memory, borrowed ([`View`]) and owned ([`OwnedView`]).
//!
//! libtorch's side, sessions and native tensors all say it with these two types. What the view operators of ATen make
//! of a view stands in [`crate::rules::view`].

use std::fmt;

use crate::{
    dtype::DType,
    layout::{Dims, Layout},
};

/// What a tensor shows of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    /// Element type.
    pub dtype: DType,
    /// Size of each dimension.
    pub sizes: &'a [i64],
    /// Stride of each dimension, in elements.
    pub strides: &'a [i64],
    /// Where it begins in the memory, in elements.
    pub offset: i64,
}

/// A [`View`] that holds its sizes and strides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedView {
    /// Element type.
    pub dtype: DType,
    /// Size of each dimension.
    pub sizes: Dims,
    /// Stride of each dimension, in elements.
    pub strides: Dims,
    /// Where it begins in the memory, in elements.
    pub offset: i64,
}

impl<'a> View<'a> {
    /// What a tensor of this layout shows from an offset on, in elements.
    #[inline]
    pub fn of(layout: &'a Layout, offset: i64) -> Self {
        View { dtype: layout.dtype(), sizes: layout.sizes(), strides: layout.strides(), offset }
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Its layout, which says nothing of the offset.
    pub fn layout(&self) -> Layout {
        Layout::strided(self.dtype, self.sizes, self.strides)
    }

    /// Whether both have one layout, wherever they begin.
    pub fn is_laid_out_as(&self, other: View<'_>) -> bool {
        View { offset: other.offset, ..*self } == other
    }
}

/// Layout and offset: `f32[2, 3] (strides [3, 1], offset 6)`.
impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { dtype, sizes, strides, offset } = self;
        write!(f, "{dtype}{sizes:?} (strides {strides:?}, offset {offset})")
    }
}

impl OwnedView {
    /// Begins so many elements later, each so far from the one before.
    pub(crate) fn advance(&mut self, elements: i64, stride: i64) {
        self.offset = self.offset.saturating_add(elements.saturating_mul(stride));
    }

    /// What a tensor of this layout shows from the beginning of its memory.
    pub fn of(layout: &Layout) -> Self {
        View::of(layout, 0).into()
    }

    /// The same, borrowed.
    #[inline]
    pub fn as_view(&self) -> View<'_> {
        View { dtype: self.dtype, sizes: &self.sizes, strides: &self.strides, offset: self.offset }
    }

    /// Its layout, which says nothing of the offset.
    pub fn layout(&self) -> Layout {
        self.as_view().layout()
    }
}

impl From<View<'_>> for OwnedView {
    fn from(view: View<'_>) -> Self {
        OwnedView { dtype: view.dtype, sizes: view.sizes.into(), strides: view.strides.into(), offset: view.offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_compared_with_and_without_their_beginnings() {
        let layout = Layout::contiguous(DType::F32, &[2, 3]);
        let (front, back) = (View::of(&layout, 0), View::of(&layout, 6));
        assert!(front != back && front.is_laid_out_as(back));
        assert!(!front.is_laid_out_as(View { dtype: DType::I32, ..back }));
        assert!(!front.is_laid_out_as(View { strides: &[1, 2], ..back }));
        assert_eq!(back.to_string(), "f32[2, 3] (strides [3, 1], offset 6)");
    }

    #[test]
    fn an_owned_view_is_the_borrowed_one() {
        let layout = Layout::strided(DType::I64, &[4], &[2]);
        let owned = OwnedView::from(View::of(&layout, 3));
        assert_eq!(owned.as_view(), View::of(&layout, 3));
        assert_eq!((owned.layout(), owned.as_view().numel()), (layout, 4));
    }
}
