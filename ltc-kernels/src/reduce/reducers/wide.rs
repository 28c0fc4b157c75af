//! Lines of single precision by AVX2: the bits of `chunks_of`, in a third of its time. Rows are short often, and then
//! most of reducing them is how lanes become one.

use std::arch::x86_64::{
    __m128, __m256, _CMP_GT_OQ, _CMP_LT_OQ, _CMP_UNORD_Q, _mm_add_pd, _mm_add_sd, _mm_blendv_ps, _mm_cmp_ps,
    _mm_cvtsd_f64, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm_or_ps, _mm_unpackhi_pd, _mm256_add_pd,
    _mm256_add_ps, _mm256_blendv_ps, _mm256_castpd256_pd128, _mm256_castps256_ps128, _mm256_cmp_ps, _mm256_cvtps_pd,
    _mm256_extractf128_pd, _mm256_extractf128_ps, _mm256_loadu_ps, _mm256_or_ps, _mm256_set1_ps, _mm256_setzero_ps,
};
use std::marker::PhantomData;

use super::{LANES, Largest, Reduction, Smallest, Sum};
use crate::instruction_set;

/// Whether this machine has AVX2, and it may be used.
pub(super) fn is_wide() -> bool {
    instruction_set() != "portable"
}

/// A reduction of which chunks become one by AVX2. Taken only where [`is_wide`].
pub(super) struct Wide<F>(PhantomData<F>);

/// Lanes of an instruction, and how many of these make all lanes.
const VECTOR: usize = 8;
const VECTORS: usize = LANES / VECTOR;

#[target_feature(enable = "avx2")]
#[inline]
fn vectors(chunk: &[f32; LANES]) -> [__m256; VECTORS] {
    let eight = chunk.as_chunks::<VECTOR>().0;
    // SAFETY: each has eight floats.
    let load = |i: usize| unsafe { _mm256_loadu_ps(eight[i].as_ptr()) };
    [load(0), load(1), load(2), load(3)]
}

/// The first and the last four lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn halves(vector: __m256) -> [__m128; 2] {
    [_mm256_castps256_ps128(vector), _mm256_extractf128_ps::<1>(vector)]
}

#[target_feature(enable = "avx2")]
#[inline]
fn sum(chunks: &[[f32; LANES]]) -> f64 {
    let mut lanes = [_mm256_setzero_ps(); VECTORS];
    for chunk in chunks {
        for (lanes, x) in lanes.iter_mut().zip(vectors(chunk)) {
            *lanes = _mm256_add_ps(*lanes, x);
        }
    }
    let [a, b, c, d] = [halves(lanes[0]), halves(lanes[1]), halves(lanes[2]), halves(lanes[3])];
    let quarter = |which: usize| {
        let join = |x: [__m128; 2], y: [__m128; 2]| _mm256_add_pd(_mm256_cvtps_pd(x[which]), _mm256_cvtps_pd(y[which]));
        _mm256_add_pd(join(a, c), join(b, d))
    };
    let totals = _mm256_add_pd(quarter(0), quarter(1));
    let totals = _mm_add_pd(_mm256_castpd256_pd128(totals), _mm256_extractf128_pd::<1>(totals));
    _mm_cvtsd_f64(_mm_add_sd(totals, _mm_unpackhi_pd(totals, totals)))
}

/// The lane that is beyond all others, as `OUTER` compares them; NaN if there is one.
#[target_feature(enable = "avx2")]
#[inline]
fn outermost<const OUTER: i32>(chunks: &[[f32; LANES]], start: f32) -> f32 {
    let outer = |so_far: __m256, x: __m256| {
        let taken = _mm256_or_ps(_mm256_cmp_ps::<OUTER>(x, so_far), _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        _mm256_blendv_ps(so_far, x, taken)
    };
    let outer_of_four = |so_far: __m128, x: __m128| {
        let taken = _mm_or_ps(_mm_cmp_ps::<OUTER>(x, so_far), _mm_cmp_ps::<_CMP_UNORD_Q>(x, x));
        _mm_blendv_ps(so_far, x, taken)
    };
    let mut lanes = [_mm256_set1_ps(start); VECTORS];
    for chunk in chunks {
        for (lanes, x) in lanes.iter_mut().zip(vectors(chunk)) {
            *lanes = outer(*lanes, x);
        }
    }
    let [a, b, c, d] = lanes;
    let [lower, upper] = halves(outer(outer(a, c), outer(b, d)));
    let four = outer_of_four(lower, upper);
    let two = outer_of_four(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(outer_of_four(two, _mm_movehdup_ps(two)))
}

macro_rules! wide {
    ($($reducer:ident: $total:ty, |$chunks:ident| $total_of:expr;)*) => {$(
        impl Reduction for Wide<$reducer<f32>> {
            type Element = f32;
            type Total = $total;
            const START: $total = <$reducer<f32>>::START;
            const EMPTY: f32 = <$reducer<f32>>::EMPTY;
            #[inline(always)]
            fn lane(so_far: f32, x: f32) -> f32 {
                <$reducer<f32>>::lane(so_far, x)
            }
            #[inline(always)]
            fn add(so_far: $total, x: f32) -> $total {
                <$reducer<f32>>::add(so_far, x)
            }
            #[inline(always)]
            fn join(a: $total, b: $total) -> $total {
                <$reducer<f32>>::join(a, b)
            }
            fn value(total: $total) -> f32 {
                <$reducer<f32>>::value(total)
            }
            fn bits(total: $total) -> u64 {
                <$reducer<f32>>::bits(total)
            }
            fn total(bits: u64) -> $total {
                <$reducer<f32>>::total(bits)
            }
            #[inline(always)]
            fn chunks($chunks: &[[f32; LANES]]) -> $total {
                // SAFETY: a wide reduction is taken only where there is AVX2.
                unsafe { $total_of }
            }
        }
    )*};
}

wide! {
    Sum: f64, |chunks| sum(chunks);
    Largest: f32, |chunks| outermost::<_CMP_GT_OQ>(chunks, Self::START);
    Smallest: f32, |chunks| outermost::<_CMP_LT_OQ>(chunks, Self::START);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::reducers::chunks_of;

    fn agree<F: Reduction<Element = f32>>(chunks: &[[f32; LANES]])
    where
        Wide<F>: Reduction<Element = f32, Total = F::Total>,
    {
        let (narrow, wide) = (chunks_of::<F>(chunks), Wide::<F>::chunks(chunks));
        // Which NaN is nobody's promise.
        let is_none = F::value(narrow).is_nan() && F::value(wide).is_nan();
        assert!(is_none || F::bits(narrow) == F::bits(wide), "{chunks:?}");
    }

    #[test]
    fn chunks_have_the_bits_of_the_plain_way() {
        if !is_wide() {
            return;
        }
        let odd = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, 3e38, -3e38];
        for seed in 0..2000u32 {
            let mut state = seed.wrapping_mul(2_654_435_761) | 1;
            let mut draw = || {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state
            };
            let mut element = || match draw() {
                x if x % 64 < seed % 3 * 8 => odd[x as usize / 64 % odd.len()],
                x => (x as f32 / 1e9).sin() * 10f32.powi((x % 7) as i32 - 3),
            };
            let chunks: Vec<[f32; LANES]> = (0..seed % 5).map(|_| std::array::from_fn(|_| element())).collect();
            agree::<Sum<f32>>(&chunks);
            agree::<Largest<f32>>(&chunks);
            agree::<Smallest<f32>>(&chunks);
        }
    }
}
