//! Transcendental functions as vector programs: the operations of [`crate::kernels::math`], in its order, with its numbers,
//! so that both tiers give the same bits.

use super::{
    super::math::{ERF_LARGE, ERF_SMALL, EXP, EXP2, LOG, SHIFT, TANH},
    vector::{Op, V, Vectors, compare},
};

impl Vectors {
    fn fma(&mut self, a: V, b: V, c: V) -> V {
        self.op(Op::FmaPs, &[a, b, c])
    }

    fn mul(&mut self, a: V, b: V) -> V {
        self.op(Op::MulPs, &[a, b])
    }

    fn add(&mut self, a: V, b: V) -> V {
        self.op(Op::AddPs, &[a, b])
    }

    fn sub(&mut self, a: V, b: V) -> V {
        self.op(Op::SubPs, &[a, b])
    }

    fn poly(&mut self, x: V, coefficients: &[f32]) -> V {
        let mut sum = self.ps(coefficients[0]);
        for &c in &coefficients[1..] {
            let c = self.ps(c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    fn abs(&mut self, x: V) -> V {
        let mask = self.d(0x7fff_ffff);
        self.op(Op::And, &[x, mask])
    }

    fn copysign(&mut self, x: V, sign: V) -> V {
        let mask = self.d(0x8000_0000);
        let (sign, x) = (self.op(Op::And, &[mask, sign]), self.op(Op::Andn, &[mask, x]));
        self.op(Op::Or, &[x, sign])
    }

    pub(super) fn exp(&mut self, x: V) -> V {
        let (most, least) = (self.ps(104.0), self.ps(-104.0));
        let x = self.op(Op::MinPs, &[most, x]);
        let x = self.op(Op::MaxPs, &[least, x]);
        let (log2_e, shift) = (self.ps(std::f32::consts::LOG2_E), self.ps(SHIFT));
        let shifted = self.fma(x, log2_e, shift);
        let n = self.sub(shifted, shift);
        let (high, low) = (self.ps(-0.693_145_75), self.ps(-1.428_606_8e-6));
        let r = self.fma(n, high, x);
        let r = self.fma(n, low, r);
        let p = self.poly(r, &EXP);
        let p = self.mul(p, r);
        let p = self.fma(p, r, r);
        let one = self.ps(1.0);
        let p = self.add(p, one);
        let n = self.op(Op::SubD, &[shifted, shift]);
        let half = self.op_imm(Op::SarD, &[n], 1);
        let rest = self.op(Op::SubD, &[n, half]);
        let bias = self.d(127);
        let [first, second] = [half, rest].map(|n| {
            let n = self.op(Op::AddD, &[n, bias]);
            self.op_imm(Op::ShlD, &[n], 23)
        });
        let p = self.mul(p, first);
        self.mul(p, second)
    }

    pub(super) fn log(&mut self, x: V) -> V {
        let (least, scale) = (self.ps(f32::MIN_POSITIVE), self.ps(8_388_608.0));
        let tiny = self.op_imm(Op::CmpPs, &[x, least], compare::LT);
        let scaled = self.mul(x, scale);
        let scaled = self.op(Op::BlendD, &[tiny, scaled, x]);
        let offset = self.d(0x3f2a_aaab);
        let e = self.op(Op::SubD, &[scaled, offset]);
        let e = self.op_imm(Op::SarD, &[e], 23);
        let f = self.op_imm(Op::ShlD, &[e], 23);
        let f = self.op(Op::SubD, &[scaled, f]);
        let one = self.ps(1.0);
        let f = self.sub(f, one);
        let e = self.op(Op::DToPs, &[e]);
        let digits = self.ps(23.0);
        let digits = self.op(Op::And, &[tiny, digits]);
        let e = self.sub(e, digits);
        let q = self.poly(f, &LOG);
        let square = self.mul(f, f);
        let (half, ln_2) = (self.ps(-0.5), self.ps(std::f32::consts::LN_2));
        let tail = self.fma(q, f, half);
        let y = self.fma(tail, square, f);
        let y = self.fma(e, ln_2, y);
        let (infinity, zero) = (self.ps(f32::INFINITY), self.ps(0.0));
        let (least, nan) = (self.ps(f32::NEG_INFINITY), self.ps(f32::NAN));
        let is_infinite = self.op_imm(Op::CmpPs, &[x, infinity], compare::EQ);
        let y = self.op(Op::BlendD, &[is_infinite, x, y]);
        let is_zero = self.op_imm(Op::CmpPs, &[x, zero], compare::EQ);
        let y = self.op(Op::BlendD, &[is_zero, least, y]);
        let is_positive = self.op_imm(Op::CmpPs, &[zero, x], compare::LE);
        self.op(Op::BlendD, &[is_positive, y, nan])
    }

    pub(super) fn tanh(&mut self, x: V) -> V {
        let a = self.abs(x);
        let s = self.mul(x, x);
        let small = self.poly(s, &TANH);
        let small = self.mul(small, s);
        let small = self.fma(small, x, x);
        let large = self.add(a, a);
        let large = self.exp(large);
        let (one, two, limit) = (self.ps(1.0), self.ps(2.0), self.ps(0.9));
        let large = self.add(large, one);
        let large = self.op(Op::DivPs, &[two, large]);
        let large = self.sub(one, large);
        let is_small = self.op_imm(Op::CmpPs, &[a, limit], compare::LT);
        let y = self.op(Op::BlendD, &[is_small, small, large]);
        self.copysign(y, x)
    }

    pub(super) fn erf(&mut self, x: V) -> V {
        let a = self.abs(x);
        let s = self.mul(x, x);
        let small = self.poly(s, &ERF_SMALL);
        let small = self.fma(small, x, x);
        let (four, one) = (self.ps(4.0), self.ps(1.0));
        let t = self.op(Op::MinPs, &[four, a]);
        let (exponent, shift) = (self.poly(t, &ERF_LARGE), self.ps(SHIFT));
        let shifted = self.add(exponent, shift);
        let whole = self.sub(shifted, shift);
        let part = self.sub(exponent, whole);
        let power = self.poly(part, &EXP2);
        let power = self.fma(power, part, one);
        let whole = self.op_imm(Op::ShlD, &[shifted], 23);
        let rest = self.op(Op::AddD, &[power, whole]);
        let large = self.sub(one, rest);
        let mask = self.d(0x8000_0000);
        let sign = self.op(Op::And, &[mask, x]);
        let large = self.op(Op::Or, &[large, sign]);
        let is_large = self.op_imm(Op::CmpPs, &[one, a], compare::LE);
        self.op(Op::BlendD, &[is_large, large, small])
    }

    /// To the nearest bfloat16, ties to even.
    pub(super) fn round_bf16(&mut self, x: V) -> V {
        let (one, most, mask) = (self.d(1), self.d(0x7fff), self.d(0xffff_0000));
        let odd = self.op_imm(Op::ShrD, &[x], 16);
        let odd = self.op(Op::And, &[odd, one]);
        let up = self.op(Op::AddD, &[odd, most]);
        let rounded = self.op(Op::AddD, &[x, up]);
        let rounded = self.op(Op::And, &[rounded, mask]);
        let is_nan = self.op_imm(Op::CmpPs, &[x, x], compare::UNORDERED);
        let nan = self.d(0x7fc0_0000);
        self.op(Op::BlendD, &[is_nan, nan, rounded])
    }

    /// Products of 64-bit integers.
    pub(super) fn mul_q(&mut self, a: V, b: V) -> V {
        let (a_high, b_high) = (self.op_imm(Op::ShrQ, &[a], 32), self.op_imm(Op::ShrQ, &[b], 32));
        let (left, right) = (self.op(Op::MulLow, &[a_high, b]), self.op(Op::MulLow, &[a, b_high]));
        let high = self.op(Op::AddQ, &[left, right]);
        let high = self.op_imm(Op::ShlQ, &[high], 32);
        let low = self.op(Op::MulLow, &[a, b]);
        self.op(Op::AddQ, &[low, high])
    }

    /// The nearest double of a 64-bit integer: both halves as exact doubles, added.
    pub(super) fn q_to_pd(&mut self, x: V) -> V {
        let (mask, low_bits) = (self.q(0xffff_ffff), self.q(0x4330_0000_0000_0000));
        let low = self.op(Op::And, &[x, mask]);
        let low = self.op(Op::Or, &[low, low_bits]);
        // 2^84 + 2^63, which makes the upper half unsigned, and this with 2^52 of the lower half.
        let (high_bits, both) = (self.q(0x4530_0000_8000_0000), self.q(0x4530_0000_8010_0000));
        let high = self.op_imm(Op::ShrQ, &[x], 32);
        let high = self.op(Op::Xor, &[high, high_bits]);
        let high = self.op(Op::SubPd, &[high, both]);
        self.op(Op::AddPd, &[high, low])
    }

    /// A 64-bit integer that rounds to the same `F32` and is exact as a double: what a double has no room for is one bit that
    /// says whether there was anything.
    pub(super) fn jammed(&mut self, x: V) -> V {
        let (low, high, sticky) = (self.q(2047), self.q(!2047), self.q(2048));
        let (most, least) = (self.q(1 << 53), self.q((-1i64 << 53) as u64));
        let zero = self.q(0);
        let lost = self.op(Op::And, &[x, low]);
        let nothing = self.op(Op::EqQ, &[lost, zero]);
        let sticky = self.op(Op::Andn, &[nothing, sticky]);
        let kept = self.op(Op::And, &[x, high]);
        let kept = self.op(Op::Or, &[kept, sticky]);
        let (below, above) = (self.op(Op::GtQ, &[most, x]), self.op(Op::GtQ, &[x, least]));
        let fits = self.op(Op::And, &[below, above]);
        self.op(Op::BlendQ, &[fits, x, kept])
    }

    /// A double cut off to a 64-bit integer; what does not fit gives the most negative one.
    pub(super) fn pd_to_q(&mut self, x: V) -> V {
        use super::vector::rounding::{FLOOR, TRUNC};
        let whole = self.op_imm(Op::RoundPd, &[x], TRUNC);
        let (down, up) = (self.pd(1.0 / 4_294_967_296.0), self.pd(-4_294_967_296.0));
        let high = self.op(Op::MulPd, &[whole, down]);
        let high = self.op_imm(Op::RoundPd, &[high], FLOOR);
        let low = self.op(Op::FmaPd, &[high, up, whole]);
        // Adding these leaves whole numbers in the low bits.
        let (signed, unsigned) = (self.pd(6_755_399_441_055_744.0), self.pd(4_503_599_627_370_496.0));
        let high = self.op(Op::AddPd, &[high, signed]);
        let high = self.op_imm(Op::ShlQ, &[high], 32);
        let low = self.op(Op::AddPd, &[low, unsigned]);
        let mask = self.q(0xffff_ffff);
        let low = self.op(Op::And, &[low, mask]);
        let number = self.op(Op::Or, &[high, low]);
        let (magnitude, limit, least) = (self.q(!(1 << 63)), self.pd(9_223_372_036_854_775_808.0), self.q(1 << 63));
        let a = self.op(Op::And, &[x, magnitude]);
        let fits = self.op_imm(Op::CmpPd, &[a, limit], compare::LT);
        self.op(Op::BlendQ, &[fits, number, least])
    }
}
