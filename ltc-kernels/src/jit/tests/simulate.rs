//! Vector programs of any width, run by a machine written in Rust: AVX-512 programs where there is no AVX-512.

use super::super::{
    JitInput,
    allocate::{AllocEvent, Allocated, allocate},
    vector::{Comparison, Form, Op, Origin, VecSlot, Vectors, Width, compare, rounding},
};

type Register = [u8; 64];

fn d(r: &Register) -> [u32; 16] {
    std::array::from_fn(|i| u32::from_le_bytes(r[i * 4..i * 4 + 4].try_into().expect("four bytes")))
}

fn q(r: &Register) -> [u64; 8] {
    std::array::from_fn(|i| u64::from_le_bytes(r[i * 8..i * 8 + 8].try_into().expect("eight bytes")))
}

fn of_d(lanes: [u32; 16]) -> Register {
    std::array::from_fn(|i| lanes[i / 4].to_le_bytes()[i % 4])
}

fn of_q(lanes: [u64; 8]) -> Register {
    std::array::from_fn(|i| lanes[i / 8].to_le_bytes()[i % 8])
}

fn mask_d(set: bool) -> u32 {
    if set { u32::MAX } else { 0 }
}

fn mask_q(set: bool) -> u64 {
    if set { u64::MAX } else { 0 }
}

fn compared<T: PartialOrd>(x: T, y: T, how: u8) -> bool {
    match how {
        compare::EQ => x == y,
        compare::NE => x != y,
        compare::LT => x < y,
        compare::LE => x <= y,
        compare::UNORDERED => x.partial_cmp(&y).is_none(),
        _ => unreachable!("{how}"),
    }
}

fn rounded(x: f64, how: u8) -> f64 {
    match how {
        rounding::EVEN => x.round_ties_even(),
        rounding::FLOOR => x.floor(),
        rounding::CEIL => x.ceil(),
        _ => x.trunc(),
    }
}

fn whole(x: f64) -> u32 {
    let t = x.trunc();
    (if (-2_147_483_648.0..2_147_483_648.0).contains(&t) { t as i32 } else { i32::MIN }) as u32
}

fn operate(op: Op, imm: u8, a: &[Register]) -> Register {
    use Op::*;
    let f = |r: usize, i: usize| f32::from_bits(d(&a[r])[i]);
    let g = |r: usize, i: usize| f64::from_bits(q(&a[r])[i]);
    let (s, t) = (|r: usize, i: usize| d(&a[r])[i], |r: usize, i: usize| q(&a[r])[i]);
    let ps = |h: &dyn Fn(usize) -> f32| of_d(std::array::from_fn(|i| h(i).to_bits()));
    let pd = |h: &dyn Fn(usize) -> f64| of_q(std::array::from_fn(|i| h(i).to_bits()));
    let ds = |h: &dyn Fn(usize) -> u32| of_d(std::array::from_fn(h));
    let qs = |h: &dyn Fn(usize) -> u64| of_q(std::array::from_fn(h));
    // Of two vectors the lanes of both.
    let both = |i: usize| (i / 8, i % 8);
    match op {
        AddPs => ps(&|i| f(0, i) + f(1, i)),
        SubPs => ps(&|i| f(0, i) - f(1, i)),
        MulPs => ps(&|i| f(0, i) * f(1, i)),
        DivPs => ps(&|i| f(0, i) / f(1, i)),
        MaxPs => ps(&|i| if f(0, i) > f(1, i) { f(0, i) } else { f(1, i) }),
        MinPs => ps(&|i| if f(0, i) < f(1, i) { f(0, i) } else { f(1, i) }),
        AddPd => pd(&|i| g(0, i) + g(1, i)),
        SubPd => pd(&|i| g(0, i) - g(1, i)),
        MulPd => pd(&|i| g(0, i) * g(1, i)),
        DivPd => pd(&|i| g(0, i) / g(1, i)),
        MaxPd => pd(&|i| if g(0, i) > g(1, i) { g(0, i) } else { g(1, i) }),
        MinPd => pd(&|i| if g(0, i) < g(1, i) { g(0, i) } else { g(1, i) }),
        And => qs(&|i| t(0, i) & t(1, i)),
        Andn => qs(&|i| !t(0, i) & t(1, i)),
        Or => qs(&|i| t(0, i) | t(1, i)),
        Xor => qs(&|i| t(0, i) ^ t(1, i)),
        AddD => ds(&|i| s(0, i).wrapping_add(s(1, i))),
        SubD => ds(&|i| s(0, i).wrapping_sub(s(1, i))),
        MulD => ds(&|i| s(0, i).wrapping_mul(s(1, i))),
        MaxD => ds(&|i| (s(0, i) as i32).max(s(1, i) as i32) as u32),
        MinD => ds(&|i| (s(0, i) as i32).min(s(1, i) as i32) as u32),
        AddQ => qs(&|i| t(0, i).wrapping_add(t(1, i))),
        SubQ => qs(&|i| t(0, i).wrapping_sub(t(1, i))),
        MulLow => qs(&|i| (t(0, i) & 0xffff_ffff) * (t(1, i) & 0xffff_ffff)),
        SqrtPs => ps(&|i| f(0, i).sqrt()),
        SqrtPd => pd(&|i| g(0, i).sqrt()),
        AbsD => ds(&|i| (s(0, i) as i32).wrapping_abs() as u32),
        DToPs => ps(&|i| s(0, i) as i32 as f32),
        PsToD => ds(&|i| whole(f64::from(f(0, i)))),
        RoundPs => ps(&|i| rounded(f64::from(f(0, i)), imm) as f32),
        RoundPd => pd(&|i| rounded(g(0, i), imm)),
        ShlD => ds(&|i| s(0, i) << imm),
        ShrD => ds(&|i| s(0, i) >> imm),
        SarD => ds(&|i| (s(0, i) as i32 >> imm) as u32),
        ShlQ => qs(&|i| t(0, i) << imm),
        ShrQ => qs(&|i| t(0, i) >> imm),
        CmpPs => ds(&|i| mask_d(compared(f(0, i), f(1, i), imm))),
        CmpPd => qs(&|i| mask_q(compared(g(0, i), g(1, i), imm))),
        EqD => ds(&|i| mask_d(s(0, i) == s(1, i))),
        GtD => ds(&|i| mask_d(s(0, i) as i32 > s(1, i) as i32)),
        EqQ => qs(&|i| mask_q(t(0, i) == t(1, i))),
        GtQ => qs(&|i| mask_q(t(0, i) as i64 > t(1, i) as i64)),
        BlendD => ds(&|i| if s(0, i) >> 31 == 1 { s(1, i) } else { s(2, i) }),
        BlendQ => qs(&|i| if t(0, i) >> 63 == 1 { t(1, i) } else { t(2, i) }),
        Select(comparison) => {
            let mask = operate(comparison.mask(), imm, a);
            let blend =
                if matches!(comparison, Comparison::Ps | Comparison::EqD | Comparison::GtD) { BlendD } else { BlendQ };
            operate(blend, 0, &[mask, a[2], a[3]])
        }
        ScalePs => ps(&|i| (f64::from(f(0, i)) * f64::from(f(1, i)).exp2()) as f32),
        FmaPs => ps(&|i| f(0, i).mul_add(f(1, i), f(2, i))),
        FmaPd => pd(&|i| g(0, i).mul_add(g(1, i), g(2, i))),
        RoundHalf => ps(&|i| half::f16::from_f32(f(0, i)).to_f32()),
        DToQLo => qs(&|i| s(0, i) as i32 as i64 as u64),
        DToQHi => qs(&|i| s(0, i + 8) as i32 as i64 as u64),
        QToDNarrow => ds(&|i| t(both(i).0, both(i).1) as u32),
        PsToPdLo => pd(&|i| f64::from(f(0, i))),
        PsToPdHi => pd(&|i| f64::from(f(0, i + 8))),
        PdToPsNarrow => ps(&|i| g(both(i).0, both(i).1) as f32),
        DToPdLo => pd(&|i| f64::from(s(0, i) as i32)),
        DToPdHi => pd(&|i| f64::from(s(0, i + 8) as i32)),
        PdToDNarrow => ds(&|i| whole(g(both(i).0, both(i).1))),
        Load(_) | Store(_) | Check | Keep(_) | KeepWide(_) => unreachable!("memory is the machine's"),
    }
}

fn load(buffer: &[u8], place: VecSlot) -> Register {
    let at = |i: usize, bytes: usize| {
        let from = (usize::from(place.first) + i) * bytes;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&buffer[from..from + bytes]);
        u64::from_le_bytes(word)
    };
    match place.form {
        Form::Bytes => of_d(std::array::from_fn(|i| at(i, 1) as u32)),
        Form::Words => of_d(std::array::from_fn(|i| at(i, 2) as u32)),
        Form::Halves => of_d(std::array::from_fn(|i| half::f16::from_bits(at(i, 2) as u16).to_f32().to_bits())),
        Form::Vector32 => of_d(std::array::from_fn(|i| at(i, 4) as u32)),
        Form::Vector64 => of_q(std::array::from_fn(|i| at(i, 8))),
    }
}

fn store(buffer: &mut [u8], place: VecSlot, register: &Register) {
    let bytes = place.form.bytes();
    let lanes: Vec<u64> = match place.form {
        Form::Vector64 => q(register).into(),
        Form::Halves => {
            d(register).iter().map(|b| u64::from(half::f16::from_f32(f32::from_bits(*b)).to_bits())).collect()
        }
        _ => d(register).iter().map(|b| u64::from(*b)).collect(),
    };
    for (i, lane) in lanes.into_iter().enumerate() {
        let to = (usize::from(place.first) + i) * bytes;
        buffer[to..to + bytes].copy_from_slice(&lane.to_le_bytes()[..bytes]);
    }
}

/// Computes so many groups of AVX-512; `buffers` are the bytes of inputs and outputs. Whether there is a program,
/// and no element is left to tier 0.
pub(super) fn run(input: &JitInput, uniforms: &[u64], groups: usize, buffers: &mut [Vec<u8>]) -> bool {
    let Some(program) = input.program(Width::Zmm, uniforms) else { return false };
    let all: Vectors = program.interleaved(groups, Width::Zmm.group(), 0);
    let Allocated { before, steps, slots } = allocate(&all, Width::Zmm.registers());
    let mut registers = [[0xa5u8; 64]; 32];
    let mut scratch = vec![[0xa5u8; 64]; slots as usize];
    for step in before.iter().chain(&steps) {
        match step {
            AllocEvent::Spill(from, slot) => scratch[*slot as usize] = registers[usize::from(*from)],
            AllocEvent::Reload(to, slot) => registers[usize::from(*to)] = scratch[*slot as usize],
            AllocEvent::Copy { from, to } => registers[usize::from(*to)] = registers[usize::from(*from)],
            AllocEvent::Broadcast(to, uniform) => {
                let bits = match uniform.from {
                    Origin::Slot(c) => uniforms[c as usize],
                    Origin::Pool(at) => program.pool[at as usize],
                };
                registers[usize::from(*to)] = if uniform.wide { of_q([bits; 8]) } else { of_d([bits as u32; 16]) };
            }
            AllocEvent::Op { op: Op::Load(place), result, .. } => {
                registers[usize::from(*result)] = load(&buffers[usize::from(place.buffer)], *place);
            }
            AllocEvent::Op { op: Op::Store(place), args, .. } => {
                store(&mut buffers[usize::from(place.buffer)], *place, &registers[usize::from(args[0])]);
            }
            AllocEvent::Op { op: Op::Check, args, .. } => {
                if d(&registers[usize::from(args[0])]).iter().any(|lane| *lane != 0) {
                    return false;
                }
            }
            AllocEvent::Op { op, imm, args, result } => {
                // The machine has these sums in place only.
                assert!(!matches!(op, Op::FmaPs | Op::FmaPd) || args.contains(result));
                let operands: Vec<Register> = args.iter().map(|r| registers[usize::from(*r)]).collect();
                registers[usize::from(*result)] = operate(*op, *imm, &operands);
            }
        }
    }
    true
}
