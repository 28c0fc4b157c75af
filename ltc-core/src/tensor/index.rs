//! Indexing: `x.i((0, .., 1..3))?`, as `tch` has it.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::LazyTensor;
use crate::Error;

/// What one entry of an index does to one dimension.
#[derive(Clone, Debug)]
pub enum Index<'a> {
    /// Takes one element away from it.
    Select(i64),
    /// Takes a range of it; negative bounds count from the end.
    Slice(Option<i64>, Option<i64>),
    /// Adds a dimension of size 1.
    New,
    /// Takes the elements an integer tensor names, or a boolean mask's where it has one.
    Tensor(&'a LazyTensor),
}

impl From<i64> for Index<'_> {
    fn from(i: i64) -> Self {
        Index::Select(i)
    }
}

impl<'a> From<&'a LazyTensor> for Index<'a> {
    fn from(t: &'a LazyTensor) -> Self {
        Index::Tensor(t)
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl From<$range> for Index<'_> {
            fn from(range: $range) -> Self {
                let range: &dyn AnyRange = &range;
                range.slice()
            }
        }
    )*};
}

/// All ranges of integers as one.
trait AnyRange {
    fn slice(&self) -> Index<'static>;
}

impl<R: RangeBounds<i64>> AnyRange for R {
    fn slice(&self) -> Index<'static> {
        let start = match self.start_bound() {
            Bound::Included(&s) => Some(s),
            Bound::Excluded(&s) => Some(s + 1),
            Bound::Unbounded => None,
        };
        let end = match self.end_bound() {
            // Up to the last element, which has no number after it.
            Bound::Included(&-1) | Bound::Unbounded => None,
            Bound::Included(&e) => Some(e + 1),
            Bound::Excluded(&e) => Some(e),
        };
        Index::Slice(start, end)
    }
}

ranges!(Range<i64>, RangeFrom<i64>, RangeTo<i64>, RangeInclusive<i64>, RangeToInclusive<i64>, RangeFull);

/// One entry, or a tuple of them, one for each dimension from the first on.
pub trait IndexOp<'a> {
    /// The entries.
    fn entries(self) -> Vec<Index<'a>>;
}

impl<'a, T: Into<Index<'a>>> IndexOp<'a> for T {
    fn entries(self) -> Vec<Index<'a>> {
        vec![self.into()]
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<'a, $($name: Into<Index<'a>>),*> IndexOp<'a> for ($($name,)*) {
            fn entries(self) -> Vec<Index<'a>> {
                #[allow(non_snake_case, reason = "one name for the type and its value")]
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

impl LazyTensor {
    /// The part an index names: a view for integers, ranges and new dimensions, a copy where a tensor is among them.
    ///
    /// ```
    /// # use ltc_core::{Config, Index, LazyTensor, Session};
    /// # fn main() -> Result<(), ltc_core::Error> {
    /// # let backend = std::sync::Arc::new(ltc_backend::testing::RecordingBackend::default());
    /// # let session = Session::new(backend, Config::default())?;
    /// # let x = LazyTensor::from_slice(session.device(0)?, &[0i64; 24], &[2, 3, 4])?;
    /// assert_eq!(x.i(1)?.sizes(), [3, 4]);
    /// assert_eq!(x.i((.., -1, 1..3))?.sizes(), [2, 2]);
    /// assert_eq!(x.i((Index::New, 0))?.sizes(), [1, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn i<'a>(&self, index: impl IndexOp<'a>) -> Result<LazyTensor, Error> {
        let mut x = self.clone();
        let mut dim = 0;
        let mut tensors: Vec<Option<&LazyTensor>> = Vec::new();
        for entry in index.entries() {
            match entry {
                Index::Select(at) => {
                    x = x.select(dim, at)?;
                    continue;
                }
                Index::Slice(None, None) => {}
                Index::Slice(start, end) => x = x.slice(dim, start, end, 1)?,
                Index::New => x = x.unsqueeze(dim)?,
                Index::Tensor(t) => {
                    tensors.resize(dim as usize, None);
                    tensors.push(Some(t));
                }
            }
            dim += 1;
        }
        if tensors.is_empty() { Ok(x) } else { x.index(&tensors) }
    }
}
