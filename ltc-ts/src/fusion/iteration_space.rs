//! The elements a node or a group goes through, and where its values lie among them.

use smallvec::SmallVec;

type Dims = SmallVec<[i64; 6]>;

/// Which dimensions are reduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReducedDims {
    /// Per dimension.
    pub(super) dims: SmallVec<[bool; 6]>,
    /// Vectors belong to dimension 1, not to the last one.
    pub(super) channels: bool,
}

/// The sizes of all elements, and the dimensions that nodes of the group reduce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IterationSpace {
    pub(super) sizes: Dims,
    pub(super) reduced: Option<ReducedDims>,
}

impl IterationSpace {
    pub(super) fn pointwise(sizes: &[i64]) -> IterationSpace {
        IterationSpace { sizes: sizes.into(), reduced: None }
    }

    pub(super) fn reducing(sizes: &[i64], reduced: ReducedDims) -> IterationSpace {
        IterationSpace { sizes: sizes.into(), reduced: Some(reduced) }
    }

    /// How many elements are reduced into one.
    pub(super) fn each(&self) -> usize {
        let Some(reduced) = &self.reduced else { return 1 };
        self.sizes.iter().zip(&reduced.dims).filter(|(_, f)| **f).map(|(s, _)| *s as usize).product()
    }

    pub(super) fn elements(&self) -> usize {
        self.sizes.iter().map(|s| *s as usize).product()
    }

    /// The length of a strip: how many adjacent elements go into different results, if a reduced dimension lies between
    /// kept ones. In a sum of `[4, 128, 32, 16]` over the first and third dimension, strips are the 16 elements of the
    /// last dimension. `None` if no reduced dimension lies between kept ones.
    pub(super) fn strip(&self) -> Option<usize> {
        let reduced = &self.reduced.as_ref()?.dims;
        let wide = |d: &usize| self.sizes[*d] > 1;
        let last = (0..self.sizes.len()).rev().filter(wide).find(|&d| reduced[d])?;
        let strip = self.sizes[last + 1..].iter().product::<i64>() as usize;
        ((0..last).filter(wide).any(|d| !reduced[d]) && strip > 1).then_some(strip)
    }

    /// How an operand's elements lie as the group goes through them: strides per dimension, 0 where it is repeated.
    /// `None` if it does not fit.
    pub(super) fn broadcast(&self, sizes: &[i64], strides: &[i64]) -> Option<Dims> {
        let missing = self.sizes.len().checked_sub(sizes.len())?;
        let mut out: Dims = SmallVec::from_elem(0, self.sizes.len());
        for (d, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
            match size {
                _ if size == self.sizes[missing + d] => out[missing + d] = stride,
                1 => {}
                _ => return None,
            }
        }
        Some(out)
    }

    /// As [`IterationSpace::broadcast`], for an operand of a node that reduces. If vectors belong to dimension 1
    /// ([`ReducedDims::channels`]), a vector is repeated along all other dimensions.
    pub(super) fn of_operand(&self, sizes: &[i64], strides: &[i64]) -> Option<Dims> {
        if !self.reduced.as_ref().is_some_and(|f| f.channels) || sizes.len() != 1 {
            return self.broadcast(sizes, strides);
        }
        let mut out: Dims = SmallVec::from_elem(0, self.sizes.len());
        out[1] = strides[0];
        (sizes[0] == self.sizes[1]).then_some(out)
    }

    /// As [`IterationSpace::broadcast`], for a result of a node that reduces: it may lack the reduced dimensions.
    pub(super) fn of_result(&self, sizes: &[i64], strides: &[i64]) -> Option<Dims> {
        let Some(reduced) = self.reduced.as_ref().filter(|_| sizes.len() < self.sizes.len()) else {
            return self.broadcast(sizes, strides);
        };
        let kept: SmallVec<[usize; 6]> = (0..self.sizes.len()).filter(|&d| !reduced.dims[d]).collect();
        let mut out: Dims = SmallVec::from_elem(0, self.sizes.len());
        kept.iter().zip(strides).for_each(|(&d, &s)| out[d] = s);
        (sizes.len() == kept.len() && kept.iter().zip(sizes).all(|(&d, &s)| self.sizes[d] == s)).then_some(out)
    }

    /// Whether values of these sizes have one element per row, dimension by dimension.
    fn has_rows_of(&self, sizes: &[i64]) -> bool {
        let Some(reduced) = &self.reduced else { return false };
        let Some(missing) = self.sizes.len().checked_sub(sizes.len()) else { return false };
        let size = |d: usize| d.checked_sub(missing).map_or(1, |d| sizes[d]);
        (0..self.sizes.len()).all(|d| size(d) == if reduced.dims[d] { 1 } else { self.sizes[d] })
    }

    /// The iteration space of both, if one kernel can go through it.
    pub(super) fn with(&self, other: &IterationSpace) -> Option<IterationSpace> {
        if self.sizes == other.sizes {
            return match (&self.reduced, &other.reduced) {
                (Some(a), Some(b)) if a != b => None,
                (Some(_), _) => Some(self.clone()),
                (None, _) => Some(other.clone()),
            };
        }
        match (&self.reduced, &other.reduced) {
            (Some(_), None) => self.has_rows_of(&other.sizes).then(|| self.clone()),
            (None, Some(_)) => other.has_rows_of(&self.sizes).then(|| other.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(dims: &[bool], channels: bool) -> ReducedDims {
        ReducedDims { dims: dims.into(), channels }
    }

    #[test]
    fn what_is_reduced_among_what_is_kept_leaves_strips() {
        let strip = |sizes: &[i64], dims: &[bool]| {
            IterationSpace::reducing(sizes, ReducedDims { dims: dims.into(), channels: false }).strip()
        };
        assert_eq!(strip(&[4, 128, 32, 16], &[true, false, true, false]), Some(16));
        assert_eq!(strip(&[4, 1, 32, 16], &[true, false, true, false]), None, "columns");
        assert_eq!(strip(&[4, 128, 32, 1], &[true, false, true, false]), None, "rows");
        assert_eq!(strip(&[4, 128, 1, 16], &[true, false, true, false]), None);
        assert_eq!(IterationSpace::pointwise(&[4, 4]).strip(), None);
    }

    #[test]
    fn rows_and_elements_share_a_domain() {
        let elements = IterationSpace::pointwise(&[8, 4]);
        let softmax = IterationSpace::reducing(&[8, 4], reduced(&[false, true], false));
        assert_eq!(elements.with(&softmax), Some(softmax.clone()));
        assert_eq!(IterationSpace::pointwise(&[8, 1]).with(&softmax), Some(softmax.clone()));
        assert_eq!(softmax.with(&IterationSpace::pointwise(&[8])), None);
        assert_eq!(softmax.with(&IterationSpace::reducing(&[8, 4], reduced(&[true, false], false))), None);
        assert_eq!((softmax.each(), softmax.elements()), (4, 32));
        let all = IterationSpace::reducing(&[8, 4], reduced(&[true, true], false));
        assert_eq!(all.with(&IterationSpace::pointwise(&[])), Some(all.clone()));
    }

    #[test]
    fn values_lie_where_their_sizes_say() {
        let norm = IterationSpace::reducing(&[2, 3, 5], reduced(&[true, false, true], true));
        let strides = |dims: Option<Dims>| dims.map(|d| d.to_vec());
        assert_eq!(strides(norm.of_operand(&[3], &[1])), Some(vec![0, 1, 0]));
        assert_eq!(strides(norm.of_result(&[3], &[1])), Some(vec![0, 1, 0]));
        assert_eq!(strides(norm.broadcast(&[3], &[1])), None);
        assert_eq!(strides(norm.broadcast(&[5], &[1])), Some(vec![0, 0, 1]));
        assert_eq!(strides(norm.of_result(&[2, 3, 5], &[15, 5, 1])), Some(vec![15, 5, 1]));
    }
}
