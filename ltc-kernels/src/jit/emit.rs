//! Machine code: instructions encoded, and the loops around them.

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

use super::{
    allocate::{AllocEvent, Reg, allocate},
    forms::{Half, compared, fused, half, plain},
    vector::{Form, Op, Origin, Uniform, VecSlot, Vectors, Width},
};

/// Machine code, and what it needs.
#[derive(Debug)]
pub(super) struct Machine {
    /// The pool of numbers, then the code.
    pub(super) bytes: Vec<u8>,
    /// Where the code starts.
    pub(super) entry: usize,
    /// Bytes of scratch memory it uses.
    pub(super) scratch: usize,
}

/// Where the code finds its arguments: pointers to the buffers' elements, numbers, how many elements, scratch memory.
const BUFFERS: Register = Register::RDI;
pub(super) const UNIFORMS: Register = Register::RSI;
pub(super) const COUNT: Register = Register::RDX;
const SCRATCH: Register = Register::RCX;
/// The first element of the iteration.
pub(super) const INDEX: Register = Register::RAX;
/// The last one a loop may start with.
pub(super) const LIMIT: Register = Register::R10;
/// The buffer a load or store is from, where it has no register of its own.
const FAR: Register = Register::R11;
/// Registers of the first buffers, and how many of them are the caller's to keep.
const NEAR: [Register; 8] = [
    Register::R8,
    Register::R9,
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
const OURS: usize = 2;

/// Most groups of an iteration, and most instructions.
pub(super) const MOST_GROUPS: usize = 12;
pub(super) const MOST_INSTRUCTIONS: usize = 2048;

pub(super) struct Emitter {
    pub(super) width: Width,
    encoder: Encoder,
    /// Address of the next instruction, from the start of the pool.
    pub(super) at: u64,
    entry: usize,
    /// The first number in the pool of the program whose code this is.
    pub(super) pool: u32,
    buffers: usize,
    /// Slots of scratch memory.
    spilled: u32,
    /// Ends of the jumps that leave the function.
    exits: Vec<u64>,
}

/// A function `(buffers, numbers, elements, scratch)` for whole groups, which gives the number of elements before the
/// first group it does not compute; `None` if an instruction cannot be encoded.
pub(super) fn emit(program: &Vectors, buffers: usize, width: Width) -> Option<Machine> {
    build(program, buffers, width).ok()
}

/// How many groups the loops take at once.
fn unrolling(program: &Vectors, width: Width) -> Vec<usize> {
    let (registers, pressure) = (width.registers(), program.pressure().max(1));
    // Up to four groups pay even where vectors go to scratch memory and back.
    let spilling = (2 * (registers - 1) / pressure).min(4);
    let by_registers = ((registers - 3) / pressure).max(spilling);
    let by_length = MOST_INSTRUCTIONS / program.insts.len().max(1);
    let most = by_registers.min(by_length).clamp(1, MOST_GROUPS);
    let mut all = vec![most, most / 4, 1];
    all.retain(|&n| n > 0);
    all.dedup();
    all
}

fn build(program: &Vectors, buffers: usize, width: Width) -> Result<Machine, IcedError> {
    let mut e = Emitter::begin(program.pool.len(), buffers, width)?;
    e.put(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX))?;
    let mut jumps = Vec::new();
    for groups in unrolling(program, width) {
        let code = allocate(&program.interleaved(groups, width.group(), 0), width.registers());
        let elements = (groups * width.group()) as i32;
        e.put(Instruction::with2(Code::Mov_r64_rm64, LIMIT, COUNT))?;
        e.put(Instruction::with2(Code::Sub_rm64_imm32, LIMIT, elements))?;
        e.put(Instruction::with2(Code::Cmp_r64_rm64, INDEX, LIMIT))?;
        let skip = e.at;
        e.put(Instruction::with_branch(Code::Jg_rel32_64, skip))?;
        let after_skip = e.at;
        e.steps(&code.before, code.slots)?;
        let top = e.at;
        e.steps(&code.steps, code.slots)?;
        e.put(Instruction::with2(Code::Add_rm64_imm32, INDEX, elements))?;
        e.put(Instruction::with2(Code::Cmp_r64_rm64, INDEX, LIMIT))?;
        e.put(Instruction::with_branch(Code::Jle_rel32_64, top))?;
        jumps.push((after_skip, e.at));
    }
    let end = e.at;
    jumps.extend(e.exits.drain(..).map(|from| (from, end)));
    let mut machine = e.end(&program.pool)?;
    for (from, to) in jumps {
        machine.bytes[from as usize - 4..from as usize].copy_from_slice(&((to - from) as u32).to_le_bytes());
    }
    Ok(machine)
}

/// One step's code.
#[cfg(test)]
pub(super) fn encode(step: &AllocEvent, width: Width) -> Result<Vec<u8>, IcedError> {
    let mut e = Emitter::begin(0, 0, width)?;
    e.step(step)?;
    Ok(e.encoder.take_buffer())
}

/// Where a number of the run lies.
pub(super) fn number(slot: u32) -> MemoryOperand {
    MemoryOperand::with_base_displ(UNIFORMS, i64::from(slot) * 8)
}

/// Registers of buffers that are the caller's to keep.
fn saved(buffers: usize) -> &'static [Register] {
    &NEAR[OURS.min(buffers)..buffers.clamp(OURS.min(buffers), NEAR.len())]
}

impl Emitter {
    /// The start of a function over so many buffers, behind a pool of so many numbers.
    pub(super) fn begin(pool: usize, buffers: usize, width: Width) -> Result<Emitter, IcedError> {
        let at = (pool * 8).next_multiple_of(64) as u64;
        let (encoder, exits) = (Encoder::new(64), Vec::new());
        let mut e = Emitter { width, encoder, at, entry: at as usize, pool: 0, buffers, spilled: 0, exits };
        for &register in saved(buffers) {
            e.put(Instruction::with1(Code::Push_r64, register))?;
        }
        for (buffer, &register) in NEAR.iter().enumerate().take(buffers) {
            let from = MemoryOperand::with_base_displ(BUFFERS, buffer as i64 * 8);
            e.put(Instruction::with2(Code::Mov_r64_rm64, register, from))?;
        }
        Ok(e)
    }

    /// The end of the function, and what it is with this pool.
    pub(super) fn end(mut self, pool: &[u64]) -> Result<Machine, IcedError> {
        self.put(Ok(Instruction::with(Code::VEX_Vzeroupper)))?;
        for &register in saved(self.buffers).iter().rev() {
            self.put(Instruction::with1(Code::Pop_r64, register))?;
        }
        self.put(Ok(Instruction::with(Code::Retnq)))?;
        let mut bytes: Vec<u8> = pool.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        bytes.resize(self.entry, 0);
        bytes.extend(self.encoder.take_buffer());
        Ok(Machine { bytes, entry: self.entry, scratch: self.spilled as usize * self.width.bytes() })
    }

    /// Steps that use so many slots of scratch memory.
    pub(super) fn steps(&mut self, steps: &[AllocEvent], slots: u32) -> Result<(), IcedError> {
        self.spilled = self.spilled.max(slots);
        steps.iter().try_for_each(|step| self.step(step))
    }

    pub(super) fn put(&mut self, instruction: Result<Instruction, IcedError>) -> Result<(), IcedError> {
        self.at += self.encoder.encode(&instruction?, self.at)? as u64;
        Ok(())
    }

    pub(super) fn vector(&self, r: Reg) -> Register {
        match self.width {
            Width::Ymm => Register::YMM0 + u32::from(r),
            Width::Zmm => Register::ZMM0 + u32::from(r),
        }
    }

    /// The lower half of a vector.
    fn low(&self, r: Reg) -> Register {
        match self.width {
            Width::Ymm => Register::XMM0 + u32::from(r),
            Width::Zmm => Register::YMM0 + u32::from(r),
        }
    }

    /// The first 16 bytes of a vector.
    pub(super) fn first(&self, r: Reg) -> Register {
        Register::XMM0 + u32::from(r)
    }

    /// The register no value lives in.
    fn spare(&self) -> Reg {
        self.width.registers() as Reg
    }

    /// The code for this width.
    pub(super) fn either(&self, ymm: Code, zmm: Code) -> Code {
        match self.width {
            Width::Ymm => ymm,
            Width::Zmm => zmm,
        }
    }

    fn slot(&self, slot: u32) -> MemoryOperand {
        MemoryOperand::with_base_displ(SCRATCH, i64::from(slot) * self.width.bytes() as i64)
    }

    fn step(&mut self, step: &AllocEvent) -> Result<(), IcedError> {
        let load = self.either(Code::VEX_Vmovups_ymm_ymmm256, Code::EVEX_Vmovups_zmm_k1z_zmmm512);
        let store = self.either(Code::VEX_Vmovups_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm);
        match *step {
            AllocEvent::Spill(from, slot) => self.put(Instruction::with2(store, self.slot(slot), self.vector(from))),
            AllocEvent::Reload(to, slot) => self.put(Instruction::with2(load, self.vector(to), self.slot(slot))),
            AllocEvent::Copy { from, to } => self.put(Instruction::with2(load, self.vector(to), self.vector(from))),
            AllocEvent::Broadcast(to, uniform) => self.broadcast(to, uniform),
            AllocEvent::Op { op: Op::Load(place), result, .. } => self.load(place, result),
            AllocEvent::Op { op: Op::Store(place), ref args, .. } => self.store(place, args[0]),
            AllocEvent::Op { op: Op::Check, ref args, .. } => self.check(args[0]),
            AllocEvent::Op { op: Op::Keep(slot), ref args, .. } => {
                let code = self.either(Code::VEX_Vmovss_m32_xmm, Code::EVEX_Vmovss_m32_k1_xmm);
                self.put(Instruction::with2(code, number(slot), self.first(args[0])))
            }
            AllocEvent::Op { op: Op::KeepWide(slot), ref args, .. } => {
                let code = self.either(Code::VEX_Vmovsd_m64_xmm, Code::EVEX_Vmovsd_m64_k1_xmm);
                self.put(Instruction::with2(code, number(slot), self.first(args[0])))
            }
            AllocEvent::Op { op, imm, ref args, result } => self.op(op, imm, args, result),
        }
    }

    fn broadcast(&mut self, to: Reg, uniform: Uniform) -> Result<(), IcedError> {
        let from = match uniform.from {
            Origin::Slot(slot) => number(slot),
            Origin::Pool(at) => MemoryOperand::with_base_displ(Register::RIP, i64::from(self.pool + at) * 8),
        };
        let code = if uniform.wide {
            self.either(Code::VEX_Vbroadcastsd_ymm_m64, Code::EVEX_Vbroadcastsd_zmm_k1z_xmmm64)
        } else {
            self.either(Code::VEX_Vbroadcastss_ymm_m32, Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32)
        };
        self.put(Instruction::with2(code, self.vector(to), from))
    }

    fn element(&mut self, place: VecSlot) -> Result<MemoryOperand, IcedError> {
        let buffer = usize::from(place.buffer);
        let base = match NEAR.get(buffer) {
            Some(&register) => register,
            None => {
                let from = MemoryOperand::with_base_displ(BUFFERS, buffer as i64 * 8);
                self.put(Instruction::with2(Code::Mov_r64_rm64, FAR, from))?;
                FAR
            }
        };
        let (bytes, first) = (place.form.bytes(), i64::from(place.first));
        Ok(MemoryOperand::with_base_index_scale_displ_size(base, INDEX, bytes as u32, first * bytes as i64, 1))
    }

    fn load(&mut self, place: VecSlot, to: Reg) -> Result<(), IcedError> {
        let from = self.element(place)?;
        let code = match place.form {
            Form::Bytes => self.either(Code::VEX_Vpmovzxbd_ymm_xmmm64, Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128),
            Form::Words => self.either(Code::VEX_Vpmovzxwd_ymm_xmmm128, Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256),
            Form::Halves => self.either(Code::VEX_Vcvtph2ps_ymm_xmmm128, Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae),
            Form::Vector32 | Form::Vector64 => {
                self.either(Code::VEX_Vmovups_ymm_ymmm256, Code::EVEX_Vmovups_zmm_k1z_zmmm512)
            }
        };
        self.put(Instruction::with2(code, self.vector(to), from))
    }

    fn store(&mut self, place: VecSlot, from: Reg) -> Result<(), IcedError> {
        let to = self.element(place)?;
        let (vector, spare) = (self.vector(from), self.low(self.spare()));
        match (place.form, self.width) {
            (Form::Vector32 | Form::Vector64, _) => {
                let code = self.either(Code::VEX_Vmovups_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm);
                self.put(Instruction::with2(code, to, vector))
            }
            (Form::Halves, _) => {
                let code =
                    self.either(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae);
                self.put(Instruction::with3(code, to, vector, 0))
            }
            (Form::Bytes, Width::Zmm) => self.put(Instruction::with2(Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, to, vector)),
            (Form::Words, Width::Zmm) => self.put(Instruction::with2(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, to, vector)),
            (Form::Bytes | Form::Words, Width::Ymm) => {
                // Both halves packed to 16 bits, and again to bytes; numbers fit, so nothing is cut.
                self.put(Instruction::with3(Code::VEX_Vextracti128_xmmm128_ymm_imm8, spare, vector, 1))?;
                let low = self.low(from);
                self.put(Instruction::with3(Code::VEX_Vpackusdw_xmm_xmm_xmmm128, spare, low, spare))?;
                if place.form == Form::Words {
                    return self.put(Instruction::with2(Code::VEX_Vmovups_xmmm128_xmm, to, spare));
                }
                self.put(Instruction::with3(Code::VEX_Vpackuswb_xmm_xmm_xmmm128, spare, spare, spare))?;
                self.put(Instruction::with2(Code::VEX_Vmovq_xmmm64_xmm, to, spare))
            }
        }
    }

    fn check(&mut self, mask: Reg) -> Result<(), IcedError> {
        let mask = self.vector(mask);
        match self.width {
            Width::Ymm => self.put(Instruction::with2(Code::VEX_Vptest_ymm_ymmm256, mask, mask))?,
            Width::Zmm => {
                let test = Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32;
                self.put(Instruction::with3(test, Register::K1, mask, mask))?;
                self.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, Register::K1, Register::K1))?;
            }
        }
        self.put(Instruction::with_branch(Code::Jne_rel32_64, self.at))?;
        self.exits.push(self.at);
        Ok(())
    }

    fn op(&mut self, op: Op, imm: u8, args: &[Reg], result: Reg) -> Result<(), IcedError> {
        let (d, imm) = (self.vector(result), u32::from(imm));
        let v = |i: usize| self.vector(args[i]);
        if let Some((code, has_imm)) = plain(op, self.width) {
            return self.put(match (args.len(), has_imm) {
                (1, false) => Instruction::with2(code, d, v(0)),
                (1, true) => Instruction::with3(code, d, v(0), imm),
                _ => Instruction::with3(code, d, v(0), v(1)),
            });
        }
        if let Some((code, has_imm, wide)) = compared(op, self.width) {
            let (a, b) = (v(0), v(1));
            let target = self.either_register(d, Register::K1);
            self.put(if has_imm {
                Instruction::with4(code, target, a, b, imm)
            } else {
                Instruction::with3(code, target, a, b)
            })?;
            if self.width == Width::Zmm {
                let spread = if wide { Code::EVEX_Vpmovm2q_zmm_kr } else { Code::EVEX_Vpmovm2d_zmm_kr };
                self.put(Instruction::with2(spread, d, Register::K1))?;
            }
            return Ok(());
        }
        if let Some(codes) = fused(op, self.width) {
            return self.fma(codes, args, result);
        }
        if let Some(which) = half(op, self.width) {
            return self.half(which, args, result);
        }
        match (op, self.width) {
            (Op::BlendD | Op::BlendQ, Width::Ymm) => {
                let code = if op == Op::BlendD {
                    Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm
                } else {
                    Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm
                };
                self.put(Instruction::with4(code, d, v(2), v(1), v(0)))
            }
            (Op::BlendD | Op::BlendQ, Width::Zmm) => {
                let wide = op == Op::BlendQ;
                let mask = if wide { Code::EVEX_Vpmovq2m_kr_zmm } else { Code::EVEX_Vpmovd2m_kr_zmm };
                let (mask_of, yes, no) = (v(0), v(1), v(2));
                self.put(Instruction::with2(mask, Register::K1, mask_of))?;
                self.select(wide, d, yes, no)
            }
            (Op::ScalePs, _) => {
                let code = Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er;
                self.put(Instruction::with3(code, d, v(0), v(1)))
            }
            (Op::Select(comparison), _) => {
                let Some((code, has_imm, wide)) = compared(comparison.mask(), Width::Zmm) else {
                    unreachable!("{comparison:?} has a form")
                };
                let (a, b, yes, no) = (v(0), v(1), v(2), v(3));
                self.put(if has_imm {
                    Instruction::with4(code, Register::K1, a, b, imm)
                } else {
                    Instruction::with3(code, Register::K1, a, b)
                })?;
                self.select(wide, d, yes, no)
            }
            (Op::RoundHalf, _) => {
                let (to, from) = (
                    self.either(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae),
                    self.either(Code::VEX_Vcvtph2ps_ymm_xmmm128, Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae),
                );
                let (x, spare) = (v(0), self.low(self.spare()));
                self.put(Instruction::with3(to, spare, x, 0))?;
                self.put(Instruction::with2(from, d, spare))
            }
            (Op::QToDNarrow, Width::Ymm) => {
                // Even numbers of both, 128 bits by 128 bits, then these in order.
                self.put(Instruction::with4(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, d, v(0), v(1), 0x88))?;
                self.put(Instruction::with3(Code::VEX_Vpermq_ymm_ymmm256_imm8, d, d, 0xd8))
            }
            _ => unreachable!("{op:?} has a form"),
        }
    }

    /// By the bits of a mask register, on AVX-512.
    pub(super) fn select(&mut self, wide: bool, to: Register, yes: Register, no: Register) -> Result<(), IcedError> {
        let code = if wide {
            Code::EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64
        } else {
            Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32
        };
        let mut instruction = Instruction::with3(code, to, no, yes)?;
        instruction.set_op_mask(Register::K1);
        self.put(Ok(instruction))
    }

    fn either_register(&self, ymm: Register, zmm: Register) -> Register {
        if self.width == Width::Ymm { ymm } else { zmm }
    }

    /// The result's register is one operand's: the sum's, or a factor's.
    fn fma(&mut self, [product, sum]: [Code; 2], args: &[Reg], result: Reg) -> Result<(), IcedError> {
        let [a, b, c] = [args[0], args[1], args[2]].map(|r| self.vector(r));
        self.put(match result {
            r if r == args[2] => Instruction::with3(sum, c, a, b),
            r if r == args[0] => Instruction::with3(product, a, b, c),
            _ => Instruction::with3(product, b, a, c),
        })
    }

    /// Halves of a vector made whole, or two vectors halved.
    fn half(&mut self, which: Half, args: &[Reg], result: Reg) -> Result<(), IcedError> {
        let (d, spare) = (self.vector(result), self.low(self.spare()));
        match which {
            Half::Low(code) => self.put(Instruction::with2(code, d, self.low(args[0]))),
            Half::High(code) => {
                let extract =
                    self.either(Code::VEX_Vextracti128_xmmm128_ymm_imm8, Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8);
                self.put(Instruction::with3(extract, spare, self.vector(args[0]), 1))?;
                self.put(Instruction::with2(code, d, spare))
            }
            Half::Narrow(code) => {
                let insert = self.either(
                    Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8,
                    Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8,
                );
                self.put(Instruction::with2(code, spare, self.vector(args[1])))?;
                self.put(Instruction::with2(code, self.low(result), self.vector(args[0])))?;
                self.put(Instruction::with4(insert, d, d, spare, 1))
            }
        }
    }
}
