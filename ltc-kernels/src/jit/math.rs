//! Functions as vector programs: those of [`crate::math`], and what AVX2 has no instruction for.

use std::cell::RefCell;

use super::{
    super::{ir::KernelOp, math, math::Arith},
    vector::{Op, V, Vectors, Width, compare, rounding},
};

/// One of each element: what is computed is written into the program.
struct Many<'a> {
    vectors: RefCell<&'a mut Vectors>,
    width: Width,
}

impl Many<'_> {
    fn op(&self, op: Op, args: &[V]) -> V {
        self.vectors.borrow_mut().op(op, args)
    }

    fn op_imm(&self, op: Op, args: &[V], imm: u8) -> V {
        self.vectors.borrow_mut().op_imm(op, args, imm)
    }
}

macro_rules! instructions {
    ($($name:ident($($arg:ident),+) $op:ident $($imm:expr)?;)*) => {$(
        fn $name(&self, $($arg: V),+) -> V {
            instructions!(@ self, Op::$op, &[$($arg),+] $(, $imm)?)
        }
    )*};
    (@ $m:ident, $op:expr, $args:expr) => { $m.op($op, $args) };
    (@ $m:ident, $op:expr, $args:expr, $imm:expr) => { $m.op_imm($op, $args, $imm) };
}

impl Arith for Many<'_> {
    type V = V;

    instructions! {
        add(a, b) AddPs;
        sub(a, b) SubPs;
        mul(a, b) MulPs;
        div(a, b) DivPs;
        fma(a, b, c) FmaPs;
        min(a, b) MinPs;
        max(a, b) MaxPs;
        trunc(a) RoundPs rounding::TRUNC;
        lt(a, b) CmpPs compare::LT;
        le(a, b) CmpPs compare::LE;
        eq(a, b) CmpPs compare::EQ;
        pick(mask, yes, no) BlendD;
        and(a, b) And;
        andn(a, b) Andn;
        or(a, b) Or;
        xor(a, b) Xor;
        add_int(a, b) AddD;
        sub_int(a, b) SubD;
        float(a) DToPs;
    }

    fn bits(&self, bits: u32) -> V {
        self.vectors.borrow_mut().d(bits)
    }

    fn is_nan(&self, a: V) -> V {
        self.op_imm(Op::CmpPs, &[a, a], compare::UNORDERED)
    }

    fn shl(&self, a: V, by: u8) -> V {
        self.op_imm(Op::ShlD, &[a], by)
    }

    fn shr(&self, a: V, by: u8) -> V {
        self.op_imm(Op::ShrD, &[a], by)
    }

    fn sar(&self, a: V, by: u8) -> V {
        self.op_imm(Op::SarD, &[a], by)
    }

    fn scaled(&self, p: V, n: V, shifted: V) -> V {
        if self.width == Width::Zmm {
            return self.op(Op::ScalePs, &[p, n]);
        }
        math::scaled_in_halves(self, p, shifted)
    }

    fn check(&self, fails: V) {
        self.vectors.borrow_mut().check(fails);
    }
}

impl Vectors {
    /// A function of [`math`], in single precision.
    pub(super) fn function(&mut self, code: KernelOp, width: Width, x: V, y: V) -> Option<V> {
        let m = &Many { vectors: RefCell::new(self), width };
        match code {
            KernelOp::CopySign => Some(m.copysign(x, y)),
            _ => math::function(m, code, x, y),
        }
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

    /// A 64-bit integer that rounds to the same `F32` and is exact as a double: what a double has no room for is one
    /// bit that says whether there was anything.
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
        let whole = self.op_imm(Op::RoundPd, &[x], rounding::TRUNC);
        let (down, up) = (self.pd(1.0 / 4_294_967_296.0), self.pd(-4_294_967_296.0));
        let high = self.op(Op::MulPd, &[whole, down]);
        let high = self.op_imm(Op::RoundPd, &[high], rounding::FLOOR);
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

/// An operation on integers of 64 bits; `None` if there is none.
pub(super) fn wide_integer(v: &mut Vectors, code: KernelOp, [x, y, _]: [V; 3]) -> Option<V> {
    let not = |v: &mut Vectors, x: V| {
        let ones = v.q(u64::MAX);
        v.op(Op::Xor, &[x, ones])
    };
    Some(match code {
        KernelOp::Neg => {
            let zero = v.q(0);
            v.op(Op::SubQ, &[zero, x])
        }
        KernelOp::Abs => {
            let zero = v.q(0);
            let sign = v.op(Op::GtQ, &[zero, x]);
            let flipped = v.op(Op::Xor, &[x, sign]);
            v.op(Op::SubQ, &[flipped, sign])
        }
        KernelOp::Not => not(v, x),
        KernelOp::Add => v.op(Op::AddQ, &[x, y]),
        KernelOp::Sub => v.op(Op::SubQ, &[x, y]),
        KernelOp::Mul => v.mul_q(x, y),
        KernelOp::Max => {
            let larger = v.op(Op::GtQ, &[x, y]);
            v.op(Op::BlendQ, &[larger, x, y])
        }
        KernelOp::Min => {
            let smaller = v.op(Op::GtQ, &[y, x]);
            v.op(Op::BlendQ, &[smaller, x, y])
        }
        KernelOp::And => v.op(Op::And, &[x, y]),
        KernelOp::Or => v.op(Op::Or, &[x, y]),
        KernelOp::Xor => v.op(Op::Xor, &[x, y]),
        KernelOp::Eq => v.op(Op::EqQ, &[x, y]),
        KernelOp::Ne => {
            let equal = v.op(Op::EqQ, &[x, y]);
            not(v, equal)
        }
        KernelOp::Lt => v.op(Op::GtQ, &[y, x]),
        KernelOp::Le => {
            let greater = v.op(Op::GtQ, &[x, y]);
            not(v, greater)
        }
        _ => return None,
    })
}
