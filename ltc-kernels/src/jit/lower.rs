//! An IR as a vector program.

use ltc_ir::DType;

use super::{
    super::ir::{ComputeType, Inst, KernelIr, KernelOp, Val},
    Target,
    math::wide_integer,
    vector::{Form, Op, V, VecSlot, Vectors, Width, compare, rounding},
};

/// A value in vectors: as one, as two, or, of a `Bool`, as whichever somebody asked for.
#[derive(Clone, Copy, Default)]
struct Held {
    one: Option<V>,
    two: Option<[V; 2]>,
    /// The same for all elements: where its number lies.
    slot: Option<u32>,
}

/// How elements of this type lie in memory.
pub(super) fn form(dtype: DType) -> Option<Form> {
    Some(match dtype {
        DType::Bool | DType::U8 => Form::Bytes,
        DType::BF16 => Form::Words,
        DType::F16 => Form::Halves,
        DType::I32 | DType::F32 => Form::Vector32,
        DType::I64 | DType::F64 => Form::Vector64,
        _ => return None,
    })
}

struct Lowering<'a> {
    ir: &'a KernelIr,
    width: Width,
    vectors: &'a mut Vectors,
    held: Vec<Held>,
}

/// What to make of an IR.
pub(super) struct Shape<'a> {
    pub(super) ir: &'a KernelIr,
    /// Per value of the IR: where its number lies if it is the same for all elements.
    pub(super) slots: &'a [Option<u32>],
    /// Per input its buffer.
    pub(super) inputs: &'a [(u16, DType)],
    pub(super) targets: &'a [Target],
    /// Uniforms of powers known to be this number.
    pub(super) exponents: &'a [(u32, f64)],
}

/// The program of a group. `None` if some computation has no vector form.
pub(super) fn lower(shape: &Shape<'_>, width: Width) -> Option<Vectors> {
    let mut vectors = Vectors::default();
    lower_after(shape, width, &mut vectors)?;
    vectors.suit(width);
    Some(vectors)
}

/// The same after what a program does already. Accumulators of outputs that are reduced come in the outputs' order.
pub(super) fn lower_after(shape: &Shape<'_>, width: Width, vectors: &mut Vectors) -> Option<()> {
    let ir = shape.ir;
    let computed = |i: &usize| matches!(ir.values[*i].0, Inst::Op(..)) && shape.slots[*i].is_none();
    let mut reduced: Vec<usize> = Vec::new();
    let before = vectors.accumulators.len();
    let mut l = Lowering { ir, width, vectors, held: Vec::with_capacity(ir.values.len()) };
    let is_load = |i: usize| matches!(ir.values[i].0, Inst::Input(_)) && shape.slots[i].is_none();
    let mut loads = (0..ir.values.len()).filter(|&i| is_load(i)).count();
    // What a check leaves to somebody else is computed anew.
    let is_checked = |i: &usize| matches!(ir.values[*i].0, Inst::Op(code, _) if code.is_checked());
    let mut checks = (0..ir.values.len()).filter(computed).filter(is_checked).count();
    let mut pending: Vec<usize> = Vec::new();
    for i in 0..ir.values.len() {
        if let Some(slot) = shape.slots[i] {
            l.held.push(Held { slot: Some(slot), ..Held::default() });
        } else {
            let held = match ir.values[i].0 {
                Inst::Input(input) => {
                    loads -= 1;
                    l.load(*shape.inputs.get(input as usize)?, ir.values[i].1)?
                }
                Inst::Op(KernelOp::Pow, args) => match l.short_power(args, ir.values[i].1, shape.exponents) {
                    Some(power) => power,
                    // Exponents that are not numbers may have short cuts, each another one.
                    None => shape.slots[args[1].0 as usize].and(l.compute(KernelOp::Pow, args, ir.values[i].1))?,
                },
                Inst::Op(code, args) => {
                    checks -= usize::from(code.is_checked());
                    l.compute(code, args, ir.values[i].1)?
                }
                Inst::Number(..) | Inst::Const(_) => return None,
            };
            l.held.push(held);
        }
        let kept = ir.outputs.iter().enumerate().filter(|(_, v)| v.0 as usize == i).map(|(o, _)| o);
        pending.extend(kept);
        // An output that may lie where an input does is written when all inputs are read, and will not be read again.
        let read = loads == 0 && checks == 0;
        let waits = |o: usize| matches!(shape.targets[o], Target::Elements { staged: true, .. });
        let (now, later): (Vec<usize>, Vec<usize>) = pending.iter().partition(|&&o| read || !waits(o));
        pending = later;
        for o in now {
            if matches!(shape.targets[o], Target::Reduced(_)) {
                reduced.push(o);
            }
            l.target(shape.targets[o], ir.outputs[o])?;
        }
    }
    let mut in_order: Vec<(usize, V)> = reduced.into_iter().zip(vectors.accumulators.drain(before..)).collect();
    in_order.sort_by_key(|(o, _)| *o);
    vectors.accumulators.extend(in_order.into_iter().map(|(_, v)| v));
    Some(())
}

impl Lowering<'_> {
    fn ty(&self, v: Val) -> ComputeType {
        self.ir.ty(v)
    }

    /// A value of 32 bits.
    fn one(&mut self, v: Val) -> V {
        let held = self.held[v.0 as usize];
        let one = match (held.one, held.two, held.slot) {
            (Some(one), ..) => one,
            (None, _, Some(slot)) => self.vectors.slot(slot, false),
            (None, Some(two), _) => self.vectors.op(Op::QToDNarrow, &two),
            (None, None, None) => unreachable!("a value is held somehow"),
        };
        self.held[v.0 as usize].one = Some(one);
        one
    }

    /// A value of 64 bits, or a mask for one.
    fn two(&mut self, v: Val) -> [V; 2] {
        let held = self.held[v.0 as usize];
        let two = match (held.two, held.one, held.slot) {
            (Some(two), ..) => two,
            (None, _, Some(slot)) => [self.vectors.slot(slot, true); 2],
            (None, Some(one), _) => [Op::DToQLo, Op::DToQHi].map(|op| self.vectors.op(op, &[one])),
            (None, None, None) => unreachable!("a value is held somehow"),
        };
        self.held[v.0 as usize].two = Some(two);
        two
    }

    fn place(&self, buffer: u16, form: Form, half: usize) -> VecSlot {
        VecSlot { buffer, first: (half * self.width.group() / 2) as u16, form }
    }

    /// Loads a value of this type. (Booleans in memory are read as bytes; those that code cached are masks.)
    fn load(&mut self, (buffer, dtype): (u16, DType), ty: ComputeType) -> Option<Held> {
        let form = form(dtype)?;
        let place = |l: &Self, half| l.place(buffer, form, half);
        Some(match form {
            Form::Vector64 => {
                let halves = [0, 1].map(|half| place(self, half));
                Held { two: Some(halves.map(|p| self.vectors.load(p))), ..Held::default() }
            }
            _ => {
                let place = place(self, 0);
                let v = &mut *self.vectors;
                let bits = v.load(place);
                let one = match dtype {
                    DType::BF16 => v.op_imm(Op::ShlD, &[bits], 16),
                    DType::Bool if ty == ComputeType::Bool => {
                        let zero = v.d(0);
                        v.op(Op::GtD, &[bits, zero])
                    }
                    _ => bits,
                };
                one32(one)
            }
        })
    }

    fn target(&mut self, target: Target, value: Val) -> Option<()> {
        match target {
            Target::Elements { buffer, dtype, .. } => self.store(buffer, dtype, value),
            Target::Reduced(op) => self.reduce(op, value),
            Target::Number(slot) => {
                if self.ty(value).bytes() == 8 {
                    let [first, _] = self.two(value);
                    self.vectors.keep(slot, first, true);
                } else {
                    // Of a truth value a mask of 64 bits, as the code reads it.
                    let wide = self.ty(value) == ComputeType::Bool;
                    let value = self.one(value);
                    self.vectors.keep(slot, value, wide);
                }
                Some(())
            }
        }
    }

    /// Gathers a value, lane by lane, as `reduce/reducers.rs` does.
    fn reduce(&mut self, op: KernelOp, value: Val) -> Option<()> {
        if self.ty(value) != ComputeType::F32 {
            return None;
        }
        let (x, v) = (self.one(value), &mut *self.vectors);
        let (start, outer) = match op {
            KernelOp::Sum => {
                let so_far = v.accumulator(0.0);
                v.accumulate(Op::AddPs, &[so_far, x], so_far);
                return Some(());
            }
            KernelOp::AMax => (f32::NEG_INFINITY, Op::MaxPs),
            KernelOp::AMin => (f32::INFINITY, Op::MinPs),
            _ => return None,
        };
        let so_far = v.accumulator(start);
        let outermost = v.op(outer, &[x, so_far]);
        let is_nan = v.op_imm(Op::CmpPs, &[x, x], compare::UNORDERED);
        v.accumulate(Op::BlendD, &[is_nan, x, outermost], so_far);
        Some(())
    }

    fn store(&mut self, buffer: u16, dtype: DType, value: Val) -> Option<()> {
        let form = form(dtype)?;
        if form == Form::Vector64 {
            for (half, v) in self.two(value).into_iter().enumerate() {
                let place = self.place(buffer, form, half);
                self.vectors.store(place, v);
            }
            return Some(());
        }
        let mut v = self.one(value);
        match dtype {
            DType::BF16 => v = self.vectors.op_imm(Op::ShrD, &[v], 16),
            DType::Bool => v = self.vectors.op_imm(Op::ShrD, &[v], 31),
            _ => {}
        }
        let place = self.place(buffer, form, 0);
        self.vectors.store(place, v);
        Some(())
    }

    /// `x` to a power that is known and has a short cut.
    fn short_power(&mut self, [x, y, _]: [Val; 3], ty: ComputeType, exponents: &[(u32, f64)]) -> Option<Held> {
        let slot = self.held[y.0 as usize].slot?;
        let exponent = exponents.iter().find(|(c, _)| *c == slot)?.1;
        let (mul, div, sqrt) = match ty {
            ComputeType::F32 => (Op::MulPs, Op::DivPs, Op::SqrtPs),
            _ => (Op::MulPd, Op::DivPd, Op::SqrtPd),
        };
        let one = if ty == ComputeType::F32 { self.vectors.ps(1.0) } else { self.vectors.pd(1.0) };
        // Those of `loops.rs`.
        let power = |v: &mut Vectors, x: V| {
            let positive = match exponent.abs() {
                0.0 => one,
                1.0 => x,
                2.0 => v.op(mul, &[x, x]),
                3.0 => {
                    let square = v.op(mul, &[x, x]);
                    v.op(mul, &[square, x])
                }
                _ => v.op(sqrt, &[x]),
            };
            if exponent < 0.0 { v.op(div, &[one, positive]) } else { positive }
        };
        Some(if ty == ComputeType::F32 {
            let x = self.one(x);
            one32(power(self.vectors, x))
        } else {
            two64(self.two(x).map(|x| power(self.vectors, x)))
        })
    }

    fn compute(&mut self, code: KernelOp, args: [Val; 3], ty: ComputeType) -> Option<Held> {
        use KernelOp::*;
        let from = self.ty(args[code.arity() - 1]);
        match code {
            Cast => self.cast(args[0], from, ty),
            Select => Some(if ty.bytes() == 8 {
                let (mask, yes, no) = (self.two(args[0]), self.two(args[1]), self.two(args[2]));
                two64([0, 1].map(|i| self.vectors.op(Op::BlendQ, &[mask[i], yes[i], no[i]])))
            } else {
                let all = args.map(|a| self.one(a));
                one32(self.vectors.op(Op::BlendD, &all))
            }),
            _ => match from {
                ComputeType::Bool => self.logic(code, args),
                ComputeType::U8 | ComputeType::I32 => self.integers(code, args, from),
                ComputeType::F32 => self.floats(code, args),
                ComputeType::I64 => self.wide(code, args, wide_integer),
                ComputeType::F64 => self.wide(code, args, wide_float),
            },
        }
    }

    /// Of masks.
    fn logic(&mut self, code: KernelOp, [a, b, _]: [Val; 3]) -> Option<Held> {
        let a = self.one(a);
        if code.arity() == 1 {
            return Some(match code {
                KernelOp::Not => one32(self.not(a)),
                KernelOp::Abs => one32(a),
                _ => return None,
            });
        }
        let b = self.one(b);
        let v = &mut *self.vectors;
        Some(one32(match code {
            KernelOp::And | KernelOp::Min => v.op(Op::And, &[a, b]),
            KernelOp::Or | KernelOp::Max => v.op(Op::Or, &[a, b]),
            KernelOp::Xor | KernelOp::Ne => v.op(Op::Xor, &[a, b]),
            KernelOp::Eq => {
                let differ = v.op(Op::Xor, &[a, b]);
                self.not(differ)
            }
            KernelOp::Lt => v.op(Op::Andn, &[a, b]),
            KernelOp::Le => {
                let greater = v.op(Op::Andn, &[b, a]);
                self.not(greater)
            }
            _ => return None,
        }))
    }

    fn not(&mut self, a: V) -> V {
        let ones = self.vectors.d(u32::MAX);
        self.vectors.op(Op::Xor, &[a, ones])
    }

    /// Of integers of 32 bits, and of bytes, which stay numbers from 0 to 255.
    fn integers(&mut self, code: KernelOp, [a, b, _]: [Val; 3], ty: ComputeType) -> Option<Held> {
        let (x, byte) = (self.one(a), ty == ComputeType::U8);
        let y = if code.arity() == 2 { self.one(b) } else { x };
        let v = &mut *self.vectors;
        let result = match code {
            KernelOp::Neg => {
                let zero = v.d(0);
                v.op(Op::SubD, &[zero, x])
            }
            KernelOp::Abs if byte => x,
            KernelOp::Abs => v.op(Op::AbsD, &[x]),
            KernelOp::Not => self.not(x),
            KernelOp::Add => v.op(Op::AddD, &[x, y]),
            KernelOp::Sub => v.op(Op::SubD, &[x, y]),
            KernelOp::Mul => v.op(Op::MulD, &[x, y]),
            KernelOp::Max => v.op(Op::MaxD, &[x, y]),
            KernelOp::Min => v.op(Op::MinD, &[x, y]),
            KernelOp::And => v.op(Op::And, &[x, y]),
            KernelOp::Or => v.op(Op::Or, &[x, y]),
            KernelOp::Xor => v.op(Op::Xor, &[x, y]),
            KernelOp::Eq => return Some(one32(v.op(Op::EqD, &[x, y]))),
            KernelOp::Lt => return Some(one32(v.op(Op::GtD, &[y, x]))),
            KernelOp::Ne => {
                let equal = v.op(Op::EqD, &[x, y]);
                return Some(one32(self.not(equal)));
            }
            KernelOp::Le => {
                let greater = v.op(Op::GtD, &[x, y]);
                return Some(one32(self.not(greater)));
            }
            _ => return None,
        };
        let leaves = matches!(code, KernelOp::Neg | KernelOp::Not | KernelOp::Add | KernelOp::Sub | KernelOp::Mul);
        Some(one32(if byte && leaves { self.low_byte(result) } else { result }))
    }

    fn low_byte(&mut self, a: V) -> V {
        let mask = self.vectors.d(255);
        self.vectors.op(Op::And, &[a, mask])
    }

    fn floats(&mut self, code: KernelOp, args: [Val; 3]) -> Option<Held> {
        let mut all = args;
        all[code.arity()..].fill(args[0]);
        let [x, y, z] = all.map(|a| self.one(a));
        let v = &mut *self.vectors;
        Some(one32(match code {
            KernelOp::Neg => {
                let sign = v.d(1 << 31);
                v.op(Op::Xor, &[x, sign])
            }
            KernelOp::Abs => {
                let rest = v.d(!(1 << 31));
                v.op(Op::And, &[x, rest])
            }
            KernelOp::Sqrt => v.op(Op::SqrtPs, &[x]),
            KernelOp::Floor => v.op_imm(Op::RoundPs, &[x], rounding::FLOOR),
            KernelOp::Ceil => v.op_imm(Op::RoundPs, &[x], rounding::CEIL),
            KernelOp::Trunc => v.op_imm(Op::RoundPs, &[x], rounding::TRUNC),
            KernelOp::Round => v.op_imm(Op::RoundPs, &[x], rounding::EVEN),
            KernelOp::RoundF16 => v.op(Op::RoundHalf, &[x]),
            KernelOp::Add => v.op(Op::AddPs, &[x, y]),
            KernelOp::Sub => v.op(Op::SubPs, &[x, y]),
            KernelOp::Mul => v.op(Op::MulPs, &[x, y]),
            KernelOp::Div => v.op(Op::DivPs, &[x, y]),
            KernelOp::Max | KernelOp::Min => {
                let m = v.op(if code == KernelOp::Max { Op::MaxPs } else { Op::MinPs }, &[x, y]);
                let is_nan = v.op_imm(Op::CmpPs, &[x, x], compare::UNORDERED);
                v.op(Op::BlendD, &[is_nan, x, m])
            }
            KernelOp::Fma => v.op(Op::FmaPs, &[x, y, z]),
            _ => match predicate(code) {
                Some(how) => v.op_imm(Op::CmpPs, &[x, y], how),
                None => v.function(code, self.width, x, y)?,
            },
        }))
    }

    /// Of values of 64 bits, half by half.
    fn wide(
        &mut self,
        code: KernelOp,
        args: [Val; 3],
        half: fn(&mut Vectors, KernelOp, [V; 3]) -> Option<V>,
    ) -> Option<Held> {
        let mut all = args;
        all[code.arity()..].fill(args[0]);
        let [x, y, z] = all.map(|a| self.two(a));
        let [low, high] = [0, 1].map(|i| half(self.vectors, code, [x[i], y[i], z[i]]));
        Some(two64([low?, high?]))
    }

    /// Whether a value of this type is not zero.
    fn truth(&mut self, value: Val, from: ComputeType) -> Held {
        match from {
            ComputeType::F32 => {
                let x = self.one(value);
                let zero = self.vectors.ps(0.0);
                one32(self.vectors.op_imm(Op::CmpPs, &[x, zero], compare::NE))
            }
            ComputeType::F64 => {
                let x = self.two(value);
                let zero = self.vectors.pd(0.0);
                two64(x.map(|x| self.vectors.op_imm(Op::CmpPd, &[x, zero], compare::NE)))
            }
            ComputeType::I64 => {
                let x = self.two(value);
                let (zero, ones) = (self.vectors.q(0), self.vectors.q(u64::MAX));
                two64(x.map(|x| {
                    let is_zero = self.vectors.op(Op::EqQ, &[x, zero]);
                    self.vectors.op(Op::Xor, &[is_zero, ones])
                }))
            }
            // A lane has more bits than a byte, so none is negative.
            ComputeType::U8 => {
                let x = self.one(value);
                let zero = self.vectors.d(0);
                one32(self.vectors.op(Op::GtD, &[x, zero]))
            }
            ComputeType::I32 | ComputeType::Bool => {
                let x = self.one(value);
                let zero = self.vectors.d(0);
                let is_zero = self.vectors.op(Op::EqD, &[x, zero]);
                one32(self.not(is_zero))
            }
        }
    }

    fn cast(&mut self, value: Val, from: ComputeType, to: ComputeType) -> Option<Held> {
        use ComputeType::*;
        let both = |v: &mut Vectors, ops: [Op; 2], x: V| ops.map(|op| v.op(op, &[x]));
        Some(match (from, to) {
            (_, Bool) => self.truth(value, from),
            (Bool, I64 | F64) => {
                let mask = self.two(value);
                let one = if to == F64 { self.vectors.pd(1.0) } else { self.vectors.q(1) };
                two64(mask.map(|m| self.vectors.op(Op::And, &[m, one])))
            }
            (Bool, _) => {
                let mask = self.one(value);
                let one = if to == F32 { self.vectors.ps(1.0) } else { self.vectors.d(1) };
                one32(self.vectors.op(Op::And, &[mask, one]))
            }
            (U8, I32) => one32(self.one(value)),
            (I32, U8) => {
                let x = self.one(value);
                one32(self.low_byte(x))
            }
            (U8 | I32, F32) => {
                let x = self.one(value);
                one32(self.vectors.op(Op::DToPs, &[x]))
            }
            (U8 | I32, I64) => {
                let x = self.one(value);
                two64(both(self.vectors, [Op::DToQLo, Op::DToQHi], x))
            }
            (U8 | I32, F64) => {
                let x = self.one(value);
                two64(both(self.vectors, [Op::DToPdLo, Op::DToPdHi], x))
            }
            (I64, I32 | U8) => {
                let x = self.two(value);
                let x = self.vectors.op(Op::QToDNarrow, &x);
                one32(if to == U8 { self.low_byte(x) } else { x })
            }
            (I64, F64) => two64(self.two(value).map(|x| self.vectors.q_to_pd(x))),
            (I64, F32) => {
                let halves = self.two(value).map(|x| {
                    let x = self.vectors.jammed(x);
                    self.vectors.q_to_pd(x)
                });
                one32(self.vectors.op(Op::PdToPsNarrow, &halves))
            }
            (F32, I32 | U8) => {
                let x = self.one(value);
                let x = self.vectors.op(Op::PsToD, &[x]);
                one32(if to == U8 { self.low_byte(x) } else { x })
            }
            (F32, F64 | I64) => {
                let x = self.one(value);
                let halves = both(self.vectors, [Op::PsToPdLo, Op::PsToPdHi], x);
                two64(if to == I64 { halves.map(|x| self.vectors.pd_to_q(x)) } else { halves })
            }
            (F64, I32 | U8) => {
                let x = self.two(value);
                let x = self.vectors.op(Op::PdToDNarrow, &x);
                one32(if to == U8 { self.low_byte(x) } else { x })
            }
            (F64, F32) => {
                let x = self.two(value);
                one32(self.vectors.op(Op::PdToPsNarrow, &x))
            }
            (F64, I64) => two64(self.two(value).map(|x| self.vectors.pd_to_q(x))),
            (U8, U8) | (I32, I32) | (I64, I64) | (F32, F32) | (F64, F64) => return None,
        })
    }
}

fn one32(v: V) -> Held {
    Held { one: Some(v), ..Held::default() }
}

fn two64(v: [V; 2]) -> Held {
    Held { two: Some(v), ..Held::default() }
}

fn predicate(code: KernelOp) -> Option<u8> {
    Some(match code {
        KernelOp::Eq => compare::EQ,
        KernelOp::Ne => compare::NE,
        KernelOp::Lt => compare::LT,
        KernelOp::Le => compare::LE,
        _ => return None,
    })
}

fn wide_float(v: &mut Vectors, code: KernelOp, [x, y, z]: [V; 3]) -> Option<V> {
    Some(match code {
        KernelOp::Neg => {
            let sign = v.q(1 << 63);
            v.op(Op::Xor, &[x, sign])
        }
        KernelOp::Abs => {
            let rest = v.q(!(1 << 63));
            v.op(Op::And, &[x, rest])
        }
        KernelOp::Sqrt => v.op(Op::SqrtPd, &[x]),
        KernelOp::Floor => v.op_imm(Op::RoundPd, &[x], rounding::FLOOR),
        KernelOp::Ceil => v.op_imm(Op::RoundPd, &[x], rounding::CEIL),
        KernelOp::Trunc => v.op_imm(Op::RoundPd, &[x], rounding::TRUNC),
        KernelOp::Round => v.op_imm(Op::RoundPd, &[x], rounding::EVEN),
        KernelOp::Add => v.op(Op::AddPd, &[x, y]),
        KernelOp::Sub => v.op(Op::SubPd, &[x, y]),
        KernelOp::Mul => v.op(Op::MulPd, &[x, y]),
        KernelOp::Div => v.op(Op::DivPd, &[x, y]),
        KernelOp::Max | KernelOp::Min => {
            let m = v.op(if code == KernelOp::Max { Op::MaxPd } else { Op::MinPd }, &[x, y]);
            let is_nan = v.op_imm(Op::CmpPd, &[x, x], compare::UNORDERED);
            v.op(Op::BlendQ, &[is_nan, x, m])
        }
        KernelOp::Fma => v.op(Op::FmaPd, &[x, y, z]),
        KernelOp::CopySign => {
            let mask = v.q(1 << 63);
            let (sign, rest) = (v.op(Op::And, &[mask, y]), v.op(Op::Andn, &[mask, x]));
            v.op(Op::Or, &[rest, sign])
        }
        _ => v.op_imm(Op::CmpPd, &[x, y], predicate(code)?),
    })
}
