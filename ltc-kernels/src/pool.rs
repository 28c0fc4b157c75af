//! Max pooling over rows of an image, with the positions of the maxima.
//!
//! libtorch's kernel (`aten/src/ATen/native/cpu/MaxPoolKernel.cpp`) looks at one window after the other. This one goes
//! through a row of windows at once, one window position after the other, so that vectors hold neighbouring windows.
//! Values and positions are the same, ties and NaN included.

use std::ops::Range;

use super::loops;

/// A pooling over planes of `height` times `width` single-precision numbers, without gaps between window elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxPool {
    /// Images times channels.
    pub planes: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Numbers of a row.
    pub width: usize,
    /// Result sizes.
    pub out: [usize; 2],
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// Rows and columns from one window to the next.
    pub stride: [usize; 2],
    /// Rows and columns around a plane that count as smaller than any number.
    pub padding: [usize; 2],
}

impl MaxPool {
    /// Planes that are worth a thread of their own.
    pub fn grain(&self) -> usize {
        (40_000 / (self.out[0] * self.out[1] * self.window[0] * self.window[1]).max(1)).max(1)
    }

    /// Pools all planes. `parallel(n, f)` must call `f` for ranges that cover `0..n` once, on any threads.
    ///
    /// # Safety
    /// `input` is readable, `values` and `positions` are writable in all their elements, aligned, and overlap nothing.
    pub unsafe fn run(
        &self,
        input: *const f32,
        values: *mut f32,
        positions: *mut i64,
        parallel: impl FnOnce(usize, &(dyn Fn(Range<usize>) + Sync)),
    ) {
        /// Memory that threads share in disjoint pieces.
        struct Shared(*const f32, *mut f32, *mut i64);
        // SAFETY: threads read the input and write disjoint planes.
        unsafe impl Sync for Shared {}
        impl Shared {
            fn get(&self) -> (*const f32, *mut f32, *mut i64) {
                (self.0, self.1, self.2)
            }
        }
        let shared = Shared(input, values, positions);
        let (image, result) = (self.height * self.width, self.out[0] * self.out[1]);
        parallel(self.planes, &|planes| {
            let (input, values, positions) = shared.get();
            let (first, n) = (planes.start * result, planes.len() * result);
            // SAFETY: by this function's contract; planes of different ranges are disjoint.
            unsafe {
                let input = std::slice::from_raw_parts(input, self.planes * image);
                let values = std::slice::from_raw_parts_mut(values.add(first), n);
                let positions = std::slice::from_raw_parts_mut(positions.add(first), n);
                let wide = cfg!(target_arch = "x86_64") && loops::instruction_set() != "portable";
                self.planes(planes, input, values, positions, wide);
            }
        });
    }

    /// Pools these planes: the maxima, and their positions within the plane. `wide`: with AVX2.
    fn planes(&self, planes: Range<usize>, input: &[f32], values: &mut [f32], positions: &mut [i64], wide: bool) {
        let (image, result) = (self.height * self.width, self.out[0] * self.out[1]);
        let (stride, padding) = (self.stride[1], self.padding[1]);
        let within = padding == 0 && (self.out[1] - 1) * stride + self.window[1] <= self.width;
        let wide = wide && within && stride <= 2 && self.out[1] >= 8;
        for (i, plane) in planes.enumerate() {
            let input = &input[plane * image..(plane + 1) * image];
            for y in 0..self.out[0] {
                let at = i * result + y * self.out[1]..i * result + (y + 1) * self.out[1];
                let (values, positions) = (&mut values[at.clone()], &mut positions[at]);
                let rows = inside(y, 0, self, self.window[0]);
                #[cfg(target_arch = "x86_64")]
                if wide {
                    let window = [rows.len(), self.window[1]];
                    // SAFETY: the caller knows of AVX2; rows are clipped to the image, and columns are within it.
                    unsafe {
                        row_avx2(input, window, (rows.start * self.width, self.width, stride), values, positions)
                    };
                    continue;
                }
                values.fill(f32::NEG_INFINITY);
                for (x, position) in positions.iter_mut().enumerate() {
                    // Where all is -inf, the first element of the window is it.
                    *position = (rows.start * self.width + inside(x, 1, self, self.window[1]).start) as i64;
                }
                for row in rows {
                    for k in 0..self.window[1] {
                        // Results whose window has its column `k` within the image.
                        let first = padding.saturating_sub(k).div_ceil(stride);
                        let end = (self.width + padding).saturating_sub(k).div_ceil(stride).min(self.out[1]);
                        if first < end {
                            let start = row * self.width + first * stride + k - padding;
                            take(input, start, stride, &mut values[first..end], &mut positions[first..end]);
                        }
                    }
                }
            }
        }
    }
}

/// Rows (dimension 0) or columns (1) of the image that result `at` looks at.
fn inside(at: usize, dimension: usize, pool: &MaxPool, window: usize) -> Range<usize> {
    let size = [pool.height, pool.width][dimension];
    let start = at * pool.stride[dimension];
    let end = (start + window).saturating_sub(pool.padding[dimension]).min(size);
    start.saturating_sub(pool.padding[dimension])..end
}

/// Takes elements `start`, `start + stride`, ... where they are larger.
fn take(input: &[f32], start: usize, stride: usize, values: &mut [f32], positions: &mut [i64]) {
    for (i, (value, position)) in values.iter_mut().zip(positions).enumerate() {
        let at = start + i * stride;
        let v = input[at];
        if v > *value || v.is_nan() {
            (*value, *position) = (v, at as i64);
        }
    }
}

/// A row of windows, eight at a time, that lie next to each other or overlap by half and have all their elements within
/// the image. The first element of the first window is `start`; rows of the image are `width` apart.
///
/// # Safety
/// The machine has AVX2. `values` and `positions` are of one length, at least eight, and the windows lie within
/// `input`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn row_avx2(
    input: &[f32],
    [rows, columns]: [usize; 2],
    (start, width, stride): (usize, usize, usize),
    values: &mut [f32],
    positions: &mut [i64],
) {
    use std::arch::x86_64::*;
    let n = values.len();
    let steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(stride as i32));
    let mut i = 0;
    while i < n {
        // The last eight may overlap those before.
        let at = i.min(n - 8);
        let mut maxima = _mm256_set1_ps(f32::NEG_INFINITY);
        let mut places = _mm256_add_epi32(_mm256_set1_epi32((start + at * stride) as i32), steps);
        for row in 0..rows {
            for column in 0..columns {
                let first = start + at * stride + row * width + column;
                // SAFETY: these are elements of windows `at` to `at + 7`, which lie within the input.
                let v = unsafe {
                    let from = input.as_ptr().add(first);
                    if stride == 1 {
                        _mm256_loadu_ps(from)
                    } else {
                        // Elements 0 to 7 and 7 to 14, of which the even ones.
                        let mixed = _mm256_shuffle_ps::<0xd8>(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(7)));
                        _mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(_mm256_castps_pd(mixed)))
                    }
                };
                let larger = _mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(v, maxima), _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
                let place = _mm256_add_epi32(_mm256_set1_epi32(first as i32), steps);
                maxima = _mm256_blendv_ps(maxima, v, larger);
                places = _mm256_blendv_epi8(places, place, _mm256_castps_si256(larger));
            }
        }
        // SAFETY: `at + 8 <= n`.
        unsafe {
            _mm256_storeu_ps(values.as_mut_ptr().add(at), maxima);
            let to = positions.as_mut_ptr().add(at).cast::<__m256i>();
            _mm256_storeu_si256(to, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(places)));
            _mm256_storeu_si256(to.add(1), _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(places)));
        }
        i += 8;
    }
}
