//! Code for AVX-512, on machines that may not have it.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Instruction, OpKind, Register};
use ltc_ir::DType;

use super::{
    super::{
        JitInput,
        allocate::AllocEvent,
        emit,
        vector::{Form, Op, VecSlot, Width},
    },
    Case, Dice, Elements, Lie, random, simulate,
};
use crate::{
    ComputeType, Jit, Val,
    ir::{Builder, Inst, KernelOp},
};

fn input(case: &Case) -> JitInput {
    let uniform = |v: &(Inst, ComputeType)| matches!(v.0, Inst::Number(..) | Inst::Const(_));
    let mut uniforms: Vec<bool> = case.ir.values.iter().map(uniform).collect();
    for i in 0..uniforms.len() {
        if let Inst::Input(input) = case.ir.values[i].0 {
            uniforms[i] = case.inputs[input as usize].1 == Lie::One;
        } else if matches!(case.ir.values[i].0, Inst::Op(..)) {
            uniforms[i] = case.ir.operands(Val(i as u32)).iter().all(|o| uniforms[o.0 as usize]);
        }
    }
    JitInput {
        ir: case.ir.clone(),
        uniform: uniforms,
        inputs: case.inputs.iter().map(|i| i.0).collect(),
        outputs: case.outputs.clone(),
        staged: vec![false; case.outputs.len()],
    }
}

/// Code for AVX-512 decodes to instructions that machines with F, VL, BW and DQ have, and ends where it should.
#[test]
fn both_widths_decode() {
    use CpuidFeature::*;
    let allowed = [INTEL8086, INTEL386, INTEL486, X64, AVX, AVX2, FMA, F16C, AVX512F, AVX512VL, AVX512BW, AVX512DQ];
    let mut dice = Dice(12345);
    for round in 0..60 {
        let case = random(&mut dice, 1 + round * 4);
        for width in [Width::Ymm, Width::Zmm] {
            let Some(machine) = input(&case).assemble(width, &[0; 1024]) else { continue };
            let bytes = &machine.bytes[machine.entry..];
            let decoder = Decoder::with_ip(64, bytes, machine.entry as u64, DecoderOptions::NONE);
            let all: Vec<Instruction> = decoder.into_iter().collect();
            let starts: Vec<u64> = all.iter().map(Instruction::ip).collect();
            assert_eq!(all.last().map(Instruction::mnemonic), Some(iced_x86::Mnemonic::Ret));
            for i in &all {
                assert!(!i.is_invalid(), "{width:?} at {:#x}", i.ip());
                assert!(i.cpuid_features().iter().all(|f| allowed.contains(f)), "{i}: {:?}", i.cpuid_features());
                assert!(width == Width::Zmm || !i.cpuid_features().contains(&AVX512F), "{i}");
                if matches!(i.op0_kind(), OpKind::NearBranch64) {
                    assert!(starts.contains(&i.near_branch64()), "{i} jumps into an instruction");
                }
                if i.is_ip_rel_memory_operand() {
                    assert!(i.ip_rel_memory_address() < machine.entry as u64, "{i} reads beyond the pool");
                }
                assert!(!i.op_kinds().any(|k| k == OpKind::Memory) || i.memory_base() != Register::None, "{i}");
            }
        }
    }
}

/// The AVX-512 program, spills and all, computed by a machine of ours, gives the bits of tier 0.
#[test]
fn wide_programs_agree() {
    if crate::instruction_set() == "portable" {
        eprintln!("this machine rounds products before they are added: vector programs do not");
        return;
    }
    let mut compared = 0;
    for seed in 1..220u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let size = 1 + dice.below(if seed % 10 == 0 { 300 } else { 80 });
        let mut case = random(&mut dice, size);
        case.inputs.iter_mut().for_each(|i| i.1 = Lie::Dense);
        let groups = 1 + dice.below(4);
        let n = groups * Width::Zmm.group();
        let numbers = [dice.element(DType::F64), dice.element(DType::I64)];
        let mut inputs: Vec<Elements> = case.inputs.iter().map(|i| Elements::new(i.0, n, 0, &mut dice)).collect();
        let mut outputs: Vec<Elements> = case.outputs.iter().map(|d| Elements::new(*d, n, 0, &mut dice)).collect();
        let mut kernel = case.kernel(1, n, false).expect("a kernel");
        kernel.set_jit(Jit::Off);
        let from: Vec<*const u8> = inputs.iter_mut().map(|i| i.at().cast_const()).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(Elements::at).collect();
        // SAFETY: `n` elements each.
        unsafe { kernel.run(&to, &from, &numbers, |n, f| f(0..n)) }.expect("runs");
        let bytes = |e: &Elements| e.memory.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let mut buffers: Vec<Vec<u8>> = inputs.iter().chain(&outputs).map(bytes).collect();
        buffers[inputs.len()..].iter_mut().for_each(|p| p.fill(0xcc));
        let input = input(&case);
        let mut uniforms = kernel.uniforms(&from, &numbers);
        let truths = input.uniform.iter().zip(&case.ir.values).filter(|(u, _)| **u);
        for (slot, (_, value)) in uniforms.iter_mut().zip(truths) {
            *slot = if value.1 == ComputeType::Bool && *slot != 0 { u64::MAX } else { *slot };
        }
        if !simulate::run(&input, &uniforms, groups, &mut buffers) {
            continue;
        }
        compared += 1;
        for (output, buffer) in outputs.iter_mut().zip(&buffers[inputs.len()..]) {
            let words = buffer.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")));
            let mut got = Elements { memory: words.collect(), dtype: output.dtype, shift: 0, n };
            assert_eq!(got.bits().0, output.bits().0, "{case:?}");
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Every operation's instruction for AVX-512 is the one for AVX2 with wider registers, or what stands in its place.
#[test]
fn both_widths_are_one_operation() {
    use Op::*;
    let place = |form| VecSlot { buffer: 9, first: 48, form };
    let forms = [Form::Bytes, Form::Words, Form::Halves, Form::Vector32, Form::Vector64];
    let simple = [
        AddPs, SubPs, MulPs, DivPs, MaxPs, MinPs, AddPd, SubPd, MulPd, DivPd, MaxPd, MinPd, And, Andn, Or, Xor, AddD,
        SubD, MulD, MaxD, MinD, AddQ, SubQ, MulLow,
    ];
    let of_one = [
        SqrtPs, SqrtPd, AbsD, DToPs, PsToD, RoundPs, RoundPd, ShlD, ShrD, SarD, ShlQ, ShrQ, RoundHalf, DToQLo, DToQHi,
        PsToPdLo, PsToPdHi, DToPdLo, DToPdHi,
    ];
    let mut cases: Vec<(Op, Vec<u8>, u8)> = simple.iter().map(|&op| (op, vec![1, 2], 0)).collect();
    cases.extend(of_one.iter().map(|&op| (op, vec![1], 0)));
    cases.extend(
        [CmpPs, CmpPd, EqD, GtD, EqQ, GtQ, QToDNarrow, PdToPsNarrow, PdToDNarrow].map(|op| (op, vec![1, 2], 0)),
    );
    cases.extend([BlendD, BlendQ].map(|op| (op, vec![1, 2, 3], 0)));
    for result in [1, 2, 3] {
        cases.extend([FmaPs, FmaPd].map(|op| (op, vec![1, 2, 3], result)));
    }
    cases.extend(forms.map(|form| (Load(place(form)), vec![], 0)));
    cases.extend(forms.map(|form| (Store(place(form)), vec![1], 0)));
    cases.extend([Keep(7), KeepWide(7)].map(|op| (op, vec![1], 0)));
    for (op, args, result) in cases {
        let step = AllocEvent::Op { op, imm: 10, args: args.into_iter().collect(), result };
        let read = |width: Width| -> Vec<String> {
            let bytes = emit::encode(&step, width).expect("encodes");
            let mut formatter = iced_x86::IntelFormatter::new();
            let mut line = |i: Instruction| {
                assert!(!i.is_invalid() && !i.suppress_all_exceptions() && !i.zeroing_masking(), "{i}");
                assert_eq!(i.rounding_control(), iced_x86::RoundingControl::None);
                let mut text = String::new();
                iced_x86::Formatter::format(&mut formatter, &i, &mut text);
                text
            };
            Decoder::new(64, &bytes, DecoderOptions::NONE).into_iter().map(&mut line).collect()
        };
        let (narrow, wide) = (read(Width::Ymm), read(Width::Zmm));
        // The spare register, and the registers' names, one size up.
        let up = |text: &str| {
            let text = text.replace("mm15", "mm31").replace("ymm", "zmm").replace("xmm", "ymm");
            text.replace("i128 ", "i64x4 ")
                .replace("vround", "vrndscale")
                .replace("ymmword", "zmmword")
                .replace("xmmword", "ymmword")
        };
        let expected: Vec<String> = match op {
            // Bitwise operations name a lane size.
            And | Andn | Or | Xor => narrow.iter().map(|l| up(l).replacen(' ', "d ", 1)).collect(),
            CmpPs | EqD | GtD => vec![up(&narrow[0]).replacen("zmm0", "k1", 1), "vpmovm2d zmm0,k1".into()],
            CmpPd | EqQ | GtQ => vec![up(&narrow[0]).replacen("zmm0", "k1", 1), "vpmovm2q zmm0,k1".into()],
            BlendD => vec!["vpmovd2m k1,zmm1".into(), "vpblendmd zmm0{k1},zmm3,zmm2".into()],
            BlendQ => vec!["vpmovq2m k1,zmm1".into(), "vpblendmq zmm0{k1},zmm3,zmm2".into()],
            QToDNarrow => {
                ["vpmovqd ymm31,zmm2", "vpmovqd ymm0,zmm1", "vinserti64x4 zmm0,zmm0,ymm31,1"].map(String::from).into()
            }
            // What is kept is one lane, whatever the vector.
            Keep(_) | KeepWide(_) => narrow.clone(),
            Store(p) if p.form == Form::Bytes => {
                vec![narrow[0].clone(), "vpmovdb [r11+rax+30h],zmm1".into()]
            }
            Store(p) if p.form == Form::Words => {
                vec![narrow[0].clone(), "vpmovdw [r11+rax*2+60h],zmm1".into()]
            }
            _ => narrow.iter().map(|l| up(l)).collect(),
        };
        assert_eq!(wide, expected, "{op:?}: {narrow:?}");
    }
}

/// Comparisons for selections only stay bits, and powers of two are one instruction.
#[test]
fn what_only_avx512_has_is_used() {
    let mnemonics = |of: &dyn Fn(&mut Builder, Val, Val) -> Vec<Val>| {
        let mut b = Builder::new(false);
        let (x, y) = (b.input(0, ComputeType::F32), b.input(1, ComputeType::F32));
        let outputs = of(&mut b, x, y);
        let ir = b.finish(&outputs);
        let dtype = |v: &Val| if ir.ty(*v) == ComputeType::Bool { DType::Bool } else { DType::F32 };
        let outputs = ir.outputs.iter().map(dtype).collect();
        let case = Case { inputs: vec![(DType::F32, Lie::Dense); 2], outputs, ir };
        [Width::Ymm, Width::Zmm].map(|width| {
            let machine = input(&case).assemble(width, &[0; 16]).expect("a program");
            let decoder = Decoder::with_ip(64, &machine.bytes[machine.entry..], 0, DecoderOptions::NONE);
            let name = |i: Instruction| format!("{:?}", i.mnemonic()).to_lowercase();
            decoder.into_iter().map(name).collect::<Vec<String>>()
        })
    };
    let has = |names: &[String], name: &str| names.iter().any(|n| n == name);
    let [narrow, wide] = mnemonics(&|b, x, y| {
        let less = b.op(KernelOp::Lt, &[x, y]);
        vec![b.op(KernelOp::Select, &[less, x, y])]
    });
    assert!(has(&narrow, "vblendvps") && has(&wide, "vpblendmd") && has(&wide, "vcmpps"));
    assert!(!has(&wide, "vpmovm2d") && !has(&wide, "vpmovd2m"), "{wide:?}");
    // Who stores the mask needs it in lanes.
    let [_, wide] = mnemonics(&|b, x, y| {
        let less = b.op(KernelOp::Lt, &[x, y]);
        vec![b.op(KernelOp::Select, &[less, x, y]), less]
    });
    assert!(has(&wide, "vpmovm2d") && has(&wide, "vpmovd2m"), "{wide:?}");
    let [narrow, wide] = mnemonics(&|b, x, _| vec![b.op(KernelOp::Exp, &[x])]);
    assert!(has(&wide, "vscalefps") && !has(&wide, "vpsrad"), "{wide:?}");
    assert!(has(&narrow, "vpsrad"), "{narrow:?}");
}
