//! Layouts: element type, sizes and strides of a value.
//!
//! A layout is what libtorch's `TensorImpl` says of a tensor minus its storage offset. Values in the trace carry
//! strides because eager libtorch's results do, and users can see them.

use std::{fmt, sync::Arc};

use smallvec::SmallVec;

use crate::{
    dtype::DType,
    hash::{Domain, Hash128, Hasher},
};

/// Dimension sizes or strides, inline up to rank 6.
pub type Dims = SmallVec<[i64; 6]>;

/// Element type, sizes and strides (in elements) of one value. Immutable; shared as [`LayoutRef`].
#[derive(Clone)]
pub struct Layout {
    dtype: DType,
    sizes: Dims,
    strides: Dims,
    hash: Hash128,
}

/// A shared layout.
pub type LayoutRef = Arc<Layout>;

impl Layout {
    /// A layout with explicit strides. `sizes` and `strides` must have equal length.
    pub fn strided(dtype: DType, sizes: &[i64], strides: &[i64]) -> Self {
        assert_eq!(sizes.len(), strides.len(), "invariant: one stride per dimension");
        let mut h = Hasher::new(Domain::Layout);
        h.word(dtype as u64 | (sizes.len() as u64) << 8);
        for &s in sizes {
            h.word(s as u64);
        }
        for &s in strides {
            h.word(s as u64);
        }
        Layout { dtype, sizes: sizes.into(), strides: strides.into(), hash: h.finish() }
    }

    /// A row-major layout, with the strides libtorch gives a new contiguous tensor (a size-0 dimension counts as 1).
    pub fn contiguous(dtype: DType, sizes: &[i64]) -> Self {
        Layout::strided(dtype, sizes, &contiguous_strides(sizes))
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Size of each dimension.
    #[inline]
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// Stride of each dimension, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Bytes a dense storage must hold for this layout at offset 0; `usize::MAX` for more than there can be.
    pub fn storage_bytes(&self) -> usize {
        (storage_elements(&self.sizes, &self.strides) as usize).saturating_mul(self.dtype.size_of())
    }

    /// Whether the strides are row-major (dimensions of size 1 do not matter).
    pub fn is_contiguous(&self) -> bool {
        let mut expect = 1;
        for (&size, &stride) in self.sizes.iter().zip(&self.strides).rev() {
            if size != 1 {
                if stride != expect {
                    return self.numel() == 0;
                }
                expect *= size;
            }
        }
        true
    }

    /// Whether the elements fill one block of memory, each once, in any order of dimensions.
    pub fn is_dense(&self) -> bool {
        is_dense(&self.sizes, &self.strides)
    }

    /// Structural hash.
    #[inline]
    pub fn hash(&self) -> Hash128 {
        self.hash
    }

    /// Whether this layout has exactly these parts.
    #[inline]
    pub fn is(&self, dtype: DType, sizes: &[i64], strides: &[i64]) -> bool {
        self.dtype == dtype && self.sizes[..] == *sizes && self.strides[..] == *strides
    }
}

impl PartialEq for Layout {
    fn eq(&self, o: &Self) -> bool {
        self.hash == o.hash && self.is(o.dtype, &o.sizes, &o.strides)
    }
}

impl Eq for Layout {}

/// `f32[2, 3]`, with `{strides}` after it when they are not row-major.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, &self.sizes[..])?;
        if self.strides[..] != contiguous_strides(&self.sizes)[..] {
            write!(f, "{{{}}}", self.strides.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Row-major strides as libtorch computes them for a new tensor.
pub fn contiguous_strides(sizes: &[i64]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, sizes.len());
    let mut step = 1i64;
    for i in (0..sizes.len()).rev() {
        strides[i] = step;
        step = step.wrapping_mul(sizes[i].max(1));
    }
    strides
}

/// Elements between the first and one past the last that a layout touches; 0 when it is empty, `i64::MAX` for more than
/// there can be.
pub fn storage_elements(sizes: &[i64], strides: &[i64]) -> i64 {
    let mut last = 0i64;
    for (&size, &stride) in sizes.iter().zip(strides) {
        if size == 0 {
            return 0;
        }
        last = last.saturating_add((size - 1).saturating_mul(stride));
    }
    last.saturating_add(1)
}

/// Whether sizes and strides describe one block of memory, each element once (libtorch: non-overlapping and dense).
pub fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).filter(|&i| sizes[i] != 1).collect();
    if sizes.contains(&0) {
        return true;
    }
    order.sort_by_key(|&i| strides[i]);
    let mut expect = 1;
    for i in order {
        if strides[i] != expect {
            return false;
        }
        expect *= sizes[i];
    }
    true
}
