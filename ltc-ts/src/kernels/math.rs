//! Transcendental functions of one element, written so that a loop over them becomes vector code: no branches, no calls.
//!
//! `F` says whether the machine rounds `a * b + c` once. Polynomials are least-squares fits, weighted towards equal
//! relative error; a test measures each function's distance from the exact value.
#![allow(clippy::excessive_precision, reason = "coefficients as they were fitted")]

/// `a * b + c`, rounded once if `F`.
#[inline(always)]
pub(super) fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn poly<const F: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for c in &coefficients[1..] {
        sum = fma::<F>(sum, x, *c);
    }
    sum
}

/// Coefficients of [`exp`], highest power first; the just-in-time compiler takes the same ones.
#[rustfmt::skip]
pub(super) const EXP: [f32; 5] = [
    1.381_46e-3, 8.368_715_4e-3, 4.166_838_8e-2, 1.666_652_1e-1, 0.499_999_93,
];
/// Of [`log`].
#[rustfmt::skip]
pub(super) const LOG: [f32; 8] = [
    -0.128_916_21, 0.139_844_87, -0.121_842_74, 0.140_058_59, -0.166_804_87, 0.200_104_07, -0.249_997_98,
    0.333_332_16,
];
/// Of [`tanh`] near zero.
#[rustfmt::skip]
pub(super) const TANH: [f32; 7] = [
    -4.554_584_6e-4, 2.582_663_5e-3, -8.264_538_9e-3, 2.166_354e-2, -5.392_930_1e-2, 1.333_297_8e-1,
    -0.333_333_22,
];
/// Of [`erf`] near zero.
#[rustfmt::skip]
pub(super) const ERF_SMALL: [f32; 7] = [
    7.853_854_3e-5, -8.010_191_4e-4, 5.188_327_4e-3, -2.685_381_2e-2, 1.128_358_5e-1, -3.761_262_6e-1,
    0.128_379_17,
];
/// Of the binary logarithm of what [`erf`] lacks to one, from one to four.
#[rustfmt::skip]
pub(super) const ERF_LARGE: [f32; 7] = [
    2.677_261_4e-4, -4.240_952e-3, 3.145_840_8e-2, -1.486_514_7e-1, -9.207_650_4e-1, -1.625_975,
    -5.103_138e-4,
];
/// Of two to the power of what is left of its exponent.
#[rustfmt::skip]
pub(super) const EXP2: [f32; 5] = [
    1.326_335_5e-3, 9.672_581e-3, 5.550_747e-2, 2.402_222_6e-1, 6.931_469_4e-1,
];

/// Adding this leaves the nearest integer in the low bits of the sum.
pub(super) const SHIFT: f32 = 12_582_912.0;

/// e to the x.
#[inline(always)]
pub(super) fn exp<const F: bool>(x: f32) -> f32 {
    // Beyond these the result is infinite or zero; NaN passes both.
    let x = if x > 104.0 { 104.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    // x = n ln 2 + r, and 2^n in two steps, because n may lie outside the range of exponents.
    let shifted = fma::<F>(x, std::f32::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = fma::<F>(n, -0.693_145_75, x);
    let r = fma::<F>(n, -1.428_606_8e-6, r);
    let p = poly::<F, 5>(r, EXP);
    let p = fma::<F>(p * r, r, r) + 1.0;
    // Of NaN, any integer will do.
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23) as u32);
    p * power(half) * power(n.wrapping_sub(half))
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log<const F: bool>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    // scaled = 2^e (1 + f) with 1 + f between 2/3 and 4/3.
    let bits = scaled.to_bits() as i32;
    let e = bits.wrapping_sub(0x3f2a_aaab) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    let q = poly::<F, 8>(f, LOG);
    let square = f * f;
    let tail = fma::<F>(q, f, -0.5);
    let y = fma::<F>(tail, square, f);
    let y = fma::<F>(e, std::f32::consts::LN_2, y);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    // Below zero, and NaN.
    if x >= 0.0 { y } else { f32::NAN }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh<const F: bool>(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let small = poly::<F, 7>(s, TANH);
    let small = fma::<F>(small * s, x, x);
    let large = 1.0 - 2.0 / (exp::<F>(a + a) + 1.0);
    (if a < 0.9 { small } else { large }).copysign(x)
}

/// The error function.
#[inline(always)]
pub(super) fn erf<const F: bool>(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let small = poly::<F, 7>(s, ERF_SMALL);
    let small = fma::<F>(small, x, x);
    // From here on the result is one within half a last place.
    let t = if a > 4.0 { 4.0 } else { a };
    // The rest is two to the power of this, between -26 and -2: far from where exponents end.
    let exponent = poly::<F, 7>(t, ERF_LARGE);
    let shifted = exponent + SHIFT;
    let part = exponent - (shifted - SHIFT);
    let power = fma::<F>(poly::<F, 5>(part, EXP2), part, 1.0);
    let rest = f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23));
    let large = f32::from_bits((1.0 - rest).to_bits() | x.to_bits() & 0x8000_0000);
    // NaN takes the second: it is not at least one.
    if a >= 1.0 { large } else { small }
}

/// Nearest bfloat16, ties to even.
#[inline(always)]
pub(super) fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000;
    if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { f32::from_bits(rounded) }
}

/// Nearest half, ties to even.
#[inline(always)]
pub(super) fn round_f16(x: f32) -> f32 {
    half::f16::from_f32(x).to_f32()
}

/// `x` to the power `y` with the short cuts libtorch takes (`aten/src/ATen/native/cpu/PowKernel.cpp`).
#[inline(always)]
pub(super) fn pow32(x: f32, y: f32) -> f32 {
    match y {
        2.0 => x * x,
        3.0 => x * x * x,
        0.5 => x.sqrt(),
        -0.5 => 1.0 / x.sqrt(),
        -1.0 => 1.0 / x,
        -2.0 => 1.0 / (x * x),
        _ => x.powf(y),
    }
}

/// As [`pow32`].
#[inline(always)]
pub(super) fn pow64(x: f64, y: f64) -> f64 {
    match y {
        2.0 => x * x,
        3.0 => x * x * x,
        0.5 => x.sqrt(),
        -0.5 => 1.0 / x.sqrt(),
        -1.0 => 1.0 / x,
        -2.0 => 1.0 / (x * x),
        _ => x.powf(y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place of the exact value, over values spread evenly over all floats in the range.
    fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let (from, to) = (low.to_bits(), high.to_bits());
        let step = ((to - from) / 400_000).max(1) as usize;
        let one = |x: f32| {
            let e = exact(f64::from(x));
            let ulp = f64::from(f32::from_bits((e.abs() as f32).to_bits() + 1)) - f64::from(e.abs() as f32);
            (f64::from(f(x)) - e).abs() / ulp
        };
        (from..to).step_by(step).flat_map(|b| [f32::from_bits(b), -f32::from_bits(b)]).map(one).fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_within_two_last_places() {
        let exp = worst(exp::<true>, f64::exp, 1e-30, 87.0);
        let log = worst(|x| log::<true>(x.abs()), |x| x.abs().ln(), 1e-44, 3e38);
        let tanh = worst(tanh::<true>, f64::tanh, 1e-30, 20.0);
        assert!(exp < 1.5 && log < 1.5 && tanh < 2.0, "{exp} {log} {tanh}");
    }

    #[test]
    fn special_values() {
        for f in [exp::<true>, log::<true>, tanh::<true>, erf::<true>, exp::<false>, log::<false>] {
            assert!(f(f32::NAN).is_nan());
        }
        assert_eq!((exp::<true>(f32::INFINITY), exp::<true>(f32::NEG_INFINITY)), (f32::INFINITY, 0.0));
        assert_eq!((exp::<true>(0.0), exp::<true>(-100.0)), (1.0, (-100f64).exp() as f32));
        assert_eq!((log::<true>(0.0), log::<true>(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
        assert_eq!((log::<true>(1.0), log::<true>(-1.0).is_nan()), (0.0, true));
        assert_eq!((tanh::<true>(f32::INFINITY), tanh::<true>(-90.0)), (1.0, -1.0));
        assert_eq!(tanh::<true>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!((erf::<true>(f32::INFINITY), erf::<true>(-5.0)), (1.0, -1.0));
        assert_eq!((round_bf16(1.003_906_3), round_bf16(1.011_718_8)), (1.0, 1.015_625));
        assert!(round_bf16(f32::from_bits(0x7f80_0001)).is_nan());
    }
}
