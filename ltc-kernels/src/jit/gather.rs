//! The ends of reductions in machine code: lanes, in vectors, become one number of the run.

use std::ops::Range;

use iced_x86::{Code, IcedError, Instruction, Register};

use super::{
    super::ir::KernelOp,
    emit::{Emitter, number},
    vector::{Width, compare},
};

/// A reduction whose lanes a loop has gathered.
pub(super) struct Gathered {
    /// What, the number it becomes, and where totals of a row's lines are kept.
    pub(super) of: (KernelOp, u32, u32),
    /// The row has several lines.
    pub(super) is_long: bool,
}

/// How much of a vector register an instruction takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    X,
    Y,
    Z,
}

impl Size {
    fn of(self, register: u32) -> Register {
        match self {
            Size::X => Register::XMM0 + register,
            Size::Y => Register::YMM0 + register,
            Size::Z => Register::ZMM0 + register,
        }
    }
}

/// Lanes of a line, in vectors, and the first of four registers that hold nothing.
struct Lanes {
    first: u32,
    count: u32,
    free: u32,
    whole: Size,
    half: Size,
}

impl Lanes {
    fn new(e: &Emitter, vectors: Range<usize>, free: usize) -> Lanes {
        let (whole, half) = if e.width == Width::Zmm { (Size::Z, Size::Y) } else { (Size::Y, Size::X) };
        Lanes { first: vectors.start as u32, count: vectors.len() as u32, free: free as u32, whole, half }
    }

    /// The upper half of a register of this size, in another.
    fn upper(e: &mut Emitter, size: Size, from: u32, to: u32) -> Result<(), IcedError> {
        let (code, half) = match size {
            Size::Z => (Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, Size::Y),
            _ => (Code::VEX_Vextractf128_xmmm128_ymm_imm8, Size::X),
        };
        e.put(Instruction::with3(code, half.of(to), size.of(from), 1))
    }

    /// The lower or upper half of a vector's lanes in double precision.
    fn widen(&self, e: &mut Emitter, vector: u32, is_upper: bool, to: u32) -> Result<(), IcedError> {
        let code = e.either(Code::VEX_Vcvtps2pd_ymm_xmmm128, Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae);
        let from = if is_upper { to } else { vector };
        if is_upper {
            Lanes::upper(e, self.whole, vector, to)?;
        }
        e.put(Instruction::with2(code, self.whole.of(to), self.half.of(from)))
    }

    fn add(&self, e: &mut Emitter, to: u32, other: u32) -> Result<(), IcedError> {
        let code = e.either(Code::VEX_Vaddpd_ymm_ymm_ymmm256, Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er);
        e.put(Instruction::with3(code, self.whole.of(to), self.whole.of(to), self.whole.of(other)))
    }

    /// The sum of one half of all vectors, to this register; the two after it are written, too.
    fn half(&self, e: &mut Emitter, is_upper: bool, to: u32) -> Result<(), IcedError> {
        let pairs = self.count / 2;
        for i in 0..pairs {
            self.widen(e, self.first + i, is_upper, to + i)?;
            self.widen(e, self.first + i + pairs, is_upper, to + i + 1)?;
            self.add(e, to + i, to + i + 1)?;
        }
        if pairs > 1 { self.add(e, to, to + 1) } else { Ok(()) }
    }

    /// The sum of all in double precision, in the first free register.
    fn sum(&self, e: &mut Emitter) -> Result<(), IcedError> {
        let (sum, other) = (self.free, self.free + 1);
        self.half(e, false, sum)?;
        self.half(e, true, other)?;
        self.add(e, sum, other)?;
        if self.whole == Size::Z {
            Lanes::upper(e, Size::Z, sum, other)?;
            let [sum, other] = [sum, other].map(|r| Size::Y.of(r));
            e.put(Instruction::with3(Code::VEX_Vaddpd_ymm_ymm_ymmm256, sum, sum, other))?;
        }
        Lanes::upper(e, Size::Y, sum, other)?;
        let [sum, other] = [sum, other].map(|r| Size::X.of(r));
        e.put(Instruction::with3(Code::VEX_Vaddpd_xmm_xmm_xmmm128, sum, sum, other))?;
        e.put(Instruction::with3(Code::VEX_Vunpckhpd_xmm_xmm_xmmm128, other, sum, sum))?;
        e.put(Instruction::with3(Code::VEX_Vaddsd_xmm_xmm_xmmm64, sum, sum, other))
    }

    /// Of two, lane by lane, the one that is beyond the other; the earlier of equal ones, so that zeros have the same
    /// sign everywhere, and NaN.
    fn beyond(&self, e: &mut Emitter, most: bool, size: Size, [to, so_far, later]: [u32; 3]) -> Result<(), IcedError> {
        let [x, y, z] = if most {
            [
                Code::VEX_Vmaxps_xmm_xmm_xmmm128,
                Code::VEX_Vmaxps_ymm_ymm_ymmm256,
                Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
            ]
        } else {
            [
                Code::VEX_Vminps_xmm_xmm_xmmm128,
                Code::VEX_Vminps_ymm_ymm_ymmm256,
                Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae,
            ]
        };
        let (outer, compare, blend) = match size {
            Size::X => (x, Code::VEX_Vcmpps_xmm_xmm_xmmm128_imm8, Code::VEX_Vblendvps_xmm_xmm_xmmm128_xmm),
            Size::Y => (y, Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm),
            Size::Z => (z, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, Code::INVALID),
        };
        let [outermost, mask] = [2, 3].map(|i| size.of(self.free + i));
        let [to, so_far, later] = [to, so_far, later].map(|r| size.of(r));
        let is_nan = u32::from(compare::UNORDERED);
        e.put(Instruction::with3(outer, outermost, later, so_far))?;
        if size == Size::Z {
            e.put(Instruction::with4(compare, Register::K1, later, later, is_nan))?;
            return e.select(false, to, later, outermost);
        }
        e.put(Instruction::with4(compare, mask, later, later, is_nan))?;
        e.put(Instruction::with4(blend, to, outermost, later, mask))
    }

    /// What is beyond all others, in the first free register.
    fn outermost(&self, e: &mut Emitter, most: bool) -> Result<(), IcedError> {
        let (all, other) = (self.free, self.free + 1);
        let pairs = self.count / 2;
        for i in 0..pairs {
            self.beyond(e, most, self.whole, [all + i, self.first + i, self.first + i + pairs])?;
        }
        if pairs > 1 {
            self.beyond(e, most, self.whole, [all, all, other])?;
        }
        if self.whole == Size::Z {
            Lanes::upper(e, Size::Z, all, other)?;
            self.beyond(e, most, Size::Y, [all, all, other])?;
        }
        Lanes::upper(e, Size::Y, all, other)?;
        self.beyond(e, most, Size::X, [all, all, other])?;
        let [x_all, x_other] = [all, other].map(|r| Size::X.of(r));
        e.put(Instruction::with3(Code::VEX_Vmovhlps_xmm_xmm_xmm, x_other, x_all, x_all))?;
        self.beyond(e, most, Size::X, [all, all, other])?;
        e.put(Instruction::with2(Code::VEX_Vmovshdup_xmm_xmmm128, x_other, x_all))?;
        self.beyond(e, most, Size::X, [all, all, other])
    }
}

impl Gathered {
    /// Before a row of several lines.
    pub(super) fn begin(&self, e: &mut Emitter) -> Result<(), IcedError> {
        let (op, value, total) = self.of;
        match op {
            KernelOp::AMax | KernelOp::AMin => {
                let start = if op == KernelOp::AMax { f32::NEG_INFINITY } else { f32::INFINITY };
                e.put(Instruction::with2(Code::Mov_rm32_imm32, number(value), start.to_bits()))
            }
            _ => e.put(Instruction::with2(Code::Mov_rm64_imm32, number(total), 0)),
        }
    }

    /// After a line, whose lanes are in these vectors; `free` and those after it hold nothing.
    pub(super) fn end(&self, e: &mut Emitter, vectors: Range<usize>, free: usize) -> Result<(), IcedError> {
        let (op, value, total) = self.of;
        let lanes = Lanes::new(e, vectors, free);
        let [all, other] = [lanes.free, lanes.free + 1];
        let [x_all, x_other] = [all, other].map(|r| Size::X.of(r));
        if matches!(op, KernelOp::AMax | KernelOp::AMin) {
            let most = op == KernelOp::AMax;
            lanes.outermost(e, most)?;
            if self.is_long {
                e.put(Instruction::with2(Code::VEX_Vmovss_xmm_m32, x_other, number(value)))?;
                lanes.beyond(e, most, Size::X, [all, other, all])?;
            }
        } else {
            lanes.sum(e)?;
            if self.is_long {
                e.put(Instruction::with3(Code::VEX_Vaddsd_xmm_xmm_xmmm64, x_all, x_all, number(total)))?;
                e.put(Instruction::with2(Code::VEX_Vmovsd_m64_xmm, number(total), x_all))?;
            }
            e.put(Instruction::with3(Code::VEX_Vcvtsd2ss_xmm_xmm_xmmm64, x_all, x_all, x_all))?;
        }
        e.put(Instruction::with2(Code::VEX_Vmovss_m32_xmm, number(value), x_all))
    }
}
