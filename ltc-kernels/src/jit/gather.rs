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

/// Four lanes after the other, of a vector's register, to a register of 16 bytes.
fn four(e: &mut Emitter, vector: u8, which: usize, to: Register) -> Result<Register, IcedError> {
    let (xmm, ymm, zmm) =
        (Register::XMM0 + u32::from(vector), Register::YMM0 + u32::from(vector), Register::ZMM0 + u32::from(vector));
    match which {
        0 => return Ok(xmm),
        1 => e.put(Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, to, ymm, 1))?,
        _ => e.put(Instruction::with3(Code::EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8, to, zmm, which as u32))?,
    }
    Ok(to)
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
        let quads = if e.width == Width::Zmm { 4 } else { 2 };
        let all: Vec<(u8, usize)> = vectors.flat_map(|v| (0..quads).map(move |q| (v as u8, q))).collect();
        match self.of.0 {
            KernelOp::AMax => self.outermost(e, &all, free, Code::VEX_Vmaxps_xmm_xmm_xmmm128),
            KernelOp::AMin => self.outermost(e, &all, free, Code::VEX_Vminps_xmm_xmm_xmmm128),
            _ => self.sum(e, &all, free),
        }
    }

    /// Four totals in double precision, lane after lane; then these, one after the other.
    fn sum(&self, e: &mut Emitter, all: &[(u8, usize)], free: usize) -> Result<(), IcedError> {
        let (_, value, total) = self.of;
        let xmm = |i: usize| Register::XMM0 + (free + i) as u32;
        let ymm = |i: usize| Register::YMM0 + (free + i) as u32;
        e.put(Instruction::with3(Code::VEX_Vxorpd_ymm_ymm_ymmm256, ymm(0), ymm(0), ymm(0)))?;
        for &(vector, which) in all {
            let from = four(e, vector, which, xmm(1))?;
            e.put(Instruction::with2(Code::VEX_Vcvtps2pd_ymm_xmmm128, ymm(1), from))?;
            e.put(Instruction::with3(Code::VEX_Vaddpd_ymm_ymm_ymmm256, ymm(0), ymm(0), ymm(1)))?;
        }
        let add = Code::VEX_Vaddsd_xmm_xmm_xmmm64;
        let second = Code::VEX_Vunpckhpd_xmm_xmm_xmmm128;
        e.put(Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, xmm(1), ymm(0), 1))?;
        e.put(Instruction::with3(second, xmm(2), xmm(0), xmm(0)))?;
        e.put(Instruction::with3(add, xmm(0), xmm(0), xmm(2)))?;
        e.put(Instruction::with3(add, xmm(0), xmm(0), xmm(1)))?;
        e.put(Instruction::with3(second, xmm(1), xmm(1), xmm(1)))?;
        e.put(Instruction::with3(add, xmm(0), xmm(0), xmm(1)))?;
        if self.is_long {
            e.put(Instruction::with3(add, xmm(0), xmm(0), number(total)))?;
            e.put(Instruction::with2(Code::VEX_Vmovsd_m64_xmm, number(total), xmm(0)))?;
        }
        e.put(Instruction::with3(Code::VEX_Vcvtsd2ss_xmm_xmm_xmmm64, xmm(0), xmm(0), xmm(0)))?;
        e.put(Instruction::with2(Code::VEX_Vmovss_m32_xmm, number(value), xmm(0)))
    }

    /// The first of those that are beyond all others: of two equal ones the earlier, so that zeros have the same sign.
    fn outermost(&self, e: &mut Emitter, all: &[(u8, usize)], free: usize, outer: Code) -> Result<(), IcedError> {
        let (_, value, _) = self.of;
        let xmm = |i: usize| Register::XMM0 + (free + i) as u32;
        // The earlier one is in the first register, where the result goes.
        let join = |e: &mut Emitter, later: Register| {
            e.put(Instruction::with3(outer, xmm(2), later, xmm(0)))?;
            let is_nan = u32::from(compare::UNORDERED);
            e.put(Instruction::with4(Code::VEX_Vcmpps_xmm_xmm_xmmm128_imm8, xmm(3), later, later, is_nan))?;
            e.put(Instruction::with4(Code::VEX_Vblendvps_xmm_xmm_xmmm128_xmm, xmm(0), xmm(2), later, xmm(3)))
        };
        for (i, &(vector, which)) in all.iter().enumerate() {
            let later = four(e, vector, which, xmm(1))?;
            if i == 0 {
                e.put(Instruction::with2(Code::VEX_Vmovaps_xmm_xmmm128, xmm(0), later))?;
            } else {
                join(e, later)?;
            }
        }
        // The second of each two, then the second two.
        e.put(Instruction::with2(Code::VEX_Vmovshdup_xmm_xmmm128, xmm(1), xmm(0)))?;
        join(e, xmm(1))?;
        e.put(Instruction::with3(Code::VEX_Vmovhlps_xmm_xmm_xmm, xmm(1), xmm(0), xmm(0)))?;
        join(e, xmm(1))?;
        if self.is_long {
            e.put(Instruction::with2(Code::VEX_Vmovaps_xmm_xmmm128, xmm(1), xmm(0)))?;
            e.put(Instruction::with2(Code::VEX_Vmovss_xmm_m32, xmm(0), number(value)))?;
            join(e, xmm(1))?;
        }
        e.put(Instruction::with2(Code::VEX_Vmovss_m32_xmm, number(value), xmm(0)))
    }
}
