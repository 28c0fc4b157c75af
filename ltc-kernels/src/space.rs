//! The elements a kernel goes through, and how it reaches them in memory.

use std::ops::Range;

use ltc_ir::DType;
use smallvec::SmallVec;

/// Most elements of a block; fewer where there are many registers.
pub(crate) const MAX_BLOCK: usize = 1024;

/// Dimensions or strides.
type Dims = SmallVec<[isize; 6]>;

/// How an operand's elements lie, seen in the order of a [`IterationSpace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// One after the other.
    Dense,
    /// One element for all.
    Uniform,
    /// Otherwise.
    Strided,
}

/// Where to elements are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// To a block.
    In,
    /// From a block.
    Out,
}

/// An iteration space: sizes with the fewest dimensions that reach all operands, in the memory order of the first.
#[derive(Clone, Debug)]
pub struct IterationSpace {
    dims: Dims,
    /// Per operand, in elements.
    strides: Vec<Dims>,
}

impl IterationSpace {
    /// The space of these sizes for operands with these strides, in elements. The first operand gives the order; it
    /// should be an output.
    pub fn new(sizes: &[i64], operands: &[&[i64]]) -> IterationSpace {
        let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).collect();
        if let Some(first) = operands.first() {
            order.sort_by_key(|&d| std::cmp::Reverse(first[d]));
        }
        IterationSpace::ordered(&order, sizes, operands)
    }

    /// The space of these dimensions, outermost first.
    pub(crate) fn ordered(order: &[usize], sizes: &[i64], operands: &[&[i64]]) -> IterationSpace {
        let mut space = IterationSpace { dims: Dims::new(), strides: vec![Dims::new(); operands.len()] };
        for &d in order.iter().filter(|&&d| sizes[d] != 1) {
            space.push(sizes[d] as isize, operands.iter().map(|o| o[d] as isize));
        }
        space
    }

    /// Where element `at` of an operand lies, how far the next ones are apart, and how many follow so, itself included.
    pub(super) fn stretch(&self, operand: usize, at: usize) -> (isize, isize, usize) {
        let strides = &self.strides[operand];
        let Some(inner) = self.dims.len().checked_sub(1) else { return (0, 0, 1) };
        let (mut rest, mut offset, mut left) = (at as isize, 0, 1);
        for d in (0..=inner).rev() {
            let index = if d == 0 { rest } else { rest % self.dims[d] };
            rest /= self.dims[d].max(1);
            offset += index * strides[d];
            if d == inner {
                left = self.dims[d] - index;
            }
        }
        (offset, strides[inner], left as usize)
    }

    /// Adds an inner dimension, as part of the last one where all operands go on as they would.
    fn push(&mut self, size: isize, strides: impl Iterator<Item = isize> + Clone) {
        let continues = |(mine, inner): (&Dims, isize)| mine.last().is_some_and(|&outer| outer == inner * size);
        if !self.dims.is_empty() && self.strides.iter().zip(strides.clone()).all(continues) {
            *self.dims.last_mut().unwrap_or(&mut 0) *= size;
            for (mine, inner) in self.strides.iter_mut().zip(strides) {
                *mine.last_mut().unwrap_or(&mut 0) = inner;
            }
            return;
        }
        self.dims.push(size);
        self.strides.iter_mut().zip(strides).for_each(|(mine, stride)| mine.push(stride));
    }

    /// How many elements there are.
    pub fn element_count(&self) -> usize {
        self.dims.iter().product::<isize>() as usize
    }

    /// The sizes, outermost first.
    pub(crate) fn dims(&self) -> &[isize] {
        &self.dims
    }

    /// How far apart an operand's elements are in each dimension.
    pub(crate) fn strides(&self, operand: usize) -> &[isize] {
        &self.strides[operand]
    }

    /// How far from its first an operand's elements may lie.
    pub(crate) fn extent(&self, operand: usize) -> i64 {
        let last = |(size, stride): (&isize, &isize)| (size - 1).max(0) as i64 * (*stride as i64).abs();
        self.dims.iter().zip(&self.strides[operand]).map(last).sum()
    }

    /// How an operand is reached.
    pub fn access(&self, operand: usize) -> Access {
        let strides = &self.strides[operand];
        if strides.iter().all(|&s| s == 0) {
            return Access::Uniform;
        }
        let mut expected = 1;
        for (&size, &stride) in self.dims.iter().zip(strides).rev() {
            if stride != expected {
                return Access::Strided;
            }
            expected *= size;
        }
        Access::Dense
    }

    /// Elements of the innermost dimension.
    pub(crate) fn row(&self) -> usize {
        self.dims.last().map_or(1, |&d| d as usize)
    }

    /// Where an operand's element lies, from its first, and how far apart those after it in its row are.
    pub(super) fn locate(&self, operand: usize, element: usize) -> (isize, isize) {
        let (mut offset, mut rest) = (0, element as isize);
        for (&size, &stride) in self.dims.iter().zip(&self.strides[operand]).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        (offset, self.strides[operand].last().copied().unwrap_or(0))
    }

    /// Calls `run(position, offset, stride, length)` for stretches of the elements `start..start + n` along the
    /// innermost dimension: their position from `start`, where the operand's first lies, and how far apart they are.
    #[inline]
    fn walk(&self, operand: usize, start: usize, n: usize, mut run: impl FnMut(usize, isize, isize, usize)) {
        let strides = &self.strides[operand];
        let Some(inner) = self.dims.len().checked_sub(1) else { return run(0, 0, 0, n) };
        let mut index: Dims = SmallVec::from_elem(0, self.dims.len());
        let mut rest = start as isize;
        for d in (0..=inner).rev() {
            index[d] = rest % self.dims[d];
            rest /= self.dims[d];
        }
        let mut offset: isize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        let mut done = 0;
        while done < n {
            let length = ((self.dims[inner] - index[inner]) as usize).min(n - done);
            run(done, offset, strides[inner], length);
            done += length;
            // To the first element of the next row.
            offset -= index[inner] * strides[inner];
            index[inner] = 0;
            for d in (0..inner).rev() {
                index[d] += 1;
                offset += strides[d];
                if index[d] < self.dims[d] {
                    break;
                }
                offset -= index[d] * strides[d];
                index[d] = 0;
            }
        }
    }

    /// Copies some of an operand's elements to a block, or from there.
    ///
    /// # Safety
    /// `base` is the operand's element at the origin; the elements are readable, or writable, and `block` is aligned
    /// for `T`, has as many, and overlaps none of them.
    unsafe fn transfer<T: Copy>(
        &self,
        way: Way,
        operand: usize,
        base: *mut u8,
        block: *mut u8,
        elements: Range<usize>,
    ) {
        let (base, block) = (base.cast::<T>(), block.cast::<T>());
        let run = |at, offset, stride, length| {
            // SAFETY: `walk` stays within the elements; operands may lie at any address.
            unsafe {
                let (there, here) = (base.offset(offset), block.add(at));
                let (bytes, apart) = (length * size_of::<T>(), |i: usize| there.offset(i as isize * stride));
                match (way, stride) {
                    (Way::In, 1) => std::ptr::copy_nonoverlapping(there.cast::<u8>(), here.cast(), bytes),
                    (Way::Out, 1) => std::ptr::copy_nonoverlapping(here.cast::<u8>(), there.cast(), bytes),
                    (Way::In, 0) => std::slice::from_raw_parts_mut(here, length).fill(there.read_unaligned()),
                    (Way::In, _) => (0..length).for_each(|i| here.add(i).write(apart(i).read_unaligned())),
                    (Way::Out, _) => (0..length).for_each(|i| apart(i).write_unaligned(here.add(i).read())),
                }
            }
        };
        match self.access(operand) {
            Access::Dense => run(0, elements.start as isize, 1, elements.len()),
            _ => self.walk(operand, elements.start, elements.len(), run),
        }
    }

    /// The same for elements of so many bytes.
    ///
    /// # Safety
    /// As [`IterationSpace::transfer`].
    pub(super) unsafe fn transfer_sized(
        &self,
        way: Way,
        bytes: usize,
        operand: usize,
        base: *mut u8,
        block: *mut u8,
        elements: Range<usize>,
    ) {
        // SAFETY: by this function's contract.
        unsafe {
            match bytes {
                1 => self.transfer::<u8>(way, operand, base, block, elements),
                2 => self.transfer::<u16>(way, operand, base, block, elements),
                4 => self.transfer::<u32>(way, operand, base, block, elements),
                _ => self.transfer::<u64>(way, operand, base, block, elements),
            }
        }
    }

    /// The same for elements of this dtype and a block of its type.
    ///
    /// # Safety
    /// As [`IterationSpace::transfer`].
    pub(super) unsafe fn convert(
        &self,
        way: Way,
        operand: usize,
        dtype: DType,
        base: *mut u8,
        block: *mut u8,
        elements: Range<usize>,
    ) {
        if !matches!(dtype, DType::F16 | DType::BF16) {
            // SAFETY: by this function's contract.
            return unsafe { self.transfer_sized(way, dtype.size_of(), operand, base, block, elements) };
        }
        let mut halves = [0u16; MAX_BLOCK];
        for start in elements.clone().step_by(MAX_BLOCK) {
            let part = start..(start + MAX_BLOCK).min(elements.end);
            // SAFETY: by this function's contract; there are at most as many halves.
            unsafe {
                let block = block.cast::<f32>().add(start - elements.start);
                if way == Way::Out {
                    for (to, from) in halves.iter_mut().zip(std::slice::from_raw_parts(block, part.len())) {
                        let bf16 = dtype == DType::BF16;
                        *to = if bf16 { (from.to_bits() >> 16) as u16 } else { half::f16::from_f32(*from).to_bits() };
                    }
                }
                self.transfer::<u16>(way, operand, base, halves.as_mut_ptr().cast(), part.clone());
                if way == Way::In {
                    for (to, from) in std::slice::from_raw_parts_mut(block, part.len()).iter_mut().zip(halves) {
                        let bf16 = dtype == DType::BF16;
                        *to = if bf16 {
                            f32::from_bits(u32::from(from) << 16)
                        } else {
                            half::f16::from_bits(from).to_f32()
                        };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_go_on_are_one() {
        let s = IterationSpace::new(&[2, 1, 3, 4], &[&[12, 99, 4, 1], &[12, 5, 4, 1]]);
        assert_eq!(
            (&s.dims[..], s.element_count(), s.access(0), s.access(1)),
            (&[24][..], 24, Access::Dense, Access::Dense)
        );
        let bias = IterationSpace::new(&[2, 3, 4], &[&[12, 4, 1], &[0, 1, 0], &[0, 0, 0]]);
        assert_eq!(bias.dims[..], [2, 3, 4]);
        assert_eq!((bias.access(0), bias.access(1), bias.access(2)), (Access::Dense, Access::Strided, Access::Uniform));
        let transposed = IterationSpace::new(&[3, 4], &[&[1, 3], &[1, 3]]);
        assert_eq!((&transposed.dims[..], transposed.access(1)), (&[12][..], Access::Dense));
        assert_eq!(IterationSpace::new(&[], &[&[], &[]]).element_count(), 1);
        assert_eq!(IterationSpace::new(&[0, 3], &[&[3, 1]]).element_count(), 0);
    }

    #[test]
    fn any_stretch_is_gathered_and_scattered() {
        let mut data: Vec<i32> = (0..24).collect();
        let s = IterationSpace::new(&[2, 3, 4], &[&[12, 4, 1], &[1, 2, 6]]);
        let expected: Vec<i32> = (0..24).map(|i| (i / 12) + (i / 4 % 3) * 2 + (i % 4) * 6).collect();
        for start in 0..24 {
            assert_eq!((s.locate(1, start), s.row()), ((expected[start] as isize, 6), 4));
            for n in 0..=24 - start {
                let mut block = vec![-1; n];
                let mut back = vec![-1; 24];
                // SAFETY: both operands reach elements 0..24, blocks have `n`.
                unsafe {
                    let (from, to) = (data.as_mut_ptr().cast(), back.as_mut_ptr().cast());
                    s.transfer::<i32>(Way::In, 1, from, block.as_mut_ptr().cast(), start..start + n);
                    s.transfer::<i32>(Way::Out, 1, to, block.as_mut_ptr().cast(), start..start + n);
                }
                assert_eq!(block, expected[start..start + n]);
                for (i, &b) in back.iter().enumerate() {
                    assert_eq!(b, if block.contains(&(i as i32)) { i as i32 } else { -1 });
                }
            }
        }
    }
}
