//! Powers.

use super::{Arith, SHIFT, exp_rest, log_parts};

/// Exponents that libtorch has short cuts for where they are numbers (`aten/src/ATen/native/Pow.cpp` and
/// `aten/src/ATen/native/cpu/PowKernel.cpp`).
pub(crate) fn is_short(exponent: f64) -> bool {
    [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0].contains(&exponent)
}

/// Of the logarithm: `atanh(r) = r + r^3 / 3 + r^5 P(r^2)`.
const ATANH: [f32; 3] = [0.118_733_19, 0.142_663_94, 0.200_001_55];
/// `2 / ln 2` in two parts.
const TO_LOG2: [f32; 2] = [2.885_39, 3.851_926e-8];

/// The logarithm to base 2 of a number above zero, in two parts of which the second is little beside the first.
#[inline(always)]
fn log2_parts<A: Arith>(m: &A, x: A::V) -> (A::V, A::V) {
    let neg = |x: A::V| m.xor(x, m.bits(1 << 31));
    let tiny = m.lt(x, m.num(f32::MIN_POSITIVE));
    let scaled = m.pick(tiny, m.mul(x, m.num(8_388_608.0)), x);
    let (e, f) = log_parts(m, scaled);
    let e = m.sub(m.float(e), m.and(tiny, m.num(23.0)));
    // r = f / (2 + f), and what its rounding leaves.
    let high = m.add(f, m.num(2.0));
    let low = m.sub(f, m.sub(high, m.num(2.0)));
    let part = m.div(m.num(1.0), high);
    let r = m.mul(f, part);
    let rest = m.mul(m.fma(neg(r), low, m.fma(neg(r), high, f)), part);
    let square = m.mul(r, r);
    let cube = m.mul(r, square);
    // A third of the cube, and what the roundings of the square, the cube and the third leave.
    let [third, third_rest] = [1.0 / 3.0, -9.934_107e-9].map(|x| m.num(x));
    let cube_rest = m.fma(r, m.fma(r, r, neg(square)), m.fma(r, square, neg(cube)));
    let term = m.mul(cube, third);
    let term_rest = m.fma(cube, third_rest, m.fma(cube, third, neg(term)));
    let term_rest = m.fma(cube_rest, third, m.fma(m.mul(cube, square), m.poly(square, ATANH), term_rest));
    let rest = m.add(m.fma(rest, square, rest), term_rest);
    let sum = m.add(r, term);
    let (r, rest) = (sum, m.add(m.sub(term, m.sub(sum, r)), rest));
    let [c, c_rest] = TO_LOG2.map(|c| m.num(c));
    let l = m.mul(r, c);
    let rest = m.fma(rest, c, m.fma(r, c_rest, m.fma(r, c, neg(l))));
    let sum = m.add(e, l);
    let rest = m.add(m.sub(l, m.sub(sum, e)), rest);
    let log = m.add(sum, rest);
    (log, m.sub(rest, m.sub(log, sum)))
}

/// `x` to the power `y`, as C has it.
#[inline(always)]
pub(crate) fn pow<A: Arith>(m: &A, x: A::V, y: A::V) -> A::V {
    let (ax, zero, one, infinity) = (m.abs(x), m.num(0.0), m.num(1.0), m.num(f32::INFINITY));
    let (log, rest) = log2_parts(m, ax);
    let z = m.mul(y, log);
    let z_rest = m.fma(y, rest, m.fma(y, log, m.xor(z, m.bits(1 << 31))));
    // Beyond this the result is infinite or zero.
    let z_rest = m.pick(m.le(m.abs(z), m.num(160.0)), z_rest, zero);
    let z = m.max(m.num(-152.0), m.min(m.num(152.0), z));
    let shifted = m.add(z, m.num(SHIFT));
    let n = m.sub(shifted, m.num(SHIFT));
    let r = m.add(m.sub(z, n), z_rest);
    let p = exp_rest(m, m.mul(r, m.num(std::f32::consts::LN_2)));
    let power = m.scaled(m.add(p, one), n, shifted);
    let falls = m.lt(y, zero);
    let power = m.pick(m.eq(ax, zero), m.pick(falls, infinity, zero), power);
    let power = m.pick(m.eq(ax, infinity), m.pick(falls, zero, infinity), power);
    let power = m.pick(m.eq(ax, one), one, power);
    // Below zero: the sign of odd powers, and no number but for whole ones.
    let is_whole = m.eq(m.trunc(y), y);
    let half = m.mul(y, m.num(0.5));
    let is_odd = m.andn(m.eq(m.trunc(half), half), is_whole);
    let power = m.or(power, m.and(is_odd, m.sign(x)));
    let has_none = m.and(m.andn(is_whole, m.lt(x, zero)), m.lt(ax, infinity));
    let power = m.pick(m.or(has_none, m.or(m.is_nan(x), m.is_nan(y))), m.num(f32::NAN), power);
    m.pick(m.or(m.eq(y, zero), m.eq(x, one)), one, power)
}
