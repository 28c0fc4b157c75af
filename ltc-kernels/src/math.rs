//! Transcendental functions, each written once: over [`Arith`], which is one element here, so that a loop over it
//! becomes vector code, a vector program in the just-in-time compiler, and text for GPUs. So all give the same bits.
//!
//! There are no branches and no calls. Polynomials are least-squares fits, weighted towards equal relative error; a
//! test measures each function's distance from the exact value. Where a function is not good for every argument it says
//! so by [`Arith::check`], and those elements are computed by the system's function of that name.
#![allow(clippy::excessive_precision, reason = "coefficients as they were fitted")]

use super::ir::KernelOp;

/// What functions are made of. A value is 32 bits: a float, an integer, or a mask, of which only the sign bit counts.
pub(super) trait Arith {
    /// One element, or one of each element of a vector.
    type V: Copy;

    fn bits(&self, bits: u32) -> Self::V;
    fn add(&self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(&self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(&self, a: Self::V, b: Self::V) -> Self::V;
    fn div(&self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the machine can.
    fn fma(&self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The first where it is smaller, else the second.
    fn min(&self, a: Self::V, b: Self::V) -> Self::V;
    /// The first where it is larger, else the second.
    fn max(&self, a: Self::V, b: Self::V) -> Self::V;
    /// Rounded to zero.
    fn trunc(&self, a: Self::V) -> Self::V;
    /// Masks; false of NaN.
    fn lt(&self, a: Self::V, b: Self::V) -> Self::V;
    fn le(&self, a: Self::V, b: Self::V) -> Self::V;
    fn eq(&self, a: Self::V, b: Self::V) -> Self::V;
    fn is_nan(&self, a: Self::V) -> Self::V;
    /// The second where the mask is set, else the third.
    fn pick(&self, mask: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    fn and(&self, a: Self::V, b: Self::V) -> Self::V;
    /// Not the first, and the second.
    fn andn(&self, a: Self::V, b: Self::V) -> Self::V;
    fn or(&self, a: Self::V, b: Self::V) -> Self::V;
    fn xor(&self, a: Self::V, b: Self::V) -> Self::V;
    fn add_int(&self, a: Self::V, b: Self::V) -> Self::V;
    fn sub_int(&self, a: Self::V, b: Self::V) -> Self::V;
    fn shl(&self, a: Self::V, by: u8) -> Self::V;
    fn shr(&self, a: Self::V, by: u8) -> Self::V;
    /// The sign is shifted in.
    fn sar(&self, a: Self::V, by: u8) -> Self::V;
    /// An integer as a float.
    fn float(&self, a: Self::V) -> Self::V;
    /// Elements with this mask set are not computed rightly here. One element knows from elsewhere (`ops::Map1::fits`).
    fn check(&self, fails: Self::V);

    fn num(&self, x: f32) -> Self::V {
        self.bits(x.to_bits())
    }

    fn poly<const N: usize>(&self, x: Self::V, coefficients: [f32; N]) -> Self::V {
        let mut sum = self.num(coefficients[0]);
        for c in &coefficients[1..] {
            sum = self.fma(sum, x, self.num(*c));
        }
        sum
    }

    fn abs(&self, x: Self::V) -> Self::V {
        self.andn(self.bits(SIGN), x)
    }

    fn sign(&self, x: Self::V) -> Self::V {
        self.and(self.bits(SIGN), x)
    }

    fn copysign(&self, x: Self::V, sign: Self::V) -> Self::V {
        self.or(self.abs(x), self.sign(sign))
    }

    /// Two to the power of an integer between -126 and 127.
    fn power(&self, n: Self::V) -> Self::V {
        self.shl(self.add_int(n, self.bits(127)), 23)
    }

    /// `p`, near one, times two to the power of a whole number that need not be an exponent, rounded once. `n` is the
    /// number, `shifted` has it in its low bits.
    fn scaled(&self, p: Self::V, _n: Self::V, shifted: Self::V) -> Self::V {
        scaled_in_halves(self, p, shifted)
    }
}

/// One element. `F` says whether the machine rounds `a * b + c` once.
#[derive(Clone, Copy)]
pub(super) struct One<const F: bool>;

macro_rules! one_element {
    ($($name:ident($($arg:ident),+) $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(&self, $($arg: u32),+) -> u32 {
            $(let $arg = f32::from_bits($arg);)+
            ($result).to_bits()
        }
    )*};
}

macro_rules! masks {
    ($($name:ident($($arg:ident),+) $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(&self, $($arg: u32),+) -> u32 {
            $(let $arg = f32::from_bits($arg);)+
            if $result { u32::MAX } else { 0 }
        }
    )*};
}

macro_rules! integers {
    ($($name:ident($($arg:ident: $t:ty),+) $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(&self, $($arg: $t),+) -> u32 {
            $result
        }
    )*};
}

impl<const F: bool> Arith for One<F> {
    type V = u32;

    one_element! {
        add(a, b) a + b;
        sub(a, b) a - b;
        mul(a, b) a * b;
        div(a, b) a / b;
        fma(a, b, c) fma::<F>(a, b, c);
        min(a, b) if a < b { a } else { b };
        max(a, b) if a > b { a } else { b };
        trunc(a) a.trunc();
    }

    masks! {
        lt(a, b) a < b;
        le(a, b) a <= b;
        eq(a, b) a == b;
        is_nan(a) a.is_nan();
    }

    integers! {
        bits(bits: u32) bits;
        pick(mask: u32, yes: u32, no: u32) if (mask as i32) < 0 { yes } else { no };
        and(a: u32, b: u32) a & b;
        andn(a: u32, b: u32) !a & b;
        or(a: u32, b: u32) a | b;
        xor(a: u32, b: u32) a ^ b;
        add_int(a: u32, b: u32) a.wrapping_add(b);
        sub_int(a: u32, b: u32) a.wrapping_sub(b);
        shl(a: u32, by: u8) a << by;
        shr(a: u32, by: u8) a >> by;
        sar(a: u32, by: u8) (a as i32 >> by) as u32;
        float(a: u32) (a as i32 as f32).to_bits();
    }

    #[inline(always)]
    fn check(&self, _: u32) {}
}

/// `a * b + c`, rounded once if `F`.
#[inline(always)]
pub(super) fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

const SIGN: u32 = 1 << 31;

/// Coefficients of [`exp`], highest power first.
#[rustfmt::skip]
const EXP: [f32; 5] = [
    1.381_46e-3, 8.368_715_4e-3, 4.166_838_8e-2, 1.666_652_1e-1, 0.499_999_93,
];
/// Of [`log`].
#[rustfmt::skip]
const LOG: [f32; 8] = [
    -0.128_916_21, 0.139_844_87, -0.121_842_74, 0.140_058_59, -0.166_804_87, 0.200_104_07, -0.249_997_98,
    0.333_332_16,
];
/// Of [`tanh`] near zero.
#[rustfmt::skip]
const TANH: [f32; 7] = [
    -4.554_584_6e-4, 2.582_663_5e-3, -8.264_538_9e-3, 2.166_354e-2, -5.392_930_1e-2, 1.333_297_8e-1,
    -0.333_333_22,
];
/// Of [`erf`] near zero.
#[rustfmt::skip]
const ERF_SMALL: [f32; 7] = [
    7.853_854_3e-5, -8.010_191_4e-4, 5.188_327_4e-3, -2.685_381_2e-2, 1.128_358_5e-1, -3.761_262_6e-1,
    0.128_379_17,
];
/// Of the binary logarithm of what [`erf`] lacks to one, from one to four.
#[rustfmt::skip]
const ERF_LARGE: [f32; 7] = [
    2.677_261_4e-4, -4.240_952e-3, 3.145_840_8e-2, -1.486_514_7e-1, -9.207_650_4e-1, -1.625_975,
    -5.103_138e-4,
];
/// Of two to the power of what is left of its exponent.
#[rustfmt::skip]
const EXP2: [f32; 5] = [
    1.326_335_5e-3, 9.672_581e-3, 5.550_747e-2, 2.402_222_6e-1, 6.931_469_4e-1,
];
/// Of [`sin`], over squares.
const SIN: [f32; 3] = [-1.949_685_2e-4, 8.332_027e-3, -1.666_665_2e-1];
/// Of [`cos`], over squares.
const COS: [f32; 3] = [2.440_947_4e-5, -1.388_710_7e-3, 4.166_664e-2];
/// Of [`sinh`] near zero, over squares.
const SINH: [f32; 3] = [2.037_244_8e-4, 8.330_28e-3, 1.666_671_6e-1];
/// A quarter turn in three parts, each what the ones before lack, to be taken off. All have one sign, so that -0 stays
/// what it is.
const QUARTER: [f32; 3] = [-1.570_796_251, -7.549_789_4e-8, -5.390_302_5e-15];

/// Adding this leaves the nearest integer in the low bits of the sum.
const SHIFT: f32 = 12_582_912.0;

/// Beyond this many radians quarter turns are too many to be taken off in three parts.
pub(super) const MOST_RADIANS: f32 = 100_000.0;

/// Beyond this a quotient may not be a whole number as it should.
pub(super) const MOST_QUOTIENT: f32 = 4_194_304.0;

/// The function an operation is; `None` where it is none of these. Those of one number do not look at `y`.
pub(super) fn function<A: Arith>(m: &A, op: KernelOp, x: A::V, y: A::V) -> Option<A::V> {
    Some(match op {
        KernelOp::Exp => exp(m, x),
        KernelOp::Exp2 => exp2(m, x),
        KernelOp::Expm1 => expm1(m, x),
        KernelOp::Log => log(m, x),
        KernelOp::Log2 => log2(m, x),
        KernelOp::Log10 => log10(m, x),
        KernelOp::Log1p => log1p(m, x),
        KernelOp::Sin => sin(m, x),
        KernelOp::Cos => cos(m, x),
        KernelOp::Tan => tan(m, x),
        KernelOp::Sinh => sinh(m, x),
        KernelOp::Cosh => cosh(m, x),
        KernelOp::Tanh => tanh(m, x),
        KernelOp::Erf => erf(m, x),
        KernelOp::RoundBf16 => round_bf16(m, x),
        KernelOp::FMod => fmod(m, x, y),
        KernelOp::Pow => pow(m, x, y),
        _ => return None,
    })
}

/// `e^r - 1` of what is left of a power of two, given `r`.
#[inline(always)]
fn exp_rest<A: Arith>(m: &A, r: A::V) -> A::V {
    let p = m.poly(r, EXP);
    m.fma(m.mul(p, r), r, r)
}

/// Parts of e to the x: `e^r - 1` with `x = n ln 2 + r`, `n`, and `n` in the low bits of a shifted number.
#[inline(always)]
fn exp_parts<A: Arith>(m: &A, x: A::V) -> (A::V, A::V, A::V) {
    // Beyond these the result is infinite or zero; NaN passes both.
    let x = m.min(m.num(104.0), x);
    let x = m.max(m.num(-104.0), x);
    let shifted = m.fma(x, m.num(std::f32::consts::LOG2_E), m.num(SHIFT));
    let n = m.sub(shifted, m.num(SHIFT));
    let r = m.fma(n, m.num(-0.693_145_75), x);
    let r = m.fma(n, m.num(-1.428_606_8e-6), r);
    (exp_rest(m, r), n, shifted)
}

/// The integer in the low bits of a shifted number in two halves, because it may lie outside the range of exponents. Of
/// NaN, any integer will do.
#[inline(always)]
fn halves<A: Arith + ?Sized>(m: &A, shifted: A::V) -> (A::V, A::V) {
    let n = m.sub_int(shifted, m.num(SHIFT));
    let half = m.sar(n, 1);
    (half, m.sub_int(n, half))
}

/// `p` times two to the power of the integer in the low bits of a shifted number.
#[inline(always)]
pub(super) fn scaled_in_halves<A: Arith + ?Sized>(m: &A, p: A::V, shifted: A::V) -> A::V {
    let (half, rest) = halves(m, shifted);
    m.mul(m.mul(p, m.power(half)), m.power(rest))
}

/// e to the x.
#[inline(always)]
pub(super) fn exp<A: Arith>(m: &A, x: A::V) -> A::V {
    let (p, n, shifted) = exp_parts(m, x);
    m.scaled(m.add(p, m.num(1.0)), n, shifted)
}

/// Two to the x.
#[inline(always)]
pub(super) fn exp2<A: Arith>(m: &A, x: A::V) -> A::V {
    let x = m.min(m.num(151.0), x);
    let x = m.max(m.num(-151.0), x);
    let shifted = m.add(x, m.num(SHIFT));
    let n = m.sub(shifted, m.num(SHIFT));
    let p = exp_rest(m, m.mul(m.sub(x, n), m.num(std::f32::consts::LN_2)));
    m.scaled(m.add(p, m.num(1.0)), n, shifted)
}

/// e to the x less one.
#[inline(always)]
pub(super) fn expm1<A: Arith>(m: &A, x: A::V) -> A::V {
    let (p, _, shifted) = exp_parts(m, x);
    let (half, rest) = halves(m, shifted);
    // 2^rest (2^half p + 2^half - 2^-rest)
    let (scale, one) = (m.power(half), m.power(m.sub_int(m.bits(0), rest)));
    let y = m.mul(m.fma(p, scale, m.sub(scale, one)), m.power(rest));
    // Of -0.
    m.or(y, m.sign(x))
}

/// Parts of a logarithm: `e` and `f` with `x = 2^e (1 + f)` and `1 + f` between 2/3 and 4/3, for normal numbers.
#[inline(always)]
fn log_parts<A: Arith>(m: &A, x: A::V) -> (A::V, A::V) {
    let e = m.sar(m.sub_int(x, m.bits(0x3f2a_aaab)), 23);
    let f = m.sub(m.sub_int(x, m.shl(e, 23)), m.num(1.0));
    (e, f)
}

/// The same of any number above zero; `e` as a float.
#[inline(always)]
fn log_parts_of_any<A: Arith>(m: &A, x: A::V) -> (A::V, A::V) {
    let tiny = m.lt(x, m.num(f32::MIN_POSITIVE));
    let scaled = m.pick(tiny, m.mul(x, m.num(8_388_608.0)), x);
    let (e, f) = log_parts(m, scaled);
    (m.sub(m.float(e), m.and(tiny, m.num(23.0))), f)
}

/// The logarithm of `1 + f`.
#[inline(always)]
fn log_rest<A: Arith>(m: &A, f: A::V) -> A::V {
    let q = m.poly(f, LOG);
    let square = m.mul(f, f);
    let tail = m.fma(q, f, m.num(-0.5));
    m.fma(tail, square, f)
}

/// A logarithm `y` of `x`, with its ends: infinity, zero, and NaN below.
#[inline(always)]
fn log_ends<A: Arith>(m: &A, x: A::V, y: A::V) -> A::V {
    let y = m.pick(m.eq(x, m.num(f32::INFINITY)), x, y);
    let y = m.pick(m.eq(x, m.num(0.0)), m.num(f32::NEG_INFINITY), y);
    m.pick(m.le(m.num(0.0), x), y, m.num(f32::NAN))
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log<A: Arith>(m: &A, x: A::V) -> A::V {
    let (e, f) = log_parts_of_any(m, x);
    let y = log_rest(m, f);
    let y = m.fma(e, m.num(std::f32::consts::LN_2), y);
    log_ends(m, x, y)
}

/// Logarithm to base 2.
#[inline(always)]
pub(super) fn log2<A: Arith>(m: &A, x: A::V) -> A::V {
    let (e, f) = log_parts_of_any(m, x);
    let y = log_rest(m, f);
    let y = m.fma(y, m.num(std::f32::consts::LOG2_E), e);
    log_ends(m, x, y)
}

/// Logarithm to base 10.
#[inline(always)]
pub(super) fn log10<A: Arith>(m: &A, x: A::V) -> A::V {
    let (e, f) = log_parts_of_any(m, x);
    let y = m.mul(log_rest(m, f), m.num(std::f32::consts::LOG10_E));
    // The logarithm of two in two parts.
    let y = m.fma(e, m.num(-1.432_098_9e-8), y);
    let y = m.fma(e, m.num(std::f32::consts::LOG10_2), y);
    log_ends(m, x, y)
}

/// Logarithm of `1 + x`.
#[inline(always)]
pub(super) fn log1p<A: Arith>(m: &A, x: A::V) -> A::V {
    let one = m.num(1.0);
    let u = m.add(one, x);
    // What the sum was rounded by, at the size of `1 + f`.
    let lost = m.sub(x, m.sub(u, one));
    let (e, f) = log_parts(m, u);
    // Of the largest sums, this power is below the range of exponents: the bits are those of minus infinity.
    let scale = m.max(m.power(m.sub_int(m.bits(0), e)), m.num(0.0));
    let f = m.fma(lost, scale, f);
    let y = log_rest(m, f);
    let y = m.fma(m.float(e), m.num(std::f32::consts::LN_2), y);
    // The sign of -0.
    m.or(log_ends(m, u, y), m.sign(x))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh<A: Arith>(m: &A, x: A::V) -> A::V {
    let a = m.abs(x);
    let s = m.mul(x, x);
    let small = m.poly(s, TANH);
    let small = m.fma(m.mul(small, s), x, x);
    let one = m.num(1.0);
    let large = m.sub(one, m.div(m.num(2.0), m.add(exp(m, m.add(a, a)), one)));
    m.copysign(m.pick(m.lt(a, m.num(0.9)), small, large), x)
}

/// Half of e to the x, which is finite somewhat longer.
#[inline(always)]
fn half_exp<A: Arith>(m: &A, x: A::V) -> A::V {
    let (p, n, shifted) = exp_parts(m, x);
    let half = m.num(0.5);
    m.scaled(m.fma(p, half, half), n, shifted)
}

/// Hyperbolic sine.
#[inline(always)]
pub(super) fn sinh<A: Arith>(m: &A, x: A::V) -> A::V {
    let (a, s) = (m.abs(x), m.mul(x, x));
    let small = m.fma(m.mul(m.poly(s, SINH), s), a, a);
    let h = half_exp(m, a);
    let large = m.sub(h, m.div(m.num(0.25), h));
    m.copysign(m.pick(m.lt(a, m.num(1.0)), small, large), x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub(super) fn cosh<A: Arith>(m: &A, x: A::V) -> A::V {
    let h = half_exp(m, m.abs(x));
    m.add(h, m.div(m.num(0.25), h))
}

/// The error function.
#[inline(always)]
pub(super) fn erf<A: Arith>(m: &A, x: A::V) -> A::V {
    let a = m.abs(x);
    let s = m.mul(x, x);
    let small = m.fma(m.poly(s, ERF_SMALL), x, x);
    // From here on the result is one within half a last place.
    let t = m.min(m.num(4.0), a);
    // The rest is two to the power of this, between -26 and -2: far from where exponents end.
    let exponent = m.poly(t, ERF_LARGE);
    let shifted = m.add(exponent, m.num(SHIFT));
    let part = m.sub(exponent, m.sub(shifted, m.num(SHIFT)));
    let one = m.num(1.0);
    let power = m.fma(m.poly(part, EXP2), part, one);
    let rest = m.add_int(power, m.shl(shifted, 23));
    let large = m.or(m.sub(one, rest), m.sign(x));
    // NaN takes the second: it is not at least one.
    m.pick(m.le(one, a), large, small)
}

/// Sine and cosine of what is left of quarter turns, and how many these are, in the low bits.
#[inline(always)]
fn turns<A: Arith>(m: &A, x: A::V) -> (A::V, A::V, A::V) {
    m.check(m.lt(m.num(MOST_RADIANS), m.abs(x)));
    let shifted = m.fma(x, m.num(std::f32::consts::FRAC_2_PI), m.num(SHIFT));
    let n = m.sub(shifted, m.num(SHIFT));
    let r = m.fma(n, m.num(QUARTER[0]), x);
    let r = m.fma(n, m.num(QUARTER[1]), r);
    let r = m.fma(n, m.num(QUARTER[2]), r);
    let s = m.mul(r, r);
    let sine = m.fma(m.mul(m.poly(s, SIN), s), r, r);
    let cosine = m.fma(m.poly(s, COS), s, m.num(-0.5));
    let cosine = m.fma(cosine, s, m.num(1.0));
    // The sign of -0.
    (m.or(sine, m.sign(r)), cosine, shifted)
}

/// Sine, up to [`MOST_RADIANS`].
#[inline(always)]
pub(super) fn sin<A: Arith>(m: &A, x: A::V) -> A::V {
    let (sine, cosine, n) = turns(m, x);
    let y = m.pick(m.shl(n, 31), cosine, sine);
    m.xor(y, m.sign(m.shl(n, 30)))
}

/// Cosine, up to [`MOST_RADIANS`].
#[inline(always)]
pub(super) fn cos<A: Arith>(m: &A, x: A::V) -> A::V {
    let (sine, cosine, n) = turns(m, x);
    let y = m.pick(m.shl(n, 31), sine, cosine);
    m.xor(y, m.sign(m.shl(m.add_int(n, m.bits(1)), 30)))
}

/// Tangent, up to [`MOST_RADIANS`].
#[inline(always)]
pub(super) fn tan<A: Arith>(m: &A, x: A::V) -> A::V {
    let (sine, cosine, n) = turns(m, x);
    let odd = m.shl(n, 31);
    let y = m.div(m.pick(odd, cosine, sine), m.pick(odd, sine, cosine));
    m.xor(y, m.sign(odd))
}

/// What division leaves, with the dividend's sign: exactly, where the quotient is at most [`MOST_QUOTIENT`] and the
/// divisor finite.
#[inline(always)]
pub(super) fn fmod<A: Arith>(m: &A, x: A::V, y: A::V) -> A::V {
    let (a, b) = (m.abs(x), m.abs(y));
    let q = m.trunc(m.div(a, b));
    m.check(m.or(m.lt(m.num(MOST_QUOTIENT), q), m.eq(b, m.num(f32::INFINITY))));
    let r = m.fma(m.sub(m.bits(SIGN), q), b, a);
    // The quotient may have been rounded up to a whole number.
    let r = m.pick(m.lt(r, m.num(0.0)), m.add(r, b), r);
    m.or(r, m.sign(x))
}

/// Nearest bfloat16, ties to even.
#[inline(always)]
pub(super) fn round_bf16<A: Arith>(m: &A, x: A::V) -> A::V {
    let odd = m.and(m.shr(x, 16), m.bits(1));
    let rounded = m.add_int(x, m.add_int(odd, m.bits(0x7fff)));
    m.pick(m.is_nan(x), m.bits(0x7fc0_0000), m.and(rounded, m.bits(0xffff_0000)))
}

/// Nearest half, ties to even.
#[inline(always)]
pub(super) fn round_f16(x: f32) -> f32 {
    half::f16::from_f32(x).to_f32()
}

mod power;
#[cfg(test)]
mod tests;

pub(super) use power::{is_short, pow};
