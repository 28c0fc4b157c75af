//! Reductions: many elements become one.
//!
//! An accumulator is eight bytes, whatever is reduced. Sums of floats are kept in double precision, so that long ones
//! lose nothing; within a line they are added lane by lane first, as libtorch's cascades are.

use crate::{
    ir::{ComputeType, KernelOp},
    loops::vectorised,
};

#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(target_arch = "x86_64")]
use wide::{Wide, is_wide};

/// Elements added side by side.
pub(super) const LANES: usize = 32;
/// Lines of columns added as elements, before they are added to an accumulator.
const RUN: usize = 64;

/// A reduction over elements of one type.
trait Reduction {
    type Element: Copy;
    /// What elements become one after the other.
    type Total: Copy;
    const START: Self::Total;
    /// Where a line's lanes start, and one more element of a lane.
    const EMPTY: Self::Element;
    fn lane(so_far: Self::Element, x: Self::Element) -> Self::Element;
    fn add(so_far: Self::Total, x: Self::Element) -> Self::Total;
    fn join(a: Self::Total, b: Self::Total) -> Self::Total;
    /// The value of all, and the accumulator's bits and back.
    fn value(total: Self::Total) -> Self::Element;
    fn bits(total: Self::Total) -> u64;
    fn total(bits: u64) -> Self::Total;
    /// What whole chunks of a line become: lane by lane first.
    #[inline(always)]
    fn chunks(chunks: &[[Self::Element; LANES]]) -> Self::Total
    where
        Self: Sized,
    {
        chunks_of::<Self>(chunks)
    }
}

struct Sum<T>(std::marker::PhantomData<T>);
struct Largest<T>(std::marker::PhantomData<T>);
struct Smallest<T>(std::marker::PhantomData<T>);

impl Reduction for Sum<f32> {
    type Element = f32;
    type Total = f64;
    const START: f64 = 0.0;
    const EMPTY: f32 = 0.0;
    #[inline(always)]
    fn lane(so_far: f32, x: f32) -> f32 {
        so_far + x
    }
    #[inline(always)]
    fn add(so_far: f64, x: f32) -> f64 {
        so_far + f64::from(x)
    }
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a + b
    }
    fn value(total: f64) -> f32 {
        total as f32
    }
    fn bits(total: f64) -> u64 {
        total.to_bits()
    }
    fn total(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

/// Reductions whose accumulator is an element.
macro_rules! plain {
    ($($reducer:ident of $t:ty: $start:expr, |$a:ident, $x:ident| $step:expr, $word:ty, $to:expr, $from:expr;)*) => {$(
        impl Reduction for $reducer<$t> {
            type Element = $t;
            type Total = $t;
            const START: $t = $start;
            const EMPTY: $t = $start;
            #[inline(always)]
            fn lane($a: $t, $x: $t) -> $t { $step }
            #[inline(always)]
            fn add($a: $t, $x: $t) -> $t { $step }
            #[inline(always)]
            fn join($a: $t, $x: $t) -> $t { $step }
            fn value(total: $t) -> $t { total }
            fn bits(total: $t) -> u64 { u64::from(($to)(total)) }
            fn total(bits: u64) -> $t { ($from)(bits as $word) }
        }
    )*};
}

plain! {
    Sum of f64: 0.0, |a, x| a + x, u64, f64::to_bits, f64::from_bits;
    Sum of i64: 0, |a, x| a.wrapping_add(x), u64, |t| t as u64, |b| b as i64;
    Largest of f32: f32::NEG_INFINITY, |a, x| if x > a || x.is_nan() { x } else { a },
        u32, f32::to_bits, f32::from_bits;
    Largest of f64: f64::NEG_INFINITY, |a, x| if x > a || x.is_nan() { x } else { a },
        u64, f64::to_bits, f64::from_bits;
    Smallest of f32: f32::INFINITY, |a, x| if x < a || x.is_nan() { x } else { a },
        u32, f32::to_bits, f32::from_bits;
    Smallest of f64: f64::INFINITY, |a, x| if x < a || x.is_nan() { x } else { a },
        u64, f64::to_bits, f64::from_bits;
}

/// All lanes, of which the upper half joins the lower one until one is left: one after the other, each would wait for
/// the last. On its own, lest the compiler arranges lanes to suit it.
#[inline(never)]
fn total_of<F: Reduction>(lanes: &[F::Element; LANES]) -> F::Total {
    let mut totals = lanes.map(|lane| F::add(F::START, lane));
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        let (lower, upper) = totals.split_at_mut(count);
        lower.iter_mut().zip(upper).for_each(|(a, b)| *a = F::join(*a, *b));
    }
    totals[0]
}

#[inline(always)]
fn chunks_of<F: Reduction>(chunks: &[[F::Element; LANES]]) -> F::Total {
    let mut lanes = [F::EMPTY; LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = F::lane(*lane, *x);
        }
    }
    total_of::<F>(&lanes)
}

/// A reduction of one line.
#[inline(always)]
fn line<F: Reduction>(xs: &[F::Element]) -> F::Total {
    let (chunks, rest) = xs.as_chunks::<LANES>();
    let total = if chunks.is_empty() { F::START } else { F::chunks(chunks) };
    rest.iter().fold(total, |total, x| F::add(total, *x))
}

vectorised! {
    /// Reduces rows of `each` elements into an accumulator each.
    fn rows_of<F: Reduction>(accumulators: &mut [u64], block: &[F::Element], each: usize) {
        for (accumulator, row) in accumulators.iter_mut().zip(block.chunks_exact(each.max(1))) {
            *accumulator = F::bits(F::join(F::total(*accumulator), line::<F>(row)));
        }
    }
}

vectorised! {
    /// Reduces lines with an element for each accumulator.
    fn columns_of<F: Reduction>(accumulators: &mut [u64], block: &[F::Element]) {
        let count = accumulators.len();
        let mut add = |i: usize, x: F::Element| accumulators[i] = F::bits(F::add(F::total(accumulators[i]), x));
        if block.len() == count {
            return block.iter().enumerate().for_each(|(i, x)| add(i, *x));
        }
        // Short lines are taken several at a time.
        let width = if count < LANES { count * (LANES / count.max(1)) } else { count };
        for block in block.chunks(width * RUN) {
            let rest = block.len() - block.len() % width;
            for first in (0..width).step_by(LANES) {
                let n = LANES.min(width - first);
                let mut lanes = [F::EMPTY; LANES];
                for line in block.chunks_exact(width) {
                    match line[first..].first_chunk::<LANES>() {
                        Some(line) => lanes.iter_mut().zip(line).for_each(|(lane, x)| *lane = F::lane(*lane, *x)),
                        None => lanes.iter_mut().zip(&line[first..]).for_each(|(lane, x)| *lane = F::lane(*lane, *x)),
                    }
                }
                lanes[..n].iter().enumerate().for_each(|(i, lane)| add((first + i) % count, *lane));
            }
            block[rest..].iter().enumerate().for_each(|(i, x)| add(i % count, *x));
        }
    }
}

fn join_of<F: Reduction>(accumulators: &mut [u64], others: &[u64]) {
    for (accumulator, other) in accumulators.iter_mut().zip(others) {
        *accumulator = F::bits(F::join(F::total(*accumulator), F::total(*other)));
    }
}

/// # Safety
/// `values` has room for the results and is aligned for them.
unsafe fn values_of<F: Reduction>(accumulators: &[u64], values: *mut u8) {
    // SAFETY: by this function's contract.
    let values = unsafe { std::slice::from_raw_parts_mut(values.cast::<F::Element>(), accumulators.len()) };
    for (value, accumulator) in values.iter_mut().zip(accumulators) {
        *value = F::value(F::total(*accumulator));
    }
}

/// A reduction as functions over raw blocks. Blocks are aligned for their elements and have as many as said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    pub(crate) start: u64,
    /// Accumulators, a block, how many rows, how many elements each.
    pub(crate) rows: unsafe fn(&mut [u64], *const u8, usize),
    /// Accumulators, a block of lines with as many elements, how many lines.
    pub(crate) columns: unsafe fn(&mut [u64], *const u8, usize),
    pub(crate) join: fn(&mut [u64], &[u64]),
    pub(crate) values: unsafe fn(&[u64], *mut u8),
}

impl Reducer {
    /// `None` where this type has no such reduction.
    pub(crate) fn of(op: KernelOp, ty: ComputeType) -> Option<Reducer> {
        Some(match (op, ty) {
            #[cfg(target_arch = "x86_64")]
            (KernelOp::Sum, ComputeType::F32) if is_wide() => Reducer::new::<Wide<Sum<f32>>>(),
            #[cfg(target_arch = "x86_64")]
            (KernelOp::AMax, ComputeType::F32) if is_wide() => Reducer::new::<Wide<Largest<f32>>>(),
            #[cfg(target_arch = "x86_64")]
            (KernelOp::AMin, ComputeType::F32) if is_wide() => Reducer::new::<Wide<Smallest<f32>>>(),
            (KernelOp::Sum, ComputeType::F32) => Reducer::new::<Sum<f32>>(),
            (KernelOp::Sum, ComputeType::F64) => Reducer::new::<Sum<f64>>(),
            (KernelOp::Sum, ComputeType::I64) => Reducer::new::<Sum<i64>>(),
            (KernelOp::AMax, ComputeType::F32) => Reducer::new::<Largest<f32>>(),
            (KernelOp::AMax, ComputeType::F64) => Reducer::new::<Largest<f64>>(),
            (KernelOp::AMin, ComputeType::F32) => Reducer::new::<Smallest<f32>>(),
            (KernelOp::AMin, ComputeType::F64) => Reducer::new::<Smallest<f64>>(),
            _ => return None,
        })
    }

    fn new<F: Reduction>() -> Reducer {
        /// # Safety
        /// `block` has `each` elements per accumulator, aligned.
        unsafe fn rows<F: Reduction>(accumulators: &mut [u64], block: *const u8, each: usize) {
            // SAFETY: by this function's contract.
            let block = unsafe { std::slice::from_raw_parts(block.cast(), accumulators.len() * each) };
            rows_of::<F>(accumulators, block, each);
        }
        /// # Safety
        /// `block` has `lines` elements per accumulator, aligned.
        unsafe fn columns<F: Reduction>(accumulators: &mut [u64], block: *const u8, lines: usize) {
            // SAFETY: by this function's contract.
            let block = unsafe { std::slice::from_raw_parts(block.cast(), accumulators.len() * lines) };
            columns_of::<F>(accumulators, block);
        }
        Reducer {
            start: F::bits(F::START),
            rows: rows::<F>,
            columns: columns::<F>,
            join: join_of::<F>,
            values: values_of::<F>,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_columns_and_joins_agree() {
        for (n, count) in [(0usize, 3), (1, 3), (5, 1), (31, 3), (32, 40), (33, 31), (100, 5), (200, 33), (300, 64)] {
            let xs: Vec<f32> = (0..n * count).map(|i| (i as f32 * 0.37).sin()).collect();
            let columns: Vec<f32> = (0..n).flat_map(|i| (0..count).map(move |r| r * n + i)).map(|i| xs[i]).collect();
            for code in [KernelOp::Sum, KernelOp::AMax, KernelOp::AMin] {
                let f = Reducer::of(code, ComputeType::F32).expect("a reducer");
                let [mut by_row, mut by_line, mut joined, mut at_once] = [(); 4].map(|()| vec![f.start; count]);
                let values = |totals: &[u64]| {
                    let mut values = vec![0f32; count];
                    // SAFETY: a value per total.
                    unsafe { (f.values)(totals, values.as_mut_ptr().cast()) };
                    values
                };
                // SAFETY: `count` rows of `n` elements; `n` lines of `count`.
                unsafe {
                    if n > 0 {
                        (f.rows)(&mut by_row, xs.as_ptr().cast(), n);
                    }
                    (f.columns)(&mut at_once, columns.as_ptr().cast(), n);
                    for (i, line) in columns.chunks_exact(count).enumerate() {
                        let halves = if i % 2 == 0 { &mut by_line } else { &mut joined };
                        (f.columns)(halves, line.as_ptr().cast(), 1);
                    }
                }
                (f.join)(&mut by_line, &joined);
                let rows = values(&by_row);
                for other in [values(&by_line), values(&at_once)] {
                    let near = |(a, b): (&f32, &f32)| a == b || (a - b).abs() < 1e-5;
                    assert!(rows.iter().zip(&other).all(near), "{code:?} {n} of {count}: {rows:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn nan_wins() {
        let f = Reducer::of(KernelOp::AMax, ComputeType::F32).expect("a reducer");
        for at in 0..40 {
            let mut xs = [1f32; 40];
            xs[at] = f32::NAN;
            let (mut acc, mut value) = ([f.start], [0f32]);
            // SAFETY: one row of 40 elements; one value.
            unsafe {
                (f.rows)(&mut acc, xs.as_ptr().cast(), 40);
                (f.values)(&acc, value.as_mut_ptr().cast());
            }
            assert!(value[0].is_nan());
        }
    }
}
