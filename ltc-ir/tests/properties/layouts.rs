//! Layouts against the list of their elements' offsets, and scalars.

use std::collections::BTreeSet;

use ltc_ir::{DType, Layout, Scalar, layout};
use proptest::{collection::vec, prelude::*};

use crate::random;

/// Offsets of all elements, in row-major order of indices.
fn offsets(sizes: &[i64], strides: &[i64]) -> Vec<i64> {
    sizes.iter().zip(strides).fold(vec![0], |outer, (&size, &stride)| {
        outer.iter().flat_map(|&o| (0..size).map(move |i| o + i * stride)).collect()
    })
}

/// Sizes and strides; often those of a permuted dense tensor.
fn dims() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let size = || prop_oneof![1 => Just(0i64), 8 => 1i64..4];
    let free = vec((size(), 0i64..13), 0..5).prop_map(|d| d.into_iter().unzip());
    let permuted =
        (vec(size(), 0..5), any::<u64>(), any::<bool>()).prop_map(|(mut sizes, seed, odd): (Vec<i64>, u64, bool)| {
            let mut strides = layout::contiguous_strides(&sizes).to_vec();
            let rank = strides.len();
            for i in 1..rank {
                let j = (seed >> (8 * i)) as usize % (i + 1);
                sizes.swap(i, j);
                strides.swap(i, j);
            }
            // The stride of a dimension of size 1 is free.
            for (size, stride) in sizes.iter().zip(&mut strides) {
                *stride += (odd && *size == 1) as i64 * 7;
            }
            (sizes, strides)
        });
    prop_oneof![free, permuted]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_a_layout_says_of_its_elements((sizes, strides) in dims()) {
        let l = Layout::strided(DType::F32, &sizes, &strides);
        let offsets = offsets(&sizes, &strides);
        let numel = offsets.len() as i64;
        prop_assert_eq!(l.numel(), numel);
        let end = offsets.iter().max().map_or(0, |m| m + 1);
        prop_assert_eq!(layout::storage_elements(&sizes, &strides), end);
        prop_assert_eq!(l.storage_bytes(), 4 * end as usize);
        prop_assert_eq!(l.is_contiguous(), offsets.iter().copied().eq(0..numel));
        let distinct: BTreeSet<i64> = offsets.iter().copied().collect();
        prop_assert_eq!(l.is_dense(), distinct.len() as i64 == numel && end == numel);
        prop_assert_eq!(layout::is_dense(&sizes, &strides), l.is_dense());
    }

    #[test]
    fn row_major_is_contiguous_and_dense(dtype in random::dtype(), sizes in vec(0i64..5, 0..6)) {
        let l = Layout::contiguous(dtype, &sizes);
        prop_assert!(l.is_contiguous() && l.is_dense());
        prop_assert!(l.is(dtype, &sizes, &layout::contiguous_strides(&sizes)));
        prop_assert_eq!(l.storage_bytes(), l.numel() as usize * dtype.size_of());
    }

    #[test]
    fn layouts_are_equal_by_parts(a in random::layout(), b in random::layout()) {
        let same = a.is(b.dtype(), b.sizes(), b.strides());
        prop_assert_eq!(a == b, same);
        prop_assert_eq!(a.hash() == b.hash(), same);
        prop_assert_eq!(a.to_string() == b.to_string(), same);
    }

    #[test]
    fn scalars_are_their_type_and_bits(a in random::scalar(), b in random::scalar()) {
        let words = |s: Scalar| {
            let mut words = Default::default();
            s.push_words(&mut words);
            words
        };
        prop_assert_eq!(words(a).len(), ltc_ir::args::scalar_words(a.dtype()));
        prop_assert_eq!(Scalar::from_words(a.dtype(), &words(a)), Some(a));
        prop_assert_eq!(Scalar::from_words(a.dtype(), &words(a)[1..]), None);
        prop_assert_eq!(a == b, a.dtype() == b.dtype() && words(a) == words(b));
        prop_assert_eq!(a, a);
    }
}

#[test]
fn dtypes_have_names_and_codes_of_their_own() {
    for d in DType::ALL {
        assert_eq!(DType::from_code(d as u8), Some(d));
        assert_eq!(DType::from_name(d.name()), Some(d));
    }
    assert_eq!(DType::from_code(12), None);
    assert_eq!(DType::from_name("f128"), None);
}
