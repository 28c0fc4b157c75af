//! A body as a vector program.

use ltc_ir::DType;

use super::{
    super::ir::{Body, Code, Def, Lane, Val},
    vector::{Form, Op, Place, V, Vectors, Width, compare, rounding},
};

/// A value in vectors: as one, as two, or, of a `Bool`, as whichever somebody asked for.
#[derive(Clone, Copy, Default)]
struct Held {
    one: Option<V>,
    two: Option<[V; 2]>,
    /// The same for all elements: where its number lies.
    cell: Option<u32>,
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
    body: &'a Body,
    width: Width,
    vectors: Vectors,
    held: Vec<Held>,
}

/// What to make of a body.
pub(super) struct Shape<'a> {
    pub(super) body: &'a Body,
    /// Per value of the body: whether it is the same for all elements.
    pub(super) uniform: &'a [bool],
    pub(super) inputs: &'a [DType],
    pub(super) outputs: &'a [DType],
    /// Outputs that may share their memory with an input.
    pub(super) staged: &'a [bool],
    /// Cells of powers known to be this number.
    pub(super) exponents: &'a [(u32, f64)],
}

/// The program of a group; ports are inputs, then outputs. `None` if some computation has no vector form, or blocks of
/// bytes, of which a loop takes four times as many at once, are all there is.
pub(super) fn lower(shape: &Shape<'_>, width: Width) -> Option<Vectors> {
    let body = shape.body;
    let computed = |i: &usize| matches!(body.values[*i].0, Def::Op(..)) && !shape.uniform[*i];
    if (0..body.values.len()).filter(computed).all(|i| {
        let of = |v: &Val| body.lane(*v).bytes() == 1;
        body.values[i].1.bytes() == 1 && body.operands(Val(i as u32)).iter().all(of)
    }) {
        return None;
    }
    let mut l = Lowering { body, width, vectors: Vectors::default(), held: Vec::with_capacity(body.values.len()) };
    let mut cells = 0;
    let is_load = |i: usize| matches!(body.values[i].0, Def::Input(_)) && !shape.uniform[i];
    let mut loads = (0..body.values.len()).filter(|&i| is_load(i)).count();
    // What a check leaves to somebody else is computed anew.
    let is_checked = |i: &usize| matches!(body.values[*i].0, Def::Op(code, _) if code.is_checked());
    let mut checks = (0..body.values.len()).filter(computed).filter(is_checked).count();
    let mut pending: Vec<usize> = Vec::new();
    for i in 0..body.values.len() {
        if shape.uniform[i] {
            l.held.push(Held { cell: Some(cells), ..Held::default() });
            cells += 1;
        } else {
            let held = match body.values[i].0 {
                Def::Input(input) => {
                    loads -= 1;
                    l.load(input, *shape.inputs.get(input as usize)?)?
                }
                Def::Op(Code::Pow, args) => l.power(args, body.values[i].1, shape.exponents)?,
                Def::Op(code, args) => {
                    checks -= usize::from(code.is_checked());
                    l.compute(code, args, body.values[i].1)?
                }
                Def::Number(..) | Def::Const(_) => return None,
            };
            l.held.push(held);
        }
        let kept = body.outputs.iter().enumerate().filter(|(_, v)| v.0 as usize == i).map(|(o, _)| o);
        pending.extend(kept);
        // An output that may lie where an input does is written when all inputs are read, and will not be read again.
        let read = loads == 0 && checks == 0;
        let (now, later): (Vec<usize>, Vec<usize>) = pending.iter().partition(|&&o| read || !shape.staged[o]);
        pending = later;
        for o in now {
            l.store((shape.inputs.len() + o) as u16, shape.outputs[o], body.outputs[o])?;
        }
    }
    Some(l.vectors)
}

impl Lowering<'_> {
    fn lane(&self, v: Val) -> Lane {
        self.body.lane(v)
    }

    /// A value of 32 bits.
    fn one(&mut self, v: Val) -> V {
        let held = self.held[v.0 as usize];
        let one = match (held.one, held.two, held.cell) {
            (Some(one), ..) => one,
            (None, _, Some(cell)) => self.vectors.cell(cell, false),
            (None, Some(two), _) => self.vectors.op(Op::QToDNarrow, &two),
            (None, None, None) => unreachable!("a value is held somehow"),
        };
        self.held[v.0 as usize].one = Some(one);
        one
    }

    /// A value of 64 bits, or a mask for one.
    fn two(&mut self, v: Val) -> [V; 2] {
        let held = self.held[v.0 as usize];
        let two = match (held.two, held.one, held.cell) {
            (Some(two), ..) => two,
            (None, _, Some(cell)) => [self.vectors.cell(cell, true); 2],
            (None, Some(one), _) => [Op::DToQLo, Op::DToQHi].map(|op| self.vectors.op(op, &[one])),
            (None, None, None) => unreachable!("a value is held somehow"),
        };
        self.held[v.0 as usize].two = Some(two);
        two
    }

    fn place(&self, port: u16, form: Form, half: usize) -> Place {
        Place { port, first: (half * self.width.group() / 2) as u16, form }
    }

    fn load(&mut self, input: u32, dtype: DType) -> Option<Held> {
        let form = form(dtype)?;
        let place = |l: &Self, half| l.place(input as u16, form, half);
        Some(match form {
            Form::Vector64 => {
                let halves = [0, 1].map(|half| place(self, half));
                Held { two: Some(halves.map(|p| self.vectors.load(p))), ..Held::default() }
            }
            _ => {
                let place = place(self, 0);
                let v = &mut self.vectors;
                let bits = v.load(place);
                let one = match dtype {
                    DType::BF16 => v.op_imm(Op::ShlD, &[bits], 16),
                    DType::Bool => {
                        let zero = v.d(0);
                        v.op(Op::GtD, &[bits, zero])
                    }
                    _ => bits,
                };
                one32(one)
            }
        })
    }

    fn store(&mut self, port: u16, dtype: DType, value: Val) -> Option<()> {
        let form = form(dtype)?;
        if form == Form::Vector64 {
            for (half, v) in self.two(value).into_iter().enumerate() {
                let place = self.place(port, form, half);
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
        let place = self.place(port, form, 0);
        self.vectors.store(place, v);
        Some(())
    }

    /// `x` to a power that is known.
    fn power(&mut self, [x, y, _]: [Val; 3], lane: Lane, exponents: &[(u32, f64)]) -> Option<Held> {
        let cell = self.held[y.0 as usize].cell?;
        let exponent = exponents.iter().find(|(c, _)| *c == cell)?.1;
        let (mul, div, sqrt) = match lane {
            Lane::F32 => (Op::MulPs, Op::DivPs, Op::SqrtPs),
            _ => (Op::MulPd, Op::DivPd, Op::SqrtPd),
        };
        let one = if lane == Lane::F32 { self.vectors.ps(1.0) } else { self.vectors.pd(1.0) };
        // The short cuts of `math::pow32`.
        let power = |v: &mut Vectors, x: V| {
            let positive = match exponent.abs() {
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
        Some(if lane == Lane::F32 {
            let x = self.one(x);
            one32(power(&mut self.vectors, x))
        } else {
            two64(self.two(x).map(|x| power(&mut self.vectors, x)))
        })
    }

    fn compute(&mut self, code: Code, args: [Val; 3], lane: Lane) -> Option<Held> {
        use Code::*;
        let from = self.lane(args[code.arity() - 1]);
        match code {
            Cast => self.cast(args[0], from, lane),
            Select => Some(if lane.bytes() == 8 {
                let (mask, yes, no) = (self.two(args[0]), self.two(args[1]), self.two(args[2]));
                two64([0, 1].map(|i| self.vectors.op(Op::BlendQ, &[mask[i], yes[i], no[i]])))
            } else {
                let all = args.map(|a| self.one(a));
                one32(self.vectors.op(Op::BlendD, &all))
            }),
            _ => match from {
                Lane::Bool => self.logic(code, args),
                Lane::U8 | Lane::I32 => self.integers(code, args, from),
                Lane::F32 => self.floats(code, args),
                Lane::I64 => self.wide(code, args, wide_integer),
                Lane::F64 => self.wide(code, args, wide_float),
            },
        }
    }

    /// Of masks.
    fn logic(&mut self, code: Code, [a, b, _]: [Val; 3]) -> Option<Held> {
        let a = self.one(a);
        if code.arity() == 1 {
            return Some(match code {
                Code::Not => one32(self.not(a)),
                Code::Abs => one32(a),
                _ => return None,
            });
        }
        let b = self.one(b);
        let v = &mut self.vectors;
        Some(one32(match code {
            Code::And | Code::Min => v.op(Op::And, &[a, b]),
            Code::Or | Code::Max => v.op(Op::Or, &[a, b]),
            Code::Xor | Code::Ne => v.op(Op::Xor, &[a, b]),
            Code::Eq => {
                let differ = v.op(Op::Xor, &[a, b]);
                self.not(differ)
            }
            Code::Lt => v.op(Op::Andn, &[a, b]),
            Code::Le => {
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
    fn integers(&mut self, code: Code, [a, b, _]: [Val; 3], lane: Lane) -> Option<Held> {
        let (x, byte) = (self.one(a), lane == Lane::U8);
        let y = if code.arity() == 2 { self.one(b) } else { x };
        let v = &mut self.vectors;
        let result = match code {
            Code::Neg => {
                let zero = v.d(0);
                v.op(Op::SubD, &[zero, x])
            }
            Code::Abs if byte => x,
            Code::Abs => v.op(Op::AbsD, &[x]),
            Code::Not => self.not(x),
            Code::Add => v.op(Op::AddD, &[x, y]),
            Code::Sub => v.op(Op::SubD, &[x, y]),
            Code::Mul => v.op(Op::MulD, &[x, y]),
            Code::Max => v.op(Op::MaxD, &[x, y]),
            Code::Min => v.op(Op::MinD, &[x, y]),
            Code::And => v.op(Op::And, &[x, y]),
            Code::Or => v.op(Op::Or, &[x, y]),
            Code::Xor => v.op(Op::Xor, &[x, y]),
            Code::Eq => return Some(one32(v.op(Op::EqD, &[x, y]))),
            Code::Lt => return Some(one32(v.op(Op::GtD, &[y, x]))),
            Code::Ne => {
                let equal = v.op(Op::EqD, &[x, y]);
                return Some(one32(self.not(equal)));
            }
            Code::Le => {
                let greater = v.op(Op::GtD, &[x, y]);
                return Some(one32(self.not(greater)));
            }
            _ => return None,
        };
        let leaves = matches!(code, Code::Neg | Code::Not | Code::Add | Code::Sub | Code::Mul);
        Some(one32(if byte && leaves { self.low_byte(result) } else { result }))
    }

    fn low_byte(&mut self, a: V) -> V {
        let mask = self.vectors.d(255);
        self.vectors.op(Op::And, &[a, mask])
    }

    fn floats(&mut self, code: Code, args: [Val; 3]) -> Option<Held> {
        let mut all = args;
        all[code.arity()..].fill(args[0]);
        let [x, y, z] = all.map(|a| self.one(a));
        let v = &mut self.vectors;
        Some(one32(match code {
            Code::Neg => {
                let sign = v.d(1 << 31);
                v.op(Op::Xor, &[x, sign])
            }
            Code::Abs => {
                let rest = v.d(!(1 << 31));
                v.op(Op::And, &[x, rest])
            }
            Code::Sqrt => v.op(Op::SqrtPs, &[x]),
            Code::Floor => v.op_imm(Op::RoundPs, &[x], rounding::FLOOR),
            Code::Ceil => v.op_imm(Op::RoundPs, &[x], rounding::CEIL),
            Code::Trunc => v.op_imm(Op::RoundPs, &[x], rounding::TRUNC),
            Code::Round => v.op_imm(Op::RoundPs, &[x], rounding::EVEN),
            Code::RoundF16 => v.op(Op::RoundHalf, &[x]),
            Code::Add => v.op(Op::AddPs, &[x, y]),
            Code::Sub => v.op(Op::SubPs, &[x, y]),
            Code::Mul => v.op(Op::MulPs, &[x, y]),
            Code::Div => v.op(Op::DivPs, &[x, y]),
            Code::Max | Code::Min => {
                let m = v.op(if code == Code::Max { Op::MaxPs } else { Op::MinPs }, &[x, y]);
                let is_nan = v.op_imm(Op::CmpPs, &[x, x], compare::UNORDERED);
                v.op(Op::BlendD, &[is_nan, x, m])
            }
            Code::Fma => v.op(Op::FmaPs, &[x, y, z]),
            _ => match predicate(code) {
                Some(how) => v.op_imm(Op::CmpPs, &[x, y], how),
                None => v.function(code, x, y)?,
            },
        }))
    }

    /// Of values of 64 bits, half by half.
    fn wide(&mut self, code: Code, args: [Val; 3], half: fn(&mut Vectors, Code, [V; 3]) -> Option<V>) -> Option<Held> {
        let mut all = args;
        all[code.arity()..].fill(args[0]);
        let [x, y, z] = all.map(|a| self.two(a));
        let [low, high] = [0, 1].map(|i| half(&mut self.vectors, code, [x[i], y[i], z[i]]));
        Some(two64([low?, high?]))
    }

    fn cast(&mut self, value: Val, from: Lane, to: Lane) -> Option<Held> {
        use Lane::*;
        let both = |v: &mut Vectors, ops: [Op; 2], x: V| ops.map(|op| v.op(op, &[x]));
        Some(match (from, to) {
            (F32, Bool) => {
                let x = self.one(value);
                let zero = self.vectors.ps(0.0);
                one32(self.vectors.op_imm(Op::CmpPs, &[x, zero], compare::NE))
            }
            (F64, Bool) => {
                let x = self.two(value);
                let zero = self.vectors.pd(0.0);
                two64(x.map(|x| self.vectors.op_imm(Op::CmpPd, &[x, zero], compare::NE)))
            }
            (I64, Bool) => {
                let x = self.two(value);
                let (zero, ones) = (self.vectors.q(0), self.vectors.q(u64::MAX));
                two64(x.map(|x| {
                    let is_zero = self.vectors.op(Op::EqQ, &[x, zero]);
                    self.vectors.op(Op::Xor, &[is_zero, ones])
                }))
            }
            (_, Bool) => {
                let x = self.one(value);
                let zero = self.vectors.d(0);
                let is_zero = self.vectors.op(Op::EqD, &[x, zero]);
                one32(self.not(is_zero))
            }
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
                two64(both(&mut self.vectors, [Op::DToQLo, Op::DToQHi], x))
            }
            (U8 | I32, F64) => {
                let x = self.one(value);
                two64(both(&mut self.vectors, [Op::DToPdLo, Op::DToPdHi], x))
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
                let halves = both(&mut self.vectors, [Op::PsToPdLo, Op::PsToPdHi], x);
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

fn predicate(code: Code) -> Option<u8> {
    Some(match code {
        Code::Eq => compare::EQ,
        Code::Ne => compare::NE,
        Code::Lt => compare::LT,
        Code::Le => compare::LE,
        _ => return None,
    })
}

fn wide_float(v: &mut Vectors, code: Code, [x, y, z]: [V; 3]) -> Option<V> {
    Some(match code {
        Code::Neg => {
            let sign = v.q(1 << 63);
            v.op(Op::Xor, &[x, sign])
        }
        Code::Abs => {
            let rest = v.q(!(1 << 63));
            v.op(Op::And, &[x, rest])
        }
        Code::Sqrt => v.op(Op::SqrtPd, &[x]),
        Code::Floor => v.op_imm(Op::RoundPd, &[x], rounding::FLOOR),
        Code::Ceil => v.op_imm(Op::RoundPd, &[x], rounding::CEIL),
        Code::Trunc => v.op_imm(Op::RoundPd, &[x], rounding::TRUNC),
        Code::Round => v.op_imm(Op::RoundPd, &[x], rounding::EVEN),
        Code::Add => v.op(Op::AddPd, &[x, y]),
        Code::Sub => v.op(Op::SubPd, &[x, y]),
        Code::Mul => v.op(Op::MulPd, &[x, y]),
        Code::Div => v.op(Op::DivPd, &[x, y]),
        Code::Max | Code::Min => {
            let m = v.op(if code == Code::Max { Op::MaxPd } else { Op::MinPd }, &[x, y]);
            let is_nan = v.op_imm(Op::CmpPd, &[x, x], compare::UNORDERED);
            v.op(Op::BlendQ, &[is_nan, x, m])
        }
        Code::Fma => v.op(Op::FmaPd, &[x, y, z]),
        Code::CopySign => {
            let mask = v.q(1 << 63);
            let (sign, rest) = (v.op(Op::And, &[mask, y]), v.op(Op::Andn, &[mask, x]));
            v.op(Op::Or, &[rest, sign])
        }
        _ => v.op_imm(Op::CmpPd, &[x, y], predicate(code)?),
    })
}

fn wide_integer(v: &mut Vectors, code: Code, [x, y, _]: [V; 3]) -> Option<V> {
    let not = |v: &mut Vectors, x: V| {
        let ones = v.q(u64::MAX);
        v.op(Op::Xor, &[x, ones])
    };
    Some(match code {
        Code::Neg => {
            let zero = v.q(0);
            v.op(Op::SubQ, &[zero, x])
        }
        Code::Abs => {
            let zero = v.q(0);
            let sign = v.op(Op::GtQ, &[zero, x]);
            let flipped = v.op(Op::Xor, &[x, sign]);
            v.op(Op::SubQ, &[flipped, sign])
        }
        Code::Not => not(v, x),
        Code::Add => v.op(Op::AddQ, &[x, y]),
        Code::Sub => v.op(Op::SubQ, &[x, y]),
        Code::Mul => v.mul_q(x, y),
        Code::Max => {
            let larger = v.op(Op::GtQ, &[x, y]);
            v.op(Op::BlendQ, &[larger, x, y])
        }
        Code::Min => {
            let smaller = v.op(Op::GtQ, &[y, x]);
            v.op(Op::BlendQ, &[smaller, x, y])
        }
        Code::And => v.op(Op::And, &[x, y]),
        Code::Or => v.op(Op::Or, &[x, y]),
        Code::Xor => v.op(Op::Xor, &[x, y]),
        Code::Eq => v.op(Op::EqQ, &[x, y]),
        Code::Ne => {
            let equal = v.op(Op::EqQ, &[x, y]);
            not(v, equal)
        }
        Code::Lt => v.op(Op::GtQ, &[y, x]),
        Code::Le => {
            let greater = v.op(Op::GtQ, &[x, y]);
            not(v, greater)
        }
        _ => return None,
    })
}
